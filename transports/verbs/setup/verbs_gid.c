// SPDX-License-Identifier: BSD-3-Clause
// The GIDs of a port. Which index holds which address differs between machines, and which kinds a
// machine has, too: so each PE publishes one of each kind, and each pair takes the best that both
// have.
#define _GNU_SOURCE
#include <errno.h>
#include <net/if.h>
#include <stdio.h>

#include "transports/verbs/setup/verbs_setup.h"

enum { ROUTED_INDEX = 1, LISTED_BYTES = 8 * (GPSH_VERBS_ADDRESS_TEXT + 24) };

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

static void gid_take(struct verbs_rail *rail, const struct ibv_gid_entry *entry)
{
    int roce = !rail->ethernet ? 0 : entry->gid_type == IBV_GID_TYPE_ROCE_V2 ? 2 : 1;
    int kind = gpsh_verbs_gid_kind(entry->gid.raw, roce);
    if (rail->gid_kinds >> kind & 1)
        return; // an earlier index has it
    rail->gid_kinds |= (uint8_t)(1u << kind);
    rail->gids[kind] = (struct verbs_gid){entry->gid, (uint8_t)entry->gid_index};
}

static int take_wanted(struct verbs_rail *rail, int table_length, int wanted)
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

// Where subnets are routed by FLIDs, the subnet manager gives each port an alias that says so by
// its OUI.
static bool is_routed_alias(const union ibv_gid *gid)
{
    static const uint8_t oui[3] = {0x00, 0x14, 0x05};
    return gpsh_verbs_gid_flid(gid->raw) && !memcmp(gid->raw + 8, oui, sizeof oui);
}

// An InfiniBand port has its first one always, and needs it for routes between subnets.
static int take_infiniband(struct verbs_rail *rail, int table_length)
{
    struct ibv_gid_entry entry;
    if (table_length > ROUTED_INDEX &&
        !ibv_query_gid_ex(rail->context, rail->port, ROUTED_INDEX, &entry, 0) &&
        is_routed_alias(&entry.gid))
        gid_take(rail, &entry);
    if (ibv_query_gid_ex(rail->context, rail->port, 0, &entry, 0))
        memset(&entry, 0, sizeof entry);
    gid_take(rail, &entry);
    return 0;
}

int gpsh_verbs_gids_find(struct verbs_rail *rail, int table_length, int wanted)
{
    if (wanted >= 0)
        return take_wanted(rail, table_length, wanted);
    if (!rail->ethernet)
        return take_infiniband(rail, table_length);
    for (int i = 0; i < table_length && i <= UINT8_MAX; i++) {
        struct ibv_gid_entry entry;
        if (!ibv_query_gid_ex(rail->context, rail->port, (uint32_t)i, &entry, 0) &&
            !is_empty(&entry.gid) && entry.gid_type != IBV_GID_TYPE_IB && is_ours(&entry))
            gid_take(rail, &entry);
    }
    if (rail->gid_kinds)
        return 0;
    return gpsh_fail(
        GPUSHMEM_ERR_TRANSPORT,
        "%s has no RoCE GID of this network namespace: give its network interface an IP "
        "address and bring it up, here",
        rail->name);
}

// "10.1.0.1 (IPv4 RoCE v2), fe80::1 (link-local RoCE v1)"
static void list(const struct gpsh_verbs_blob_rail *rail, char text[LISTED_BYTES])
{
    size_t used = 0;
    for (uint32_t rest = rail->gid_kinds; rest; rest &= ~(1u << verbs_best_kind(rest))) {
        int kind = verbs_best_kind(rest);
        char address[GPSH_VERBS_ADDRESS_TEXT];
        gpsh_verbs_gid_text(rail->gids[kind], address);
        used += (size_t)snprintf(text + used, LISTED_BYTES - used, "%s%s (%s)", used ? ", " : "",
                                 address, gpsh_verbs_gid_kind_text((enum gpsh_verbs_gid_kind)kind));
    }
}

static int disagree(const struct verbs_rail *rail, const struct gpsh_verbs_blob_rail *remote,
                    int pe)
{
    char own[LISTED_BYTES], theirs[LISTED_BYTES];
    struct gpsh_verbs_blob_rail here = {.gid_kinds = rail->gid_kinds};
    for (int kind = 0; kind < GPSH_VERBS_GID_KINDS; kind++)
        memcpy(here.gids[kind], rail->gids[kind].gid.raw, sizeof here.gids[kind]);
    list(&here, own);
    list(remote, theirs);
    return gpsh_fail(GPUSHMEM_ERR_UNREACHABLE,
                     "PE %d and %s have no GIDs of the same kind, which alone reach each other: it "
                     "has %s, and %s has %s; give both network interfaces an IP address of one "
                     "family, or choose with GPUSHMEM_VERBS_GID_INDEX",
                     pe, rail->name, theirs, rail->name, own);
}

int gpsh_verbs_gid_agree(const struct verbs_rail *rail, const struct gpsh_verbs_blob_rail *remote,
                         int pe)
{
    uint32_t common = rail->gid_kinds & remote->gid_kinds;
    return common ? verbs_best_kind(common) : disagree(rail, remote, pe);
}
