// SPDX-License-Identifier: BSD-3-Clause
// A kernel that its program loads from a file: the handle comes as an argument, by value.
#include <gpushmem/device.cuh>

extern "C" __global__ void pass_on(struct gpushmem_dev dev, uint64_t *inbox, const uint64_t *outbox,
                                   uint64_t *flag, uint64_t round)
{
    int right = (gpushmem_dev_my_pe(dev) + 1) % gpushmem_dev_n_pes(dev);
    gpushmem_dev_uint64_put_signal_block(dev, inbox, outbox, blockDim.x, flag, round,
                                         GPUSHMEM_SIGNAL_SET, right);
    if (threadIdx.x == 0)
        gpushmem_dev_signal_wait_until(dev, flag, GPUSHMEM_CMP_GE, round);
    gpushmem_dev_barrier_all_block(dev);
}
