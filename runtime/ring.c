// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // MAP_ANONYMOUS
#include "ring.h"

#include <string.h>
#include <sys/mman.h>

#include "error.h"

enum {
    LINE = 128,       // two cache lines: neighbours are prefetched in pairs
    DEVICE_LINES = 4, // per ring: head; consumed_seen and mixed; completed_seen; asking
};

static void *host_alloc(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static void host_free(void *memory, size_t bytes)
{
    munmap(memory, bytes);
}

static int host_write(void *to, const void *from, size_t bytes)
{
    memcpy(to, from, bytes);
    return 0;
}

const struct gpsh_device_memory gpsh_device_memory_host = {
    .host_alloc = host_alloc,
    .host_free = host_free,
    .device_alloc = host_alloc,
    .device_free = host_free,
    .device_write = host_write,
    .cpu_threads = true,
};

// Fills in the descriptors: per ring, slots then status then completed_pe in the host block; head, and the words that
// change less often, on lines of their own in the device block, the descriptors behind them.
static void lay_out(struct gpsh_ring_set *set, int n_pes, uint32_t *const *sleeping, int n_sleeping)
{
    size_t slots_bytes = (size_t)GPUSHMEM_COMMAND_BYTES << set->entries_log2;
    size_t answers_bytes = ((size_t)n_pes * 8 + LINE - 1) / LINE * LINE;
    char *host = set->host_block, *device = set->device_block;
    for (int i = 0; i < set->n_rings; i++) {
        set->rings[i] = (struct gpushmem_ring){
            .slots = (uint64_t *)host,
            .status = (struct gpushmem_ring_status *)(host + slots_bytes),
            .completed_pe = (uint64_t *)(host + slots_bytes + LINE),
            .head = (uint64_t *)device,
            .consumed_seen = (uint64_t *)(device + LINE),
            .mixed = (uint64_t *)(device + LINE + 64),
            .completed_seen = (uint64_t *)(device + 2 * LINE),
            .asking = (uint32_t *)(device + 3 * LINE),
            .sleeping = n_sleeping > 0 ? sleeping[i % n_sleeping] : NULL,
            .entries_log2 = set->entries_log2,
            .number = (uint32_t)i,
        };
        host += slots_bytes + LINE + answers_bytes;
        device += DEVICE_LINES * LINE;
    }
    set->device_rings = (struct gpushmem_ring *)device;
}

int gpsh_ring_set_create(const struct gpsh_device_memory *memory, int n_rings, unsigned entries_log2, int n_pes,
                         uint32_t *const *sleeping, int n_sleeping, struct gpsh_ring_set *out)
{
    struct gpsh_ring_set set = {.memory = memory, .n_rings = n_rings, .entries_log2 = entries_log2};
    size_t answers_bytes = ((size_t)n_pes * 8 + LINE - 1) / LINE * LINE;
    size_t descriptors_bytes = (size_t)n_rings * sizeof(struct gpushmem_ring);
    size_t rings_bytes = (((size_t)GPUSHMEM_COMMAND_BYTES << entries_log2) + LINE + answers_bytes) * (size_t)n_rings;
    set.host_bytes = rings_bytes + descriptors_bytes;
    set.device_bytes = (size_t)n_rings * DEVICE_LINES * LINE + descriptors_bytes;
    int status = GPUSHMEM_ERR_NO_MEMORY;
    set.host_block = memory->host_alloc(set.host_bytes);
    if (!set.host_block)
        goto err_none;
    set.device_block = memory->device_alloc(set.device_bytes);
    if (!set.device_block)
        goto err_free_host;
    set.rings = (struct gpushmem_ring *)((char *)set.host_block + rings_bytes);
    lay_out(&set, n_pes, sleeping, n_sleeping);
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
    return gpsh_fail(status, "no memory for %d command rings of %u entries: lower GPUSHMEM_RINGS or GPUSHMEM_RING_ENTRIES",
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

bool gpsh_ring_peek(const struct gpushmem_ring *ring, uint64_t index, struct gpushmem_command *out)
{
    const uint64_t *slot = ring->slots + (index & (((uint64_t)1 << ring->entries_log2) - 1)) * GPUSHMEM_COMMAND_WORDS;
    uint64_t lap = gpushmem_ring_lap(index, ring->entries_log2);
    uint64_t words[GPUSHMEM_COMMAND_WORDS];
    // Word 0 alone answers the usual empty poll. The acquire pairs with the producer's release of word 0: the payload
    // that the command describes is visible behind it.
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
