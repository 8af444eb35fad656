// SPDX-License-Identifier: BSD-3-Clause
// Finding and opening the NIC ports that become this PE's rails.
#define _GNU_SOURCE // sched_getcpu
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#include "core/nic_choice.h"
#include "core/topology.h"
#include "transports/verbs/setup/verbs_setup.h"

enum { MOST_PORTS = 64, LISTED_BYTES = 600, SOFT_ROCE_VENDOR = 0xffffff };

// One port of the machine that could be used.
struct port {
    struct ibv_device *device;
    uint8_t number;
    char pci[32]; // "" for a software device
};

struct survey {
    struct gpsh_nic_filter filter;
    struct gpsh_nic_candidate candidates[MOST_PORTS];
    struct port ports[MOST_PORTS];
    int n;
    int gid_index;               // of GPUSHMEM_VERBS_GID_INDEX
    char seen[LISTED_BYTES];     // every device of the machine
    char rejected[LISTED_BYTES]; // why the ones looked at cannot be used
};

static void append(char *list, const char *format, const char *name, const char *why)
{
    size_t used = strlen(list);
    if (used)
        used += (size_t)snprintf(list + used, LISTED_BYTES - used, ", ");
    if (used < LISTED_BYTES)
        snprintf(list + used, LISTED_BYTES - used, format, name, why);
}

// A RoCE port without an address cannot be used; another one may.
static bool has_gid(struct survey *survey, struct ibv_context *context, const struct port *port,
                    const struct ibv_port_attr *attr, const char *name)
{
    struct verbs_rail rail = {.context = context, .port = port->number, .ethernet = true};
    snprintf(rail.name, sizeof rail.name, "%s", name);
    if (attr->link_layer != IBV_LINK_LAYER_ETHERNET ||
        !gpsh_verbs_gids_find(&rail, attr->gid_tbl_len, survey->gid_index))
        return true;
    append(survey->rejected, "%s%s", gpsh_last_error(), "");
    gpsh_clear_error();
    return false;
}

static void survey_port(struct survey *survey, struct ibv_context *context, const struct port *port)
{
    const char *device = ibv_get_device_name(port->device);
    int rank = gpsh_nic_filter_rank(&survey->filter, device, port->number);
    char name[VERBS_NAME_BYTES];
    struct ibv_port_attr attr;
    snprintf(name, sizeof name, "%s:%u", device, port->number);
    if (rank < 0 || survey->n == MOST_PORTS)
        return;
    if (ibv_query_port(context, port->number, &attr)) {
        append(survey->rejected, "%s cannot be queried%s", name, "");
        return;
    }
    if (attr.state != IBV_PORT_ACTIVE) {
        append(survey->rejected, "%s is %s, not active", name, ibv_port_state_str(attr.state));
        return;
    }
    if (!has_gid(survey, context, port, &attr, name))
        return;
    survey->ports[survey->n] = *port;
    survey->candidates[survey->n] =
        (struct gpsh_nic_candidate){.rank = rank,
                                    .distance = GPSH_DISTANCE_UNKNOWN,
                                    .index = survey->n,
                                    .rate = gpsh_nic_rate(attr.active_speed, attr.active_width),
                                    .ethernet = attr.link_layer == IBV_LINK_LAYER_ETHERNET};
    survey->n++;
}

static void survey_device(struct survey *survey, struct ibv_device *device)
{
    const char *name = ibv_get_device_name(device);
    struct port port = {.device = device};
    struct ibv_device_attr attr;
    append(survey->seen, "%s%s", name, "");
    struct ibv_context *context = ibv_open_device(device);
    if (!context) {
        append(survey->rejected, "%s cannot be opened (%s)", name, strerror(errno));
        return;
    }
    gpsh_topology_pci_of(device->ibdev_path, port.pci, sizeof port.pci);
    if (ibv_query_device(context, &attr))
        append(survey->rejected, "%s cannot be queried%s", name, "");
    else
        for (port.number = 1; port.number <= attr.phys_port_cnt; port.number++)
            survey_port(survey, context, &port);
    ibv_close_device(context);
}

static bool is_wanted(const struct survey *survey, const struct ibv_device *device)
{
    const struct gpsh_nic_filter *filter = &survey->filter;
    const char *name = ibv_get_device_name((struct ibv_device *)device);
    if (device->transport_type != IBV_TRANSPORT_IB)
        return false;
    for (int i = 0; i < filter->n; i++)
        if (!strcmp(filter->items[i].device, name))
            return !filter->exclude || filter->items[i].port;
    return !filter->n || filter->exclude;
}

// The topology is only loaded where there is a choice to make: it takes tens of milliseconds.
static void measure(const struct gpsh_transport_env *env, struct survey *survey)
{
    // A choice of ports, or of how a GPU's memory is reached.
    bool far_matters = env->near_pci && env->settings->gpudirect_distance - 1 != GPSH_DISTANCE_SYS;
    bool choice = false;
    for (int i = 0; i < survey->n; i++)
        choice |= (survey->n > 1 || far_matters) && survey->ports[i].pci[0];
    struct gpsh_topology *topology = NULL;
    if (!choice || gpsh_topology_open(NULL, &topology))
        return;
    for (int i = 0; i < survey->n; i++) {
        const char *pci = survey->ports[i].pci;
        survey->candidates[i].distance =
            env->near_pci ? gpsh_topology_between(topology, env->near_pci, pci)
                          : gpsh_topology_from_cpu(topology, sched_getcpu(), pci);
    }
    gpsh_topology_close(topology);
}

