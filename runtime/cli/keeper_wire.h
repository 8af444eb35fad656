// SPDX-License-Identifier: BSD-3-Clause
// What launcher and keeper say to each other over a SOCK_SEQPACKET socket: one message, one struct.
#ifndef GPSH_KEEPER_WIRE_H
#define GPSH_KEEPER_WIRE_H

#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "child_plan.h"

enum gpsh_keeper_word {
    GPSH_KEEPER_START, // request: start a PE; carries its texts and its three standard descriptors
    GPSH_KEEPER_SWEEP, // request: kill everything
    GPSH_KEEPER_STARTED, // report: answer to START, `pid`, or `status` is an errno
    GPSH_KEEPER_ENDED,   // report: of PE `pe`; `how` and `status` as siginfo_t has them
    GPSH_KEEPER_STOPPED, // report: of PE `pe` by signal `status`
    GPSH_KEEPER_SWEPT,   // report: answer to SWEEP
};

enum { GPSH_KEEPER_FDS = 4 }; // the texts, and standard input, output and error

struct gpsh_keeper_request {
    enum gpsh_keeper_word word;
    int pe;
    int n_args,
        n_variables; // the texts: path, directory or "", arguments, environment; NUL ends each
    bool pinned;
    bool terminal;
    cpu_set_t cpus;
    sigset_t signals;
};

struct gpsh_keeper_report {
    enum gpsh_keeper_word word;
    int pe;
    pid_t pid;
    int how;
    int status;
};

// A memory file with the texts of a plan, whose numbers go to the request. -1 with errno.
int gpsh_keeper_texts_write(const struct gpsh_child_plan *plan, struct gpsh_keeper_request *r);
// The plan that a request describes. Its pointers lead into memory that is never released: the
// caller is about to become the program. False with errno.
bool gpsh_keeper_texts_read(const struct gpsh_keeper_request *r, int texts,
                            struct gpsh_child_plan *plan);

// Sends a request; fds may be NULL. False with errno.
bool gpsh_keeper_send(int socket, const struct gpsh_keeper_request *r,
                      const int fds[GPSH_KEEPER_FDS]);
// Receives a request; fds are -1 where there are none. False: the other end is closed.
bool gpsh_keeper_receive(int socket, struct gpsh_keeper_request *r, int fds[GPSH_KEEPER_FDS]);

// The keeper's life: never returns.
_Noreturn void gpsh_keeper_live(int socket, const char *dir);
// Removes a directory with everything in it.
void gpsh_keeper_remove(const char *dir);

#endif
