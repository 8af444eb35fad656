// SPDX-License-Identifier: BSD-3-Clause
// The keeper: a small process that starts the PEs, is told of their ends by the kernel, and
// outlives the launcher by a moment, however that ends, SIGKILL included. It adopts every orphan of
// the job (PR_SET_CHILD_SUBREAPER), also from sessions and groups of their own, and so it can end
// all of them. The launcher has no children of the job: whatever it inherited with exec is left
// alone.
//
// It is forked when the launcher knows and has opened all that PEs need, starts them one after the
// other, and writes reports to a socket. Once that is closed, it kills what is left, and ends.
#ifndef GPSH_KEEPER_H
#define GPSH_KEEPER_H

#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "children.h"

enum { GPSH_CHILD_SETTINGS = 4, GPSH_KEEPER_PATIENCE_S = 5 };

// How a PE is to be started.
struct gpsh_child_plan {
    const char *path;      // as found in PATH
    const char *directory; // to start in; NULL: the launcher's
    char **argv;
    struct {
        const char *name;
        int value;
    } settings[GPSH_CHILD_SETTINGS]; // variables on top of the launcher's environment
    int stdio[3];
    int segment, line;       // handed down (core/launcher.h)
    bool says_by_line;       // also the lines of the library's log
    bool terminal;           // stdio is one: it becomes the controlling terminal of a new session
    const cpu_set_t *cpus;   // NULL: not pinned
    const sigset_t *signals; // mask to start with
};

struct gpsh_keeper {
    int socket;
    pid_t pid;              // 0: not known yet
    bool lost;              // the keeper has ended without being asked to
    double asked_s;         // when gpsh_keeper_wake was called first since its last report; 0: not
    struct gpsh_child *pes; // [n_pes]: reports go here
    int n_pes;
};

// Must be called before any thread is started. The keeper calls `forget` first, to close what the
// launcher keeps for itself; it has the plans' descriptors, which the caller may close. `pes` must
// outlive the keeper. 0 or an errno.
int gpsh_keeper_start(struct gpsh_keeper *k, const struct gpsh_child_plan *plans,
                      struct gpsh_child *pes, int n_pes, void (*forget)(void *arg), void *arg);

// Waits until the next PE is the program, and says which one it is. 0, or the errno of what failed:
// of exec, too; EPIPE if the keeper has ended. No further one is started after a failure. Once
// a signal that ends jobs is pending, a keeper that makes no progress is woken as below.
int gpsh_keeper_started(struct gpsh_keeper *k, int *pe);

// Takes the reports that are there: `ended` and `stopped` of the PEs are set, or `lost`. Does not
// block.
void gpsh_keeper_read(struct gpsh_keeper *k);

// The PEs were killed, and their ends are to be reported. Continues a keeper that somebody has
// stopped; kills it if it has not answered for GPSH_KEEPER_PATIENCE_S, and then it is lost. To be
// called again and again.
void gpsh_keeper_wake(struct gpsh_keeper *k);

// Lets the keeper kill all PEs and everything they started, and end, and waits for that; one that
// is stopped is continued, and one that does not end is killed. After it the PEs' process ids may
// belong to others.
void gpsh_keeper_finish(struct gpsh_keeper *k);

#endif
