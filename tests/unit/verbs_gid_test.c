// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE
// By which of their addresses two PEs reach each other: GIDs of RoCE, LIDs and routes of
// InfiniBand.
#include "verbs_opening.h"

TestSuite(verbs_gid, .init = reset_pair, .fini = close_all);

Test(verbs_gid, gid__default__ipv4_before_link_local)
{
    fake_gid(2, IBV_GID_TYPE_ROCE_V1, "10.1.0.1");
    fake_gid(3, IBV_GID_TYPE_ROCE_V2, "2001:db8::1");
    cr_assert_eq(fake_pair_open(&pair), 0);
    cr_assert_eq(fake.rtr.ah_attr.grh.sgid_index, 1);
}

Test(verbs_gid, gid__no_ipv4__global_ipv6)
{
    fake_gid(1, IBV_GID_TYPE_ROCE_V1, "10.1.0.1");
    fake_gid(3, IBV_GID_TYPE_ROCE_V2, "2001:db8::1");
    cr_assert_eq(fake_pair_open(&pair), 0);
    cr_assert_eq(fake.rtr.ah_attr.grh.sgid_index, 3);
}

Test(verbs_gid, gid__of_another_network_namespace__not_taken)
{
    fake.gids[1].ndev_ifindex = 0x7ffffff0;
    cr_assert_eq(fake_pair_open(&pair), 0);
    cr_assert_eq(fake.rtr.ah_attr.grh.sgid_index, 0);
}

static void link_local_only(struct gpsh_verbs_blob_rail *rail)
{
    static const uint8_t gid[16] = {0xfe, 0x80, [15] = 2};
    rail->gid_kinds = 1 << GPSH_VERBS_GID_V2_LOCAL;
    memcpy(rail->gids[GPSH_VERBS_GID_V2_LOCAL], gid, sizeof gid);
}

static void of_version_1(struct gpsh_verbs_blob_rail *rail)
{
    rail->gid_kinds = 1 << GPSH_VERBS_GID_V1_LOCAL;
    memcpy(rail->gids[GPSH_VERBS_GID_V1_LOCAL], rail->gids[GPSH_VERBS_GID_V2_LOCAL], 16);
}

// The other PE has no IPv4 address: both go by the best that both have.
Test(verbs_gid, gid__the_peer_has_no_ipv4__link_local_on_both_sides)
{
    pair.peer_rail = link_local_only;
    cr_assert_eq(fake_pair_open(&pair), 0, "%s", gpsh_last_error());
    cr_assert_eq(fake.rtr.ah_attr.grh.sgid_index, 0);
    cr_assert_eq(fake.rtr.ah_attr.grh.dgid.raw[0], 0xfe);
    cr_assert_eq(fake.rtr.ah_attr.grh.dgid.raw[15], 2);
    char line[160];
    gpsh_verbs_ops.explain(pair.transport, 1, line, sizeof line);
    cr_assert(strstr(line, "fake0:1 fe80::1 -> fe80::2"), "%s", line);
}

Test(verbs_gid, gid__the_same_kind_twice__the_first)
{
    fake_gid(2, IBV_GID_TYPE_ROCE_V2, "10.2.0.1");
    cr_assert_eq(fake_pair_open(&pair), 0);
    cr_assert_eq(fake.rtr.ah_attr.grh.sgid_index, 1);
}

Test(verbs_gid, gid__wanted_index__no_other)
{
    pair.settings[0] = "GPUSHMEM_VERBS_GID_INDEX=0";
    cr_assert_eq(fake_pair_open(&pair), 0);
    cr_assert_eq(fake.rtr.ah_attr.grh.sgid_index, 0);
    cr_assert_eq(rail(0)->gid_kinds, 1 << GPSH_VERBS_GID_V2_LOCAL);
}

Test(verbs_gid, connect__no_kind_of_gid_in_common__lists_those_of_both)
{
    pair.peer_rail = of_version_1;
    refused(GPUSHMEM_ERR_UNREACHABLE,
            "it has fe80::1 (link-local RoCE v1), and fake0:1 has 10.1.0.1 (IPv4 RoCE v2), "
            "fe80::1 (link-local RoCE v2)");
}

Test(verbs_gid, connect__wanted_index_is_of_a_kind_the_peer_lacks__says_so)
{
    pair.settings[0] = "GPUSHMEM_VERBS_GID_INDEX=1";
    pair.peer_rail = link_local_only;
    refused(GPUSHMEM_ERR_UNREACHABLE, "GPUSHMEM_VERBS_GID_INDEX");
}

