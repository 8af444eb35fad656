// SPDX-License-Identifier: BSD-3-Clause
// Rows as lines of a plot: those of one run that differ in size only.
#ifndef PERF_PLOT_SERIES_H
#define PERF_PLOT_SERIES_H

#include <stdbool.h>

#include "recorded.h"

enum perf_axis { PERF_LATENCY, PERF_BANDWIDTH, PERF_AXES };

struct perf_point {
    double size, value;
};

struct perf_series {
    const struct perf_row *row; // the first; tells what the series is
    int run;                    // its place among the runs
    int colour;                 // the same for the same series of another run
    bool floor;                 // what no library can beat: memcpy, plain loads and stores
    struct perf_point *points;  // by size, each size once
    int n;
};

struct perf_chart {
    struct perf_series *series;
    int n, colours;
    double least_size, most_size, least, most; // of all points
};

// False if there is no memory. Rows without a size, or without that figure, are left out.
bool perf_chart_make(struct perf_chart *chart, enum perf_axis axis,
                     const struct perf_recorded *runs, int n_runs);
void perf_chart_clear(struct perf_chart *chart);

#endif
