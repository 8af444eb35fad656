// SPDX-License-Identifier: BSD-3-Clause
// Two-level segregated fit: a bin for each of 8 slices of each power of two of grains. Taking and
// giving cost a few dozen instructions whatever the number of blocks; neighbours are merged at
// once.
#include "memory/heap_alloc.h"

#include <stdlib.h>
#include <string.h>

enum { SLICES = 8, SLICE_BITS = 3, LEVELS = 48, BINS = LEVELS * SLICES };

struct block {
    uint64_t offset, bytes;
    uint64_t asked;               // 0 while free
    bool gap;                     // asked for by nobody, and never given back
    struct gpsh_heap_block freed; // while free: what was given back here last
    struct block *before, *after; // neighbours by offset
    struct block *prev, *next;    // bin list while free
};

struct gpsh_heap_alloc {
    uint64_t bytes, used, count;
    uint64_t gaps;    // of the bytes
    uint64_t reached; // end of the farthest block ever handed out
    uint64_t level_mask;
    uint8_t slice_mask[LEVELS];
    struct block *bins[BINS];
    struct block *first, *last;
    // What the last take has changed beside the block, and where in its bin the one was that it is
    // of: behind `prev`, or first.
    struct {
        uint64_t offset; // UINT64_MAX: there is nothing to put back
        uint64_t reached;
        struct gpsh_heap_block freed;
        struct block *prev;
    } taken;
    // Blocks handed out, by offset: open addressing, linear probing.
    struct block **table;
    uint64_t table_size;
};

static unsigned log2_floor(uint64_t value)
{
    return 63u - (unsigned)__builtin_clzll(value);
}

// Bin of a free block of `grains`: every block in bin b is at least as long as bin b's lower bound.
static unsigned bin_of(uint64_t grains)
{
    if (grains < SLICES)
        return (unsigned)grains;
    unsigned level = log2_floor(grains) - SLICE_BITS + 1;
    unsigned slice = (unsigned)(grains >> (level - 1)) & (SLICES - 1);
    return level * SLICES + slice;
}

// Behind `prev`, which is in the bin; NULL: as the first.
static void bin_insert_behind(struct gpsh_heap_alloc *heap, struct block *block, struct block *prev)
{
    unsigned bin = bin_of(block->bytes / GPSH_HEAP_GRAIN);
    struct block **link = prev ? &prev->next : &heap->bins[bin];
    block->prev = prev;
    block->next = *link;
    if (block->next)
        block->next->prev = block;
    *link = block;
    heap->slice_mask[bin / SLICES] |= (uint8_t)(1u << bin % SLICES);
    heap->level_mask |= 1ull << bin / SLICES;
}

static void bin_insert(struct gpsh_heap_alloc *heap, struct block *block)
{
    bin_insert_behind(heap, block, NULL);
}

static void bin_remove(struct gpsh_heap_alloc *heap, struct block *block)
{
    unsigned bin = bin_of(block->bytes / GPSH_HEAP_GRAIN);
    if (block->next)
        block->next->prev = block->prev;
    if (block->prev) {
        block->prev->next = block->next;
        return;
    }
    heap->bins[bin] = block->next;
    if (block->next)
        return;
    heap->slice_mask[bin / SLICES] &= (uint8_t) ~(1u << bin % SLICES);
    if (!heap->slice_mask[bin / SLICES])
        heap->level_mask &= ~(1ull << bin / SLICES);
}

// First block that is long enough: the rest of the request's own bin is searched, then the next
// non-empty bin's head fits for certain.
static struct block *bin_search(const struct gpsh_heap_alloc *heap, uint64_t bytes)
{
    unsigned bin = bin_of(bytes / GPSH_HEAP_GRAIN);
    for (struct block *block = heap->bins[bin]; block; block = block->next)
        if (block->bytes >= bytes)
            return block;
    unsigned level = bin / SLICES;
    unsigned slices = heap->slice_mask[level] & ~((2u << bin % SLICES) - 1u);
    if (!slices) {
        uint64_t levels = heap->level_mask & ~((2ull << level) - 1ull);
        if (!levels)
            return NULL;
        level = (unsigned)__builtin_ctzll(levels);
        slices = heap->slice_mask[level];
    }
    return heap->bins[level * SLICES + (unsigned)__builtin_ctz(slices)];
}

