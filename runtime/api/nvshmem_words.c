// SPDX-License-Identifier: BSD-3-Clause
// What NVSHMEM's functions of the host do with words: sums of floating point values, and regions.
#include <string.h>

#include "comm/fold.h"
#include "core/error.h"
#include "gpushmem/compat/impl/nvshmem_calls.h"

// ---- Sums of floating point values ----

// Transports add integers alone: the word that the value is in, or is, is compared and swapped.
struct word {
    const char *function;
    void *at; // aligned
    int width, pe;
};

static int word_fetch(const struct word *w, uint64_t *value)
{
    uint32_t narrow = 0;
    int status = w->width == 8 ? gpushmem_uint64_atomic_fetch_status(w->at, w->pe, value)
                               : gpushmem_uint32_atomic_fetch_status(w->at, w->pe, &narrow);
    *value = w->width == 8 ? *value : narrow;
    return status ? gpsh_fail_in(status, w->function) : 0;
}

static int word_swap(const struct word *w, uint64_t expected, uint64_t next, uint64_t *seen)
{
    uint32_t narrow = 0;
    int status =
        w->width == 8
            ? gpushmem_uint64_atomic_compare_swap_status(w->at, expected, next, w->pe, seen)
            : gpushmem_uint32_atomic_compare_swap_status(w->at, (uint32_t)expected, (uint32_t)next,
                                                         w->pe, &narrow);
    *seen = w->width == 8 ? *seen : narrow;
    return status ? gpsh_fail_in(status, w->function) : 0;
}

// The word with *value added to the part at `skip`, of which *before is what it was.
static uint64_t word_sum(uint64_t word, size_t skip, size_t size, const void *value, void *before)
{
    const enum gpsh_type type = size == 2 ? GPSH_HALF : size == 4 ? GPSH_FLOAT : GPSH_DOUBLE;
    struct gpsh_fold sum;
    memcpy(before, (char *)&word + skip, size);
    gpsh_fold_load(type, &sum, before, 1);
    gpsh_fold_step(type, GPSH_SUM, &sum, value, 1);
    gpsh_fold_store(type, &sum, (char *)&word + skip, 1);
    return word;
}

int gpushmem_nvshmem_float_add(const char *function, int size, void *dest, const void *value,
                               int pe, void *before)
{
    const size_t skip = size == 2 ? (uintptr_t)dest & 2 : 0;
    const struct word w = {function, (char *)dest - skip, size == 8 ? 8 : 4, pe};
    uint64_t seen = 0, expected;
    int status = word_fetch(&w, &seen);
    do {
        expected = seen;
        if (!status)
            status = word_swap(&w, expected, word_sum(expected, skip, (size_t)size, value, before),
                               &seen);
    } while (!status && seen != expected);
    if (status)
        memset(before, 0, (size_t)size);
    return status;
}

// ---- Regions ----

int gpushmem_nvshmem_region(int change)
{
    static _Thread_local int depth;
    if (depth + change < 0)
        return gpsh_fail(GPUSHMEM_ERR_STATE,
                         "nvshmemx_region_stop: this thread is in no region; nvshmemx_region_start "
                         "begins one");
    depth += change;
    return change ? 0 : depth;
}
