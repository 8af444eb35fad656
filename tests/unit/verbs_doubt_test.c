// SPDX-License-Identifier: BSD-3-Clause
// The peer tells how far it got by a rail that is lost: what it has not executed goes by the other.
#define _GNU_SOURCE // usleep
#include <errno.h>
#include <unistd.h>

#include "core/error.h"
#include "transports/verbs/post/verbs_posting.h"
#include "verbs_rails.h"

TestSuite(verbs_doubt, .init = open_one, .fini = close_all);

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
Test(verbs_doubt, rail_lost__peer_executed_two_words__the_third_alone_is_sent_again)
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

Test(verbs_doubt, rail_lost__numbers_of_packets_begin_anew__counted_all_the_same)
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

Test(verbs_doubt, rail_lost__in_the_middle_of_a_put__all_of_it_is_sent_again)
{
    cr_assert_eq(lose_rail_in_large_put(2), 0);
    cr_assert(writes_to(pair.there) == 1 && writes_to(pair.there + (1 << 20)) == 1);
    cr_assert_eq(lose_rail_in_large_put(3), 0);
    cr_assert(writes_to(pair.there) == 0 && writes_to(pair.there + (1 << 20)) == 1);
}

Test(verbs_doubt, rail_lost__peer_tells_of_packets_never_sent__flow_fails)
{
    cr_assert_eq(lose_rail_in_large_put(6), GPUSHMEM_ERR_PE_FAILED, "put, word, and a read");
    cr_assert_eq(lose_rail_in_large_put(0xffffff), GPUSHMEM_ERR_PE_FAILED);
    cr_assert_eq(lose_rail_in_large_put(5), 0);
}

// From memory that no NIC knows, in a block for each piece: the caller leaves it alone until all of
// it is there, so that pieces which a rail has lost can be read again.
Test(verbs_doubt, rail_lost__in_the_middle_of_a_put_in_blocks__all_of_it_is_sent_again)
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
Test(verbs_doubt, rail_lost__large_put_not_posted_yet__is_not_counted)
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

Test(verbs_doubt, rail_lost__executed_puts_signal_missing__only_that_is_sent)
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
Test(verbs_doubt, rail_lost__fetching_add_was_executed__fails_alone_if_somebody_hears)
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
Test(verbs_doubt, rail_lost__loop_of_an_atomic_was_executed__flow_fails)
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
Test(verbs_doubt, rail_lost__fetch_goes_by_the_other__add_does_not)
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

Test(verbs_doubt, asked_by_a_peer__answers_what_the_queue_pair_expects_and_ends_it)
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
Test(verbs_doubt, asked_by_a_peer__tells_a_while_after_the_end_of_the_queue_pair)
{
    open_asking();
    fake.rq_psn = 4711;
    cr_assert_eq(ask_here(verbs_question(0, 1)), VERBS_ANSWER_KNOWN | 4711);
    cr_assert_geq(fake.queried_ns, fake.killed_ns + 10000000);
}

Test(verbs_doubt, asked_by_a_peer__queue_pair_goes_on_or_has_forgotten__does_not_tell)
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

Test(verbs_doubt, flow_is_flushed__one_of_two_lost_lanes_has_requests__not_yet)
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
Test(verbs_doubt, rail_lost__program_is_away_for_longer_than_it_would_wait__asks_all_the_same)
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

// The lock of 4-byte atomics is rail 0's affair: the put goes by that.
Test(verbs_doubt, rail_1_lost__while_a_lock_is_held_by_rail_0__goes_by_that)
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

static int swaps(void)
{
    int n = 0;
    for (int i = 0; i < fake.n_posts; i++)
        n += fake.journal[i].wr.opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
    return n;
}

// Two atomics that compare and swap until it fits: the first has found another word than it
// guessed, the second is in doubt. If the flow fails after all, nothing was done since.
Test(verbs_doubt, rail_lost__next_step_of_an_atomic__waits_for_the_answer)
{
    open_asking();
    struct verbs_flow *flow = lane_0()->flow;
    uint64_t *words = (uint64_t *)(void *)pair.there;
    flow->global = 3; // the NICs of both rails are atomic to each other
    words[0] = words[1] = 5;
    for (uint64_t i = 0; i < 2; i++) {
        struct gpsh_op and = fake_amo(GPSH_AMO_AND, 8, 8 * i, 4, 0, NULL);
        cr_assert_geq(fake_post_op(&pair, &and), 0);
    }
    fake_run(2, IBV_WC_RETRY_EXC_ERR);
    gpsh_verbs_ops.progress(pair.channel);
    cr_assert(lane_0()->doubt && flow->loops_ready == 1);
    gpsh_verbs_ops.progress(pair.channel);
    cr_assert_eq(swaps(), 2, "posted while it is not known how far PE 1 got");
    pair.control_there[ANSWERS] = (uint64_t)verbs_question(0, 0) << 32 | VERBS_ANSWER_KNOWN |
                                  ((lane_0()->first_psn + 1) & 0xffffff);
    while (pair.channel->pending)
        fake_settle(&pair);
    cr_assert(words[0] == 4 && words[1] == 4);
    cr_assert_eq(pair.channel->flows[1].error, 0);
}
