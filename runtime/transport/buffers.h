// SPDX-License-Identifier: BSD-3-Clause
// A book of memory outside the heap that has been registered, found by address.
#ifndef GPSH_BUFFERS_H
#define GPSH_BUFFERS_H

#include <pthread.h>

#include "transport/transport.h"

enum { GPSH_BUFFER_KEYS = 8 };

struct gpsh_buffer {
    struct gpsh_region region;
    void *keys[GPSH_BUFFER_KEYS]; // the owner's: what NICs know it by
};

struct gpsh_buffers {
    pthread_rwlock_t lock; // the owner makes and destroys it
    _Atomic size_t n;
    size_t room;
    struct gpsh_buffer *list; // by address
};

// Index of the first buffer whose end is above `address`. The caller holds the lock.
static inline size_t gpsh_buffers_above(const struct gpsh_buffers *buffers, const char *address)
{
    size_t low = 0, high = buffers->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct gpsh_region *region = &buffers->list[middle].region;
        if (region->base + region->bytes <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

// The one that holds all of [local, + bytes), or NULL. The caller holds the lock, for reading, as
// long as it looks at it. Here, since operations on such buffers pass it.
static inline const struct gpsh_buffer *gpsh_buffers_find(const struct gpsh_buffers *buffers,
                                                          const void *local, uint64_t bytes)
{
    size_t at = gpsh_buffers_above(buffers, local);
    return at < buffers->n && gpsh_region_holds(&buffers->list[at].region, local, bytes)
               ? &buffers->list[at]
               : NULL;
}

// GPUSHMEM_ERR_INVALID: it overlaps another one; GPUSHMEM_ERR_NO_MEMORY.
int gpsh_buffers_add(struct gpsh_buffers *buffers, const struct gpsh_buffer *buffer);
// Takes out the one that begins at `base`. GPUSHMEM_ERR_INVALID: none does.
int gpsh_buffers_take(struct gpsh_buffers *buffers, const void *base, struct gpsh_buffer *out);
bool gpsh_buffers_overlap(struct gpsh_buffers *buffers, const void *base, uint64_t bytes);
void gpsh_buffers_clear(struct gpsh_buffers *buffers); // frees the list, when nobody uses it

#endif