// The check of the doctor that says more about ports that were rejected.
static const char *check_of(const char *rejected)
{
    return strstr(rejected, "GID") ? "gid" : strstr(rejected, "opened") ? "uverbs" : "port";
}

static int nothing_usable(const struct survey *survey, const char *setting)
{
    if (!survey->seen[0])
        return gpsh_fail(GPUSHMEM_ERR_TRANSPORT,
                         "verbs: no RDMA device on this machine (see `ibv_devices`; `gpushmem "
                         "doctor` explains it under verbs)");
    if (survey->rejected[0])
        return gpsh_fail(GPUSHMEM_ERR_TRANSPORT,
                         "verbs: no usable RDMA port: %.300s; `gpushmem doctor` explains it under "
                         "%s",
                         survey->rejected, check_of(survey->rejected));
    return gpsh_fail(
        GPUSHMEM_ERR_TRANSPORT,
        "verbs: GPUSHMEM_VERBS_DEVICES=%.200s leaves no port of this machine's devices (%s)",
        setting, survey->seen);
}

// Names in GPUSHMEM_VERBS_DEVICES that no device has: misspelt, or meant for other nodes.
static void warn_of_strangers(const struct survey *survey, struct ibv_device *const *devices, int n)
{
    for (int i = 0; i < survey->filter.n; i++) {
        bool found = false;
        for (int d = 0; d < n && !found; d++)
            found = !strcmp(survey->filter.items[i].device, ibv_get_device_name(devices[d]));
        if (!found)
            GPSH_LOG(WARN, "verbs",
                     "GPUSHMEM_VERBS_DEVICES names %s, which this machine does not have (%s)",
                     survey->filter.items[i].device, survey->seen);
    }
}

static void set_limits(const struct gpsh_settings *settings, const struct ibv_device_attr *device,
                       const struct ibv_port_attr *port, struct verbs_rail *rail)
{
    int64_t in = device->max_qp_rd_atom, out = device->max_qp_init_rd_atom;
    rail->ethernet = port->link_layer == IBV_LINK_LAYER_ETHERNET;
    rail->needs_grh = port->flags & IBV_QPF_GRH_REQUIRED;
    rail->lid = port->lid;
    rail->mtu = port->active_mtu;
    if (settings->verbs_mtu && (enum ibv_mtu)settings->verbs_mtu < rail->mtu)
        rail->mtu =
            (enum ibv_mtu)
                settings->verbs_mtu; // the words of the setting are in the order of the enum
    rail->max_message = settings->verbs_max_message < port->max_msg_sz ? settings->verbs_max_message
                                                                       : port->max_msg_sz;
    rail->max_cqe = device->max_cqe;
    rail->max_qp_wr = device->max_qp_wr;
    rail->atomics = device->atomic_cap == IBV_ATOMIC_NONE  ? GPSH_VERBS_ATOMICS_NONE
                    : device->atomic_cap == IBV_ATOMIC_HCA ? GPSH_VERBS_ATOMICS_OWN
                                                           : GPSH_VERBS_ATOMICS_ALL;
    rail->reads_in =
        (uint8_t)(in < settings->verbs_rd_atomic ? (in < 1 ? 1 : in) : settings->verbs_rd_atomic);
    rail->reads_out = (uint8_t)(out < settings->verbs_rd_atomic ? (out < 1 ? 1 : out)
                                                                : settings->verbs_rd_atomic);
}

static int make_nonblocking(const struct verbs_rail *rail)
{
    int flags = fcntl(rail->context->async_fd, F_GETFL);
    if (flags >= 0 && fcntl(rail->context->async_fd, F_SETFL, flags | O_NONBLOCK) == 0)
        return 0;
    return gpsh_fail(GPUSHMEM_ERR_SYSTEM,
                     "%s: its event descriptor cannot be made non-blocking (%s)", rail->name,
                     strerror(errno));
}

static int seed_make(struct verbs_rail *rail)
{
    if (getrandom(&rail->psn_seed, sizeof rail->psn_seed, 0) == sizeof rail->psn_seed)
        return 0;
    return gpsh_fail(GPUSHMEM_ERR_SYSTEM, "no random number from the kernel (%s)", strerror(errno));
}

