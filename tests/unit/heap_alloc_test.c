// SPDX-License-Identifier: BSD-3-Clause
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "memory/heap_alloc.h"

enum { MANY = 600 };

struct model {
    uint64_t offset, bytes;
};

static uint64_t random_next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

Test(heap_alloc, one_block__takes_the_whole_heap_and_gives_it_back)
{
    struct gpsh_heap_alloc *heap = gpsh_heap_alloc_new(1 << 20);
    struct gpsh_heap_usage usage;
    cr_assert_eq(gpsh_heap_alloc_take(heap, 1 << 20, 1), 0);
    cr_expect_eq(gpsh_heap_alloc_take(heap, 1, 1), -1);
    gpsh_heap_alloc_usage(heap, &usage);
    cr_expect_eq(usage.largest_free, 0);
    cr_expect(gpsh_heap_alloc_give(heap, 0));
    cr_expect_not(gpsh_heap_alloc_give(heap, 0), "given twice");
    gpsh_heap_alloc_usage(heap, &usage);
    cr_expect_eq(usage.largest_free, 1 << 20);
    cr_expect_eq(usage.allocations, 0);
    gpsh_heap_alloc_delete(heap);
    gpsh_heap_alloc_delete(NULL);
}

Test(heap_alloc, foreign_offset__is_refused)
{
    struct gpsh_heap_alloc *heap = gpsh_heap_alloc_new(1 << 20);
    int64_t block = gpsh_heap_alloc_take(heap, 4096, 1);
    cr_expect_not(gpsh_heap_alloc_give(heap, (uint64_t)block + 256), "inside a block");
    cr_expect_not(gpsh_heap_alloc_give(heap, (uint64_t)block + 1));
    cr_expect_not(gpsh_heap_alloc_give(heap, 1ull << 40), "outside the heap");
    cr_expect_eq(gpsh_heap_alloc_size(heap, (uint64_t)block), 4096);
    cr_expect_eq(gpsh_heap_alloc_size(heap, (uint64_t)block + 256), 0);
    gpsh_heap_alloc_delete(heap);
}

Test(heap_alloc, absurd_requests__are_refused_and_harm_nothing)
{
    struct gpsh_heap_alloc *heap = gpsh_heap_alloc_new(1 << 20);
    cr_expect_eq(gpsh_heap_alloc_take(heap, UINT64_MAX, 1), -1);
    cr_expect_eq(gpsh_heap_alloc_take(heap, UINT64_MAX - 255, 1), -1);
    cr_expect_eq(gpsh_heap_alloc_take(heap, (1 << 20) + 1, 1), -1);
    cr_expect_eq(gpsh_heap_alloc_take(heap, 1, 1ull << 63), 0);
    cr_expect_eq(gpsh_heap_alloc_take(heap, 1, 1ull << 63), -1, "only offset 0 is such a place");
    cr_expect(gpsh_heap_alloc_give(heap, 0));
    cr_expect(gpsh_heap_alloc_check(heap));
    cr_expect_eq(gpsh_heap_alloc_take(heap, 1 << 20, 1), 0);
    gpsh_heap_alloc_delete(heap);
}

// The free blocks are [0, 256) and [4096, 8192).
Test(heap_alloc, aligned_exact_fit__is_taken)
{
    struct gpsh_heap_alloc *heap = gpsh_heap_alloc_new(12288);
    cr_assert_eq(gpsh_heap_alloc_take(heap, 256, 1), 0);
    cr_assert_eq(gpsh_heap_alloc_take(heap, 4096 - 256, 1), 256);
    cr_assert_eq(gpsh_heap_alloc_take(heap, 4096, 1), 4096);
    cr_assert_eq(gpsh_heap_alloc_take(heap, 4096, 1), 8192);
    cr_assert(gpsh_heap_alloc_give(heap, 0) && gpsh_heap_alloc_give(heap, 4096));
    cr_expect_eq(gpsh_heap_alloc_take(heap, 4096, 8192), -1);
    cr_expect_eq(gpsh_heap_alloc_take(heap, 4096 + 256, 4096), -1);
    cr_expect_eq(gpsh_heap_alloc_take(heap, 4096, 4096), 4096);
    cr_expect(gpsh_heap_alloc_check(heap));
    gpsh_heap_alloc_delete(heap);
}

// Random calls against a model: no overlap, alignment kept, freed memory is found again, the same
// calls give the same offsets, and a refused request, or one that is given back, changes nothing.
static void take_and_give(struct gpsh_heap_alloc *heap, uint64_t seed, uint64_t heap_bytes)
{
    uint64_t bytes = 1 + random_next(&seed) % (seed % 5 ? 3000 : heap_bytes / 4);
    int64_t offset = gpsh_heap_alloc_take(heap, bytes, 1ull << seed % 15);
    if (offset < 0)
        return;
    cr_assert(gpsh_heap_alloc_give(heap, (uint64_t)offset));
    cr_assert_eq(gpsh_heap_alloc_size(heap, (uint64_t)offset), 0);
    cr_assert_not(gpsh_heap_alloc_give(heap, (uint64_t)offset), "given twice");
}

