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
    {"delayed", ALL_MODES, "DELAY_US=10000", .on_pair = delayed},
    {"completion_queue_overflow", ALL_MODES, .run = completion_queue_overflow},
    {"atomics_of_two", ALL_MODES, .on_pair = atomics_of_two},
    {0},
};