static int open_rail(const struct gpsh_settings *settings, const struct port *port,
                     struct verbs_rail *rail)
{
    struct ibv_device_attr device_attr;
    struct ibv_port_attr port_attr;
    snprintf(rail->name, sizeof rail->name, "%s:%u", ibv_get_device_name(port->device),
             port->number);
    rail->port = port->number;
    rail->context = ibv_open_device(port->device);
    if (!rail->context)
        return gpsh_fail(GPUSHMEM_ERR_TRANSPORT,
                         "%s cannot be opened (%s): may this user open /dev/infiniband/uverbs*? "
                         "`gpushmem doctor` explains it under uverbs",
                         rail->name, strerror(errno));
    rail->pd = ibv_alloc_pd(rail->context);
    if (!rail->pd)
        return gpsh_fail(GPUSHMEM_ERR_TRANSPORT, "%s gives no protection domain (%s)", rail->name,
                         strerror(errno));
    if (ibv_query_device(rail->context, &device_attr) ||
        ibv_query_port(rail->context, rail->port, &port_attr))
        return gpsh_fail(GPUSHMEM_ERR_TRANSPORT, "%s cannot be queried (%s)", rail->name,
                         strerror(errno));
    set_limits(settings, &device_attr, &port_attr, rail);
    if (settings->verbs_pkey_index && settings->verbs_pkey_index >= port_attr.pkey_tbl_len)
        return gpsh_fail(
            GPUSHMEM_ERR_SETTING,
            "GPUSHMEM_VERBS_PKEY_INDEX=%lld: the partition key table of %s ends at index %u",
            (long long)settings->verbs_pkey_index, rail->name, port_attr.pkey_tbl_len - 1u);
    int status = make_nonblocking(rail);
    if (!status)
        status = gpsh_verbs_gids_find(rail, port_attr.gid_tbl_len, (int)settings->verbs_gid_index);
    if (!status)
        status = seed_make(rail);
    bool soft_roce = !port->pci[0] && device_attr.vendor_id == SOFT_ROCE_VENDOR;
    if (!status)
        rail->in_order = gpsh_verbs_in_order(settings, rail, soft_roce);
    return status;
}

static int distance_of(const struct survey *survey, int port)
{
    for (int i = 0; i < survey->n; i++) // the choice has sorted them
        if (survey->candidates[i].index == port)
            return survey->candidates[i].distance;
    return GPSH_DISTANCE_UNKNOWN;
}

static int open_chosen(struct gpsh_verbs *verbs, struct survey *survey)
{
    const struct gpsh_settings *settings = verbs->env.settings;
    int chosen[GPSH_VERBS_MAX_RAILS], status = 0;
    bool listed = survey->filter.n && !survey->filter.exclude;
    int n = gpsh_nic_choose(survey->candidates, survey->n, listed, (int)settings->verbs_rails,
                            verbs->env.node_pe, chosen);
    for (int i = 0; i < n && !status; i++) {
        // counted first: close() then cleans up a half-opened one
        verbs->n_rails = (uint8_t)(i + 1);
        verbs->rails[i].distance = distance_of(survey, chosen[i]);
        status = open_rail(settings, &survey->ports[chosen[i]], &verbs->rails[i]);
    }
    if (!status && n < settings->verbs_rails)
        GPSH_LOG(WARN, "verbs", "GPUSHMEM_VERBS_RAILS=%lld, but only %d ports can be used",
                 (long long)settings->verbs_rails, n);
    return status;
}

int gpsh_verbs_rails_open(struct gpsh_verbs *verbs)
{
    int n = 0;
    struct survey *survey = calloc(1, sizeof *survey);
    if (!survey)
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory for the list of RDMA devices");
    survey->gid_index = (int)verbs->env.settings->verbs_gid_index;
    struct ibv_device **devices = NULL;
    int status = gpsh_nic_filter_parse(verbs->env.settings->verbs_devices, &survey->filter);
    // A child's copy-on-write must not take pinned pages from this process. Kernels since 5.12 see
    // to that themselves; older ones keep registered memory out of the child.
    if (!status && ibv_fork_init())
        GPSH_LOG(INFO, "verbs",
                 "forking is unsafe with this RDMA stack: after a fork the child "
                 "may only exec");
    if (!status)
        devices = ibv_get_device_list(&n);
    for (int i = 0; devices && i < n; i++) {
        if (is_wanted(survey, devices[i]))
            survey_device(survey, devices[i]);
        else
            append(survey->seen, "%s%s", ibv_get_device_name(devices[i]), "");
    }
    if (!status && !survey->n)
        status = nothing_usable(survey, verbs->env.settings->verbs_devices);
    if (!status) {
        warn_of_strangers(survey, devices, n);
        measure(&verbs->env, survey);
        status = open_chosen(verbs, survey);
    }
    if (devices)
        ibv_free_device_list(devices);
    free(survey);
    return status;
}

void gpsh_verbs_rails_close(struct gpsh_verbs *verbs)
{
    for (int i = 0; i < verbs->n_rails; i++) {
        struct verbs_rail *rail = &verbs->rails[i];
        for (int r = 0; r < GPSH_VERBS_REGIONS; r++)
            if (rail->mrs[r])
                ibv_dereg_mr(rail->mrs[r]);
        gpsh_verbs_datagrams_close(rail);
        if (rail->pd)
            ibv_dealloc_pd(rail->pd);
        if (rail->context)
            ibv_close_device(rail->context);
    }
    verbs->n_rails = 0;
}
