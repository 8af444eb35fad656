// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE
// PE 0 puts, and then gets, for so many seconds without a pause; nobody sends it anything
// meanwhile.
#include <time.h>

#include "../../pes/check.h"

enum { BYTES = 1 << 20 };

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

int main(int argc, char **argv)
{
    int seconds = check_rounds(argc, argv, 3);
    CHECK_OK(gpushmem_init());
    char *there = gpushmem_malloc(BYTES), *here = malloc(BYTES);
    CHECK(there && here);
    fill(here, BYTES, 7);
    CHECK_OK(gpushmem_barrier_all());
    for (double end_s = now_s() + seconds; gpushmem_my_pe() == 0 && now_s() < end_s;)
        CHECK_OK(gpushmem_putmem_nbi(there, here, BYTES, 1));
    CHECK_OK(gpushmem_quiet());
    for (double end_s = now_s() + seconds; gpushmem_my_pe() == 0 && now_s() < end_s;)
        CHECK_OK(gpushmem_getmem_nbi(here, there, BYTES, 1));
    CHECK_OK(gpushmem_quiet());
    CHECK_OK(gpushmem_barrier_all());
    char *wanted = malloc(BYTES);
    fill(wanted, BYTES, 7);
    CHECK(gpushmem_my_pe() > 1 || !memcmp(gpushmem_my_pe() ? there : here, wanted, BYTES));
    free(wanted);
    free(here);
    gpushmem_free(there);
    gpushmem_finalize();
    return 0;
}
