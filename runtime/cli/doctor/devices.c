// SPDX-License-Identifier: BSD-3-Clause
// GPUs, NICs and ports as sysfs shows them, read once for all checks.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor/host.h"

enum {
    NVIDIA = 0x10de,
    MELLANOX = 0x15b3,
    BRIDGE_OTHER = 0x0680, // what NVSwitches are
    NETWORK = 0x02,
    ETHERNET = 0x0200,
    INFINIBAND = 0x0207,
    DISPLAY = 0x03,
};

static void pci_sort(struct gpsh_host *host, const struct gpsh_pci *pci)
{
    unsigned class_code = pci->class_code;
    struct gpsh_pcis *found = NULL;
    if (pci->vendor == NVIDIA && class_code >> 8 == DISPLAY)
        found = &host->gpus;
    else if (pci->vendor == NVIDIA && class_code == BRIDGE_OTHER)
        found = &host->switches;
    else if (class_code == INFINIBAND || (class_code == ETHERNET && pci->vendor == MELLANOX) ||
             (class_code >> 8 == NETWORK &&
              !gpsh_host_access(host, 0, "sys/bus/pci/devices/%s/infiniband", pci->address)))
        found = &host->nics;
    if (found && found->n < GPSH_PCI_MOST)
        found->device[found->n++] = *pci;
}

static void bus_read(struct gpsh_host *host)
{
    static struct gpsh_names names;
    host->bus_status = gpsh_host_list(host, &names, "sys/bus/pci/devices");
    for (int i = 0; i < names.n; i++) {
        struct gpsh_pci pci = {.vendor = 0};
        long long vendor, class_code;
        if (strlen(names.name[i]) >= sizeof pci.address ||
            gpsh_host_number(host, &vendor, "sys/bus/pci/devices/%s/vendor", names.name[i]) ||
            gpsh_host_number(host, &class_code, "sys/bus/pci/devices/%s/class", names.name[i]))
            continue;
        memcpy(pci.address, names.name[i], strlen(names.name[i]) + 1);
        pci.vendor = (unsigned)vendor;
        pci.class_code = (unsigned)(class_code >> 8);
        pci_sort(host, &pci);
    }
}

// "0000:3b:00.0"
static bool is_address(const char *text, size_t length)
{
    return length >= 12 && length < GPSH_PCI_BYTES && text[length - 2] == '.' &&
           text[length - 5] == ':' && text[length - 8] == ':';
}

int gpsh_pci_path(const struct gpsh_host *host, const char *address,
                  char path[GPSH_PCI_PATH][GPSH_PCI_BYTES])
{
    char target[1024];
    int n = 0;
    if (gpsh_host_link(host, target, sizeof target, "sys/bus/pci/devices/%s", address))
        return 0;
    for (const char *at = target; *at && n < GPSH_PCI_PATH;) {
        size_t length = strcspn(at, "/");
        if (is_address(at, length)) {
            memcpy(path[n], at, length);
            path[n++][length] = '\0';
        }
        at += length + (at[length] == '/');
    }
    return n;
}

int gpsh_pci_config(const struct gpsh_host *host, const char *address,
                    unsigned char config[GPSH_PCI_CONFIG])
{
    memset(config, 0, GPSH_PCI_CONFIG);
    return gpsh_host_read_raw(host, config, GPSH_PCI_CONFIG, "sys/bus/pci/devices/%s/config",
                              address);
}

// PCI Local Bus Specification 3.0, 6.7: a list that starts at 0x34. A circle ends after 48 steps,
// which is all that fits.
int gpsh_pci_capability(const unsigned char *config, int bytes, unsigned id)
{
    if (bytes <= 64)
        return -1;
    int at = config[0x34] & ~3;
    for (int steps = 0; steps < 48 && at >= 0x40 && at + 1 < bytes; steps++) {
        if (config[at] == id)
            return at;
        at = config[at + 1] & ~3;
    }
    return 0;
}

// PCI Express Base Specification, 7.6.3: a list that starts at 0x100. Callers read registers up to
// the eighth byte.
int gpsh_pci_extended(const unsigned char *config, int bytes, unsigned id)
{
    if (bytes <= 256)
        return -1;
    int at = 0x100;
    for (int steps = 0; steps < 960 && at >= 0x100 && at + 8 <= bytes; steps++) {
        unsigned head = config[at] | (unsigned)config[at + 1] << 8 |
                        (unsigned)config[at + 2] << 16 | (unsigned)config[at + 3] << 24;
        if ((head & 0xffff) == id)
            return at;
        at = (int)(head >> 20) & ~3;
    }
    return 0;
}

// ---- Ports ----

// "100 Gb/sec (4X EDR)"
static void rate_read(const char *text, struct gpsh_port *port)
{
    const char *lanes = strchr(text, '(');
    port->gbps = strtod(text, NULL);
    port->lanes = lanes ? atoi(lanes + 1) : 0;
    if (!(port->gbps > 0 && port->gbps < 1e6))
        port->gbps = 0;
}

// "gid_attrs" names it for every entry of the table; the first that has one counts.
static void interface_find(const struct gpsh_host *host, struct gpsh_port *port)
{
    for (int i = 0; i < 16 && !port->interface[0]; i++)
        gpsh_host_read(host, port->interface, sizeof port->interface, "%s/gid_attrs/ndevs/%d",
                       port->folder, i);
}

static void port_read(const struct gpsh_host *host, struct gpsh_port *port)
{
    char text[64];
    if (gpsh_host_read(host, text, sizeof text, "%s/state", port->folder) > 0) {
        const char *colon = strchr(text, ':'); // "4: ACTIVE"
        snprintf(port->state, sizeof port->state, "%.31s",
                 colon ? colon + 1 + (colon[1] == ' ') : text);
        port->active = atoi(text) == 4;
    }
    if (gpsh_host_read(host, text, sizeof text, "%s/link_layer", port->folder) > 0)
        port->ethernet = !strcmp(text, "Ethernet");
    if (gpsh_host_read(host, text, sizeof text, "%s/rate", port->folder) > 0)
        rate_read(text, port);
    if (port->ethernet)
        interface_find(host, port);
}

static void ports_of_device(const struct gpsh_host *host, const char *device,
                            struct gpsh_ports *ports)
{
    static struct gpsh_names numbers;
    gpsh_host_list(host, &numbers, "sys/class/infiniband/%s/ports", device);
    for (int i = 0; i < numbers.n && ports->n < GPSH_PORTS_MOST; i++) {
        struct gpsh_port *port = &ports->port[ports->n++];
        int number = atoi(numbers.name[i]);
        *port = (struct gpsh_port){.active = false};
        snprintf(port->name, sizeof port->name, "%s:%d", device, number);
        snprintf(port->folder, sizeof port->folder, "sys/class/infiniband/%s/ports/%d", device,
                 number);
        port_read(host, port);
        ports->n_active += port->active;
        ports->n_ethernet += port->active && port->ethernet;
    }
}

void gpsh_host_devices(struct gpsh_host *host)
{
    static struct gpsh_names devices;
    bus_read(host);
    host->ports.status = gpsh_host_list(host, &devices, "sys/class/infiniband");
    for (int i = 0; i < devices.n; i++)
        ports_of_device(host, devices.name[i], &host->ports);
}
