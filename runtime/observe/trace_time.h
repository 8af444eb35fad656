// SPDX-License-Identifier: BSD-3-Clause
// CLOCK_MONOTONIC at the price of the processor's counter, for one thread: the clock is looked at
// once in some 2^18 ticks (100 us), and what the counter has gained since is added to it. How long
// a tick is follows from two looks at the clock.
#ifndef GPSH_TRACE_TIME_H
#define GPSH_TRACE_TIME_H

#include <stdint.h>

#include "core/ticks.h"

struct gpsh_trace_time {
    uint64_t ticks, ns; // the last good look at the clock
    uint64_t scale;     // 2^32 times the ns of a tick
    uint64_t limit;     // ticks after which the clock is asked again; 0: each time
};

// Between two looks at the counter, `before` and `after`, the clock said `ns`. A thread that did
// not run in between learns nothing from it.
void gpsh_trace_time_learn(struct gpsh_trace_time *time, uint64_t before, uint64_t ns,
                           uint64_t after);
// Asks the clock.
uint64_t gpsh_trace_time_look(struct gpsh_trace_time *time);

static inline uint64_t gpsh_trace_time_at(const struct gpsh_trace_time *time, uint64_t gained)
{
    return time->ns + (gained * time->scale >> 32);
}

static inline uint64_t gpsh_trace_time_ns(struct gpsh_trace_time *time)
{
    uint64_t gained = gpsh_ticks() - time->ticks;
    return gained < time->limit ? gpsh_trace_time_at(time, gained) : gpsh_trace_time_look(time);
}

#endif
