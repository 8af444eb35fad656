// SPDX-License-Identifier: BSD-3-Clause
// One PE has given up an allocation that the other one gets: from then on their heaps differ. The
// next allocation would be at another place on each PE; both are told, and nothing is allocated.
// Run with 2 PEs and GPUSHMEM_WAIT_TIMEOUT_MS.
#include <gpushmem/gpushmem.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

static int wrong;

static void check(const char *what, int right)
{
    if (right)
        return;
    fprintf(stderr, "PE %d: %s: %d: %s\n", gpushmem_my_pe(), what, gpushmem_last_error_code(),
            gpushmem_last_error());
    wrong++;
}

static void await_flag(long *flag)
{
    while (!gpushmem_long_test(flag, GPUSHMEM_CMP_NE, 0)) // a wait would be given up as well
        sched_yield();
}

static void refused(const char *what, const void *block)
{
    check(what, !block && gpushmem_last_error_code() == GPUSHMEM_ERR_ASYMMETRY &&
                    strstr(gpushmem_last_error(), "their heaps differ") != NULL);
}

int main(void)
{
    if (gpushmem_init() || gpushmem_n_pes() != 2)
        return 1;
    int me = gpushmem_my_pe();
    long *flag = gpushmem_calloc(1, sizeof *flag);
    if (flag == NULL)
        return 1;
    if (me == 1)
        await_flag(flag);
    void *block = gpushmem_malloc(4096);
    if (me == 0)
        check("early", !block && gpushmem_last_error_code() == GPUSHMEM_ERR_TIMEOUT);
    else
        check("late", block != NULL);
    gpushmem_long_p(flag, 1, 1 - me);
    if (me == 0)
        await_flag(flag);
    refused("malloc", gpushmem_malloc(4096));
    refused("calloc", gpushmem_calloc(3, 100));
    refused("align", gpushmem_align(512, 100));
    refused("realloc", gpushmem_realloc(flag, 8192));
    check("barrier", gpushmem_barrier_all() == 0);
    check("free", gpushmem_free(flag) == 0);
    check("finalize", gpushmem_finalize() == 0);
    return wrong != 0;
}
