// SPDX-License-Identifier: BSD-3-Clause
// The same layer by one thread and without communication, to compare with.
#include <gpushmem/gpushmem.h>
#include <stdlib.h>

#include "moe.h"

// What one step adds to a token.
static void add_step(const struct moe *m, float *out, float *x, uint64_t step, uint32_t token)
{
    int me = gpushmem_my_pe(), n = gpushmem_n_pes();
    uint32_t width = m->width;
    for (uint32_t i = 0; i < width; i++)
        x[i] = moe_value(step, me, token, i);
    for (uint32_t k = 0; k < TOP; k++) {
        uint32_t expert = moe_expert_of(m, step, me, token, k, n);
        for (uint32_t i = 0; i < width; i++)
            out[i] += moe_weight(token, k) * moe_expert(expert, x, i, width);
    }
}

int moe_check(const struct moe *m, uint64_t steps, uint64_t *wrong)
{
    float *got = malloc(m->width * sizeof *got), *expected = malloc(m->width * sizeof *expected);
    float *x = malloc(m->width * sizeof *x);
    int status = got && expected && x ? 0 : GPUSHMEM_ERR_NO_MEMORY;
    for (uint32_t token = 0; token < m->tokens && !status; token++) {
        for (uint32_t i = 0; i < m->width; i++)
            expected[i] = 0;
        for (uint64_t step = 1; step <= steps; step++)
            add_step(m, expected, x, step, token);
        // The heap may be GPU memory: copy, do not dereference.
        status =
            gpushmem_float_get(got, m->out + (size_t)token * m->width, m->width, gpushmem_my_pe());
        for (uint32_t i = 0; i < m->width && !status; i++)
            *wrong += got[i] != expected[i];
    }
    free(x);
    free(expected);
    free(got);
    return status;
}
