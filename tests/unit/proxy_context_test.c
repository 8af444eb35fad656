// SPDX-License-Identifier: BSD-3-Clause
// Contexts of kernels: who gets one, what its ring posts through, and when it is free again. Rings
// 0 and 1 are the default context's, 2 and 3 those of contexts 1 and 2.
#include "proxy_rig.h"

static void set_up_contexts(void)
{
    n_contexts = 2;
    set_up();
}

TestSuite(proxy_context, .init = set_up_contexts, .fini = tear_down);

static struct gpushmem_command claim(uint32_t slot)
{
    const struct gpushmem_command c = {.opcode = GPUSHMEM_CMD_CONTEXT_CLAIM, .pe = -1};
    return with_reply(c, slot, 9);
}

// As a kernel does it: number | tag << 32, or 0.
static uint64_t claimed(uint32_t slot)
{
    replies[slot] = (struct gpushmem_reply){0};
    push(0, claim(slot));
    step();
    cr_assert(gpushmem_reply_ready(replies[slot], 9));
    return reply_value(slot);
}

static struct gpushmem_command freeing(uint64_t ctx, uint32_t slot)
{
    const struct gpushmem_command c = {
        .opcode = GPUSHMEM_CMD_CONTEXT_FREE, .pe = -1, .operand = ctx >> 32};
    return with_reply(c, slot, 7);
}

Test(proxy_context, claim__gives_numbers__then_none)
{
    uint64_t first = claimed(1), second = claimed(2);
    cr_expect_eq((uint32_t)first, 1);
    cr_expect_eq((uint32_t)second, 2);
    cr_expect(first >> 32 && second >> 32 && first >> 32 != second >> 32);
    cr_expect_eq(none_left, 0);
    cr_expect_eq(claimed(3), 0);
    cr_expect_eq(none_left, 1);
}

Test(proxy_context, claim__no_channels__gives_none)
{
    away[0] = away[1] = true;
    cr_expect_eq(claimed(1), 0);
    cr_expect_eq(none_left, 1);
    away[0] = false;
    cr_expect_eq((uint32_t)claimed(2), 1, "nothing was lost");
}

Test(proxy_context, its_ring__posts_through_its_channels__and_waits_for_nobody_else)
{
    int error;
    uint64_t heads_now[GPSH_MAX_RINGS];
    claimed(1);
    push(2, put_to(1));
    push(0, put_to(1));
    push(2, (struct gpushmem_command){.opcode = GPUSHMEM_CMD_FENCE, .pe = -1});
    push(2, (struct gpushmem_command){.opcode = GPUSHMEM_CMD_QUIET_PE, .pe = 1});
    step();
    cr_assert_eq(lent[0].n_ops, 1);
    cr_assert_eq(fake.n_ops, 1);
    cr_expect(lent[0].fences == 1 && fake.fences == 0);
    cr_expect(lent[0].flushes == 1 && fake.flushes == 1);
    cr_assert_eq(gpsh_proxy_heads(proxy, heads_now), 0);
    fake_complete(&fake, 1, 1);
    step();
    cr_expect(gpsh_proxy_reached(proxy, GPSH_CONTEXT_DEFAULT, heads_now, &error));
    cr_expect(!gpsh_proxy_reached(proxy, 1, heads_now, &error));
    cr_expect(gpsh_proxy_reached(proxy, 2, heads_now, &error));
    cr_expect(!gpsh_proxy_reached(proxy, GPSH_CONTEXT_ALL, heads_now, &error));
    cr_expect_eq(set.rings[2].completed_pe[1], 0);
    fake_complete(&lent[0], 1, 1);
    step();
    cr_expect_eq(set.rings[2].completed_pe[1], 3);
    cr_expect(gpsh_proxy_reached(proxy, GPSH_CONTEXT_ALL, heads_now, &error));
}

Test(proxy_context, nobodys_ring__is_not_read)
{
    push(3, put_to(1));
    step();
    cr_expect_eq(consumed(3), 0);
}

