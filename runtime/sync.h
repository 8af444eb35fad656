// SPDX-License-Identifier: BSD-3-Clause
// Barriers over all PEs, through the control regions, and the way this library waits.
#ifndef GPSH_SYNC_H
#define GPSH_SYNC_H

#include "core.h"

// All PEs have arrived. Completes nothing. Fails if a PE dies or GPUSHMEM_WAIT_TIMEOUT_MS runs out.
int gpsh_sync_all(void);
// quiet of the default context, then gpsh_sync_all.
int gpsh_barrier_all(void);

// One wait: spins, drives the default context, yields when others want the core, watches for failed PEs, the deadline and
// the abort word. Initialise with GPSH_WAITER(what), call gpsh_waiter_step in every empty iteration; a negative status ends
// the wait (a sentence says what was waited for).
struct gpsh_waiter {
    const char *what;
    unsigned spins;
    uint64_t deadline_ns;
};
#define GPSH_WAITER(text) ((struct gpsh_waiter){.what = (text)})
int gpsh_waiter_slow(struct gpsh_waiter *waiter);
static inline int gpsh_waiter_step(struct gpsh_waiter *waiter)
{
    if (GPSH_LIKELY(++waiter->spins & 63)) {
        gpsh_cpu_relax();
        return 0;
    }
    return gpsh_waiter_slow(waiter);
}

#endif
