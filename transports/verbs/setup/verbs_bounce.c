// SPDX-License-Identifier: BSD-3-Clause
// The bounce buffer of a channel: registered memory through which data goes whose own memory is not
// registered. It is cut into blocks of two sizes with a stack of free ones each, so that blocks may
// come back in any order (a dead peer holds its own until its queue pair is flushed, and nobody
// else waits for them).
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "transports/verbs/setup/verbs_setup.h"

enum {
    ANSWERS = 4096, // after the blocks, for verbs_order.c
    SMALL_BYTES = 2048,
    LARGE_MIN = 4096,
    LARGE_MAX = 256 << 10,
    LARGE_WANTED = 12,
    PAGE = 4096
};

// A quarter of the buffer is small blocks, the rest is large ones: at least
// 12, so that copies and transfers overlap.
static void layout(struct verbs_bounce *bounce, uint64_t bytes)
{
    uint64_t quarter = bytes / 4;
    uint64_t large = (bytes - quarter) / LARGE_WANTED / PAGE * PAGE;
    bounce->small_bytes = SMALL_BYTES;
    bounce->large_bytes = (uint32_t)(large < LARGE_MIN   ? LARGE_MIN
                                     : large > LARGE_MAX ? LARGE_MAX
                                                         : large);
    uint64_t n_small = quarter / SMALL_BYTES, n_large = (bytes - quarter) / bounce->large_bytes;
    bounce->n_small = (uint16_t)(n_small > 16384 ? 16384 : n_small);
    bounce->n_large = (uint16_t)(n_large > 16384 ? 16384 : n_large);
    bounce->bytes =
        (size_t)bounce->n_small * SMALL_BYTES + (size_t)bounce->n_large * bounce->large_bytes;
    bounce->bytes = (bounce->bytes + PAGE - 1) / PAGE * PAGE;
}

int gpsh_verbs_bounce_create(struct gpsh_verbs *verbs, struct verbs_bounce *bounce)
{
    layout(bounce, verbs->env.settings->verbs_bounce);
    bounce->base = mmap(NULL, bounce->bytes + ANSWERS, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (bounce->base == MAP_FAILED) {
        bounce->base = NULL;
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY,
                         "no memory for a bounce buffer of %zu bytes: lower GPUSHMEM_CONTEXTS",
                         bounce->bytes);
    }
    bounce->small = calloc(bounce->n_small, sizeof *bounce->small);
    bounce->large = calloc(bounce->n_large, sizeof *bounce->large);
    if (!bounce->small || !bounce->large)
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory for the bounce buffer's lists");
    for (uint16_t i = 0; i < bounce->n_small; i++)
        bounce->small[i] = (uint16_t)(bounce->n_small - 1 - i);
    for (uint16_t i = 0; i < bounce->n_large; i++)
        bounce->large[i] = (uint16_t)(bounce->n_small + bounce->n_large - 1 - i);
    bounce->free_small = bounce->n_small;
    bounce->free_large = bounce->n_large;
    struct gpsh_region region = {bounce->base, bounce->bytes + ANSWERS, GPSH_MEMORY_HOST, -1, -1};
    for (int i = 0; i < verbs->n_rails; i++) {
        bounce->mr[i] =
            gpsh_verbs_register(verbs, &verbs->rails[i], &region, IBV_ACCESS_LOCAL_WRITE, NULL);
        if (!bounce->mr[i])
            return gpsh_last_error_code();
    }
    return 0;
}

void gpsh_verbs_bounce_destroy(struct verbs_bounce *bounce)
{
    for (int i = 0; i < GPSH_VERBS_MAX_RAILS; i++)
        if (bounce->mr[i])
            ibv_dereg_mr(bounce->mr[i]);
    if (bounce->base)
        munmap(bounce->base, bounce->bytes + ANSWERS);
    free(bounce->small);
    free(bounce->large);
    memset(bounce, 0, sizeof *bounce);
}

// A block for up to `bytes` (the caller cuts at large_bytes), or VERBS_NO_BLOCK if only `keep`
// large ones would be left.
static uint16_t take(struct verbs_bounce *bounce, uint64_t bytes, uint16_t keep)
{
    if (bytes <= bounce->small_bytes && bounce->free_small)
        return bounce->small[--bounce->free_small];
    return bounce->free_large > keep ? bounce->large[--bounce->free_large] : VERBS_NO_BLOCK;
}

// For a request that is posted at once: the block comes back with its completion.
uint16_t gpsh_verbs_bounce_take(struct verbs_bounce *bounce, uint64_t bytes)
{
    return take(bounce, bytes, 0);
}

// For the source of an operation that may wait while it holds its block. Some blocks are kept for
// requests: otherwise the operation at the head of a queue could wait for a block that later
// operations of the queue hold.
uint16_t gpsh_verbs_bounce_capture(struct verbs_bounce *bounce, uint64_t bytes)
{
    return take(bounce, bytes, VERBS_BLOCKS_KEPT);
}

void gpsh_verbs_bounce_give(struct verbs_bounce *bounce, uint16_t block)
{
    if (block < bounce->n_small)
        bounce->small[bounce->free_small++] = block;
    else if (block != VERBS_NO_BLOCK)
        bounce->large[bounce->free_large++] = block;
}

char *gpsh_verbs_bounce_at(const struct verbs_bounce *bounce, uint16_t block)
{
    if (block < bounce->n_small)
        return bounce->base + (size_t)block * bounce->small_bytes;
    return bounce->base + (size_t)bounce->n_small * bounce->small_bytes +
           (size_t)(block - bounce->n_small) * bounce->large_bytes;
}
