// SPDX-License-Identifier: BSD-3-Clause
// Two PEs meet in a team; then one of them waits for the other outside of the library, as a program
// that also uses sockets or streams does. The other has to come out of the meeting by itself, also
// where queue pairs are few.   outside [ROUNDS]
#define _GNU_SOURCE // usleep
#include <time.h>
#include <unistd.h>

#include "check.h"

enum { MOST_SECONDS = 30 };

static int me, n;
static long *flags; // by the PE that writes there

static void await_outside(int pe, long value)
{
    const time_t end = time(NULL) + MOST_SECONDS;
    while (__atomic_load_n(&flags[pe], __ATOMIC_ACQUIRE) < value) {
        CHECK_THAT(time(NULL) < end, "PE %d is still in gpushmem_team_sync", pe);
        usleep(100);
    }
}

static void meet(const int pes[2], long round)
{
    gpushmem_team_t team;
    CHECK_OK(gpushmem_team_split_list(GPUSHMEM_TEAM_WORLD, pes, 2, NULL, 0, &team));
    if (team == GPUSHMEM_TEAM_INVALID)
        return;
    CHECK_OK(gpushmem_team_sync(team));
    if (me == pes[0]) {
        await_outside(pes[1], round);
    } else {
        CHECK_OK(gpushmem_long_p(&flags[me], round, pes[0]));
        CHECK_OK(gpushmem_quiet());
    }
    CHECK_OK(gpushmem_team_destroy(team));
}

int main(int argc, char **argv)
{
    CHECK_OK(gpushmem_init());
    me = gpushmem_my_pe();
    n = gpushmem_n_pes();
    flags = gpushmem_calloc((size_t)n, sizeof *flags);
    CHECK(flags != NULL);
    for (long round = 1; round <= check_rounds(argc, argv, 10); round++)
        for (int a = 0; a < n; a++)
            for (int b = a + 1; b < n; b++)
                meet((int[2]){a, b}, round * n + a);
    CHECK_OK(gpushmem_free(flags));
    CHECK_OK(gpushmem_finalize());
    return 0;
}
