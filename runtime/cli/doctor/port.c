// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // strnlen
#include "doctor/port.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void name_copy(char *to, const char *name)
{
    memcpy(to, name, strnlen(name, GPSH_HOST_NAME_BYTES - 1) + 1);
    to[GPSH_HOST_NAME_BYTES - 1] = '\0';
}

// "100 Gb/sec (4X EDR)"
static void rate_read(const char *text, struct gpsh_port *port)
{
    const char *lanes = strchr(text, '(');
    port->gbps = strtod(text, NULL);
    port->lanes = lanes ? atoi(lanes + 1) : 0;
    if (!(port->gbps > 0 && port->gbps < 1e6))
        port->gbps = 0;
}

static void interface_find(const struct gpsh_host *host, struct gpsh_port *port)
{
    char text[GPSH_HOST_NAME_BYTES];
    // "gid_attrs" names it for every entry of the table; the first that has one counts.
    for (int i = 0; i < 16 && !port->interface[0]; i++)
        if (gpsh_host_read(host, text, sizeof text,
                           "sys/class/infiniband/%s/ports/%d/gid_attrs/ndevs/%d", port->device,
                           port->number, i) > 0)
            name_copy(port->interface, text);
}

static void port_read(const struct gpsh_host *host, struct gpsh_port *port)
{
    char text[64];
    if (gpsh_host_read(host, text, sizeof text, "sys/class/infiniband/%s/ports/%d/state",
                       port->device, port->number) > 0) {
        const char *colon = strchr(text, ':'); // "4: ACTIVE"
        snprintf(port->state, sizeof port->state, "%.31s",
                 colon ? colon + 1 + (colon[1] == ' ') : text);
        port->active = atoi(text) == 4;
    }
    if (gpsh_host_read(host, text, sizeof text, "sys/class/infiniband/%s/ports/%d/link_layer",
                       port->device, port->number) > 0)
        port->ethernet = !strcmp(text, "Ethernet");
    if (gpsh_host_read(host, text, sizeof text, "sys/class/infiniband/%s/ports/%d/rate",
                       port->device, port->number) > 0)
        rate_read(text, port);
    if (port->ethernet)
        interface_find(host, port);
}

static void device_read(const struct gpsh_host *host, const char *device, struct gpsh_ports *ports)
{
    static struct gpsh_names numbers;
    gpsh_host_list(host, &numbers, "sys/class/infiniband/%s/ports", device);
    for (int i = 0; i < numbers.n && ports->n < GPSH_PORTS_MOST; i++) {
        struct gpsh_port *port = &ports->port[ports->n++];
        *port = (struct gpsh_port){.number = atoi(numbers.name[i])};
        name_copy(port->device, device);
        port_read(host, port);
        ports->n_active += port->active;
        ports->n_ethernet += port->active && port->ethernet;
    }
}

int gpsh_ports_read(const struct gpsh_host *host, struct gpsh_ports *ports)
{
    static struct gpsh_names devices;
    ports->n = ports->n_active = ports->n_ethernet = 0;
    int status = gpsh_host_list(host, &devices, "sys/class/infiniband");
    for (int i = 0; i < devices.n; i++)
        device_read(host, devices.name[i], ports);
    return status;
}
