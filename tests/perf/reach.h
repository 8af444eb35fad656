// SPDX-License-Identifier: BSD-3-Clause
// How the PEs of all pairs reach one another. Rows are collective, so whether there is one must not
// depend on what one PE sees: on several nodes PEs differ.
#ifndef PERF_REACH_H
#define PERF_REACH_H

struct perf_bench;

// Collective; after the memory is there. Sets bench->mapped and bench->info: direct only if all
// pairs are. 0 or a negative status.
int perf_reach_agree(struct perf_bench *bench);

#endif
