// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // kill
#include "bootstrap/tcp_end.h"

#include <signal.h>
#include <unistd.h>

#include "core/clock.h"

// Until then others are told; then the program has time to clean up.
enum { FIRST_MS = 100, GRACE_MS = 2000 };

static void end_later(struct gpsh_tcp_end *end, int ms)
{
    end->next_ns = gpsh_clock_ns() + (uint64_t)ms * 1000000;
}

bool gpsh_tcp_end_order(struct gpsh_tcp_end *end, bool by_exit, int status)
{
    if (end->ordered && (end->by_exit || !by_exit || end->steps))
        return false;
    *end = (struct gpsh_tcp_end){.ordered = true, .by_exit = by_exit, .status = status};
    end_later(end, FIRST_MS);
    return true;
}

int gpsh_tcp_end_step(struct gpsh_tcp_end *end)
{
    if (!end->ordered)
        return -1;
    uint64_t now = gpsh_clock_ns();
    if (now < end->next_ns)
        return (int)((end->next_ns - now) / 1000000) + 1;
    if (end->by_exit)
        _exit(end->status);
    kill(getpid(), end->steps++ ? SIGKILL : SIGTERM);
    end_later(end, GRACE_MS);
    return GRACE_MS;
}
