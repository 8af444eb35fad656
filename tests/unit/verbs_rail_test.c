// SPDX-License-Identifier: BSD-3-Clause
// One of two rails is lost: what goes by the other, and what may not go twice.
#define _GNU_SOURCE
#include "core/error.h"
#include "verbs_rails.h"

TestSuite(verbs_rail, .init = open_one, .fini = close_all);

// Two puts on a rail that is lost, both perhaps executed. If a fence lies between them, the second
// may have told the target of the first, and the target have changed that memory since.
static int lose_rail_with_two_puts(bool ordered)
{
    reopen_rails();
    struct gpsh_op data = fake_put(pair.heap, 0, 4096), news = fake_put(pair.heap, 8192, 4096);
    fake_post_op(&pair, &data);
    if (ordered)
        gpsh_verbs_ops.fence(pair.channel, 1);
    fake_post_op(&pair, &news);
    fake_run(1, IBV_WC_RETRY_EXC_ERR);
    fake_settle(&pair);
    cr_assert_eq(pair.channel->pending, 0);
    return pair.channel->flows[1].error;
}

Test(verbs_rail, rail_lost__puts_without_order__go_by_the_other)
{
    cr_assert_eq(lose_rail_with_two_puts(false), 0);
    cr_assert_eq(pair.failures, 0);
}

Test(verbs_rail, rail_lost__fence_between_puts__nothing_is_repeated)
{
    cr_assert_eq(lose_rail_with_two_puts(true), GPUSHMEM_ERR_PE_FAILED);
    cr_assert_eq(fake.n_posts, 4, "each put, and the read of what it wrote");
}

// The first put's lane is lost, with nothing that could not be repeated.
static void lose_rail_0(void)
{
    reopen_rails(); // another heap
    struct gpsh_op put = fake_put(pair.heap, 0, 4096);
    fake_post_op(&pair, &put);
    fake_run(1, IBV_WC_RETRY_EXC_ERR);
    gpsh_verbs_ops.progress(pair.channel);
}

static uint64_t note_at(const uint64_t *control, int pe)
{
    return control[PAIR_NOTES / 8 + pe];
}

// Its own words must not wait on the rail until its NIC gives up.
Test(verbs_rail, rail_lost__peer_is_told_by_the_other_before_anything_else)
{
    lose_rail_0();
    cr_assert_geq(fake.n_posts, 4);
    const struct ibv_send_wr *note = &fake.journal[2].wr; // after the put and its read
    cr_assert_eq(note->wr.rdma.remote_addr, (uintptr_t)(pair.control_there + PAIR_NOTES / 8));
    cr_assert_neq(device_of(2), device_of(0));
    fake_settle(&pair);
    cr_assert_eq(note_at(pair.control_there, 0), 1);
    cr_assert(pair.channel->flows[1].completed == 1 && pair.channel->flows[1].error == 0);
}

Test(verbs_rail, rail_lost__put_by_the_other__complete_when_read_back)
{
    lose_rail_0();
    fake_settle(&pair);
    struct gpsh_op put = fake_put(pair.heap, 0, 8);
    int before = fake.n_posts;
    fake_post_op(&pair, &put);
    cr_assert_eq(fake.n_posts, before + 2);
    cr_assert_neq(device_of(before), device_of(0));
    cr_assert_eq(fake.journal[before + 1].wr.opcode, IBV_WR_RDMA_READ);
    fake_run(1, IBV_WC_SUCCESS);
    gpsh_verbs_ops.progress(pair.channel);
    cr_assert_eq(pair.channel->pending, 1);
    fake_settle(&pair);
    cr_assert_eq(pair.channel->pending, 0);
}

Test(verbs_rail, peer_has_left_a_rail__next_put_goes_by_another)
{
    reopen_rails();
    struct gpsh_op put = fake_put(pair.heap, 0, 8);
    fake_post_op(&pair, &put);
    fake_settle(&pair);
    pair.control[PAIR_NOTES / 8 + 1] = 1;
    int before = fake.n_posts;
    fake_post_op(&pair, &put);
    cr_assert_neq(device_of(before), device_of(0));
    cr_assert_eq(fake.killed_qps, 0, "the peer may have something under way by it");
    fake_settle(&pair);
    cr_assert(pair.channel->flows[1].completed == 2 && pair.failures == 0);
}

// What is under way by it stays there, and is complete when the NIC says so.
Test(verbs_rail, peer_has_left_a_rail__put_under_way_by_it__is_waited_for)
{
    enum { LOOKS = 20000 }; // the words are looked at now and then
    reopen_rails();
    struct gpsh_op put = fake_put(pair.heap, 0, 8);
    fake_post_op(&pair, &put);
    pair.control[PAIR_NOTES / 8 + 1] = 1;
    for (int i = 0; i < LOOKS; i++)
        gpsh_verbs_ops.progress(pair.channel);
    cr_assert_eq(pair.channel->pending, 1);
    fake_settle(&pair);
    cr_assert(pair.channel->flows[1].completed == 1 && pair.failures == 0);
}

