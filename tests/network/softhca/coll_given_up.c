// SPDX-License-Identifier: BSD-3-Clause
// Collective calls give a wait up while data is on its way into memory of the library's: it stays
// until that has come. The last PE's network holds back what is large; each call is of a team of
// its own. Run with 3 PEs or more, and with GPUSHMEM_WAIT_TIMEOUT_MS.
//   coll_given_up reduce|reducescatter|scan...
#define _GNU_SOURCE
#include <dlfcn.h>
#include <gpushmem/gpushmem.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Each PE has a share of several pieces.
enum { NELEMS = 60000, HELD_BYTES = 16384, SCRATCH_BYTES = 1 << 20, SKIPPED = 77 };

static int me, n;
static bool ready; // a wait that runs out before says nothing but that the machine stood still
static _Atomic uint64_t *hold;
static long *arrived;

#define CHECK(x) ((x) ? (void)0 : fail(__LINE__, #x))

static void fail(int line, const char *what)
{
    fprintf(stderr, "PE %d: line %d: %s: %s\n", gpushmem_my_pe(), line, what,
            gpushmem_last_error());
    exit(!ready && strstr(gpushmem_last_error(), "timed out") ? SKIPPED : 1);
}

// A barrier that no wait can give up.
static void meet(void)
{
    static long times;
    long seen = 0;
    times++;
    while (gpushmem_long_atomic_inc(arrived, 0) != 0)
        continue;
    while (seen < times * n) {
        seen = gpushmem_long_atomic_fetch(arrived, 0);
        sched_yield();
    }
}

static int call(const char *what, gpushmem_team_t team, double *dest, const double *source)
{
    if (strcmp(what, "reduce") == 0)
        return gpushmem_double_sum_reduce(team, dest, source, NELEMS);
    if (strcmp(what, "reducescatter") == 0)
        return gpushmem_double_sum_reducescatter(team, dest, source, NELEMS / (size_t)n);
    return gpushmem_double_sum_inscan(team, dest, source, NELEMS);
}

static void give_up(const char *what, gpushmem_team_t team, double *dest, const double *source)
{
    meet();
    *hold = me == n - 1 ? HELD_BYTES : 0;
    CHECK(call(what, team, dest, source) == GPUSHMEM_ERR_TIMEOUT);
    // What the library gave back may be anybody's now.
    char *scratch = malloc(SCRATCH_BYTES);
    CHECK(scratch);
    memset(scratch, 0x5a, SCRATCH_BYTES);
    *hold = 0;
    while (gpushmem_quiet() == GPUSHMEM_ERR_TIMEOUT)
        continue;
    for (size_t at = 0; at < SCRATCH_BYTES; at++)
        CHECK(scratch[at] == 0x5a);
    free(scratch);
}

int main(int argc, char **argv)
{
    enum { MOST_CALLS = 3 };
    gpushmem_team_t teams[MOST_CALLS];
    CHECK(gpushmem_init() == 0);
    me = gpushmem_my_pe();
    n = gpushmem_n_pes();
    hold = (_Atomic uint64_t *)dlsym(RTLD_DEFAULT, "gpushmem_softhca_hold_bytes");
    arrived = gpushmem_calloc(1, sizeof *arrived);
    double *dest = gpushmem_calloc(NELEMS, sizeof *dest);
    double *source = gpushmem_calloc(NELEMS, sizeof *source);
    CHECK(arrived && dest && source);
    for (int i = 0; i < argc - 1; i++)
        CHECK(gpushmem_team_split_strided(GPUSHMEM_TEAM_WORLD, 0, 1, n, NULL, 0, &teams[i]) == 0);
    meet();
    ready = true;
    CHECK(hold && n > 2 && argc - 1 <= MOST_CALLS);
    for (int i = 0; i < argc - 1; i++)
        give_up(argv[i + 1], teams[i], dest, source);
    meet();
    gpushmem_finalize(); // its waits may run out, too
    return 0;
}
