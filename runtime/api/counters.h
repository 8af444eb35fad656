// SPDX-License-Identifier: BSD-3-Clause
#ifndef GPSH_API_COUNTERS_H
#define GPSH_API_COUNTERS_H

// A table of what this PE has counted, to stderr in one piece (GPUSHMEM_STATS).
void gpsh_stats_print(void);

#endif
