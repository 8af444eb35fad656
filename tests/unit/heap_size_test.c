// SPDX-License-Identifier: BSD-3-Clause
#include <criterion/criterion.h>

#include "memory/regions.h"

static const uint64_t MIB = 1 << 20, STANDARD = 256 << 20, RESERVED = 22 << 20;

Test(heap_size, room_for_it__is_the_standard)
{
    cr_expect_eq(gpsh_heap_size_fitting(STANDARD, RESERVED, STANDARD + RESERVED), STANDARD);
    cr_expect_eq(gpsh_heap_size_fitting(STANDARD, RESERVED, UINT64_MAX), STANDARD);
}

Test(heap_size, too_little_room__is_half_of_it_in_whole_mib)
{
    cr_expect_eq(gpsh_heap_size_fitting(STANDARD, RESERVED, STANDARD), STANDARD / 2);
    cr_expect_eq(gpsh_heap_size_fitting(STANDARD, RESERVED, 101 * MIB), 50 * MIB);
}

Test(heap_size, less_than_half_beside_what_is_reserved__is_what_is_left)
{
    cr_expect_eq(gpsh_heap_size_fitting(STANDARD, RESERVED, 30 * MIB), 8 * MIB);
}

Test(heap_size, no_room__is_the_smallest_heap)
{
    cr_expect_eq(gpsh_heap_size_fitting(STANDARD, RESERVED, 0), MIB);
    cr_expect_eq(gpsh_heap_size_fitting(STANDARD, RESERVED, RESERVED), MIB);
}
