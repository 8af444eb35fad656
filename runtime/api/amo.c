// SPDX-License-Identifier: BSD-3-Clause
// Atomics. Operands and results travel as the low bits of 64-bit words, whatever their type.
#include "api/argument.h"
#include "api/compat_log.h"
#include "api/family.h"
#include "comm/context.h"
#include "connect/net.h"
#include "core/cpu.h"
#include "memory/heap.h"
#include "memory/place.h"
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

// In the macros below `dest`, `fetch`, `value`, `cond` are the functions' parameters.
#define OPERANDS(AMO, ...) ((struct operands){.amo = GPSH_AMO_##AMO, __VA_ARGS__})
#define VALUE(NAME)        .operand = NAME##_bits(value)
#define FETCHING(NAME, TYPE, OP, PARAMETERS, OPERANDS)                                             \
    GPSH_FUNCTION(TYPE, NAME##_atomic_##OP, PARAMETERS,                                            \
                  NAME##_from(fetching(__func__, ctx, dest, sizeof(TYPE), pe, OPERANDS)))
#define FETCHING_STATUS(NAME, TYPE, OP, PARAMETERS, OPERANDS)                                      \
    GPSH_FUNCTION(int, NAME##_atomic_##OP##_status, PARAMETERS,                                    \
                  fetching_status(__func__, ctx, before, dest, sizeof(TYPE), pe, OPERANDS))
#define UPDATING(NAME, TYPE, OP, PARAMETERS, OPERANDS)                                             \
    GPSH_FUNCTION(int, NAME##_atomic_##OP, PARAMETERS,                                             \
                  updating(__func__, ctx, dest, sizeof(TYPE), pe, OPERANDS))
#define FETCHING_NBI(NAME, TYPE, OP, PARAMETERS, OPERANDS)                                         \
    GPSH_FUNCTION(int, NAME##_atomic_##OP##_nbi, PARAMETERS,                                       \
                  fetching_nbi(__func__, ctx, fetch, dest, sizeof(TYPE), pe, OPERANDS))

#define DEFINE_EXTENDED(NAME, TYPE)                                                                \
    FETCHING(NAME, TYPE, fetch, (const TYPE *dest, int pe), OPERANDS(FETCH, 0))                    \
    FETCHING_STATUS(NAME, TYPE, fetch, (const TYPE *dest, int pe, TYPE *before),                   \
                    OPERANDS(FETCH, 0))                                                            \
    FETCHING_NBI(NAME, TYPE, fetch, (TYPE * fetch, const TYPE *dest, int pe), OPERANDS(FETCH, 0))  \
    UPDATING(NAME, TYPE, set, (TYPE * dest, TYPE value, int pe), OPERANDS(SET, VALUE(NAME)))       \
    FETCHING(NAME, TYPE, swap, (TYPE * dest, TYPE value, int pe), OPERANDS(SWAP, VALUE(NAME)))     \
    FETCHING_STATUS(NAME, TYPE, swap, (TYPE * dest, TYPE value, int pe, TYPE *before),             \
                    OPERANDS(SWAP, VALUE(NAME)))                                                   \
    FETCHING_NBI(NAME, TYPE, swap, (TYPE * fetch, TYPE * dest, TYPE value, int pe),                \
                 OPERANDS(SWAP, VALUE(NAME)))
GPUSHMEM_AMO_EXTENDED_TYPES(DEFINE_EXTENDED)

#define CSWAP(NAME) OPERANDS(CSWAP, VALUE(NAME), .compare = NAME##_bits(cond))
#define DEFINE_AMO(NAME, TYPE)                                                                     \
    FETCHING(NAME, TYPE, compare_swap, (TYPE * dest, TYPE cond, TYPE value, int pe), CSWAP(NAME))  \
    FETCHING_STATUS(NAME, TYPE, compare_swap,                                                      \
                    (TYPE * dest, TYPE cond, TYPE value, int pe, TYPE *before), CSWAP(NAME))       \
    FETCHING_NBI(NAME, TYPE, compare_swap,                                                         \
                 (TYPE * fetch, TYPE * dest, TYPE cond, TYPE value, int pe), CSWAP(NAME))          \
    FETCHING(NAME, TYPE, fetch_inc, (TYPE * dest, int pe), OPERANDS(ADD, .operand = 1))            \
    FETCHING_STATUS(NAME, TYPE, fetch_inc, (TYPE * dest, int pe, TYPE *before),                    \
                    OPERANDS(ADD, .operand = 1))                                                   \
    FETCHING_NBI(NAME, TYPE, fetch_inc, (TYPE * fetch, TYPE * dest, int pe),                       \
                 OPERANDS(ADD, .operand = 1))                                                      \
    UPDATING(NAME, TYPE, inc, (TYPE * dest, int pe), OPERANDS(ADD, .operand = 1))                  \
    FETCHING(NAME, TYPE, fetch_add, (TYPE * dest, TYPE value, int pe), OPERANDS(ADD, VALUE(NAME))) \
    FETCHING_STATUS(NAME, TYPE, fetch_add, (TYPE * dest, TYPE value, int pe, TYPE *before),        \
                    OPERANDS(ADD, VALUE(NAME)))                                                    \
    FETCHING_NBI(NAME, TYPE, fetch_add, (TYPE * fetch, TYPE * dest, TYPE value, int pe),           \
                 OPERANDS(ADD, VALUE(NAME)))                                                       \
    UPDATING(NAME, TYPE, add, (TYPE * dest, TYPE value, int pe), OPERANDS(ADD, VALUE(NAME)))
GPUSHMEM_AMO_TYPES(DEFINE_AMO)

#define DEFINE_BITWISE_OP(NAME, TYPE, OP, AMO)                                                     \
    FETCHING(NAME, TYPE, fetch_##OP, (TYPE * dest, TYPE value, int pe),                            \
             OPERANDS(AMO, VALUE(NAME)))                                                           \
    FETCHING_STATUS(NAME, TYPE, fetch_##OP, (TYPE * dest, TYPE value, int pe, TYPE *before),       \
                    OPERANDS(AMO, VALUE(NAME)))                                                    \
    FETCHING_NBI(NAME, TYPE, fetch_##OP, (TYPE * fetch, TYPE * dest, TYPE value, int pe),          \
                 OPERANDS(AMO, VALUE(NAME)))                                                       \
    UPDATING(NAME, TYPE, OP, (TYPE * dest, TYPE value, int pe), OPERANDS(AMO, VALUE(NAME)))
#define DEFINE_BITWISE(NAME, TYPE)                                                                 \
    DEFINE_BITWISE_OP(NAME, TYPE, and, AND)                                                        \
    DEFINE_BITWISE_OP(NAME, TYPE, or, OR)                                                          \
    DEFINE_BITWISE_OP(NAME, TYPE, xor, XOR)
GPUSHMEM_AMO_BITWISE_TYPES(DEFINE_BITWISE)
