// SPDX-License-Identifier: BSD-3-Clause
// A small process that outlives the launcher by a moment, however that ends, SIGKILL included: it
// kills the process groups it was told of and removes the session directory.
#ifndef GPSH_KEEPER_H
#define GPSH_KEEPER_H

#include <sys/types.h>

struct gpsh_keeper {
    // Its end of file is what the keeper waits for. Whoever writes the pid_t of a process group to
    // it lets that group be killed, if the launcher dies before gpsh_keeper_finish.
    int pipe;
    int done; // its end of file says that the keeper has ended
};

// Must be called before any thread is started. `dir` is removed with everything in it. 0 or an
// errno.
int gpsh_keeper_start(struct gpsh_keeper *k, const char *dir);
// The job is over: the keeper removes the directory, kills nobody and ends. Waits for that.
void gpsh_keeper_finish(struct gpsh_keeper *k);

#endif