static uint64_t lead_of(const struct block *block, uint64_t alignment)
{
    return (alignment - block->offset % alignment) % alignment;
}

// A free block with room for `need` bytes at a multiple of `alignment`. One with room for the
// worst place has it for certain; only if there is none the blocks themselves are looked at.
static struct block *search_aligned(const struct gpsh_heap_alloc *heap, uint64_t need,
                                    uint64_t alignment)
{
    uint64_t worst = need + alignment - GPSH_HEAP_GRAIN;
    struct block *block = worst <= heap->bytes ? bin_search(heap, worst) : NULL;
    if (block || alignment == GPSH_HEAP_GRAIN)
        return block;
    for (block = heap->first; block; block = block->after)
        if (!block->asked && block->bytes >= need &&
            block->bytes - need >= lead_of(block, alignment))
            return block;
    return NULL;
}

static uint64_t slot_of(const struct gpsh_heap_alloc *heap, uint64_t offset)
{
    return (offset / GPSH_HEAP_GRAIN * 0x9E3779B97F4A7C15ull) >> 32 & (heap->table_size - 1);
}

static struct block *table_find(const struct gpsh_heap_alloc *heap, uint64_t offset)
{
    for (uint64_t slot = slot_of(heap, offset); heap->table[slot];
         slot = (slot + 1) & (heap->table_size - 1))
        if (heap->table[slot]->offset == offset)
            return heap->table[slot];
    return NULL;
}

static void table_put(struct gpsh_heap_alloc *heap, struct block *block)
{
    uint64_t slot = slot_of(heap, block->offset);
    while (heap->table[slot])
        slot = (slot + 1) & (heap->table_size - 1);
    heap->table[slot] = block;
}

static bool table_reserve(struct gpsh_heap_alloc *heap)
{
    if (heap->count * 2 < heap->table_size)
        return true;
    uint64_t old_size = heap->table_size;
    struct block **old = heap->table;
    struct block **table = calloc(old_size * 2, sizeof *table);
    if (!table)
        return false;
    heap->table = table;
    heap->table_size = old_size * 2;
    for (uint64_t i = 0; i < old_size; i++)
        if (old[i])
            table_put(heap, old[i]);
    free(old);
    return true;
}

static void table_drop(struct gpsh_heap_alloc *heap, uint64_t offset)
{
    uint64_t mask = heap->table_size - 1;
    uint64_t hole = slot_of(heap, offset);
    while (heap->table[hole]->offset != offset)
        hole = (hole + 1) & mask;
    // Close the gap, so that probing never needs tombstones.
    for (uint64_t slot = (hole + 1) & mask; heap->table[slot]; slot = (slot + 1) & mask) {
        uint64_t home = slot_of(heap, heap->table[slot]->offset);
        if (((slot - home) & mask) >= ((slot - hole) & mask)) {
            heap->table[hole] = heap->table[slot];
            hole = slot;
        }
    }
    heap->table[hole] = NULL;
}

struct gpsh_heap_alloc *gpsh_heap_alloc_new(uint64_t bytes)
{
    struct gpsh_heap_alloc *heap = calloc(1, sizeof *heap);
    struct block *all = calloc(1, sizeof *all);
    struct block **table = calloc(64, sizeof *table);
    if (!heap || !all || !table) {
        free(heap);
        free(all);
        free(table);
        return NULL;
    }
    heap->bytes = bytes / GPSH_HEAP_GRAIN * GPSH_HEAP_GRAIN;
    heap->table = table;
    heap->table_size = 64;
    heap->taken.offset = UINT64_MAX;
    heap->first = heap->last = all;
    all->bytes = heap->bytes;
    bin_insert(heap, all);
    return heap;
}

void gpsh_heap_alloc_delete(struct gpsh_heap_alloc *heap)
{
    if (!heap)
        return;
    for (struct block *block = heap->first; block;) {
        struct block *after = block->after;
        free(block);
        block = after;
    }
    free(heap->table);
    free(heap);
}

