// SPDX-License-Identifier: BSD-3-Clause
// Order, completion, room: what a program may rely on, and what it must not.
#define _GNU_SOURCE // usleep
#include <errno.h>
#include <unistd.h>

#include "endpoint.h"

// Unsignalled requests give their room back when a later completion is polled, and not before.
static void send_queue_room(enum mode mode)
{
    struct pair pair;
    struct ibv_sge sge;
    struct options options = usual;
    options.sq_depth = 8;
    pair_open(&pair, mode, &options);
    struct ibv_send_wr wr = write_wr(&pair, &sge, 0, 0, 8);
    for (int lap = 0; lap < 3; lap++) {
        for (int i = 0; i < 8; i++) {
            wr.send_flags = i == 7 ? IBV_SEND_SIGNALED : 0;
            CHECK_EQ(post(&pair, &wr), 0);
        }
        usleep(1000); // executed by now, but not polled
        CHECK_EQ(post(&pair, &wr), ENOMEM);
        CHECK_EQ(wait_wc(pair.near.cq).status, IBV_WC_SUCCESS);
    }
    pair_close(&pair);
}

static void chain_cut_short(enum mode mode)
{
    struct pair pair;
    struct ibv_sge sge;
    struct options options = usual;
    options.sq_depth = 3;
    pair_open(&pair, mode, &options);
    struct ibv_send_wr chain[5], *bad = NULL;
    for (int i = 0; i < 5; i++) {
        chain[i] = write_wr(&pair, &sge, 0, 0, 8);
        chain[i].wr_id = (uint64_t)i;
        chain[i].next = i < 4 ? &chain[i + 1] : NULL;
    }
    CHECK_EQ(ibv_post_send(pair.near.qp, chain, &bad), ENOMEM);
    CHECK(bad == &chain[3]);
    for (uint64_t i = 0; i < 3; i++)
        CHECK_EQ(wait_wc(pair.near.cq).wr_id, i);
    pair_close(&pair);
}

static void all_signalled(enum mode mode)
{
    struct pair pair;
    struct ibv_sge sge;
    struct options options = usual;
    options.sq_sig_all = true;
    pair_open(&pair, mode, &options);
    struct ibv_send_wr wr = write_wr(&pair, &sge, 0, 0, 8);
    wr.send_flags = 0;
    CHECK_EQ(run_wr(&pair, &wr), IBV_WC_SUCCESS);
    pair_close(&pair);
}

// In one queue pair: the last write of a word wins, and completions come in order of posting.
static void in_order(struct pair *pair)
{
    uint64_t polled = 0;
    for (uint64_t i = 0; i < 600; i++) {
        struct ibv_send_wr wr = write_wr(pair, &pair->sge, 0, 8 * (i % 3), 8);
        struct ibv_sge value = {(uintptr_t)&i, 8, 0};
        wr.sg_list = &value;
        wr.send_flags |= IBV_SEND_INLINE;
        wr.wr_id = i;
        CHECK_EQ(post(pair, &wr), 0);
        while (i + 1 - polled >= (i == 599 ? 1 : 40))
            CHECK_EQ(wait_wc(pair->near.cq).wr_id, polled++);
    }
    for (uint64_t k = 0; k < 3; k++)
        CHECK_EQ(far_word(pair, 8 * k), 597 + k);
}

// Reads 8 bytes and then overwrites them, many times, with or without a fence between; returns how
// often the read saw the write that came after it.
static int overtaken(struct pair *pair, unsigned fence)
{
    int n = 0;
    for (uint64_t i = 1; i <= 200; i++) {
        struct ibv_sge into, from;
        struct ibv_send_wr read = write_wr(pair, &into, 64, 0, 8),
                           write = write_wr(pair, &from, 128, 0, 8);
        read.opcode = IBV_WR_RDMA_READ;
        read.send_flags = 0;
        read.next = &write;
        write.send_flags |= fence;
        *near_word(pair, 128) = i;
        CHECK_EQ(run_wr(pair, &read), IBV_WC_SUCCESS);
        n += *near_word(pair, 64) == i;
        CHECK(*near_word(pair, 64) == i || *near_word(pair, 64) == i - 1);
    }
    return n;
}

