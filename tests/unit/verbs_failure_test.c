// SPDX-License-Identifier: BSD-3-Clause
// Failures over fake verbs: what becomes of a flow and its operations when a peer, a queue pair or
// a rail is lost.
#define _GNU_SOURCE // usleep
#include <errno.h>
#include <unistd.h>

#include "core/error.h"
#include "transports/verbs/post/verbs_posting.h"
#include "verbs_rails.h"

TestSuite(verbs_failure, .init = open_one, .fini = close_all);

struct counted {
    struct gpsh_completion completion;
    int calls, failed;
};

static void count(struct gpsh_completion *self, int status)
{
    struct counted *counted = (struct counted *)self;
    counted->calls++;
    counted->failed += status < 0;
}

Test(verbs_failure, error_completion__ends_its_flow_and_no_other)
{
    struct counted counted = {.completion.done = count};
    struct gpsh_op op = fake_put(pair.heap, 0, 8), other = fake_put(pair.heap, 0, 8);
    op.completion = &counted.completion;
    for (int i = 0; i < 4; i++)
        fake_post_op(&pair, &op);
    fake_run(2, IBV_WC_RETRY_EXC_ERR); // the first arrived
    gpsh_verbs_ops.progress(pair.channel);
    cr_assert(pair.failures == 1 && pair.failed_pe == 1);
    cr_assert_eq(counted.calls, 1, "the NIC has two requests yet, and their memory");
    cr_assert_eq(pair.channel->pending, 3);
    fake_settle(&pair);
    cr_assert(counted.calls == 4 && counted.failed == 3);
    cr_assert_eq(pair.channel->flows[1].error, GPUSHMEM_ERR_PE_FAILED);
    cr_assert_eq(pair.channel->flows[1].completed, 4);
    cr_assert_eq(fake.killed_qps, 1);
    cr_assert_eq(fake_post_op(&pair, &op), GPUSHMEM_ERR_PE_FAILED);
    other.pe = 0;
    cr_assert_eq(fake_post_op(&pair, &other), GPSH_POST_CAPTURED);
    fake_settle(&pair);
    cr_assert_eq(pair.channel->flows[0].completed, 1);
    cr_assert_eq(pair.channel->flows[0].error, 0);
}

Test(verbs_failure, remote_access__is_no_dead_peer)
{
    struct gpsh_op op = fake_put(pair.heap, 0, 8);
    fake_post_op(&pair, &op);
    fake_run(1, IBV_WC_REM_ACCESS_ERR);
    gpsh_verbs_ops.progress(pair.channel);
    cr_assert_eq(pair.channel->flows[1].error, GPUSHMEM_ERR_TRANSPORT);
    cr_assert(strstr(gpsh_last_error(), "outside its heap"));
    cr_assert(pair.failures == 1 && pair.failed_code == GPUSHMEM_ERR_TRANSPORT);
    cr_assert(pair.channel->failed, "quiet has to tell it, since no PE is lost");
}

Test(verbs_failure, flushed_requests__give_their_blocks_back)
{
    char outside[3000] = {0};
    struct gpsh_op op = fake_put(outside, 0, sizeof outside);
    fake_pair_close(&pair);
    fake_reset();
    pair.settings[0] = "GPUSHMEM_TEST_VERBS_BOUNCE=64K"; // 12 large blocks
    cr_assert(fake_pair_open(&pair) == 0);
    for (int i = 0; i < 20; i++)
        fake_post_op(&pair, &op);
    fake_run(1, IBV_WC_RETRY_EXC_ERR);
    fake_settle(&pair);
    int before = fake.n_posts;
    op.pe = 0;
    for (int i = 0; i < 12; i++)
        fake_post_op(&pair, &op);
    cr_assert_eq(fake.n_posts, before + 12, "all blocks are free again");
    fake_settle(&pair);
}

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

Test(verbs_failure, rail_lost__puts_without_order__go_by_the_other)
{
    cr_assert_eq(lose_rail_with_two_puts(false), 0);
    cr_assert_eq(pair.failures, 0);
}

Test(verbs_failure, rail_lost__fence_between_puts__nothing_is_repeated)
{
    cr_assert_eq(lose_rail_with_two_puts(true), GPUSHMEM_ERR_PE_FAILED);
    cr_assert_eq(fake.n_posts, 4, "each put, and the read of what it wrote");
}

