// SPDX-License-Identifier: BSD-3-Clause
// What this PE has done so far, counted: per command ring of kernels, and per peer and transport
// for each set of queues that contexts and proxy threads own. Loads and stores on mapped memory are
// not counted: such operations of the host appear nowhere, those of kernels nowhere unless a proxy
// executes them (GPUSHMEM_P2P=0). Other processes of the same user read the same by `gpushmem
// stat`.
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
    GPUSHMEM_COUNTERS_FLOW = 2, // of one set of queues towards one PE
};

// One row. What a kind does not have is 0.
struct gpushmem_counters {
    int32_t kind;
    int32_t number; // of the ring; of the set of queues
    int32_t pe;     // FLOW: towards it; RING: -1
    int32_t unused;
    char owner[32];      // "default context", "proxy thread 0", "context 1"; RING: "kernels"
    char transport[16];  // FLOW: "verbs"; RING: ""
    uint64_t operations; // FLOW: accepted by the transport; RING: commands read
    uint64_t completed;  // of them
    uint64_t bytes;      // FLOW: of payload that the operations move
    uint64_t posts;      // RING: operations that its commands became
    uint64_t retries;    // FLOW: times that there was no room for an operation
    uint64_t stalls;     // RING: passes that ended because there was no room
    uint64_t batches;    // RING: passes that read something
    uint64_t errors;     // RING: commands that failed
    // RING: most commands read and not complete, at the end of a pass; FLOW of a context of the
    // host: most operations under way, when one was posted
    uint64_t most;
};

// Fills *out with the next row that has counted anything. *position is 0 for the first one, and
// means nothing to the caller afterwards. Returns 1; or 0 if there is none left, and *out is
// untouched. Any thread, at any time; each number is right by itself, but the numbers of a row may
// have been taken at different moments. GPUSHMEM_ERR_INVALID: a pointer is NULL, or the size is
// below the first version's; GPUSHMEM_ERR_STATE: not initialised; GPUSHMEM_ERR_UNSUPPORTED: this PE
// has no memory file (docs/observe.md).
// (For _sized see the rule "Structs" of gpushmem.h.)
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
