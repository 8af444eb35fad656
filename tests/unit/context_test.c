// SPDX-License-Identifier: BSD-3-Clause
// Operations, quiet and fence of the default context.
#define _GNU_SOURCE // pthread_getattr_np
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "context_rig.h"

Test(context, submit__no_room__flushes_drives_and_posts_again)
{
    begin(false);
    fake.full = 3;
    struct gpsh_op op = put_op(8);
    cr_assert_eq(gpsh_context_submit(&gpsh_default_context, &op, GPSH_WAIT_NONE), 0);
    cr_assert_eq(fake.posts, 1);
    cr_assert_eq(fake.flushes, 3);
    cr_assert_geq(fake.progresses, 3);
    end();
}

// The transport may have to connect first, which goes on only while somebody drives it.
Test(context, submit__first_to_a_pe__is_driven_for_a_moment)
{
    begin(false);
    fake.answer = GPSH_POST_CAPTURED;
    struct gpsh_op op = put_op(8);
    cr_assert_eq(gpsh_context_submit(&gpsh_default_context, &op, GPSH_WAIT_SOURCE), 0);
    cr_assert_eq(channels[0].flows[1].completed, 1);
    fake.complete_per_progress = 0;
    op.pe = 2;
    cr_assert_eq(gpsh_context_submit(&gpsh_default_context, &op, GPSH_WAIT_SOURCE), 0);
    cr_assert_eq(channels[0].flows[2].completed, 0, "it does not wait for ever");
    fake.complete_per_progress = 1;
    op = put_op(8);
    op.pe = 0;
    fake.progresses = 0;
    cr_assert_eq(gpsh_context_submit(&gpsh_default_context, &op, GPSH_WAIT_NONE), 0);
    cr_assert_eq(fake.progresses, 0, "a non-blocking put waits for nothing");
    end();
}

Test(context, submit__blocking_put__captures_small_and_completes_large)
{
    begin(false);
    fake.answer = GPSH_POST_CAPTURED;
    struct gpsh_op op = put_op(GPSH_CAPTURE_BYTES);
    cr_assert_eq(gpsh_context_submit(&gpsh_default_context, &op, GPSH_WAIT_NONE), 0);
    cr_assert_eq(gpsh_context_submit(&gpsh_default_context, &op, GPSH_WAIT_SOURCE), 0);
    cr_assert(fake.last.flags & GPSH_OP_CAPTURE);
    cr_assert_eq(channels[0].flows[1].completed, 0, "a captured source needs no waiting");
    fake.answer = GPSH_POST_IN_FLIGHT;
    op = put_op(GPSH_CAPTURE_BYTES + 1);
    cr_assert_eq(gpsh_context_submit(&gpsh_default_context, &op, GPSH_WAIT_SOURCE), 0);
    cr_assert(!(fake.last.flags & GPSH_OP_CAPTURE));
    cr_assert_eq(channels[0].flows[1].completed, 3,
                 "the source is in use until the put is complete");
    end();
}

Test(context, submit__urgent__completes_whatever_the_caller_waits_for)
{
    begin(false);
    fake.answer = GPSH_POST_URGENT;
    struct gpsh_op op = put_op(8);
    op.kind = GPSH_OP_AMO;
    cr_assert_eq(gpsh_context_submit(&gpsh_default_context, &op, GPSH_WAIT_NONE), 0);
    cr_assert_eq(channels[0].flows[1].completed, 1, "other PEs wait for it");
    end();
}

Test(context, submit__get__waits_and_nbi_does_not)
{
    begin(false);
    struct gpsh_op op = put_op(8);
    op.kind = GPSH_OP_GET;
    cr_assert_eq(gpsh_context_submit(&gpsh_default_context, &op, GPSH_WAIT_NONE), 0);
    cr_assert_eq(channels[0].flows[1].completed, 0);
    cr_assert_eq(gpsh_context_submit(&gpsh_default_context, &op, GPSH_WAIT_COMPLETE), 0);
    cr_assert_eq(channels[0].flows[1].completed, 2);
    end();
}

