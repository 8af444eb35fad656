// SPDX-License-Identifier: BSD-3-Clause
// This PE's symmetric memory, and where the memory of its peers is mapped. This room alone writes
// it (tests/house/lint/layers.py looks); the others read it through gpsh_heap().
#ifndef GPSH_HEAP_H
#define GPSH_HEAP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/cpu.h"
#include "memory/control.h"
#include "transport/transport.h"

struct gpsh_heap {
    // What the fast paths read comes first. PEs that they serve: all; none with GPUSHMEM_CHECK=1,
    // where the slow paths look at the blocks as well, none with GPUSHMEM_STATS=1, where they
    // count, and none while the library is not initialised, so that one comparison rejects both a
    // bad PE number and a call before init.
    int quick_pes;
    bool device; // it is in GPU memory
    bool grows;  // exhausted, it becomes larger, on all PEs
    // what NICs write to this GPU is not ordered: gpsh_acquire_remote flushes
    bool flush_writes;
    char *base; // host address, or device address
    // What programs have of it at first, then memory of the library's (the teams' scratch,
    // memory/team_scratch.h), and from first_bytes on what was added by growing, which programs
    // have as well.
    uint64_t user_bytes;
    _Atomic uint64_t bytes; // all of that: grows (api/growth.c); read by gpsh_heap_bytes
    // [n_pes] host load/store address of the peer's heap, NULL: use its transport; read by
    // gpsh_direct_base, as it becomes NULL when the peer is lost
    char **direct;
    uint64_t first_bytes;         // what bytes was at first
    struct gpsh_control *control; // this PE's control region
    uint64_t control_bytes;
    char **mapped[GPSH_REGIONS]; // [n_pes] each; mapped[GPSH_HEAP] may hold device addresses
    // between heap and host memory; gpsh_regions_copy
    int (*copy)(void *to, const void *from, size_t bytes);
};

extern struct gpsh_heap gpsh_heap_state __attribute__((visibility("hidden"))); // without the GOT
static inline const struct gpsh_heap *gpsh_heap(void)
{
    return &gpsh_heap_state;
}

// So many PEs are served by the fast paths.
void gpsh_heap_serve(int pes);
void gpsh_heap_allow_growth(bool grows);
void gpsh_heap_has_grown(uint64_t more);
void gpsh_heap_flush_writes(bool flush);

static inline uint64_t gpsh_offset(const void *sym)
{
    return (uint64_t)((uintptr_t)sym - (uintptr_t)gpsh_heap()->base);
}

// While another thread makes the heap grow, too: what was added is mapped, and reached by the
// transports, when the number says so.
static inline uint64_t gpsh_heap_bytes(void)
{
    return atomic_load_explicit(&gpsh_heap()->bytes, memory_order_acquire);
}

// What was added to the heap.
static inline bool gpsh_in_growth(uint64_t offset, uint64_t bytes)
{
    uint64_t end = gpsh_heap_bytes();
    return offset >= gpsh_heap()->first_bytes && offset <= end && bytes <= end - offset;
}

// [offset, offset + bytes) of the heap is what programs may name: it touches no memory of the
// library's.
static inline bool gpsh_in_user_heap(uint64_t offset, uint64_t bytes)
{
    bool first = offset <= gpsh_heap()->user_bytes && bytes <= gpsh_heap()->user_bytes - offset;
    return GPSH_LIKELY(first) || gpsh_in_growth(offset, bytes);
}

static inline char *gpsh_direct_base(int pe)
{
    return __atomic_load_n(&gpsh_heap()->direct[pe], __ATOMIC_RELAXED);
}

// Where [sym, sym + bytes) of this PE's heap lies in pe's heap for loads and stores, or NULL (bad
// argument, no mapping, GPUSHMEM_CHECK=1 or GPUSHMEM_STATS=1): then the slow path finds out
// which, and goes on or says so.
GPSH_ALWAYS_INLINE char *gpsh_direct(const void *sym, size_t bytes, int pe)
{
    uint64_t offset = (uint64_t)((uintptr_t)sym - (uintptr_t)gpsh_heap()->base);
    if (GPSH_UNLIKELY((unsigned)pe >= (unsigned)gpsh_heap()->quick_pes))
        return NULL;
    if (GPSH_UNLIKELY(!gpsh_in_user_heap(offset, bytes)))
        return NULL;
    char *base = gpsh_direct_base(pe);
    return GPSH_LIKELY(base != NULL) ? base + offset : NULL;
}

// Barriers of the processor, and loads of words that other PEs write.

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "operands of atomics are the low bytes of 64-bit words: this needs little-endian words"
#endif

// Row "fence, direct": earlier stores of this thread before later ones. Pairs with the acquire
// loads of wait and test. ThreadSanitizer does not understand fences, so there it becomes a
// read-modify-write that all threads share.
static inline void gpsh_store_fence(void)
{
#if defined(__SANITIZE_THREAD__)
    static _Atomic int together;
    atomic_fetch_add(&together, 1);
#else
    atomic_thread_fence(memory_order_release);
#endif
}

// Row "quiet, direct": also earlier stores before later loads, so that they are visible when the
// caller goes on.
static inline void gpsh_full_fence(void)
{
#if defined(__SANITIZE_THREAD__)
    gpsh_store_fence();
#else
    atomic_thread_fence(memory_order_seq_cst);
#endif
}

// Call it after a load that saw a signal, a barrier or a completion: what NICs had written to this
// PE's heap before that is visible after the call.
void gpsh_flush_remote(void);
static inline void gpsh_acquire_remote(void)
{
    if (GPSH_UNLIKELY(gpsh_heap()->flush_writes))
        gpsh_flush_remote();
}

// Acquire load of a word of this PE's own heap, zero-extended. The heap may be on the GPU: then a
// copy fetches it.
uint64_t gpsh_word_fetch(const void *word, size_t bytes);
// Why the last word that this thread fetched did not come, or 0.
int gpsh_word_unread(void);
GPSH_ALWAYS_INLINE uint64_t gpsh_word_load_host(const void *word, size_t bytes)
{
    if (bytes == 8)
        return __atomic_load_n((const uint64_t *)word, __ATOMIC_ACQUIRE);
    if (bytes == 4)
        return __atomic_load_n((const uint32_t *)word, __ATOMIC_ACQUIRE);
    return __atomic_load_n((const uint16_t *)word, __ATOMIC_ACQUIRE);
}
GPSH_ALWAYS_INLINE uint64_t gpsh_word_load(const void *word, size_t bytes)
{
    if (GPSH_UNLIKELY(gpsh_heap()->device))
        return gpsh_word_fetch(word, bytes);
    return gpsh_word_load_host(word, bytes);
}

#endif