// The put must not overtake the get on its new way either.
Test(verbs_rail, rail_lost__put_behind_a_get_and_a_fence__still_is_fenced)
{
    reopen_rails();
    struct gpsh_op get = fake_put(pair.heap, 0, 4096), put = get;
    get.kind = GPSH_OP_GET;
    fake_post_op(&pair, &get);
    gpsh_verbs_ops.fence(pair.channel, 1);
    fake_post_op(&pair, &put);
    cr_assert(fake.journal[1].wr.send_flags & IBV_SEND_FENCE);
    int before = fake.n_posts;
    fake_run(1, IBV_WC_RETRY_EXC_ERR);
    fake_settle(&pair);
    int gets = 0, puts = 0;
    for (int i = before; i < fake.n_posts; i++) {
        const struct ibv_send_wr *wr = &fake.journal[i].wr;
        bool whole = wr->sg_list->length == get.bytes;
        gets += whole && wr->opcode == IBV_WR_RDMA_READ;
        if (!whole || wr->opcode != IBV_WR_RDMA_WRITE)
            continue;
        puts++;
        cr_assert(gets == 1 && wr->send_flags & IBV_SEND_FENCE);
    }
    cr_assert_eq(puts, 1);
    cr_assert_eq(pair.channel->flows[1].completed, 2);
}

// It was perhaps executed, and its source may be something else by now, unless the poster keeps it.
static int lose_rail_with_small_put(uint8_t flags, uint64_t bytes)
{
    reopen_rails();
    struct gpsh_op put = fake_put(pair.heap, 0, bytes);
    put.flags = flags;
    fake_post_op(&pair, &put);
    fake_run(1, IBV_WC_RETRY_EXC_ERR);
    fake_settle(&pair);
    cr_assert_eq(pair.channel->pending, 0);
    return pair.channel->flows[1].error;
}

Test(verbs_rail, rail_lost__small_put__repeated_if_its_source_is_kept)
{
    cr_assert_eq(lose_rail_with_small_put(GPSH_OP_KEPT, 64), 0);
    cr_assert_eq(lose_rail_with_small_put(0, 64), GPUSHMEM_ERR_PE_FAILED);
    cr_assert_eq(lose_rail_with_small_put(GPSH_OP_KEPT, 8), GPUSHMEM_ERR_PE_FAILED, "a flag");
}

Test(verbs_rail, post_refused_by_one_rail__goes_by_the_other)
{
    reopen_rails();
    struct gpsh_op put = fake_put(pair.heap, 0, 4096);
    memset(pair.heap, 5, 4096);
    fake.post_error = 22; // EINVAL
    fake.post_error_device = 1;
    cr_assert_eq(fake_post_op(&pair, &put), GPSH_POST_IN_FLIGHT);
    fake_settle(&pair);
    cr_assert(pair.channel->flows[1].completed == 1 && pair.channel->flows[1].error == 0);
    cr_assert(pair.there[4095] == 5 && pair.failures == 0);
}

Test(verbs_rail, fatal_event_of_one_rail__goes_by_the_other)
{
    reopen_rails();
    struct gpsh_op put = fake_put(pair.heap, 0, 4096);
    fake_post_op(&pair, &put);
    fake.event = 1 + IBV_EVENT_QP_FATAL;
    fake.event_qp = fake.journal[0].qp;
    for (int i = 0; i < 20000 && !fake.killed_qps; i++)
        gpsh_verbs_ops.progress(pair.channel);
    fake_settle(&pair);
    cr_assert(pair.channel->flows[1].completed == 1 && pair.channel->flows[1].error == 0);
    cr_assert(fake.killed_qps == 1 && pair.failures == 0);
}

// An atomic was executed and answered; what is lost is the read that proves it visible. Executed
// once more it would count twice.
Test(verbs_rail, rail_lost__read_of_an_atomic__the_atomic_is_not_repeated)
{
    reopen_rails();
    struct gpsh_op add = fake_put(NULL, 0, 0);
    add.kind = GPSH_OP_PUT_SIGNAL;
    add.flags = GPSH_OP_SIGNAL_ADD;
    add.signal = 64;
    add.operand = 1;
    fake_post_op(&pair, &add);
    cr_assert_eq(fake.n_posts, 2);
    fake_run(2, IBV_WC_RETRY_EXC_ERR); // the first was executed
    fake_settle(&pair);
    cr_assert_eq(pair.channel->pending, 0);
    cr_assert_eq(*(uint64_t *)(pair.there + 64), 1);
    cr_assert_eq(pair.channel->flows[1].error, GPUSHMEM_ERR_PE_FAILED);
}
