// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // syscall
#include "core/bell.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

uint32_t gpsh_bell_listen(struct gpsh_bell *bell)
{
    atomic_fetch_add_explicit(&bell->listeners, 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst); // pairs with the one in ring
    return atomic_load_explicit(&bell->rung, memory_order_acquire);
}

void gpsh_bell_leave(struct gpsh_bell *bell)
{
    atomic_fetch_sub_explicit(&bell->listeners, 1, memory_order_relaxed);
}

int gpsh_bell_sleep_ms(unsigned sleeps, bool soon)
{
    enum { FIRST_MS = 5, DOUBLINGS_SOON = 2, DOUBLINGS = 5 };
    const unsigned most = soon ? DOUBLINGS_SOON : DOUBLINGS;
    return FIRST_MS << (sleeps < most ? sleeps : most);
}

// Not FUTEX_PRIVATE_FLAG: the word is in several processes.
void gpsh_bell_sleep(struct gpsh_bell *bell, uint32_t heard, int ms)
{
    const struct timespec most = {.tv_nsec = ms * 1000000L};
    syscall(SYS_futex, &bell->rung, FUTEX_WAIT, heard, &most, NULL, 0);
}

void gpsh_bell_wake(struct gpsh_bell *bell)
{
    atomic_fetch_add_explicit(&bell->rung, 1, memory_order_release);
    syscall(SYS_futex, &bell->rung, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}
