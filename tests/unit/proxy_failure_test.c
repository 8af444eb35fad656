// SPDX-License-Identifier: BSD-3-Clause
// What the proxy does with lost peers, refused operations, bad arguments and ring entries that are
// no commands.
#include "proxy_rig.h"

TestSuite(proxy_failure, .init = set_up, .fini = tear_down);

static void lose_pe_1(void)
{
    peers[1].reason = "it left";
    peers[1].error = GPUSHMEM_ERR_PE_FAILED;
    fake_fail(&fake, 1, GPUSHMEM_ERR_PE_FAILED);
    step();
}

Test(proxy_failure, failed_peer__its_commands_fail__others_run_on)
{
    struct gpushmem_command c = put_to(1);
    c.opcode = GPUSHMEM_CMD_GET;
    push(0, put_to(1));
    push(0, with_reply(c, 1, 9));
    push(0, put_to(2));
    step();
    lose_pe_1();
    cr_assert(gpushmem_reply_ready(replies[1], 9));
    cr_expect(replies[1].low & GPUSHMEM_REPLY_FAILED);
    cr_expect_eq((int32_t)(uint32_t)replies[1].low, GPUSHMEM_ERR_PE_FAILED);
    cr_expect_eq(completed(0), 2);
    fake_complete(&fake, 2, 1);
    push(0, put_to(1));
    push(0, put_to(3));
    step();
    cr_expect_eq(fake.n_ops, 4, "nothing more is posted to the lost PE");
    fake_complete(&fake, 3, 1);
    step();
    cr_expect_eq(completed(0), 5);
    cr_expect_eq(gpsh_proxy_take_error(proxy), GPUSHMEM_ERR_PE_FAILED);
    cr_expect(strstr(gpsh_last_error(), "it left"));
    cr_expect_eq(gpsh_proxy_take_error(proxy), 0, "told once");
}

Test(proxy_failure, failed_peer__put_that_owes_no_answer__its_loss_is_told)
{
    push(0, put_to(1));
    step();
    lose_pe_1();
    cr_expect_eq(completed(0), 1);
    cr_expect_eq(proxy->rings[0].counters->errors, 1);
    cr_expect_eq(gpsh_proxy_take_error(proxy), GPUSHMEM_ERR_PE_FAILED);
    cr_expect(strstr(gpsh_last_error(), "it left"), "%s", gpsh_last_error());
}

// The answer of a get that failed says that its destination is free.
Test(proxy_failure, failed_peer__nic_still_at_work__is_over_when_it_has_stopped)
{
    struct gpushmem_command c = put_to(1);
    c.opcode = GPUSHMEM_CMD_GET;
    push(0, with_reply(c, 1, 9));
    push(0, put_to(1));
    step();
    fake.flows[1].error = GPUSHMEM_ERR_PE_FAILED;
    step();
    cr_expect_eq(completed(0), 0);
    cr_expect(!gpushmem_reply_ready(replies[1], 9));
    lose_pe_1();
    cr_expect_eq(completed(0), 2);
    cr_expect(replies[1].low & GPUSHMEM_REPLY_FAILED);
}

Test(proxy_failure, post_refused__that_command_fails_with_its_sentence)
{
    fake.refuse = GPUSHMEM_ERR_TRANSPORT;
    push(0, with_reply(put_to(1), 1, 3));
    push(0, put_to(1));
    step();
    cr_expect(gpushmem_reply_ready(replies[1], 3));
    cr_expect(replies[1].low & GPUSHMEM_REPLY_FAILED);
    cr_expect_eq(fake.n_ops, 1);
    cr_expect_eq(gpsh_proxy_take_error(proxy), GPUSHMEM_ERR_TRANSPORT);
}

// The NIC still holds what was under way to a lost peer, though nothing is pending any more: only
// progress makes room.
Test(proxy_failure, no_room_and_nothing_pending__progress_makes_room)
{
    fake.full = true;
    push(0, put_to(2));
    step();
    cr_expect_eq(fake.n_ops, 0);
    step();
    cr_expect_eq(fake.n_ops, 1);
}

