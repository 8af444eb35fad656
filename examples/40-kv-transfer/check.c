// SPDX-License-Identifier: BSD-3-Clause
// The scores by one thread and without communication, to compare with.
#include <gpushmem/gpushmem.h>

#include "kv.h"

static uint32_t expected_score(int prefill, uint32_t request, uint32_t layer, uint32_t page_floats)
{
    uint32_t score = 0;
    for (uint32_t page = 0; page < PAGES; page++)
        for (uint32_t i = 0; i < page_floats; i++)
            score += kv_score(kv_value(prefill, request, layer, page, i), page, i);
    return score;
}

int kv_check(const struct kv *kv, int prefill, uint64_t *wrong)
{
    int status = 0;
    for (uint32_t request = 0; request < kv->requests && !status; request++) {
        uint32_t scores[LAYERS];
        // The heap may be GPU memory: copy, do not dereference.
        status = gpushmem_uint32_get(scores, kv->scores + (size_t)request * LAYERS, LAYERS,
                                     gpushmem_my_pe());
        for (uint32_t layer = 0; layer < LAYERS && !status; layer++)
            *wrong += scores[layer] != expected_score(prefill, request, layer, kv->page_floats);
    }
    return status;
}
