// SPDX-License-Identifier: BSD-3-Clause
// A PE is killed among collective operations: those of its teams end with PE_FAILED on all members,
// and name it; a team without it goes on. Run under GPUSHMEM_ON_PE_FAILURE=notify.
//   team_lost SEED     the victim dies before, in or between operations, as drawn from SEED
// Prints one line for each PE that lives on.
#define _GNU_SOURCE // usleep
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "../pes/check.h"

enum { NELEMS = 3000, PATIENCE = 2000000 };
static int me, n_pes, victim;
static long *dest, *source;

static void *kill_later(void *us)
{
    usleep((useconds_t)(uintptr_t)us);
    kill(getpid(), SIGKILL);
    return NULL;
}

static bool names_victim(void)
{
    char name[16];
    snprintf(name, sizeof name, "PE %d", victim);
    return gpushmem_last_error_code() == GPUSHMEM_ERR_PE_FAILED &&
           strstr(gpushmem_last_error(), name) != NULL;
}

// Small and large ones in turn.
static int operation(gpushmem_team_t team, unsigned i)
{
    size_t nelems = i % 2 ? NELEMS : 5;
    switch (i / 2 % 5) {
    case 0: return gpushmem_long_sum_reduce(team, dest, source, nelems);
    case 1: return gpushmem_long_broadcast(team, dest, source, nelems, 0);
    case 2: return gpushmem_long_alltoall(team, dest, source, nelems);
    case 3: return gpushmem_long_fcollect(team, dest, source, nelems);
    default: return gpushmem_team_sync(team);
    }
}

int main(int argc, char **argv)
{
    unsigned seed = argc > 1 ? (unsigned)atoi(argv[1]) : 1;
    CHECK_OK(gpushmem_init());
    me = gpushmem_my_pe();
    n_pes = gpushmem_n_pes();
    CHECK(n_pes >= 3);
    victim = (int)(seed * 7 % (unsigned)n_pes);
    dest = gpushmem_calloc((size_t)n_pes * NELEMS, sizeof *dest);
    source = gpushmem_calloc((size_t)n_pes * NELEMS, sizeof *source);
    CHECK(dest && source);
    int ranks[64], n = 0;
    for (int pe = 0; pe < n_pes; ++pe)
        if (pe != victim)
            ranks[n++] = pe;
    gpushmem_team_t all, rest, gone;
    CHECK_OK(gpushmem_team_split_strided(GPUSHMEM_TEAM_WORLD, 0, 1, n_pes, NULL, 0, &all));
    CHECK_OK(gpushmem_team_split_list(GPUSHMEM_TEAM_WORLD, ranks, n, NULL, 0, &rest));
    if (me == victim) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, kill_later,
                             (void *)(uintptr_t)(seed * 997u % 20000u)) == 0);
        pthread_detach(thread);
    }
    int status = 0;
    for (unsigned i = 0; status == 0 && i < PATIENCE; ++i)
        status = operation(all, i);
    CHECK_THAT(status == GPUSHMEM_ERR_PE_FAILED && names_victim(), "%d: %s", status,
               gpushmem_last_error());
    // Nothing waits any more.
    for (unsigned i = 0; i < 4; ++i)
        CHECK(operation(all, i) == GPUSHMEM_ERR_PE_FAILED && names_victim());
    CHECK(gpushmem_team_split_strided(all, 0, 1, 1, NULL, 0, &gone) == GPUSHMEM_ERR_PE_FAILED);
    for (unsigned i = 0; i < 40; ++i)
        CHECK_OK(operation(rest, i));
    int failed = -1;
    CHECK(gpushmem_failed_pes(&failed, 1) == 1 && failed == victim);
    CHECK_OK(gpushmem_team_destroy(all));
    CHECK_OK(gpushmem_team_destroy(rest));
    printf("PE %d survives\n", me);
    status = gpushmem_finalize();
    CHECK_THAT(status == 0 || names_victim(), "%d: %s", status, gpushmem_last_error());
    return 0;
}
