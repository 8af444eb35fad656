// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE
// Opening and connecting: which device, which registration, and one clear sentence when there is
// none.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/scratch.h"
#include "verbs_opening.h"

TestSuite(verbs_dev, .init = reset_pair, .fini = close_all);

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

Test(verbs_dev, fork__asked_for_before_the_devices)
{
    cr_assert_eq(fake_pair_open(&pair), 0);
    cr_assert_eq(fake.fork_inits, 1);
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

static bool says_of_kernels(const char *words)
{
    char line[300];
    gpsh_verbs_ops.explain(pair.transport, 1, line, sizeof line);
    return strstr(line, words) != NULL;
}

// One queue has fallen back to host memory, as those in the GPU's were used up.
Test(verbs_dev, explain__queues_of_kernels__where_each_is)
{
    pair.n_channels = 2;
    cr_assert_eq(fake_pair_open(&pair), 0);
    struct gpsh_verbs *verbs = (struct gpsh_verbs *)pair.transport;
    struct verbs_flow *flows[] = {verbs_flow_at(&verbs->channels[0], 1),
                                  verbs_flow_at(&verbs->channels[1], 1)};
    verbs->env.kernel_channels = 2;
    verbs->near.open = true;
    verbs->near.memory.kind = GPSH_MEMORY_DEVICE;
    cr_expect(says_of_kernels("to queues in host memory"));
    cr_expect(gpsh_verbs_ops.kernels_post(pair.transport, 1));
    flows[0]->lanes[0].devx = (struct verbs_devx *)(void *)&pair;
    cr_expect(says_of_kernels("to 1 queue in GPU memory by devx and 1 in host memory"));
    flows[1]->lanes[0].devx = flows[0]->lanes[0].devx;
    cr_expect(says_of_kernels("to queues in GPU memory by devx"));
    flows[0]->lanes[0].devx = flows[1]->lanes[0].devx = NULL;
    verbs->rails[0].no_mlx5 = "the NIC is one of the fakes";
    cr_expect(says_of_kernels("the NIC is one of the fakes"));
    cr_expect_not(gpsh_verbs_ops.kernels_post(pair.transport, 1));
    verbs->env.kernel_channels = 0;
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
