// SPDX-License-Identifier: BSD-3-Clause
// Promises about atomics: every operation in both widths does what a model of it does, touches
// nothing beside its word, delivers exactly its width, and loses no update to another channel or
// PE.
#define _GNU_SOURCE
#include <string.h>

#include "contract.h"
#include "core/error.h"
#include "tests/fakes/amo_model.h"

enum { WORDS = 4096 }; // offset of the words worked on

// One atomic on a word at WORDS + 16 with known neighbours, with or without a result.
static bool one_amo(struct world *world, enum gpsh_amo amo, int width, uint64_t old,
                    uint64_t operand, uint64_t compare, bool upper, bool fetch)
{
    uint64_t offset = WORDS + 16 + (upper ? 4 : 0), mask = width == 8 ? UINT64_MAX : UINT32_MAX,
             found = 0;
    unsigned char result[16], expected[40];
    memset(target_at(world, WORDS), 0xa5, 40);
    memcpy(target_at(world, offset), &old, (size_t)width);
    memcpy(expected, target_at(world, WORDS), 40);
    uint64_t value = amo_model(amo, old & mask, operand & mask, compare & mask);
    memcpy(expected + offset - WORDS, &value, (size_t)width);
    memset(result, 0x77, sizeof result);
    struct gpsh_op op = amo_op(world, amo, width, offset, operand, compare, fetch ? result : NULL);
    if (!post_and_drain(world, &op))
        return false;
    CHECK(!memcmp(target_at(world, WORDS), expected, 40),
          "operation %d, %d bytes%s, on %llx with %llx", amo, width, upper ? ", upper half" : "",
          (unsigned long long)old, (unsigned long long)operand);
    memcpy(&found, result, (size_t)width);
    CHECK(!fetch || found == (old & mask), "operation %d, %d bytes: fetched %llx instead of %llx",
          amo, width, (unsigned long long)found, (unsigned long long)old);
    for (size_t i = fetch ? (size_t)width : 0; i < sizeof result; i++)
        CHECK(result[i] == 0x77, "operation %d, %d bytes: result is wider than its width", amo,
              width);
    return true;
}

static bool every_operation(struct world *world)
{
    static const uint64_t values[] = {0, 1, 0x80000000, 0xffffffff, 0x123456789abcdef0, UINT64_MAX};
    for (int amo = GPSH_AMO_FETCH; amo <= GPSH_AMO_XOR; amo++)
        for (int form = 0; form < 3; form++) // 8 bytes, lower half, upper half
            for (int v = 0; v < 36; v++) {
                uint64_t old = values[v / 6], operand = values[v % 6];
                uint64_t compare = v % 2 ? old : old + 1;
                if (!one_amo(world, amo, form ? 4 : 8, old, operand, compare, form == 2,
                             v % 3 != 0))
                    return false;
            }
    return true;
}

// Posted without waiting, on four words in both widths: each word sees the operations in posting
// order.
static bool order_on_a_word(struct world *world)
{
    enum { N = 600 };
    static uint64_t results[N];
    uint64_t expected[N], words[4] = {0}, state = 7;
    memset(target_at(world, WORDS), 0, sizeof words);
    memset(results, 0, sizeof results);
    for (int i = 0; i < N; i++) {
        uint64_t random = random_number(&state), operand = random_number(&state) % 1000;
        int word = random % 4, width = random & 16 ? 4 : 8,
            shift = width == 4 && random & 32 ? 32 : 0;
        uint64_t mask = (width == 8 ? UINT64_MAX : UINT32_MAX) << shift;
        uint64_t old = (words[word] & mask) >> shift, compare = random & 64 ? old : operand;
        enum gpsh_amo amo = (enum gpsh_amo)(random >> 8 & 7);
        uint64_t value = amo_model(amo, old, operand, compare);
        expected[i] = old;
        words[word] = (words[word] & ~mask) | (value << shift & mask);
        struct gpsh_op op = amo_op(world, amo, width, (uint64_t)(WORDS + word * 8 + shift / 8),
                                   operand, compare, &results[i]);
        op.flags = random & 128 ? GPSH_OP_MORE : 0;
        CHECK(post(world, world->channel, &op) >= 0, "%s", gpsh_last_error());
    }
    world->ops->flush(world->channel);
    if (!drain(world->channel))
        return false;
    CHECK(!memcmp(target_at(world, WORDS), words, sizeof words), "the words ended otherwise");
    for (int i = 0; i < N; i++)
        CHECK(results[i] == expected[i], "operation %d fetched %llx instead of %llx", i,
              (unsigned long long)results[i], (unsigned long long)expected[i]);
    return true;
}

