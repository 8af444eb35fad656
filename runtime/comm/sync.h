// SPDX-License-Identifier: BSD-3-Clause
// Barriers over all PEs, through the control regions, and the way this library waits.
#ifndef GPSH_SYNC_H
#define GPSH_SYNC_H

#include "core/state.h"

// All PEs have arrived. Completes nothing. Fails if a PE dies or GPUSHMEM_WAIT_TIMEOUT_MS runs out.
int gpsh_sync_all(void);
// quiet of the default context, then gpsh_sync_all.
int gpsh_barrier_all(void);
// Starts counting anew: the control regions are fresh and zero. Before any sync, in every init.
void gpsh_sync_init(void);
// Finds out whether PEs have to share cores, and lets SIGUSR1 ask each wait what it waits for,
// unless the program has other plans for that signal. In every init, before any wait; and in every
// finalize, after the last one.
void gpsh_waiter_init(void);
void gpsh_waiter_finalize(void);
// For tests that find nothing: gives the core away now and then if PEs share cores.
void gpsh_waiter_miss(void);

// How often the program was asked by SIGUSR1 what it waits for.
unsigned gpsh_waiter_questions(void);

// One wait: spins, drives the contexts, yields when others want the core, watches for failed PEs,
// the deadline and the abort word. Initialise with GPSH_WAITER(what), call gpsh_waiter_step in
// every empty iteration; a negative status ends the wait (a sentence says what was waited for).
struct gpsh_waiter {
    const char *what;
    unsigned spins;
    // the wait ends by itself when a PE fails, because the flow towards it reports that
    bool flows_tell;
    bool for_all; // it needs every PE: once one has failed it can never succeed
    // so many times it was asked what it waits for, plus 1; 0: it has not looked yet
    unsigned asked;
    uint64_t deadline_ns;
    uint64_t began_ns; // first look at the clock
    // What exactly is waited for, to follow "waiting": " for PE 3". NULL: `what` says it all.
    void (*about)(const void *subject, char *text, size_t bytes);
    const void *subject;
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
