// SPDX-License-Identifier: BSD-3-Clause
// Atomics. Operands and results travel as the low bits of 64-bit words, whatever their type.
#include "api/argument.h"
#include "api/compat.h"
#include "api/family.h"
#include "comm/context.h"
#include "connect/net.h"
#include "core/cpu.h"
#include "memory/heap.h"
#include "memory/place.h"
#include "observe/counters.h"
#include "transport/direct.h"

struct operands {
    enum gpsh_amo amo;
    uint64_t operand, compare;
};

GPSH_ALWAYS_INLINE uint64_t apply(void *word, size_t width, struct operands o)
{
    if (width == 4)
        return gpsh_direct_amo32(word, o.amo, (uint32_t)o.operand, (uint32_t)o.compare);
    return gpsh_direct_amo64(word, o.amo, o.operand, o.compare);
}

static int amo_slow(const char *function, gpushmem_ctx_t handle, const void *sym, size_t width,
                    int pe, struct operands o, void *result, enum gpsh_wait wait)
{
    struct gpsh_context *ctx;
    int status = gpsh_check_remote(function, sym, width, pe);
    if (status == 0)
        status = gpsh_check_aligned(function, sym, width);
    if (status == 0)
        status = gpsh_check_context(function, handle, &ctx);
    if (status < 0)
        return status;
    struct gpsh_place place;
    gpsh_place_find(sym, width, pe, &place);
    if (place.direct != NULL && gpsh_net()->cpu_atomics) {
        uint64_t before = apply(place.direct, width, o);
        if (result != NULL)
            memcpy(result, &before, width);
        gpsh_count_direct(pe, width);
        return 0;
    }
    const struct gpsh_op op = {
        .kind = GPSH_OP_AMO,
        .amo = (uint8_t)o.amo,
        .width = (uint8_t)width,
        .region = place.region,
        .pe = pe,
        .remote = place.offset,
        .operand = o.operand,
        .compare = o.compare,
        .result = result,
    };
    return gpsh_context_submit(ctx, &op, wait);
}

// Where the processor may do it, or NULL.
GPSH_ALWAYS_INLINE void *word_here(gpushmem_ctx_t ctx, const void *sym, size_t width, int pe)
{
    if (GPSH_UNLIKELY(!gpsh_net()->cpu_atomics || ctx == GPUSHMEM_CTX_INVALID ||
                      ((uintptr_t)sym & (width - 1)) != 0))
        return NULL;
    return gpsh_direct(sym, width, pe);
}

// Waits for the previous value and returns it; 0 on failure.
GPSH_ALWAYS_INLINE uint64_t fetching(const char *function, gpushmem_ctx_t ctx, const void *sym,
                                     size_t width, int pe, struct operands o)
{
    void *word = word_here(ctx, sym, width, pe);
    if (GPSH_LIKELY(word != NULL))
        return apply(word, width, o);
    uint64_t before = 0; // a 4-byte result fills the low half
    if (amo_slow(function, ctx, sym, width, pe, o, &before, GPSH_WAIT_FETCH) == 0)
        return before;
    gpsh_value_failed(false); // those of compat call the forms that return a status
    return 0;
}

// Waits for the previous value and writes it to *before. What is slow comes after the return, so
// that nothing is saved on the stack before an atomic instruction, which would wait for it.
GPSH_ALWAYS_INLINE int fetching_status(const char *function, gpushmem_ctx_t ctx, void *before,
                                       const void *sym, size_t width, int pe, struct operands o)
{
    void *word = GPSH_LIKELY(before != NULL) ? word_here(ctx, sym, width, pe) : NULL;
    if (GPSH_LIKELY(word != NULL)) {
        uint64_t bits = apply(word, width, o);
        memcpy(before, &bits, width);
        return 0;
    }
    uint64_t bits = 0; // a 4-byte result fills the low half
    int status = before ? amo_slow(function, ctx, sym, width, pe, o, &bits, GPSH_WAIT_FETCH)
                        : gpsh_check_local(function, before);
    if (status == 0)
        memcpy(before, &bits, width);
    return status;
}

// Does not wait. The previous value is not wanted.
GPSH_ALWAYS_INLINE int updating(const char *function, gpushmem_ctx_t ctx, const void *sym,
                                size_t width, int pe, struct operands o)
{
    void *word = word_here(ctx, sym, width, pe);
    if (GPSH_UNLIKELY(word == NULL))
        return amo_slow(function, ctx, sym, width, pe, o, NULL, GPSH_WAIT_NONE);
    (void)apply(word, width, o);
    return 0;
}

