// SPDX-License-Identifier: BSD-3-Clause
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "transport/direct.h"

Test(direct, amo64__every_operation)
{
    static const struct {
        enum gpsh_amo amo;
        uint64_t start, operand, compare, after;
    } rows[] = {
        {GPSH_AMO_FETCH, 5, 9, 9, 5},
        {GPSH_AMO_SET, 5, 9, 0, 9},
        {GPSH_AMO_ADD, UINT64_MAX, 3, 0, 2},
        {GPSH_AMO_SWAP, 5, 9, 0, 9},
        {GPSH_AMO_CSWAP, 5, 9, 5, 9},
        {GPSH_AMO_CSWAP, 5, 9, 6, 5},
        {GPSH_AMO_AND, 0xff0f, 0xf0ff, 0, 0xf00f},
        {GPSH_AMO_OR, 0xf0, 0x0f, 0, 0xff},
        {GPSH_AMO_XOR, 0xff, 0x0f, 0, 0xf0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint64_t word = rows[i].start;
        cr_expect_eq(gpsh_direct_amo64(&word, rows[i].amo, rows[i].operand, rows[i].compare),
                     rows[i].start, "row %zu", i);
        cr_expect_eq(word, rows[i].after, "row %zu", i);
        uint32_t pair[2] = {(uint32_t)rows[i].start, 0xabcdabcd};
        cr_expect_eq(gpsh_direct_amo32(pair, rows[i].amo, (uint32_t)rows[i].operand,
                                       (uint32_t)rows[i].compare),
                     (uint32_t)rows[i].start, "row %zu", i);
        cr_expect_eq(pair[0], (uint32_t)rows[i].after, "row %zu", i);
        cr_expect_eq(pair[1], 0xabcdabcd, "a 32-bit atomic wrote its neighbour");
    }
}

Test(direct, copy__every_size_and_misalignment)
{
    unsigned char from[64], to[64];
    for (int i = 0; i < 64; i++)
        from[i] = (unsigned char)(i * 7 + 1);
    for (size_t bytes = 0; bytes <= 24; bytes++)
        for (size_t a = 0; a < 9; a++)
            for (size_t b = 0; b < 9; b++) {
                memset(to, 0, sizeof to);
                gpsh_direct_copy(to + b, from + a, bytes);
                cr_expect_eq(memcmp(to + b, from + a, bytes), 0);
                cr_expect_eq(to[b + bytes], 0, "wrote too far");
            }
}

// Sizes on both sides of where the way changes, as memmove has it, also where they overlap.
Test(direct, large_copy__is_memmove)
{
    static const size_t sizes[] = {GPSH_DIRECT_LARGE, (5 << 19) + 3, 3 << 20, (16 << 20) + 1};
    enum { ROOM = 40 << 20 };
    unsigned char *memory = malloc(ROOM), *expected = malloc(ROOM);
    cr_assert(memory && expected);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const size_t places[][2] = {
            {1, (20 << 20) + 5}, {(20 << 20) + 5, 1}, {100, 101}, {4196, 100}};
        for (size_t k = 0; k < sizeof places / sizeof places[0]; k++) {
            for (size_t b = 0; b < ROOM; b++)
                memory[b] = (unsigned char)(b * 31 >> 3);
            memcpy(expected, memory, ROOM);
            memmove(expected + places[k][0], expected + places[k][1], sizes[i]);
            gpsh_direct_copy(memory + places[k][0], memory + places[k][1], sizes[i]);
            cr_expect_eq(memcmp(memory, expected, ROOM), 0, "%zu bytes, places %zu", sizes[i], k);
        }
    }
    free(expected);
    free(memory);
}
