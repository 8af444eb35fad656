// SPDX-License-Identifier: BSD-3-Clause
// Threads of the library inside a program that knows nothing of them.
#ifndef GPSH_THREAD_H
#define GPSH_THREAD_H

#include <pthread.h>

// Starts a joinable thread called `name` (at most 15 characters, as ps and debuggers show it) that
// takes none of the program's signals: those go to the program's own threads, which may block them
// and wait for them. Signals that the thread itself causes (SIGSEGV and the like) still reach it.
// Returns 0 or an errno value. Threads that it creates inherit both the name and the signal mask.
// The text of `name` stays as long as the process.
int gpsh_thread_start(pthread_t *thread, const char *name, void *(*run)(void *), void *arg);

// The calling thread's `name` if it was started so; NULL: it is one of the program's.
const char *gpsh_thread_name(void);

// Calls `run` with signals blocked likewise: for calls into other libraries that may start threads,
// since those inherit the mask. Keep it short: the caller takes no signals either meanwhile.
int gpsh_without_signals(int (*run)(void *), void *arg);

#endif