static void property_run(uint64_t seed, uint64_t heap_bytes)
{
    struct gpsh_heap_alloc *heap = gpsh_heap_alloc_new(heap_bytes),
                           *twin = gpsh_heap_alloc_new(heap_bytes);
    static struct model live[MANY];
    int count = 0;
    for (int step = 0; step < 4000; step++) {
        uint64_t dice = random_next(&seed);
        if (dice % 11 < 3)
            take_and_give(heap, dice, heap_bytes);
        if (count < MANY && dice % 5 < 3) {
            uint64_t bytes = 1 + random_next(&seed) % (dice % 7 ? 3000 : heap_bytes / 4);
            uint64_t alignment = 1ull << random_next(&seed) % 15;
            int64_t offset = gpsh_heap_alloc_take(heap, bytes, alignment);
            cr_assert_eq(offset, gpsh_heap_alloc_take(twin, bytes, alignment), "not deterministic");
            if (offset < 0)
                continue;
            cr_assert_eq((uint64_t)offset % alignment, 0);
            cr_assert_eq((uint64_t)offset % GPSH_HEAP_GRAIN, 0);
            cr_assert((uint64_t)offset + bytes <= heap_bytes);
            for (int i = 0; i < count; i++)
                cr_assert((uint64_t)offset + bytes <= live[i].offset ||
                              live[i].offset + live[i].bytes <= (uint64_t)offset,
                          "blocks overlap");
            live[count++] = (struct model){(uint64_t)offset, bytes};
        } else if (count) {
            int victim = (int)(random_next(&seed) % (uint64_t)count);
            cr_assert_eq(gpsh_heap_alloc_size(heap, live[victim].offset), live[victim].bytes);
            cr_assert(gpsh_heap_alloc_give(heap, live[victim].offset));
            cr_assert(gpsh_heap_alloc_give(twin, live[victim].offset));
            live[victim] = live[--count];
        }
        if (step % 64 == 0)
            cr_assert(gpsh_heap_alloc_check(heap), "step %d", step);
    }
    struct gpsh_heap_usage usage;
    gpsh_heap_alloc_usage(heap, &usage);
    if (usage.largest_free) {
        int64_t largest = gpsh_heap_alloc_take(heap, usage.largest_free, 1);
        cr_assert(largest >= 0, "the largest free block cannot be taken");
        gpsh_heap_alloc_give(heap, (uint64_t)largest);
    }
    while (count)
        cr_assert(gpsh_heap_alloc_give(heap, live[--count].offset));
    cr_assert(gpsh_heap_alloc_check(heap));
    cr_assert_eq(gpsh_heap_alloc_take(heap, heap_bytes, 1), 0, "free blocks were not merged");
    gpsh_heap_alloc_delete(heap);
    gpsh_heap_alloc_delete(twin);
}

Test(heap_alloc, random_calls__keep_every_promise)
{
    for (uint64_t seed = 1; seed <= 12; seed++)
        property_run(seed * 0x9E3779B97F4A7C15ull, seed % 2 ? 1 << 20 : 64 << 20);
}

// One heap has its blocks given back from the first to the last of a list, the other one the other
// way round.
Test(heap_alloc, next_block__does_not_depend_on_the_order_of_giving)
{
    struct gpsh_heap_alloc *heap = gpsh_heap_alloc_new(1 << 20),
                           *twin = gpsh_heap_alloc_new(1 << 20);
    uint64_t seed = 42, given[MANY];
    int n = 0;
    for (int i = 0; i < MANY; i++) {
        uint64_t bytes = 1 + random_next(&seed) % 3000;
        int64_t offset = gpsh_heap_alloc_take(heap, bytes, 1);
        cr_assert_eq(offset, gpsh_heap_alloc_take(twin, bytes, 1));
        if (offset >= 0 && random_next(&seed) % 2)
            given[n++] = (uint64_t)offset;
    }
    for (int i = 0; i < n; i++)
        cr_assert(gpsh_heap_alloc_give(heap, given[i]) &&
                  gpsh_heap_alloc_give(twin, given[n - 1 - i]));
    cr_assert(gpsh_heap_alloc_check(heap) && gpsh_heap_alloc_check(twin));
    for (int i = 0; i < MANY; i++) {
        uint64_t bytes = 1 + random_next(&seed) % 3000;
        cr_assert_eq(gpsh_heap_alloc_take(heap, bytes, 1), gpsh_heap_alloc_take(twin, bytes, 1));
    }
    gpsh_heap_alloc_delete(heap);
    gpsh_heap_alloc_delete(twin);
}

