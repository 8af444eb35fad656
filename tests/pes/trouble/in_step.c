// SPDX-License-Identifier: BSD-3-Clause
// One PE has given up a collective call when the others come to it, and one of those calls another
// function. Whoever is told of what, no call lasts longer than its limit, and afterwards the PEs
// are in step again: their next calls meet. Run with 4 PEs and GPUSHMEM_WAIT_TIMEOUT_MS.
#include <gpushmem/gpushmem.h>
#include <sched.h>
#include <stdio.h>

enum { PES = 4, EARLY = 2, OTHER = 1, ROUNDS = 3 };

static int me, wrong;
static long *flags; // of all PEs

static int expect(const char *what, int status, int allowed, int allowed_too)
{
    if (status != 0 && status != allowed && status != allowed_too) {
        fprintf(stderr, "PE %d: %s: %d: %s\n", me, what, status, gpushmem_last_error());
        wrong++;
    }
    return status;
}

static void await(long *flag, long value)
{
    while (!gpushmem_long_test(flag, GPUSHMEM_CMP_GE, value)) // a wait would be given up as well
        sched_yield();
}

// Without a collective call: all PEs have come here.
static void gather(long value)
{
    for (int pe = 0; pe < PES; pe++)
        gpushmem_long_p(&flags[me], value, pe);
    for (int pe = 0; pe < PES; pe++)
        await(&flags[pe], value);
}

static void round_of(long number)
{
    const int told = GPUSHMEM_ERR_ASYMMETRY, vain = GPUSHMEM_ERR_TIMEOUT;
    if (me == EARLY)
        expect("sync_all, early", gpushmem_sync_all(), vain, vain);
    gather(2 * number + 1);
    if (me != EARLY)
        expect("the call", me == OTHER ? gpushmem_barrier_all() : gpushmem_sync_all(), told, vain);
    expect("the call after it", gpushmem_barrier_all(), told, vain);
    gather(2 * number + 2);
    for (int i = 0; i < 4; i++)
        expect("a later call", gpushmem_barrier_all(), 0, 0);
}

int main(void)
{
    if (gpushmem_init() || gpushmem_n_pes() != PES)
        return 1;
    me = gpushmem_my_pe();
    flags = gpushmem_calloc(PES, sizeof *flags);
    if (!flags)
        return 1;
    for (long i = 0; i < ROUNDS; i++)
        round_of(i);
    expect("free", gpushmem_free(flags), 0, 0);
    expect("finalize", gpushmem_finalize(), 0, 0);
    return wrong != 0;
}
