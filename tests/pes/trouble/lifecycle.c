// SPDX-License-Identifier: BSD-3-Clause
// The smallest whole program: init, one put to the right neighbour, finalize. trouble.sh runs it
// under bad conditions; a failed call's sentence goes to stdout and its code decides the exit
// status.
#define _GNU_SOURCE // usleep
#include <gpushmem/gpushmem.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int failed(const char *call)
{
    printf("%s: %s\n", call, gpushmem_last_error());
    return 1;
}

int main(int argc, char **argv)
{
    bool leak = argc > 1 && !strcmp(argv[1], "leak"),
         absent = argc > 1 && !strcmp(argv[1], "absent"),
         nowhere = argc > 1 && !strcmp(argv[1], "nowhere");
    if (gpushmem_init())
        return failed("init");
    while (argc > 1 && !strcmp(argv[1], "apart") && gpushmem_my_pe() == 1)
        pause(); // until the launcher ends it
    long *word = gpushmem_malloc(sizeof *word);
    if (!word)
        return failed("malloc");
    // and through the launcher asks the others whom they wait for
    while (absent && gpushmem_my_pe() == 1) {
        signal(SIGUSR1, SIG_IGN);
        kill(atoi(getenv("GPUSHMEM_RUN_PID")), SIGUSR1);
        usleep(20000);
    }
    // the heap may be on a GPU
    if (gpushmem_long_p(word, -1, gpushmem_my_pe()) || gpushmem_barrier_all())
        return failed("barrier");
    for (int i = 0; i < 3 && nowhere; i++)
        if (gpushmem_long_g(word, 99) + gpushmem_long_atomic_fetch(word, 98) != 0)
            return failed("values of PEs that there are not");
    int right = (gpushmem_my_pe() + 1) % gpushmem_n_pes();
    if (gpushmem_long_p(word, gpushmem_my_pe(), right) || gpushmem_barrier_all())
        return failed("put");
    long left = (gpushmem_my_pe() + gpushmem_n_pes() - 1) % gpushmem_n_pes();
    long found = gpushmem_long_g(word, gpushmem_my_pe());
    if (found != left) {
        printf("PE %d holds %ld where PE %ld's number should be\n", gpushmem_my_pe(), found, left);
        return 1;
    }
    if (!leak && gpushmem_free(word))
        return failed("free");
    return gpushmem_finalize() ? failed("finalize") : 0;
}
