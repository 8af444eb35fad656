// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // clock_gettime
#include "samples.h"

#include <stdlib.h>
#include <time.h>

uint64_t perf_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

void perf_samples_add(struct perf_samples *s, double value)
{
    if (s->count == s->room) {
        size_t room = s->room ? 2 * s->room : 1024;
        double *grown = realloc(s->values, room * sizeof *grown);
        if (!grown)
            return;
        s->values = grown;
        s->room = room;
    }
    s->values[s->count++] = value;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double perf_samples_percentile(struct perf_samples *s, double percent)
{
    if (!s->count)
        return 0;
    qsort(s->values, s->count, sizeof s->values[0], ascending);
    size_t rank = (size_t)(percent / 100 * (double)(s->count - 1) + 0.5);
    return s->values[rank];
}

void perf_samples_clear(struct perf_samples *s)
{
    free(s->values);
    *s = (struct perf_samples){.values = NULL};
}
