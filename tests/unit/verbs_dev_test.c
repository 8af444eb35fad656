// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE
// Opening and connecting: which port, which GID, which registration, and one clear sentence when
// there is none.
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/error.h"
#include "core/nic_choice.h"
#include "core/scratch.h"
#include "tests/fakes/fake_pair.h"
#include "transports/verbs/setup/verbs_setup.h"

static struct fake_pair pair;

static void reset(void)
{
    fake_reset();
    memset(&pair, 0, sizeof pair);
}

static void close_all(void)
{
    fake_pair_close(&pair);
    cr_assert_eq(fake.live_objects, 0, "%d verbs objects were not destroyed", fake.live_objects);
}

TestSuite(verbs_dev, .init = reset, .fini = close_all);

static void refused(int code, const char *words)
{
    cr_assert_eq(fake_pair_open(&pair), code, "%s", gpsh_last_error());
    cr_assert(strstr(gpsh_last_error(), words), "%s", gpsh_last_error());
}

static const struct verbs_rail *rail(int i)
{
    return &((struct gpsh_verbs *)pair.transport)->rails[i];
}

Test(verbs_dev, open__no_device__says_so)
{
    fake.n_devices = 0;
    refused(GPUSHMEM_ERR_TRANSPORT, "no RDMA device");
}

Test(verbs_dev, open__port_down__says_which)
{
    fake.port[0].state = IBV_PORT_DOWN;
    refused(GPUSHMEM_ERR_TRANSPORT, "fake0:1 is down, not active");
}

Test(verbs_dev, open__no_atomics__serves_puts_and_refuses_atomics)
{
    fake.atomic_cap = IBV_ATOMIC_NONE;
    cr_assert_eq(fake_pair_open(&pair), 0, "%s", gpsh_last_error());
    struct gpsh_op put = fake_put(pair.heap, 0, 8), add = fake_amo(GPSH_AMO_ADD, 8, 0, 1, 0, NULL);
    cr_assert_geq(fake_post_op(&pair, &put), 0);
    cr_assert_eq(fake_post_op(&pair, &add), GPUSHMEM_ERR_UNSUPPORTED);
    cr_assert(strstr(gpsh_last_error(), "has no atomics"), "%s", gpsh_last_error());
    fake_settle(&pair);
}

Test(verbs_dev, open__listed_device_is_not_there__names_those_that_are)
{
    pair.settings[0] = "GPUSHMEM_VERBS_DEVICES=mlx5_7";
    refused(GPUSHMEM_ERR_TRANSPORT, "mlx5_7 leaves no port of this machine's devices (fake0)");
}

Test(verbs_dev, open__no_gid__says_so)
{
    fake.gids[0].gid_type = fake.gids[1].gid_type = (uint32_t)-1;
    refused(GPUSHMEM_ERR_TRANSPORT, "no RoCE GID");
}

Test(verbs_dev, open__wanted_gid_is_not_there__says_so)
{
    pair.settings[0] = "GPUSHMEM_VERBS_GID_INDEX=5";
    refused(GPUSHMEM_ERR_TRANSPORT, "no GID at index 5");
}

Test(verbs_dev, open__cannot_register__says_how_to_help)
{
    fake.register_error = ENOMEM;
    refused(GPUSHMEM_ERR_TRANSPORT, "cannot register");
}

Test(verbs_dev, open__queue_pair_refused__says_how_to_help)
{
    fake.qp_error = ENOMEM;
    refused(GPUSHMEM_ERR_TRANSPORT, "`ulimit -l`, or lower GPUSHMEM_CONTEXTS");
}

Test(verbs_dev, open__completion_queue_refused__says_how_to_help)
{
    fake.cq_error = ENOMEM;
    refused(GPUSHMEM_ERR_TRANSPORT, "completion queue");
}

Test(verbs_dev, open__pkey_outside_the_table__is_a_setting_error)
{
    pair.settings[0] = "GPUSHMEM_VERBS_PKEY_INDEX=4";
    refused(GPUSHMEM_ERR_SETTING, "ends at index 3");
}

