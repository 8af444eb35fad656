// SPDX-License-Identifier: BSD-3-Clause
// Operations of a stream before the program's first launch, and before its first call of the CUDA
// runtime. They return at once: a wait for a word that the caller writes next does not hold the
// caller up. What needs proxies ends, though the program's kernels are loaded meanwhile. usage:
// first
#include "check.h"

__global__ void unused(void)
{
}

int main(void)
{
    int me = check_begin();
    uint64_t *flag = (uint64_t *)gpushmem_calloc(1, sizeof *flag);
    int64_t *words = (int64_t *)gpushmem_calloc(2, sizeof *words);
    gpushmem_int64_p(words, me + 1, me);
    CHECK_OK(gpushmem_barrier_all());
    CHECK_OK(gpushmem_int64_sum_reduce_on_stream(GPUSHMEM_TEAM_WORLD, words + 1, words, 1, NULL));
    CHECK_OK(gpushmem_launch_wait(NULL));
    CHECK(gpushmem_int64_g(words + 1, me) == gpushmem_n_pes() * (gpushmem_n_pes() + 1) / 2);
    CHECK_OK(gpushmem_signal_wait_until_on_stream(flag, GPUSHMEM_CMP_EQ, 7, NULL));
    gpushmem_uint64_p(flag, 7, me);
    CHECK_OK(gpushmem_quiet());
    CHECK_OK(gpushmem_launch_wait(NULL));
    CHECK_OK(GPUSHMEM_LAUNCH(unused, 1, 1, NULL));
    CHECK_OK(gpushmem_launch_wait(NULL));
    gpushmem_free(words);
    gpushmem_free(flag);
    return check_end("first");
}