Test(verbs_failure, post_refused__ends_the_flow)
{
    struct counted counted = {.completion.done = count};
    struct gpsh_op op = fake_put(pair.heap, 0, 8);
    op.completion = &counted.completion;
    fake.post_error = 22; // EINVAL
    cr_assert_geq(fake_post_op(&pair, &op), 0);
    gpsh_verbs_ops.progress(pair.channel);
    cr_assert(counted.calls == 1 && counted.failed == 1);
    cr_assert_eq(pair.channel->pending, 0);
    cr_assert_eq(fake_post_op(&pair, &op), GPUSHMEM_ERR_TRANSPORT);
}

// A NIC that is gone flushes nothing: the program is not kept waiting for ever, and what comes all
// the same is not taken for something else.
Test(verbs_failure, flushed_completions_missing__complete_after_a_while)
{
    struct counted counted = {.completion.done = count};
    struct gpsh_op op = fake_put(pair.heap, 0, 4096), other = fake_put(pair.heap, 0, 8);
    op.completion = &counted.completion;
    for (int i = 0; i < 4; i++)
        fake_post_op(&pair, &op);
    gpsh_verbs_ops.peer_lost(pair.transport, 1);
    gpsh_verbs_ops.progress(pair.channel);
    cr_assert_eq(pair.failures, 1);
    cr_assert_eq(counted.calls, 0);
    for (int i = 0; i < 60000 && pair.channel->pending; i++) {
        gpsh_verbs_ops.progress(pair.channel);
        usleep(1000);
    }
    cr_assert(counted.calls == 4 && counted.failed == 4);
    fake_settle(&pair);
    other.pe = 0;
    fake_post_op(&pair, &other);
    fake_settle(&pair);
    cr_assert_eq(pair.channel->flows[0].completed, 1);
    cr_assert_eq(pair.channel->flows[1].completed, 4);
}

// A put that finds out, while it makes room for itself, that the flow has just failed leaves no
// block behind.
Test(verbs_failure, capture_on_a_failing_flow__block_comes_back)
{
    static char outside[1000];
    struct gpsh_op held = fake_put(outside, 0, 8), get = fake_put(outside, 0, 1000);
    fake_pair_close(&pair);
    fake_reset();
    pair.settings[0] = "GPUSHMEM_TEST_VERBS_SIGNAL_EVERY=3";
    pair.settings[1] = "GPUSHMEM_TEST_VERBS_BOUNCE=64K"; // 8 small and 12 large blocks
    cr_assert(fake_pair_open(&pair) == 0);
    held.flags = GPSH_OP_MORE | GPSH_OP_CAPTURE;
    fake_post_op(&pair, &held);
    fake_post_op(&pair, &held);
    fake.post_error = 22; // EINVAL
    cr_assert_eq(fake_post_op(&pair, &held), GPUSHMEM_ERR_TRANSPORT);
    fake.post_error = 0;
    get.kind = GPSH_OP_GET;
    get.pe = 0;
    for (int i = 0; i < 20; i++)
        fake_post_op(&pair, &get);
    cr_assert_eq(fake.n_posts, 20, "all blocks are free");
    fake_settle(&pair);
}

Test(verbs_failure, waiting_operations__end_too)
{
    struct counted counted = {.completion.done = count};
    struct gpsh_op loop = fake_amo(GPSH_AMO_OR, 8, 0, 1, 0, NULL);
    loop.completion = &counted.completion;
    for (int i = 0; i < 30; i++) // one under way, 29 behind it
        fake_post_op(&pair, &loop);
    fake_run(1, IBV_WC_RETRY_EXC_ERR);
    fake_settle(&pair);
    cr_assert(counted.calls == 30 && counted.failed == 30);
    cr_assert_eq(pair.channel->pending, 0);
}

Test(verbs_failure, polling_fails__every_flow_is_told)
{
    struct gpsh_op op = fake_put(pair.heap, 0, 8), own = op;
    own.pe = 0;
    fake_post_op(&pair, &own);
    fake_settle(&pair);
    fake_post_op(&pair, &op);
    fake.poll_fails = true;
    gpsh_verbs_ops.progress(pair.channel);
    cr_assert_eq(pair.channel->flows[0].error, GPUSHMEM_ERR_TRANSPORT);
    cr_assert_eq(pair.channel->flows[1].error, GPUSHMEM_ERR_TRANSPORT);
    gpsh_verbs_ops.progress(pair.channel); // its queue pairs have been reset
    cr_assert_eq(pair.channel->pending, 0);
}