Test(verbs_dev, connect__no_route__names_both_ends)
{
    fake.rtr_error = ETIMEDOUT;
    refused(GPUSHMEM_ERR_TRANSPORT, "cannot reach PE 0 at 10.1.0.1");
}

Test(verbs_dev, gid__default__ipv4_before_link_local)
{
    fake_gid(2, IBV_GID_TYPE_ROCE_V1, "10.1.0.1");
    fake_gid(3, IBV_GID_TYPE_ROCE_V2, "2001:db8::1");
    cr_assert_eq(fake_pair_open(&pair), 0);
    cr_assert_eq(fake.rtr.ah_attr.grh.sgid_index, 1);
}

Test(verbs_dev, gid__no_ipv4__global_ipv6)
{
    fake_gid(1, IBV_GID_TYPE_ROCE_V1, "10.1.0.1");
    fake_gid(3, IBV_GID_TYPE_ROCE_V2, "2001:db8::1");
    cr_assert_eq(fake_pair_open(&pair), 0);
    cr_assert_eq(fake.rtr.ah_attr.grh.sgid_index, 3);
}

Test(verbs_dev, gid__of_another_network_namespace__not_taken)
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
Test(verbs_dev, gid__the_peer_has_no_ipv4__link_local_on_both_sides)
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

Test(verbs_dev, gid__the_same_kind_twice__the_first)
{
    fake_gid(2, IBV_GID_TYPE_ROCE_V2, "10.2.0.1");
    cr_assert_eq(fake_pair_open(&pair), 0);
    cr_assert_eq(fake.rtr.ah_attr.grh.sgid_index, 1);
}

Test(verbs_dev, gid__wanted_index__no_other)
{
    pair.settings[0] = "GPUSHMEM_VERBS_GID_INDEX=0";
    cr_assert_eq(fake_pair_open(&pair), 0);
    cr_assert_eq(fake.rtr.ah_attr.grh.sgid_index, 0);
    cr_assert_eq(rail(0)->gid_kinds, 1 << GPSH_VERBS_GID_V2_LOCAL);
}

Test(verbs_dev, connect__no_kind_of_gid_in_common__lists_those_of_both)
{
    pair.peer_rail = of_version_1;
    refused(GPUSHMEM_ERR_UNREACHABLE,
            "it has fe80::1 (link-local RoCE v1), and fake0:1 has 10.1.0.1 (IPv4 RoCE v2), "
            "fe80::1 (link-local RoCE v2)");
}

Test(verbs_dev, connect__wanted_index_is_of_a_kind_the_peer_lacks__says_so)
{
    pair.settings[0] = "GPUSHMEM_VERBS_GID_INDEX=1";
    pair.peer_rail = link_local_only;
    refused(GPUSHMEM_ERR_UNREACHABLE, "GPUSHMEM_VERBS_GID_INDEX");
}

Test(verbs_dev, connect__packet_numbers__are_not_those_of_the_last_job)
{
    cr_assert_eq(fake_pair_open(&pair), 0);
    uint32_t first = fake.rts.sq_psn;
    fake_pair_close(&pair);
    fake_reset();
    cr_assert_eq(fake_pair_open(&pair), 0);
    cr_assert_neq(fake.rts.sq_psn, first, "chance of 1 in 16,777,216");
    cr_assert_leq(fake.rts.sq_psn, 0xffffff);
}

Test(verbs_dev, infiniband__port_wants_a_global_route__gets_one)
{
    fake.port[0].link_layer = IBV_LINK_LAYER_INFINIBAND;
    fake.port[0].flags = IBV_QPF_GRH_REQUIRED;
    cr_assert_eq(fake_pair_open(&pair), 0);
    cr_assert_eq(fake.rtr.ah_attr.is_global, 1);
    cr_assert_eq(fake.rtr.ah_attr.grh.dgid.raw[0], 0xfe);
}

Test(verbs_dev, fork__asked_for_before_the_devices)
{
    cr_assert_eq(fake_pair_open(&pair), 0);
    cr_assert_eq(fake.fork_inits, 1);
}

