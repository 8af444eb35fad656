// SPDX-License-Identifier: BSD-3-Clause
// The job: who this PE is, who the others are, and which of them are lost. This room alone writes
// it (tests/house/lint/layers.py looks); the others read it through gpsh_job().
#ifndef GPSH_JOB_H
#define GPSH_JOB_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bootstrap/bootstrap.h"
#include "core/cpu.h"
#include "core/error.h"
#include "core/log.h"

// Why a PE is lost: a NIC's sentence, with what became of its requests, has some 350 bytes.
enum { GPSH_REASON_BYTES = 640 };

// How this PE reaches one peer (itself included).
struct gpsh_peer {
    int8_t data; // index into gpsh_net()->transports of who moves data, -1: nobody
    int8_t amo;  // the same for atomics; -1: the processor, on the mapped heap
    bool same_node;
    int node;             // smallest PE of its node
    int node_pe;          // its position among the PEs of its node
    int gpu_pe;           // smallest PE whose heap is on the same GPU; itself without one
    uint64_t heap_room;   // address space that its heap is mapped with here
    uint64_t heap_mapped; // of a heap in GPU memory, what is mapped here
    int pid;           // of a PE of this node, as seen from here; 0: another node's, or not visible
    _Atomic int error; // 0, or why everything towards this PE fails (GPUSHMEM_ERR_PE_FAILED ...)
    int device;        // GPU ordinal of its heap as the peer sees it, -1: host heap
    bool unreachable;  // by trouble of this PE's own, which has been told
    bool reminded; // it has acknowledged that this PE leaves, and was told again (comm/depart.c)
    // Sentence that goes with error, or this PE's own trouble: set by gpsh_peer_because, else ""
    const char *reason;
    struct gpsh_peer_reason *reasons; // its memory
};

struct gpsh_peer_reason {
    struct gpsh_peer_reason *before; // others may still read that one
    char text[GPSH_REASON_BYTES];
};

// What each PE says of itself at init, a bit each: what they agree on is what holds for all.
enum gpsh_common {
    GPSH_COMMON_NOTIFY = 1 << 0, // GPUSHMEM_ON_PE_FAILURE=notify
    GPSH_COMMON_GROWTH = 1 << 1, // the heap has room to grow
    GPSH_COMMON_CORES = 1 << 2,  // PEs have a core each
    GPSH_COMMON_TRACE = 1 << 3,
    GPSH_COMMON_TEAMS = 1 << 4, // the first of enum gpsh_team_reach (comm/team.h)
    // Who executes atomics for every PE (connect/atomics.c)
    GPSH_COMMON_PROCESSOR = 1 << 28,
    GPSH_COMMON_NIC = 1 << 29,
};

struct gpsh_job {
    int n_pes; // 0: the library is not initialised
    int my_pe;
    struct gpsh_peer *peers; // [n_pes]
    struct gpsh_bootstrap *boot;
    int thread_level; // enum gpushmem_thread_level
    int generation;   // counts successful inits of this process
    int forked_from;  // 0, or the process in the job whose child this one is: it is no PE itself
    // init has done the first of two steps (gpsh_init_is_partial): a call that needs both takes the
    // second one
    _Atomic bool partial;
    // GPUSHMEM_ON_PE_FAILURE=notify on all PEs: those that are left go on when one is lost
    bool outlives;
    // [n_pes] not 0: that PE has left in order. NULL: there is no control region yet, or any more
    const _Atomic uint64_t *departed;
    _Atomic int failed_pe;     // -1, or the PE that failed last
    _Atomic unsigned failures; // how many have failed
    _Atomic bool leaving;      // after the last barrier: a PE that goes away has not failed
};

extern struct gpsh_job gpsh_job_state __attribute__((visibility("hidden"))); // without the GOT
static inline const struct gpsh_job *gpsh_job(void)
{
    return &gpsh_job_state;
}

// In the order of a PE's life. join: the first init of several, by a process that will be a PE, and
// raise_level a later one that asks for more;
// open: the bootstrap knows the job, so that n_pes and peers are there; close: what join and open
// did is undone.
void gpsh_job_join(int thread_level);
void gpsh_job_raise_level(int thread_level);
int gpsh_job_open(void);
void gpsh_job_outlives(bool outlives);
bool gpsh_job_partial(bool partial); // what it was before
void gpsh_job_departures(const _Atomic uint64_t *departed);
void gpsh_job_close(void);
void gpsh_peer_because(struct gpsh_peer *peer, const char *why);
// In the child of a fork: the PE is its parent.
void gpsh_job_fork(int parent);

// 0, or GPUSHMEM_ERR_STATE with a sentence naming the function.
int gpsh_check_initialised(const char *function);

#endif
