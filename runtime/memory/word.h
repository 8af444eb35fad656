// SPDX-License-Identifier: BSD-3-Clause
// Barriers of the processor, and loads of words that other PEs write.
#ifndef GPSH_WORD_H
#define GPSH_WORD_H

#include "core/cpu.h"
#include "job/job.h"
#include "memory/heap.h"

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
static inline __attribute__((always_inline)) uint64_t gpsh_word_load_host(const void *word,
                                                                          size_t bytes)
{
    if (bytes == 8)
        return __atomic_load_n((const uint64_t *)word, __ATOMIC_ACQUIRE);
    if (bytes == 4)
        return __atomic_load_n((const uint32_t *)word, __ATOMIC_ACQUIRE);
    return __atomic_load_n((const uint16_t *)word, __ATOMIC_ACQUIRE);
}
static inline __attribute__((always_inline)) uint64_t gpsh_word_load(const void *word, size_t bytes)
{
    if (GPSH_UNLIKELY(gpsh_heap()->device))
        return gpsh_word_fetch(word, bytes);
    return gpsh_word_load_host(word, bytes);
}

#endif
