// SPDX-License-Identifier: BSD-3-Clause
#include "observe/trace_time.h"

enum {
    LOOK = 256,           // ticks within which counter and clock count as looked at together
    SHORTEST = 1 << 17,   // ticks from which the length of one is known to a thousandth
    LIMIT = 1 << 18,      // ticks that are added to the clock's time at most
    ODD = 64,             // a tick that is longer or shorter by a 64th is none to rely on
    LONGEST_NS = 1 << 30, // of what is divided, so that it fits
};

// The counter may run at another speed than before, or be another processor's.
static uint64_t scale_of(const struct gpsh_trace_time *time, uint64_t ticks, uint64_t ns)
{
    uint64_t scale = (ns << 32) / ticks, before = time->scale ? time->scale : scale;
    uint64_t off = scale > before ? scale - before : before - scale;
    return off > before / ODD ? 0 : scale;
}

void gpsh_trace_time_learn(struct gpsh_trace_time *time, uint64_t before, uint64_t ns,
                           uint64_t after)
{
    uint64_t at = before + (after - before) / 2;
    uint64_t ticks = at - time->ticks, span_ns = ns - time->ns;
    if (after - before > LOOK)
        return;
    if (time->ns && ticks < SHORTEST && !time->scale)
        return; // the look before it is far enough away later
    if (time->ns && ticks >= SHORTEST && span_ns <= LONGEST_NS)
        time->scale = scale_of(time, ticks, span_ns);
    time->limit = time->scale ? LIMIT : 0;
    time->ticks = at;
    time->ns = ns;
}

uint64_t gpsh_trace_time_look(struct gpsh_trace_time *time)
{
    uint64_t before = gpsh_ticks(), ns = gpsh_clock_ns();
    gpsh_trace_time_learn(time, before, ns, gpsh_ticks());
    return ns;
}
