// SPDX-License-Identifier: BSD-3-Clause
// Counters of what this PE has done so far. Each command ring of kernels has a row. Each context
// and each proxy thread has a set of queues per transport, and a row for each PE that it posts to.
// Operations that are loads and stores on mapped memory are counted with GPUSHMEM_STATS=1 only: by
// the host, and by kernels on CPU threads, with a row for each PE. Kernels of a GPU never count
// theirs. (With GPUSHMEM_P2P=0 they go through a ring, and are counted.) `gpushmem stat` shows the
// same to other processes of the user.
#ifndef GPUSHMEM_COUNTERS_H
#define GPUSHMEM_COUNTERS_H

#include <stddef.h>
#include <stdint.h>

#include "gpushmem/types.h"

#if defined(__cplusplus)
extern "C" {
#endif

enum gpushmem_counters_kind {
    GPUSHMEM_COUNTERS_RING = 1, // of one ring that kernels write commands to
    // of one set of queues towards one PE, or of loads and stores on its memory
    GPUSHMEM_COUNTERS_FLOW = 2,
};

// One row. Fields that its kind does not have are 0.
struct gpushmem_counters {
    int32_t kind;
    int32_t number; // of the ring, or of the set of queues
    int32_t pe;     // FLOW: the PE that operations go to; RING: -1
    int32_t unused;
    // "default context", "proxy thread 0", "context 1", "host"; RING: "kernels"
    char owner[32];
    char transport[16];  // FLOW: "verbs", or "direct": loads and stores; RING: ""
    uint64_t operations; // FLOW: accepted by the transport; RING: commands read
    uint64_t completed;  // how many of these operations are complete
    uint64_t bytes;      // FLOW: bytes of payload that the operations move
    uint64_t posts;      // RING: operations that its commands became
    uint64_t retries;    // FLOW: times that there was no room for an operation
    uint64_t stalls;     // RING: passes that ended because there was no room
    uint64_t batches;    // RING: passes that read something
    uint64_t errors;     // RING: commands that failed
    // Highest number that was under way at once. RING: commands read and not complete, sampled at
    // the end of each pass. FLOW of a context of the host: operations, sampled at each post.
    uint64_t peak;
    // FLOW: times that its connection, closed to make room for others, was made again because
    // operations waited for it
    uint64_t reconnects;
};

// Fills *out with the next row that has counted anything, and returns 1. When no row is left it
// returns 0 and leaves *out alone. Set *position to 0 before the first call; later calls advance
// it. Any thread, between init and finalize. Each number is right by itself, but the numbers of a
// row may have been taken at different moments. GPUSHMEM_ERR_INVALID: a pointer is NULL, or the
// size is below the first version's; GPUSHMEM_ERR_STATE: not initialised; GPUSHMEM_ERR_UNSUPPORTED:
// this PE has no memory file (docs/observe.md). (For _sized see the rule "Structs" of gpushmem.h.)
GPUSHMEM_API int gpushmem_counters_next_sized(uint64_t *position, struct gpushmem_counters *out,
                                              size_t size);
static inline int gpushmem_counters_next(uint64_t *position, struct gpushmem_counters *out)
{
    return gpushmem_counters_next_sized(position, out, sizeof *out);
}

#if defined(__cplusplus)
}
#endif

#endif
