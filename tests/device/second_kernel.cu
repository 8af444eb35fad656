// SPDX-License-Identifier: BSD-3-Clause
// The first launch of a kernel beside one that waits for it: CUDA must have loaded it before.
// usage: second_kernel [late]: with `late`, CUDA begins before gpushmem_init, which is then too
// late to choose when it loads kernels.
#include <string.h>

#include "check.h"

__global__ void wait_for(uint64_t *word)
{
    gpushmem_dev_uint64_wait_until(word, GPUSHMEM_CMP_EQ, 7);
}

__global__ void release(uint64_t *word, int me)
{
    gpushmem_dev_uint64_p(word, 7, me);
    gpushmem_dev_quiet();
}

int main(int argc, char **argv)
{
    gpushmem_stream_t stream;
#if defined(__CUDACC__)
    if (argc > 1 && !strcmp(argv[1], "late"))
        cudaFree(nullptr);
#endif
    int me = check_begin();
    uint64_t *word = (uint64_t *)gpushmem_calloc(1, sizeof *word);
    CHECK_OK(gpushmem_stream_create(&stream));
    CHECK_OK(GPUSHMEM_LAUNCH(wait_for, 1, 1, NULL, word));
    CHECK_OK(GPUSHMEM_LAUNCH(release, 1, 1, stream, word, me));
    CHECK_OK(gpushmem_launch_wait(stream));
    CHECK_OK(gpushmem_launch_wait(NULL));
    CHECK_OK(gpushmem_stream_destroy(stream));
    gpushmem_free(word);
    return check_end("second_kernel");
}
