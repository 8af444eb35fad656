// SPDX-License-Identifier: BSD-3-Clause
// Counters that one thread at a time writes, and others read at any time: a reader sees some value
// that the counter has had. Nothing is ordered by them.
#ifndef GPSH_COUNT_H
#define GPSH_COUNT_H

#include <stdint.h>

// The writer needs no read-modify-write, since nobody else writes. Pairs with relaxed loads.
static inline void gpsh_count_set(uint64_t *counter, uint64_t value)
{
    __atomic_store_n(counter, value, __ATOMIC_RELAXED);
}

static inline void gpsh_count_add(uint64_t *counter, uint64_t more)
{
    gpsh_count_set(counter, *counter + more);
}

#endif