Test(proxy_context, free__gives_the_channels_back__and_the_number_with_another_tag)
{
    uint64_t first = claimed(1);
    push(2, put_to(1));
    step();
    fake_complete(&lent[0], 1, 1);
    step();
    push(2, freeing(first, 2));
    push(2, put_to(1)); // by somebody who should not
    step();
    cr_assert(gpushmem_reply_ready(replies[2], 7));
    cr_expect(!away[0]);
    cr_expect_eq(lent[0].n_ops, 1);
    uint64_t second = claimed(3);
    cr_expect_eq((uint32_t)second, 1);
    cr_expect_neq(second, first);
}

Test(proxy_context, free__something_is_under_way__happens_after_it)
{
    uint64_t first = claimed(1);
    push(2, put_to(1));
    push(2, freeing(first, 2));
    step();
    cr_expect(away[0]);
    cr_expect(gpsh_proxy_is_leaving(proxy, 1));
    cr_expect_eq((uint32_t)claimed(3), 2);
    fake_complete(&lent[0], 1, 1);
    step();
    cr_expect(!away[0] && !gpsh_proxy_is_leaving(proxy, 1));
}

Test(proxy_context, free__by_the_host__a_pass_later)
{
    uint64_t ctx = gpsh_proxy_claim(proxy);
    cr_expect_eq(gpsh_proxy_free(proxy, (uint32_t)ctx, (uint32_t)(ctx >> 32)), 0);
    cr_expect(gpsh_proxy_is_leaving(proxy, 1));
    step();
    cr_expect(!gpsh_proxy_is_leaving(proxy, 1) && !away[0]);
    cr_expect_eq(gpsh_proxy_free(proxy, (uint32_t)ctx, (uint32_t)(ctx >> 32)),
                 GPUSHMEM_ERR_INVALID);
    cr_expect(strstr(gpsh_last_error(), "context 1 of the device is not in use"));
    cr_expect_eq(gpsh_proxy_free(proxy, 3, 1), GPUSHMEM_ERR_INVALID);
}

Test(proxy_context, free__of_none_or_with_an_old_tag__is_refused__the_ring_goes_on)
{
    uint64_t first = claimed(1);
    const int rings[] = {0, 2};
    for (int i = 0; i < 2; i++) {
        replies[4] = (struct gpushmem_reply){0};
        push(rings[i], freeing(rings[i] ? first + ((uint64_t)1 << 32) : first, 4));
        step();
        cr_expect(replies[4].low & GPUSHMEM_REPLY_FAILED);
        cr_expect_eq(gpsh_proxy_take_error(proxy), GPUSHMEM_ERR_INVALID);
    }
    cr_expect(away[0]);
    push(2, put_to(1));
    step();
    cr_expect_eq(lent[0].n_ops, 1);
}

Test(proxy_context, its_ring_was_closed__is_not_given_out_again)
{
    uint64_t first = claimed(1);
    push(2, (struct gpushmem_command){.opcode = GPUSHMEM_CMD_LAST + 1});
    step();
    cr_expect_eq(set.rings[2].status->error, GPUSHMEM_ERR_RING);
    cr_expect_eq(set.rings[0].status->error, 0);
    gpsh_proxy_take_error(proxy);
    cr_expect_eq(gpsh_proxy_free(proxy, 1, (uint32_t)(first >> 32)), 0);
    step();
    cr_expect(!away[0]);
    cr_expect_eq((uint32_t)claimed(3), 2);
    cr_expect_eq(claimed(4), 0);
}

Test(proxy_context, claim__without_an_answer__closes_the_ring)
{
    push(0, (struct gpushmem_command){.opcode = GPUSHMEM_CMD_CONTEXT_CLAIM, .pe = -1});
    step();
    cr_expect_eq(set.rings[0].status->error, GPUSHMEM_ERR_RING);
    cr_expect(!away[0]);
}

Test(proxy_context, rings_of_a_fence__are_the_default_ones)
{
    struct gpushmem_command c = {.opcode = GPUSHMEM_CMD_FENCE, .pe = -1};
    gpushmem_fence_add(&c, 0, 2, 1);
    push(0, c);
    step();
    cr_expect_eq(set.rings[0].status->error, GPUSHMEM_ERR_RING);
}