Test(verbs_failure, fatal_event__ends_what_would_never_complete)
{
    struct gpsh_op op = fake_put(pair.heap, 0, 8);
    fake_post_op(&pair, &op);
    fake.event = 1 + IBV_EVENT_QP_FATAL;
    fake.event_qp = fake.journal[0].qp;
    for (int i = 0; i < 20000 && !pair.channel->flows[1].error; i++)
        gpsh_verbs_ops.progress(pair.channel);
    fake_settle(&pair);
    cr_assert_eq(pair.channel->pending, 0);
    cr_assert_eq(pair.channel->flows[1].error, GPUSHMEM_ERR_TRANSPORT);
    cr_assert_eq(pair.channel->flows[0].error, 0);
}

static const struct ibv_device *device_of(int post)
{
    return fake.journal[post].qp->context->device;
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
Test(verbs_failure, rail_lost__peer_is_told_by_the_other_before_anything_else)
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

Test(verbs_failure, rail_lost__put_by_the_other__complete_when_read_back)
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

Test(verbs_failure, peer_has_left_a_rail__next_put_goes_by_another)
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
Test(verbs_failure, peer_has_left_a_rail__put_under_way_by_it__is_waited_for)
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
Test(verbs_failure, rail_lost__put_behind_a_get_and_a_fence__still_is_fenced)
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

Test(verbs_failure, rail_lost__small_put__repeated_if_its_source_is_kept)
{
    cr_assert_eq(lose_rail_with_small_put(GPSH_OP_KEPT, 64), 0);
    cr_assert_eq(lose_rail_with_small_put(0, 64), GPUSHMEM_ERR_PE_FAILED);
    cr_assert_eq(lose_rail_with_small_put(GPSH_OP_KEPT, 8), GPUSHMEM_ERR_PE_FAILED, "a flag");
}

Test(verbs_failure, post_refused_by_one_rail__goes_by_the_other)
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

Test(verbs_failure, fatal_event_of_one_rail__goes_by_the_other)
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
Test(verbs_failure, rail_lost__read_of_an_atomic__the_atomic_is_not_repeated)
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

// ------------------------------------------------- the peer tells how far it got by a rail that is
// lost

enum { QUESTIONS = PAIR_NOTES / 8 + 2, ANSWERS = PAIR_NOTES / 8 + 4 };

static void open_asking(void)
{
    failover = "GPUSHMEM_VERBS_FAILOVER_MS=3600000";
    reopen_rails();
}

static struct verbs_lane *lane_0(void)
{
    return &verbs_flow_at((struct verbs_channel *)pair.channel, 1)->lanes[0];
}

// Whatever is under way by rail 0 fails, and was executed up to that packet, as PE 1 says.
static int lose_rail_after(uint32_t packets)
{
    uint64_t answer = (uint64_t)verbs_question(0, 0) << 32 | VERBS_ANSWER_KNOWN |
                      ((lane_0()->first_psn + packets) & 0xffffff);
    pair.control_there[ANSWERS] = answer;
    fake_run(1, IBV_WC_RETRY_EXC_ERR);
    while (pair.channel->pending)
        fake_settle(&pair);
    return pair.channel->flows[1].error;
}

static int writes_to(const char *there)
{
    int n = 0;
    for (int i = 0; i < fake.n_posts; i++)
        n += fake.journal[i].wr.opcode == IBV_WR_RDMA_WRITE && device_of(i) != device_of(0) &&
             fake.journal[i].wr.wr.rdma.remote_addr == (uintptr_t)there;
    return n;
}

static void post_word(uint64_t value, uint64_t remote)
{
    struct gpsh_op put = fake_put((const char *)&value, remote, sizeof value);
    put.flags = GPSH_OP_CAPTURE | GPSH_OP_MORE;
    cr_assert_eq(fake_post_op(&pair, &put), GPSH_POST_CAPTURED);
}

// The third word's source does not exist any more when it is sent again.
Test(verbs_failure, rail_lost__peer_executed_two_words__the_third_alone_is_sent_again)
{
    open_asking();
    for (uint64_t i = 0; i < 3; i++)
        post_word(7 + i, 8 * i);
    gpsh_verbs_ops.flush(pair.channel);
    cr_assert_eq(lose_rail_after(2), 0);
    cr_assert_eq(pair.control_there[QUESTIONS], verbs_question(0, 0));
    cr_assert(!writes_to(pair.there) && !writes_to(pair.there + 8));
    cr_assert_eq(writes_to(pair.there + 16), 1);
    cr_assert_eq(*(uint64_t *)(void *)(pair.there + 16), 9);
    cr_assert_eq(pair.failures, 0);
}

Test(verbs_failure, rail_lost__numbers_of_packets_begin_anew__counted_all_the_same)
{
    open_asking();
    lane_0()->first_psn = 0xffffff;
    for (uint64_t i = 0; i < 3; i++)
        post_word(7 + i, 8 * i);
    gpsh_verbs_ops.flush(pair.channel);
    cr_assert_eq(lose_rail_after(2), 0);
    cr_assert(!writes_to(pair.there + 8) && writes_to(pair.there + 16) == 1);
}

// A put of three packets, of which two have come, then a word.
static int lose_rail_in_large_put(uint32_t packets)
{
    open_asking();
    uint64_t bytes = 2ull * lane_0()->packet_bytes + 1;
    struct gpsh_op put = fake_put(pair.heap, 0, bytes);
    put.flags = GPSH_OP_MORE;
    fake_post_op(&pair, &put);
    post_word(5, 1 << 20);
    gpsh_verbs_ops.flush(pair.channel);
    return lose_rail_after(packets);
}

Test(verbs_failure, rail_lost__in_the_middle_of_a_put__all_of_it_is_sent_again)
{
    cr_assert_eq(lose_rail_in_large_put(2), 0);
    cr_assert(writes_to(pair.there) == 1 && writes_to(pair.there + (1 << 20)) == 1);
    cr_assert_eq(lose_rail_in_large_put(3), 0);
    cr_assert(writes_to(pair.there) == 0 && writes_to(pair.there + (1 << 20)) == 1);
}

Test(verbs_failure, rail_lost__peer_tells_of_packets_never_sent__flow_fails)
{
    cr_assert_eq(lose_rail_in_large_put(6), GPUSHMEM_ERR_PE_FAILED, "put, word, and a read");
    cr_assert_eq(lose_rail_in_large_put(0xffffff), GPUSHMEM_ERR_PE_FAILED);
    cr_assert_eq(lose_rail_in_large_put(5), 0);
}

// From memory that no NIC knows, in a block for each piece: the caller leaves it alone until all of
// it is there, so that pieces which a rail has lost can be read again.
Test(verbs_failure, rail_lost__in_the_middle_of_a_put_in_blocks__all_of_it_is_sent_again)
{
    static char source[100000];
    open_asking();
    memset(source, 7, sizeof source);
    struct gpsh_op put = fake_put(source, 0, sizeof source);
    cr_assert_eq(fake_post_op(&pair, &put), GPSH_POST_IN_FLIGHT);
    cr_assert(fake.n_posts > 1 && pair.channel->flows[1].completed == 0);
    cr_assert_eq(lose_rail_after(0), 0);
    cr_assert(!memcmp(pair.there, source, sizeof source));
}

// Its packets are not among those that the peer may have.
Test(verbs_failure, rail_lost__large_put_not_posted_yet__is_not_counted)
{
    open_asking();
    uint64_t bytes = 2ull * lane_0()->packet_bytes + 1;
    struct gpsh_op put = fake_put(pair.heap, 1 << 20, bytes);
    post_word(5, 0);
    gpsh_verbs_ops.flush(pair.channel);
    fake.post_error = ENOMEM; // the queue claims to be full
    fake.post_error_device = 1;
    fake_post_op(&pair, &put);
    cr_assert_eq(fake_waiting(), 2, "the word, and a read");
    cr_assert_eq(lose_rail_after(1), 0);
    cr_assert(writes_to(pair.there) == 0 && writes_to(pair.there + (1 << 20)) == 1);
}

Test(verbs_failure, rail_lost__executed_puts_signal_missing__only_that_is_sent)
{
    open_asking();
    struct gpsh_op put = fake_put(pair.heap, 0, 64);
    put.kind = GPSH_OP_PUT_SIGNAL;
    put.flags = GPSH_OP_CAPTURE;
    put.signal = 4096;
    put.operand = 3;
    fake_post_op(&pair, &put);
    cr_assert_eq(lose_rail_after(1), 0);
    cr_assert(writes_to(pair.there) == 0 && writes_to(pair.there + 4096) == 1);
    cr_assert_eq(*(uint64_t *)(void *)(pair.there + 4096), 3);
}

static int told;
static void hear(struct gpsh_completion *self, int status)
{
    (void)self;
    told = status;
}

// It may not be done twice, and its answer is gone.
Test(verbs_failure, rail_lost__fetching_add_was_executed__fails_alone_if_somebody_hears)
{
    for (int heard = 0; heard < 2; heard++) {
        open_asking();
        uint64_t before = 77;
        struct gpsh_completion completion = {hear};
        struct gpsh_op add = fake_amo(GPSH_AMO_ADD, 8, 0, 1, 0, &before);
        add.completion = heard ? &completion : NULL;
        told = 0;
        fake_post_op(&pair, &add);
        cr_assert_eq(lose_rail_after(1), heard ? 0 : GPUSHMEM_ERR_PE_FAILED);
        cr_assert_eq(told, heard ? GPUSHMEM_ERR_TRANSPORT : 0);
        cr_assert(before == 77 && *(uint64_t *)(void *)pair.there == 0);
    }
}

// One that compares and swaps until it fits: whether it swapped nobody knows if it was executed.
Test(verbs_failure, rail_lost__loop_of_an_atomic_was_executed__flow_fails)
{
    for (uint32_t executed = 0; executed < 2; executed++) {
        open_asking();
        struct gpsh_op and = fake_amo(GPSH_AMO_AND, 8, 0, 1, 0, NULL);
        fake_post_op(&pair, &and);
        cr_assert_eq(fake.journal[0].wr.opcode, IBV_WR_ATOMIC_CMP_AND_SWP);
        // not executed, it cannot go by the other rail, whose NIC is not atomic to this one's
        cr_assert_eq(lose_rail_after(executed),
                     executed ? GPUSHMEM_ERR_PE_FAILED : GPUSHMEM_ERR_TRANSPORT);
    }
}

// Only rail 0's NIC is atomic to what others do there; but a fetch is a read.
Test(verbs_failure, rail_lost__fetch_goes_by_the_other__add_does_not)
{
    open_asking();
    uint64_t value = 0;
    *(uint64_t *)(void *)pair.there = 41;
    struct gpsh_op fetch = fake_amo(GPSH_AMO_FETCH, 8, 0, 0, 0, &value);
    fake_post_op(&pair, &fetch);
    cr_assert_eq(lose_rail_after(1), 0);
    cr_assert_eq(value, 41);
    struct gpsh_op add = fake_amo(GPSH_AMO_ADD, 8, 0, 1, 0, NULL);
    fake_post_op(&pair, &add);
    fake_settle(&pair);
    cr_assert_eq(pair.channel->flows[1].error, GPUSHMEM_ERR_TRANSPORT);
}

static uint32_t ask_here(uint32_t question)
{
    _Atomic uint64_t *answer = (_Atomic uint64_t *)(void *)&pair.control[ANSWERS + 1];
    atomic_store((_Atomic uint64_t *)(void *)&pair.control[QUESTIONS + 1], question);
    while (atomic_load(answer) >> 32 != question)
        usleep(1000);
    return (uint32_t)atomic_load(answer);
}

Test(verbs_failure, asked_by_a_peer__answers_what_the_queue_pair_expects_and_ends_it)
{
    open_asking();
    fake.rq_psn = 4711;
    cr_assert_eq(ask_here(verbs_question(0, 1)), VERBS_ANSWER_KNOWN | 4711);
    cr_assert_eq(fake.killed_qps, 1);
    fake.query_qp_error = 95; // EOPNOTSUPP
    cr_assert_eq(ask_here(verbs_question(0, 0)), 0);
    cr_assert_eq(ask_here(verbs_question(7, 0)), 0, "there is no such channel");
    cr_assert_eq(ask_here(verbs_question(0, 2)), 0, "nor such a rail");
    cr_assert_eq(ask_here(12), 0);
    cr_assert_eq(fake.killed_qps, 1);
}

// What was counted may be on its way to memory still, when the queue pair ends.
Test(verbs_failure, asked_by_a_peer__tells_a_while_after_the_end_of_the_queue_pair)
{
    open_asking();
    fake.rq_psn = 4711;
    cr_assert_eq(ask_here(verbs_question(0, 1)), VERBS_ANSWER_KNOWN | 4711);
    cr_assert_geq(fake.queried_ns, fake.killed_ns + 10000000);
}

Test(verbs_failure, asked_by_a_peer__queue_pair_goes_on_or_has_forgotten__does_not_tell)
{
    open_asking();
    fake.rq_psn = 4711;
    fake.unkillable = true;
    cr_assert_eq(ask_here(verbs_question(0, 1)), 0);
    fake.unkillable = false;
    gpsh_verbs_qp_kill(lane_0()->qp); // this PE has lost the rail as well
    fake.rq_psn = 0;
    cr_assert_eq(ask_here(verbs_question(0, 0)), 0);
}

Test(verbs_failure, flow_is_flushed__one_of_two_lost_lanes_has_requests__not_yet)
{
    open_asking();
    struct gpsh_op put = fake_put(pair.heap, 0, 64);
    fake_post_op(&pair, &put);
    struct verbs_lane *lanes = lane_0();
    cr_assert(lanes[0].head != lanes[0].tail && lanes[1].head == lanes[1].tail);
    lanes[0].failed = lanes[1].failed = true;
    cr_assert_not(gpsh_verbs_flow_is_flushed(lanes[0].flow));
    lanes[0].failed = lanes[1].failed = false;
    fake_settle(&pair);
}

// A program that computes for two hours between two calls has not waited for two hours.
Test(verbs_failure, rail_lost__program_is_away_for_longer_than_it_would_wait__asks_all_the_same)
{
    const uint64_t away_ns = 2 * 3600 * UINT64_C(1000000000);
    open_asking();
    post_word(7, 0);
    gpsh_verbs_ops.flush(pair.channel);
    fake_run(1, IBV_WC_RETRY_EXC_ERR);
    gpsh_verbs_ops.progress(pair.channel);
    cr_assert(lane_0()->doubt);
    lane_0()->doubt->until_ns -= away_ns;
    lane_0()->doubt->driven_ns -= away_ns;
    pair.control_there[ANSWERS] = (uint64_t)verbs_question(0, 0) << 32 | VERBS_ANSWER_KNOWN |
                                  ((lane_0()->first_psn + 1) & 0xffffff);
    while (pair.channel->pending)
        fake_settle(&pair);
    cr_assert_eq(pair.channel->flows[1].error, 0);
}

// The lock of 4-byte atomics is rail 0's affair.
Test(verbs_failure, rail_1_lost__while_a_lock_is_held_by_rail_0__is_asked_all_the_same)
{
    static char source[100000];
    close_all();
    memset(&pair, 0, sizeof pair);
    fake_reset();
    fake.n_devices = 2;
    fake.atomic_cap = IBV_ATOMIC_HCA;
    pair.n_locks = 8;
    pair.settings[0] = "GPUSHMEM_VERBS_RAILS=2";
    pair.settings[1] = "GPUSHMEM_VERBS_FAILOVER_MS=3600000";
    cr_assert_eq(fake_pair_open(&pair), 0);
    struct gpsh_op add = fake_amo(GPSH_AMO_ADD, 4, 0, 1, 0, NULL);
    cr_assert_eq(fake_post_op(&pair, &add), GPSH_POST_URGENT);
    struct gpsh_op put = fake_put(source, 4096, sizeof source);
    cr_assert(fake_post_op(&pair, &put) >= 0);
    struct verbs_lane *second = &lane_0()[1];
    cr_assert_neq(second->head, second->tail);
    int until = 0;
    while (device_of(until) == device_of(0))
        until++;
    pair.control_there[ANSWERS] = (uint64_t)verbs_question(0, 1) << 32 | VERBS_ANSWER_KNOWN |
                                  ((second->first_psn + second->head + second->more) & 0xffffff);
    fake_run(until + 1, IBV_WC_RETRY_EXC_ERR);
    while (pair.channel->pending)
        fake_settle(&pair);
    cr_assert_eq(pair.channel->flows[1].error, 0);
    cr_assert_eq(*(uint32_t *)(void *)pair.there, 1);
}
