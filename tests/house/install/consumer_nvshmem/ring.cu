// SPDX-License-Identifier: BSD-3-Clause
// The same from a kernel.
#include <nvshmem.h>
#include <nvshmemx.h>

__global__ void pass(int *inbox, uint64_t *flag)
{
    int me = nvshmem_my_pe(), n = nvshmem_n_pes();
    nvshmemx_int_put_signal_block(inbox, &me, 1, flag, 1, NVSHMEM_SIGNAL_SET, (me + 1) % n);
    if (!threadIdx.x)
        nvshmem_signal_wait_until(flag, NVSHMEM_CMP_EQ, 1);
}

int main()
{
    nvshmem_init();
    int me = nvshmem_my_pe(), n = nvshmem_n_pes();
    int *inbox = (int *)nvshmem_malloc(sizeof *inbox);
    uint64_t *flag = (uint64_t *)nvshmem_calloc(1, sizeof *flag);
    GPUSHMEM_LAUNCH(pass, 1, 2, NULL, inbox, flag);
    gpushmem_launch_wait(NULL);
    puts(*inbox == (me + n - 1) % n ? "ring: ok" : "ring: wrong");
    nvshmem_free(flag);
    nvshmem_free(inbox);
    nvshmem_finalize();
    return 0;
}