static void expect_bad_arguments_refused(void)
{
    struct gpushmem_command c = put_to(FAKE_PES);
    push(0, with_reply(c, 0, 1));
    step();
    cr_expect(replies[0].low & GPUSHMEM_REPLY_FAILED);
    cr_expect_eq(gpsh_proxy_take_error(proxy), GPUSHMEM_ERR_PE);
    const struct gpushmem_command bad[] = {
        {.opcode = GPUSHMEM_CMD_PUT,
         .local = (uintptr_t)local,
         .remote = (uintptr_t)heap - 1,
         .bytes = 1},
        {.opcode = GPUSHMEM_CMD_PUT,
         .local = (uintptr_t)local,
         .remote = (uintptr_t)heap + HEAP_BYTES - 3,
         .bytes = 4},
        {.opcode = GPUSHMEM_CMD_PUT,
         .local = (uintptr_t)local,
         .remote = (uintptr_t)heap,
         .bytes = UINT64_MAX},
        {.opcode = GPUSHMEM_CMD_PUT, .local = 0, .remote = (uintptr_t)heap, .bytes = 16},
        {.opcode = GPUSHMEM_CMD_PUT,
         .local = (uintptr_t)heap + HEAP_BYTES - 8,
         .remote = (uintptr_t)heap,
         .bytes = 16},
        {.opcode = GPUSHMEM_CMD_GET,
         .local = UINT64_MAX - 4,
         .remote = (uintptr_t)heap,
         .bytes = 16},
        {.opcode = GPUSHMEM_CMD_PUT_SIGNAL,
         .local = (uintptr_t)local,
         .remote = (uintptr_t)heap,
         .compare = 8},
        {.opcode = GPUSHMEM_CMD_PUT_SIGNAL,
         .remote = (uintptr_t)heap,
         .compare = (uintptr_t)heap + 4},
        {.opcode = GPUSHMEM_CMD_PUT_SIGNAL_INLINE,
         .remote = (uintptr_t)heap,
         .bytes = 8,
         .compare = (uintptr_t)heap + 4},
        {.opcode = GPUSHMEM_CMD_PUT_SIGNAL_INLINE,
         .remote = (uintptr_t)heap + HEAP_BYTES - 7,
         .bytes = 8,
         .compare = (uintptr_t)heap},
        {.opcode = GPUSHMEM_CMD_PUT_INLINE, .remote = (uintptr_t)heap - 1, .bytes = 40},
        {.opcode = GPUSHMEM_CMD_IPUT,
         .local = (uintptr_t)local,
         .remote = (uintptr_t)heap,
         .bytes = 1 << 20,
         .operand = 1,
         .compare = 1,
         .extra = 8},
        {.opcode = GPUSHMEM_CMD_IPUT,
         .local = (uintptr_t)local,
         .remote = (uintptr_t)heap,
         .bytes = 3,
         .operand = UINT64_MAX / 2,
         .compare = 1,
         .extra = 8},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        push(0, bad[i]);
        step();
        cr_expect_eq(gpsh_proxy_take_error(proxy), GPUSHMEM_ERR_ADDRESS, "row %zu", i);
    }
    for (int stride = -1; stride <= 0; stride++) {
        push(0, (struct gpushmem_command){.opcode = GPUSHMEM_CMD_IPUT,
                                          .local = (uintptr_t)local,
                                          .remote = (uintptr_t)heap,
                                          .bytes = 2,
                                          .operand = (uint64_t)stride,
                                          .compare = 1,
                                          .extra = 8});
        step();
        cr_expect_eq(gpsh_proxy_take_error(proxy), GPUSHMEM_ERR_INVALID, "stride %d", stride);
    }
    push(0, (struct gpushmem_command){
                .opcode = GPUSHMEM_CMD_AMO, .remote = (uintptr_t)heap + 4, .bytes = 8});
    step();
    cr_expect_eq(gpsh_proxy_take_error(proxy), GPUSHMEM_ERR_ALIGNMENT);
    cr_expect_eq(fake.n_ops, 0);
    push(0, put_to(1));
    step();
    cr_expect_eq(fake.n_ops, 1, "the ring goes on");
}

static int asked; // how often

static bool only_local(uint64_t address, uint64_t bytes)
{
    asked++;
    return address >= (uintptr_t)local && address + bytes <= (uintptr_t)local + HEAP_BYTES;
}

