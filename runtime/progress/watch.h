// SPDX-License-Identifier: BSD-3-Clause
// Watches the processes of this node's PEs, where the launcher does not report their deaths
// dependably. A thread sleeps until one of them ends.
#ifndef GPSH_WATCH_H
#define GPSH_WATCH_H

#include <stdbool.h>
#include <sys/types.h>

// `ended` is called from the watching thread, once for each of the n processes that ends, in order
// or not. A pid of 0, or one that cannot be watched, is left out.
typedef void gpsh_watch_fn(int pe);
int gpsh_watch_start(const int *pes, const pid_t *pids, int n, gpsh_watch_fn *ended);
// When it returns, `ended` is not running and will not be called. Without a start it does nothing.
void gpsh_watch_stop(void);

// Whether that process is stopped, by a signal or a debugger. False where that is not known, as of
// pid 0. Any thread.
bool gpsh_watch_is_stopped(pid_t pid);
// Whether that process is there, stopped or not, and is not being ended. Any thread.
bool gpsh_watch_is_living(pid_t pid);

#endif
