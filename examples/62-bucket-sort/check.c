// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // what example.h uses
#include "../shared/example.h"
#include "sort.h"

// Of the keys that were made and of those that came out. The sum of scrambled keys does not depend
// on their order, and changes with any of them.
struct totals {
    uint64_t made, made_sum, sorted, sorted_sum, unordered;
};
enum { TOTALS = sizeof(struct totals) / sizeof(uint64_t) };

// The ends of a PE's keys.
struct ends {
    uint32_t first, last, any;
};

// Symmetric for the host, as they are static.
static struct totals here, everywhere;
static struct ends my_ends, all_ends[MAX_PES];

static uint64_t scramble(uint32_t key)
{
    uint64_t h = (key + UINT64_C(1)) * UINT64_C(0x9e3779b97f4a7c15);
    return (h ^ h >> 31) * UINT64_C(0xbf58476d1ce4e5b9);
}

static void look_at(const uint32_t *keys, long sorted, int kind, long made)
{
    here = (struct totals){.made = (uint64_t)made, .sorted = (uint64_t)sorted};
    for (long i = 0; i < made; i++)
        here.made_sum += scramble(keys_make(kind, gpushmem_my_pe(), i));
    for (long i = 0; i < sorted; i++)
        here.sorted_sum += scramble(keys[i]);
    for (long i = 1; i < sorted; i++)
        here.unordered += keys[i - 1] > keys[i];
    my_ends.any = sorted > 0;
    my_ends.first = sorted ? keys[0] : 0;
    my_ends.last = sorted ? keys[sorted - 1] : 0;
}

static bool ends_are_in_order(void)
{
    uint32_t last = 0;
    for (int pe = 0; pe < gpushmem_n_pes(); pe++) {
        if (all_ends[pe].any && all_ends[pe].first < last)
            return false;
        last = all_ends[pe].any ? all_ends[pe].last : last;
    }
    return true;
}

static int compare_keys(const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    return (left > right) - (left < right);
}

// On PE 0: sorts all keys with the C library and compares each.
static int compare_serially(const struct sorted *s, int kind, long count, bool *good)
{
    static long counts[MAX_PES], my_count;
    long n = gpushmem_n_pes(), all = n * count, at = 0;
    my_count = s->count;
    TRY(gpushmem_long_fcollect(GPUSHMEM_TEAM_WORLD, counts, &my_count, 1));
    if (gpushmem_my_pe())
        return 0;
    uint32_t *wanted = malloc((size_t)all * sizeof *wanted),
             *got = malloc((size_t)all * sizeof *got);
    TRY(wanted && got ? 0 : GPUSHMEM_ERR_NO_MEMORY);
    for (long i = 0; i < all; i++)
        wanted[i] = keys_make(kind, (int)(i / count), i % count);
    qsort(wanted, (size_t)all, sizeof *wanted, compare_keys);
    for (int pe = 0; pe < n; at += counts[pe++])
        TRY(gpushmem_uint32_get(got + at, s->keys, (size_t)counts[pe], pe));
    *good &= !memcmp(wanted, got, (size_t)all * sizeof *got);
    free(got);
    free(wanted);
    return 0;
}

static bool agree(void)
{
    bool all_there =
        everywhere.made == everywhere.sorted && everywhere.made_sum == everywhere.sorted_sum;
    bool ordered = !everywhere.unordered && ends_are_in_order();
    if (gpushmem_my_pe() == 0 && !all_there)
        fprintf(stderr, "bucket_sort: keys were lost or changed: %lu were made, %lu came out\n",
                (unsigned long)everywhere.made, (unsigned long)everywhere.sorted);
    if (gpushmem_my_pe() == 0 && !ordered)
        fprintf(stderr, "bucket_sort: keys are not in order\n");
    return all_there && ordered;
}

int check_sorted(const struct sorted *s, int kind, long count, bool serially, bool *good)
{
    uint32_t *keys = malloc((size_t)s->count * sizeof *keys + 1);
    TRY(keys ? 0 : GPUSHMEM_ERR_NO_MEMORY);
    TRY(gpushmem_uint32_get(keys, s->keys, (size_t)s->count, gpushmem_my_pe()));
    look_at(keys, s->count, kind, count);
    free(keys);
    TRY(gpushmem_uint64_sum_reduce(GPUSHMEM_TEAM_WORLD, (uint64_t *)&everywhere, (uint64_t *)&here,
                                   TOTALS));
    TRY(gpushmem_fcollectmem(GPUSHMEM_TEAM_WORLD, all_ends, &my_ends, sizeof my_ends));
    *good = agree();
    return serially ? compare_serially(s, kind, count, good) : 0;
}
