// SPDX-License-Identifier: BSD-3-Clause
// A whole program over the public API, the same under every launcher: each PE writes to each other
// one, all check what they got. Prints one line "pe P of N: ok" per PE.
//   everywhere [CYCLES]   so many times from init to finalize (default 3)
//   everywhere nvshmem    each ends without nvshmem_finalize, the first one before the others
//   everywhere exit CODE  the last PE calls gpushmem_global_exit while the others wait for it
//   everywhere forever    prints "ready" and puts until somebody ends it
#define _GNU_SOURCE // usleep
#include <gpushmem/compat/nvshmem.h>
#include <gpushmem/gpushmem.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int failed(const char *what)
{
    fprintf(stderr, "pe %d: %s: %s\n", gpushmem_my_pe(), what, gpushmem_last_error());
    return 1;
}

static long value_for(int from, int to, int cycle)
{
    return from * 100000L + to * 100L + cycle;
}

static int put_to_all(long *words, int cycle)
{
    int me = gpushmem_my_pe();
    for (int pe = 0; pe < gpushmem_n_pes(); pe++) {
        if (gpushmem_long_p(words + me, value_for(me, pe, cycle), pe))
            return failed("put");
    }
    return gpushmem_barrier_all() ? failed("barrier_all") : 0;
}

static int cycle_once(int cycle, bool forever)
{
    if (gpushmem_init())
        return failed("init");
    int me = gpushmem_my_pe(), n = gpushmem_n_pes();
    long *words = gpushmem_calloc((size_t)n, sizeof(*words));
    if (!words)
        return failed("calloc");
    if (put_to_all(words, cycle))
        return 1;
    for (int pe = 0; pe < n; pe++) {
        if (words[pe] != value_for(pe, me, cycle)) {
            fprintf(stderr, "pe %d: PE %d's word is %ld, not %ld\n", me, pe, words[pe],
                    value_for(pe, me, cycle));
            return 1;
        }
    }
    if (forever) {
        printf("ready\n");
        fflush(stdout);
    }
    while (forever) {
        if (put_to_all(words, cycle))
            return 1;
    }
    return gpushmem_free(words) ? failed("free") : 0;
}

static int global_exit(int code)
{
    if (gpushmem_init())
        return failed("init");
    if (gpushmem_my_pe() == gpushmem_n_pes() - 1) {
        puts("last words"); // in stdio's buffer, if this is no terminal
        gpushmem_global_exit(code);
    }
    return gpushmem_barrier_all() ? failed("barrier_all") : 99;
}

// A launcher that takes the first one's end for a failure ends the others.
static int leave(void)
{
    nvshmem_init();
    nvshmem_barrier_all();
    if (nvshmem_my_pe() > 0)
        usleep(500000);
    printf("pe %d of %d: ok\n", nvshmem_my_pe(), nvshmem_n_pes());
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "nvshmem") == 0)
        return leave();
    if (argc > 2 && strcmp(argv[1], "exit") == 0)
        return global_exit(atoi(argv[2]));
    bool forever = argc > 1 && strcmp(argv[1], "forever") == 0;
    int cycles = argc > 1 && !forever ? atoi(argv[1]) : 3;
    for (int cycle = 0; cycle < cycles; cycle++) {
        if (cycle_once(cycle, forever))
            return 1;
        if (cycle == cycles - 1)
            printf("pe %d of %d: ok\n", gpushmem_my_pe(), gpushmem_n_pes());
        if (gpushmem_finalize())
            return failed("finalize");
    }
    return 0;
}
