// SPDX-License-Identifier: BSD-3-Clause
// Collective launches: all blocks run at once and meet in the middle of the kernel; what does not
// fit is refused.
//   device_collective_launch [differ]; differ, with GPUSHMEM_CHECK=1 and two PEs: they pass
//   different grids
#include <string.h>

#include "gpushmem/grid_sync.cuh"
#include "kernel_check.cuh"

enum { THREADS = 96, ROUNDS = 8 };

// counts[i]: blocks that came to round i, for all PEs in shared[i].
__global__ void rounds(unsigned *counts, uint64_t *shared, float factor, int *errors)
{
    const unsigned blocks = gridDim.x * gridDim.y * gridDim.z;
    const int me = gpushmem_dev_my_pe(), n = gpushmem_dev_n_pes();
    const bool first = threadIdx.x == 0, speaker = first && blockIdx.x == 0 && blockIdx.y == 0;
    EXPECT(errors, factor == 3);
    for (int i = 0; i < ROUNDS; i++) {
        if (first)
            atomicAdd(&counts[i], 1u);
        EXPECT(errors, gpushmem_dev_grid_sync() == 0);
        EXPECT(errors, *(volatile unsigned *)&counts[i] == blocks);
        if (speaker) {
            gpushmem_dev_uint64_p(&shared[i * n + me], blocks, (me + 1) % n);
            gpushmem_dev_barrier_all();
        }
        EXPECT(errors, gpushmem_dev_grid_sync() == 0);
        EXPECT(errors, *(volatile uint64_t *)&shared[i * n + (me + n - 1) % n] > 0);
    }
    if (speaker)
        shared[0] = blocks;
}

template <int N> __global__ void nothing(int)
{
    (void)N;
}

__global__ void alone(int expected, int *errors)
{
    int status = gpushmem_dev_grid_sync();
    EXPECT(errors, status == expected);
}

static void test_rounds(dim3 grid, unsigned blocks, int *errors)
{
    const int n = gpushmem_n_pes();
    unsigned *counts = (unsigned *)gpushmem_calloc(ROUNDS, sizeof *counts);
    uint64_t *shared = (uint64_t *)gpushmem_calloc((size_t)(ROUNDS * n), sizeof *shared);
    CHECK_OK(GPUSHMEM_LAUNCH_COLLECTIVE(rounds, grid, THREADS, 0, NULL, counts, shared, 3, errors));
    CHECK_OK(gpushmem_launch_wait(NULL));
    CHECK(check_read(&counts[ROUNDS - 1]) == blocks);
    CHECK(check_read(&shared[0]) == blocks);
    CHECK_OK(gpushmem_free(shared));
    CHECK_OK(gpushmem_free(counts));
}

static void test_limits(int *errors)
{
    int most = 0, fewer = 0;
    CHECK_OK(gpushmem_launch_collective_grid(nothing<1>, 64, 0, &most));
    CHECK_OK(gpushmem_launch_collective_grid(nothing<1>, 1024, 40 << 10, &fewer));
    CHECK(most > 0 && fewer > 0 && fewer < most);
    CHECK_OK(GPUSHMEM_LAUNCH_COLLECTIVE(nothing<1>, most, 64, 0, NULL, 1));
    CHECK_OK(gpushmem_launch_wait(NULL));
    CHECK(GPUSHMEM_LAUNCH_COLLECTIVE(nothing<1>, most + 1, 64, 0, NULL, 1) == GPUSHMEM_ERR_INVALID);
    CHECK(strstr(gpushmem_last_error(), "room for all its blocks at once"));
    CHECK(GPUSHMEM_LAUNCH_COLLECTIVE(nothing<1>, dim3(2, most), 64, 0, NULL, 1) ==
          GPUSHMEM_ERR_INVALID);
    CHECK(gpushmem_launch_collective_grid(nothing<1>, 64, 0, NULL) == GPUSHMEM_ERR_INVALID);
    CHECK(GPUSHMEM_LAUNCH_COLLECTIVE(nothing<1>, 1, 2000, 0, NULL, 1) != 0);
    for (dim3 none : {dim3(0, 5), dim3(4, 0), dim3(4, 1, 0)}) { // only a grid of 0 is a wish
        CHECK(GPUSHMEM_LAUNCH_COLLECTIVE(nothing<1>, none, 64, 0, NULL, 1) == GPUSHMEM_ERR_INVALID);
        CHECK(strstr(gpushmem_last_error(), "one of its sides is 0"));
    }
    // Launched in another way, only one block may meet itself.
    RUN(alone, 1, 64, 0, errors);
#if !defined(__CUDACC__) // CUDA 13 lets blocks of every launch meet, and cannot tell
    CHECK_OK(GPUSHMEM_LAUNCH(alone, 2, 1, NULL, (int)GPUSHMEM_ERR_STATE, errors));
    CHECK(gpushmem_launch_wait(NULL) == GPUSHMEM_ERR_STATE);
    CHECK(strstr(gpushmem_last_error(), "thread (0,0,0)"));
    CHECK(strstr(gpushmem_last_error(), "was not launched by GPUSHMEM_LAUNCH_COLLECTIVE"));
#endif
}

static void test_differ(void)
{
    const int me = gpushmem_my_pe();
    for (int i = 0; i < 3; i++) {
        CHECK(GPUSHMEM_LAUNCH_COLLECTIVE(nothing<2>, me ? 2 : 1, 32, 0, NULL, 1) ==
              GPUSHMEM_ERR_ASYMMETRY);
        CHECK(strstr(gpushmem_last_error(), "GPUSHMEM_LAUNCH_COLLECTIVE"));
        CHECK_OK(GPUSHMEM_LAUNCH_COLLECTIVE(nothing<2>, 2, 32, 0, NULL, 1));
        CHECK(GPUSHMEM_LAUNCH_COLLECTIVE(nothing<2>, 1, me ? 64 : 32, 0, NULL, 1) ==
              GPUSHMEM_ERR_ASYMMETRY);
    }
    CHECK_OK(gpushmem_launch_wait(NULL));
}

int main(int argc, char **argv)
{
    check_begin();
    int *errors = check_errors_begin();
    if (argc > 1 && !strcmp(argv[1], "differ")) {
        test_differ();
    } else {
        int most = 0;
        CHECK_OK(gpushmem_launch_collective_grid(rounds, THREADS, 0, &most));
        test_rounds(3, 3, errors);
        test_rounds(dim3(2, 2), 4, errors);
        test_rounds(1, 1, errors);
        if (gpushmem_n_pes() <= 2) // where PEs share a GPU, each of them fills it
            test_rounds(0, (unsigned)most, errors);
        test_limits(errors);
    }
    check_errors_end(__FILE__, errors);
    return check_end("collective_launch");
}