Test(context, put_signal__adds_by_another_transport__data_is_complete_before)
{
    begin_with(2, false);
    peers[1].amo = 1;
    uint64_t *word = (uint64_t *)(void *)heap;
    cr_assert_eq(
        gpushmem_putmem_signal_nbi(heap + 64, heap + 128, 32, word, 1, GPUSHMEM_SIGNAL_ADD, 1), 0);
    cr_assert_eq(fake.posts, 2);
    cr_assert_eq(fake.last.kind, GPSH_OP_AMO);
    cr_assert_eq(fake.others, 0, "the two transports know no order");
    cr_assert_eq(channels[CHANNELS].flows[1].posted, 1);
    end();
}

// The longest that a NIC gives: none of its words may be missing.
Test(context, submit__no_transport__long_reason_is_whole)
{
    static const char reason[] =
        "PE 1023 over mlx5_bond_10: it does not answer: its end of the connection has failed, its "
        "link is down, or GPUSHMEM_VERBS_TIMEOUT is too small (transport retry "
        "counter exceeded, vendor code 129); what of it was executed is not known: the network "
        "may have delivered later packets before earlier ones; whether its process lives is not "
        "known";
    begin(false);
    peers[1].data = -1;
    peers[1].reason = reason;
    struct gpsh_op op = put_op(8);
    cr_assert_eq(gpsh_context_submit(&gpsh_default_context, &op, GPSH_WAIT_NONE),
                 GPUSHMEM_ERR_UNREACHABLE);
    cr_expect(strstr(gpsh_last_error(), reason), "%s", gpsh_last_error());
    end();
}

// The peer is lost when all that went to it is complete, and the NIC notices that later.
Test(context, quiet__flow_fails_with_nothing_under_way__nothing_is_lost)
{
    begin(false);
    struct gpsh_op op = put_op(8);
    cr_assert_eq(gpsh_context_submit(&gpsh_default_context, &op, GPSH_WAIT_NONE), 0);
    cr_assert_eq(gpushmem_quiet(), 0);
    fake.fail_pe = 1;
    fake.fail_code = GPUSHMEM_ERR_PE_FAILED;
    gpsh_job_state.failed_pe = 1;
    fake_progress(gpsh_default_context.channels[0]);
    cr_assert_eq(channels[0].flows[1].error, GPUSHMEM_ERR_PE_FAILED);
    cr_expect_eq(gpushmem_quiet(), 0, "%s", gpsh_last_error());
    cr_assert_eq(gpsh_context_submit(&gpsh_default_context, &op, GPSH_WAIT_NONE), 0);
    cr_expect_eq(gpushmem_quiet(), GPUSHMEM_ERR_PE_FAILED, "what is posted later is lost");
    cr_expect_eq(gpushmem_quiet(), 0, "and told once");
    gpsh_job_state.failed_pe = -1;
    end();
}

Test(context, submit__flow_fails__code_and_reason)
{
    begin(false);
    fake.complete_per_progress = 0;
    fake.fail_pe = 1;
    fake.fail_code = GPUSHMEM_ERR_PE_FAILED;
    peers[1].reason = "the cable was cut";
    struct gpsh_op op = put_op(8);
    op.kind = GPSH_OP_GET;
    cr_assert_eq(gpsh_context_submit(&gpsh_default_context, &op, GPSH_WAIT_COMPLETE),
                 GPUSHMEM_ERR_PE_FAILED);
    cr_assert(strstr(gpsh_last_error(), "PE 1") && strstr(gpsh_last_error(), "the cable was cut"),
              "%s", gpsh_last_error());
    end();
}

