// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // ftruncate, sigtimedwait
#include "core/memory_file.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <time.h>
#include <unistd.h>

int gpsh_memory_file_grow(int fd, uint64_t bytes)
{
    sigset_t limit, old, pending;
    sigemptyset(&limit);
    sigaddset(&limit, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &limit, &old);
    bool theirs = sigpending(&pending) == 0 && sigismember(&pending, SIGXFSZ) == 1;
    int error = ftruncate(fd, (off_t)bytes) == 0 ? 0 : errno;
    // The kernel sends it to this thread; one that the program is waiting for stays.
    const struct timespec now = {0};
    if (error == EFBIG && !theirs) {
        while (sigtimedwait(&limit, NULL, &now) < 0 && errno == EINTR)
            continue;
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return error;
}
