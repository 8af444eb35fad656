// SPDX-License-Identifier: BSD-3-Clause
// Checks of NICs, their driver, their ports and the network behind these.
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
GPSH_CHECK_FUNCTION(port)
{
    const struct gpsh_port *port = item->port;
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
        gpsh_found(finding, host->ports.n_active ? GPSH_OK : GPSH_PROBLEM, "%s is %s", port->name,
                   port->state);
}

GPSH_CHECK_FUNCTION(rate)
{
    const struct gpsh_port *port = item->port;
    double best = 0;
    for (int i = 0; i < host->ports.n; i++)
        if (host->ports.port[i].active && host->ports.port[i].gbps > best)
            best = host->ports.port[i].gbps;
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

// ---- The network behind the ports: RoCE needs more than a cable ----

enum {
    ROCE_MTU = 4200, // 4,096 bytes and all headers
    GIDS_MOST = 256,
    FEW_ERRORS = 100,
    PER_PACKETS = 1000000,
};

GPSH_CHECK_FUNCTION(mtu)
{
    const struct gpsh_port *port = item->port;
    long long mtu;
    if (!port->interface[0] ||
        gpsh_host_number(host, &mtu, "sys/class/net/%s/mtu", port->interface))
        gpsh_found(finding, GPSH_CANNOT_TELL, "the MTU of %s's interface cannot be read",
                   port->name);
    else if (mtu < ROCE_MTU) {
        gpsh_found(finding, GPSH_PROBLEM, "%s is on %s, whose MTU is %lld", port->name,
                   port->interface, mtu);
        gpsh_mend(finding, "sudo ip link set dev %s mtu 9000", port->interface);
    } else
        gpsh_found(finding, GPSH_OK, "%s has %lld", port->interface, mtu);
}

// ---- Addresses ----

struct gids {
    int v1, v2; // entries with an address
    int hidden; // entries that are there and cannot be read
    int here;   // of them of version 2, and on an interface of this network namespace
    char elsewhere[GPSH_HOST_NAME_BYTES];
};

static void gid_read(const struct gpsh_host *host, const struct gpsh_port *port, int index,
                     struct gids *gids)
{
    char gid[64], type[32], interface[GPSH_HOST_NAME_BYTES];
    int n = gpsh_host_read(host, gid, sizeof gid, "%s/gids/%d", port->folder, index);
    if (n == -ENOENT || (n > 0 && !gid[strspn(gid, "0:")]))
        return;
    if (n <= 0 || gpsh_host_read(host, type, sizeof type, "%s/gid_attrs/types/%d", port->folder,
                                 index) <= 0) {
        gids->hidden++;
        return;
    }
    if (strcmp(type, "RoCE v2") != 0) {
        gids->v1++;
        return;
    }
    gids->v2++;
    if (gpsh_host_read(host, interface, sizeof interface, "%s/gid_attrs/ndevs/%d", port->folder,
                       index) > 0 &&
        gpsh_host_access(host, 0, "sys/class/net/%s", interface))
        snprintf(gids->elsewhere, sizeof gids->elsewhere, "%s", interface);
    else
        gids->here++;
}

static struct gids gids_read(const struct gpsh_host *host, const struct gpsh_port *port)
{
    struct gids gids = {.v1 = 0};
    for (int i = 0; i < GIDS_MOST; i++)
        gid_read(host, port, i, &gids);
    return gids;
}

static int gid_setting(const struct gpsh_host *host)
{
    char text[32];
    gpsh_environment_setting(host, "GPUSHMEM_VERBS_GID_INDEX", text, sizeof text);
    return text[0] ? atoi(text) : -1;
}

GPSH_CHECK_FUNCTION(gid)
{
    const struct gpsh_port *port = item->port;
    struct gids gids = {.v1 = 0};
    int wanted = gid_setting(host);
    if (wanted >= 0)
        gid_read(host, port, wanted, &gids);
    else
        gids = gids_read(host, port);
    if (gids.v2)
        gpsh_found(finding, GPSH_OK, "%s has a RoCE v2 address", port->name);
    else if (gids.hidden)
        gpsh_found(finding, GPSH_CANNOT_TELL, "the addresses of %s cannot be read", port->name);
    else if (wanted >= 0) {
        gpsh_found(finding, GPSH_PROBLEM, "GPUSHMEM_VERBS_GID_INDEX=%d is no RoCE v2 address of %s",
                   wanted, port->name);
        gpsh_mend(finding, "unset GPUSHMEM_VERBS_GID_INDEX; the library finds the right one");
    } else {
        gpsh_found(finding, GPSH_PROBLEM, "%s has %s", port->name,
                   gids.v1 ? "RoCE v1 addresses only, which no router passes on"
                           : "no address at all");
        gpsh_mend(finding, "sudo ip link set dev %s up; sudo ip addr add ADDRESS/24 dev %s",
                  port->interface[0] ? port->interface : "INTERFACE",
                  port->interface[0] ? port->interface : "INTERFACE");
    }
}

GPSH_CHECK_FUNCTION(namespace)
{
    const struct gpsh_port *port = item->port;
    struct gids gids = gids_read(host, port);
    if (gids.v2 && !gids.here)
        gpsh_found(finding, GPSH_PROBLEM,
                   "the addresses of %s are on %s, which is in another network namespace",
                   port->name, gids.elsewhere);
    else
        gpsh_found(finding, GPSH_OK, "%s has its interface here", port->name);
}

// ---- Losses ----

// A list like "0,0,0,1,0,0,0,0": 1 if anything is on, 0 if all is off, -1 if it is no such list.
static int any_is_on(const char *text)
{
    int digits = 0, on = 0;
    for (; *text; text++) {
        digits += *text == '0' || *text == '1';
        on |= *text == '1';
    }
    return digits == 8 ? on : -1;
}

GPSH_CHECK_FUNCTION(pfc)
{
    const struct gpsh_port *port = item->port;
    const char *name = port->interface[0] ? port->interface : "INTERFACE";
    char text[256];
    int n = gpsh_host_read(host, text, sizeof text, "sys/class/net/%s/qos/pfc", name);
    int on = n > 0 ? any_is_on(text) : -1;
    if (on < 0) {
        gpsh_found(finding, GPSH_CANNOT_TELL, "the driver of %s does not show it in /sys", name);
        gpsh_mend(finding,
                  "dcb pfc show dev %s (or mlnx_qos -i %s): the priority of RoCE "
                  "should be on, here and on the switch",
                  name, name);
    } else if (!on) {
        gpsh_found(finding, GPSH_PROBLEM, "priority flow control is off on %s", name);
        gpsh_mend(finding,
                  "sudo mlnx_qos -i %s --trust dscp --pfc 0,0,0,1,0,0,0,0, and the "
                  "same on the switch",
                  name);
    } else
        gpsh_found(finding, GPSH_OK, "%s: %s", name, text);
}

// 1 if some priority has it on, 0 if all are off, -1 if one of them does not say.
static int ecn_is_on(const struct gpsh_host *host, const char *interface, const char *side)
{
    bool on = false, all = true;
    for (int priority = 0; priority < 8; priority++) {
        long long value = 0;
        if (gpsh_host_number(host, &value, "sys/class/net/%s/ecn/%s/enable/%d", interface, side,
                             priority))
            all = false;
        on |= value != 0;
    }
    return on ? 1 : all ? 0 : -1;
}

static long long counter(const struct gpsh_host *host, const struct gpsh_port *port,
                         const char *folder, const char *name)
{
    long long value;
    return gpsh_host_number(host, &value, "%s/%s/%s", port->folder, folder, name) ? -1 : value;
}

GPSH_CHECK_FUNCTION(ecn)
{
    const struct gpsh_port *port = item->port;
    int notices = ecn_is_on(host, port->interface, "roce_np"),
        reacts = ecn_is_on(host, port->interface, "roce_rp");
    if (counter(host, port, "hw_counters", "np_ecn_marked_roce_packets") > 0)
        gpsh_found(finding, GPSH_OK, "%s has received marked packets", port->name);
    else if (notices < 0 || reacts < 0)
        gpsh_found(finding, GPSH_CANNOT_TELL, "the driver of %s does not show it in /sys",
                   port->name);
    else if (!notices || !reacts) {
        gpsh_found(finding, GPSH_PROBLEM, "congestion is not %s on %s",
                   notices ? "reacted to" : "notified of", port->interface);
        gpsh_mend(finding, "echo 1 | sudo tee /sys/class/net/%s/ecn/roce_{np,rp}/enable/3",
                  port->interface);
    } else
        gpsh_found(finding, GPSH_OK, "%s notifies and reacts", port->interface);
}

GPSH_CHECK_FUNCTION(loss)
{
    const struct gpsh_port *port = item->port;
    long long packets = counter(host, port, "counters", "port_rcv_packets"),
              gaps = counter(host, port, "hw_counters", "packet_seq_err"),
              timeouts = counter(host, port, "hw_counters", "local_ack_timeout_err");
    bool counted = gaps >= 0 || timeouts >= 0;
    gaps = gaps > 0 ? gaps : 0;
    timeouts = timeouts > 0 ? timeouts : 0;
    if (!counted)
        gpsh_found(finding, GPSH_CANNOT_TELL, "%s does not count lost packets", port->name);
    else if (gaps + timeouts > FEW_ERRORS && gaps + timeouts > packets / PER_PACKETS)
        gpsh_found(finding, GPSH_PROBLEM,
                   "%s: %lld gaps and %lld timeouts since the driver was loaded", port->name, gaps,
                   timeouts);
    else
        gpsh_found(finding, GPSH_OK, "%s: %lld", port->name, gaps + timeouts);
}

GPSH_CHECK_FUNCTION(routing)
{
    char order[32];
    long long overtaken = 0;
    gpsh_environment_setting(host, "GPUSHMEM_VERBS_ORDER", order, sizeof order);
    for (int i = 0; i < host->ports.n; i++) {
        long long n = counter(host, &host->ports.port[i], "hw_counters", "out_of_sequence");
        overtaken += n > 0 ? n : 0;
    }
    if (strcmp(order, "queue") != 0)
        gpsh_found(finding, GPSH_OK,
                   "GPUSHMEM_VERBS_ORDER=%s is safe with it (%lld packets came "
                   "out of turn)",
                   order[0] ? order : "auto", overtaken);
    else if (overtaken)
        gpsh_found(finding, GPSH_PROBLEM,
                   "%lld packets came out of turn, and GPUSHMEM_VERBS_ORDER=queue relies on none "
                   "doing so",
                   overtaken);
    else
        gpsh_found(finding, GPSH_CANNOT_TELL,
                   "GPUSHMEM_VERBS_ORDER=queue, and only the switches know whether packets take "
                   "different ways");
}