// The NIC may write to the destination until the operation is complete, failed or not.
Test(context, submit__flow_fails__returns_when_the_memory_is_left_alone)
{
    begin(false);
    fake.complete_per_progress = 0;
    fake.fail_pe = 1;
    fake.fail_code = GPUSHMEM_ERR_PE_FAILED;
    fake.flushes_after = 5;
    struct gpsh_op op = put_op(8);
    op.kind = GPSH_OP_GET;
    cr_assert_eq(gpsh_context_submit(&gpsh_default_context, &op, GPSH_WAIT_COMPLETE),
                 GPUSHMEM_ERR_PE_FAILED);
    cr_assert_eq(channels[0].flows[1].completed, 1);
    cr_assert_eq(gpsh_context_submit(&gpsh_default_context, &op, GPSH_WAIT_NONE), 0);
    fake.flushes_after = 5;
    cr_assert_eq(gpsh_context_quiet(&gpsh_default_context, 1), GPUSHMEM_ERR_PE_FAILED);
    cr_assert_eq(channels[0].flows[1].completed, 2);
    end();
}

static bool on_this_stack(const void *address)
{
    pthread_attr_t attr;
    void *base;
    size_t bytes;
    pthread_getattr_np(pthread_self(), &attr);
    pthread_attr_getstack(&attr, &base, &bytes);
    pthread_attr_destroy(&attr);
    return (uintptr_t)address - (uintptr_t)base < bytes;
}

// A NIC that was given up on may write long after the call has returned.
static void expect_late_answer_harmless(void *to)
{
    uint64_t late = UINT64_C(0x1a7e1a7e1a7e1a7e);
    cr_assert(to != NULL && !on_this_stack(to), "%p is in the frame of a call that has returned",
              to);
    memcpy(to, &late, sizeof late);
}

Test(context, fetch__wait_runs_out__late_answer_writes_to_memory_that_stays)
{
    begin(false);
    fake.complete_per_progress = 0;
    gpsh_settings_state.wait_timeout_ms = 2;
    cr_assert_eq(gpushmem_uint64_atomic_fetch_add((uint64_t *)(void *)heap, 1, 1), 0);
    cr_assert_eq(gpushmem_last_error_code(), GPUSHMEM_ERR_TIMEOUT);
    expect_late_answer_harmless(fake.last.result);
    cr_assert_eq(gpushmem_uint64_g((uint64_t *)(void *)heap, 1), 0);
    expect_late_answer_harmless(fake.last.local);
    fake.complete_per_progress = 2;
    cr_assert_eq(gpsh_context_quiet(&gpsh_default_context, GPSH_ALL_PES), 0);
    end();
}

static int broken_copy(void *to, const void *from, size_t bytes)
{
    return gpsh_fail(GPUSHMEM_ERR_CUDA, "the GPU is lost");
}

// A wait that cannot read its word would never end, and 0 is no word to compare with.
Test(context, wait_and_test__gpu_heap_cannot_be_read__end_with_the_reason)
{
    uint64_t *word = (uint64_t *)(void *)heap;
    begin(false);
    gpsh_heap_state.device = true;
    gpsh_heap_state.copy = broken_copy;
    gpsh_settings_state.wait_timeout_ms = 200;
    cr_expect_eq(gpushmem_uint64_wait_until(word, GPUSHMEM_CMP_NE, 0), GPUSHMEM_ERR_CUDA);
    cr_expect(strstr(gpushmem_last_error(), "the GPU is lost"), "%s", gpushmem_last_error());
    cr_expect_eq(gpushmem_uint64_wait_until(word, GPUSHMEM_CMP_EQ, 0), GPUSHMEM_ERR_CUDA);
    cr_expect_eq(gpushmem_uint64_test(word, GPUSHMEM_CMP_EQ, 0), GPUSHMEM_ERR_CUDA);
    cr_expect_eq(gpushmem_uint64_wait_until_all(word, 2, NULL, GPUSHMEM_CMP_EQ, 0),
                 GPUSHMEM_ERR_CUDA);
    cr_expect_eq(gpushmem_uint64_test_all(word, 2, NULL, GPUSHMEM_CMP_NE, 0), GPUSHMEM_ERR_CUDA);
    cr_expect_eq(gpushmem_uint64_wait_until_any(word, 2, NULL, GPUSHMEM_CMP_EQ, 0), SIZE_MAX);
    cr_expect_eq(gpushmem_last_error_code(), GPUSHMEM_ERR_CUDA);
    size_t indices[2];
    cr_expect_eq(gpushmem_uint64_wait_until_some(word, 2, indices, NULL, GPUSHMEM_CMP_EQ, 0), 0);
    cr_expect_eq(gpushmem_last_error_code(), GPUSHMEM_ERR_CUDA);
    cr_expect_eq(gpushmem_signal_wait_until(word, GPUSHMEM_CMP_NE, 0), 0);
    cr_expect_eq(gpushmem_last_error_code(), GPUSHMEM_ERR_CUDA);
    gpsh_heap_state.device = false;
    end();
}

