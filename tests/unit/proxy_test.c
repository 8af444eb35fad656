// SPDX-License-Identifier: BSD-3-Clause
// What the proxy posts, answers and publishes, and when.
#include <sched.h>
#include <signal.h>

#include "proxy_rig.h"

static const char forty[] = "forty bytes \x80\x81\x82\xff that travel in a command";

// With bit 63 set in some of its words.
static struct gpushmem_command long_inline(uint64_t bytes)
{
    struct gpushmem_command c = {
        .opcode = GPUSHMEM_CMD_PUT_INLINE, .pe = 1, .remote = (uintptr_t)heap + 64, .bytes = bytes};
    memcpy(&c.operand, forty, 8);
    memcpy(&c.local, forty + 8, 8);
    memcpy(&c.compare, forty + 16, 8);
    memcpy(&c.reply, forty + 24, 8);
    memcpy(&c.extra, forty + 32, 8);
    return c;
}

TestSuite(proxy, .init = set_up, .fini = tear_down);

Test(proxy, step__every_command__is_posted_as_it_says)
{
    push(0, put_to(2));
    struct gpushmem_command c = put_to(1);
    c.opcode = GPUSHMEM_CMD_GET;
    push(0, c);
    push(0, (struct gpushmem_command){.opcode = GPUSHMEM_CMD_AMO,
                                      .pe = 3,
                                      .remote = (uintptr_t)heap + 8,
                                      .bytes = 4,
                                      .operand = 5,
                                      .compare = 6,
                                      .extra = GPUSHMEM_AMO_CSWAP});
    c = put_to(1);
    c.opcode = GPUSHMEM_CMD_PUT_SIGNAL;
    c.flags = GPUSHMEM_CMD_SIGNAL_ADD;
    c.operand = 9;
    c.compare = (uintptr_t)heap + 128;
    push(0, c);
    push(0, (struct gpushmem_command){.opcode = GPUSHMEM_CMD_PUT_INLINE,
                                      .pe = 0,
                                      .remote = (uintptr_t)heap,
                                      .bytes = 8,
                                      .operand = 0x1122334455667788});
    push(0, (struct gpushmem_command){.opcode = GPUSHMEM_CMD_FENCE, .pe = -1});
    step();
    cr_assert_eq(fake.n_ops, 5);
    const struct gpsh_op *op = fake.ops;
    cr_expect(op[0].kind == GPSH_OP_PUT && op[0].pe == 2 && op[0].local == local &&
              op[0].remote == 64 && op[0].bytes == 32);
    cr_expect(op[1].kind == GPSH_OP_GET && op[1].pe == 1 && op[1].local == local &&
              op[1].remote == 64);
    cr_expect(op[2].kind == GPSH_OP_AMO && op[2].amo == GPSH_AMO_CSWAP && op[2].width == 4 &&
              op[2].remote == 8);
    cr_expect(op[2].operand == 5 && op[2].compare == 6 && op[2].result == NULL);
    cr_expect(op[3].kind == GPSH_OP_PUT_SIGNAL && op[3].signal == 128 && op[3].operand == 9);
    cr_expect(op[3].flags & GPSH_OP_SIGNAL_ADD);
    uint64_t value;
    memcpy(&value, op[4].local, sizeof value);
    cr_expect(op[4].kind == GPSH_OP_PUT && op[4].bytes == 8 && value == 0x1122334455667788);
    cr_expect_eq(fake.fences, 1);
    cr_expect_eq(fake.fence_pe, GPSH_ALL_PES);
    cr_expect_eq(fake.flushes, 1, "one doorbell for the batch");
    cr_expect_eq(consumed(0), 6);
    cr_expect_eq(completed(0), 0);
}

