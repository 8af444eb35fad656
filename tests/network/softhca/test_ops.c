// SPDX-License-Identifier: BSD-3-Clause
// Every opcode, and what its completion says.
#include <arpa/inet.h>
#include <poll.h>
#include <stdlib.h>

#include "endpoint.h"

static void write_read(struct pair *pair)
{
    const uint32_t sizes[] = {1, 4, 7, 8, 64, 65, 4096, 100001, BUFFER_BYTES / 2};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        uint32_t bytes = sizes[i], offset = BUFFER_BYTES / 2 - bytes;
        for (uint32_t b = 0; b < bytes; b++)
            pair->near.buffer[b] = (char)(b * 7 + i);
        struct ibv_send_wr wr = write_wr(pair, &pair->sge, 0, offset, bytes);
        CHECK_EQ(run_wr(pair, &wr), IBV_WC_SUCCESS);
        memset(pair->near.buffer + BUFFER_BYTES / 2, 0, bytes);
        wr = write_wr(pair, &pair->sge, BUFFER_BYTES / 2, offset, bytes);
        wr.opcode = IBV_WR_RDMA_READ;
        CHECK_EQ(run_wr(pair, &wr), IBV_WC_SUCCESS);
        CHECK(!memcmp(pair->near.buffer, pair->near.buffer + BUFFER_BYTES / 2, bytes));
    }
}

static void write_of_nothing(struct pair *pair)
{
    struct ibv_send_wr wr = write_wr(pair, &pair->sge, 0, 0, 0);
    wr.wr.rdma.rkey = 12345; // not looked at
    wr.num_sge = 0;
    CHECK_EQ(run_wr(pair, &wr), IBV_WC_SUCCESS);
}

static void write_inline(struct pair *pair)
{
    uint64_t value = 0x1122334455667788; // on the stack, in no memory region
    struct ibv_sge sge = {(uintptr_t)&value, 8, 0}, unused;
    struct ibv_send_wr wr = write_wr(pair, &unused, 0, 16, 0);
    wr.sg_list = &sge;
    wr.send_flags |= IBV_SEND_INLINE;
    CHECK_EQ(post(pair, &wr), 0);
    value = 0; // taken already
    CHECK_EQ(wait_wc(pair->near.cq).status, IBV_WC_SUCCESS);
    CHECK_EQ(far_word(pair, 16), 0x1122334455667788);
}

static void gather_scatter(struct pair *pair)
{
    struct ibv_sge unused;
    for (int i = 0; i < 64; i++)
        pair->near.buffer[i] = (char)(i + 1);
    uintptr_t at = (uintptr_t)pair->near.buffer;
    uint32_t key = pair->near.mr->lkey;
    struct ibv_sge from[] = {{at + 10, 3, key}, {at + 40, 0, key}, {at, 5, key}, {at + 32, 8, key}};
    struct ibv_send_wr wr = write_wr(pair, &unused, 0, 0, 0);
    wr.sg_list = from;
    wr.num_sge = 4;
    CHECK_EQ(run_wr(pair, &wr), IBV_WC_SUCCESS);
    struct ibv_sge to[] = {{at + 100, 9, key}, {at + 200, 7, key}};
    wr.sg_list = to;
    wr.num_sge = 2;
    wr.opcode = IBV_WR_RDMA_READ;
    CHECK_EQ(run_wr(pair, &wr), IBV_WC_SUCCESS);
    const char expected[] = {11, 12, 13, 1, 2, 3, 4, 5, 33, 34, 35, 36, 37, 38, 39, 40};
    CHECK(!memcmp(pair->near.buffer + 100, expected, 9));
    CHECK(!memcmp(pair->near.buffer + 200, expected + 9, 7));
}

static void fetch_add(struct pair *pair)
{
    for (uint64_t i = 0; i < 10; i++) {
        struct ibv_send_wr wr = write_wr(pair, &pair->sge, 64, 0, 8);
        wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
        wr.wr.atomic.remote_addr = pair->there.address + 256;
        wr.wr.atomic.rkey = pair->there.rkey;
        wr.wr.atomic.compare_add = UINT64_C(0x100000001);
        CHECK_EQ(post(pair, &wr), 0);
        struct ibv_wc wc = wait_wc(pair->near.cq);
        CHECK_EQ(wc.status, IBV_WC_SUCCESS);
        CHECK_EQ(wc.opcode, IBV_WC_FETCH_ADD);
        CHECK_EQ(wc.byte_len, 8);
        CHECK_EQ(*near_word(pair, 64), i * UINT64_C(0x100000001));
    }
    CHECK_EQ(far_word(pair, 256), 10 * UINT64_C(0x100000001));
}

