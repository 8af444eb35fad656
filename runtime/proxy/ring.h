// SPDX-License-Identifier: BSD-3-Clause
// Command rings from the host's side: where their memory comes from, and reading a command. No CUDA
// here: memory of a GPU comes through a table of functions.
#ifndef GPSH_RING_H
#define GPSH_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpu/device_memory.h"
#include "gpushmem/device_abi.h"

enum { GPSH_MAX_RINGS = 512 }; // GPUSHMEM_RINGS and GPUSHMEM_CONTEXTS

// Whose rings: the default context's, those of the context with that number (from 1), or all.
enum { GPSH_CONTEXT_DEFAULT = 0, GPSH_CONTEXT_ALL = -1 };

// The rings of one PE.
struct gpsh_ring_set {
    const struct gpsh_device_memory *memory;
    struct gpushmem_ring_layout layout;
    struct gpushmem_ring *rings;        // [n_rings], host copy of the descriptors
    struct gpushmem_ring *device_rings; // the same in device memory
    char *heads_copy; // host memory, where device_read puts the device's block of all rings
    int n_rings;
    unsigned entries_log2;
    void *host_block; // slots, statuses, completed_pe, heads_copy
    size_t host_bytes;
    void *device_block; // heads, consumed_seen, device_rings
    size_t device_bytes;
};

// Rings of 2^entries_log2 commands each. sleeping[i % n_sleeping] is the word that ring i's
// producers look at to wake their proxy thread (emulation only; may be NULL).
// GPUSHMEM_ERR_NO_MEMORY; *out is untouched on failure.
int gpsh_ring_set_create(const struct gpsh_device_memory *memory, int n_rings,
                         unsigned entries_log2, int n_pes, uint32_t *const *sleeping,
                         int n_sleeping, struct gpsh_ring_set *out);
void gpsh_ring_set_destroy(struct gpsh_ring_set *set); // legal on a zeroed set

// The number of commands reserved so far in each ring. One thread at a time. 0, or the status of
// device_read. On a GPU this is one copy of 512 bytes for each ring, about 10 us; kernels may run.
int gpsh_ring_heads(const struct gpsh_ring_set *set, uint64_t *heads);

// True if command number `index` is there: it is copied to *out. The device may be writing it right
// now: a command whose words have not all arrived is not there.
bool gpsh_ring_peek(const struct gpushmem_ring *ring, uint64_t index, struct gpushmem_command *out);

#endif
