// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // clock_gettime
// turns [SECONDS [TIMES]]: each PE adds to a word of each PE in turn, so many times, one blocking
// operation after the other. With fewer queue pairs than that takes connections are made and closed
// again all the time: PE 0 prints how many operations there were.
#include <time.h>

#include "../pes/check.h"

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

int main(int argc, char **argv)
{
    double seconds = argc > 1 ? atof(argv[1]) : 2;
    uint64_t times = argc > 2 ? (uint64_t)atoi(argv[2]) : 1;
    CHECK_OK(gpushmem_init());
    int n = gpushmem_n_pes(), me = gpushmem_my_pe();
    uint64_t *words = gpushmem_calloc((size_t)n + 2, sizeof *words), turns = 0, least = 0;
    CHECK(words);
    CHECK_OK(gpushmem_barrier_all());
    for (double end = now_s() + seconds; now_s() < end; turns++)
        for (int pe = 0; pe < n; pe++)
            for (uint64_t i = turns * times; i < (turns + 1) * times; i++)
                CHECK(gpushmem_uint64_atomic_fetch_add(&words[me], 1, (me + pe) % n) == i);
    words[n] = turns * times;
    CHECK_OK(gpushmem_uint64_sum_reduce(GPUSHMEM_TEAM_WORLD, &words[n + 1], &words[n], 1));
    for (int pe = 0; pe < n; pe++)
        least += words[pe];
    CHECK_THAT(least == words[n + 1], "%" PRIu64 " arrived, of %" PRIu64, least, words[n + 1]);
    if (!me)
        printf("%" PRIu64 " operations of a PE in %.1f s\n", turns * times * (uint64_t)n, seconds);
    gpushmem_free(words);
    CHECK_OK(gpushmem_finalize());
    return 0;
}
