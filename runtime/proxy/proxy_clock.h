// SPDX-License-Identifier: BSD-3-Clause
// Where a proxy thread's time goes, by stage of its passes. Passes that found nothing to do count
// as idle, like the time between passes. Switched off (the default) a mark costs one predicted
// branch.
#ifndef GPSH_PROXY_CLOCK_H
#define GPSH_PROXY_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "core/ticks.h"

enum gpsh_proxy_stage {
    // look for commands, read and check them; execute those on memory mapped here
    GPSH_STAGE_PARSE,
    GPSH_STAGE_POST,     // hand operations to a transport, which makes work requests of them
    GPSH_STAGE_DOORBELL, // ring for what was held back
    GPSH_STAGE_POLL,     // completions: poll the transports for them
    GPSH_STAGE_RETIRE,   // and publish what is complete
    GPSH_STAGES,
};

struct gpsh_proxy_clock {
    bool on;
    enum gpsh_proxy_stage stage;
    uint64_t mark;              // when it was entered
    uint64_t pass[GPSH_STAGES]; // ticks of the pass being made
    // of all passes that found work; written by the thread that makes the pass, read by any
    uint64_t ticks[GPSH_STAGES];
    uint64_t began_ticks, began_ns;
};

// What follows is of that stage.
static inline void gpsh_clock_enter(struct gpsh_proxy_clock *clock, enum gpsh_proxy_stage stage)
{
    if (__builtin_expect(!clock->on, 1))
        return;
    uint64_t now = gpsh_ticks();
    clock->pass[clock->stage] += now - clock->mark;
    clock->mark = now;
    clock->stage = stage;
}

static inline void gpsh_clock_pass_begin(struct gpsh_proxy_clock *clock)
{
    if (__builtin_expect(!clock->on, 1))
        return;
    for (int i = 0; i < GPSH_STAGES; i++)
        clock->pass[i] = 0;
    clock->stage = GPSH_STAGE_PARSE;
    clock->mark = gpsh_ticks();
}

static inline void gpsh_clock_pass_end(struct gpsh_proxy_clock *clock, bool worked)
{
    gpsh_clock_enter(clock, GPSH_STAGE_PARSE);
    for (int i = 0; clock->on && worked && i < GPSH_STAGES; i++)
        __atomic_store_n(&clock->ticks[i], clock->ticks[i] + clock->pass[i], __ATOMIC_RELAXED);
}

static inline void gpsh_clock_start(struct gpsh_proxy_clock *clock)
{
    *clock = (struct gpsh_proxy_clock){
        .on = true, .began_ticks = gpsh_ticks(), .began_ns = gpsh_clock_ns()};
}

#endif