Test(proxy, put_signal_that_carries_its_payload__is_posted_with_a_copy_of_it)
{
    struct gpushmem_command c = {.opcode = GPUSHMEM_CMD_PUT_SIGNAL_INLINE,
                                 .flags = GPUSHMEM_CMD_SIGNAL_ADD,
                                 .pe = 2,
                                 .remote = (uintptr_t)heap + 64,
                                 .bytes = GPUSHMEM_SIGNAL_INLINE_BYTES,
                                 .operand = 9,
                                 .compare = (uintptr_t)heap + 128};
    memcpy(&c.local, forty, 8);
    memcpy(&c.reply, forty + 8, 8);
    memcpy(&c.extra, forty + 16, 8);
    push(0, c);
    step();
    const struct gpsh_op *op = &fake.ops[0];
    cr_assert_eq(fake.n_ops, 1);
    cr_expect(op->kind == GPSH_OP_PUT_SIGNAL && op->pe == 2 && op->remote == 64);
    cr_expect(op->signal == 128 && op->operand == 9 && op->flags & GPSH_OP_SIGNAL_ADD);
    cr_expect(op->flags & GPSH_OP_LOCAL_HOST && op->completion == NULL);
    cr_expect_arr_eq(op->local, forty, GPUSHMEM_SIGNAL_INLINE_BYTES);
    cr_expect_eq(completed(0), 0);
    fake_complete(&fake, 2, 1);
    step();
    cr_expect_eq(completed(0), 1);
}

// The first one does not wait for the commands of all other rings.
Test(proxy, doorbell__a_ring_with_many_posts__rings_before_the_next_ring_is_read)
{
    for (int i = 0; i < 20; i++)
        push(0, put_to(1));
    push(1, put_to(2));
    step();
    cr_expect_eq(fake.n_ops, 21);
    cr_expect_eq(fake.flushes, 2);
    cr_expect_eq(fake.ops_at_flush, 20);
}

Test(proxy, doorbell__a_few_posts_in_each_ring__one_for_all)
{
    push(0, put_to(1));
    push(1, put_to(2));
    step();
    cr_expect_eq(fake.flushes, 1);
    cr_expect_eq(fake.ops_at_flush, 2);
}

Test(proxy, long_inline__to_a_nic__its_bytes_stay_until_it_is_complete)
{
    push(0, long_inline(40));
    push(0, long_inline(9));
    step();
    cr_assert_eq(fake.n_ops, 2);
    cr_expect(fake.ops[0].kind == GPSH_OP_PUT && fake.ops[0].remote == 64 &&
              fake.ops[0].flags & GPSH_OP_LOCAL_HOST);
    cr_expect_eq(fake.ops[0].bytes, 40);
    cr_expect_eq(memcmp(fake.ops[0].local, forty, 40), 0);
    cr_expect_eq(memcmp(fake.ops[1].local, forty, 9), 0);
    cr_expect_neq(fake.ops[0].local, fake.ops[1].local);
    fake_complete(&fake, 1, 2);
    step();
    cr_expect_eq(completed(0), 2);
}

Test(proxy, completed__peers_finish_out_of_order__only_the_prefix_is_published)
{
    for (int pe = 0; pe < 3; pe++)
        push(0, put_to(pe));
    step();
    fake_complete(&fake, 2, 1);
    fake_complete(&fake, 1, 1);
    step();
    cr_expect_eq(completed(0), 0);
    fake_complete(&fake, 0, 1);
    step();
    cr_expect_eq(completed(0), 3);
}

Test(proxy, again__one_ring_stalls__the_other_runs_on_and_order_is_kept)
{
    fake.again = 1;
    push(0, put_to(0));
    push(0, put_to(1));
    push(1, put_to(2));
    step();
    cr_expect_eq(fake.n_ops, 1);
    cr_expect_eq(fake.ops[0].pe, 2);
    cr_expect_eq(consumed(0), 0);
    cr_expect_eq(consumed(1), 1);
    cr_expect_eq(proxy->rings[0].counters->commands, 1); // read, and waits
    cr_expect_eq(proxy->rings[0].counters->posts, 0);
    step();
    cr_assert_eq(fake.n_ops, 3);
    cr_expect_eq(fake.ops[1].pe, 0);
    cr_expect_eq(fake.ops[2].pe, 1);
    cr_expect_eq(proxy->rings[0].counters->stalls, 1);
    cr_expect_eq(proxy->rings[0].counters->commands, 2);
    cr_expect_eq(proxy->rings[0].counters->posts, 2);
}

