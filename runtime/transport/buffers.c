// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // pthread_rwlock_t
#include "transport/buffers.h"

#include <stdlib.h>
#include <string.h>

#include "core/error.h"

static const struct gpsh_buffer *overlapping(const struct gpsh_buffers *buffers, const char *base,
                                             uint64_t bytes)
{
    size_t at = gpsh_buffers_above(buffers, base);
    return at < buffers->n && buffers->list[at].region.base < base + bytes ? &buffers->list[at]
                                                                           : NULL;
}

bool gpsh_buffers_overlap(struct gpsh_buffers *buffers, const void *base, uint64_t bytes)
{
    pthread_rwlock_rdlock(&buffers->lock);
    bool does = overlapping(buffers, base, bytes);
    pthread_rwlock_unlock(&buffers->lock);
    return does;
}

static int insert(struct gpsh_buffers *buffers, const struct gpsh_buffer *buffer)
{
    const struct gpsh_region *region = &buffer->region;
    const struct gpsh_buffer *other = overlapping(buffers, region->base, region->bytes);
    size_t n = buffers->n, at = gpsh_buffers_above(buffers, region->base);
    if (other)
        return gpsh_fail(GPUSHMEM_ERR_INVALID,
                         "gpushmem_buffer_register: %zu bytes at %p overlap the %zu bytes at %p "
                         "that are registered already; unregister those before",
                         region->bytes, (void *)region->base, other->region.bytes,
                         (void *)other->region.base);
    if (n == buffers->room) {
        size_t room = n ? 2 * n : 16;
        struct gpsh_buffer *more = realloc(buffers->list, room * sizeof *more);
        if (!more)
            return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY,
                             "no memory for the list of registered buffers");
        buffers->list = more;
        buffers->room = room;
    }
    memmove(&buffers->list[at + 1], &buffers->list[at], (n - at) * sizeof *buffer);
    buffers->list[at] = *buffer;
    buffers->n = n + 1;
    return 0;
}

int gpsh_buffers_add(struct gpsh_buffers *buffers, const struct gpsh_buffer *buffer)
{
    pthread_rwlock_wrlock(&buffers->lock);
    int status = insert(buffers, buffer);
    pthread_rwlock_unlock(&buffers->lock);
    return status;
}

int gpsh_buffers_take(struct gpsh_buffers *buffers, const void *base, struct gpsh_buffer *out)
{
    pthread_rwlock_wrlock(&buffers->lock);
    size_t n = buffers->n, at = gpsh_buffers_above(buffers, base);
    bool found = at < n && buffers->list[at].region.base == base;
    if (found) {
        *out = buffers->list[at];
        memmove(&buffers->list[at], &buffers->list[at + 1], (n - at - 1) * sizeof *out);
        buffers->n = n - 1;
    }
    pthread_rwlock_unlock(&buffers->lock);
    return found ? 0 : gpsh_fail(GPUSHMEM_ERR_INVALID, "no buffer is registered at %p", base);
}

void gpsh_buffers_clear(struct gpsh_buffers *buffers)
{
    free(buffers->list);
    buffers->list = NULL;
    buffers->n = buffers->room = 0;
}
