// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE
// What OpenSHMEM programs see of a library: the same source for any of them, compiled by its oshcc.
// Between the first and the last PE: puts, fetch-adds, a stream of puts; of all PEs: a sum and an
// all-to-all. Prints "row value unit", medians of what one call takes on PE 0.
//   openshmem [ROUNDS]
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LARGEST = 1 << 20, STREAM = 2000, MOST_ROUNDS = 100000, SYNC_WORDS = 4096 };

static double samples[MOST_ROUNDS];
static int me, n_pes, rounds = 400;
static char *there, *here;
static long *word;

static double now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return 1e6 * (double)now.tv_sec + 1e-3 * (double)now.tv_nsec;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(int n)
{
    qsort(samples, (size_t)n, sizeof *samples, by_size);
    return samples[n / 2];
}

// ---- One operation of PE 0 on the last PE, which waits in a barrier ----

static void put_8(int pe)
{
    shmem_putmem(there, here, 8, pe);
    shmem_quiet();
}

static void put_1m(int pe)
{
    shmem_putmem(there, here, LARGEST, pe);
    shmem_quiet();
}

static void get_8(int pe)
{
    shmem_getmem(here, there, 8, pe);
}

static void fetch_add(int pe)
{
    (void)shmem_long_atomic_fetch_add(word, 1, pe);
}

static void stream(int pe)
{
    for (int i = 0; i < STREAM; i++)
        shmem_putmem_nbi(there + 8 * i, here + 8 * i, 8, pe);
    shmem_quiet();
}

static double time_one(void (*one)(int pe), int n)
{
    shmem_barrier_all();
    for (int i = -n / 10 - 1; me == 0 && i < n; i++) {
        double begun_us = now_us();
        one(n_pes - 1);
        if (i >= 0)
            samples[i] = now_us() - begun_us;
    }
    shmem_barrier_all();
    return me ? 0 : median(n);
}

// ---- Collectives of all PEs ----

#if SHMEM_MAJOR_VERSION > 1 || SHMEM_MINOR_VERSION >= 5
static void begin_collectives(void)
{
}

static void sum(size_t bytes, int turn)
{
    (void)turn;
    shmem_long_sum_reduce(SHMEM_TEAM_WORLD, (long *)(void *)there, (long *)(void *)here,
                          bytes / sizeof(long));
}

static void all_to_all(size_t bytes, int turn)
{
    (void)turn;
    shmem_alltoallmem(SHMEM_TEAM_WORLD, there, here, bytes);
}
#else
static long sync_words[2][SYNC_WORDS], work[LARGEST / sizeof(long)];

static void begin_collectives(void)
{
    for (int i = 0; i < SYNC_WORDS; i++)
        sync_words[0][i] = sync_words[1][i] = SHMEM_SYNC_VALUE;
}

static void sum(size_t bytes, int turn)
{
    shmem_long_sum_to_all((long *)(void *)there, (long *)(void *)here, (int)(bytes / sizeof(long)),
                          0, 0, n_pes, work, sync_words[turn]);
}

static void all_to_all(size_t bytes, int turn)
{
    shmem_alltoall64(there, here, bytes / 8, 0, 0, n_pes, sync_words[turn]);
}
#endif

static double time_all(void (*all)(size_t bytes, int turn), size_t bytes, int n)
{
    shmem_barrier_all();
    for (int i = -n / 10 - 2; i < n; i++) {
        double begun_us = now_us();
        all(bytes, i & 1);
        if (i >= 0)
            samples[i] = now_us() - begun_us;
    }
    shmem_barrier_all();
    return median(n);
}

static void report(const char *name, size_t bytes, double value, const char *unit)
{
    if (me == 0 && bytes)
        printf("%s_%zu %.3f %s\n", name, bytes, value, unit);
    else if (me == 0)
        printf("%s %.3f %s\n", name, value, unit);
    fflush(stdout);
}

static void pairs(void)
{
    report("put_8", 0, time_one(put_8, rounds), "us");
    report("put_1m", 0, time_one(put_1m, rounds / 4 + 1), "us");
    report("get_8", 0, time_one(get_8, rounds), "us");
    report("fetch_add", 0, time_one(fetch_add, rounds), "us");
    report("put_nbi", 0, STREAM / time_one(stream, rounds / 20 + 1), "M/s");
}

static void collectives(void)
{
    static const size_t sizes[] = {8, 1024, 65536, LARGEST};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        report("sum", sizes[i], time_all(sum, sizes[i], sizes[i] > 4096 ? rounds / 8 + 1 : rounds),
               "us");
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        report("alltoall", sizes[i],
               time_all(all_to_all, sizes[i], sizes[i] > 4096 ? rounds / 8 + 1 : rounds), "us");
}

int main(int argc, char **argv)
{
    rounds = argc > 1 ? atoi(argv[1]) : rounds;
    if (rounds < 1 || rounds > MOST_ROUNDS) {
        fprintf(stderr, "openshmem: ROUNDS is 1 to %d, not %s\n", MOST_ROUNDS, argv[1]);
        return 2;
    }
    shmem_init();
    me = shmem_my_pe();
    n_pes = shmem_n_pes();
    begin_collectives();
    there = shmem_malloc((size_t)n_pes * LARGEST);
    here = shmem_malloc((size_t)n_pes * LARGEST);
    word = shmem_malloc(sizeof *word);
    if (!there || !here || !word)
        shmem_global_exit(1);
    memset(here, 1, (size_t)n_pes * LARGEST);
    *word = 0;
    shmem_barrier_all();
    if (n_pes == 2)
        pairs();
    collectives();
    shmem_barrier_all();
    shmem_finalize();
    return 0;
}
