// SPDX-License-Identifier: BSD-3-Clause
// Which keys go to which PE.
#include <gpushmem/gpushmem.h>
#include <stdlib.h>

#include "sort.h"

enum { SAMPLES = 64 }; // of each PE

// Equal keys are told apart by where they are, so that they, too, can be cut: every element of the
// job has a tag of its own, and tags have the order of the keys.
static uint64_t tag_of(uint32_t key, long i, long count)
{
    return (uint64_t)key << 32 | (uint32_t)(gpushmem_my_pe() * count + i);
}

// The number of own elements whose tags are less.
static long count_below(uint64_t tag, const uint32_t *keys, long count)
{
    long low = 0, high = count;
    while (low < high) {
        long middle = (low + high) / 2;
        if (tag_of(keys[middle], middle, count) < tag)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

// Every PE gets an equal part of all keys that are possible.
int split_by_range(const uint32_t *keys, long count, long *cut)
{
    int n = gpushmem_n_pes();
    cut[0] = 0;
    for (int pe = 1; pe < n; pe++)
        cut[pe] =
            count_below(((UINT64_C(1) << 32) * (uint64_t)pe / (uint64_t)n) << 32, keys, count);
    cut[n] = count;
    return 0;
}

static int compare_tags(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

// Every PE shows some of its keys. Among all of these, in order, those at equal distances cut the
// keys into parts of nearly equal size, however they are distributed. Static variables are
// symmetric for the host.
int split_by_sample(const uint32_t *keys, long count, long *cut)
{
    static uint64_t mine[SAMPLES], all[SAMPLES * MAX_PES];
    int n = gpushmem_n_pes();
    for (long i = 0; i < SAMPLES; i++) {
        long at = count * (2 * i + 1) / (2 * SAMPLES);
        mine[i] = tag_of(keys[at], at, count);
    }
    int status = gpushmem_uint64_fcollect(GPUSHMEM_TEAM_WORLD, all, mine, SAMPLES);
    if (status)
        return status;
    qsort(all, (size_t)n * SAMPLES, sizeof *all, compare_tags);
    cut[0] = 0;
    for (int pe = 1; pe < n; pe++)
        cut[pe] = count_below(all[pe * SAMPLES], keys, count);
    cut[n] = count;
    return 0;
}