Test(verbs_dev, infiniband__reached_by_lid)
{
    fake.port[0].link_layer = IBV_LINK_LAYER_INFINIBAND;
    cr_assert_eq(fake_pair_open(&pair), 0);
    cr_assert_eq(fake.rtr.ah_attr.dlid, 7);
    cr_assert_eq(fake.rtr.ah_attr.is_global, 0);
}

Test(verbs_dev, connect__settings__reach_the_queue_pair)
{
    static const char *const settings[] = {
        "GPUSHMEM_TEST_VERBS_MTU=1024",      "GPUSHMEM_VERBS_TRAFFIC_CLASS=104",
        "GPUSHMEM_VERBS_SERVICE_LEVEL=3",    "GPUSHMEM_VERBS_TIMEOUT=12",
        "GPUSHMEM_TEST_VERBS_RETRY_COUNT=5", "GPUSHMEM_TEST_VERBS_RNR_RETRY=4",
        "GPUSHMEM_TEST_VERBS_RD_ATOMIC=9"};
    memcpy(pair.settings, settings, sizeof settings);
    cr_assert_eq(fake_pair_open(&pair), 0);
    cr_assert_eq(fake.rtr.path_mtu, IBV_MTU_1024);
    cr_assert_eq(fake.rtr.ah_attr.grh.traffic_class, 104);
    cr_assert_eq(fake.rtr.ah_attr.sl, 3);
    cr_assert_eq(fake.rtr.max_dest_rd_atomic, 9);
    cr_assert_eq(fake.rts.max_rd_atomic, 9);
    cr_assert_eq(fake.rts.timeout, 12);
    cr_assert_eq(fake.rts.retry_cnt, 5);
    cr_assert_eq(fake.rts.rnr_retry, 4);
}

