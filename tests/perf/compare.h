// SPDX-License-Identifier: BSD-3-Clause
// What has become slower or faster since another run.
//
// A row's ratio is its time per operation by that of the other run: above 1 it is slower. Each
// median is worth an interval (perf_samples_interval); the ratio's goes from the lowest now by the
// highest then to the highest now by the lowest then. A row is slower if all of its interval is
// above 1 and the tolerance, faster if all of it is below the inverse of that, the same if it is
// between the two, and unclear if it goes beyond one of them. Floors (memcpy, plain loads and
// stores) are shown, but not counted: if one has changed, or is unclear with a ratio beyond the
// tolerance, the verdict is that the machine has.
#ifndef PERF_COMPARE_H
#define PERF_COMPARE_H

#include <stdio.h>

#include "recorded.h"

enum perf_verdict { PERF_SAME, PERF_FASTER, PERF_SLOWER, PERF_UNCLEAR, PERF_VERDICTS };

struct perf_comparison {
    int counts[PERF_VERDICTS];  // rows, without floors
    int floors, floors_changed; // the latter are elsewhere: the machine's doing
    int alone;                  // rows of one run that the other lacks
};

// Prints a table and a verdict. tolerance: 0.05 stands for 5 %.
struct perf_comparison perf_compare(FILE *out, const struct perf_recorded *old,
                                    const struct perf_recorded *now, double tolerance);

#endif
