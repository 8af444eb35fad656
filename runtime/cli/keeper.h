// SPDX-License-Identifier: BSD-3-Clause
// A small process that outlives the launcher by a moment, however that ends, SIGKILL included: it kills the process groups
// it was told of and removes the session directory.
#ifndef GPSH_KEEPER_H
#define GPSH_KEEPER_H

#include <sys/types.h>

struct gpsh_keeper {
    pid_t pid;
    int pipe; // its end of file is what the keeper waits for
};

// Must be called before any thread is started. `dir` is removed with everything in it. 0 or an errno.
int gpsh_keeper_start(struct gpsh_keeper *k, const char *dir);
// To be killed if the launcher dies without having called gpsh_keeper_finish.
void gpsh_keeper_watch(struct gpsh_keeper *k, pid_t process_group);
// The job is over: the keeper removes the directory, kills nobody and ends. Waits for that.
void gpsh_keeper_finish(struct gpsh_keeper *k);

#endif
