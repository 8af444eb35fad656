// SPDX-License-Identifier: BSD-3-Clause
#ifndef GPSH_CHILD_PLAN_H
#define GPSH_CHILD_PLAN_H

#include <sched.h>
#include <signal.h>
#include <stdbool.h>

// How a PE is to be started.
struct gpsh_child_plan {
    const char *path;      // as found in PATH
    const char *directory; // to start in; NULL: the launcher's
    char **argv;
    char **environment;
    int stdio[3];
    bool terminal;           // stdio is one: it becomes the controlling terminal of a new session
    const cpu_set_t *cpus;   // NULL: not pinned
    const sigset_t *signals; // mask to start with
};

#endif
