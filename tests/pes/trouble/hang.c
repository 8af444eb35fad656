// SPDX-License-Identifier: BSD-3-Clause
// Hangs on purpose, for what is said about it: hang CASE. The last PE does not do what the others
// wait for, until somebody ends the job: with `init` not even init, with `lock` it keeps a lock,
// with `finalize` it leaves; with `alone` all but the first do not. With `count` it counts some
// operations before that, and on SIGUSR2 it leaves the job and goes on.
#define _DEFAULT_SOURCE // pause
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
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
    if (!strcmp(how, "barrier") || !strcmp(how, "alone") || !strcmp(how, "leave"))
        return gpushmem_barrier_all();
    while (!strcmp(how, "finalize") && gpushmem_barrier_all())
        pause(); // a PE that ended would end the job before the last one has spoken
    if (!strcmp(how, "team"))
        return gpushmem_team_sync(GPUSHMEM_TEAM_WORLD);
    if (!strcmp(how, "lock"))
        return gpushmem_set_lock(word);
    gpushmem_long_wait_until(word, GPUSHMEM_CMP_GE, 7);
    return 1;
}

// Operations of the default context towards this PE, by a transport that counts them.
static struct gpushmem_counters counted(void)
{
    struct gpushmem_counters row;
    uint64_t position = 0;
    while (gpushmem_counters_next(&position, &row) == 1)
        if (row.kind == GPUSHMEM_COUNTERS_FLOW && row.number == 0 && row.pe == gpushmem_my_pe())
            return row;
    return (struct gpushmem_counters){0};
}

// 0 if five puts and two atomics are counted as what they are.
static int count(long *word)
{
    enum { PUTS = 5, LONGS = 8, AMOS = 2 };
    const long source[LONGS] = {0};
    struct gpushmem_counters before = counted();
    for (int i = 0; i < PUTS; i++)
        gpushmem_long_put_nbi(word, source, LONGS, gpushmem_my_pe());
    for (int i = 0; i < AMOS; i++)
        gpushmem_long_atomic_inc(word, gpushmem_my_pe());
    gpushmem_quiet();
    struct gpushmem_counters after = counted();
    uint64_t position = 0, bytes = (PUTS * LONGS + AMOS) * sizeof(long);
    bool right = after.operations - before.operations == PUTS + AMOS &&
                 after.completed == after.operations && after.bytes - before.bytes == bytes &&
                 !strcmp(after.owner, "default context") && !strcmp(after.transport, "loop") &&
                 gpushmem_counters_next(NULL, &after) == GPUSHMEM_ERR_INVALID &&
                 gpushmem_counters_next(&position, NULL) == GPUSHMEM_ERR_INVALID &&
                 gpushmem_counters_next_sized(&position, &after, 8) == GPUSHMEM_ERR_INVALID;
    printf("counted %s: %lu operations, %lu bytes\n", right ? "right" : "wrong",
           (unsigned long)after.operations, (unsigned long)after.bytes);
    return fflush(stdout) || !right;
}

static int finalize_when_told(const sigset_t *order)
{
    int number;
    sigwait(order, &number);
    if (gpushmem_finalize())
        return failed("finalize");
    for (;;)
        pause();
}

// Whether this is the last PE, by the launcher's word.
static bool is_last(void)
{
    const char *rank = getenv("GPUSHMEM_RUN_PE"), *size = getenv("GPUSHMEM_RUN_SIZE");
    return rank && size && atoi(rank) == atoi(size) - 1;
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "barrier";
    while (!strcmp(how, "init") && is_last())
        pause();
    sigset_t order;
    sigemptyset(&order);
    sigaddset(&order, SIGUSR2);
    sigprocmask(SIG_BLOCK, &order, NULL); // before there are threads
    if (gpushmem_init())
        return failed("init");
    long *word = gpushmem_calloc(8, sizeof *word);
    bool late =
        gpushmem_my_pe() == gpushmem_n_pes() - 1 || (gpushmem_my_pe() && !strcmp(how, "alone"));
    if (!word || (late && !strcmp(how, "lock") && gpushmem_set_lock(word)) ||
        gpushmem_barrier_all())
        return failed("begin");
    if (!strcmp(how, "count"))
        return count(word) || finalize_when_told(&order);
    if (late && !strcmp(how, "leave"))
        return 0;
    if (late && !strcmp(how, "finalize"))
        return !gpushmem_finalize();
    while (late)
        pause();
    return wait_in_vain(how, word) ? failed(how) : 0;
}