// What PE 1 posts towards the same PE, so that two agents meet on the word. What others may wait
// for is not left alone.
static bool post_from(struct world *world, struct gpsh_channel *channel, const struct gpsh_op *op)
{
    int status = post(world, channel, op);
    CHECK(status >= 0 && status != GPSH_POST_AGAIN, "%d: %s", status, gpsh_last_error());
    if (status == GPSH_POST_URGENT && !drain(channel))
        return false;
    world->ops->progress(world->channel);
    return true;
}

// Two channels of PE 0 and, where it can, PE 1 all change the same words: adds to one half, xor of
// the other.
static bool no_update_is_lost(struct world *world)
{
    enum { N = 250 };
    bool alone = world->ops == &gpsh_loop_ops;
    struct gpsh_channel *channels[] = {world->channel, world->pes[0].channels[1],
                                       world->pes[1].channels[0]};
    int n_channels = alone ? 2 : 3;
    memset(target_at(world, WORDS), 0, 16);
    for (int i = 0; i < N; i++)
        for (int c = 0; c < n_channels; c++) {
            struct gpsh_op add8 = amo_op(world, GPSH_AMO_ADD, 8, WORDS, 1, 0, NULL);
            struct gpsh_op add4 = amo_op(world, GPSH_AMO_ADD, 4, WORDS + 8, 1, 0, NULL);
            struct gpsh_op flip =
                amo_op(world, GPSH_AMO_XOR, 4, WORDS + 12, 1u << (c * 8 + i % 8), 0, NULL);
            if (!post_from(world, channels[c], &add8) || !post_from(world, channels[c], &add4) ||
                !post_from(world, channels[c], &flip))
                return false;
        }
    for (int c = 0; c < n_channels; c++)
        if (!drain(channels[c]))
            return false;
    uint32_t bits = 0, halves[2];
    for (int i = 0; i < N; i++)
        for (int c = 0; c < n_channels; c++)
            bits ^= 1u << (c * 8 + i % 8);
    memcpy(halves, target_at(world, WORDS + 8), sizeof halves);
    uint64_t sum = *(const volatile uint64_t *)target_at(world, WORDS);
    CHECK(sum == (uint64_t)(N * n_channels), "8-byte adds: %llu of %d", (unsigned long long)sum,
          N * n_channels);
    CHECK(halves[0] == (uint32_t)(N * n_channels), "4-byte adds: %u of %d", halves[0],
          N * n_channels);
    CHECK(halves[1] == bits, "xor: %x instead of %x", halves[1], bits);
    return true;
}

static bool misaligned(struct world *world)
{
    struct gpsh_op word = amo_op(world, GPSH_AMO_ADD, 8, WORDS + 4, 1, 0, NULL);
    struct gpsh_op half = amo_op(world, GPSH_AMO_ADD, 4, WORDS + 2, 1, 0, NULL);
    CHECK(world->ops->post(world->channel, &word) == GPUSHMEM_ERR_ALIGNMENT,
          "8 bytes at a multiple of 4");
    CHECK(world->ops->post(world->channel, &half) == GPUSHMEM_ERR_ALIGNMENT,
          "4 bytes at a multiple of 2");
    CHECK(world->channel->flows[world->target].posted == 0, "a refused operation was counted");
    return true;
}

const struct promise amo_promises[] = {
    {.name = "atomics: every operation, both widths", every_operation},
    {.name = "atomics: posting order on each word", order_on_a_word},
    {.name = "atomics: no update is lost", no_update_is_lost},
    {.name = "atomics: misaligned ones are refused", misaligned, .nic_only = true},
    {.name = NULL},
};
