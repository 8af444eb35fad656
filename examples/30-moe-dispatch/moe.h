// SPDX-License-Identifier: BSD-3-Clause
// What kernels and the serial reference share: sizes, memory, router and experts.
#ifndef MOE_MOE_H
#define MOE_MOE_H

#include <stddef.h>
#include <stdint.h>

#if defined(__CUDACC__)
#define MOE_FUNCTION static inline __host__ __device__
#else
#define MOE_FUNCTION static inline
#endif

#ifdef __cplusplus
extern "C" {
#endif

enum { TOP = 2 }; // experts of each token

// One expert's part in one token.
struct moe_choice {
    uint32_t row;    // of the sender's `answers`: token * TOP + k
    uint32_t expert; // counted over all PEs
};

// Pointers are symmetric; passed to kernels by value. `rows` is tokens * TOP: as many as one PE can
// send to another. What goes from one PE to another is cut into `slices`, each with a block and a
// signal of its own.
struct moe {
    uint32_t tokens, width, rows, slices;
    uint32_t experts; // on each PE
    uint32_t skew;   // percent of the tokens whose first expert is on PE 0, besides those by chance
    float *x, *out;  // [tokens][width]
    uint32_t *count; // [PEs] choices of this step that go there
    struct moe_choice *chosen;   // [PEs][rows] these choices
    struct moe_choice *received; // [PEs][rows] those that came from there
    // [PEs][rows][width] their tokens, and what the experts made of them
    float *inbox, *results;
    float *answers; // [rows][width] what the experts made of my tokens
    // [PEs][slices] step << 32 | count: the sender's slice of a step is here
    uint64_t *arrived;
    uint64_t *answered; // [PEs][slices] the step whose answers to that slice are here
};

// Collective: memory for m's tokens, width and slices; other members stay. 0 or a negative status.
int moe_create(struct moe *m);
int moe_free(struct moe *m);
// Serial: adds up to *wrong how many values of `out` differ after `steps` steps. 0 or a negative
// status.
int moe_check(const struct moe *m, uint64_t steps, uint64_t *wrong);

MOE_FUNCTION uint32_t moe_hash(uint32_t a, uint32_t b, uint32_t c)
{
    uint32_t h = a * 0x9e3779b1u ^ b * 0x85ebca77u ^ c * 0xc2b2ae3du;
    h = (h ^ h >> 15) * 0x2c1b3c6du;
    h = (h ^ h >> 12) * 0x297a2d39u;
    return h ^ h >> 15;
}

// Values are small integers and weights eighths: every product and sum is exact, in any order and
// with fused multiply-add.
MOE_FUNCTION float moe_value(uint64_t step, int pe, uint32_t token, uint32_t i)
{
    return (float)(moe_hash((uint32_t)step << 8 | (uint32_t)pe, token, i) & 15);
}

// The k-th expert of a token of this PE, of those of n PEs: never one twice.
MOE_FUNCTION uint32_t moe_expert_of(const struct moe *m, uint64_t step, int pe, uint32_t token,
                                    uint32_t k, int n)
{
    uint32_t h = moe_hash(token, (uint32_t)step, 1u + (uint32_t)pe), all = m->experts * (uint32_t)n;
    uint32_t first = moe_hash(h, 0, 0) % 100 < m->skew ? h % m->experts : h % all;
    uint32_t stride = 1 + (h >> 16) % ((all - 1) / (TOP - 1));
    return (first + k * stride) % all;
}

MOE_FUNCTION float moe_weight(uint32_t token, uint32_t k)
{
    return 0.125f * (float)(1 + (token + 3 * k) % 7);
}

// Element i of what an expert makes of a token.
MOE_FUNCTION float moe_expert(uint32_t expert, const float *x, uint32_t i, uint32_t width)
{
    return (float)(expert + 1) * x[i] + x[i + 1 < width ? i + 1 : 0];
}

#ifdef __cplusplus
}
#endif

#endif