Test(verbs_dev, connect__device_allows_fewer_reads__device_wins)
{
    fake.max_rd_atomic = 2;
    cr_assert_eq(fake_pair_open(&pair), 0);
    cr_assert_eq(fake.rts.max_rd_atomic, 2);
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

Test(verbs_dev, infiniband__another_subnet__refused_by_name)
{
    open_infiniband("fe80::1", NULL);
    pair.peer_rail = in_another_subnet;
    refused(GPUSHMEM_ERR_UNREACHABLE, "PE 1 (GID fe80:0:0:9::1) is in another InfiniBand subnet "
                                      "than fake0:1 (GID fe80::1)");
    cr_assert(strstr(gpsh_last_error(), "GPUSHMEM_VERBS_ROUTER_LID"), "%s", gpsh_last_error());
}

Test(verbs_dev, infiniband__another_subnet_and_a_router__its_lid)
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
Test(verbs_dev, infiniband__another_subnet_by_flids__the_peers_flid)
{
    open_infiniband("fe80::1", "fec0:0:55:1:14:500::7");
    pair.peer_rail = in_another_flid_subnet;
    cr_assert_eq(fake_pair_open(&pair), 0, "%s", gpsh_last_error());
    cr_assert_eq(fake.rtr.ah_attr.dlid, 0x1234);
    cr_assert_eq(fake.rtr.ah_attr.is_global, 1);
    cr_assert_eq(fake.rtr.ah_attr.grh.sgid_index, 1);
    cr_assert_eq(fake.rtr.ah_attr.grh.dgid.raw[5], 0x34);
}

Test(verbs_dev, infiniband__same_subnet_with_another_flid__its_lid_and_no_global_route)
{
    open_infiniband("fe80::1", "fec0:0:55:1:14:500::7");
    pair.peer_rail = behind_another_flid;
    cr_assert_eq(fake_pair_open(&pair), 0, "%s", gpsh_last_error());
    cr_assert_eq(fake.rtr.ah_attr.dlid, 99);
    cr_assert_eq(fake.rtr.ah_attr.is_global, 0);
}

Test(verbs_dev, infiniband__second_gid_is_another_alias__not_taken_for_a_routed_one)
{
    open_infiniband("fe80::1", "fec0:0:55:1::7");
    cr_assert_eq(fake_pair_open(&pair), 0);
    cr_assert_eq(rail(0)->gid_kinds, 1 << GPSH_VERBS_GID_IB);
}

static void open_gpu_heap(const char *policy)
{
    pair.heap_kind = GPSH_MEMORY_DEVICE;
    pair.dmabuf_fd = 5;
    pair.settings[0] = policy;
}

// Puts device i of the server of topology/two_sockets.xml into a slot, as sysfs shows it.
static void plug(int i, const char *pci)
{
    static char folders[FAKE_DEVICES][64];
    char link[320], target[64];
    cr_assert_eq(gpsh_scratch_dir("verbs_dev", 32, folders[i], sizeof folders[i]), 0);
    snprintf(link, sizeof link, "%s/device", folders[i]);
    snprintf(target, sizeof target, "../../../%s", pci);
    cr_assert_eq(symlink(target, link), 0);
    fake.sysfs[i] = folders[i];
}

static void unplug(void)
{
    char link[320];
    for (int i = 0; i < FAKE_DEVICES && fake.sysfs[i]; i++) {
        snprintf(link, sizeof link, "%s/device", fake.sysfs[i]);
        unlink(link);
        rmdir(fake.sysfs[i]);
    }
}

// hwloc reads the file in the place of this machine.
static void open_server(const char *near_pci, const char *rails)
{
    static const char *const nics[] = {"0000:91:00.0", "0000:41:00.0", "0000:17:00.0",
                                       "0000:14:00.0"};
    setenv("HWLOC_XMLFILE", TOPOLOGY_DIR "/two_sockets.xml", 1);
    fake.n_devices = 4;
    for (int i = 1; i < 4; i++)
        fake.port[i] = fake.port[0];
    for (int i = 0; i < 4; i++)
        plug(i, nics[i]);
    pair.near_pci = near_pci;
    pair.settings[0] = rails;
    int status = fake_pair_open(&pair);
    unplug();
    cr_assert_eq(status, 0, "%s", gpsh_last_error());
}

Test(verbs_dev, gpu_heap__one_rail__nearest_to_the_gpu)
{
    open_server("0000:13:00.0", "GPUSHMEM_VERBS_RAILS=1");
    cr_assert_str_eq(rail(0)->name, "fake3:1"); // on the GPU's switch
}

Test(verbs_dev, gpu_heap__two_rails__the_two_nearest_to_the_gpu)
{
    open_server("0000:13:00.0", "GPUSHMEM_VERBS_RAILS=2");
    cr_assert_str_eq(rail(0)->name, "fake3:1");
    cr_assert_str_eq(rail(1)->name, "fake2:1"); // a switch further
}

Test(verbs_dev, gpu_heap__gpu_of_the_other_socket__its_nic)
{
    open_server("0000:93:00.0", "GPUSHMEM_VERBS_RAILS=1");
    cr_assert_str_eq(rail(0)->name, "fake0:1");
}

Test(verbs_dev, gpu_heap__cuda_writes_upper_case__the_same_gpu)
{
    open_server("0000:1A:00.0", "GPUSHMEM_VERBS_RAILS=1");
    cr_assert_str_eq(rail(0)->name, "fake2:1"); // of equals the first
}

// The dma-buf of an unaligned buffer begins at the page that holds the buffer's first byte.
Test(verbs_dev, gpu_buffer__unaligned__registered_with_its_offset_in_the_dmabuf)
{
    char *memory = aligned_alloc(4096, 2 * 4096);
    open_gpu_heap("GPUSHMEM_TEST_VERBS_DMABUF=require");
    cr_assert_eq(fake_pair_open(&pair), 0, "%s", gpsh_last_error());
    cr_assert_eq(fake.dmabuf_offset, 0, "the heap is aligned");
    struct gpsh_region region = {memory + 264, 5000, GPSH_MEMORY_DEVICE, 6, -1};
    int before = fake.dmabuf_registrations;
    cr_assert_eq(gpsh_verbs_ops.buffer_register(pair.transport, &region), 0);
    cr_assert_eq(fake.dmabuf_registrations, before + 1);
    cr_assert_eq(fake.dmabuf_offset, 264);
    cr_assert_eq(fake.dmabuf_iova, (uintptr_t)region.base, "keys are used with its address");
    cr_assert_eq(gpsh_verbs_ops.buffer_unregister(pair.transport, region.base), 0);
    free(memory);
}

Test(verbs_dev, gpu_heap__dmabuf_refused__falls_back_to_peer_memory)
{
    fake.dmabuf_error = EOPNOTSUPP;
    open_gpu_heap("GPUSHMEM_TEST_VERBS_DMABUF=auto");
    cr_assert_eq(fake_pair_open(&pair), 0);
    cr_assert_eq(fake.dmabuf_registrations, 0);
}

Test(verbs_dev, gpu_heap__dmabuf_off__not_tried)
{
    open_gpu_heap("GPUSHMEM_TEST_VERBS_DMABUF=off");
    cr_assert_eq(fake_pair_open(&pair), 0);
    cr_assert_eq(fake.dmabuf_registrations, 0);
}

Test(verbs_dev, gpu_heap__dmabuf_required_and_refused__fails)
{
    fake.dmabuf_error = EOPNOTSUPP;
    open_gpu_heap("GPUSHMEM_TEST_VERBS_DMABUF=require");
    refused(GPUSHMEM_ERR_TRANSPORT, "GPUSHMEM_TEST_VERBS_DMABUF=require");
}

Test(verbs_dev, gpu_heap__neither__says_what_it_takes)
{
    fake.dmabuf_error = EOPNOTSUPP;
    open_gpu_heap("GPUSHMEM_GPUDIRECT=always");
    pair.heap_unregistrable = true; // else it is staged: verbs_stage_test.c
    refused(GPUSHMEM_ERR_TRANSPORT, "nvidia-peermem");
}

Test(verbs_dev, explain__connected__names_device_address_and_mtu)
{
    char line[160];
    cr_assert_eq(fake_pair_open(&pair), 0);
    gpsh_verbs_ops.explain(pair.transport, 1, line, sizeof line);
    cr_assert(strstr(line, "fake0:1 10.1.0.1 -> 10.1.0.1") && strstr(line, "mtu 4096, 1 rail"),
              "%s", line);
}

Test(verbs_filter, parse__lists__as_written)
{
    struct gpsh_nic_filter filter;
    cr_assert_eq(gpsh_nic_filter_parse("mlx5_0,mlx5_1:2", &filter), 0);
    cr_assert_eq(gpsh_nic_filter_rank(&filter, "mlx5_0", 1), 0);
    cr_assert_eq(gpsh_nic_filter_rank(&filter, "mlx5_1", 2), 1);
    cr_assert_eq(gpsh_nic_filter_rank(&filter, "mlx5_1", 1), -1);
    cr_assert_eq(gpsh_nic_filter_rank(&filter, "mlx5_2", 1), -1);
    cr_assert_eq(gpsh_nic_filter_parse("^mlx5_0,mlx5_1", &filter), 0);
    cr_assert_eq(gpsh_nic_filter_rank(&filter, "mlx5_1", 1), -1);
    cr_assert_eq(gpsh_nic_filter_rank(&filter, "mlx5_2", 1), 0);
    cr_assert_eq(gpsh_nic_filter_parse("", &filter), 0);
    cr_assert_eq(gpsh_nic_filter_rank(&filter, "mlx5_2", 1), 0);
}

Test(verbs_filter, parse__malformed__is_a_setting_error)
{
    static const char *const texts[] = {
        ",", "a,", ",a", "^", "a,^b", "a:", "a:0", "a:256", "a:x", ":1", "^a,,b"};
    struct gpsh_nic_filter filter = {.n = 99};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        cr_assert_eq(gpsh_nic_filter_parse(texts[i], &filter), GPUSHMEM_ERR_SETTING, "'%s'",
                     texts[i]);
        cr_assert_eq(filter.n, 99, "'%s' changed the output", texts[i]);
    }
}

