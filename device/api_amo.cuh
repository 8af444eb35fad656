// SPDX-License-Identifier: BSD-3-Clause
// The public atomics (contracts: gpushmem/device.cuh).
#ifndef GPUSHMEM_DEVICE_API_AMO_CUH
#define GPUSHMEM_DEVICE_API_AMO_CUH

#include "gpushmem/device/api.cuh"

#define GPSH_API_AMO_EXTENDED(NAME, TYPE)                                                          \
    GPSH_API_CTX(TYPE, NAME##_atomic_fetch, (const TYPE *source, int pe), (source, pe),            \
                 return gpsh_dev_amo_typed<TYPE>(dev, via, GPUSHMEM_AMO_FETCH, (TYPE *)source,     \
                                                 (TYPE)0, (TYPE)0, pe, true))                      \
    GPSH_API_CTX(                                                                                  \
        void, NAME##_atomic_set, (TYPE * dest, TYPE value, int pe), (dest, value, pe),             \
        gpsh_dev_amo_typed<TYPE>(dev, via, GPUSHMEM_AMO_SET, dest, value, (TYPE)0, pe, false))     \
    GPSH_API_CTX(TYPE, NAME##_atomic_swap, (TYPE * dest, TYPE value, int pe), (dest, value, pe),   \
                 return gpsh_dev_amo_typed<TYPE>(dev, via, GPUSHMEM_AMO_SWAP, dest, value,         \
                                                 (TYPE)0, pe, true))
GPUSHMEM_AMO_EXTENDED_TYPES(GPSH_API_AMO_EXTENDED)
#undef GPSH_API_AMO_EXTENDED

#define GPSH_API_AMO(NAME, TYPE)                                                                   \
    GPSH_API_CTX(TYPE, NAME##_atomic_compare_swap, (TYPE * dest, TYPE cond, TYPE value, int pe),   \
                 (dest, cond, value, pe),                                                          \
                 return gpsh_dev_amo_typed<TYPE>(dev, via, GPUSHMEM_AMO_CSWAP, dest, value, cond,  \
                                                 pe, true))                                        \
    GPSH_API_CTX(TYPE, NAME##_atomic_fetch_add, (TYPE * dest, TYPE value, int pe),                 \
                 (dest, value, pe),                                                                \
                 return gpsh_dev_amo_typed<TYPE>(dev, via, GPUSHMEM_AMO_ADD, dest, value, (TYPE)0, \
                                                 pe, true))                                        \
    GPSH_API_CTX(                                                                                  \
        void, NAME##_atomic_add, (TYPE * dest, TYPE value, int pe), (dest, value, pe),             \
        gpsh_dev_amo_typed<TYPE>(dev, via, GPUSHMEM_AMO_ADD, dest, value, (TYPE)0, pe, false))     \
    GPSH_API_CTX(TYPE, NAME##_atomic_fetch_inc, (TYPE * dest, int pe), (dest, pe),                 \
                 return gpsh_dev_amo_typed<TYPE>(dev, via, GPUSHMEM_AMO_ADD, dest, (TYPE)1,        \
                                                 (TYPE)0, pe, true))                               \
    GPSH_API_CTX(                                                                                  \
        void, NAME##_atomic_inc, (TYPE * dest, int pe), (dest, pe),                                \
        gpsh_dev_amo_typed<TYPE>(dev, via, GPUSHMEM_AMO_ADD, dest, (TYPE)1, (TYPE)0, pe, false))
GPUSHMEM_AMO_TYPES(GPSH_API_AMO)
#undef GPSH_API_AMO

#define GPSH_API_AMO_BITS(NAME, TYPE, WORD, OP)                                                    \
    GPSH_API_CTX(TYPE, NAME##_atomic_fetch_##WORD, (TYPE * dest, TYPE value, int pe),              \
                 (dest, value, pe),                                                                \
                 return gpsh_dev_amo_typed<TYPE>(dev, via, OP, dest, value, (TYPE)0, pe, true))    \
    GPSH_API_CTX(void, NAME##_atomic_##WORD, (TYPE * dest, TYPE value, int pe), (dest, value, pe), \
                 gpsh_dev_amo_typed<TYPE>(dev, via, OP, dest, value, (TYPE)0, pe, false))
#define GPSH_API_AMO_BITWISE(NAME, TYPE)                                                           \
    GPSH_API_AMO_BITS(NAME, TYPE, and, GPUSHMEM_AMO_AND)                                           \
    GPSH_API_AMO_BITS(NAME, TYPE, or, GPUSHMEM_AMO_OR)                                             \
    GPSH_API_AMO_BITS(NAME, TYPE, xor, GPUSHMEM_AMO_XOR)
GPUSHMEM_AMO_BITWISE_TYPES(GPSH_API_AMO_BITWISE)
#undef GPSH_API_AMO_BITWISE
#undef GPSH_API_AMO_BITS

#endif
