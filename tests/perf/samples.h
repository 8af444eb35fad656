// SPDX-License-Identifier: BSD-3-Clause
// Times of one row, and their percentiles.
#ifndef PERF_SAMPLES_H
#define PERF_SAMPLES_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct perf_samples {
    double *values;
    size_t count, room;
};

uint64_t perf_now_ns(void);
// dropped if there is no memory for it
void perf_samples_add(struct perf_samples *samples, double value);
// What the median of one run is worth: the lowest and the highest of the medians of eight parts of
// it, one after the other. With fewer samples than eight, the lowest and highest of them. Ask
// before the first percentile: those sort.
void perf_samples_interval(const struct perf_samples *samples, double *low, double *high);
// 0 without samples; sorts them
double perf_samples_percentile(struct perf_samples *samples, double percent);
void perf_samples_clear(struct perf_samples *samples);

#ifdef __cplusplus
}
#endif

#endif
