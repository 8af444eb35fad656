// SPDX-License-Identifier: BSD-3-Clause
// Symmetric memory of the layer.
#include <gpushmem/gpushmem.h>

#include "moe.h"

int moe_create(struct moe *m)
{
    size_t n = (size_t)gpushmem_n_pes(), tokens = m->tokens, width = m->width, rows = tokens * TOP;
    m->rows = (uint32_t)rows;
    m->x = gpushmem_calloc(tokens * width, sizeof(float));
    m->out = gpushmem_calloc(tokens * width, sizeof(float));
    m->count = gpushmem_calloc(n, sizeof(uint32_t));
    m->chosen = gpushmem_calloc(n * rows, sizeof(struct moe_choice));
    m->received = gpushmem_calloc(n * rows, sizeof(struct moe_choice));
    m->inbox = gpushmem_calloc(n * rows * width, sizeof(float));
    m->results = gpushmem_calloc(n * rows * width, sizeof(float));
    m->answers = gpushmem_calloc(rows * width, sizeof(float));
    m->arrived = gpushmem_calloc(n * m->slices, sizeof(uint64_t));
    m->answered = gpushmem_calloc(n * m->slices, sizeof(uint64_t));
    int all = m->x && m->out && m->count && m->chosen && m->received && m->inbox && m->results &&
              m->answers && m->arrived;
    // everybody's signals are 0 now
    return all && m->answered ? gpushmem_barrier_all() : GPUSHMEM_ERR_NO_MEMORY;
}

int moe_free(struct moe *m)
{
    void *parts[] = {m->answered, m->arrived, m->answers, m->results, m->inbox,
                     m->received, m->chosen,  m->count,   m->out,     m->x};
    int status = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts && !status; i++)
        status = gpushmem_free(parts[i]);
    return status;
}
