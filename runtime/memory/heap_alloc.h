// SPDX-License-Identifier: BSD-3-Clause
// Allocator of offsets inside a heap it never touches (the heap may be GPU memory): all metadata is
// in host memory. Where the next block goes follows from the blocks that are handed out alone, so
// that PEs with the same ones get the same one, whatever they have tried before. Not thread safe.
#ifndef GPSH_HEAP_ALLOC_H
#define GPSH_HEAP_ALLOC_H

#include <stdbool.h>
#include <stdint.h>

enum { GPSH_HEAP_GRAIN = 256 }; // every offset and every block size is a multiple of this

struct gpsh_heap_alloc;

struct gpsh_heap_usage {
    uint64_t bytes;        // size of the heap without its gaps
    uint64_t used_bytes;   // in blocks handed out, rounded up to the grain
    uint64_t largest_free; // one allocation of this size succeeds
    uint64_t allocations;
};

struct gpsh_heap_alloc *gpsh_heap_alloc_new(uint64_t bytes); // NULL: no memory
void gpsh_heap_alloc_delete(struct gpsh_heap_alloc *heap);   // NULL is fine

// The heap goes on: after the last byte come `gap` bytes that no block may have, and then `bytes`
// more; both are multiples of the grain. No block lies on both sides of a gap, which is not 0.
// False: no memory.
bool gpsh_heap_alloc_extend(struct gpsh_heap_alloc *heap, uint64_t gap, uint64_t bytes);

// Offset of a block of at least `bytes` (> 0) at a multiple of `alignment` (a power of two), or -1
// if none is free.
int64_t gpsh_heap_alloc_take(struct gpsh_heap_alloc *heap, uint64_t bytes, uint64_t alignment);
// False if no block starts at `offset`.
bool gpsh_heap_alloc_give(struct gpsh_heap_alloc *heap, uint64_t offset);
// Size that was asked for the block at `offset`, 0 if there is none.
uint64_t gpsh_heap_alloc_size(const struct gpsh_heap_alloc *heap, uint64_t offset);
// What is known of a byte of the heap.
enum gpsh_heap_use {
    GPSH_HEAP_OTHERS, // of a gap, or beyond the heap: not the allocator's
    GPSH_HEAP_TAKEN,  // of a block that is handed out, or of the rest of its last grain
    GPSH_HEAP_FREED,  // of a block that was given back, where none was given back later
    GPSH_HEAP_FREE,   // free, and no more is known
    GPSH_HEAP_FRESH,  // no block ever reached as far
};
struct gpsh_heap_block {
    uint64_t offset, bytes; // as it was asked for
};
// *block: the one that is handed out there, or was.
enum gpsh_heap_use gpsh_heap_alloc_use(const struct gpsh_heap_alloc *heap, uint64_t offset,
                                       struct gpsh_heap_block *block);
void gpsh_heap_alloc_usage(const struct gpsh_heap_alloc *heap, struct gpsh_heap_usage *usage);
// For tests: blocks and holes tile the heap but for its gaps, and no two holes touch.
bool gpsh_heap_alloc_check(const struct gpsh_heap_alloc *heap);

#endif
