// SPDX-License-Identifier: BSD-3-Clause
// A NIC that flushes a failed queue pair later than it is waited for: what the queue pair had under
// way is given back when it was reset, and not before.
#define _GNU_SOURCE
#include <errno.h>

#include "core/error.h"
#include "transports/verbs/post/verbs_posting.h"
#include "verbs_rails.h"

enum { DEPTH = 32, PUT_BYTES = 256, PROGRESSES = 3 };

static void open_small(void)
{
    fake_reset();
    memset(&pair, 0, sizeof pair);
    fake.max_cqe = DEPTH; // for both PEs together
    pair.settings[0] = "GPUSHMEM_TEST_VERBS_SQ_DEPTH=32";
    pair.settings[1] = "GPUSHMEM_TEST_VERBS_SIGNAL_EVERY=3";
    cr_assert(fake_pair_open(&pair) == 0, "%s", gpsh_last_error());
}

TestSuite(verbs_late, .init = open_small, .fini = close_all);

static void post_puts(int pe)
{
    struct gpsh_op op = fake_put(pair.heap, 0, PUT_BYTES);
    op.pe = pe;
    for (int i = 0; i < DEPTH; i++)
        cr_assert_geq(fake_post_op(&pair, &op), 0, "%s", gpsh_last_error());
    gpsh_verbs_ops.flush(pair.channel);
}

static struct verbs_lane *lane_to(int pe)
{
    return &verbs_flow_at((struct verbs_channel *)pair.channel, pe)->lanes[0];
}

// PE 1 is lost with a full send queue, and the time for its flushed completions is over.
static void lose_peer(void)
{
    post_puts(1);
    gpsh_verbs_ops.peer_lost(pair.transport, 1);
    gpsh_verbs_ops.progress(pair.channel);
    cr_assert_neq(pair.channel->flows[1].error, 0);
    cr_assert_eq(pair.channel->pending, DEPTH, "the NIC may still read their sources");
    lane_to(1)->flush_ns = 1;
    for (int i = 0; i < PROGRESSES; i++)
        gpsh_verbs_ops.progress(pair.channel);
    cr_assert_eq(pair.channel->pending, 0);
}

Test(verbs_late, time_is_up__operations_are_complete_when_the_nic_has_let_go)
{
    lose_peer();
    cr_assert_eq(fake_waiting(), 0, "%d requests are executed later", fake_waiting());
}

Test(verbs_late, time_is_up__their_completions_do_not_overrun_the_queue)
{
    lose_peer();
    post_puts(0);
    fake_run(FAKE_JOURNAL, IBV_WC_SUCCESS);
    cr_assert_eq(fake.overruns, 0);
    fake_settle(&pair);
    cr_assert_eq(pair.channel->flows[0].completed, DEPTH);
}

// What the NIC had added before is in the queue still.
Test(verbs_late, flushed_before_the_reset__places_are_free_when_polled)
{
    post_puts(1);
    gpsh_verbs_ops.peer_lost(pair.transport, 1);
    gpsh_verbs_ops.progress(pair.channel);
    lane_to(1)->flush_ns = 1;
    fake_run(FAKE_JOURNAL, IBV_WC_SUCCESS); // flushes: more than one poll takes
    cr_assert(!gpsh_verbs_lane_is_flushed(lane_to(1)));
    cr_assert(lane_to(1)->reset && lane_to(1)->cq->used == DEPTH);
    fake_settle(&pair);
    cr_assert_eq(lane_to(1)->cq->used, 0);
    cr_assert_eq(pair.channel->pending, 0);
}

// There is nothing more to be done about it; the program is told what has failed.
Test(verbs_late, device_refuses_the_reset__operations_are_complete_all_the_same)
{
    fake.unkillable = true;
    lose_peer();
    fake.unkillable = false;
}

// Then its completions come when nobody waits for them any more.
Test(verbs_late, device_refuses_the_reset__what_it_completes_later_is_nobodys, .timeout = 20)
{
    fake.unkillable = true;
    lose_peer();
    post_puts(0);
    fake_run(FAKE_JOURNAL, IBV_WC_SUCCESS);
    fake_settle(&pair);
    fake.unkillable = false;
    cr_assert_eq(pair.channel->flows[0].completed, DEPTH);
    cr_assert_eq(pair.channel->flows[1].completed, DEPTH);
    cr_assert_eq(lane_to(1)->cq->used, 0);
}

// The provider takes no more for the moment, and then the peer is lost.
Test(verbs_late, never_posted__places_are_free_again)
{
    struct gpsh_op op = fake_put(pair.heap, 0, PUT_BYTES);
    cr_assert_geq(fake_post_op(&pair, &op), 0, "%s", gpsh_last_error());
    fake.post_error = ENOMEM;
    fake.post_accept = 0;
    cr_assert_geq(fake_post_op(&pair, &op), 0, "%s", gpsh_last_error());
    cr_assert_eq(lane_to(1)->cq->used, 2);
    gpsh_verbs_ops.peer_lost(pair.transport, 1);
    fake_settle(&pair);
    cr_assert_eq(fake.n_posts, 1);
    cr_assert_eq(pair.channel->pending, 0);
    cr_assert_eq(lane_to(1)->cq->used, 0);
}

Test(verbs_late, reset_queue_pair__still_says_what_it_expected)
{
    fake.rq_psn = 4711;
    lose_peer();
    cr_assert_eq(atomic_load(&lane_to(1)->expected), VERBS_ANSWER_KNOWN | 4711);
}
