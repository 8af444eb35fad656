// SPDX-License-Identifier: BSD-3-Clause
// The PE that keeps a lock's queue is gone: every call says so, also the second time, and nobody
// believes to have the lock. Nor does anybody get one that it had when it went. Two PEs, over the
// software HCA.
#define _POSIX_C_SOURCE 200809L // kill
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "../../pes/check.h"

// One of them is kept by this PE: it is behind PE 1.
static void check_taken(long *taken)
{
    int behind = 0;
    for (int i = 0; i < 2; i++) {
        CHECK(gpushmem_set_lock(&taken[i]) == GPUSHMEM_ERR_PE_FAILED);
        behind += strstr(gpushmem_last_error(), "is lost, and nobody behind it gets it") != NULL;
        CHECK(gpushmem_clear_lock(&taken[i]) == GPUSHMEM_ERR_STATE);
    }
    CHECK_THAT(behind == 1, "%s", gpushmem_last_error());
}

int main(void)
{
    CHECK_OK(gpushmem_init());
    long *locks = gpushmem_calloc(2, sizeof *locks), *word = gpushmem_calloc(1, sizeof *word),
         *taken = gpushmem_calloc(2, sizeof *taken);
    CHECK_THAT(locks && word && taken && gpushmem_n_pes() == 2, "two PEs");
    for (int i = 0; i < 2 && gpushmem_my_pe() == 1; i++)
        CHECK_OK(gpushmem_set_lock(&taken[i]));
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
    check_taken(taken);
    printf("lock_lost: ok\n");
    return 0;
}
