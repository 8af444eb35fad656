// SPDX-License-Identifier: BSD-3-Clause
// Counters that others read: where they lie on the board, and each as a row of text and numbers.
#ifndef GPSH_COUNTERS_H
#define GPSH_COUNTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpushmem/counters.h"

// Of a ring, written by the thread that serves it, with gpsh_count_* (core/count.h).
struct gpsh_ring_counters {
    _Alignas(64) uint64_t commands; // read
    uint64_t posts;                 // operations accepted by a transport
    uint64_t stalls;                // passes in which the ring waited for room in a transport
    uint64_t batches;               // passes that read something
    uint64_t errors;                // commands that failed
    uint64_t completed;             // commands
    uint64_t peak;                  // most commands read and not complete, at the end of a pass
};

// Who loads and stores on the memory of a mapped PE.
enum gpsh_direct_by { GPSH_DIRECT_HOST, GPSH_DIRECT_KERNELS, GPSH_DIRECT_KINDS };

// Where they are. Offsets count from the beginning of the board.
enum { GPSH_SHEET_TRANSPORTS = 4, GPSH_SHEET_NAME = 16 };
struct gpsh_sheet {
    int32_t n_rings, n_contexts; // the last rings are for contexts
    int32_t n_channels, n_proxies;
    int32_t n_pes;
    int32_t counts_direct; // 1: loads and stores on mapped memory have rows as well
    uint64_t rings;        // struct gpsh_ring_counters [n_rings]
    uint64_t flows;        // [GPSH_SHEET_TRANSPORTS][n_channels] of flow_stride bytes, each
    uint64_t flow_stride;  // struct gpsh_flow [n_pes]
    uint64_t direct;       // [GPSH_DIRECT_KINDS] of flow_stride bytes, each
    uint64_t bytes;        // of all that, and what comes before
    // "": that transport is not in use
    char transports[GPSH_SHEET_TRANSPORTS][GPSH_SHEET_NAME];
};

// Fills in the offsets and `bytes` of a sheet that begins at offset `at`; the counts are set
// before.
void gpsh_sheet_plan(struct gpsh_sheet *sheet, uint64_t at);
// Whether the offsets are those that gpsh_sheet_plan makes at `at`. Ask before use if another
// process wrote the sheet.
bool gpsh_sheet_sound(const struct gpsh_sheet *sheet, uint64_t at);

// The next row after *position that has counted something; false: there is none. `board` is the
// memory that the offsets count in.
bool gpsh_sheet_next(const struct gpsh_sheet *sheet, const void *board, uint64_t *position,
                     struct gpushmem_counters *out);

// Who posts to that channel: "proxy thread 0".
void gpsh_channel_name(uint64_t channel, int n_proxies, char *text, size_t bytes);

// Operations that are loads and stores, counted where GPUSHMEM_STATS asks for it: then the fast
// paths leave them to the slow ones (gpsh_heap_serve), so that nothing is paid for it otherwise.
// NULL: they are not counted.
extern struct gpsh_direct_counts {
    char *flows; // sheet.direct, on the board
    uint64_t stride;
} gpsh_direct_counts __attribute__((visibility("hidden")));
void gpsh_direct_add(enum gpsh_direct_by by, int pe, uint64_t bytes);
static inline void gpsh_count_direct(int pe, uint64_t bytes)
{
    if (gpsh_direct_counts.flows)
        gpsh_direct_add(GPSH_DIRECT_HOST, pe, bytes);
}

#endif
