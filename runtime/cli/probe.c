// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // pipe2
#include "probe.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/clock.h"

// All that comes until the writer ends; false if that takes too long.
static bool words_read(int fd, char *words, size_t bytes, uint64_t end_ns)
{
    size_t used = 0;
    for (;;) {
        char text[512];
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        int n_ready = poll(&ready, 1, gpsh_clock_left_ms(end_ns));
        if (n_ready == 0)
            return false;
        ssize_t n = n_ready > 0 ? read(fd, text, sizeof text) : -1;
        if (n == 0 || (n < 0 && errno != EINTR))
            return true;
        size_t room = bytes - 1 - used, take = n < 0 ? 0 : (size_t)n < room ? (size_t)n : room;
        memcpy(words + used, text, take);
        used += take;
    }
}

int gpsh_probe_run(struct gpsh_probe *probe, int (*run)(const void *arg), const void *arg,
                   int limit_ms)
{
    int ends[2];
    uint64_t end_ns = limit_ms ? gpsh_clock_in(limit_ms) : UINT64_MAX;
    *probe = (struct gpsh_probe){.status = 0};
    if (pipe2(ends, O_CLOEXEC))
        return errno;
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        _exit(run(arg));
    }
    int error = child < 0 ? errno : 0;
    close(ends[1]);
    if (!error) {
        probe->late = !words_read(ends[0], probe->words, sizeof probe->words, end_ns);
        if (probe->late)
            kill(child, SIGKILL);
        while (waitpid(child, &probe->status, 0) < 0 && errno == EINTR)
            continue;
    }
    close(ends[0]);
    return error;
}
