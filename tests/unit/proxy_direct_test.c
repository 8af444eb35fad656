// SPDX-License-Identifier: BSD-3-Clause
// Commands towards mapped peers, which the proxy executes on the spot.
#include "proxy_rig.h"

TestSuite(proxy_direct, .init = set_up, .fini = tear_down);

Test(proxy_direct, mapped_peer__every_kind_of_command__is_executed_and_answered_at_once)
{
    map_peers();
    uint64_t word = (uintptr_t)heap + 64;
    memcpy(local, "source of a put", 16);
    push(0, (struct gpushmem_command){.opcode = GPUSHMEM_CMD_NOP});
    push(0, (struct gpushmem_command){.opcode = GPUSHMEM_CMD_PUT_INLINE,
                                      .pe = 1,
                                      .remote = word,
                                      .bytes = 8,
                                      .operand = UINT64_MAX - 1});
    push(0, (struct gpushmem_command){.opcode = GPUSHMEM_CMD_AMO,
                                      .pe = 1,
                                      .remote = word,
                                      .bytes = 8,
                                      .operand = 5,
                                      .extra = GPUSHMEM_AMO_ADD});
    push(0, (struct gpushmem_command){.opcode = GPUSHMEM_CMD_AMO,
                                      .pe = 2,
                                      .remote = word + 4,
                                      .bytes = 4,
                                      .operand = 6,
                                      .extra = GPUSHMEM_AMO_SET});
    struct gpushmem_command c = {.opcode = GPUSHMEM_CMD_PUT_SIGNAL,
                                 .flags = GPUSHMEM_CMD_SIGNAL_ADD,
                                 .pe = 2,
                                 .local = (uintptr_t)local,
                                 .remote = word + 64,
                                 .bytes = 16,
                                 .operand = 9,
                                 .compare = word + 128};
    push(0, c);
    push(0, c);
    push(0, (struct gpushmem_command){.opcode = GPUSHMEM_CMD_GET,
                                      .pe = 2,
                                      .local = (uintptr_t)local + 100,
                                      .remote = word + 64,
                                      .bytes = 16});
    push(0, with_reply((struct gpushmem_command){.opcode = GPUSHMEM_CMD_AMO,
                                                 .pe = 1,
                                                 .remote = word,
                                                 .bytes = 8,
                                                 .operand = UINT64_MAX,
                                                 .extra = GPUSHMEM_AMO_SWAP},
                       3, 7));
    push(0, with_reply((struct gpushmem_command){.opcode = GPUSHMEM_CMD_GET,
                                                 .flags = GPUSHMEM_CMD_REPLY_VALUE,
                                                 .pe = 2,
                                                 .remote = word + 4,
                                                 .bytes = 2},
                       4, 8));
    step();
    uint64_t values[3];
    memcpy(&values[0], mapped[1] + 64, 8);
    memcpy(&values[1], mapped[2] + 64, 8);
    memcpy(&values[2], mapped[2] + 192, 8);
    cr_expect_eq(values[0], UINT64_MAX);
    cr_expect_eq(values[1], (uint64_t)6 << 32);
    cr_expect_eq(values[2], 18);
    cr_expect_str_eq(mapped[2] + 128, "source of a put");
    cr_expect_str_eq(local + 100, "source of a put");
    cr_expect(gpushmem_reply_ready(replies[3], 7));
    cr_expect_eq(reply_value(3), 3, "-2 + 5");
    cr_expect(gpushmem_reply_ready(replies[4], 8));
    cr_expect_eq(reply_value(4), 6);
    cr_expect_eq(fake.n_ops, 0);
    cr_expect_eq(completed(0), 9);
}

Test(proxy_direct, mapped_peer__behind_a_command_in_flight__completes_after_it)
{
    map_peers();
    direct[1] = NULL;
    push(0, put_to(1));
    for (int i = 1; i < ENTRIES; i++)
        push(0, put_to(2));
    step();
    cr_assert_eq(fake.n_ops, 1);
    cr_expect_eq(consumed(0), ENTRIES);
    push(0, put_to(2));
    step();
    cr_expect_eq(consumed(0), ENTRIES, "no entry is free");
    cr_expect_eq(completed(0), 0);
    fake_complete(&fake, 1, 1);
    step();
    cr_expect_eq(completed(0), ENTRIES);
    step();
    cr_expect_eq(completed(0), ENTRIES + 1);
}

Test(proxy_direct, mapped_peer__lost__its_commands_fail)
{
    map_peers();
    peers[1].error = GPUSHMEM_ERR_PE_FAILED;
    push(0, with_reply(put_to(1), 1, 9));
    push(0, put_to(2));
    step();
    cr_expect(replies[1].low & GPUSHMEM_REPLY_FAILED);
    cr_expect_eq(completed(0), 2);
    cr_expect_eq(gpsh_proxy_take_error(proxy), GPUSHMEM_ERR_PE_FAILED);
}
