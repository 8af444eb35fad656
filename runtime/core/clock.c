// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // CLOCK_MONOTONIC_COARSE
#include "core/clock.h"

#include <time.h>

static uint64_t read_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t gpsh_clock_ns(void)
{
    return read_ns(CLOCK_MONOTONIC);
}

uint64_t gpsh_clock_coarse_ns(void)
{
    return read_ns(CLOCK_MONOTONIC_COARSE);
}