#define PORT(r, d, i)                                                                              \
    {                                                                                              \
        .rank = r, .distance = d, .index = i                                                       \
    }

Test(nic_choice, nearest__pes_spread_over_the_equally_near)
{
    int chosen[2];
    for (int pe = 0; pe < 4; pe++) {
        struct gpsh_nic_candidate ports[] = {PORT(0, 4, 0), PORT(0, 1, 1), PORT(0, 4, 2),
                                             PORT(0, 1, 3)};
        cr_assert_eq(gpsh_nic_choose(ports, 4, false, 1, pe, chosen), 1);
        cr_assert_eq(chosen[0], pe % 2 ? 3 : 1);
    }
}

Test(nic_choice, two_rails__each_rail_stays_on_its_cable)
{
    int chosen[2];
    for (int pe = 0; pe < 2; pe++) {
        struct gpsh_nic_candidate ports[] = {PORT(0, 5, 0), PORT(0, 5, 1), PORT(0, 5, 2),
                                             PORT(0, 5, 3)};
        cr_assert_eq(gpsh_nic_choose(ports, 4, false, 2, pe, chosen), 2);
        cr_assert(chosen[0] == pe && chosen[1] == 2 + pe);
    }
}

Test(nic_choice, listed__order_of_the_list_before_distance)
{
    int chosen[2];
    struct gpsh_nic_candidate ports[] = {PORT(1, 0, 0), PORT(0, 4, 1)};
    cr_assert_eq(gpsh_nic_choose(ports, 2, true, 2, 0, chosen), 2);
    cr_assert(chosen[0] == 1 && chosen[1] == 0);
}

