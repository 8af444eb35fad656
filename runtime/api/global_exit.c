// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // fflush_unlocked
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "gpushmem/gpushmem.h"
#include "job/job.h"

// The launcher ends this PE too, perhaps before it has written what the program printed last. So
// that is written first, unless it might block: another thread holds the stream, or a pipe is full.
static void exit_write_stdout(void)
{
    struct pollfd out = {.fd = fileno(stdout), .events = POLLOUT};
    if (ftrylockfile(stdout))
        return;
    if (poll(&out, 1, 0) == 1 && out.revents == POLLOUT)
        fflush_unlocked(stdout);
    funlockfile(stdout);
}

void gpushmem_global_exit(int status)
{
    char why[64];
    exit_write_stdout();
    snprintf(why, sizeof why, "gpushmem_global_exit(%d)", status);
    if (gpsh_job()->n_pes)
        gpsh_bootstrap_abort(gpsh_job()->boot, status, why);
    fflush(NULL);
    _exit(status);
}
