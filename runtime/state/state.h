// SPDX-License-Identifier: BSD-3-Clause
// The runtime's state: one PE of one job. init, connect and memory each write their part of it;
// everything else of the runtime reads it. Transports do not see it: they have their env.
#ifndef GPSH_STATE_H
#define GPSH_STATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bootstrap/bootstrap.h"
#include "core/config.h"
#include "core/error.h"
#include "core/log.h"
#include "transport/transport.h"

#define GPSH_LIKELY(x)   __builtin_expect(!!(x), 1)
#define GPSH_UNLIKELY(x) __builtin_expect(!!(x), 0)

static inline void gpsh_cpu_relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

// Why a PE is lost: a NIC's sentence, with what became of its requests, has some 350 bytes.
enum { GPSH_REASON_BYTES = 640 };

enum { GPSH_MAX_TRANSPORTS = 4, GPSH_CACHE_LINE = 64 };

// How this PE reaches one peer (itself included).
struct gpsh_peer {
    int8_t data; // index into gpsh.transports of who moves data, -1: nobody
    int8_t amo;  // the same for atomics; -1: the processor, on the mapped heap
    bool same_node;
    int node;             // smallest PE of its node
    int node_pe;          // its position among the PEs of its node
    uint64_t heap_room;   // address space that its heap is mapped with here
    uint64_t heap_mapped; // of a heap in GPU memory, what is mapped here
    int pid;           // of a PE of this node, as seen from here; 0: another node's, or not visible
    _Atomic int error; // 0, or why everything towards this PE fails (GPUSHMEM_ERR_PE_FAILED ...)
    int device;        // GPU ordinal of its heap as the peer sees it, -1: host heap
    bool unreachable;  // by trouble of this PE's own, which has been told
    bool reminded; // it has acknowledged that this PE leaves, and was told again (comm/depart.c)
    char reason[GPSH_REASON_BYTES]; // sentence that goes with error, or this PE's own trouble
};

// Layout of the control region, the same on every PE. Every word is written by remote PEs through
// the transports.
enum { GPSH_SYNC_ROUNDS = 32, GPSH_AMO_LOCKS = 128 };
struct gpsh_control {
    // Dissemination barrier: in round r the PE 2^r before this one writes what it knows of barrier
    // number s to arrived[r].words[s % 2] (comm/sync.c). It may enter the next barrier while this
    // PE is still in this one, but not the one after that. words[2]: how far it is in comparing
    // calls that differ.
    struct {
        _Alignas(64) _Atomic uint64_t words[3];
    } arrived[GPSH_SYNC_ROUNDS];
    // The same words where PEs look at all others' instead of passing on what they know.
    struct {
        _Alignas(64) _Atomic uint64_t words[2];
    } shown;
    // The collective call that this PE is in, written when calls are found to differ, for the
    // others to read.
    struct gpsh_collective {
        uint64_t number;       // counts the barriers of this PE
        uint64_t kind;         // enum gpsh_collective_kind
        uint64_t arguments[2]; // of the public function
    } collective;
    // What this PE has done for a heap that grows, written before the PEs meet, for the others to
    // read after it (api/growth.c). In turn: some may read one while others write the next.
    struct gpsh_growth {
        uint64_t number;
        int64_t status;         // negative: it could not, and why
        uint64_t bytes;         // that it would add
        unsigned char keys[64]; // for the transports of the others (gpsh_transport_ops.extend)
        char why[160];          // and where it takes the others' memory (api/handover.c)
    } growth[2];
    // What this PE says of its part of a call before the PEs meet in it (api/consent.c). In turn,
    // too.
    struct gpsh_consent {
        uint64_t number;
        int64_t status; // negative: it could not, and why
        char why[240];
    } consent[2];
    // For transports: see gpsh_transport_env.locks.
    uint64_t locks[GPSH_AMO_LOCKS];
    // [n_pes] not 0: that PE has left the job in order (comm/depart.c). Written by that PE. After
    // them come three times as many words for transports: see gpsh_transport_env.notes.
    // Then come the words of the teams: gpsh_control_team.
    _Atomic uint64_t departed[];
};

// Without the words of the teams.
static inline uint64_t gpsh_control_bytes(int n_pes)
{
    return sizeof(struct gpsh_control) + (1 + 3) * (uint64_t)n_pes * sizeof(uint64_t);
}

// Memory of this PE beside the heap that the same calls reach at the other PEs
// (docs/adr/0025-symmetric-segments.md).
struct gpsh_segment {
    char *base; // here; elsewhere it may have another address
    uint64_t bytes;
    uint64_t offset;  // of base in the region
    const char *name; // "the registered buffer", for sentences
    uint8_t region;   // enum gpsh_region_id
};
enum { GPSH_MAX_SEGMENTS = 65 };

