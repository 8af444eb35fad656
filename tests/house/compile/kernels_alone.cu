// SPDX-License-Identifier: BSD-3-Clause
// Kernels in a program, or a library, that is linked without gpushmem's: others start them.
#include "gpushmem/device.cuh"

__global__ void tell(long *word, int pe)
{
    gpushmem_dev_long_p(word, 1, pe);
}

int main()
{
    return 0;
}
