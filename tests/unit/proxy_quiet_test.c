// SPDX-License-Identifier: BSD-3-Clause
// What the proxy waits for: quiets, and fences of data that goes several ways; and what it flushes
// before it tells of completions.
#include "proxy_rig.h"

TestSuite(proxy_quiet, .init = set_up, .fini = tear_down);

Test(proxy_quiet, quiet_pe__other_peer_is_slow__answers_for_its_own_peer)
{
    push(0, put_to(0));
    push(0, put_to(1));
    uint64_t index = push(0, (struct gpushmem_command){.opcode = GPUSHMEM_CMD_QUIET_PE, .pe = 1});
    push(0, put_to(1));
    step();
    cr_expect_eq(set.rings[0].completed_pe[1], 0);
    fake_complete(&fake, 1, 1);
    step();
    cr_expect_eq(set.rings[0].completed_pe[1], index + 1);
    cr_expect_eq(set.rings[0].completed_pe[0], 0);
    cr_expect_eq(completed(0), 0, "PE 0's put is still in flight");
    fake_complete(&fake, 0, 1);
    step();
    cr_expect_eq(completed(0), 3);
}

Test(proxy_quiet, quiet_pe__data_and_atomics_by_two_transports__waits_for_both)
{
    peers[1].amo = 1;
    push(0, put_to(1));
    push(0, (struct gpushmem_command){.opcode = GPUSHMEM_CMD_AMO,
                                      .pe = 1,
                                      .remote = (uintptr_t)heap,
                                      .bytes = 8,
                                      .extra = GPUSHMEM_AMO_ADD});
    uint64_t index = push(0, (struct gpushmem_command){.opcode = GPUSHMEM_CMD_QUIET_PE, .pe = 1});
    step();
    cr_assert_eq(fake.n_ops, 1);
    cr_assert_eq(other.n_ops, 1);
    fake_complete(&fake, 1, 1);
    step();
    cr_expect_eq(set.rings[0].completed_pe[1], 0);
    fake_complete(&other, 1, 1);
    step();
    cr_expect_eq(set.rings[0].completed_pe[1], index + 1);
}

Test(proxy_quiet, quiet__waits_for_what_is_reserved)
{
    int error;
    cr_expect(quiet_now(&error));
    push(1, put_to(1));
    cr_expect(!quiet_now(&error));
    step();
    cr_expect(!quiet_now(&error));
    fake_complete(&fake, 1, 1);
    step();
    cr_expect(quiet_now(&error));
    cr_expect_eq(error, 0);
}

Test(proxy_quiet, quiet__an_unwritten_slot_hides_a_command__waits_for_both)
{
    int error;
    uint64_t held = reserve(0);
    push(0, put_to(1));
    step();
    cr_expect(!quiet_now(&error), "the command after the slot was not even read");
    write_slot(0, held, (struct gpushmem_command){.opcode = GPUSHMEM_CMD_NOP});
    step();
    cr_expect(!quiet_now(&error));
    fake_complete(&fake, 1, 1);
    step();
    cr_expect(quiet_now(&error));
}

Test(proxy_quiet, quiet__later_commands_keep_coming__waits_for_the_earlier_ones_only)
{
    int error;
    uint64_t before[GPSH_MAX_RINGS];
    push(0, put_to(1));
    cr_assert_eq(gpsh_proxy_heads(proxy, before), 0);
    for (int i = 0; i < 3; i++) { // never a moment with nothing under way
        push(0, put_to(1));
        step();
        cr_expect(!gpsh_proxy_reached(proxy, GPSH_CONTEXT_ALL, before, &error) || i);
        fake_complete(&fake, 1, 1);
        step();
        cr_expect(gpsh_proxy_reached(proxy, GPSH_CONTEXT_ALL, before, &error));
    }
    cr_expect(!quiet_now(&error));
}

static char device_words[1 << 16]; // a GPU's memory: the host does not look there

static int read_device_words(void *to, const void *from, size_t bytes)
{
    size_t at = (size_t)((const char *)from - (const char *)set.layout.device);
    memcpy(to, device_words + at, bytes);
    return 0;
}

