// SPDX-License-Identifier: BSD-3-Clause
// Checks of NICs, their driver and their host->ports.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor/check.h"

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
    int status = host->ports.status, seen = host->bus_status;
    if (status && status != -ENOENT)
        gpsh_found(finding, GPSH_CANNOT_TELL, "/sys/class/infiniband cannot be read (%s)",
                   strerror(-status));
    else if (host->ports.n)
        gpsh_found(finding, GPSH_OK, "%d port%s of verbs devices, the first is %s", host->ports.n,
                   host->ports.n > 1 ? "s" : "", host->ports.port[0].name);
    else if (seen)
        gpsh_found(finding, GPSH_CANNOT_TELL, "/sys/bus/pci/devices cannot be read (%s)",
                   strerror(-seen));
    else if (!host->nics.n)
        no_nic(host, finding);
    else
        gpsh_found(finding, GPSH_PROBLEM, "the NIC at %s has no verbs device",
                   host->nics.device[0].address);
}

GPSH_CHECK_FUNCTION(uverbs)
{
    static struct gpsh_names names;
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

// A cable is there, and still it does not work. One without a cable may be meant so.
static void port_describe(struct gpsh_finding *finding, const struct gpsh_port *port,
                          bool any_active)
{
    if (!port->state[0])
        gpsh_found(finding, GPSH_CANNOT_TELL, "the state of %s cannot be read", port->name);
    else if (port->active)
        gpsh_found(finding, GPSH_OK, "%s is active", port->name);
    else if (!strcmp(port->state, "INIT") || !strcmp(port->state, "ARMED")) {
        gpsh_found(finding, GPSH_PROBLEM, "%s is in state %s: no subnet manager has set it up",
                   port->name, port->state);
        gpsh_mend(finding, "start a subnet manager (sudo systemctl start opensm) or enable the one "
                           "of the switch");
    } else
        gpsh_found(finding, any_active ? GPSH_OK : GPSH_PROBLEM, "%s is %s", port->name,
                   port->state);
}

GPSH_CHECK_FUNCTION(port)
{
    for (int i = 0; i < host->ports.n; i++)
        port_describe(finding, &host->ports.port[i], host->ports.n_active > 0);
}

GPSH_CHECK_FUNCTION(rate)
{
    double best = 0;
    for (int i = 0; i < host->ports.n; i++)
        if (host->ports.port[i].active && host->ports.port[i].gbps > best)
            best = host->ports.port[i].gbps;
    for (int i = 0; i < host->ports.n; i++) {
        const struct gpsh_port *port = &host->ports.port[i];
        if (!port->active)
            continue;
        if (!port->gbps)
            gpsh_found(finding, GPSH_CANNOT_TELL, "the rate of %s cannot be read", port->name);
        else if (!port->ethernet && port->lanes > 0 && port->lanes < 4)
            gpsh_found(finding, GPSH_PROBLEM, "%s runs on %d of 4 lanes, at %g Gb/s", port->name,
                       port->lanes, port->gbps);
        else if (port->gbps < best / 2)
            gpsh_found(finding, GPSH_PROBLEM, "%s runs at %g Gb/s, another port at %g", port->name,
                       port->gbps, best);
        else
            gpsh_found(finding, GPSH_OK, "%s %g Gb/s", port->name, port->gbps);
    }
    if (!host->ports.n_active)
        gpsh_found(finding, GPSH_NOT_APPLICABLE, "no active port");
}
