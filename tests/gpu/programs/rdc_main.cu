// SPDX-License-Identifier: BSD-3-Clause
// Relocatable device code: a kernel here calls a device function of another file. Both use the
// functions without a handle.
#include <gpushmem/device.cuh>
#include <gpushmem/gpushmem.h>
#include <stdio.h>

__device__ void rdc_send(uint64_t *inbox, uint64_t value, int to); // rdc_other.cu
int rdc_attach(void);

__global__ void pass_on(uint64_t *inbox, uint64_t round)
{
    int me = gpushmem_dev_my_pe(), n = gpushmem_dev_n_pes();
    rdc_send(inbox, round * 100 + (uint64_t)me, (me + 1) % n);
    gpushmem_dev_barrier_all();
}

static int failed(const char *what)
{
    fprintf(stderr, "gpu_rdc: PE %d: %s: %s\n", gpushmem_my_pe(), what, gpushmem_last_error());
    return 1;
}

int main(void)
{
    if (gpushmem_init())
        return failed("init");
    int me = gpushmem_my_pe(), n = gpushmem_n_pes();
    uint64_t *inbox = (uint64_t *)gpushmem_calloc(1, sizeof *inbox);
    if (rdc_attach())
        return failed("attach");
    for (uint64_t round = 1; round <= 10; round++) {
        if (GPUSHMEM_LAUNCH(pass_on, 1, 1, NULL, inbox, round) || gpushmem_launch_wait(NULL))
            return failed("launch");
        uint64_t expected = round * 100 + (uint64_t)((me + n - 1) % n),
                 got = gpushmem_uint64_g(inbox, me);
        if (got != expected)
            return fprintf(stderr, "gpu_rdc: PE %d got %d instead of %d\n", me, (int)got,
                           (int)expected),
                   1;
        if (gpushmem_barrier_all())
            return failed("barrier");
    }
    gpushmem_free(inbox);
    return gpushmem_finalize() ? failed("finalize") : 0;
}