Test(context, submit__no_transport__unreachable)
{
    begin(false);
    peers[1].data = -1;
    struct gpsh_op op = put_op(8);
    cr_assert_eq(gpsh_context_submit(&gpsh_default_context, &op, GPSH_WAIT_NONE),
                 GPUSHMEM_ERR_UNREACHABLE);
    cr_assert_eq(fake.posts, 0);
    end();
}

Test(context, quiet__operations_outstanding__completes_all_pes)
{
    begin(false);
    struct gpsh_op op = put_op(8);
    for (op.pe = 0; op.pe < PES; ++op.pe)
        cr_assert_eq(gpsh_context_submit(&gpsh_default_context, &op, GPSH_WAIT_NONE), 0);
    cr_assert_eq(gpsh_context_quiet(&gpsh_default_context, GPSH_ALL_PES), 0);
    cr_assert_eq(channels[0].channel.pending, 0);
    end();
}

Test(context, quiet__one_pe_failed__told_once_and_the_others_complete)
{
    begin(false);
    struct gpsh_op op = put_op(8);
    for (op.pe = 0; op.pe < PES; ++op.pe)
        cr_assert_eq(gpsh_context_submit(&gpsh_default_context, &op, GPSH_WAIT_NONE), 0);
    fake.fail_pe = 1;
    fake.fail_code = GPUSHMEM_ERR_PE_FAILED;
    cr_assert_eq(gpsh_context_quiet(&gpsh_default_context, GPSH_ALL_PES), GPUSHMEM_ERR_PE_FAILED);
    cr_assert_eq(channels[0].flows[0].completed, 1);
    cr_assert_eq(channels[0].flows[2].completed, 1);
    cr_assert_eq(gpsh_context_quiet(&gpsh_default_context, GPSH_ALL_PES), 0, "the rest goes on");
    end();
}

// The NIC here is gone: that is no news of PE 1, which may be well.
Test(context, quiet__own_trouble__told_and_no_pe_is_lost)
{
    begin(false);
    struct gpsh_op op = put_op(8);
    gpsh_settings_state.on_pe_failure = GPSH_ON_FAILURE_NOTIFY;
    cr_assert_eq(gpsh_context_submit(&gpsh_default_context, &op, GPSH_WAIT_NONE), 0);
    fake.fail_pe = 1;
    fake.fail_code = GPUSHMEM_ERR_TRANSPORT;
    channels[0].channel.failed = true;
    unsigned failures = gpsh_job_state.failures;
    gpsh_peer_unreachable(1, "the NIC is gone");
    cr_assert_eq(gpsh_context_quiet(&gpsh_default_context, GPSH_ALL_PES), GPUSHMEM_ERR_TRANSPORT);
    cr_assert(strstr(gpsh_last_error(), "the NIC is gone"), "%s", gpsh_last_error());
    cr_assert(peers[1].error == 0 && gpsh_job_state.failures == failures);
    end();
}

// A wait in between has seen everything fail, so that nothing is pending: quiet must tell all the
// same.
Test(context, quiet__operations_failed_before__told_once)
{
    begin(false);
    struct gpsh_op op = put_op(8);
    cr_assert_eq(gpsh_context_submit(&gpsh_default_context, &op, GPSH_WAIT_NONE), 0);
    struct gpsh_channel *channel = &channels[0].channel;
    channel->flows[1].error = GPUSHMEM_ERR_CUDA;
    channel->flows[1].completed = 1;
    channel->pending = 0;
    channel->failed = true;
    cr_assert_eq(gpsh_context_quiet(&gpsh_default_context, GPSH_ALL_PES), GPUSHMEM_ERR_CUDA);
    cr_assert_eq(gpsh_context_quiet(&gpsh_default_context, GPSH_ALL_PES), 0);
    end();
}

