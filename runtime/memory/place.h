// SPDX-License-Identifier: BSD-3-Clause
// Where a symmetric object lies at another PE: in the heap, or in one of the segments beside it.
// The fast paths know the heap only (gpsh_direct); what misses there is looked up here.
#ifndef GPSH_PLACE_H
#define GPSH_PLACE_H

#include "state/state.h"

struct gpsh_place {
    uint64_t offset; // in that PE's region
    char *direct;    // address for loads and stores, NULL: by transport
    uint8_t region;  // enum gpsh_region_id
};

// The segment that [sym, sym + bytes) of this PE is in, or NULL. The heap is none.
const struct gpsh_segment *gpsh_segment_find(const void *sym, size_t bytes);

// False: [sym, sym + bytes) is in neither heap nor segment. `pe` exists.
bool gpsh_place_find(const void *sym, size_t bytes, int pe, struct gpsh_place *place);

// Heap or segment.
static inline bool gpsh_is_symmetric(const void *sym, size_t bytes)
{
    return gpsh_in_user_heap(gpsh_offset(sym), bytes) || gpsh_segment_find(sym, bytes) != NULL;
}

// Of an object of heap or segment: where it begins in that, the same on every PE.
static inline uint64_t gpsh_place_offset(const void *sym)
{
    const struct gpsh_segment *segment =
        gpsh_offset(sym) < gpsh.heap_bytes ? NULL : gpsh_segment_find(sym, 1);
    return segment ? (uint64_t)((const char *)sym - segment->base) : gpsh_offset(sym);
}

// Writes "heap offset 4096", or what else helps to find the word.
void gpsh_place_name(const void *sym, char *text, size_t bytes);
// Writes "0x1000 to 0x2000", where programs' part of the heap is, with what was added to it.
enum { GPSH_PLACE_RANGE_BYTES = 96 };
void gpsh_place_range(char text[GPSH_PLACE_RANGE_BYTES]);

#endif
