// SPDX-License-Identifier: BSD-3-Clause
// Hangs on purpose, for what is said about it: hang CASE. The last PE does not do what the others
// wait for, until somebody ends the job.
#define _DEFAULT_SOURCE // pause
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "gpushmem/gpushmem.h"

static int failed(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, gpushmem_last_error());
    return 1;
}

// The others are on the ways that are under test.
static int wait_in_vain(const char *how, long *word)
{
    if (!strcmp(how, "barrier") || !strcmp(how, "leave"))
        return gpushmem_barrier_all();
    if (!strcmp(how, "team"))
        return gpushmem_team_sync(GPUSHMEM_TEAM_WORLD);
    gpushmem_long_wait_until(word, GPUSHMEM_CMP_GE, 7);
    return 1;
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "barrier";
    if (gpushmem_init())
        return failed("init");
    long *word = gpushmem_calloc(1, sizeof *word);
    if (!word || gpushmem_barrier_all())
        return failed("begin");
    bool late = gpushmem_my_pe() == gpushmem_n_pes() - 1;
    if (late && !strcmp(how, "leave"))
        return 0;
    while (late)
        pause();
    return wait_in_vain(how, word) ? failed(how) : 0;
}