static int refuse_to_read(void *to, const void *from, size_t bytes)
{
    return gpsh_fail(GPUSHMEM_ERR_CUDA, "the context has died");
}

Test(proxy_quiet, quiet__heads_in_gpu_memory__are_copied_from_there)
{
    struct gpsh_device_memory gpu = gpsh_device_memory_host;
    uint64_t now[GPSH_MAX_RINGS];
    gpu.device_read = read_device_words;
    set.memory = &gpu;
    *(uint64_t *)(void *)device_words = 5;
    *(uint64_t *)(void *)(device_words + GPUSHMEM_RING_DEVICE_BYTES) = 7;
    cr_assert_eq(gpsh_proxy_heads(proxy, now), 0);
    cr_expect(now[0] == 5 && now[1] == 7);
    gpu.device_read = refuse_to_read;
    cr_expect_eq(gpsh_proxy_heads(proxy, now), GPUSHMEM_ERR_CUDA);
    int closed;
    cr_expect_eq(gpsh_proxy_quiet(proxy, GPSH_CONTEXT_DEFAULT, &closed), GPUSHMEM_ERR_CUDA);
    set.memory = &gpsh_device_memory_host;
}

// A kernel that reserved a slot and was killed with its context.
static int read_once(void *to, const void *from, size_t bytes)
{
    static int reads;
    return reads++ ? refuse_to_read(to, from, bytes) : read_device_words(to, from, bytes);
}

Test(proxy_quiet, quiet__the_gpu_dies_while_it_waits__fails_with_the_drivers_error)
{
    struct gpsh_device_memory gpu = gpsh_device_memory_host;
    int closed;
    gpu.device_read = read_once;
    set.memory = &gpu;
    *(uint64_t *)(void *)device_words = 1;
    cr_expect_eq(gpsh_proxy_quiet(proxy, GPSH_CONTEXT_DEFAULT, &closed), GPUSHMEM_ERR_CUDA);
    set.memory = &gpsh_device_memory_host;
}

// Nothing but completion orders what goes by two transports.
Test(proxy_quiet, fence__data_and_atomics_by_two_transports__waits_for_what_is_before_it)
{
    peers[1].amo = 1;
    proxy->env.mixed = true;
    push(0, (struct gpushmem_command){.opcode = GPUSHMEM_CMD_AMO,
                                      .pe = 1,
                                      .remote = (uintptr_t)heap,
                                      .bytes = 8,
                                      .extra = GPUSHMEM_AMO_ADD});
    push(0, (struct gpushmem_command){.opcode = GPUSHMEM_CMD_FENCE, .pe = 2});
    push(0, put_to(2));
    push(0, (struct gpushmem_command){.opcode = GPUSHMEM_CMD_FENCE, .pe = -1});
    push(0, put_to(1));
    push(1, put_to(3));
    step();
    step();
    cr_assert_eq(other.n_ops, 1);
    cr_assert_eq(fake.n_ops, 2, "PE 2 is reached by one way only, and ring 1 is not concerned");
    fake_complete(&fake, 2, 1);
    step();
    cr_expect_eq(fake.n_ops, 2, "the put to PE 1 overtakes the atomic");
    fake_complete(&other, 1, 1);
    step();
    step();
    cr_assert_eq(fake.n_ops, 3);
    cr_expect_eq(fake.ops[2].pe, 1);
    fake_complete(&fake, 1, 1);
    step();
    cr_expect_eq(completed(0), 5);
}

// ---- A fence that names other rings ----

static struct gpushmem_command fence_after(uint32_t ring, uint64_t end)
{
    struct gpushmem_command c = {.opcode = GPUSHMEM_CMD_FENCE, .pe = -1};
    gpushmem_fence_add(&c, 1, ring, end);
    return c;
}

