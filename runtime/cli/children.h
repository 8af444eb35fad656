// SPDX-License-Identifier: BSD-3-Clause
// The processes of a job: starting them, signalling them with their own children, noticing how they
// end.
#ifndef GPSH_CHILDREN_H
#define GPSH_CHILDREN_H

#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct gpsh_child {
    // also its process group; the zombie is kept until the job ends, so that the number stays ours
    pid_t pid;
    bool running;
    bool connected; // to the PMIx server, and not yet finalized
    int how;        // CLD_EXITED, CLD_KILLED, CLD_DUMPED
    int status;     // exit code or signal
};

struct gpsh_child_plan {
    const char *path; // as found in PATH
    char **argv;
    char **environment;
    int stdio[3];            // -1: inherit
    int announce;            // where the child writes its pid_t before it becomes the program
    const cpu_set_t *cpus;   // NULL: not pinned
    const sigset_t *signals; // mask to start with
};

// Path of the program as execvp would choose it, malloc'ed. NULL: *exit_status is 127 (missing) or
// 126 (not executable), after a message.
char *gpsh_program_find(const char *program, int *exit_status);

// 0, or the errno of what failed (of exec, too: then the child is already gone).
int gpsh_child_start(struct gpsh_child *c, const struct gpsh_child_plan *plan);

// Looks whether a child that counts as running has ended. True if so: `how` and `status` are set.
bool gpsh_child_check(struct gpsh_child *c);
bool gpsh_child_failed(const struct gpsh_child *c);

// Sends to the process group.
void gpsh_child_signal(const struct gpsh_child *c, int signal);

// "was killed by signal 9 (Killed)"
void gpsh_child_describe(const struct gpsh_child *c, char *text, size_t bytes);
int gpsh_child_exit_status(const struct gpsh_child *c);

// Reaps adopted orphans that have ended.
void gpsh_children_bury(const struct gpsh_child *pes, int n_pes);
// Kills and reaps everything this process still is the parent of, adopted orphans too.
void gpsh_children_sweep(void);

#endif
