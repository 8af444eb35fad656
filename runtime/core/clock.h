// SPDX-License-Identifier: BSD-3-Clause
#ifndef GPSH_CLOCK_H
#define GPSH_CLOCK_H

#include <stdint.h>

// Time that only goes forward, even if somebody sets the system's clock.
uint64_t gpsh_clock_ns(void);

// The same clock as it stood some milliseconds ago at most, for a quarter of the cost.
uint64_t gpsh_clock_coarse_ns(void);

#endif
