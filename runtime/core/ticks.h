// SPDX-License-Identifier: BSD-3-Clause
// A counter that runs evenly and costs little to read.
#ifndef GPSH_TICKS_H
#define GPSH_TICKS_H

#include <stdint.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include "core/clock.h"

static inline uint64_t gpsh_ticks(void)
{
#if defined(__x86_64__)
    return __rdtsc();
#elif defined(__aarch64__)
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#else
    return gpsh_clock_ns();
#endif
}

#endif
