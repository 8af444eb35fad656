// SPDX-License-Identifier: BSD-3-Clause
// Counters that lie on all PEs, by atomics that nobody waits for.
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>

enum { BINS = 64, SAMPLES = 5000 };

static unsigned int bins[BINS];
static unsigned long total, sum;

int main(void)
{
    shmem_init();
    int me = shmem_my_pe(), n = shmem_n_pes();
    unsigned state = 12345u + (unsigned)me;
    for (int i = 0; i < SAMPLES; i++) {
        state = state * 1664525u + 1013904223u;
        unsigned bin = (state >> 8) % (BINS * (unsigned)n);
        shmem_atomic_inc(&bins[bin % BINS], (int)(bin / BINS));
    }
    shmem_barrier_all();
    for (int i = 0; i < BINS; i++)
        total += bins[i];
    shmem_sum_reduce(SHMEM_TEAM_WORLD, &sum, &total, 1);
    if (sum != (unsigned long)SAMPLES * (unsigned long)n)
        printf("PE %d: %lu samples\n", me, sum);
    int wrong = sum != (unsigned long)SAMPLES * (unsigned long)n;
    shmem_finalize();
    return wrong;
}
