// SPDX-License-Identifier: BSD-3-Clause
#include "proxy/ring.h"

#include <string.h>

#include "core/error.h"

// Fills in the descriptors, which lie after the rings, in both blocks.
static void describe(struct gpsh_ring_set *set, uint32_t *const *sleeping, int n_sleeping)
{
    const struct gpushmem_ring_layout *layout = &set->layout;
    set->rings =
        (struct gpushmem_ring *)(layout->host + (uint64_t)set->n_rings * layout->host_stride);
    set->heads_copy = (char *)(set->rings + set->n_rings);
    set->device_rings = (struct gpushmem_ring *)(layout->device +
                                                 (size_t)set->n_rings * GPUSHMEM_RING_DEVICE_BYTES);
    for (int i = 0; i < set->n_rings; i++) {
        set->rings[i] = gpushmem_ring_at(layout, (uint32_t)i);
        set->rings[i].sleeping = n_sleeping > 0 ? sleeping[i % n_sleeping] : NULL;
    }
}

int gpsh_ring_set_create(const struct gpsh_device_memory *memory, int n_rings,
                         unsigned entries_log2, int n_pes, uint32_t *const *sleeping,
                         int n_sleeping, struct gpsh_ring_set *out)
{
    struct gpsh_ring_set set = {.memory = memory, .n_rings = n_rings, .entries_log2 = entries_log2};
    size_t answers_bytes =
        ((size_t)n_pes * 8 + GPUSHMEM_RING_LINE - 1) / GPUSHMEM_RING_LINE * GPUSHMEM_RING_LINE;
    size_t descriptors_bytes = (size_t)n_rings * sizeof(struct gpushmem_ring);
    size_t stride =
        ((size_t)GPUSHMEM_COMMAND_BYTES << entries_log2) + GPUSHMEM_RING_LINE + answers_bytes;
    size_t heads_bytes = (size_t)n_rings * GPUSHMEM_RING_DEVICE_BYTES;
    set.host_bytes = (size_t)n_rings * stride + descriptors_bytes + heads_bytes;
    set.device_bytes = heads_bytes + descriptors_bytes;
    int status = GPUSHMEM_ERR_NO_MEMORY;
    set.host_block = memory->host_alloc(set.host_bytes);
    if (!set.host_block)
        goto err_none;
    set.device_block = memory->device_alloc(set.device_bytes);
    if (!set.device_block)
        goto err_free_host;
    set.layout = (struct gpushmem_ring_layout){.host = set.host_block,
                                               .device = set.device_block,
                                               .host_stride = stride,
                                               .entries_log2 = entries_log2};
    describe(&set, sleeping, n_sleeping);
    status = memory->device_write(set.device_rings, set.rings, descriptors_bytes);
    if (status < 0)
        goto err_free_device;
    *out = set;
    return 0;
err_free_device:
    memory->device_free(set.device_block, set.device_bytes);
err_free_host:
    memory->host_free(set.host_block, set.host_bytes);
err_none:
    if (status != GPUSHMEM_ERR_NO_MEMORY)
        return status;
    return gpsh_fail(status, "no memory for %d command rings of %u entries: lower GPUSHMEM_RINGS",
                     n_rings, 1u << entries_log2);
}

void gpsh_ring_set_destroy(struct gpsh_ring_set *set)
{
    if (set->device_block)
        set->memory->device_free(set->device_block, set->device_bytes);
    if (set->host_block)
        set->memory->host_free(set->host_block, set->host_bytes);
    *set = (struct gpsh_ring_set){0};
}

int gpsh_ring_heads(const struct gpsh_ring_set *set, uint64_t *heads)
{
    size_t bytes = (size_t)set->n_rings * GPUSHMEM_RING_DEVICE_BYTES;
    bool by_copy = set->memory->device_read != NULL;
    int status = by_copy ? set->memory->device_read(set->heads_copy, set->layout.device, bytes) : 0;
    for (int i = 0; !status && i < set->n_rings; i++) {
        // The head is the first word of the ring's device memory.
        const void *copy = set->heads_copy + (size_t)i * GPUSHMEM_RING_DEVICE_BYTES;
        heads[i] = by_copy ? *(const uint64_t *)copy
                           : __atomic_load_n(set->rings[i].head, __ATOMIC_ACQUIRE);
    }
    return status;
}

bool gpsh_ring_peek(const struct gpushmem_ring *ring, uint64_t index, struct gpushmem_command *out)
{
    const uint64_t *slot =
        ring->slots + (index & (((uint64_t)1 << ring->entries_log2) - 1)) * GPUSHMEM_COMMAND_WORDS;
    uint64_t lap = gpushmem_ring_lap(index, ring->entries_log2);
    uint64_t words[GPUSHMEM_COMMAND_WORDS];
    // Word 0 alone answers the usual empty poll. The acquire pairs with the producer's release of
    // word 0: after it, the payload that the command describes is visible.
    words[0] = __atomic_load_n(&slot[0], __ATOMIC_ACQUIRE);
    if (words[0] >> GPUSHMEM_LAP_BIT != lap)
        return false;
    for (int i = 1; i < GPUSHMEM_COMMAND_WORDS; i++)
        words[i] = __atomic_load_n(&slot[i], __ATOMIC_RELAXED);
    if (!gpushmem_command_ready(words, lap))
        return false;
    gpushmem_command_unpack(words, out);
    return true;
}
