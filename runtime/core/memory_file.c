// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // ftruncate, sigtimedwait
#include "core/memory_file.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

static void signals_of_limit(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGXFSZ);
}

void gpsh_file_limit_begin(struct gpsh_file_limit *limit)
{
    sigset_t signals, pending;
    signals_of_limit(&signals);
    pthread_sigmask(SIG_BLOCK, &signals, &limit->old);
    limit->theirs = sigpending(&pending) == 0 && sigismember(&pending, SIGXFSZ) == 1;
}

// The kernel sends it to this thread; one that the program is waiting for stays.
void gpsh_file_limit_end(const struct gpsh_file_limit *limit, bool exceeded)
{
    const struct timespec now = {0};
    sigset_t signals;
    signals_of_limit(&signals);
    if (exceeded && !limit->theirs) {
        while (sigtimedwait(&signals, NULL, &now) < 0 && errno == EINTR)
            continue;
    }
    pthread_sigmask(SIG_SETMASK, &limit->old, NULL);
}

int gpsh_memory_file_grow(int fd, uint64_t bytes)
{
    struct gpsh_file_limit limit;
    gpsh_file_limit_begin(&limit);
    int error = ftruncate(fd, (off_t)bytes) == 0 ? 0 : errno;
    gpsh_file_limit_end(&limit, error == EFBIG);
    return error;
}