static void compare_swap(struct pair *pair)
{
    // compare, swap, value afterwards
    const uint64_t steps[][3] = {{0, 5, 5}, {4, 9, 5}, {5, 7, 7}};
    for (int i = 0; i < 3; i++) {
        struct ibv_send_wr wr = write_wr(pair, &pair->sge, 64, 0, 8);
        wr.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
        wr.wr.atomic.remote_addr = pair->there.address + 8;
        wr.wr.atomic.rkey = pair->there.rkey;
        wr.wr.atomic.compare_add = steps[i][0];
        wr.wr.atomic.swap = steps[i][1];
        CHECK_EQ(run_wr(pair, &wr), IBV_WC_SUCCESS);
        CHECK_EQ(*near_word(pair, 64), i ? steps[i - 1][2] : 0);
        CHECK_EQ(far_word(pair, 8), steps[i][2]);
    }
}

static void write_with_imm(struct pair *pair)
{
    CHECK_EQ(far_do(pair, FAR_RECEIVE, 512).value, 0);
    *near_word(pair, 0) = 77;
    struct ibv_send_wr wr = write_wr(pair, &pair->sge, 0, 24, 8);
    wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
    wr.imm_data = htonl(4711);
    CHECK_EQ(run_wr(pair, &wr), IBV_WC_SUCCESS);
    struct ibv_wc wc = far_do(pair, FAR_POLL, 0).wc;
    CHECK_EQ(wc.status, IBV_WC_SUCCESS);
    CHECK_EQ(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
    CHECK_EQ(wc.wr_id, 512);
    CHECK_EQ(wc.byte_len, 8);
    CHECK_EQ(ntohl(wc.imm_data), 4711);
    CHECK_EQ(far_word(pair, 24), 77);
}

static void send_receive(struct pair *pair)
{
    for (uint64_t i = 0; i < 3; i++)
        CHECK_EQ(far_do(pair, FAR_RECEIVE, 512 + 64 * i).value, 0);
    for (uint64_t i = 0; i < 3; i++) {
        *near_word(pair, 0) = 100 + i;
        struct ibv_send_wr wr = write_wr(pair, &pair->sge, 0, 0, 8);
        wr.opcode = IBV_WR_SEND;
        CHECK_EQ(run_wr(pair, &wr), IBV_WC_SUCCESS);
        struct ibv_wc wc = far_do(pair, FAR_POLL, 0).wc;
        CHECK_EQ(wc.wr_id, 512 + 64 * i);
        CHECK_EQ(wc.opcode, IBV_WC_RECV);
        CHECK_EQ(far_word(pair, 512 + 64 * i), 100 + i);
    }
}

static void completion_channel(struct pair *pair)
{
    struct ibv_cq *cq;
    void *context;
    CHECK_EQ(ibv_req_notify_cq(pair->near.cq, 0), 0);
    struct ibv_send_wr wr = write_wr(pair, &pair->sge, 0, 0, 8);
    CHECK_EQ(post(pair, &wr), 0);
    // nobody polls: the engine's thread does it
    CHECK_EQ(ibv_get_cq_event(pair->near.channel, &cq, &context), 0);
    CHECK(cq == pair->near.cq);
    ibv_ack_cq_events(cq, 1);
    CHECK_EQ(wait_wc(cq).status, IBV_WC_SUCCESS);
    CHECK_EQ(run_wr(pair, &wr), IBV_WC_SUCCESS); // not armed any more
    struct pollfd fd = {.fd = pair->near.channel->fd, .events = POLLIN};
    CHECK_EQ(poll(&fd, 1, 0), 0);
}

static void both_devices(enum mode mode)
{
    struct pair pair;
    struct ibv_sge sge;
    struct options options = usual;
    options.far_device = 1;
    pair_open(&pair, mode, &options);
    *near_word(&pair, 0) = 3;
    struct ibv_send_wr wr = write_wr(&pair, &sge, 0, 8, 8);
    CHECK_EQ(run_wr(&pair, &wr), IBV_WC_SUCCESS);
    CHECK_EQ(far_word(&pair, 8), 3);
    CHECK_EQ(far_do(&pair, FAR_RECEIVE, 512).value, 0);
    wr.opcode = IBV_WR_SEND;
    CHECK_EQ(run_wr(&pair, &wr), IBV_WC_SUCCESS);
    CHECK_EQ(far_do(&pair, FAR_POLL, 0).wc.status, IBV_WC_SUCCESS);
    pair_close(&pair);
}

const struct test_case ops_cases[] = {
    {"write_read", ALL_MODES, .on_pair = write_read},
    {"write_read_infiniband", SAME_PROCESS | MAPPED_MEMORY, "LINK=ib", .on_pair = write_read},
    {"write_of_nothing", ALL_MODES, .on_pair = write_of_nothing},
    {"write_inline", ALL_MODES, .on_pair = write_inline},
    {"gather_scatter", ALL_MODES, .on_pair = gather_scatter},
    {"fetch_add", ALL_MODES, .on_pair = fetch_add},
    {"fetch_add_global", ALL_MODES, "ATOMIC_CAP=glob", .on_pair = fetch_add},
    {"compare_swap", ALL_MODES, .on_pair = compare_swap},
    {"write_with_imm", ALL_MODES, .on_pair = write_with_imm},
    {"send_receive", ALL_MODES, .on_pair = send_receive},
    {"completion_channel", ALL_MODES, .on_pair = completion_channel},
    {"both_devices", ALL_MODES, "DEVICES=2", .run = both_devices},
    {0},
};
