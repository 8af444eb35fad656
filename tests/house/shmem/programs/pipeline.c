// SPDX-License-Identifier: BSD-3-Clause
// Blocks go through a chain of PEs: put with signal forwards, credits backwards.
#include <shmem.h>
#include <stdio.h>

enum { BLOCKS = 100, DEPTH = 4, N = 256 };

static int buffer[DEPTH][N];
static uint64_t arrived, credits;

int main(void)
{
    shmem_init();
    int me = shmem_my_pe(), n = shmem_n_pes(), wrong = 0, work[N];
    for (int block = 0; block < BLOCKS; block++) {
        int *here = buffer[block % DEPTH];
        if (me > 0)
            shmem_signal_wait_until(&arrived, SHMEM_CMP_GE, (uint64_t)block + 1);
        for (int i = 0; i < N; i++)
            work[i] = me > 0 ? here[i] + 1 : block * N + i;
        if (me > 0)
            shmem_put_signal(buffer[0], work, 0, &credits, 1, SHMEM_SIGNAL_ADD, me - 1);
        if (me == n - 1) {
            for (int i = 0; i < N; i++)
                wrong |= work[i] != block * N + i + me;
            continue;
        }
        if (block >= DEPTH)
            shmem_signal_wait_until(&credits, SHMEM_CMP_GE, (uint64_t)(block - DEPTH) + 1);
        shmem_put_signal(here, work, N, &arrived, 1, SHMEM_SIGNAL_ADD, me + 1);
    }
    shmem_barrier_all();
    shmem_finalize();
    return wrong;
}
