// SPDX-License-Identifier: BSD-3-Clause
#ifndef GPSH_CLOCK_H
#define GPSH_CLOCK_H

#include <limits.h>
#include <stdint.h>

// Time that only goes forward, even if somebody sets the system's clock.
uint64_t gpsh_clock_ns(void);

// The same clock as it stood some milliseconds ago at most, for a quarter of the cost.
uint64_t gpsh_clock_coarse_ns(void);

// In seconds, for the plans of a program.
static inline double gpsh_clock_s(void)
{
    return (double)gpsh_clock_ns() * 1e-9;
}

// So much later than now.
static inline uint64_t gpsh_clock_in(int64_t ms)
{
    return gpsh_clock_ns() + (uint64_t)ms * 1000000;
}

// How long until then, in ms, as poll takes it: 0 when it has come, else rounded up; -1: it is
// UINT64_MAX, which never comes.
static inline int gpsh_clock_left_ms(uint64_t until_ns)
{
    const uint64_t now_ns = gpsh_clock_ns();
    if (until_ns == UINT64_MAX)
        return -1;
    const uint64_t ms = until_ns > now_ns ? (until_ns - now_ns) / 1000000 + 1 : 0;
    return ms < INT_MAX ? (int)ms : INT_MAX;
}

#endif