Test(heap_alloc, huge_heap__needs_no_memory_of_its_size)
{
    struct gpsh_heap_alloc *heap = gpsh_heap_alloc_new(16ull << 40);
    int64_t a = gpsh_heap_alloc_take(heap, 8ull << 40, 1ull << 40),
            b = gpsh_heap_alloc_take(heap, 8ull << 40, 1);
    cr_expect_eq(a, 0);
    cr_expect_eq(b, 8ll << 40);
    cr_expect(gpsh_heap_alloc_check(heap));
    gpsh_heap_alloc_delete(heap);
}

Test(heap_alloc, extend__no_block_crosses_the_gap)
{
    struct gpsh_heap_alloc *heap = gpsh_heap_alloc_new(4096);
    struct gpsh_heap_usage usage;
    cr_assert_eq(gpsh_heap_alloc_take(heap, 3072, 1), 0);
    cr_assert_lt(gpsh_heap_alloc_take(heap, 2048, 1), 0);
    cr_assert(gpsh_heap_alloc_extend(heap, 512, 4096) && gpsh_heap_alloc_check(heap));
    cr_expect_lt(gpsh_heap_alloc_take(heap, 4352, 1), 0, "1 KiB before the gap, 4 after it");
    cr_expect_eq(gpsh_heap_alloc_take(heap, 4096, 1), 4096 + 512);
    cr_expect_eq(gpsh_heap_alloc_take(heap, 1024, 1), 3072);
    cr_expect_not(gpsh_heap_alloc_give(heap, 4096), "nobody has the gap");
    cr_assert(gpsh_heap_alloc_extend(heap, 256, 1024) && gpsh_heap_alloc_check(heap));
    cr_expect(gpsh_heap_alloc_give(heap, 0) && gpsh_heap_alloc_give(heap, 3072));
    cr_expect(gpsh_heap_alloc_give(heap, 4096 + 512) && gpsh_heap_alloc_check(heap));
    gpsh_heap_alloc_usage(heap, &usage);
    cr_expect_eq(usage.bytes, 4096 + 4096 + 1024);
    cr_expect(usage.used_bytes == 0 && usage.allocations == 0 && usage.largest_free == 4096);
    gpsh_heap_alloc_delete(heap);
}

Test(heap_alloc, use__of_each_byte_is_known)
{
    struct gpsh_heap_alloc *heap = gpsh_heap_alloc_new(1 << 16);
    struct gpsh_heap_block b = {0};
    cr_expect_eq(gpsh_heap_alloc_use(heap, 0, &b), GPSH_HEAP_FRESH);
    cr_assert_eq(gpsh_heap_alloc_take(heap, 1000, 1), 0);
    cr_assert_eq(gpsh_heap_alloc_take(heap, 300, 1), 1024);
    cr_expect(gpsh_heap_alloc_use(heap, 999, &b) == GPSH_HEAP_TAKEN && b.bytes == 1000);
    cr_expect(gpsh_heap_alloc_use(heap, 1023, &b) == GPSH_HEAP_TAKEN && b.offset == 0);
    cr_expect(gpsh_heap_alloc_use(heap, 1024 + 299, &b) == GPSH_HEAP_TAKEN && b.offset == 1024);
    cr_expect_eq(gpsh_heap_alloc_use(heap, 1024 + 512, &b), GPSH_HEAP_FRESH);
    cr_expect_eq(gpsh_heap_alloc_use(heap, 1 << 16, &b), GPSH_HEAP_OTHERS);
    cr_expect_eq(gpsh_heap_alloc_use(heap, UINT64_MAX, &b), GPSH_HEAP_OTHERS);
    cr_assert(gpsh_heap_alloc_give(heap, 0));
    cr_expect(gpsh_heap_alloc_use(heap, 999, &b) == GPSH_HEAP_FREED && b.bytes == 1000);
    cr_expect_eq(gpsh_heap_alloc_use(heap, 1000, &b), GPSH_HEAP_FREE);
    cr_assert(gpsh_heap_alloc_give(heap, 1024));
    cr_expect(gpsh_heap_alloc_use(heap, 1024, &b) == GPSH_HEAP_FREED && b.bytes == 300);
    cr_expect_eq(gpsh_heap_alloc_use(heap, 5, &b), GPSH_HEAP_FREE, "only the last is known");
    cr_assert(gpsh_heap_alloc_extend(heap, 256, 4096));
    cr_expect_eq(gpsh_heap_alloc_use(heap, 1 << 16, &b), GPSH_HEAP_OTHERS, "a gap");
    cr_expect_eq(gpsh_heap_alloc_use(heap, (1 << 16) + 256, &b), GPSH_HEAP_FRESH);
    gpsh_heap_alloc_delete(heap);
}