// Cuts `block` after `bytes`; the rest becomes a free block after it. `rest` is its memory.
static void split(struct gpsh_heap_alloc *heap, struct block *block, uint64_t bytes,
                  struct block *rest)
{
    *rest = (struct block){.offset = block->offset + bytes,
                           .bytes = block->bytes - bytes,
                           .freed = block->freed,
                           .before = block,
                           .after = block->after};
    if (rest->after)
        rest->after->before = rest;
    else
        heap->last = rest;
    block->after = rest;
    block->bytes = bytes;
    bin_insert(heap, rest);
}

static struct block *append(struct gpsh_heap_alloc *heap, struct block *block, uint64_t bytes)
{
    *block = (struct block){.offset = heap->bytes, .bytes = bytes, .before = heap->last};
    heap->last->after = block;
    heap->last = block;
    heap->bytes += bytes;
    return block;
}

bool gpsh_heap_alloc_extend(struct gpsh_heap_alloc *heap, uint64_t gap, uint64_t bytes)
{
    struct block *wall = malloc(sizeof *wall), *rest = malloc(sizeof *rest);
    if (!wall || !rest) {
        free(wall);
        free(rest);
        return false;
    }
    wall = append(heap, wall, gap);
    wall->asked = gap;
    wall->gap = true;
    heap->gaps += gap;
    bin_insert(heap, append(heap, rest, bytes));
    return true;
}

int64_t gpsh_heap_alloc_take(struct gpsh_heap_alloc *heap, uint64_t bytes, uint64_t alignment)
{
    if (alignment < GPSH_HEAP_GRAIN)
        alignment = GPSH_HEAP_GRAIN;
    if (bytes > heap->bytes)
        return -1;
    uint64_t need = (bytes + GPSH_HEAP_GRAIN - 1) / GPSH_HEAP_GRAIN * GPSH_HEAP_GRAIN;
    struct block *block = search_aligned(heap, need, alignment);
    if (!block)
        return -1;
    // Everything that can fail comes before the first change.
    uint64_t lead = lead_of(block, alignment);
    struct block *tail = malloc(sizeof *tail), *aligned = malloc(sizeof *aligned);
    if (!tail || !aligned || !table_reserve(heap)) {
        free(tail);
        free(aligned);
        return -1;
    }
    heap->taken.prev = block->prev;
    heap->taken.freed = block->freed;
    heap->taken.reached = heap->reached;
    heap->taken.offset = block->offset + lead;
    bin_remove(heap, block);
    if (lead) {
        split(heap, block, lead, aligned);
        bin_insert(heap, block);
        block = aligned;
        aligned = NULL;
        bin_remove(heap, block);
    }
    if (block->bytes > need) {
        split(heap, block, need, tail);
        tail = NULL;
    }
    free(tail);
    free(aligned);
    block->asked = bytes;
    if (heap->reached < block->offset + block->bytes)
        heap->reached = block->offset + block->bytes;
    heap->used += block->bytes;
    heap->count++;
    table_put(heap, block);
    return (int64_t)block->offset;
}

// Appends the free block `after` to its free neighbour `block`; neither is in a bin.
static void join(struct gpsh_heap_alloc *heap, struct block *block, struct block *after)
{
    block->bytes += after->bytes;
    block->after = after->after;
    if (block->after)
        block->after->before = block;
    else
        heap->last = block;
    free(after);
}

// A block that is handed out, joined with its free neighbours: it is in no bin yet.
static struct block *release(struct gpsh_heap_alloc *heap, struct block *block)
{
    table_drop(heap, block->offset);
    heap->used -= block->bytes;
    heap->count--;
    block->asked = 0;
    if (block->after && !block->after->asked) {
        bin_remove(heap, block->after);
        join(heap, block, block->after);
    }
    if (block->before && !block->before->asked) {
        struct block *before = block->before;
        bin_remove(heap, before);
        join(heap, before, block);
        block = before;
    }
    return block;
}