Test(nic_choice, fewer_ports_than_rails__all_there_are)
{
    int chosen[8];
    struct gpsh_nic_candidate ports[] = {PORT(0, 0, 0), PORT(0, 4, 1), PORT(0, 4, 2)};
    cr_assert_eq(gpsh_nic_choose(ports, 3, false, 8, 5, chosen), 3);
}

Test(nic_choice, rate__a_slow_port_that_is_nearer__not_taken)
{
    int chosen[2];
    struct gpsh_nic_candidate ports[] = {
        {.distance = 1, .index = 0, .rate = 25000, .ethernet = true},
        {.distance = 3, .index = 1, .rate = 400000}};
    cr_assert_eq(gpsh_nic_choose(ports, 2, false, 1, 0, chosen), 1);
    cr_assert_eq(chosen[0], 1);
}

Test(nic_choice, network__one_for_all_pes_and_rails)
{
    for (int pe = 0; pe < 2; pe++) {
        int chosen[2];
        struct gpsh_nic_candidate ports[] = {
            {.distance = 2, .index = 0, .rate = 200000, .ethernet = true},
            {.distance = 2, .index = 1, .rate = 200000}};
        cr_assert_eq(gpsh_nic_choose(ports, 2, false, 2, pe, chosen), 1);
        cr_assert_eq(chosen[0], 1, "InfiniBand before Ethernet of the same rate");
    }
}

Test(nic_choice, rate__from_the_codes_of_a_port)
{
    cr_assert_eq(gpsh_nic_rate(128, 2), 400000, "NDR, four lanes");
    cr_assert_eq(gpsh_nic_rate(32, 2), 100000);
    cr_assert_eq(gpsh_nic_rate(0, 2), 0);
}

Test(verbs_dev, open__first_port_has_no_address__the_second_serves)
{
    fake.n_devices = 2;
    fake.no_gids[0] = true;
    cr_assert_eq(fake_pair_open(&pair), 0);
    cr_assert_str_eq(rail(0)->name, "fake1:1");
}

Test(verbs_depth, large_jobs__shorter_queues)
{
    cr_assert_eq(gpsh_verbs_depth(256, 2), 256);
    cr_assert_eq(gpsh_verbs_depth(256, 256), 256);
    cr_assert_eq(gpsh_verbs_depth(256, 1024), 64);
    cr_assert_eq(gpsh_verbs_depth(256, 16384), 32);
    cr_assert_eq(gpsh_verbs_depth(16, 16384), 16);
}
