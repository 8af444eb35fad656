// SPDX-License-Identifier: BSD-3-Clause
// Memory in cache lines of its own: for what one thread writes all the time, while its neighbours
// in memory belong to others.
#ifndef GPSH_LINES_H
#define GPSH_LINES_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

// Two lines: neighbours are prefetched in pairs.
enum { GPSH_LINES = 128 };

// Zeroed, for free(). NULL without memory.
static inline void *gpsh_lines_alloc(size_t count, size_t size)
{
    if (size && count > (SIZE_MAX - GPSH_LINES) / size)
        return NULL;
    size_t bytes = (count * size + GPSH_LINES - 1) / GPSH_LINES * GPSH_LINES;
    void *memory = aligned_alloc(GPSH_LINES, bytes ? bytes : GPSH_LINES);
    return memory ? memset(memory, 0, bytes) : NULL;
}

#endif
