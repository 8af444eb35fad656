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

// A command that carries `bytes` bytes, 1, 2, 3, ..., with the top bit set in some of its words.
static struct gpushmem_command carrying(uint8_t opcode, uint64_t bytes)
{
    struct gpushmem_command c = {
        .opcode = opcode, .pe = 1, .remote = (uintptr_t)heap + 256 + bytes, .bytes = bytes};
    uint8_t payload[GPUSHMEM_INLINE_BYTES];
    uint64_t words[GPUSHMEM_INLINE_BYTES / 8];
    for (unsigned i = 0; i < sizeof payload; i++)
        payload[i] = (uint8_t)(i % 8 == 7 ? 0x80 + i : i + 1);
    memcpy(words, payload, sizeof words);
    if (opcode == GPUSHMEM_CMD_PUT_INLINE) {
        c.operand = words[0], c.local = words[1], c.compare = words[2];
        c.reply = words[3], c.extra = words[4];
    } else {
        c.local = words[0], c.reply = words[1], c.extra = words[2];
        c.operand = UINT64_MAX - 4;
        c.compare = (uintptr_t)heap + 64;
    }
    return c;
}

static void expect_carried(const char *at, uint64_t bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        cr_assert_eq((uint8_t)at[i], i % 8 == 7 ? 0x80 + i : i + 1, "byte %u of %llu", i,
                     (unsigned long long)bytes);
    cr_assert_eq(at[bytes], 0, "nothing beyond %llu", (unsigned long long)bytes);
}

Test(proxy_direct, mapped_peer__payload_in_the_command__is_written_at_once)
{
    for (uint64_t bytes = 9; bytes <= GPUSHMEM_INLINE_BYTES; bytes++) {
        map_peers();
        push(0, carrying(GPUSHMEM_CMD_PUT_INLINE, bytes));
        step();
        expect_carried(mapped[1] + 256 + bytes, bytes);
    }
    for (uint64_t bytes = 1; bytes <= GPUSHMEM_SIGNAL_INLINE_BYTES; bytes++) {
        struct gpushmem_command c = carrying(GPUSHMEM_CMD_PUT_SIGNAL_INLINE, bytes);
        uint64_t signal;
        map_peers();
        push(0, c);
        c.flags = GPUSHMEM_CMD_SIGNAL_ADD;
        push(0, c);
        step();
        expect_carried(mapped[1] + 256 + bytes, bytes);
        memcpy(&signal, mapped[1] + 64, sizeof signal);
        cr_assert_eq(signal, UINT64_MAX - 9);
    }
    cr_expect_eq(fake.n_ops, 0);
    cr_expect_eq(completed(0), consumed(0));
    cr_expect_eq(proxy->rings[0].counters->posts, proxy->rings[0].counters->commands);
}
