// SPDX-License-Identifier: BSD-3-Clause
// PE 0 serves whoever asks first: wait_until_any over a flag for each client.
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>

enum { REQUESTS = 20 };

int main(void)
{
    shmem_init();
    int me = shmem_my_pe(), n = shmem_n_pes(), wrong = 0;
    long *asks = shmem_calloc((size_t)n, sizeof *asks), *answer = shmem_calloc(1, sizeof *answer);
    if (me == 0) {
        int *done = calloc((size_t)n, sizeof *done);
        done[0] = 1;
        for (int served = 0; served < REQUESTS * (n - 1); served++) {
            size_t client = shmem_wait_until_any(asks, (size_t)n, done, SHMEM_CMP_NE, 0L);
            long asked = asks[client];
            asks[client] = 0;
            done[client] = asked == REQUESTS;
            shmem_p(answer, asked * asked, (int)client);
        }
        wrong = shmem_wait_until_any(asks, (size_t)n, done, SHMEM_CMP_NE, 0L) != SIZE_MAX;
        free(done);
    }
    for (long i = 1; me != 0 && i <= REQUESTS; i++) {
        shmem_p(&asks[me], i, 0);
        shmem_wait_until(answer, SHMEM_CMP_EQ, i * i);
    }
    shmem_barrier_all();
    shmem_free(asks);
    shmem_free(answer);
    shmem_finalize();
    return wrong;
}
