// SPDX-License-Identifier: BSD-3-Clause
// Failures over fake verbs: what becomes of a flow and its operations when a peer or a queue pair
// is lost.
#define _GNU_SOURCE // usleep
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

// The peer's end of the queue pair may have failed by a request of the peer's own.
Test(verbs_failure, no_answer_of_a_process_that_lives__is_a_lost_connection)
{
    struct gpsh_op op = fake_put(pair.heap, 0, 8);
    pair.lives = true;
    fake_post_op(&pair, &op);
    fake_run(1, IBV_WC_RETRY_EXC_ERR);
    gpsh_verbs_ops.progress(pair.channel);
    cr_assert_eq(pair.channel->flows[1].error, GPUSHMEM_ERR_TRANSPORT);
    cr_assert(strstr(gpsh_last_error(), "does not answer"));
    cr_assert(strstr(gpsh_last_error(), "; its process lives"), "%s", gpsh_last_error());
    cr_assert(pair.failures == 1 && pair.cut_off == 1);
    cr_assert(pair.channel->failed, "quiet has to tell it");
}

Test(verbs_failure, no_answer_of_a_process_of_which_nothing_is_known__may_be_its_death)
{
    struct gpsh_op op = fake_put(pair.heap, 0, 8);
    fake_post_op(&pair, &op);
    fake_run(1, IBV_WC_RETRY_EXC_ERR);
    gpsh_verbs_ops.progress(pair.channel);
    cr_assert(strstr(gpsh_last_error(), "; whether its process lives is not known"), "%s",
              gpsh_last_error());
    cr_assert(pair.failed_code == GPUSHMEM_ERR_PE_FAILED && !pair.cut_off);
}

Test(verbs_failure, remote_access__is_no_dead_peer)
{
    struct gpsh_op op = fake_put(pair.heap, 0, 8);
    fake_post_op(&pair, &op);
    fake_run(1, IBV_WC_REM_ACCESS_ERR);
    gpsh_verbs_ops.progress(pair.channel);
    cr_assert_eq(pair.channel->flows[1].error, GPUSHMEM_ERR_TRANSPORT);
    cr_assert(strstr(gpsh_last_error(), "outside its heap"));
    cr_assert(pair.failures == 1 && pair.failed_code == GPUSHMEM_ERR_TRANSPORT && !pair.cut_off);
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
