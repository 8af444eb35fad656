// SPDX-License-Identifier: BSD-3-Clause
#include "memory/place.h"

#include <inttypes.h>
#include <stdio.h>

const struct gpsh_segment *gpsh_segment_find(const void *sym, size_t bytes)
{
    // Pairs with the release of what adds a segment.
    int n = atomic_load_explicit(&gpsh.n_segments, memory_order_acquire);
    for (int i = 0; i < n; i++) {
        const struct gpsh_segment *segment = &gpsh.segments[i];
        uint64_t offset = (uint64_t)((uintptr_t)sym - (uintptr_t)segment->base);
        if (offset <= segment->bytes && bytes <= segment->bytes - offset)
            return segment;
    }
    return NULL;
}

bool gpsh_place_find(const void *sym, size_t bytes, int pe, struct gpsh_place *place)
{
    uint64_t offset = gpsh_offset(sym);
    bool in_heap = gpsh_in_user_heap(offset, bytes);
    const struct gpsh_segment *segment = in_heap ? NULL : gpsh_segment_find(sym, bytes);
    if (!in_heap && !segment)
        return false;
    uint8_t region = segment ? segment->region : GPSH_HEAP;
    if (segment)
        offset = (uint64_t)((uintptr_t)sym - (uintptr_t)segment->base);
    // Where the heap goes by a transport, all goes: one path keeps one order.
    char *base = gpsh.direct[pe] ? gpsh.mapped[region][pe] : NULL;
    *place = (struct gpsh_place){
        .offset = offset, .direct = base ? base + offset : NULL, .region = region};
    return true;
}

void gpsh_place_range(char text[GPSH_PLACE_RANGE_BYTES])
{
    int n = snprintf(text, GPSH_PLACE_RANGE_BYTES, "%p to %p", (void *)gpsh.heap,
                     (void *)(gpsh.heap + gpsh.user_bytes));
    if (gpsh.heap_bytes > gpsh.heap_first_bytes)
        snprintf(text + n, GPSH_PLACE_RANGE_BYTES - (size_t)n, ", and %p to %p",
                 (void *)(gpsh.heap + gpsh.heap_first_bytes),
                 (void *)(gpsh.heap + gpsh.heap_bytes));
}

void gpsh_place_name(const void *sym, char *text, size_t bytes)
{
    const struct gpsh_segment *segment = gpsh_segment_find(sym, 0);
    if (gpsh_offset(sym) <= gpsh.heap_bytes)
        snprintf(text, bytes, "heap offset %" PRIu64, gpsh_offset(sym));
    else if (segment)
        snprintf(text, bytes, "%p among the static data", sym);
    else
        snprintf(text, bytes, "%p", sym);
}
