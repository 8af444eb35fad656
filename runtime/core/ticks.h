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

// About two microseconds: of x86 it is only known that the counter runs at 1 to 4 GHz.
static inline uint64_t gpsh_ticks_of_2us(void)
{
#if defined(__aarch64__)
    uint64_t per_second;
    __asm__ volatile("mrs %0, cntfrq_el0" : "=r"(per_second));
    return per_second / 500000;
#else
    return 4096;
#endif
}

#endif
