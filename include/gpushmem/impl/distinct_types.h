// SPDX-License-Identifier: BSD-3-Clause
// Lists of types for generic.h and overloads.hpp. Programs include gpushmem.h.
#ifndef GPUSHMEM_IMPL_DISTINCT_TYPES_H
#define GPUSHMEM_IMPL_DISTINCT_TYPES_H

#include "gpushmem/types.h"

// The distinct C types among those of gpushmem/types.h, for generics and overloads (int32_t is int,
// size_t is unsigned long and so on). X(NAME, TYPE, A, B) with two arguments of the caller.
#define GPUSHMEM_DISTINCT_AMO_TYPES(X, A, B)                                                       \
    X(int, int, A, B)                                                                              \
    X(long, long, A, B)                                                                            \
    X(longlong, long long, A, B)                                                                   \
    X(uint, unsigned int, A, B)                                                                    \
    X(ulong, unsigned long, A, B)                                                                  \
    X(ulonglong, unsigned long long, A, B)
#define GPUSHMEM_DISTINCT_AMO_EXTENDED_TYPES(X, A, B)                                              \
    X(float, float, A, B)                                                                          \
    X(double, double, A, B)                                                                        \
    GPUSHMEM_DISTINCT_AMO_TYPES(X, A, B)
#define GPUSHMEM_DISTINCT_AMO_BITWISE_TYPES(X, A, B)                                               \
    X(int32, int32_t, A, B)                                                                        \
    X(int64, int64_t, A, B)                                                                        \
    X(uint, unsigned int, A, B)                                                                    \
    X(ulong, unsigned long, A, B)                                                                  \
    X(ulonglong, unsigned long long, A, B)
#define GPUSHMEM_DISTINCT_SYNC_TYPES(X, A, B)                                                      \
    X(short, short, A, B)                                                                          \
    X(ushort, unsigned short, A, B)                                                                \
    GPUSHMEM_DISTINCT_AMO_TYPES(X, A, B)
#define GPUSHMEM_DISTINCT_RMA_TYPES(X, A, B)                                                       \
    X(bfloat16, gpushmem_bfloat16, A, B)                                                           \
    X(half, gpushmem_half, A, B)                                                                   \
    X(char, char, A, B)                                                                            \
    X(schar, signed char, A, B)                                                                    \
    X(uchar, unsigned char, A, B)                                                                  \
    X(short, short, A, B)                                                                          \
    X(ushort, unsigned short, A, B)                                                                \
    GPUSHMEM_DISTINCT_AMO_EXTENDED_TYPES(X, A, B)
#define GPUSHMEM_DISTINCT_COLL_BITWISE_TYPES(X, A, B)                                              \
    X(char, char, A, B)                                                                            \
    X(schar, signed char, A, B)                                                                    \
    X(uchar, unsigned char, A, B)                                                                  \
    X(short, short, A, B)                                                                          \
    X(ushort, unsigned short, A, B)                                                                \
    GPUSHMEM_DISTINCT_AMO_TYPES(X, A, B)
#define GPUSHMEM_DISTINCT_COLL_ORDERED_TYPES(X, A, B)                                              \
    X(longdouble, long double, A, B)                                                               \
    GPUSHMEM_DISTINCT_RMA_TYPES(X, A, B)
#define GPUSHMEM_DISTINCT_COLL_TYPES(X, A, B)                                                      \
    X(complexf, gpushmem_complexf, A, B)                                                           \
    X(complexd, gpushmem_complexd, A, B)                                                           \
    GPUSHMEM_DISTINCT_COLL_ORDERED_TYPES(X, A, B)

#endif
