// SPDX-License-Identifier: BSD-3-Clause
#ifndef GPSH_TRACE_CLOCK_H
#define GPSH_TRACE_CLOCK_H

#include "observe/trace_parts.h"

// How a node's clock differs from that of the lowest PE's node.
struct gpsh_trace_clock {
    int node;
    int64_t ahead_ns, ahead_later_ns; // at two times of that clock, between which it drifts
    uint64_t at_ns, later_ns;
    int64_t within_ns; // at most so wrong; -1: only the hosts' dates are known
};
void gpsh_trace_clock_estimate(const struct gpsh_trace_parts *parts, int node,
                               struct gpsh_trace_clock *clock);
// The time of a node's clock as the lowest PE's node has it.
uint64_t gpsh_trace_clock_adjust(const struct gpsh_trace_clock *clock, uint64_t at_ns);

#endif
