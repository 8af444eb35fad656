// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // clock_gettime
#include "samples.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PARTS = 8 };

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

static double middle(const double *values, size_t n, double *room)
{
    memcpy(room, values, n * sizeof *room);
    qsort(room, n, sizeof *room, ascending);
    return room[n / 2];
}

void perf_samples_interval(const struct perf_samples *s, double *low, double *high)
{
    size_t parts = s->count < PARTS ? s->count : PARTS;
    double *room = calloc(s->count + 1, sizeof *room);
    *low = *high = 0;
    for (size_t i = 0; i < parts && room; i++) {
        size_t first = i * s->count / parts, end = (i + 1) * s->count / parts;
        double median = middle(s->values + first, end - first, room);
        *low = i && *low < median ? *low : median;
        *high = i && *high > median ? *high : median;
    }
    free(room);
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
