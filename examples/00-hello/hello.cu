// SPDX-License-Identifier: BSD-3-Clause
// The smallest program with a kernel: every PE's kernel puts the PE's number into its right
// neighbour's memory.
#include <gpushmem/device.cuh>
#include <gpushmem/gpushmem.h>
#include <stdio.h>

__global__ void greet(int *inbox)
{
    int me = gpushmem_dev_my_pe(), n = gpushmem_dev_n_pes();
    gpushmem_dev_int_p(inbox, me, (me + 1) % n);
}

static int run(void)
{
    int me = gpushmem_my_pe(), n = gpushmem_n_pes(), left = (me + n - 1) % n, got;
    int *inbox = (int *)gpushmem_calloc(1, sizeof *inbox); // symmetric: every PE has one
    int status = inbox ? 0 : GPUSHMEM_ERR_NO_MEMORY;
    if (!status)
        status = GPUSHMEM_LAUNCH(greet, 1, 1, NULL, inbox); // on the GPU, or on a CPU thread
    if (!status)
        status = gpushmem_launch_wait(NULL);
    if (!status)
        status = gpushmem_barrier_all(); // completes the puts of all PEs
    if (!status)
        status = gpushmem_get(&got, inbox, 1,
                              me); // the heap may be GPU memory: copy, do not dereference
    if (!status)
        printf("PE %d of %d: greeted by PE %d%s\n", me, n, got,
               got == left ? "" : ", which is wrong");
    if (!status)
        status = gpushmem_free(inbox);
    return status ? status : got != left;
}

int main(void)
{
    int status = gpushmem_init();
    if (!status)
        status = run();
    if (!status)
        status = gpushmem_finalize();
    if (status < 0)
        fprintf(stderr, "hello: %s\n", gpushmem_last_error());
    return status != 0;
}
