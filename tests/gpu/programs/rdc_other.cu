// SPDX-License-Identifier: BSD-3-Clause
// The other file of rdc_main.cu. No kernel is launched from here, so the handle is fetched by hand.
#include <gpushmem/device.cuh>

__device__ void rdc_send(uint64_t *inbox, uint64_t value, int to)
{
    gpushmem_dev_uint64_p(inbox, value, to);
}

int rdc_attach(void)
{
    return gpushmem_device_attach();
}
