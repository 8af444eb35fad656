// SPDX-License-Identifier: BSD-3-Clause
// The number (enum gpushmem_coll_type) of each type that collectives fold, by its name in function
// names: GPSH_COLL_TYPE_OF(NAME, TYPE).
#ifndef GPUSHMEM_IMPL_COLL_TYPES_H
#define GPUSHMEM_IMPL_COLL_TYPES_H

#include "gpushmem/device_abi.h"
#include "gpushmem/impl/complex_types.h"

// Of an integer: its sign and size say it. C++ works it out once for each type, and not again in
// each of some thousand functions.
#define GPSH_COLL_INTEGER_OF(TYPE)                                                                 \
    (((TYPE)-1 < (TYPE)1 ? GPUSHMEM_COLL_INT8 : GPUSHMEM_COLL_UINT8) +                             \
     (sizeof(TYPE) == 8   ? 3                                                                      \
      : sizeof(TYPE) == 4 ? 2                                                                      \
                          : (int)sizeof(TYPE) - 1))
#ifdef __cplusplus
template <typename T> constexpr int gpsh_coll_integer = GPSH_COLL_INTEGER_OF(T);
#define GPSH_COLL_INTEGER(TYPE) gpsh_coll_integer<TYPE>
#else
#define GPSH_COLL_INTEGER(TYPE) GPSH_COLL_INTEGER_OF(TYPE)
#endif

// The 25 types of put and get, with how they are folded. and, or, xor: GPUSHMEM_INTEGER_TYPES.
#define GPUSHMEM_COLL_NUMBERS(X)                                                                   \
    X(bfloat16, gpushmem_bfloat16, GPUSHMEM_COLL_BFLOAT16)                                         \
    X(half, gpushmem_half, GPUSHMEM_COLL_HALF)                                                     \
    X(float, float, GPUSHMEM_COLL_FLOAT)                                                           \
    X(double, double, GPUSHMEM_COLL_DOUBLE)                                                        \
    GPUSHMEM_COLL_INTEGERS(X)
#define GPUSHMEM_COLL_INTEGERS(X)                                                                  \
    X(char, char, GPSH_COLL_INTEGER(char))                                                         \
    X(schar, signed char, GPSH_COLL_INTEGER(signed char))                                          \
    X(short, short, GPSH_COLL_INTEGER(short))                                                      \
    X(int, int, GPSH_COLL_INTEGER(int))                                                            \
    X(long, long, GPSH_COLL_INTEGER(long))                                                         \
    X(longlong, long long, GPSH_COLL_INTEGER(long long))                                           \
    X(uchar, unsigned char, GPSH_COLL_INTEGER(unsigned char))                                      \
    X(ushort, unsigned short, GPSH_COLL_INTEGER(unsigned short))                                   \
    X(uint, unsigned int, GPSH_COLL_INTEGER(unsigned int))                                         \
    X(ulong, unsigned long, GPSH_COLL_INTEGER(unsigned long))                                      \
    X(ulonglong, unsigned long long, GPSH_COLL_INTEGER(unsigned long long))                        \
    X(int8, int8_t, GPSH_COLL_INTEGER(int8_t))                                                     \
    X(int16, int16_t, GPSH_COLL_INTEGER(int16_t))                                                  \
    X(int32, int32_t, GPSH_COLL_INTEGER(int32_t))                                                  \
    X(int64, int64_t, GPSH_COLL_INTEGER(int64_t))                                                  \
    X(uint8, uint8_t, GPSH_COLL_INTEGER(uint8_t))                                                  \
    X(uint16, uint16_t, GPSH_COLL_INTEGER(uint16_t))                                               \
    X(uint32, uint32_t, GPSH_COLL_INTEGER(uint32_t))                                               \
    X(uint64, uint64_t, GPSH_COLL_INTEGER(uint64_t))                                               \
    X(size, size_t, GPSH_COLL_INTEGER(size_t))                                                     \
    X(ptrdiff, ptrdiff_t, GPSH_COLL_INTEGER(ptrdiff_t))

// Only sum and prod.
#define GPUSHMEM_COLL_COMPLEX(X)                                                                   \
    X(complexf, gpushmem_complexf, GPUSHMEM_COLL_COMPLEXF)                                         \
    X(complexd, gpushmem_complexd, GPUSHMEM_COLL_COMPLEXD)

#endif