// Does not wait. The previous value is in *fetch after quiet.
GPSH_ALWAYS_INLINE int fetching_nbi(const char *function, gpushmem_ctx_t ctx, void *fetch,
                                    const void *sym, size_t width, int pe, struct operands o)
{
    int status = GPSH_LIKELY(fetch != NULL) ? 0 : gpsh_check_local(function, fetch);
    if (status < 0)
        return status;
    void *word = word_here(ctx, sym, width, pe);
    if (GPSH_UNLIKELY(word == NULL))
        return amo_slow(function, ctx, sym, width, pe, o, fetch, GPSH_WAIT_NONE);
    uint64_t before = apply(word, width, o);
    memcpy(fetch, &before, width);
    return 0;
}

// TYPE to the low bits of a word and back, bit exact.
#define DEFINE_BITS(NAME, TYPE)                                                                    \
    _Static_assert(sizeof(TYPE) == 4 || sizeof(TYPE) == 8, "atomics are 4 or 8 bytes wide");       \
    GPSH_ALWAYS_INLINE uint64_t NAME##_bits(TYPE value)                                            \
    {                                                                                              \
        uint64_t bits = 0;                                                                         \
        memcpy(&bits, &value, sizeof value);                                                       \
        return bits;                                                                               \
    }                                                                                              \
    GPSH_ALWAYS_INLINE TYPE NAME##_from(uint64_t bits)                                             \
    {                                                                                              \
        TYPE value;                                                                                \
        memcpy(&value, &bits, sizeof value);                                                       \
        return value;                                                                              \
    }
GPUSHMEM_AMO_EXTENDED_TYPES(DEFINE_BITS)

// What each form of gpushmem/impl/signatures.h calls the word, and its operands. DO's last
// arguments come before the word.
#define WORD_OF_WORD           source
#define WORD_OF_COUNT          dest
#define WORD_OF_VALUE          dest
#define WORD_OF_COMPARE        dest
#define OPERANDS_WORD(NAME)    .operand = 0
#define OPERANDS_COUNT(NAME)   .operand = 1
#define OPERANDS_VALUE(NAME)   .operand = NAME##_bits(value)
#define OPERANDS_COMPARE(NAME) .operand = NAME##_bits(value), .compare = NAME##_bits(cond)
#define DO(HOW, FORM, AMO, NAME, TYPE, ...)                                                        \
    HOW(__func__, ctx, __VA_ARGS__ WORD_OF_##FORM, sizeof(TYPE), pe,                               \
        ((struct operands){.amo = GPSH_AMO_##AMO, OPERANDS_##FORM(NAME)}))
#define FETCHING(OP, FORM, AMO, NAME, TYPE)                                                        \
    GPSH_FUNCTION(TYPE, NAME##_atomic_##OP, (GPSH_P_##FORM(TYPE, )),                               \
                  NAME##_from(DO(fetching, FORM, AMO, NAME, TYPE, )))                              \
    GPSH_FUNCTION(int, NAME##_atomic_##OP##_status, (GPSH_P_##FORM(TYPE, ), TYPE * before),        \
                  DO(fetching_status, FORM, AMO, NAME, TYPE, before, ))                            \
    GPSH_FUNCTION(int, NAME##_atomic_##OP##_nbi, (TYPE * fetch, GPSH_P_##FORM(TYPE, )),            \
                  DO(fetching_nbi, FORM, AMO, NAME, TYPE, fetch, ))
#define UPDATING(OP, FORM, AMO, NAME, TYPE)                                                        \
    GPSH_FUNCTION(int, NAME##_atomic_##OP, (GPSH_P_##FORM(TYPE, )),                                \
                  DO(updating, FORM, AMO, NAME, TYPE, ))

#define DEFINE(NAME, TYPE) GPSH_EXTENDED_ATOMICS(FETCHING, UPDATING, NAME, TYPE)
GPUSHMEM_AMO_EXTENDED_TYPES(DEFINE)
#undef DEFINE
#define DEFINE(NAME, TYPE) GPSH_ATOMICS(FETCHING, UPDATING, NAME, TYPE)
GPUSHMEM_AMO_TYPES(DEFINE)
#undef DEFINE
#define DEFINE(NAME, TYPE) GPSH_BITWISE_ATOMICS(FETCHING, UPDATING, NAME, TYPE)
GPUSHMEM_AMO_BITWISE_TYPES(DEFINE)