// A job in which flows that nobody posted to cannot even be looked at: the pages between two that
// are used have no access.
enum { MANY = 1 << 14 };
static const int far_apart[] = {MANY - 1, 0};

static int progress_of_many(struct gpsh_channel *channel)
{
    int done = 0;
    ++fake.progresses;
    for (int i = 0; i < 2; ++i) {
        struct gpsh_flow *flow = &channel->flows[far_apart[i]];
        while (flow->completed < flow->posted && done < fake.complete_per_progress) {
            ++flow->completed;
            --channel->pending;
            ++done;
        }
    }
    return done;
}

static void begin_many(bool mixed)
{
    static struct gpsh_transport_ops ops;
    size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = MANY * sizeof(struct gpsh_flow);
    size_t pages = bytes / page;
    char *flows = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    cr_assert(flows != MAP_FAILED && bytes % page == 0);
    cr_assert_eq(mprotect(flows + page, (pages - 2) * page, PROT_NONE), 0);
    begin(mixed);
    ops = fake_ops;
    ops.progress = progress_of_many;
    channels[0].channel.ops = &ops;
    channels[0].channel.flows = (struct gpsh_flow *)(void *)flows;
    gpsh_job_state.n_pes = MANY;
    gpsh_job_state.peers = calloc(MANY, sizeof *gpsh_job_state.peers);
    gpsh_heap_state.direct = calloc(MANY, sizeof *gpsh_heap_state.direct);
    for (int pe = 0; mixed && pe < MANY; ++pe)
        gpsh_heap_state.direct[pe] = heap;
}

static void post_far_apart(void)
{
    struct gpsh_op op = put_op(8);
    for (int i = 0; i < 2; ++i) {
        op.pe = far_apart[i];
        cr_assert_eq(gpsh_context_submit(&gpsh_default_context, &op, GPSH_WAIT_NONE), 0);
    }
}

Test(context, quiet__many_pes__looks_only_at_those_posted_to)
{
    begin_many(false);
    const struct gpsh_channel *channel = &channels[0].channel;
    for (int round = 1; round <= 3; ++round) {
        post_far_apart();
        post_far_apart();
        cr_assert_eq(gpsh_context_quiet(&gpsh_default_context, GPSH_ALL_PES), 0);
        cr_assert_eq(channel->pending, 0);
        cr_assert_eq(channel->flows[0].completed, 2u * (unsigned)round);
        cr_assert_eq(channel->flows[MANY - 1].completed, 2u * (unsigned)round);
        cr_assert_eq(channel->first_listed, 0, "what is complete is not looked at again");
    }
}

Test(context, quiet__many_pes_wait_runs_out__the_rest_stays_known)
{
    begin_many(false);
    post_far_apart();
    fake.complete_per_progress = 0;
    gpsh_settings_state.wait_timeout_ms = 2;
    cr_assert_eq(gpsh_context_quiet(&gpsh_default_context, GPSH_ALL_PES), GPUSHMEM_ERR_TIMEOUT);
    cr_assert(strstr(gpsh_last_error(), "gpushmem_quiet: timed out"), "%s", gpsh_last_error());
    fake.complete_per_progress = 1;
    cr_assert_eq(gpsh_context_quiet(&gpsh_default_context, GPSH_ALL_PES), 0);
    cr_assert_eq(channels[0].channel.pending, 0);
}

Test(context, fence__mixed_and_many_pes__looks_only_at_those_posted_to)
{
    begin_many(true);
    post_far_apart();
    cr_assert_eq(gpsh_context_fence(&gpsh_default_context, GPSH_ALL_PES), 0);
    cr_assert_eq(channels[0].channel.pending, 0, "stores must not overtake what was posted");
}

// Two threads in one context: that one of them waits hides nothing from the other.
static void *quiet_in_thread(void *result)
{
    *(int *)result = gpsh_context_quiet(&gpsh_default_context, GPSH_ALL_PES);
    return NULL;
}

