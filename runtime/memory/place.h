// SPDX-License-Identifier: BSD-3-Clause
// Where a symmetric object lies at another PE: in the heap, or in one of the segments beside it.
// The fast paths know the heap only (gpsh_direct); what misses there is looked up here.
#ifndef GPSH_PLACE_H
#define GPSH_PLACE_H

#include "memory/heap.h"

// Memory of this PE beside the heap that the same calls reach at the other PEs
// (docs/design/memory.md).
struct gpsh_segment {
    char *base; // here; elsewhere it may have another address
    uint64_t bytes;
    uint64_t offset;  // of base in the region
    const char *name; // "the registered buffer", for sentences
    uint8_t region;   // enum gpsh_region_id
};
enum { GPSH_MAX_SEGMENTS = 65 };

struct gpsh_place {
    uint64_t offset; // in that PE's region
    char *direct;    // address for loads and stores, NULL: by transport
    uint8_t region;  // enum gpsh_region_id
};

// Whether [sym, sym + bytes) of this PE is in a segment, and in which (NULL: not wanted). The heap
// is none.
bool gpsh_segment_find(const void *sym, size_t bytes, struct gpsh_segment *segment);
// Whether a segment has a byte of [base, base + bytes).
bool gpsh_segment_overlaps(const void *base, size_t bytes);
// False: there are GPSH_MAX_SEGMENTS. Others may look for theirs meanwhile.
bool gpsh_segment_add(const struct gpsh_segment *segment);
void gpsh_segment_remove(const void *base);
void gpsh_segments_clear(void);

// False: [sym, sym + bytes) is in neither heap nor segment. `pe` exists.
bool gpsh_place_find(const void *sym, size_t bytes, int pe, struct gpsh_place *place);

// Heap or segment.
static inline bool gpsh_is_symmetric(const void *sym, size_t bytes)
{
    return gpsh_in_user_heap(gpsh_offset(sym), bytes) || gpsh_segment_find(sym, bytes, NULL);
}

// Of an object of heap or segment: where it begins in its region, the same on every PE.
static inline uint64_t gpsh_place_offset(const void *sym)
{
    struct gpsh_segment segment;
    if (gpsh_offset(sym) < gpsh_heap_bytes() || !gpsh_segment_find(sym, 1, &segment))
        return gpsh_offset(sym);
    return segment.offset + (uint64_t)((const char *)sym - segment.base);
}

// Writes "heap offset 4096", or what else helps to find the word.
void gpsh_place_name(const void *sym, char *text, size_t bytes);
// Writes "0x1000 to 0x2000", where programs' part of the heap is, with what was added to it.
enum { GPSH_PLACE_RANGE_BYTES = 96 };
void gpsh_place_range(char text[GPSH_PLACE_RANGE_BYTES]);

#endif
