// SPDX-License-Identifier: BSD-3-Clause
// The keeper: a small process that starts the PEs, is told of their ends by the kernel, and
// outlives the launcher by a moment, however that ends, SIGKILL included. It adopts every orphan of
// the job (PR_SET_CHILD_SUBREAPER), also from sessions and groups of their own, and so it can end
// all of them. The launcher has no children of the job: whatever it inherited with exec is left
// alone.
//
// The launcher writes requests to a socket, the keeper writes reports. Once the socket is closed,
// the keeper kills what is left, removes the session directory, and ends.
#ifndef GPSH_KEEPER_H
#define GPSH_KEEPER_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "child_plan.h"
#include "children.h"

struct gpsh_keeper {
    int socket;
    bool lost;              // the keeper has ended without being asked to
    bool swept;             // the answer to gpsh_keeper_sweep has come
    struct gpsh_child *pes; // [n_pes]: reports go here
    int n_pes;
    const char *dir;
};

// Must be called before any thread is started. `dir` is removed with everything in it, in the end.
// `pes` and `dir` must outlive the keeper. 0 or an errno.
int gpsh_keeper_start(struct gpsh_keeper *k, const char *dir, struct gpsh_child *pes, int n_pes);

// Starts PE `pe` and waits until it is the program. 0, or the errno of what failed: of exec, too;
// EPIPE if the keeper has ended.
int gpsh_keeper_launch(struct gpsh_keeper *k, int pe, const struct gpsh_child_plan *plan);

// Takes the reports that are there: `ended` and `stopped` of the PEs are set, or `lost`. Does not
// block.
void gpsh_keeper_read(struct gpsh_keeper *k);

// Kills all PEs and everything they started, and waits until that is done. After it the PEs'
// process ids may belong to others.
void gpsh_keeper_sweep(struct gpsh_keeper *k);

// Sweeps, lets the keeper remove the directory and end, and waits for that.
void gpsh_keeper_finish(struct gpsh_keeper *k);

#endif
