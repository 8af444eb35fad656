// SPDX-License-Identifier: BSD-3-Clause
// Loads and stores of memory that other PEs access at the same time.
#ifndef GPSH_WORD_H
#define GPSH_WORD_H

#include <string.h>

#include "core.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "operands of atomics are passed as the low bytes of 64-bit words: this needs a little-endian machine"
#endif

// Row "fence, direct": earlier stores of this thread before later ones. Pairs with the acquire loads of wait and test.
// ThreadSanitizer does not understand fences, so there it becomes a read-modify-write that all threads share.
static inline void gpsh_store_fence(void)
{
#if defined(__SANITIZE_THREAD__)
    static _Atomic int together;
    atomic_fetch_add(&together, 1);
#else
    atomic_thread_fence(memory_order_release);
#endif
}

// Row "quiet, direct": also earlier stores before later loads, so that they are visible when the caller goes on.
static inline void gpsh_full_fence(void)
{
#if defined(__SANITIZE_THREAD__)
    gpsh_store_fence();
#else
    atomic_thread_fence(memory_order_seq_cst);
#endif
}

// Row "small put": an aligned element of at most 8 bytes is moved by one instruction. Release and acquire cost nothing
// on x86, and tell ThreadSanitizer that a flag put by one thread may be polled by another.
#define GPSH_MOVE_WORD(type, to, from)                                                                     \
    __atomic_store_n((type *)(to), __atomic_load_n((const type *)(from), __ATOMIC_ACQUIRE), __ATOMIC_RELEASE)

static inline bool gpsh_both_aligned(const void *to, const void *from, size_t bytes)
{
    return ((((uintptr_t)to) | (uintptr_t)from) & (bytes - 1)) == 0;
}

// Copies like memmove; small aligned copies as promised above. `bytes` may be 0 (with any addresses).
static inline __attribute__((always_inline)) void gpsh_move(void *to, const void *from, size_t bytes)
{
    if (bytes == 8 && GPSH_LIKELY(gpsh_both_aligned(to, from, 8)))
        GPSH_MOVE_WORD(uint64_t, to, from);
    else if (bytes == 4 && GPSH_LIKELY(gpsh_both_aligned(to, from, 4)))
        GPSH_MOVE_WORD(uint32_t, to, from);
    else if (bytes == 2 && GPSH_LIKELY(gpsh_both_aligned(to, from, 2)))
        GPSH_MOVE_WORD(uint16_t, to, from);
    else if (bytes == 1)
        GPSH_MOVE_WORD(uint8_t, to, from);
    else if (bytes != 0)
        memmove(to, from, bytes);
}

// Acquire load of a word of this PE's own heap, zero-extended. The heap may be on the GPU: then a copy fetches it.
uint64_t gpsh_word_fetch(const void *word, size_t bytes);
static inline __attribute__((always_inline)) uint64_t gpsh_word_load(const void *word, size_t bytes)
{
    if (GPSH_UNLIKELY(gpsh.device_heap))
        return gpsh_word_fetch(word, bytes);
    if (bytes == 8)
        return __atomic_load_n((const uint64_t *)word, __ATOMIC_ACQUIRE);
    if (bytes == 4)
        return __atomic_load_n((const uint32_t *)word, __ATOMIC_ACQUIRE);
    return __atomic_load_n((const uint16_t *)word, __ATOMIC_ACQUIRE);
}

#endif