Test(verbs_gid, infiniband__port_wants_a_global_route__gets_one)
{
    fake.port[0].link_layer = IBV_LINK_LAYER_INFINIBAND;
    fake.port[0].flags = IBV_QPF_GRH_REQUIRED;
    cr_assert_eq(fake_pair_open(&pair), 0);
    cr_assert_eq(fake.rtr.ah_attr.is_global, 1);
    cr_assert_eq(fake.rtr.ah_attr.grh.dgid.raw[0], 0xfe);
}

Test(verbs_gid, infiniband__reached_by_lid)
{
    fake.port[0].link_layer = IBV_LINK_LAYER_INFINIBAND;
    cr_assert_eq(fake_pair_open(&pair), 0);
    cr_assert_eq(fake.rtr.ah_attr.dlid, 7);
    cr_assert_eq(fake.rtr.ah_attr.is_global, 0);
}

static void open_infiniband(const char *first_gid, const char *second_gid)
{
    fake.port[0].link_layer = IBV_LINK_LAYER_INFINIBAND;
    fake_gid(0, IBV_GID_TYPE_IB, first_gid);
    if (second_gid)
        fake_gid(1, IBV_GID_TYPE_IB, second_gid);
    else
        fake.gids[1].gid_type = (uint32_t)-1;
}

static void in_subnet(struct gpsh_verbs_blob_rail *rail, uint16_t flid, uint8_t subnet)
{
    int kind = flid ? GPSH_VERBS_GID_IB_ROUTED : GPSH_VERBS_GID_IB;
    uint8_t *gid = rail->gids[kind];
    rail->gid_kinds |= (uint8_t)(1 << kind);
    rail->lid = 99;
    gid[4] = (uint8_t)(flid >> 8);
    gid[5] = (uint8_t)flid;
    gid[7] = subnet;
}

static void in_another_subnet(struct gpsh_verbs_blob_rail *rail)
{
    in_subnet(rail, 0, 9);
}

static void in_another_flid_subnet(struct gpsh_verbs_blob_rail *rail)
{
    in_subnet(rail, 0x1234, 9);
}

static void behind_another_flid(struct gpsh_verbs_blob_rail *rail)
{
    in_subnet(rail, 0x1234, 1);
}

Test(verbs_gid, infiniband__another_subnet__refused_by_name)
{
    open_infiniband("fe80::1", NULL);
    pair.peer_rail = in_another_subnet;
    refused(GPUSHMEM_ERR_UNREACHABLE, "PE 1 (GID fe80:0:0:9::1) is in another InfiniBand subnet "
                                      "than fake0:1 (GID fe80::1)");
    cr_assert(strstr(gpsh_last_error(), "GPUSHMEM_VERBS_ROUTER_LID"), "%s", gpsh_last_error());
}

Test(verbs_gid, infiniband__another_subnet_and_a_router__its_lid)
{
    open_infiniband("fe80::1", NULL);
    pair.peer_rail = in_another_subnet;
    pair.settings[0] = "GPUSHMEM_VERBS_ROUTER_LID=77";
    cr_assert_eq(fake_pair_open(&pair), 0, "%s", gpsh_last_error());
    cr_assert_eq(fake.rtr.ah_attr.dlid, 77);
    cr_assert_eq(fake.rtr.ah_attr.is_global, 1);
    cr_assert_eq(fake.rtr.ah_attr.grh.dgid.raw[7], 9);
}

// Not by the port's own LID, which means another port here.
Test(verbs_gid, infiniband__another_subnet_by_flids__the_peers_flid)
{
    open_infiniband("fe80::1", "fec0:0:55:1:14:500::7");
    pair.peer_rail = in_another_flid_subnet;
    cr_assert_eq(fake_pair_open(&pair), 0, "%s", gpsh_last_error());
    cr_assert_eq(fake.rtr.ah_attr.dlid, 0x1234);
    cr_assert_eq(fake.rtr.ah_attr.is_global, 1);
    cr_assert_eq(fake.rtr.ah_attr.grh.sgid_index, 1);
    cr_assert_eq(fake.rtr.ah_attr.grh.dgid.raw[5], 0x34);
}

Test(verbs_gid, infiniband__same_subnet_with_another_flid__its_lid_and_no_global_route)
{
    open_infiniband("fe80::1", "fec0:0:55:1:14:500::7");
    pair.peer_rail = behind_another_flid;
    cr_assert_eq(fake_pair_open(&pair), 0, "%s", gpsh_last_error());
    cr_assert_eq(fake.rtr.ah_attr.dlid, 99);
    cr_assert_eq(fake.rtr.ah_attr.is_global, 0);
}

Test(verbs_gid, infiniband__second_gid_is_another_alias__not_taken_for_a_routed_one)
{
    open_infiniband("fe80::1", "fec0:0:55:1::7");
    cr_assert_eq(fake_pair_open(&pair), 0);
    cr_assert_eq(rail(0)->gid_kinds, 1 << GPSH_VERBS_GID_IB);
}