struct gpsh_core {
    // What the fast paths read comes first. n_pes and quick_pes are 0 while the library is not
    // initialised, so that one comparison rejects both a bad PE number and a call before init.
    int n_pes;
    int my_pe;
    // this PE's symmetric heap: host address, or device address of a GPU heap
    char *heap;
    // The heap: what programs have of it at first, then memory of the library's (the teams'
    // scratch, memory/team_scratch.h), and from heap_first_bytes on what was added by growing,
    // which programs have as well.
    uint64_t user_bytes;
    _Atomic uint64_t heap_bytes; // all of that: grows (api/growth.c); read by gpsh_heap_bytes
    // [n_pes] host load/store address of the peer's heap, NULL: use its transport
    char **direct;
    // PEs that the fast paths serve: all, or none with GPUSHMEM_CHECK=1, where the slow paths look
    // at the blocks as well
    int quick_pes;
    // Processors execute all atomics: those on mapped memory here, others by an agent of the target
    bool cpu_atomics;

    struct gpsh_peer *peers; // [n_pes]
    struct gpsh_transport *transports[GPSH_MAX_TRANSPORTS];
    struct gpsh_transport_env transport_envs[GPSH_MAX_TRANSPORTS];
    int n_transports;

    uint64_t heap_first_bytes;    // what heap_bytes was at first
    struct gpsh_control *control; // this PE's control region
    uint64_t control_bytes;
    char **mapped[GPSH_REGIONS]; // [n_pes] each; mapped[GPSH_HEAP] may hold device addresses
    // memory/place.h looks through them, and changes them: their version is odd meanwhile
    struct gpsh_segment segments[GPSH_MAX_SEGMENTS];
    _Atomic unsigned segments_version;
    _Atomic int n_segments;

    struct gpsh_bootstrap boot;
    struct gpsh_settings settings;
    // what GPUSHMEM_COLLECTIVES stands for, the same text for the same limits
    char collectives[GPSH_COLLECTIVES_TEXT];
    int thread_level; // enum gpushmem_thread_level
    bool device_heap;
    bool heap_grows; // an exhausted heap becomes larger, on all PEs
    // the program is one of OpenSHMEM's: blocks need not be freed before finalize
    bool openshmem;
    // what NICs write to this GPU is not ordered: gpsh_acquire_remote flushes
    bool flush_writes;
    // GPUSHMEM_ON_PE_FAILURE=notify on all PEs: those that are left go on when one is lost
    bool outlives;
    _Atomic int failed_pe;     // -1, or the PE that failed last
    _Atomic unsigned failures; // how many have failed
    _Atomic bool leaving;      // after the last barrier: a PE that goes away has not failed
    int generation;            // counts successful inits of this process
    int forked_from; // 0, or the process in the job whose child this one is: it is no PE itself
};

extern struct gpsh_core gpsh __attribute__((visibility("hidden"))); // reached without the GOT

// 0, or GPUSHMEM_ERR_STATE with a sentence naming the function.
int gpsh_check_initialised(const char *function);

static inline uint64_t gpsh_offset(const void *sym)
{
    return (uint64_t)((uintptr_t)sym - (uintptr_t)gpsh.heap);
}

// While another thread makes the heap grow, too: what was added is mapped, and reached by the
// transports, when the number says so.
static inline uint64_t gpsh_heap_bytes(void)
{
    return atomic_load_explicit(&gpsh.heap_bytes, memory_order_acquire);
}

// What was added to the heap.
static inline bool gpsh_in_growth(uint64_t offset, uint64_t bytes)
{
    uint64_t end = gpsh_heap_bytes();
    return offset >= gpsh.heap_first_bytes && offset <= end && bytes <= end - offset;
}

// [offset, offset + bytes) of the heap is what programs may name: it touches no memory of the
// library's.
static inline bool gpsh_in_user_heap(uint64_t offset, uint64_t bytes)
{
    bool first = offset <= gpsh.user_bytes && bytes <= gpsh.user_bytes - offset;
    return GPSH_LIKELY(first) || gpsh_in_growth(offset, bytes);
}

// Where [sym, sym + bytes) of this PE's heap lies in pe's heap for loads and stores, or NULL (bad
// argument, no mapping, or GPUSHMEM_CHECK=1): then the slow path finds out which, and goes on or
// says so.
static inline char *gpsh_direct(const void *sym, size_t bytes, int pe)
{
    uint64_t offset = (uint64_t)((uintptr_t)sym - (uintptr_t)gpsh.heap);
    if (GPSH_UNLIKELY((unsigned)pe >= (unsigned)gpsh.quick_pes))
        return NULL;
    if (GPSH_UNLIKELY(!gpsh_in_user_heap(offset, bytes)))
        return NULL;
    char *base = gpsh.direct[pe];
    return GPSH_LIKELY(base != NULL) ? base + offset : NULL;
}

// Which of a transport's channels belongs to whom: known at init, because queue pairs are made in
// pairs.
enum gpsh_channel_index {
    GPSH_CHANNEL_DEFAULT = 0, // the default context, and host contexts beyond the reserve
    GPSH_CHANNEL_PROXY = 1,   // first proxy thread; thread i uses GPSH_CHANNEL_PROXY + i
};

// After the proxy threads' come those that are kept for contexts of the program.
static inline int gpsh_channel_first_context(const struct gpsh_settings *settings)
{
    return GPSH_CHANNEL_PROXY + (int)settings->proxy_threads;
}

static inline int gpsh_channel_count(const struct gpsh_settings *settings)
{
    return gpsh_channel_first_context(settings) + (int)settings->contexts;
}

#endif
