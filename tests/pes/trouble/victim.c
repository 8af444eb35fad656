// SPDX-License-Identifier: BSD-3-Clause
#define _POSIX_C_SOURCE 200809L // SIGKILL, raise
// A PE kills itself in the middle of transfers. usage: victim PE. The others go on until a call
// fails, say what it said, and leave with 0 if the sentence names the dead PE and they can go on
// without it.
#include <gpushmem/gpushmem.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES = 1 << 20, BEFORE_DEATH = 50, ROUNDS = 1000000 };

static char *control;

// Barriers need everybody and keep failing; signals between the living work: a token goes round
// among them.
static bool survivors_go_on(int victim)
{
    uint64_t *token = (uint64_t *)(void *)control;
    int me = gpushmem_my_pe(), n = gpushmem_n_pes();
    int next = (me + 1) % n == victim ? (me + 2) % n : (me + 1) % n;
    int first = victim == 0;
    bool good = gpushmem_barrier_all() == GPUSHMEM_ERR_PE_FAILED;
    for (uint64_t lap = 1; good && lap <= 100; lap++) {
        good &= me != first || gpushmem_signal_op(token, lap, GPUSHMEM_SIGNAL_SET, next) == 0;
        good &= gpushmem_signal_wait_until(token, GPUSHMEM_CMP_EQ, lap) == lap;
        good &= me == first || gpushmem_signal_op(token, lap, GPUSHMEM_SIGNAL_SET, next) == 0;
    }
    if (!good)
        printf("survivor %d cannot go on: %s\n", me, gpushmem_last_error());
    return good;
}

int main(int argc, char **argv)
{
    int victim = argc > 1 ? atoi(argv[1]) : 0;
    if (gpushmem_init())
        return 2;
    char *buffer = gpushmem_malloc(2 * BYTES);
    control = gpushmem_calloc(1, 8);
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
        bool on = named && status == GPUSHMEM_ERR_PE_FAILED && survivors_go_on(victim);
        fflush(stdout);
        _Exit(on ? 0 : 1);
    }
    return 3;
}
