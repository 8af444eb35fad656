// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // pthread_setname_np, pthread_condattr_setclock
#include "core/thread.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/error.h"

struct thread_start {
    const char *name;
    void *(*run)(void *);
    void *arg;
};

static _Thread_local const char *own_name;

// The thread names itself before it does anything else, so that threads it creates get the name.
static void *thread_main(void *arg)
{
    struct thread_start start = *(struct thread_start *)arg;
    free(arg);
    pthread_setname_np(pthread_self(), start.name);
    own_name = start.name;
    return start.run(start.arg);
}

// The signals that a thread's own instructions cause stay: if those were blocked, the kernel would
// end the process without asking the program's handlers.
static void signals_block(sigset_t *before)
{
    static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
    sigset_t set;
    sigfillset(&set);
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        sigdelset(&set, own[i]);
    pthread_sigmask(SIG_BLOCK, &set, before);
}

int gpsh_without_signals(int (*run)(void *), void *arg)
{
    sigset_t before;
    signals_block(&before);
    int result = run(arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return result;
}

const char *gpsh_thread_name(void)
{
    return own_name;
}

int gpsh_thread_start(struct gpsh_thread *thread, const char *name, void *(*run)(void *), void *arg)
{
    struct thread_start *start = malloc(sizeof *start);
    if (!start)
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory for the thread %s", name);
    *start = (struct thread_start){.name = name, .run = run, .arg = arg};
    sigset_t before;
    signals_block(&before);
    int error = pthread_create(&thread->id, NULL, thread_main, start);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    thread->runs = !error;
    if (!error)
        return 0;
    free(start);
    return gpsh_fail(GPUSHMEM_ERR_SYSTEM, "cannot start the thread %s: %s%s", name, strerror(error),
                     error == EAGAIN ? "; raise the limit of processes and threads (ulimit -u)"
                                     : "");
}

void gpsh_thread_join(struct gpsh_thread *thread)
{
    if (thread->runs)
        pthread_join(thread->id, NULL);
    thread->runs = false;
}

void gpsh_cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

int gpsh_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *mutex, uint64_t until_ns)
{
    const struct timespec until = {.tv_sec = (time_t)(until_ns / 1000000000),
                                   .tv_nsec = (long)(until_ns % 1000000000)};
    return pthread_cond_timedwait(cond, mutex, &until);
}
