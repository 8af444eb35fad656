// SPDX-License-Identifier: BSD-3-Clause
// The public RMA functions (contracts: gpushmem/device.cuh).
#ifndef GPUSHMEM_DEVICE_API_RMA_CUH
#define GPUSHMEM_DEVICE_API_RMA_CUH

#include "gpushmem/device/api.cuh"
#include "gpushmem/device/bulk.cuh"
#include "gpushmem/device/path_warp.cuh"

// PUT and GET of one scope over elements of TYPE (void: SIZE counts).
#define GPSH_API_MOVE(SUFFIX, SCOPE, NAME_PUT, NAME_GET, TYPE, SIZE)                               \
    GPSH_API_CTX(                                                                                  \
        void, NAME_PUT##SUFFIX, (TYPE * dest, const TYPE *source, size_t nelems, int pe),          \
        (dest, source, nelems, pe),                                                                \
        gpsh_dev_put<SCOPE>(dev, via, dest, source, gpsh_dev_bytes(nelems, SIZE), pe, true))       \
    GPSH_API_CTX(                                                                                  \
        void, NAME_PUT##_nbi##SUFFIX, (TYPE * dest, const TYPE *source, size_t nelems, int pe),    \
        (dest, source, nelems, pe),                                                                \
        gpsh_dev_put<SCOPE>(dev, via, dest, source, gpsh_dev_bytes(nelems, SIZE), pe, false))      \
    GPSH_API_CTX(                                                                                  \
        void, NAME_GET##SUFFIX, (TYPE * dest, const TYPE *source, size_t nelems, int pe),          \
        (dest, source, nelems, pe),                                                                \
        gpsh_dev_get<SCOPE>(dev, via, dest, source, gpsh_dev_bytes(nelems, SIZE), pe, true))       \
    GPSH_API_CTX(                                                                                  \
        void, NAME_GET##_nbi##SUFFIX, (TYPE * dest, const TYPE *source, size_t nelems, int pe),    \
        (dest, source, nelems, pe),                                                                \
        gpsh_dev_get<SCOPE>(dev, via, dest, source, gpsh_dev_bytes(nelems, SIZE), pe, false))      \
    GPSH_API_CTX(void, NAME_PUT##_signal##SUFFIX,                                                  \
                 (TYPE * dest, const TYPE *source, size_t nelems, uint64_t *sig, uint64_t signal,  \
                  enum gpushmem_signal_op sig_op, int pe),                                         \
                 (dest, source, nelems, sig, signal, sig_op, pe),                                  \
                 gpsh_dev_put_signal<SCOPE>(dev, via, dest, source, gpsh_dev_bytes(nelems, SIZE),  \
                                            sig, signal, sig_op, pe, true))                        \
    GPSH_API_CTX(void, NAME_PUT##_signal_nbi##SUFFIX,                                              \
                 (TYPE * dest, const TYPE *source, size_t nelems, uint64_t *sig, uint64_t signal,  \
                  enum gpushmem_signal_op sig_op, int pe),                                         \
                 (dest, source, nelems, sig, signal, sig_op, pe),                                  \
                 gpsh_dev_put_signal<SCOPE>(dev, via, dest, source, gpsh_dev_bytes(nelems, SIZE),  \
                                            sig, signal, sig_op, pe, false))

#define GPSH_API_STRIDED(SUFFIX, SCOPE, NAME_PUT, NAME_GET, TYPE, SIZE)                            \
    GPSH_API_CTX(                                                                                  \
        void, NAME_PUT##SUFFIX,                                                                    \
        (TYPE * dest, const TYPE *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe),    \
        (dest, source, dst, sst, nelems, pe),                                                      \
        gpsh_dev_iput<SCOPE>(dev, via, dest, source, dst, sst, nelems, (SIZE), pe))                \
    GPSH_API_CTX(                                                                                  \
        void, NAME_GET##SUFFIX,                                                                    \
        (TYPE * dest, const TYPE *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe),    \
        (dest, source, dst, sst, nelems, pe),                                                      \
        gpsh_dev_iget<SCOPE>(dev, via, dest, source, dst, sst, nelems, (SIZE), pe))

#define GPSH_API_TYPE(NAME, TYPE)                                                                  \
    GPSH_API_CTX(void, NAME##_p, (TYPE * dest, TYPE value, int pe), (dest, value, pe),             \
                 gpsh_dev_put_value(dev, via, dest, gpsh_dev_to_bits(value), sizeof(TYPE), pe))    \
    GPSH_API_CTX(                                                                                  \
        void, NAME##_p_warp, (TYPE * dest, TYPE value, int pe), (dest, value, pe),                 \
        gpsh_dev_put_value_warp(dev, via, dest, gpsh_dev_to_bits(value), sizeof(TYPE), pe))        \
    GPSH_API_CTX(                                                                                  \
        TYPE, NAME##_g, (const TYPE *source, int pe), (source, pe),                                \
        return gpsh_dev_from_bits<TYPE>(gpsh_dev_get_value(dev, via, source, sizeof(TYPE), pe)))   \
    GPSH_SCOPES(GPSH_API_MOVE, NAME##_put, NAME##_get, TYPE, sizeof(TYPE))                         \
    GPSH_SCOPES(GPSH_API_STRIDED, NAME##_iput, NAME##_iget, TYPE, sizeof(TYPE))
GPUSHMEM_RMA_TYPES(GPSH_API_TYPE)
#undef GPSH_API_TYPE

#define GPSH_API_SIZE(BITS)                                                                        \
    GPSH_SCOPES(GPSH_API_MOVE, put##BITS, get##BITS, void, BITS / 8)                               \
    GPSH_SCOPES(GPSH_API_STRIDED, iput##BITS, iget##BITS, void, BITS / 8)
GPUSHMEM_RMA_SIZES(GPSH_API_SIZE)
#undef GPSH_API_SIZE

GPSH_SCOPES(GPSH_API_MOVE, putmem, getmem, void, 1)

GPSH_API_CTX(void, putmem_bulk,
             (void *dest, const void *source, size_t bytes, int pe, void *shared,
              size_t shared_bytes),
             (dest, source, bytes, pe, shared, shared_bytes),
             gpsh_dev_put_bulk(dev, via, dest, source, bytes, pe, shared, shared_bytes))
GPSH_API_CTX(void, getmem_bulk,
             (void *dest, const void *source, size_t bytes, int pe, void *shared,
              size_t shared_bytes),
             (dest, source, bytes, pe, shared, shared_bytes),
             gpsh_dev_get_bulk(dev, via, dest, source, bytes, pe, shared, shared_bytes))

#endif
