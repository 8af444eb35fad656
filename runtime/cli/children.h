// SPDX-License-Identifier: BSD-3-Clause
// The PEs of a job as the launcher knows them: signalling them with their own children, and how
// they ended. The keeper starts them and reports (keeper.h).
#ifndef GPSH_CHILDREN_H
#define GPSH_CHILDREN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct gpsh_child {
    // also its process group; the keeper keeps the zombie until the job ends, so that the number
    // stays ours
    pid_t pid;
    bool running;
    bool ended;         // the keeper has reported so
    bool stop_expected; // the launcher has passed SIGTSTP on
    int stopped_by;     // the signal that stopped it, as the keeper has reported; 0: none, or said
    int how;            // CLD_EXITED, CLD_KILLED, CLD_DUMPED
    int status;         // exit code or signal
    int result;         // the exit code that is no failure, as the PE has said
};

// Drops the variables of this process whose names begin with one of the prefixes; NULL ends these.
void gpsh_environment_drop(const char *const *prefixes);

// Path of the program as execvp would choose it in `directory` (NULL: here), malloc'ed. NULL:
// *exit_status is 127 (missing) or 126 (not executable), after a message.
char *gpsh_program_find(const char *program, const char *directory, int *exit_status);

bool gpsh_child_failed(const struct gpsh_child *c);

// Sends to the process group, and to the PE itself if it has left that.
void gpsh_child_signal(const struct gpsh_child *c, int signal);

// "was killed by signal 9 (Killed)"
void gpsh_child_describe(const struct gpsh_child *c, char *text, size_t bytes);
int gpsh_child_exit_status(const struct gpsh_child *c);

// Sends the signal to those processes of the group, and to its leader, that catch or block it. All
// others would end: programs before their init and after their finalize, shells that run them.
void gpsh_children_ask(pid_t group, int signal);

#endif
