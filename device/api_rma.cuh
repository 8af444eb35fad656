// SPDX-License-Identifier: BSD-3-Clause
// The public puts, gets and atomics (contracts: gpushmem/device.cuh).
#ifndef GPUSHMEM_DEVICE_API_RMA_CUH
#define GPUSHMEM_DEVICE_API_RMA_CUH

#include "gpushmem/device/api.cuh"
#include "gpushmem/device/bulk.cuh"
#include "gpushmem/device/path_warp.cuh"

#define GPSH_API_ONE(SUFFIX, SCOPE, NAME, DO, FORM, TYPE, SIZE)                                    \
    GPSH_API_CTX(void, NAME##SUFFIX, (GPSH_P_##FORM(TYPE, enum gpushmem_signal_op)),               \
                 (GPSH_A_##FORM(dest, source, sig_op)), GPSH_DO_##DO(SCOPE, dev, via, SIZE))
#define GPSH_API_MOVE(VERB, REST, FORM, PREFIX, TYPE)                                              \
    GPSH_SCOPES(GPSH_API_ONE, PREFIX##_##VERB##REST, VERB##REST, FORM, TYPE, sizeof(TYPE))
#define GPSH_API_TYPE(NAME, TYPE)                                                                  \
    GPSH_API_CTX(void, NAME##_p, (TYPE * dest, TYPE value, int pe), (dest, value, pe),             \
                 gpsh_dev_put_value(dev, via, dest, gpsh_dev_to_bits(value), sizeof(TYPE), pe))    \
    GPSH_API_CTX(                                                                                  \
        void, NAME##_p_warp, (TYPE * dest, TYPE value, int pe), (dest, value, pe),                 \
        gpsh_dev_put_value_warp(dev, via, dest, gpsh_dev_to_bits(value), sizeof(TYPE), pe))        \
    GPSH_API_CTX(                                                                                  \
        TYPE, NAME##_g, (const TYPE *source, int pe), (source, pe),                                \
        return gpsh_dev_from_bits<TYPE>(gpsh_dev_get_value(dev, via, source, sizeof(TYPE), pe)))   \
    GPSH_MOVES(GPSH_API_MOVE, NAME, TYPE)                                                          \
    GPSH_STRIDED_MOVES(GPSH_API_MOVE, NAME, TYPE)
GPUSHMEM_RMA_TYPES(GPSH_API_TYPE)
#undef GPSH_API_TYPE
#undef GPSH_API_MOVE

// By the bits of an element, and by bytes.
#define GPSH_API_MOVE(VERB, REST, FORM, BITS, SIZE)                                                \
    GPSH_SCOPES(GPSH_API_ONE, VERB##BITS##REST, VERB##REST, FORM, void, SIZE)
#define GPSH_API_SIZE(BITS)                                                                        \
    GPSH_MOVES(GPSH_API_MOVE, BITS, BITS / 8)                                                      \
    GPSH_STRIDED_MOVES(GPSH_API_MOVE, BITS, BITS / 8)
GPUSHMEM_RMA_SIZES(GPSH_API_SIZE)
#undef GPSH_API_SIZE
GPSH_MOVES(GPSH_API_MOVE, mem, 1)
#undef GPSH_API_MOVE
#undef GPSH_API_ONE

GPSH_API_CTX(void, putmem_bulk,
             (void *dest, const void *source, size_t bytes, int pe, void *shared,
              size_t shared_bytes),
             (dest, source, bytes, pe, shared, shared_bytes),
             gpsh_dev_move_bulk<gpsh_way_put>(dev, via, dest, source, bytes, pe, shared,
                                              shared_bytes))
GPSH_API_CTX(void, getmem_bulk,
             (void *dest, const void *source, size_t bytes, int pe, void *shared,
              size_t shared_bytes),
             (dest, source, bytes, pe, shared, shared_bytes),
             gpsh_dev_move_bulk<gpsh_way_get>(dev, via, dest, source, bytes, pe, shared,
                                              shared_bytes))

// ---- Atomics ----

#define GPSH_API_FETCH(NAME, FORM, OP, PREFIX, TYPE)                                               \
    GPSH_API_CTX(TYPE, PREFIX##_atomic_##NAME, (GPSH_P_##FORM(TYPE, )),                            \
                 (GPSH_A_##FORM(dest, source, )),                                                  \
                 return GPSH_DO_##FORM(dev, via, GPUSHMEM_AMO_##OP, TYPE, true))
#define GPSH_API_UPDATE(NAME, FORM, OP, PREFIX, TYPE)                                              \
    GPSH_API_CTX(void, PREFIX##_atomic_##NAME, (GPSH_P_##FORM(TYPE, )),                            \
                 (GPSH_A_##FORM(dest, source, )),                                                  \
                 GPSH_DO_##FORM(dev, via, GPUSHMEM_AMO_##OP, TYPE, false))
#define GPSH_API_EXTENDED(NAME, TYPE)                                                              \
    GPSH_EXTENDED_ATOMICS(GPSH_API_FETCH, GPSH_API_UPDATE, NAME, TYPE)
#define GPSH_API_AMO(NAME, TYPE) GPSH_ATOMICS(GPSH_API_FETCH, GPSH_API_UPDATE, NAME, TYPE)
#define GPSH_API_BITWISE(NAME, TYPE)                                                               \
    GPSH_BITWISE_ATOMICS(GPSH_API_FETCH, GPSH_API_UPDATE, NAME, TYPE)
GPUSHMEM_AMO_EXTENDED_TYPES(GPSH_API_EXTENDED)
GPUSHMEM_AMO_TYPES(GPSH_API_AMO)
GPUSHMEM_AMO_BITWISE_TYPES(GPSH_API_BITWISE)
#undef GPSH_API_BITWISE
#undef GPSH_API_AMO
#undef GPSH_API_EXTENDED
#undef GPSH_API_UPDATE
#undef GPSH_API_FETCH

#endif