Test(proxy, reply__fetching_atomic__answers_once_complete)
{
    struct gpushmem_command c = {.opcode = GPUSHMEM_CMD_AMO,
                                 .pe = 1,
                                 .remote = (uintptr_t)heap,
                                 .bytes = 8,
                                 .operand = 1,
                                 .extra = GPUSHMEM_AMO_ADD};
    fake.fetch = 0x8877665544332211;
    push(0, with_reply(c, 3, 77));
    step();
    cr_expect(!gpushmem_reply_ready(replies[3], 77));
    fake_complete(&fake, 1, 1);
    cr_assert(gpushmem_reply_ready(replies[3], 77));
    cr_expect_eq(reply_value(3), 0x8877665544332211);
    step();
    cr_expect_eq(completed(0), 1);
}

Test(proxy, reply__value_of_a_get__comes_in_the_answer)
{
    struct gpushmem_command c = {.opcode = GPUSHMEM_CMD_GET,
                                 .flags = GPUSHMEM_CMD_REPLY_VALUE,
                                 .pe = 1,
                                 .remote = (uintptr_t)heap,
                                 .bytes = 2};
    fake.fetch = 0xabcdef;
    fake.result = GPSH_POST_DONE;
    push(0, with_reply(c, 15, GPUSHMEM_REPLY_NONCE));
    step();
    cr_assert(gpushmem_reply_ready(replies[15], GPUSHMEM_REPLY_NONCE));
    cr_expect_eq(reply_value(15), 0xcdef);
    cr_expect_eq(completed(0), 1);
}

Test(proxy, reply_source__captured_source__answers_before_completion)
{
    struct gpushmem_command c = put_to(1);
    c.flags = GPUSHMEM_CMD_REPLY_SOURCE;
    fake.result = GPSH_POST_CAPTURED;
    push(0, with_reply(c, 0, 1));
    step();
    cr_expect(fake.ops[0].flags & GPSH_OP_CAPTURE);
    cr_expect(gpushmem_reply_ready(replies[0], 1));
    cr_expect_eq(completed(0), 0);
    fake.result = GPSH_POST_IN_FLIGHT;
    push(0, with_reply(c, 0, 2));
    step();
    cr_expect(!gpushmem_reply_ready(replies[0], 2), "the source is in use");
    fake_complete(&fake, 1, 2);
    cr_expect(gpushmem_reply_ready(replies[0], 2));
    step();
    cr_expect_eq(completed(0), 2);
}

Test(proxy, put_signal__atomics_by_another_transport__goes_there_as_a_whole)
{
    peers[1].amo = 1;
    struct gpushmem_command c = put_to(1);
    c.opcode = GPUSHMEM_CMD_PUT_SIGNAL;
    c.compare = (uintptr_t)heap;
    push(0, c);
    step();
    cr_expect_eq(fake.n_ops, 0);
    cr_expect_eq(other.n_ops, 1);
    cr_expect_eq(other.ops[0].kind, GPSH_OP_PUT_SIGNAL);
}

Test(proxy, strided__many_elements__posted_in_pieces_across_passes)
{
    struct gpushmem_command c = {.opcode = GPUSHMEM_CMD_IPUT,
                                 .flags = GPUSHMEM_CMD_REPLY_SOURCE,
                                 .pe = 1,
                                 .local = (uintptr_t)local,
                                 .remote = (uintptr_t)heap,
                                 .bytes = 200,
                                 .operand = 3,
                                 .compare = 2,
                                 .extra = 4};
    fake.result = GPSH_POST_CAPTURED;
    push(0, with_reply(c, 2, 5));
    push(0, put_to(2));
    fake.again = 0;
    step();
    cr_expect_lt(fake.n_ops, 200);
    cr_expect_eq(consumed(0), 0);
    fake.again = 1;
    for (int i = 0; i < 10; i++)
        step();
    cr_assert_eq(fake.n_ops, 201);
    for (int i = 0; i < 200; i++) {
        cr_assert_eq(fake.ops[i].remote, (uint64_t)i * 12);
        cr_assert_eq(fake.ops[i].local, local + i * 8);
        cr_assert_eq(fake.ops[i].bytes, 4);
    }
    cr_expect(gpushmem_reply_ready(replies[2], 5));
    cr_expect_eq(completed(0), 0);
    fake_complete(&fake, 1, 200);
    fake_complete(&fake, 2, 1);
    step();
    cr_expect_eq(completed(0), 2);
}

