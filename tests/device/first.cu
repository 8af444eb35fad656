// SPDX-License-Identifier: BSD-3-Clause
// An operation of a stream returns at once, also before the program's first launch: a wait for a
// word that the caller writes next does not hold the caller up. usage: first
#include "check.h"

__global__ void unused(void)
{
}

int main(void)
{
    int me = check_begin();
    uint64_t *flag = (uint64_t *)gpushmem_calloc(1, sizeof *flag);
    CHECK_OK(gpushmem_signal_wait_until_on_stream(flag, GPUSHMEM_CMP_EQ, 7, NULL));
    gpushmem_uint64_p(flag, 7, me);
    CHECK_OK(gpushmem_quiet());
    CHECK_OK(gpushmem_launch_wait(NULL));
    CHECK_OK(GPUSHMEM_LAUNCH(unused, 1, 1, NULL));
    CHECK_OK(gpushmem_launch_wait(NULL));
    gpushmem_free(flag);
    return check_end("first");
}
