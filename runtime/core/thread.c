// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // pthread_setname_np
#include "core/thread.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>

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

int gpsh_thread_start(pthread_t *thread, const char *name, void *(*run)(void *), void *arg)
{
    struct thread_start *start = malloc(sizeof *start);
    if (!start)
        return ENOMEM;
    *start = (struct thread_start){.name = name, .run = run, .arg = arg};
    sigset_t before;
    signals_block(&before);
    int error = pthread_create(thread, NULL, thread_main, start);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error)
        free(start);
    return error;
}
