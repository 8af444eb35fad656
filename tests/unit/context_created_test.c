// SPDX-License-Identifier: BSD-3-Clause
// Contexts that the program creates.
#include "context_rig.h"

Test(context_created, ctx_create__channels__own_then_shared_then_reused)
{
    begin(false);
    gpushmem_ctx_t handles[4];
    for (int i = 0; i < 4; ++i)
        cr_assert_eq(gpushmem_ctx_create(0, &handles[i]), 0);
    // Channel 0 is the default context's, 1 the proxy's: two remain.
    for (int i = 0; i < 4; ++i)
        cr_assert_eq(gpsh_context_of(handles[i])->base == NULL, i < 2, "context %d", i);
    cr_assert_eq(fake.opened, 3);
    struct gpsh_op op = put_op(8);
    cr_assert_eq(gpsh_context_submit(gpsh_context_of(handles[3]), &op, GPSH_WAIT_NONE), 0);
    cr_assert_eq(channels[0].flows[1].posted, 1,
                 "without channels of its own it posts through the default context's");
    cr_assert_eq(gpushmem_ctx_destroy(handles[3]), 0);
    cr_assert_eq(channels[0].flows[1].completed, 1, "destroy completes");
    cr_assert_eq(gpushmem_ctx_destroy(handles[0]), 0);
    cr_assert_eq(gpushmem_ctx_create(0, &handles[0]), 0);
    cr_assert(gpsh_context_of(handles[0])->base == NULL);
    cr_assert_eq(fake.opened, 3, "a destroyed context's channels are used again");
    end();
}

// A created context with the operation under way.
static gpushmem_ctx_t create_and_post(const struct gpsh_op *op)
{
    gpushmem_ctx_t handle;
    cr_assert_eq(gpushmem_ctx_create(0, &handle), 0);
    cr_assert_eq(gpsh_context_submit(gpsh_context_of(handle), op, GPSH_WAIT_NONE), 0);
    return handle;
}

Test(context_created, quiet_all__created_contexts__completed_too)
{
    begin(false);
    struct gpsh_op op = put_op(8);
    create_and_post(&op);
    cr_assert_eq(gpsh_context_quiet(&gpsh_default_context, GPSH_ALL_PES), 0);
    cr_assert_eq(channels[2].flows[1].completed, 0, "quiet of one context leaves the others");
    cr_assert_eq(gpsh_contexts_quiet(), 0);
    cr_assert_eq(channels[2].flows[1].completed, 1);
    end();
}

// Retries of atomics and chunks of staged puts need to be driven: who waits for the answer to one
// must drive it, whatever context it is of.
Test(context_created, wait_and_test__created_contexts__driven_too)
{
    begin(false);
    struct gpsh_op op = put_op(8);
    gpushmem_ctx_t handle = create_and_post(&op);
    cr_assert_eq(gpushmem_uint64_test((uint64_t *)(void *)heap, GPUSHMEM_CMP_NE, 0), 0);
    cr_assert_eq(channels[2].flows[1].completed, 1);
    cr_assert_eq(gpsh_context_submit(gpsh_context_of(handle), &op, GPSH_WAIT_NONE), 0);
    gpsh_settings_state.wait_timeout_ms = 2;
    cr_assert_eq(gpushmem_uint64_wait_until((uint64_t *)(void *)heap, GPUSHMEM_CMP_NE, 0),
                 GPUSHMEM_ERR_TIMEOUT);
    cr_assert_eq(channels[2].flows[1].completed, 2);
    cr_assert_eq(gpushmem_ctx_destroy(handle), 0);
    end();
}

// Rank 0 of the context's team is PE 2; what goes to PE 0 is complete first.
Test(context_created, pe_quiet__team_in_another_order__waits_for_the_pe_of_that_rank)
{
    static const int reversed[PES] = {2, 1, 0}, rank = 0;
    begin(false);
    struct gpsh_op op = put_op(8);
    op.pe = 0;
    gpushmem_ctx_t handle = create_and_post(&op);
    struct gpsh_context *ctx = gpsh_context_of(handle);
    op.pe = 2;
    cr_assert_eq(gpsh_context_submit(ctx, &op, GPSH_WAIT_NONE), 0);
    ctx->team_pes = memcpy(malloc(sizeof reversed), reversed, sizeof reversed);
    ctx->team_n = PES;
    cr_assert_eq(gpushmem_ctx_pe_quiet(handle, &rank, 1), 0, "%s", gpsh_last_error());
    cr_assert_eq(channels[2].flows[2].completed, 1);
    end();
}

Test(context_created, ctx_quiet__wait_runs_out__names_the_function)
{
    begin(false);
    struct gpsh_op op = put_op(8);
    gpushmem_ctx_t handle = create_and_post(&op);
    fake.complete_per_progress = 0;
    gpsh_settings_state.wait_timeout_ms = 2;
    cr_assert_eq(gpushmem_ctx_quiet(handle), GPUSHMEM_ERR_TIMEOUT);
    cr_assert(strstr(gpsh_last_error(), "gpushmem_ctx_quiet: timed out"), "%s", gpsh_last_error());
    fake.complete_per_progress = 1;
    end();
}

Test(context_created, ctx_destroy__peer_was_lost__not_told_to_the_next_context)
{
    begin(false);
    struct gpsh_op op = put_op(8);
    gpushmem_ctx_t handle = create_and_post(&op);
    fake.fail_pe = 1;
    fake.fail_code = GPUSHMEM_ERR_PE_FAILED;
    gpsh_job_state.failed_pe = 1;
    cr_assert_eq(gpushmem_ctx_destroy(handle), GPUSHMEM_ERR_PE_FAILED);
    cr_assert_eq(gpushmem_ctx_create(0, &handle), 0);
    cr_assert_eq(fake.opened, 2, "these are the lost one's channels");
    cr_assert_eq(gpushmem_ctx_quiet(handle), 0);
    gpsh_job_state.failed_pe = -1;
    end();
}

Test(context_created, ctx_create__queues_shared_after_a_loss__default_context_alone_tells)
{
    begin(false);
    struct gpsh_op op = put_op(8);
    gpushmem_ctx_t handles[3];
    cr_assert_eq(gpsh_context_submit(&gpsh_default_context, &op, GPSH_WAIT_NONE), 0);
    fake.fail_pe = 1;
    fake.fail_code = GPUSHMEM_ERR_PE_FAILED;
    gpsh_job_state.failed_pe = 1;
    gpsh_context_drive(&gpsh_default_context);
    for (int i = 0; i < 3; ++i)
        cr_assert_eq(gpushmem_ctx_create(0, &handles[i]), 0);
    cr_assert(gpsh_context_of(handles[2])->base, "it has no channels of its own");
    cr_assert_eq(gpushmem_ctx_quiet(handles[2]), 0, "%s", gpsh_last_error());
    cr_assert_eq(gpushmem_quiet(), GPUSHMEM_ERR_PE_FAILED);
    cr_assert_eq(gpushmem_quiet(), 0);
    gpsh_job_state.failed_pe = -1;
    end();
}
