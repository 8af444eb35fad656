// SPDX-License-Identifier: BSD-3-Clause
// The way this library waits.
#ifndef GPSH_WAITER_H
#define GPSH_WAITER_H

#include "core/bell.h"
#include "core/cpu.h"
#include "observe/board.h"

// Some PEs have to share cores: each wait gives the core away at once. In every init: what this PE
// can tell before any wait, and then what all have agreed on.
void gpsh_waiter_share(bool cores_are_shared);
// Whether the hooks carry out what peers ask for. Before gpsh_waiter_share.
void gpsh_waiter_serve(bool serves_peers);
bool gpsh_waiter_shares(void);
// Every wait calls `drive` from now on, every few microseconds, so that what it serves gets on
// while this PE waits. It never waits itself, and returns true while something is under way. Any
// thread may be in it. Registering a function again changes nothing.
typedef bool gpsh_waiter_hook(void);
void gpsh_waiter_drive(gpsh_waiter_hook *drive);
// Every wait calls hook(argument) about every 50 ms, and ends when that does not return 0. NULL:
// no hook.
void gpsh_waiter_ask(int (*hook)(void *argument), void *argument);
// For tests that find nothing: gives the core away now and then if PEs share cores.
void gpsh_waiter_miss(void);

// One wait: spins, runs the hooks, yields when others want the core, watches for failed PEs,
// the deadline and the abort word. GPSH_WAIT(waiter, what) declares one that ends with its scope.
// Call gpsh_waiter_step in every iteration that finds nothing; a negative status ends the wait (a
// sentence says what was waited for).
struct gpsh_waiter {
    const char *what;
    unsigned spins;
    // the wait ends by itself when a PE fails, because the flow towards it reports that
    bool flows_tell;
    // the caller looks itself for lost PEs, because not every PE concerns it
    bool looks;
    bool for_all; // it needs every PE: once one has failed it can never succeed
    // so many times it was asked what it waits for, plus 1; 0: it has not looked yet
    unsigned asked;
    uint64_t deadline_ns;
    uint64_t began_ns; // first look at the clock
    uint64_t ask_ns;   // when the program's hook is asked next; 0: not begun
    uint64_t look_ns;  // when the record on the board is written again
    bool reported;     // the sentence after GPUSHMEM_HANG_REPORT seconds was logged
    // when this PE logs who is late, because no launcher does it; 0: never
    uint64_t report_ns;
    int slot; // on the board, for other processes; 0: none, as for every short wait
    // What has to happen for it to end, for the report about the whole job.
    enum gpsh_awaited awaited;
    int awaited_pe, team;
    uint64_t number;
    // What exactly is waited for, to follow "waiting": " for PE 3". NULL: `what` says it all.
    void (*about)(const void *subject, char *text, size_t bytes);
    const void *subject;
    // Where PEs share cores: who makes the condition true rings this, so the wait may sleep. NULL:
    // nobody does.
    struct gpsh_bell *bell;
    bool listens;   // counted by the bell; the condition is to be looked at once more
    uint32_t heard; // what the bell had rung then
};
int gpsh_waiter_slow(struct gpsh_waiter *waiter);
void gpsh_waiter_leave(struct gpsh_waiter *waiter);
// For waits that are made elsewhere, by sleeping: tells what a wait through gpsh_waiter_step tells.
// Call it now and then, and gpsh_waiter_end afterwards.
void gpsh_waiter_tell(struct gpsh_waiter *waiter);
static inline void gpsh_waiter_end(struct gpsh_waiter *waiter)
{
    if (GPSH_UNLIKELY(waiter->listens || waiter->slot))
        gpsh_waiter_leave(waiter);
}
#define GPSH_WAITER(text) ((struct gpsh_waiter){.what = (text)})
#define GPSH_WAIT(name, text)                                                                      \
    __attribute__((cleanup(gpsh_waiter_end))) struct gpsh_waiter name = GPSH_WAITER(text)
// Spins until the next look at anything else, less one: 63, 7 where the hooks serve peers, or 0
// where cores are shared.
extern unsigned gpsh_waiter_mask __attribute__((visibility("hidden")));
static inline int gpsh_waiter_step(struct gpsh_waiter *waiter)
{
    if (GPSH_LIKELY(++waiter->spins & gpsh_waiter_mask)) {
        gpsh_cpu_relax();
        return 0;
    }
    return gpsh_waiter_slow(waiter);
}

#endif
