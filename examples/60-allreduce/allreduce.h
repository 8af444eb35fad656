// SPDX-License-Identifier: BSD-3-Clause
// What kernels and host share: the ways, the symmetric memory, the values, the comparison.
#ifndef ALLREDUCE_ALLREDUCE_H
#define ALLREDUCE_ALLREDUCE_H

#include <stddef.h>
#include <stdint.h>

#if defined(__CUDACC__)
#define ALLREDUCE_FUNCTION static inline __host__ __device__
#else
#define ALLREDUCE_FUNCTION static inline
#endif

#ifdef __cplusplus
extern "C" {
#endif

enum allreduce_way { RING, TREE, LIBRARY, WAYS };

// Pointers are symmetric; passed to kernels by value.
struct vectors {
    int n_pes;
    size_t room;     // floats
    float *source;   // [room]
    float *dest;     // [room]
    float *inbox;    // [2][room] the tree's two children; the ring takes the first
    uint64_t *flags; // [WAYS][blocks][flags_of_block] the round that has arrived
};

// The ring's: two for each chunk, which are as many as PEs. The tree takes three.
ALLREDUCE_FUNCTION size_t flags_of_block(int n_pes)
{
    return 2 * (size_t)n_pes + 1;
}

// What PE `pe` has at i: of both signs and several magnitudes, so that the order of adding shows.
ALLREDUCE_FUNCTION float value_of(int pe, size_t i)
{
    uint32_t h = (uint32_t)i * 0x9e3779b1u ^ (uint32_t)(pe + 1) * 0x85ebca77u;
    h = (h ^ h >> 15) * 0x2c1b3c6du;
    h ^= h >> 13;
    return ((float)(h >> 8) - 8388608.0f) / (float)(1u << (h & 7));
}

// Elements of `dest` that differ from a serial sum: in any bit if `same_order` (the sum runs over
// PEs from 0), else by more than the rounding of two sums of n_pes numbers can.
size_t allreduce_differences(const float *dest, size_t elements, int n_pes, int same_order);

#ifdef __cplusplus
}
#endif

#endif
