// SPDX-License-Identifier: BSD-3-Clause
// Which collective call a PE is in. Every barrier carries a digest of it, so that PEs that meet in
// different calls, or with different arguments, find out at no extra cost
// (docs/design/compatibility.md).
#ifndef GPSH_COLLECTIVE_H
#define GPSH_COLLECTIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/cpu.h"
#include "memory/control.h"

enum gpsh_collective_kind {
    GPSH_CALL_SYNC_ALL,
    GPSH_CALL_BARRIER_ALL,
    GPSH_CALL_MALLOC, // bytes
    GPSH_CALL_CALLOC, // count, size
    GPSH_CALL_ALIGN,  // alignment, bytes
    GPSH_CALL_FREE,   // offset in the heap; GPSH_NO_BLOCK: not an address of the heap
    GPSH_CALL_FINALIZE,
    GPSH_CALL_REALLOC,           // offset as with free, or GPSH_NULL_BLOCK; bytes
    GPSH_CALL_MALLOC_WITH_HINTS, // bytes, hints
    GPSH_CALL_LAUNCH,            // packed by gpushmem_launch_compare
    GPSH_CALL_REGISTER,          // bytes
    GPSH_CALL_UNREGISTER,        // heap offset of what is registered, or GPSH_NO_BLOCK
};
// Addresses outside the heap differ between PEs without meaning anything.
#define GPSH_NO_BLOCK   UINT64_MAX
#define GPSH_NULL_BLOCK (UINT64_MAX - 1)
#define GPSH_HOST_BLOCK (UINT64_C(1) << 62) // and its offset in the host memory beside the heap

// PEs found that their calls with this number differ, or that one failed: GPUSHMEM_ERR_ASYMMETRY
// with a sentence that names two PEs and their calls, the failure of this PE, or of the first that
// has one, or why a PE's call could not be read. Every PE that found it has
// written its call into its control region, and none goes on before all have returned.
int gpsh_collective_compare(uint64_t number);

// ---- Calls of a team's members, which say them before they begin ----

enum { GPSH_CALL_ARGUMENTS = 7 };
struct gpsh_team_call {
    int64_t status; // what this PE found wrong by itself: the last error says it
    char function[48];
    int64_t arguments[GPSH_CALL_ARGUMENTS];
};
struct gpsh_team;

// 0 if all members make the same call, and none has found it wrong. This PE's own status, else
// another's; GPUSHMEM_ERR_ASYMMETRY on all members with a sentence that names the first PE and
// argument that differ: `wrong_first`, if none has found its call wrong.
int gpsh_team_compare(struct gpsh_team *team, const struct gpsh_team_call *call,
                      const char *const *names, bool wrong_first);

// ---- Digests ----

// 31 bits: different for different calls, but for one pair in 2^31. A barrier takes a few tens of
// nanoseconds: calls without arguments are not mixed.
static inline uint32_t gpsh_collective_digest(const struct gpsh_collective *call)
{
    uint64_t a = call->arguments[0], b = call->arguments[1], place = call->place;
    uint64_t x = (call->kind + 1) * UINT64_C(0x9E3779B97F4A7C15);
    if (GPSH_UNLIKELY((a | b | place) != 0)) {
        x = (x ^ a) * UINT64_C(0xBF58476D1CE4E5B9);
        x = ((x ^ x >> 32) ^ b) * UINT64_C(0x94D049BB133111EB);
        x = ((x ^ x >> 32) ^ place) * UINT64_C(0xBF58476D1CE4E5B9);
    }
    return (uint32_t)(x >> 33);
}

#endif
