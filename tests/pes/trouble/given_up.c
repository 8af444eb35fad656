// SPDX-License-Identifier: BSD-3-Clause
// A PE comes to its collective calls when another one has given three of them up, of different
// kinds. It passes them without being told of a difference, and the job goes on in step. Run with 2
// PEs and GPUSHMEM_WAIT_TIMEOUT_MS.
#include <gpushmem/gpushmem.h>
#include <sched.h>
#include <stdio.h>

static int check(const char *what, int status, int expected)
{
    if (status == expected)
        return 0;
    fprintf(stderr, "PE %d: %s: %d instead of %d: %s\n", gpushmem_my_pe(), what, status, expected,
            gpushmem_last_error());
    return 1;
}

static void await_flag(long *flag)
{
    while (!gpushmem_long_test(flag, GPUSHMEM_CMP_NE, 0)) // a wait would be given up as well
        sched_yield();
}

// On the word's side of the first call lies the third one's already: what that says is not about
// the first.
static int three_calls(int expected)
{
    int wrong = check("barrier_all", gpushmem_barrier_all(), expected);
    for (int i = 0; i < 2; i++)
        wrong += check("sync_all", gpushmem_sync_all(), expected);
    return wrong;
}

int main(void)
{
    if (gpushmem_init() || gpushmem_n_pes() != 2)
        return 1;
    int wrong = 0, me = gpushmem_my_pe();
    long *flag = gpushmem_calloc(1, sizeof *flag);
    if (flag == NULL)
        return 1;
    if (me == 1)
        await_flag(flag);
    wrong += three_calls(me == 0 ? GPUSHMEM_ERR_TIMEOUT : 0);
    gpushmem_long_p(flag, 1, 1 - me);
    if (me == 0)
        await_flag(flag);
    wrong += check("the next barrier_all", gpushmem_barrier_all(), 0);
    wrong += check("free", gpushmem_free(flag), 0);
    wrong += check("finalize", gpushmem_finalize(), 0);
    return wrong != 0;
}
