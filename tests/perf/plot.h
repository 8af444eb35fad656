// SPDX-License-Identifier: BSD-3-Clause
// Runs as a picture: size against latency, and against bandwidth.
#ifndef PERF_PLOT_H
#define PERF_PLOT_H

#include <stdbool.h>

#include "recorded.h"

// SVG 1.1 without scripts and fonts of its own. runs[0] is drawn with full lines, the others
// broken. False, with a sentence on stderr, if there is nothing to draw or it cannot be written.
bool perf_plot_write(const char *path, const struct perf_recorded *runs, int n_runs);

#endif
