// SPDX-License-Identifier: BSD-3-Clause
// Choosing the GID of a RoCE port: which index holds which address differs
// between machines, so it is looked up.
#define _GNU_SOURCE
#include <errno.h>
#include <net/if.h>

#include "transports/verbs/setup/verbs_setup.h"

static bool is_ipv4_mapped(const union ibv_gid *gid)
{
    static const uint8_t prefix[12] = {[10] = 0xff, [11] = 0xff};
    return !memcmp(gid->raw, prefix, sizeof prefix);
}

static bool is_link_local(const union ibv_gid *gid)
{
    return gid->raw[0] == 0xfe && (gid->raw[1] & 0xc0) == 0x80;
}

static bool is_empty(const union ibv_gid *gid)
{
    return !gid->global.subnet_prefix && !gid->global.interface_id;
}

// The table lists the addresses of all network namespaces; packets leave by those of our own only.
static bool is_ours(const struct ibv_gid_entry *entry)
{
    char name[IF_NAMESIZE];
    return !entry->ndev_ifindex || if_indextoname(entry->ndev_ifindex, name);
}

// RoCE v2 before v1 (which no router passes on); IPv4 before global IPv6 before link-local.
int gpsh_verbs_gid_rank(const struct ibv_gid_entry *entry)
{
    if (is_empty(&entry->gid) || entry->gid_type == IBV_GID_TYPE_IB || !is_ours(entry))
        return 0;
    int address = is_ipv4_mapped(&entry->gid) ? 3 : is_link_local(&entry->gid) ? 1 : 2;
    return address + (entry->gid_type == IBV_GID_TYPE_ROCE_V2 ? 3 : 0);
}

static void gid_take(struct verbs_rail *rail, const struct ibv_gid_entry *entry)
{
    rail->gid_index = (int)entry->gid_index;
    rail->gid = entry->gid;
    rail->gid_type = rail->ethernet ? entry->gid_type : 0;
}

static int choose_wanted(struct verbs_rail *rail, int table_length, int wanted)
{
    struct ibv_gid_entry entry;
    if (wanted >= table_length ||
        ibv_query_gid_ex(rail->context, rail->port, (uint32_t)wanted, &entry, 0) ||
        is_empty(&entry.gid))
        return gpsh_fail(GPUSHMEM_ERR_TRANSPORT,
                         "%s has no GID at index %d (its table has %d): see `ibv_devinfo -v`, or "
                         "leave GPUSHMEM_VERBS_GID_INDEX at -1",
                         rail->name, wanted, table_length);
    gid_take(rail, &entry);
    return 0;
}

// An InfiniBand port has its first one always, and needs it for routes between subnets.
static int choose_infiniband(struct verbs_rail *rail)
{
    struct ibv_gid_entry entry;
    if (!ibv_query_gid_ex(rail->context, rail->port, 0, &entry, 0))
        gid_take(rail, &entry);
    return 0;
}

int gpsh_verbs_gid_choose(struct verbs_rail *rail, int table_length, int wanted)
{
    if (wanted >= 0)
        return choose_wanted(rail, table_length, wanted);
    if (!rail->ethernet)
        return choose_infiniband(rail);
    int best = 0;
    for (int i = 0; i < table_length; i++) {
        struct ibv_gid_entry entry;
        if (ibv_query_gid_ex(rail->context, rail->port, (uint32_t)i, &entry, 0))
            continue; // an unused index
        int rank = gpsh_verbs_gid_rank(&entry);
        if (rank <= best)
            continue;
        best = rank;
        gid_take(rail, &entry);
    }
    if (best)
        return 0;
    return gpsh_fail(
        GPUSHMEM_ERR_TRANSPORT,
        "%s has no RoCE GID of this network namespace: give its network interface an IP "
        "address and bring it up, here",
        rail->name);
}
