// SPDX-License-Identifier: BSD-3-Clause
// Checks of NICs, their driver and their ports.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor/check.h"
#include "doctor/environment.h"
#include "doctor/pci.h"
#include "doctor/port.h"

// Without NICs, init fails if no other transport is allowed.
static void no_nic(const struct gpsh_host *host, struct gpsh_finding *finding)
{
    char transports[64];
    gpsh_environment_setting(host, "GPUSHMEM_TRANSPORTS", transports, sizeof transports);
    if (strcmp(transports, "verbs") != 0 || (host->live && gpsh_verbs_has_devices())) {
        gpsh_found(finding, GPSH_NOT_APPLICABLE, "no RDMA NIC on the PCI bus");
        return;
    }
    gpsh_found(finding, GPSH_PROBLEM,
               "no RDMA NIC on the PCI bus, and GPUSHMEM_TRANSPORTS=verbs allows nothing else");
    gpsh_mend(finding, "unset GPUSHMEM_TRANSPORTS, or start on a machine with an RDMA NIC");
}

GPSH_CHECK_FUNCTION(verbs)
{
    struct gpsh_ports ports;
    struct gpsh_pcis nics;
    int status = gpsh_ports_read(host, &ports), seen = gpsh_pci_nics(host, &nics);
    if (status && status != -ENOENT)
        gpsh_found(finding, GPSH_CANNOT_TELL, "/sys/class/infiniband cannot be read (%s)",
                   strerror(-status));
    else if (ports.n)
        gpsh_found(finding, GPSH_OK, "%d port%s of verbs devices, the first is %s:%d", ports.n,
                   ports.n > 1 ? "s" : "", ports.port[0].device, ports.port[0].number);
    else if (seen)
        gpsh_found(finding, GPSH_CANNOT_TELL, "/sys/bus/pci/devices cannot be read (%s)",
                   strerror(-seen));
    else if (!nics.n)
        no_nic(host, finding);
    else
        gpsh_found(finding, GPSH_PROBLEM, "the NIC at %s has no verbs device",
                   nics.device[0].address);
}

GPSH_CHECK_FUNCTION(uverbs)
{
    struct gpsh_ports ports;
    static struct gpsh_names names;
    gpsh_ports_read(host, &ports);
    if (!ports.n) {
        gpsh_found(finding, GPSH_NOT_APPLICABLE, "no verbs device");
        return;
    }
    gpsh_host_list(host, &names, "sys/class/infiniband_verbs");
    int n = 0;
    for (int i = 0; i < names.n; i++) {
        if (strncmp(names.name[i], "uverbs", 6) != 0)
            continue;
        n++;
        int status = gpsh_host_access(host, 4 | 2, "dev/infiniband/%s", names.name[i]);
        if (!status)
            gpsh_found(finding, GPSH_OK, "/dev/infiniband/%s", names.name[i]);
        else if (status == -ENOENT && gpsh_environment_container(host)) {
            gpsh_found(finding, GPSH_PROBLEM, "/dev/infiniband/%s is not in this container",
                       names.name[i]);
            gpsh_mend(finding, "start the container with --device=/dev/infiniband");
        } else {
            gpsh_found(finding, GPSH_PROBLEM, "/dev/infiniband/%s: %s", names.name[i],
                       strerror(-status));
            if (status == -EACCES)
                gpsh_mend(finding, "sudo chmod a+rw /dev/infiniband/uverbs*, and a rule of udev: "
                                   "KERNEL==\"uverbs*\", MODE=\"0666\"");
        }
    }
    if (!n)
        gpsh_found(finding, GPSH_PROBLEM, "the kernel module ib_uverbs is not loaded");
}

// True if there are ports; else the finding says so.
static bool ports_are_there(const struct gpsh_host *host, struct gpsh_finding *finding,
                            struct gpsh_ports *ports)
{
    int status = gpsh_ports_read(host, ports);
    if (status && status != -ENOENT)
        gpsh_found(finding, GPSH_CANNOT_TELL, "/sys/class/infiniband cannot be read (%s)",
                   strerror(-status));
    else if (!ports->n)
        gpsh_found(finding, GPSH_NOT_APPLICABLE, "no verbs device");
    return ports->n > 0;
}

// A cable is there, and still it does not work. One without a cable may be meant so.
static void port_describe(struct gpsh_finding *finding, const struct gpsh_port *port,
                          bool any_active)
{
    if (!port->state[0])
        gpsh_found(finding, GPSH_CANNOT_TELL, "the state of %s:%d cannot be read", port->device,
                   port->number);
    else if (port->active)
        gpsh_found(finding, GPSH_OK, "%s:%d is active", port->device, port->number);
    else if (!strcmp(port->state, "INIT") || !strcmp(port->state, "ARMED")) {
        gpsh_found(finding, GPSH_PROBLEM, "%s:%d is in state %s: no subnet manager has set it up",
                   port->device, port->number, port->state);
        gpsh_mend(finding, "start a subnet manager (sudo systemctl start opensm) or enable the one "
                           "of the switch");
    } else
        gpsh_found(finding, any_active ? GPSH_OK : GPSH_PROBLEM, "%s:%d is %s", port->device,
                   port->number, port->state);
}

GPSH_CHECK_FUNCTION(port)
{
    struct gpsh_ports ports;
    if (ports_are_there(host, finding, &ports))
        for (int i = 0; i < ports.n; i++)
            port_describe(finding, &ports.port[i], ports.n_active > 0);
}

GPSH_CHECK_FUNCTION(rate)
{
    struct gpsh_ports ports;
    double best = 0;
    if (!ports_are_there(host, finding, &ports))
        return;
    for (int i = 0; i < ports.n; i++)
        if (ports.port[i].active && ports.port[i].gbps > best)
            best = ports.port[i].gbps;
    for (int i = 0; i < ports.n; i++) {
        const struct gpsh_port *port = &ports.port[i];
        if (!port->active)
            continue;
        if (!port->gbps)
            gpsh_found(finding, GPSH_CANNOT_TELL, "the rate of %s:%d cannot be read", port->device,
                       port->number);
        else if (!port->ethernet && port->lanes > 0 && port->lanes < 4)
            gpsh_found(finding, GPSH_PROBLEM, "%s:%d runs on %d of 4 lanes, at %g Gb/s",
                       port->device, port->number, port->lanes, port->gbps);
        else if (port->gbps < best / 2)
            gpsh_found(finding, GPSH_PROBLEM, "%s:%d runs at %g Gb/s, another port at %g",
                       port->device, port->number, port->gbps, best);
        else
            gpsh_found(finding, GPSH_OK, "%s:%d %g Gb/s", port->device, port->number, port->gbps);
    }
    if (!ports.n_active)
        gpsh_found(finding, GPSH_NOT_APPLICABLE, "no active port");
}
