// SPDX-License-Identifier: BSD-3-Clause
// The PE that keeps a lock's queue is gone: every call says so, also the second time, and nobody
// believes to have the lock. Two PEs, over the software HCA.
#define _POSIX_C_SOURCE 200809L // kill
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "../../pes/check.h"

int main(void)
{
    CHECK_OK(gpushmem_init());
    long *locks = gpushmem_calloc(2, sizeof *locks), *word = gpushmem_calloc(1, sizeof *word);
    CHECK_THAT(locks && word && gpushmem_n_pes() == 2, "two PEs");
    CHECK_OK(gpushmem_barrier_all());
    if (gpushmem_my_pe() == 1)
        kill(getpid(), SIGKILL);
    while (gpushmem_long_atomic_fetch_add_status(word, 1, 1, &(long){0}) == 0)
        ;
    for (int i = 0, gone = 0; i < 2; i++) { // one of them is kept by PE 1
        int status = gpushmem_set_lock(&locks[i]);
        gone += status == GPUSHMEM_ERR_PE_FAILED;
        CHECK(status == 0 || status == GPUSHMEM_ERR_PE_FAILED);
        CHECK(gpushmem_test_lock(&locks[i]) == (status ? status : 1));
        CHECK(gpushmem_set_lock(&locks[i]) == (status ? status : GPUSHMEM_ERR_STATE));
        int cleared = gpushmem_clear_lock(&locks[i]); // its quiet tells of what was lost
        CHECK(cleared == GPUSHMEM_ERR_STATE || (status == 0 && cleared != GPUSHMEM_ERR_TIMEOUT));
        CHECK(status != 0 || cleared != GPUSHMEM_ERR_STATE);
        CHECK(i == 0 || gone == 1);
    }
    printf("lock_lost: ok\n");
    return 0;
}
