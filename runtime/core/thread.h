// SPDX-License-Identifier: BSD-3-Clause
// Threads of the library inside a program that knows nothing of them.
#ifndef GPSH_THREAD_H
#define GPSH_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct gpsh_thread {
    pthread_t id;
    bool runs;
};

// Starts a joinable thread called `name` (at most 15 characters, as ps and debuggers show it) that
// takes none of the program's signals: those go to the program's own threads, which may block them
// and wait for them. Signals that the thread itself causes (SIGSEGV and the like) still reach it.
// 0, or GPUSHMEM_ERR_SYSTEM or _NO_MEMORY. Threads that it creates inherit both the name and the
// signal mask. The text of `name` stays as long as the process.
int gpsh_thread_start(struct gpsh_thread *thread, const char *name, void *(*run)(void *),
                      void *arg);
void gpsh_thread_join(struct gpsh_thread *thread); // nothing, if it does not run

// The calling thread's `name` if it was started so; NULL: it is one of the program's.
const char *gpsh_thread_name(void);

// Calls `run` with signals blocked likewise: for calls into other libraries that may start threads,
// since those inherit the mask. Keep it short: the caller takes no signals either meanwhile.
int gpsh_without_signals(int (*run)(void *), void *arg);

// A condition that is waited for until a time of gpsh_clock_ns: ETIMEDOUT when that has come.
void gpsh_cond_init(pthread_cond_t *cond);
int gpsh_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *mutex, uint64_t until_ns);

#endif
