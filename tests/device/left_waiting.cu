// SPDX-License-Identifier: BSD-3-Clause
// gpushmem_finalize ends the waits of kernels that are still there, and leaves them what they need
// until they have gone.
#include <unistd.h>

#include "kernel_check.cuh"

__global__ void wait_in_vain(uint64_t *words)
{
    gpushmem_dev_uint64_wait_until(&words[threadIdx.x], GPUSHMEM_CMP_NE, 0);
}

__global__ void put_one(uint64_t *word)
{
    gpushmem_dev_uint64_p(word, 1, gpushmem_dev_my_pe());
}

int main(void)
{
    for (int round = 0; round < 2; round++) {
        check_begin();
        uint64_t *words = (uint64_t *)gpushmem_calloc(16, 8);
        RUN(put_one, 1, 1, words + 15);
        CHECK_OK(gpushmem_quiet());
        CHECK(check_read(words + 15) == 1);
        CHECK_OK(GPUSHMEM_LAUNCH(wait_in_vain, 1, 8, NULL, words));
        usleep(20000); // until they wait
        CHECK_OK(gpushmem_finalize());
        usleep(50000); // time to touch what is gone
    }
    return check_failures != 0;
}