static void without_fence_overtakes(struct pair *pair)
{
    int n = overtaken(pair, 0);
    CHECK(n > 20 && n < 180); // about every second
}

static void fence_holds(struct pair *pair)
{
    CHECK_EQ(overtaken(pair, IBV_SEND_FENCE), 0);
}

static void plain_keeps_order(struct pair *pair)
{
    CHECK_EQ(overtaken(pair, 0), 0);
}

// The far buffer: the data at 0, the flag at 8. Posts data, perhaps a request between, and the
// flag; returns the data as it was when the flag was first seen.
static uint64_t data_at_flag(struct pair *pair, enum ibv_wr_opcode between,
                             enum ibv_wr_opcode flag_by, unsigned fence)
{
    struct ibv_sge sges[3];
    struct ibv_send_wr data = write_wr(pair, &sges[0], 128, 0, 8),
                       middle = write_wr(pair, &sges[1], 64, 0, 8),
                       flag = write_wr(pair, &sges[2], 128, 8, 8);
    *near_word(pair, 128) = 1;
    data.send_flags = middle.send_flags = 0;
    middle.opcode = between;
    flag.opcode = flag_by;
    flag.send_flags |= fence;
    if (flag_by == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        flag.wr.atomic.remote_addr = pair->there.address + 8;
        flag.wr.atomic.rkey = pair->there.rkey;
        flag.wr.atomic.compare_add = 1;
        *near_word(pair, 128) = 1;
    }
    data.next = between == IBV_WR_RDMA_READ ? &middle : &flag;
    middle.next = &flag;
    CHECK_EQ(post(pair, &data), 0);
    double start = seconds();
    while (!far_word(pair, 8) && seconds() - start < 20)
        usleep(100);
    uint64_t seen = far_word(pair, 0);
    CHECK_EQ(wait_wc(pair->near.cq).status, IBV_WC_SUCCESS);
    CHECK_EQ(far_word(pair, 0), 1);
    return seen;
}

static void misordered_flag_overtakes(struct pair *pair)
{
    CHECK_EQ(data_at_flag(pair, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE, 0), 0);
}

static void misordered_fence_alone_does_not_hold(struct pair *pair)
{
    CHECK_EQ(data_at_flag(pair, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE, IBV_SEND_FENCE), 0);
}

static void misordered_read_and_fence_hold(struct pair *pair)
{
    CHECK_EQ(data_at_flag(pair, IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE, IBV_SEND_FENCE), 1);
}

static void misordered_atomic_holds(struct pair *pair)
{
    CHECK_EQ(data_at_flag(pair, IBV_WR_RDMA_WRITE, IBV_WR_ATOMIC_FETCH_AND_ADD, 0), 1);
}

static void data_in_order(struct pair *pair)
{
    CHECK_EQ(ibv_query_qp_data_in_order(pair->near.qp, IBV_WR_RDMA_WRITE, 0), 1);
}

static void data_not_in_order(struct pair *pair)
{
    CHECK_EQ(ibv_query_qp_data_in_order(pair->near.qp, IBV_WR_RDMA_WRITE, 0), 0);
}

static void acknowledged_before_visible(struct pair *pair)
{
    struct ibv_sge from, into;
    struct ibv_send_wr write = write_wr(pair, &from, 128, 0, 8),
                       read = write_wr(pair, &into, 64, 0, 8);
    read.opcode = IBV_WR_RDMA_READ;
    *near_word(pair, 128) = 1;
    CHECK_EQ(run_wr(pair, &write), IBV_WC_SUCCESS);
    *near_word(pair, 128) = 2; // the acknowledged write has its own copy
    CHECK_EQ(far_word(pair, 0), 0);
    CHECK_EQ(run_wr(pair, &read), IBV_WC_SUCCESS);
    CHECK_EQ(*near_word(pair, 64), 1);
    CHECK_EQ(far_word(pair, 0), 1);
}

