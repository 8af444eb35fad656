// SPDX-License-Identifier: BSD-3-Clause
// Symmetric memory of both sides. Each PE has all of it, although it uses its side's only.
#include <gpushmem/gpushmem.h>

#include "kv.h"

// The pages of the pool in disorder, as they are after some hours of allocating and freeing.
static int make_table(const struct kv *kv)
{
    uint32_t pages[POOL_PAGES] = {0};
    for (uint32_t i = 0; i < POOL_PAGES; i++) {
        uint32_t other = kv_hash((uint32_t)gpushmem_my_pe(), i) % (i + 1);
        pages[i] = pages[other];
        pages[other] = i;
    }
    // the heap may be GPU memory
    return gpushmem_uint32_put(kv->table, pages, POOL_PAGES, gpushmem_my_pe());
}

int kv_create(struct kv *kv, uint32_t requests, uint32_t page_floats, bool kernels_send)
{
    *kv =
        (struct kv){.requests = requests, .page_floats = page_floats, .kernels_send = kernels_send};
    kv->made = gpushmem_calloc((size_t)SLOTS * PAGES * page_floats, sizeof(float));
    kv->pool = gpushmem_calloc((size_t)POOL_PAGES * page_floats, sizeof(float));
    kv->table = gpushmem_calloc(POOL_PAGES, sizeof(uint32_t));
    kv->scores = gpushmem_calloc((size_t)requests * LAYERS, sizeof(uint32_t));
    kv->arrived = gpushmem_calloc((size_t)SLOTS * LAYERS, sizeof(uint64_t));
    kv->finished = gpushmem_calloc(SLOTS, sizeof(uint64_t));
    if (!kv->made || !kv->pool || !kv->table || !kv->scores || !kv->arrived || !kv->finished)
        return GPUSHMEM_ERR_NO_MEMORY;
    int status = make_table(kv);
    // everybody's signals are 0 and its table is there
    return status ? status : gpushmem_barrier_all();
}

int kv_free(struct kv *kv)
{
    void *parts[] = {kv->finished, kv->arrived, kv->scores, kv->table, kv->pool, kv->made};
    int status = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts && !status; i++)
        status = gpushmem_free(parts[i]);
    return status;
}
