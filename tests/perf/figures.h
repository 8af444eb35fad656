// SPDX-License-Identifier: BSD-3-Clause
// Numbers as people read them.
#ifndef PERF_FIGURES_H
#define PERF_FIGURES_H

#include <stddef.h>
#include <stdint.h>

// "64 KiB". Returns `text`, as figure does.
const char *perf_size_text(uint64_t bytes, char *text, size_t room);
// Four significant digits, and nothing for 0, which was not measured.
const char *perf_figure_text(double value, char *text, size_t room);

#endif
