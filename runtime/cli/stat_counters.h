// SPDX-License-Identifier: BSD-3-Clause
// The counters of a job's PEs, as `gpushmem stat` prints them.
#ifndef GPSH_STAT_COUNTERS_H
#define GPSH_STAT_COUNTERS_H

#include <stdbool.h>

#include "observe/boards.h"

// A table: a row for each ring and each set of queues, over all peers or, with `peers`, for each.
// `before`: the same boards `seconds` ago, for a column of operations per second; NULL: none.
void gpsh_stat_table(const struct gpsh_boards *boards, bool peers, const struct gpsh_boards *before,
                     double seconds);
// In the text format of Prometheus.
void gpsh_stat_prometheus(const struct gpsh_boards *boards);

#endif
