// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // sigaction, syscall
#include "observe/status_request.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static atomic_uint questions; // SIGUSR1s so far
static atomic_uint wakes;     // a futex: changes with each of them, and when somebody is to wake up

// Also from a signal handler: a store and a system call.
void gpsh_status_requests_wake(void)
{
    atomic_fetch_add(&wakes, 1);
    syscall(SYS_futex, &wakes, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

unsigned gpsh_status_requests_ticket(void)
{
    return atomic_load(&wakes);
}

void gpsh_status_requests_await(unsigned ticket, int64_t limit_s)
{
    const struct timespec limit = {.tv_sec = (time_t)limit_s};
    syscall(SYS_futex, &wakes, FUTEX_WAIT_PRIVATE, ticket, limit_s ? &limit : NULL, NULL, 0);
}

static void on_question(int number)
{
    int error = errno;
    atomic_fetch_add_explicit(&questions, 1, memory_order_relaxed);
    gpsh_status_requests_wake();
    errno = error;
}

static bool has_default_action(void)
{
    struct sigaction now;
    return sigaction(SIGUSR1, NULL, &now) == 0 && !(now.sa_flags & SA_SIGINFO) &&
           now.sa_handler == SIG_DFL;
}

unsigned gpsh_status_requests(void)
{
    return atomic_load_explicit(&questions, memory_order_relaxed);
}

void gpsh_status_requests_open(void)
{
    const struct sigaction action = {.sa_handler = on_question, .sa_flags = SA_RESTART};
    if (has_default_action())
        sigaction(SIGUSR1, &action, NULL);
}