Test(proxy, strided__no_gaps__one_operation)
{
    push(0, (struct gpushmem_command){.opcode = GPUSHMEM_CMD_IGET,
                                      .pe = 1,
                                      .local = (uintptr_t)local,
                                      .remote = (uintptr_t)heap,
                                      .bytes = 100,
                                      .operand = 1,
                                      .compare = 1,
                                      .extra = 8});
    step();
    cr_assert_eq(fake.n_ops, 1);
    cr_expect_eq(fake.ops[0].bytes, 800);
    cr_expect_eq(fake.ops[0].kind, GPSH_OP_GET);
}

Test(proxy, wrap_around__many_laps__every_command_once_and_in_order)
{
    enum { TOTAL = 50 * ENTRIES };
    uint64_t done = 0;
    for (int posted = 0; done < TOTAL;) {
        while (posted < TOTAL && posted - (int)consumed(0) < ENTRIES) {
            struct gpushmem_command c = {.opcode = GPUSHMEM_CMD_PUT_INLINE,
                                         .pe = posted % FAKE_PES,
                                         .remote = (uintptr_t)heap,
                                         .bytes = 8,
                                         .operand = (uint64_t)posted};
            push(0, c);
            posted++;
        }
        step();
        for (int i = 0; i < fake.n_ops; i++) {
            uint64_t value;
            memcpy(&value, fake.ops[i].local, sizeof value);
            cr_assert_eq(value, done, "command %llu", (unsigned long long)done);
            done++;
        }
        for (int pe = 0; pe < FAKE_PES; pe++)
            fake_complete(&fake, pe, FAKE_JOURNAL);
        fake.n_ops = 0;
        step();
    }
    cr_expect_eq(completed(0), TOTAL);
}

Test(proxy, nothing_completes__reading_stops_when_the_in_flight_table_is_full)
{
    for (int i = 0; i < ENTRIES; i++)
        push(0, put_to(1));
    step();
    cr_assert_eq(consumed(0), ENTRIES);
    push(0, put_to(1));
    step();
    cr_expect_eq(consumed(0), ENTRIES, "no entry is free");
    fake_complete(&fake, 1, 1);
    step();
    step();
    cr_expect_eq(consumed(0), ENTRIES + 1);
}

Test(proxy, threads__stop_while_commands_are_in_flight__returns)
{
    for (int i = 0; i < ENTRIES; i++)
        push(0, put_to(i % FAKE_PES));
    cr_assert_eq(gpsh_proxy_start(proxy), 0);
    while (__atomic_load_n(&set.rings[0].status->consumed, __ATOMIC_ACQUIRE) < ENTRIES)
        gpsh_proxy_wake(&proxy->threads[0].sleeping);
    gpsh_proxy_stop(proxy);
    cr_expect_eq(fake.n_ops, ENTRIES);
}

Test(proxy, threads__asleep__a_wake_up_gets_the_command_read)
{
    fake.result = GPSH_POST_DONE;
    cr_assert_eq(gpsh_proxy_start(proxy), 0);
    for (int i = 0; i < 20; i++) {
        while (!__atomic_load_n(&proxy->threads[0].sleeping, __ATOMIC_SEQ_CST))
            sched_yield();
        uint64_t index = heads[0];
        push(0, put_to(1));
        gpsh_proxy_wake(&proxy->threads[0].sleeping);
        while (__atomic_load_n(&set.rings[0].status->completed, __ATOMIC_ACQUIRE) <= index)
            sched_yield();
    }
    gpsh_proxy_stop(proxy);
}

// An empty pass is idle time, one with work is not, and the parts make the whole.
Test(proxy, times__passes_with_and_without_work__parts_add_up)
{
    struct gpushmem_proxy_times times;
    gpsh_clock_start(&proxy->threads[0].clock);
    step();
    gpsh_proxy_times_read(proxy, &times);
    cr_assert_eq(
        times.parse_ns + times.post_ns + times.doorbell_ns + times.poll_ns + times.retire_ns, 0);
    for (int i = 0; i < 20; i++)
        push(0, put_to(1));
    step();
    uint64_t before = times.total_ns;
    gpsh_proxy_times_read(proxy, &times);
    uint64_t busy =
        times.parse_ns + times.post_ns + times.doorbell_ns + times.poll_ns + times.retire_ns;
    cr_assert_gt(times.parse_ns, 0);
    cr_assert_gt(times.post_ns, 0);
    cr_assert_gt(times.total_ns, before);
    cr_assert_eq(busy + times.idle_ns, times.total_ns);
}
