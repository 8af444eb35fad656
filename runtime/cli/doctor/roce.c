// SPDX-License-Identifier: BSD-3-Clause
// Checks of the network behind the ports: RoCE needs more than a cable.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor/check.h"

enum {
    ROCE_MTU = 4200, // 4,096 bytes and all headers
    GIDS_MOST = 256,
    FEW_ERRORS = 100,
    PER_PACKETS = 1000000,
};

GPSH_PORT_CHECK_FUNCTION(mtu)
{
    int64_t mtu;
    if (!port->interface[0] ||
        gpsh_host_number(host, &mtu, "sys/class/net/%s/mtu", port->interface))
        gpsh_found(finding, GPSH_CANNOT_TELL, "the MTU of %s's interface cannot be read",
                   port->name);
    else if (mtu < ROCE_MTU) {
        gpsh_found(finding, GPSH_PROBLEM, "%s is on %s, whose MTU is %lld", port->name,
                   port->interface, (long long)mtu);
        gpsh_mend(finding, "sudo ip link set dev %s mtu 9000", port->interface);
    } else
        gpsh_found(finding, GPSH_OK, "%s has %lld", port->interface, (long long)mtu);
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

GPSH_PORT_CHECK_FUNCTION(gid)
{
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

GPSH_PORT_CHECK_FUNCTION(namespace)
{
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

GPSH_PORT_CHECK_FUNCTION(pfc)
{
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
        int64_t value = 0;
        if (gpsh_host_number(host, &value, "sys/class/net/%s/ecn/%s/enable/%d", interface, side,
                             priority))
            all = false;
        on |= value != 0;
    }
    return on ? 1 : all ? 0 : -1;
}

static int64_t counter(const struct gpsh_host *host, const struct gpsh_port *port,
                       const char *folder, const char *name)
{
    int64_t value;
    return gpsh_host_number(host, &value, "%s/%s/%s", port->folder, folder, name) ? -1 : value;
}

GPSH_PORT_CHECK_FUNCTION(ecn)
{
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
    for (int i = 0; i < host->ports.n; i++) {
        const struct gpsh_port *port = &host->ports.port[i];
        if (!port->active)
            continue;
        int64_t packets = counter(host, port, "counters", "port_rcv_packets"),
                lost = counter(host, port, "hw_counters", "packet_seq_err"),
                timeouts = counter(host, port, "hw_counters", "local_ack_timeout_err");
        int64_t errors = (lost > 0 ? lost : 0) + (timeouts > 0 ? timeouts : 0);
        if (lost < 0 && timeouts < 0)
            gpsh_found(finding, GPSH_CANNOT_TELL, "%s does not count lost packets", port->name);
        else if (errors > FEW_ERRORS && errors > packets / PER_PACKETS)
            gpsh_found(finding, GPSH_PROBLEM,
                       "%s: %lld gaps and %lld timeouts since the driver was loaded", port->name,
                       (long long)(lost > 0 ? lost : 0), (long long)(timeouts > 0 ? timeouts : 0));
        else
            gpsh_found(finding, GPSH_OK, "%s: %lld", port->name, (long long)errors);
    }
}

GPSH_CHECK_FUNCTION(routing)
{
    char order[32];
    int64_t overtaken = 0;
    gpsh_environment_setting(host, "GPUSHMEM_VERBS_ORDER", order, sizeof order);
    for (int i = 0; i < host->ports.n; i++) {
        int64_t n = counter(host, &host->ports.port[i], "hw_counters", "out_of_sequence");
        overtaken += n > 0 ? n : 0;
    }
    if (strcmp(order, "queue") != 0)
        gpsh_found(finding, GPSH_OK,
                   "GPUSHMEM_VERBS_ORDER=%s is safe with it (%lld packets came "
                   "out of turn)",
                   order[0] ? order : "auto", (long long)overtaken);
    else if (overtaken)
        gpsh_found(finding, GPSH_PROBLEM,
                   "%lld packets came out of turn, and GPUSHMEM_VERBS_ORDER=queue relies on none "
                   "doing so",
                   (long long)overtaken);
    else
        gpsh_found(finding, GPSH_CANNOT_TELL,
                   "GPUSHMEM_VERBS_ORDER=queue, and only the switches know whether packets take "
                   "different ways");
}
