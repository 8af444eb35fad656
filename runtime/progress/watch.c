// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // syscall
#include "progress/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/error.h"
#include "core/thread.h"

static struct {
    struct gpsh_thread thread;
    gpsh_watch_fn *ended;
    int n;
    int *pes;             // [n]
    struct pollfd *polls; // [n + 1] a descriptor of each process, and the one that says stop
} watch;

static void *watch_run(void *unused)
{
    (void)unused;
    while (!watch.polls[watch.n].revents) {
        if (poll(watch.polls, (nfds_t)watch.n + 1, -1) < 0)
            continue;
        for (int i = 0; i < watch.n; i++) {
            if (!watch.polls[i].revents)
                continue;
            close(watch.polls[i].fd);
            watch.polls[i] = (struct pollfd){.fd = -1};
            watch.ended(watch.pes[i]);
        }
    }
    return NULL;
}

static void watch_release(void)
{
    for (int i = 0; watch.polls && i <= watch.n; i++)
        if (watch.polls[i].fd >= 0)
            close(watch.polls[i].fd);
    free(watch.polls);
    free(watch.pes);
    watch.polls = NULL;
    watch.pes = NULL;
    watch.n = 0;
}

static int watch_open(const int *pes, const pid_t *pids, int n)
{
    watch.pes = calloc((size_t)n, sizeof *watch.pes);
    watch.polls = calloc((size_t)n + 1, sizeof *watch.polls);
    if (!watch.pes || !watch.polls)
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory to watch %d processes", n);
    for (int i = 0; i < n; i++) {
        int fd = pids[i] > 0 ? (int)syscall(SYS_pidfd_open, pids[i], 0) : -1;
        if (fd < 0)
            continue;
        watch.pes[watch.n] = pes[i];
        watch.polls[watch.n++] = (struct pollfd){.fd = fd, .events = POLLIN};
    }
    watch.polls[watch.n] = (struct pollfd){.fd = eventfd(0, EFD_CLOEXEC), .events = POLLIN};
    return watch.polls[watch.n].fd >= 0
               ? 0
               : gpsh_fail(GPUSHMEM_ERR_SYSTEM, "cannot watch the node's processes (%s)",
                           strerror(errno));
}

int gpsh_watch_start(const int *pes, const pid_t *pids, int n, gpsh_watch_fn *ended)
{
    int status = watch_open(pes, pids, n);
    if (status || !watch.n) {
        watch_release();
        return status;
    }
    watch.ended = ended;
    status = gpsh_thread_start(&watch.thread, "gpushmem-watch", watch_run, NULL);
    if (status)
        watch_release();
    return status;
}

void gpsh_watch_stop(void)
{
    const uint64_t one = 1;
    if (!watch.thread.runs)
        return;
    while (write(watch.polls[watch.n].fd, &one, sizeof one) < 0 && errno == EINTR)
        continue;
    gpsh_thread_join(&watch.thread);
    watch_release();
}

// "PID (NAME) STATE ...": the name may have any characters. False: there is no such process.
static bool read_state(pid_t pid, char *state, unsigned *flags)
{
    char path[32], line[256];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    int file = pid > 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    ssize_t n = file >= 0 ? read(file, line, sizeof line - 1) : -1;
    if (file >= 0)
        close(file);
    line[n > 0 ? n : 0] = '\0';
    const char *name_end = strrchr(line, ')');
    return name_end &&
           sscanf(name_end, ") %c %*d %*d %*d %*d %*d %u", state, flags) == 2; // proc(5)
}

bool gpsh_watch_is_stopped(pid_t pid)
{
    unsigned flags;
    char state;
    return read_state(pid, &state, &flags) && (state == 'T' || state == 't');
}

// One that is killed closes its NIC before it is a zombie.
bool gpsh_watch_is_living(pid_t pid)
{
    enum { EXITS = 4 }; // PF_EXITING of the kernel
    unsigned flags;
    char state;
    return read_state(pid, &state, &flags) && !strchr("ZXx", state) && !(flags & EXITS);
}