static void late_writes_arrive(struct pair *pair)
{
    struct ibv_sge from;
    struct ibv_send_wr write = write_wr(pair, &from, 128, 0, 8);
    *near_word(pair, 128) = 1;
    CHECK_EQ(run_wr(pair, &write), IBV_WC_SUCCESS);
    double start = seconds();
    while (!far_word(pair, 0) && seconds() - start < 20)
        usleep(100);
    CHECK_EQ(far_word(pair, 0), 1);
}

// The other end takes no more packets, and has acknowledged this one.
static void late_write_arrives_at_a_reset_end(struct pair *pair)
{
    struct ibv_sge from;
    struct ibv_send_wr write = write_wr(pair, &from, 128, 0, 8);
    struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};
    *near_word(pair, 128) = 1;
    CHECK_EQ(run_wr(pair, &write), IBV_WC_SUCCESS);
    CHECK_EQ(ibv_modify_qp(pair->far.qp, &reset, IBV_QP_STATE), 0);
    CHECK_EQ(far_word(pair, 0), 0);
    CHECK_EQ(ibv_modify_qp(pair->near.qp, &reset, IBV_QP_STATE), 0);
    CHECK_EQ(far_word(pair, 0), 1);
}

// A write that overtakes a read does not overtake one that is late.
static void late_writes_in_order(struct pair *pair)
{
    for (uint64_t i = 1; i <= 100; i++) {
        struct ibv_sge from, into;
        struct ibv_send_wr write = write_wr(pair, &from, 128, 0, 8),
                           read = write_wr(pair, &into, 64, 16, 8),
                           overtakes = write_wr(pair, &from, 128, 8, 8);
        struct ibv_wc wc;
        read.opcode = IBV_WR_RDMA_READ;
        read.send_flags = 0;
        read.next = &overtakes;
        *near_word(pair, 128) = i;
        CHECK_EQ(run_wr(pair, &write), IBV_WC_SUCCESS);
        CHECK_EQ(post(pair, &read), 0);
        for (bool more = true; more; more = ibv_poll_cq(pair->near.cq, 1, &wc) == 0) {
            uint64_t second = far_word(pair, 8);
            CHECK(second <= far_word(pair, 0));
        }
    }
}

static void delayed(struct pair *pair)
{
    double start = seconds();
    struct ibv_send_wr wr = write_wr(pair, &pair->sge, 0, 0, 8);
    for (int i = 0; i < 20; i++)
        CHECK_EQ(run_wr(pair, &wr), IBV_WC_SUCCESS);
    // 20 of 0 to 10 ms: less than 20 ms has a chance of under 1 in 10^9
    CHECK(seconds() - start > 0.02);
}

static void completion_queue_overflow(enum mode mode)
{
    struct pair pair;
    struct ibv_sge sge;
    struct options options = usual;
    options.cq_depth = 4;
    pair_open(&pair, mode, &options);
    struct ibv_send_wr wr = write_wr(&pair, &sge, 0, 0, 8);
    for (int i = 0; i < 5; i++)
        CHECK_EQ(post(&pair, &wr), 0);
    struct ibv_async_event event;
    CHECK_EQ(ibv_get_async_event(pair.near.context, &event), 0);
    CHECK_EQ(event.event_type, IBV_EVENT_CQ_ERR);
    CHECK(event.element.cq == pair.near.cq);
    ibv_ack_async_event(&event);
    pair_close(&pair);
}