static int quiet_of_other = -1;
static bool other_ran;
static int progress_with_other_quiet(struct gpsh_channel *channel)
{
    pthread_t other;
    if (!other_ran && fake.progresses == 1) { // the first call waits, without the lock
        other_ran = true;
        gpsh_settings_state.wait_timeout_ms = 2;
        pthread_mutex_unlock(&gpsh_default_context.lock);
        pthread_create(&other, NULL, quiet_in_thread, &quiet_of_other);
        pthread_join(other, NULL);
        pthread_mutex_lock(&gpsh_default_context.lock);
        gpsh_settings_state.wait_timeout_ms = 0;
        fake.complete_per_progress = 1;
    }
    return progress_of_many(channel);
}

Test(context, quiet__by_two_threads__each_waits_for_all)
{
    static struct gpsh_transport_ops ops;
    gpsh_job_state.thread_level = GPUSHMEM_THREAD_MULTIPLE;
    begin_many(false);
    ops = fake_ops;
    ops.progress = progress_with_other_quiet;
    channels[0].channel.ops = &ops;
    post_far_apart();
    fake.complete_per_progress = 0;
    cr_assert_eq(gpsh_context_quiet(&gpsh_default_context, GPSH_ALL_PES), 0);
    cr_assert(other_ran);
    cr_assert_eq(quiet_of_other, GPUSHMEM_ERR_TIMEOUT, "its operations were not complete");
    cr_assert_eq(channels[0].channel.first_listed, 0);
}

Test(context, fence__network__does_not_wait)
{
    begin(false);
    gpsh_context_fence(&gpsh_default_context, GPSH_ALL_PES);
    cr_assert_eq(fake.fences, 0, "nothing is outstanding");
    struct gpsh_op op = put_op(8);
    cr_assert_eq(gpsh_context_submit(&gpsh_default_context, &op, GPSH_WAIT_NONE), 0);
    gpsh_context_fence(&gpsh_default_context, 1);
    cr_assert_eq(fake.fences, 1);
    cr_assert_eq(fake.progresses, 0);
    end();
}

Test(context, fence__mixed__waits_for_that_pe_alone)
{
    begin(true);
    struct gpsh_op op = {.kind = GPSH_OP_AMO, .amo = GPSH_AMO_ADD, .width = 8, .operand = 1};
    fake.complete_per_progress = 0;
    for (op.pe = 0; op.pe < PES; ++op.pe)
        cr_assert_eq(gpsh_context_submit(&gpsh_default_context, &op, GPSH_WAIT_NONE), 0);
    fake.complete_per_progress = PES;
    fake.progresses = 0;
    gpsh_context_fence(&gpsh_default_context, 1);
    cr_assert_eq(fake.progresses, 0, "PE 1 is reached by one way only");
    gpsh_context_fence(&gpsh_default_context, 2);
    cr_assert_eq(channels[0].flows[2].completed, 1, "stores to PE 2 must not overtake its atomic");
    end();
}

// Who stores a flag behind a fence must hear that the fence could not be made.
Test(context, fence__mixed__wait_runs_out__says_so)
{
    begin(true);
    struct gpsh_op op = {
        .kind = GPSH_OP_AMO, .amo = GPSH_AMO_ADD, .width = 8, .operand = 1, .pe = 2};
    fake.complete_per_progress = 0;
    cr_assert_eq(gpsh_context_submit(&gpsh_default_context, &op, GPSH_WAIT_NONE), 0);
    gpsh_settings_state.wait_timeout_ms = 2;
    cr_expect_eq(gpushmem_fence(), GPUSHMEM_ERR_TIMEOUT);
    cr_expect(strstr(gpsh_last_error(), "gpushmem_fence: timed out"), "%s", gpsh_last_error());
    cr_expect_eq(gpushmem_pe_fence(2), GPUSHMEM_ERR_TIMEOUT);
    cr_expect_eq(gpushmem_pe_fence(1), 0, "PE 1 is reached by one way only");
    fake.complete_per_progress = 1;
    cr_expect_eq(gpushmem_fence(), 0);
    end();
}
