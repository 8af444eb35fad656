// SPDX-License-Identifier: BSD-3-Clause
// Element types and operators of reductions. Folding goes from the left, through an accumulator
// that is wider than the type for half and bfloat16, which are rounded once. device/fold.cuh does
// the same with the same bits.
#ifndef GPSH_FOLD_H
#define GPSH_FOLD_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpushmem/types.h"

// Numbered as kernels number them (enum gpushmem_coll_type, gpushmem_coll_fold), which have no long
// double.
enum gpsh_type {
    GPSH_INT8,
    GPSH_INT16,
    GPSH_INT32,
    GPSH_INT64,
    GPSH_UINT8,
    GPSH_UINT16,
    GPSH_UINT32,
    GPSH_UINT64,
    GPSH_HALF,
    GPSH_BFLOAT16,
    GPSH_FLOAT,
    GPSH_DOUBLE,
    GPSH_COMPLEXF,
    GPSH_COMPLEXD,
    GPSH_LONGDOUBLE,
    GPSH_TYPES,
};

enum gpsh_fold_op {
    GPSH_AND,
    GPSH_OR,
    GPSH_XOR,
    GPSH_MIN,
    GPSH_MAX,
    GPSH_SUM,
    GPSH_PROD,
    GPSH_FOLD_OPS,
};

#define GPSH_TYPE_OF(TYPE)                                                                         \
    _Generic((TYPE *)0,                                                                            \
        char *: CHAR_MIN < 0 ? GPSH_INT8 : GPSH_UINT8,                                             \
        signed char *: GPSH_INT8,                                                                  \
        short *: GPSH_INT16,                                                                       \
        int *: GPSH_INT32,                                                                         \
        long *: sizeof(long) == 8 ? GPSH_INT64 : GPSH_INT32,                                       \
        long long *: GPSH_INT64,                                                                   \
        unsigned char *: GPSH_UINT8,                                                               \
        unsigned short *: GPSH_UINT16,                                                             \
        unsigned int *: GPSH_UINT32,                                                               \
        unsigned long *: sizeof(long) == 8 ? GPSH_UINT64 : GPSH_UINT32,                            \
        unsigned long long *: GPSH_UINT64,                                                         \
        gpushmem_half *: GPSH_HALF,                                                                \
        gpushmem_bfloat16 *: GPSH_BFLOAT16,                                                        \
        float *: GPSH_FLOAT,                                                                       \
        double *: GPSH_DOUBLE,                                                                     \
        long double *: GPSH_LONGDOUBLE,                                                            \
        float _Complex *: GPSH_COMPLEXF,                                                           \
        double _Complex *: GPSH_COMPLEXD)

size_t gpsh_type_size(enum gpsh_type type);

enum { GPSH_FOLD_BLOCK = 256 };
// Of up to GPSH_FOLD_BLOCK elements.
struct gpsh_fold {
    _Alignas(64) char bytes[GPSH_FOLD_BLOCK * 16];
};

void gpsh_fold_load(enum gpsh_type type, struct gpsh_fold *acc, const void *from, size_t nelems);
// acc = acc op from. The operator exists for the type.
void gpsh_fold_step(enum gpsh_type type, enum gpsh_fold_op op, struct gpsh_fold *acc,
                    const void *from, size_t nelems);
// The accumulator of the type is the type itself, and may lie where the type may. For these: to =
// left op right, any two of which may be the same.
bool gpsh_fold_is_plain(enum gpsh_type type);
void gpsh_fold_pair(enum gpsh_type type, enum gpsh_fold_op op, void *to, const void *left,
                    const void *right, size_t nelems);
// The accumulator of half and bfloat16 is a float: its upper and lower 16 bits, as they travel.
void gpsh_fold_split(const struct gpsh_fold *acc, uint16_t *upper, uint16_t *lower, size_t nelems);
void gpsh_fold_join(struct gpsh_fold *acc, const uint16_t *upper, const uint16_t *lower,
                    size_t nelems);
void gpsh_fold_store(enum gpsh_type type, const struct gpsh_fold *acc, void *to, size_t nelems);

// dest = sources[0] op sources[1] op ..., nelems elements from `offset` bytes on in each source.
// dest may be one of the sources at that offset.
void gpsh_fold_all(enum gpsh_type type, enum gpsh_fold_op op, void *dest,
                   const char *const *sources, int n, size_t offset, size_t nelems);

#endif