// Several processes and queue pairs add to one word: nothing is lost.
static void atomics_of_two(struct pair *pair)
{
    struct pair other;
    pair_open(&other, SAME_PROCESS, &usual);
    other.near.qp->qp_context = NULL;
    // The far end adds to its own word through nothing but this: both pairs' near ends are used in
    // turn, unpolled.
    struct ibv_send_wr wr = write_wr(pair, &pair->sge, 64, 0, 8),
                       local = write_wr(&other, &other.sge, 64, 0, 8);
    wr.opcode = local.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
    wr.wr.atomic.remote_addr = pair->there.address;
    wr.wr.atomic.rkey = pair->there.rkey;
    wr.wr.atomic.compare_add = local.wr.atomic.compare_add = 1;
    local.wr.atomic.remote_addr = other.there.address;
    local.wr.atomic.rkey = other.there.rkey;
    for (int i = 0; i < 500; i++) {
        CHECK_EQ(post(pair, &wr), 0);
        CHECK_EQ(post(&other, &local), 0);
        CHECK_EQ(wait_wc(pair->near.cq).status, IBV_WC_SUCCESS);
        CHECK_EQ(wait_wc(other.near.cq).status, IBV_WC_SUCCESS);
    }
    CHECK_EQ(far_word(pair, 0), 500);
    CHECK_EQ(far_word(&other, 0), 500);
    pair_close(&other);
}

const struct test_case order_cases[] = {
    {"send_queue_room", ALL_MODES, .run = send_queue_room},
    {"chain_cut_short", ALL_MODES, "DELAY_US=1000", .run = chain_cut_short},
    {"all_signalled", SAME_PROCESS, .run = all_signalled},
    {"in_order", ALL_MODES, .on_pair = in_order},
    {"in_order_disturbed", ALL_MODES, "DELAY_US=20 REORDER=1 SEED=7", .on_pair = in_order},
    {"without_fence_overtakes", ALL_MODES, "REORDER=1", .on_pair = without_fence_overtakes},
    {"fence_holds", ALL_MODES, "REORDER=1", .on_pair = fence_holds},
    {"plain_keeps_order", ALL_MODES, .on_pair = plain_keeps_order},
    {"misordered_flag_overtakes", ALL_MODES, "MISORDER_US=50000",
     .on_pair = misordered_flag_overtakes},
    {"misordered_fence_alone_does_not_hold", SAME_PROCESS, "MISORDER_US=50000",
     .on_pair = misordered_fence_alone_does_not_hold},
    {"misordered_read_and_fence_hold", SAME_PROCESS, "MISORDER_US=5000",
     .on_pair = misordered_read_and_fence_hold},
    {"misordered_atomic_holds", SAME_PROCESS, "MISORDER_US=5000",
     .on_pair = misordered_atomic_holds},
    {"data_in_order", SAME_PROCESS, .on_pair = data_in_order},
    {"data_not_in_order", SAME_PROCESS, "MISORDER_US=1", .on_pair = data_not_in_order},
    {"acknowledged_before_visible", ALL_MODES, "LATE_US=1000000",
     .on_pair = acknowledged_before_visible},
    {"late_writes_arrive", SAME_PROCESS, "LATE_US=5000", .on_pair = late_writes_arrive},
    {"late_write_arrives_at_a_reset_end", SAME_PROCESS, "LATE_US=1000000",
     .on_pair = late_write_arrives_at_a_reset_end},
    {"late_writes_in_order", SAME_PROCESS, "LATE_US=300 REORDER=1 DELAY_US=100",
     .on_pair = late_writes_in_order},
    {"not_late_on_another_device", SAME_PROCESS, "LATE_US=1000000 LATE_DEVICES=2",
     .on_pair = late_writes_arrive},
    {"delayed", ALL_MODES, "DELAY_US=10000", .on_pair = delayed},
    {"completion_queue_overflow", ALL_MODES, .run = completion_queue_overflow},
    {"atomics_of_two", ALL_MODES, .on_pair = atomics_of_two},
    {0},
};
