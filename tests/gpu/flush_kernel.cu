// SPDX-License-Identifier: BSD-3-Clause
// On the fake driver: where the GPU does not order what NICs write to it, a kernel is told that a
// get is complete only after a flush. usage: flush_kernel needed|not-needed
#include "calls.h"
#include "tests/device/check.h"

static int flushed_since(void)
{
    return calls_since("cuFlushGPUDirectRDMAWrites") > 0;
}

// How many of the three ways to see a get's data came with a flush.
__global__ void get(char *to, const char *from, int pe, int *flushed)
{
    (void)flushed_since();
    gpushmem_dev_getmem(to, from, 100, pe);
    flushed[0] = flushed_since();
    gpushmem_dev_getmem_nbi(to, from, 100, pe);
    gpushmem_dev_quiet();
    flushed[1] = flushed_since();
    gpushmem_dev_iget64(to, from, 1, 2, 4, pe);
    flushed[2] = flushed_since();
}

int main(int argc, char **argv)
{
    int needed = argc > 1 && !strcmp(argv[1], "needed"), flushed[3] = {-1, -1, -1};
    int right = (check_begin() + 1) % gpushmem_n_pes();
    if (calls_find())
        return 1;
    char *memory = (char *)gpushmem_calloc(2, 128);
    RUN(get, 1, 1, memory, memory + 128, right, flushed);
    for (int i = 0; i < 3; i++)
        CHECK(flushed[i] == needed);
    CHECK_OK(gpushmem_barrier_all());
    gpushmem_free(memory);
    return check_end("flush_kernel");
}
