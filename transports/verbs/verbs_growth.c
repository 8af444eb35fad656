// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE
// Each further piece of a heap is a buffer here, with a key for the peers.
#include <string.h>

#include "transports/verbs/stage/verbs_staging.h"

static uint64_t heap_end(const struct gpsh_verbs *verbs)
{
    uint32_t n = atomic_load(&verbs->n_chunks);
    return n ? verbs->chunk_ends[n - 1] : verbs->env.regions[GPSH_HEAP].bytes;
}

int gpsh_verbs_heap_extend(struct gpsh_transport *self, const struct gpsh_region *chunk, void *keys)
{
    struct gpsh_verbs *verbs = (struct gpsh_verbs *)self;
    struct gpsh_buffer buffer = {.region = *chunk};
    uint32_t rkeys[GPSH_VERBS_MAX_RAILS] = {0}, n = atomic_load(&verbs->n_chunks);
    if (n == VERBS_CHUNKS)
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "it has grown %d times already", VERBS_CHUNKS);
    int status = gpsh_verbs_buffer_add(verbs, &buffer, true);
    if (status)
        return status;
    for (int i = 0; i < verbs->n_rails; i++) {
        const struct ibv_mr *mr = buffer.keys[i];
        rkeys[i] = mr ? mr->rkey : 0;
    }
    memcpy(keys, rkeys, sizeof rkeys);
    verbs->chunk_ends[n] = heap_end(verbs) + chunk->bytes;
    gpsh_verbs_agent_heap(verbs, verbs->chunk_ends[n]);
    atomic_store_explicit(&verbs->n_chunks, n + 1, memory_order_release);
    return 0;
}

// Nobody uses these keys before this PE's program has got a block of the new piece.
int gpsh_verbs_heap_extended(struct gpsh_transport *self, int pe, const void *keys)
{
    struct gpsh_verbs *verbs = (struct gpsh_verbs *)self;
    uint32_t rkeys[GPSH_VERBS_MAX_RAILS],
        key = VERBS_CHUNK_KEYS + atomic_load(&verbs->n_chunks) - 1;
    memcpy(rkeys, keys, sizeof rkeys);
    pthread_mutex_lock(&verbs->opening);
    uint32_t **kept = &verbs->chunk_keys[key - VERBS_CHUNK_KEYS];
    if (!*kept)
        *kept = calloc((size_t)verbs->env.n_pes * verbs->n_rails, sizeof **kept);
    for (int i = 0; *kept && i < verbs->n_rails; i++)
        (*kept)[(size_t)pe * verbs->n_rails + (size_t)i] = rkeys[i];
    for (int c = 0; *kept && c < verbs->env.channels; c++) {
        struct verbs_flow *flow = verbs_flow_at(&verbs->channels[c], pe);
        for (int i = 0; flow && i < flow->n_rails; i++)
            flow->lanes[i].rkeys[key] = rkeys[i];
    }
    bool done = *kept;
    pthread_mutex_unlock(&verbs->opening);
    return done ? 0
                : gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory for the keys of the heaps of %d PEs",
                            verbs->env.n_pes);
}

void gpsh_verbs_heap_retract(struct gpsh_transport *self)
{
    struct gpsh_verbs *verbs = (struct gpsh_verbs *)self;
    atomic_store(&verbs->n_chunks, atomic_load(&verbs->n_chunks) - 1);
    uint64_t end = heap_end(verbs);
    gpsh_verbs_agent_heap(verbs, end);
    (void)gpsh_verbs_buffer_unregister(self, verbs->env.regions[GPSH_HEAP].base + end);
}
