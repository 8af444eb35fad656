// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // what poll.h needs
#include "bootstrap/launcher_answer.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#include "core/clock.h"
#include "core/error.h"

enum { LOOK_MS = 20 };

static int fail_late(const struct gpsh_launcher_wait *wait)
{
    return gpsh_fail(GPUSHMEM_ERR_TIMEOUT,
                     "%s: the launcher has not answered for %lld ms (GPUSHMEM_WAIT_TIMEOUT_MS): is "
                     "a PE of this node, or gpushmem run itself, stopped?",
                     wait->what, (long long)wait->limit_ms);
}

int gpsh_launcher_await(const struct gpsh_launcher_wait *wait, short ready)
{
    struct pollfd line = {.fd = wait->line, .events = ready};
    const uint64_t limit_ns = (uint64_t)wait->limit_ms * 1000000;
    bool waited = false;
    int status = 0;
    // Not by the number of looks: each signal of the program ends one.
    while (!status && poll(&line, 1, LOOK_MS) <= 0) {
        waited = true;
        if (wait->waits)
            wait->waits(false);
        status = gpsh_bootstrap_check(wait->what, false);
        // The answer may have come while this process had no processor.
        if (!status && limit_ns && gpsh_clock_ns() - wait->began_ns > limit_ns &&
            poll(&line, 1, 0) <= 0)
            status = fail_late(wait);
    }
    if (waited && wait->waits)
        wait->waits(true);
    return status;
}

int gpsh_launcher_answer(const struct gpsh_launcher_wait *wait, enum gpsh_line_word word,
                         int32_t question, struct gpsh_line_message *answer, int *fds, int most)
{
    for (;;) {
        int status = gpsh_launcher_await(wait, POLLIN);
        if (status)
            return status;
        int n = gpsh_launcher_receive(wait->line, answer, fds, most);
        if (n < 0)
            return gpsh_fail(GPUSHMEM_ERR_SYSTEM, "%s: the launcher does not answer any more (%s)",
                             wait->what, n == -EPIPE ? "it has ended" : strerror(-n));
        if (answer->word == (int32_t)word && answer->a == question)
            return n;
        gpsh_fds_close(fds, n);
    }
}
