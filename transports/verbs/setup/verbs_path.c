// SPDX-License-Identifier: BSD-3-Clause
// The address vector of a queue pair. InfiniBand addresses a port of its own subnet by its LID.
// What goes to another subnet has a global route header, and in front of it the LID of whoever
// routes it, never that of the port itself: LIDs are those of one subnet.
//
// Routers that go by FLIDs make that LID a part of the port's GID: of a site-local one, fec0::/32,
// the next two bytes are a LID that is valid in all subnets, and the two after them the subnet.
#define _GNU_SOURCE
#include "transports/verbs/setup/verbs_setup.h"

enum { SUBNET_PREFIX = 8, SUBNET = 6, HOPS = 64 };

static bool is_unknown(const uint8_t gid[16])
{
    static const uint8_t none[16];
    return !memcmp(gid, none, sizeof none);
}

static bool same_subnet(const uint8_t a[16], const uint8_t b[16], int kind)
{
    if (kind == GPSH_VERBS_GID_IB_ROUTED)
        return !memcmp(a + SUBNET, b + SUBNET, SUBNET_PREFIX - SUBNET);
    return is_unknown(a) || is_unknown(b) || !memcmp(a, b, SUBNET_PREFIX);
}

// 0: nobody knows.
static uint16_t router_lid(const struct gpsh_verbs *verbs, const uint8_t gid[16])
{
    uint16_t flid = gpsh_verbs_gid_flid(gid);
    return flid ? flid : (uint16_t)verbs->env.settings->verbs_router_lid;
}

static int no_router(const struct verbs_rail *rail, const uint8_t here[16], const uint8_t there[16],
                     int pe)
{
    char own[GPSH_VERBS_ADDRESS_TEXT], other[GPSH_VERBS_ADDRESS_TEXT];
    gpsh_verbs_gid_text(here, own);
    gpsh_verbs_gid_text(there, other);
    return gpsh_fail(GPUSHMEM_ERR_UNREACHABLE,
                     "PE %d (GID %s) is in another InfiniBand subnet than %s (GID %s), and their "
                     "GIDs hold no FLID: choose ports of one subnet with GPUSHMEM_VERBS_DEVICES, "
                     "or give the router's LID as GPUSHMEM_VERBS_ROUTER_LID",
                     pe, other, rail->name, own);
}

int gpsh_verbs_path(const struct gpsh_verbs *verbs, const struct verbs_rail *rail,
                    const struct gpsh_verbs_blob_rail *remote, int pe, struct ibv_ah_attr *path)
{
    const struct gpsh_settings *settings = verbs->env.settings;
    int kind = gpsh_verbs_gid_agree(rail, remote, pe);
    if (kind < 0)
        return kind;
    const uint8_t *here = rail->gids[kind].gid.raw, *there = remote->gids[kind];
    bool routed = !rail->ethernet && !same_subnet(here, there, kind);
    path->port_num = rail->port;
    path->sl = (uint8_t)settings->verbs_service_level;
    path->dlid = routed ? router_lid(verbs, there) : remote->lid;
    if (routed && !path->dlid)
        return no_router(rail, here, there, pe);
    // Within a subnet InfiniBand needs no global route, unless a port says so.
    path->is_global = rail->ethernet || rail->needs_grh || remote->needs_grh || routed;
    if (!path->is_global)
        return 0;
    memcpy(path->grh.dgid.raw, there, sizeof path->grh.dgid.raw);
    path->grh.sgid_index = rail->gids[kind].index;
    path->grh.hop_limit = HOPS;
    path->grh.traffic_class = (uint8_t)settings->verbs_traffic_class;
    return 0;
}
