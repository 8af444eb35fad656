// SPDX-License-Identifier: BSD-3-Clause
// Operations by the processor's own loads and stores on memory that is mapped here. The host API's
// fast paths and the transports that map memory (loop, p2p) share them.
#ifndef GPSH_DIRECT_H
#define GPSH_DIRECT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "transport/transport.h"

// Views of program memory whatever its declared type.
typedef uint64_t __attribute__((may_alias)) gpsh_view64;
typedef uint32_t __attribute__((may_alias)) gpsh_view32;
typedef uint16_t __attribute__((may_alias)) gpsh_view16;

// Row "small put" of docs/memory-model.md: an aligned copy of 1, 2, 4 or 8 bytes is one access, so
// that programs may put their flags. Release and acquire cost nothing on x86, and tell
// ThreadSanitizer that a flag put by one thread may be polled by another.
#define GPSH_DIRECT_MOVE(view, to, from)                                                           \
    __atomic_store_n((view *)(to), __atomic_load_n((const view *)(from), __ATOMIC_ACQUIRE),        \
                     __ATOMIC_RELEASE)

// As memmove. What is so large leaves the processor's own caches, where its string instruction,
// which does not read the lines that it will write, may be quicker than the C library's loop.
enum { GPSH_DIRECT_LARGE = 1 << 20 };
void gpsh_direct_copy_large(void *to, const void *from, size_t bytes);

// Copies `bytes`, which may be 0 (with any addresses).
static inline __attribute__((always_inline)) void gpsh_direct_copy(void *to, const void *from,
                                                                   size_t bytes)
{
    uintptr_t both = (uintptr_t)to | (uintptr_t)from;
    if (bytes == 8 && !(both & 7))
        GPSH_DIRECT_MOVE(gpsh_view64, to, from);
    else if (bytes == 4 && !(both & 3))
        GPSH_DIRECT_MOVE(gpsh_view32, to, from);
    else if (bytes == 2 && !(both & 1))
        GPSH_DIRECT_MOVE(gpsh_view16, to, from);
    else if (bytes == 1)
        GPSH_DIRECT_MOVE(uint8_t, to, from);
    else if (__builtin_expect(bytes >= GPSH_DIRECT_LARGE, 0))
        gpsh_direct_copy_large(to, from, bytes);
    else if (bytes)
        memmove(to, from, bytes); // memmove: a put to oneself may overlap
}

// gpsh_direct_amo64 and gpsh_direct_amo32: atomic read-modify-write, sequentially consistent;
// return the previous value.
#define GPSH_DIRECT_AMO(NAME, TYPE)                                                                \
    static inline __attribute__((always_inline)) TYPE NAME(TYPE *word, enum gpsh_amo amo,          \
                                                           TYPE operand, TYPE compare)             \
    {                                                                                              \
        switch (amo) {                                                                             \
        case GPSH_AMO_FETCH: return __atomic_load_n(word, __ATOMIC_SEQ_CST);                       \
        case GPSH_AMO_SET:                                                                         \
        case GPSH_AMO_SWAP: return __atomic_exchange_n(word, operand, __ATOMIC_SEQ_CST);           \
        case GPSH_AMO_ADD: return __atomic_fetch_add(word, operand, __ATOMIC_SEQ_CST);             \
        case GPSH_AMO_AND: return __atomic_fetch_and(word, operand, __ATOMIC_SEQ_CST);             \
        case GPSH_AMO_OR: return __atomic_fetch_or(word, operand, __ATOMIC_SEQ_CST);               \
        case GPSH_AMO_XOR: return __atomic_fetch_xor(word, operand, __ATOMIC_SEQ_CST);             \
        case GPSH_AMO_CSWAP:                                                                       \
            __atomic_compare_exchange_n(word, &compare, operand, 0, __ATOMIC_SEQ_CST,              \
                                        __ATOMIC_SEQ_CST);                                         \
            return compare;                                                                        \
        }                                                                                          \
        return 0;                                                                                  \
    }
GPSH_DIRECT_AMO(gpsh_direct_amo64, uint64_t)
GPSH_DIRECT_AMO(gpsh_direct_amo32, uint32_t)

// Row "put_signal": visible after everything stored before it. Pairs with the acquire loads of wait
// and test.
static inline void gpsh_direct_signal(uint64_t *word, bool add, uint64_t value)
{
    if (add)
        __atomic_fetch_add(word, value, __ATOMIC_RELEASE);
    else
        __atomic_store_n(word, value, __ATOMIC_RELEASE);
}

// What transports over mapped memory have in common: most of their operations, and what they keep.
struct gpsh_direct {
    struct gpsh_transport transport;
    struct gpsh_transport_env env;
};
int gpsh_direct_open(const struct gpsh_transport_ops *ops, const struct gpsh_transport_env *env,
                     struct gpsh_transport **out);
void gpsh_direct_close(struct gpsh_transport *self);
// Nothing: the runtime exchanges the mappings.
int64_t gpsh_direct_describe(struct gpsh_transport *self, void *blob, size_t bytes);
int gpsh_direct_channel_open(struct gpsh_transport *self, int index, struct gpsh_channel **out);
void gpsh_direct_channel_close(struct gpsh_channel *channel);
// `base` is the target region's address in this process.
void gpsh_direct_do(const struct gpsh_op *op, char *base); // counts and completes nothing
int gpsh_direct_post(struct gpsh_channel *channel, const struct gpsh_op *op, char *base);
int gpsh_direct_flush(struct gpsh_channel *channel);
void gpsh_direct_fence(struct gpsh_channel *channel, int pe);
int gpsh_direct_progress(struct gpsh_channel *channel);

#endif