Test(proxy_failure, local_memory__unknown__fails_that_command_and_tells_which)
{
    char elsewhere[32];
    struct gpushmem_command c = put_to(1);
    proxy->env.local_known = only_local;
    push(0, c);
    c.local = (uintptr_t)elsewhere;
    push(0, c);
    c.local = (uintptr_t)heap + 128;
    push(0, c);
    step();
    cr_expect_eq(fake.n_ops, 2);
    cr_expect_eq(asked, 3, "the heap needs no question, and what is refused is looked at again");
    cr_expect_eq(gpsh_proxy_take_error(proxy), GPUSHMEM_ERR_ADDRESS);
    cr_expect(strstr(gpsh_last_error(), "towards PE 1 (ring 0, command 1): the local buffer [0x"),
              "%s", gpsh_last_error());
    cr_expect(strstr(gpsh_last_error(), ", +32) is no memory that can be used; it may be in"), "%s",
              gpsh_last_error());
}

Test(proxy_failure, bad_arguments__fail_the_command_not_the_ring)
{
    expect_bad_arguments_refused();
}

Test(proxy_failure, bad_arguments__mapped_peers__fail_the_same)
{
    map_peers();
    direct[1] = NULL; // where the last command goes
    expect_bad_arguments_refused();
}

static void expect_corrupt_entries_close(bool with_mapped_peer)
{
    const struct gpushmem_command corrupt[] = {
        {.opcode = 0},
        {.opcode = GPUSHMEM_CMD_LAST + 1},
        {.opcode = GPUSHMEM_CMD_NOP, .flags = 0x80},
        {.opcode = GPUSHMEM_CMD_NOP, .context = 1},
        {.opcode = GPUSHMEM_CMD_NOP, .reply = 1},
        {.opcode = GPUSHMEM_CMD_NOP,
         .flags = GPUSHMEM_CMD_REPLY,
         .reply = (uint64_t)REPLIES << 32 | 1},
        {.opcode = GPUSHMEM_CMD_NOP, .flags = GPUSHMEM_CMD_REPLY, .reply = 1ull << 32},
        {.opcode = GPUSHMEM_CMD_PUT_INLINE, .bytes = 41},
        {.opcode = GPUSHMEM_CMD_PUT_INLINE, .bytes = 9, .flags = GPUSHMEM_CMD_SIGNAL_ADD},
        {.opcode = GPUSHMEM_CMD_PUT_SIGNAL_INLINE, .bytes = 25},
        {.opcode = GPUSHMEM_CMD_PUT_SIGNAL_INLINE, .bytes = 0},
        {.opcode = GPUSHMEM_CMD_PUT_SIGNAL_INLINE, .bytes = 8, .flags = GPUSHMEM_CMD_REPLY},
        {.opcode = GPUSHMEM_CMD_PUT_SIGNAL_INLINE, .bytes = 8, .context = 1},
        {.opcode = GPUSHMEM_CMD_AMO, .bytes = 2},
        {.opcode = GPUSHMEM_CMD_AMO, .bytes = 4, .extra = 8},
        {.opcode = GPUSHMEM_CMD_IPUT, .extra = 0},
        {.opcode = GPUSHMEM_CMD_IGET, .extra = 17},
    };
    for (size_t i = 0; i < sizeof corrupt / sizeof *corrupt; i++) {
        if (with_mapped_peer) {
            map_peers();
            direct[1] = direct[2] = NULL;
        }
        push(0, put_to(1));
        push(0, corrupt[i]);
        push(0, put_to(1));
        push(1, put_to(2));
        step();
        cr_expect_eq(set.rings[0].status->error, GPUSHMEM_ERR_RING, "row %zu", i);
        cr_expect_eq(fake.n_ops, 2, "row %zu", i);
        cr_expect_eq(set.rings[1].status->error, 0);
        cr_expect_eq(gpsh_proxy_take_error(proxy), GPUSHMEM_ERR_RING);
        cr_expect(strstr(gpsh_last_error(), "ring 0, command 1"), "%s", gpsh_last_error());
        fake_complete(&fake, 1, 1);
        fake_complete(&fake, 2, 1);
        step();
        cr_expect_eq(completed(0), 1, "what was posted before still completes");
        int error;
        cr_expect(quiet_now(&error));
        cr_expect_eq(error, GPUSHMEM_ERR_RING);
        tear_down();
        set_up();
    }
}

Test(proxy_failure, corrupt_entry__closes_that_ring_with_its_index__the_other_goes_on)
{
    expect_corrupt_entries_close(false);
}

Test(proxy_failure, corrupt_entry__mapped_peer__closes_the_same)
{
    expect_corrupt_entries_close(true);
}