bool gpsh_heap_alloc_give(struct gpsh_heap_alloc *heap, uint64_t offset)
{
    struct block *block = table_find(heap, offset);
    if (!block)
        return false;
    const struct gpsh_heap_block freed = {.offset = offset, .bytes = block->asked};
    block = release(heap, block);
    block->freed = freed;
    bin_insert(heap, block);
    heap->taken.offset = UINT64_MAX;
    return true;
}

// Its neighbours are free only where they were cut off it, and are first in their bins.
bool gpsh_heap_alloc_put_back(struct gpsh_heap_alloc *heap, uint64_t offset)
{
    struct block *block = table_find(heap, offset);
    if (!block || offset != heap->taken.offset)
        return gpsh_heap_alloc_give(heap, offset);
    block = release(heap, block);
    block->freed = heap->taken.freed;
    bin_insert_behind(heap, block, heap->taken.prev);
    heap->reached = heap->taken.reached;
    heap->taken.offset = UINT64_MAX;
    return true;
}

uint64_t gpsh_heap_alloc_size(const struct gpsh_heap_alloc *heap, uint64_t offset)
{
    const struct block *block = table_find(heap, offset);
    return block ? block->asked : 0;
}

// The block that begins in the address's grain is found at once, others one by one.
static const struct block *block_around(const struct gpsh_heap_alloc *heap, uint64_t offset)
{
    const struct block *block = table_find(heap, offset / GPSH_HEAP_GRAIN * GPSH_HEAP_GRAIN);
    if (!block)
        block = heap->first;
    while (offset - block->offset >= block->bytes)
        block = block->after;
    return block;
}

enum gpsh_heap_use gpsh_heap_alloc_use(const struct gpsh_heap_alloc *heap, uint64_t offset,
                                       struct gpsh_heap_block *out)
{
    if (offset >= heap->bytes)
        return GPSH_HEAP_OTHERS;
    const struct block *block = block_around(heap, offset);
    if (block->gap)
        return GPSH_HEAP_OTHERS;
    *out = block->asked ? (struct gpsh_heap_block){block->offset, block->asked} : block->freed;
    if (block->asked)
        return GPSH_HEAP_TAKEN;
    if (offset - out->offset < out->bytes)
        return GPSH_HEAP_FREED;
    return offset < heap->reached ? GPSH_HEAP_FREE : GPSH_HEAP_FRESH;
}

void gpsh_heap_alloc_usage(const struct gpsh_heap_alloc *heap, struct gpsh_heap_usage *usage)
{
    uint64_t largest = 0;
    for (const struct block *block = heap->first; block; block = block->after)
        if (!block->asked && block->bytes > largest)
            largest = block->bytes;
    *usage = (struct gpsh_heap_usage){.bytes = heap->bytes - heap->gaps,
                                      .used_bytes = heap->used,
                                      .largest_free = largest,
                                      .allocations = heap->count};
}

static bool in_its_bin(const struct gpsh_heap_alloc *heap, const struct block *wanted)
{
    for (const struct block *b = heap->bins[bin_of(wanted->bytes / GPSH_HEAP_GRAIN)]; b;
         b = b->next)
        if (b == wanted)
            return true;
    return false;
}

bool gpsh_heap_alloc_check(const struct gpsh_heap_alloc *heap)
{
    uint64_t at = 0, used = 0, count = 0, free_blocks = 0, binned = 0;
    const struct block *before = NULL;
    for (const struct block *block = heap->first; block; before = block, block = block->after) {
        if (block->offset != at || block->before != before || !block->bytes ||
            block->bytes % GPSH_HEAP_GRAIN)
            return false;
        if (!block->asked && (!in_its_bin(heap, block) || (before && !before->asked)))
            return false;
        if (block->asked && !block->gap &&
            (block->asked > block->bytes || table_find(heap, block->offset) != block))
            return false;
        at += block->bytes;
        used += block->asked && !block->gap ? block->bytes : 0;
        count += block->asked && !block->gap;
        free_blocks += !block->asked;
    }
    for (int bin = 0; bin < BINS; bin++)
        for (const struct block *block = heap->bins[bin]; block; block = block->next)
            binned++;
    return at == heap->bytes && before == heap->last && used == heap->used &&
           count == heap->count && binned == free_blocks;
}
