// SPDX-License-Identifier: BSD-3-Clause
#define _POSIX_C_SOURCE 200809L // SIGKILL, raise
// A PE kills itself in the middle of transfers. usage: victim PE. The others go on until a call fails, say what it said, and
// leave with 0 if the sentence names the dead PE.
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <gpushmem/gpushmem.h>

enum { BYTES = 1 << 20, BEFORE_DEATH = 50, ROUNDS = 1000000 };

int main(int argc, char **argv)
{
    int victim = argc > 1 ? atoi(argv[1]) : 0;
    if (gpushmem_init())
        return 2;
    char *buffer = gpushmem_malloc(2 * BYTES);
    char name[16];
    snprintf(name, sizeof name, "PE %d", victim);
    for (int round = 0; round < ROUNDS; round++) {
        if (gpushmem_my_pe() == victim && round == BEFORE_DEATH)
            raise(SIGKILL);
        int right = (gpushmem_my_pe() + 1) % gpushmem_n_pes();
        int status = gpushmem_putmem_nbi(buffer + BYTES, buffer, BYTES, right);
        if (!status)
            status = gpushmem_barrier_all();
        if (!status)
            continue;
        bool named = strstr(gpushmem_last_error(), name) != NULL;
        printf("survivor %d: %s\n", gpushmem_my_pe(), gpushmem_last_error());
        fflush(stdout);
        _Exit(named && status == GPUSHMEM_ERR_PE_FAILED ? 0 : 1);
    }
    return 3;
}
