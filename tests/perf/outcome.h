// SPDX-License-Identifier: BSD-3-Clause
// What becomes of the rows in the end: --compare and --plot.
#ifndef PERF_OUTCOME_H
#define PERF_OUTCOME_H

#include <stdbool.h>

#include "options.h"
#include "recorded.h"

// A row is slower; floors have moved, so that nothing is known of the rows.
enum { PERF_EXIT_SLOWER = 3, PERF_EXIT_MACHINE = 4 };

// Before anything is measured: whether what --compare names can be read, and --json and --plot be
// written. A sentence on stderr if not.
bool perf_outcome_is_possible(const struct perf_options *options);
// The exit status: 0; 1 if something could not be done; PERF_EXIT_SLOWER; PERF_EXIT_MACHINE.
int perf_outcome(const struct perf_options *options, const struct perf_recorded *now);
// The same for the file that --from names.
int perf_outcome_of_file(const struct perf_options *options);

#endif
