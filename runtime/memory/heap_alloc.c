// SPDX-License-Identifier: BSD-3-Clause
// Two lists by offset: the blocks that are handed out, and the holes between them. Where the next
// block comes from follows from these alone: what was refused, or given back, leaves no trace in
// it. Few holes are looked through, as a rule: one, in programs that free in turn.
#include "memory/heap_alloc.h"

#include <stdlib.h>
#include <string.h>

// A block, with as many bytes as were asked for; or a hole, and what was last given back there.
struct part {
    uint64_t offset, bytes;
    struct gpsh_heap_block freed;
};

struct list {
    struct part *at;
    size_t n;
};

struct gpsh_heap_alloc {
    uint64_t bytes, used;
    uint64_t reached; // end of the farthest block ever handed out
    uint64_t gap_bytes;
    size_t n_gaps;
    struct list blocks, holes;
    size_t room; // of each list: there are no more holes than blocks, gaps and one
};

static uint64_t whole_grains(uint64_t bytes)
{
    return (bytes + GPSH_HEAP_GRAIN - 1) / GPSH_HEAP_GRAIN * GPSH_HEAP_GRAIN;
}

// ---- Lists ----

// How many begin at the offset or before it.
static size_t list_before(const struct list *list, uint64_t offset)
{
    size_t low = 0, high = list->n;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (list->at[middle].offset <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void list_insert(struct list *list, size_t i, struct part part)
{
    memmove(&list->at[i + 1], &list->at[i], (list->n++ - i) * sizeof part);
    list->at[i] = part;
}

static struct part list_remove(struct list *list, size_t i)
{
    struct part part = list->at[i];
    memmove(&list->at[i], &list->at[i + 1], (--list->n - i) * sizeof part);
    return part;
}

static bool list_enlarge(struct list *list, size_t room)
{
    struct part *more = realloc(list->at, room * sizeof *more);
    list->at = more ? more : list->at;
    return more;
}

// For one more block, or gap.
static bool reserve(struct gpsh_heap_alloc *heap)
{
    size_t room = heap->room ? 2 * heap->room : 64;
    if (heap->blocks.n + heap->n_gaps + 2 < heap->room)
        return true;
    if (!list_enlarge(&heap->blocks, room) || !list_enlarge(&heap->holes, room))
        return false;
    heap->room = room;
    return true;
}

// ---- The heap ----

struct gpsh_heap_alloc *gpsh_heap_alloc_new(uint64_t bytes)
{
    struct gpsh_heap_alloc *heap = calloc(1, sizeof *heap);
    if (!heap || !reserve(heap)) {
        gpsh_heap_alloc_delete(heap);
        return NULL;
    }
    heap->bytes = bytes / GPSH_HEAP_GRAIN * GPSH_HEAP_GRAIN;
    list_insert(&heap->holes, 0, (struct part){.bytes = heap->bytes});
    return heap;
}

void gpsh_heap_alloc_delete(struct gpsh_heap_alloc *heap)
{
    if (!heap)
        return;
    free(heap->blocks.at);
    free(heap->holes.at);
    free(heap);
}

bool gpsh_heap_alloc_extend(struct gpsh_heap_alloc *heap, uint64_t gap, uint64_t bytes)
{
    if (!reserve(heap))
        return false;
    list_insert(&heap->holes, heap->holes.n,
                (struct part){.offset = heap->bytes + gap, .bytes = bytes});
    heap->bytes += gap + bytes;
    heap->gap_bytes += gap;
    heap->n_gaps++;
    return true;
}

// What lies before the first multiple of `alignment` in the hole.
static uint64_t lead_of(const struct part *hole, uint64_t alignment)
{
    return (alignment - hole->offset % alignment) % alignment;
}

// The smallest hole with room for `need` bytes at a multiple of `alignment`, of several the first.
// holes.n: there is none.
static size_t best_hole(const struct list *holes, uint64_t need, uint64_t alignment)
{
    size_t best = holes->n;
    for (size_t i = 0; i < holes->n; i++) {
        const struct part *hole = &holes->at[i];
        if (hole->bytes >= need && hole->bytes - need >= lead_of(hole, alignment) &&
            (best == holes->n || hole->bytes < holes->at[best].bytes))
            best = i;
    }
    return best;
}

int64_t gpsh_heap_alloc_take(struct gpsh_heap_alloc *heap, uint64_t bytes, uint64_t alignment)
{
    if (alignment < GPSH_HEAP_GRAIN)
        alignment = GPSH_HEAP_GRAIN;
    if (bytes > heap->bytes || !reserve(heap))
        return -1;
    const uint64_t need = whole_grains(bytes);
    const size_t best = best_hole(&heap->holes, need, alignment);
    if (best == heap->holes.n)
        return -1;
    const struct part hole = list_remove(&heap->holes, best);
    const uint64_t lead = lead_of(&hole, alignment), offset = hole.offset + lead;
    const uint64_t end = offset + need, rest = hole.offset + hole.bytes - end;
    if (rest)
        list_insert(&heap->holes, best, (struct part){end, rest, hole.freed});
    if (lead)
        list_insert(&heap->holes, best, (struct part){hole.offset, lead, hole.freed});
    list_insert(&heap->blocks, list_before(&heap->blocks, offset),
                (struct part){.offset = offset, .bytes = bytes});
    heap->reached = heap->reached < end ? end : heap->reached;
    heap->used += need;
    return (int64_t)offset;
}

// Number of the block that begins there; blocks.n: none does.
static size_t block_at(const struct gpsh_heap_alloc *heap, uint64_t offset)
{
    size_t i = list_before(&heap->blocks, offset);
    return i && heap->blocks.at[i - 1].offset == offset ? i - 1 : heap->blocks.n;
}

bool gpsh_heap_alloc_give(struct gpsh_heap_alloc *heap, uint64_t offset)
{
    const size_t i = block_at(heap, offset);
    struct list *holes = &heap->holes;
    if (i == heap->blocks.n)
        return false;
    const struct part block = list_remove(&heap->blocks, i);
    struct part hole = {offset, whole_grains(block.bytes), {offset, block.bytes}};
    heap->used -= hole.bytes;
    size_t next = list_before(holes, offset);
    if (next < holes->n && holes->at[next].offset == offset + hole.bytes)
        hole.bytes += list_remove(holes, next).bytes;
    if (next && holes->at[next - 1].offset + holes->at[next - 1].bytes == offset) {
        const struct part before = list_remove(holes, --next);
        hole.offset = before.offset;
        hole.bytes += before.bytes;
    }
    list_insert(holes, next, hole);
    return true;
}

uint64_t gpsh_heap_alloc_size(const struct gpsh_heap_alloc *heap, uint64_t offset)
{
    size_t i = block_at(heap, offset);
    return i < heap->blocks.n ? heap->blocks.at[i].bytes : 0;
}

// The last part that begins at the offset or before it, if it has the byte there.
static const struct part *part_around(const struct list *list, uint64_t offset)
{
    size_t i = list_before(list, offset);
    const struct part *part = i ? &list->at[i - 1] : NULL;
    return part && offset - part->offset < whole_grains(part->bytes) ? part : NULL;
}

enum gpsh_heap_use gpsh_heap_alloc_use(const struct gpsh_heap_alloc *heap, uint64_t offset,
                                       struct gpsh_heap_block *out)
{
    const struct part *block = part_around(&heap->blocks, offset),
                      *hole = part_around(&heap->holes, offset);
    if (!block && !hole)
        return GPSH_HEAP_OTHERS;
    *out = block ? (struct gpsh_heap_block){block->offset, block->bytes} : hole->freed;
    if (block)
        return GPSH_HEAP_TAKEN;
    if (offset - out->offset < out->bytes)
        return GPSH_HEAP_FREED;
    return offset < heap->reached ? GPSH_HEAP_FREE : GPSH_HEAP_FRESH;
}

void gpsh_heap_alloc_usage(const struct gpsh_heap_alloc *heap, struct gpsh_heap_usage *usage)
{
    uint64_t largest = 0;
    for (size_t i = 0; i < heap->holes.n; i++)
        largest = heap->holes.at[i].bytes > largest ? heap->holes.at[i].bytes : largest;
    *usage = (struct gpsh_heap_usage){.bytes = heap->bytes - heap->gap_bytes,
                                      .used_bytes = heap->used,
                                      .largest_free = largest,
                                      .allocations = heap->blocks.n};
}

bool gpsh_heap_alloc_check(const struct gpsh_heap_alloc *heap)
{
    const struct list *blocks = &heap->blocks, *holes = &heap->holes;
    uint64_t at = 0, used = 0, gaps = 0;
    bool after_hole = false;
    for (size_t b = 0, h = 0; b < blocks->n || h < holes->n;) {
        bool hole = b == blocks->n || (h < holes->n && holes->at[h].offset < blocks->at[b].offset);
        const struct part *part = hole ? &holes->at[h++] : &blocks->at[b++];
        if (!part->bytes || part->offset < at || part->offset % GPSH_HEAP_GRAIN ||
            (hole && after_hole && part->offset == at))
            return false;
        gaps += part->offset - at;
        at = part->offset + whole_grains(part->bytes);
        used += hole ? 0 : whole_grains(part->bytes);
        after_hole = hole;
    }
    return at <= heap->bytes && gaps + heap->bytes - at == heap->gap_bytes && used == heap->used &&
           holes->n <= blocks->n + heap->n_gaps + 1;
}