Test(proxy_quiet, fence__other_ring_of_the_thread__waits_until_that_is_posted)
{
    push(0, fence_after(1, 2));
    push(0, put_to(3));
    push(1, put_to(1));
    step();
    step();
    cr_assert_eq(fake.n_ops, 1);
    cr_expect_eq(fake.fences, 0, "one more command of ring 1 comes first");
    push(1, put_to(2));
    step();
    step();
    cr_assert_eq(fake.n_ops, 3);
    cr_expect_eq(fake.ops[1].pe, 2);
    cr_expect_eq(fake.ops[2].pe, 3);
    cr_expect_eq(fake.fences, 1);
}

Test(proxy_quiet, fence__ring_of_another_thread__waits_until_that_is_complete)
{
    struct gpsh_proxy_thread another = {.proxy = proxy};
    proxy->rings[1].thread = &another;
    proxy->threads[0].n_rings = 1;
    push(0, fence_after(1, 2));
    push(0, put_to(3));
    set.rings[1].status->completed = 1;
    step();
    cr_expect_eq(fake.n_ops, 0);
    set.rings[1].status->completed = 2;
    step();
    cr_expect_eq(fake.n_ops, 1);
    cr_expect_eq(fake.fences, 1);
}

Test(proxy_quiet, fence__other_ring_that_failed__does_not_hold_it_up)
{
    set.rings[1].status->error = GPUSHMEM_ERR_RING;
    push(0, fence_after(1, 2));
    push(0, put_to(3));
    step();
    cr_expect_eq(fake.n_ops, 1);
}

Test(proxy_quiet, fence__ring_that_does_not_exist__closes_its_own)
{
    push(0, fence_after(2, 1));
    step();
    cr_expect_eq(set.rings[0].status->error, GPUSHMEM_ERR_RING);
}

// ---- GPUs that do not order what NICs write to them ----

static struct gpushmem_command get_from(int pe)
{
    struct gpushmem_command c = put_to(pe);
    c.opcode = GPUSHMEM_CMD_GET;
    return c;
}

Test(proxy_quiet, flush__get_with_reply__happens_before_the_answer)
{
    proxy->env.flush_writes = count_flush;
    push(0, with_reply(get_from(1), 2, 5));
    step();
    cr_expect_eq(flushed, 0, "nothing has come yet");
    fake_complete(&fake, 1, 1);
    cr_assert(gpushmem_reply_ready(replies[2], 5));
    cr_expect_eq(flushed, 1);
}

Test(proxy_quiet, flush__gets_without_reply__once_before_they_are_published)
{
    proxy->env.flush_writes = count_flush;
    push(0, get_from(1));
    push(0, get_from(1));
    step();
    fake_complete(&fake, 1, 2);
    cr_expect_eq(flushed, 0);
    step();
    cr_expect_eq(completed(0), 2);
    cr_expect_eq(flushed, 1);
    push(0, put_to(1));
    step();
    fake_complete(&fake, 1, 1);
    step();
    cr_expect_eq(completed(0), 3);
    cr_expect_eq(flushed, 1, "a put brings nothing");
}

Test(proxy_quiet, flush__quiet_of_one_pe__comes_before_its_answer)
{
    proxy->env.flush_writes = count_flush;
    push(0, put_to(2)); // stays under way, so that nothing is published
    push(0, get_from(1));
    push(0, (struct gpushmem_command){.opcode = GPUSHMEM_CMD_QUIET_PE, .pe = 1});
    step();
    fake_complete(&fake, 1, 1);
    step();
    cr_expect_eq(completed(0), 0);
    cr_expect_eq(set.rings[0].completed_pe[1], 3);
    cr_expect_eq(flushed, 1);
}

Test(proxy_quiet, flush__fetched_values__need_none)
{
    proxy->env.flush_writes = count_flush;
    struct gpushmem_command c = get_from(1);
    c.bytes = 8;
    c.flags = GPUSHMEM_CMD_REPLY_VALUE;
    push(0, with_reply(c, 2, 5));
    step();
    fake_complete(&fake, 1, 1);
    step();
    cr_expect_eq(completed(0), 1);
    cr_expect_eq(flushed, 0);
}
