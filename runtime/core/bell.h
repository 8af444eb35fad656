// SPDX-License-Identifier: BSD-3-Clause
// A bell in shared memory wakes PEs that sleep until a condition holds which others make true.
//
// A PE that finds its condition false listens, looks at the condition once more, and only then
// sleeps. Who has made the condition true, or found it true, rings. A ring between the second look
// and the sleep ends the sleep at once. A bell that nobody listens to costs a fence and a load.
#ifndef GPSH_BELL_H
#define GPSH_BELL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

// Never reset: what a PE that was killed has left counted costs the others a system call at times.
struct gpsh_bell {
    _Alignas(64) _Atomic uint32_t rung;
    _Atomic uint32_t listeners;
};

// What sleep wants to know.
uint32_t gpsh_bell_listen(struct gpsh_bell *bell);
void gpsh_bell_leave(struct gpsh_bell *bell);
// Until the bell rings, or so many milliseconds have passed: whoever would have rung may have died.
void gpsh_bell_sleep(struct gpsh_bell *bell, uint32_t heard, int ms);
// How long, after so many sleeps of one wait. `soon`: what no ring tells of, a death or the word of
// a hook, is to be found within some 50 ms. Else sleeps become longer: thousands that look so often
// leave those that they wait for little of few processors.
int gpsh_bell_sleep_ms(unsigned sleeps, bool soon);

void gpsh_bell_wake(struct gpsh_bell *bell);
static inline void gpsh_bell_ring(struct gpsh_bell *bell)
{
    // Pairs with the one in listen: either this sees the listener, or that one's next look sees
    // what was true before.
    atomic_thread_fence(memory_order_seq_cst);
    if (__builtin_expect(atomic_load_explicit(&bell->listeners, memory_order_relaxed) != 0, 0))
        gpsh_bell_wake(bell);
}

#endif
