// SPDX-License-Identifier: BSD-3-Clause
#define _POSIX_C_SOURCE 200809L // clock_gettime
#include "core/clock.h"

#include <time.h>

uint64_t gpsh_clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}
