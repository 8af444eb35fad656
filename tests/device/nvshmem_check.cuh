// SPDX-License-Identifier: BSD-3-Clause
// What the tests of NVSHMEM's names in kernels have in common: the same source is compiled by nvcc,
// and for CPU threads.
#ifndef TESTS_DEVICE_NVSHMEM_CHECK_CUH
#define TESTS_DEVICE_NVSHMEM_CHECK_CUH

#include <nvshmem.h>
#include <nvshmemx.h>

#include "gpushmem/device.cuh"
#include "kernel_check.cuh"

static inline void nv_begin(void)
{
    nvshmem_init();
    if (nvshmem_my_pe() < 0)
        exit(1);
    nvshmem_barrier_all(); // on a GPU the first collective call ends init
}

static inline int nv_end(const char *name)
{
    int me = nvshmem_my_pe();
    nvshmem_finalize();
    if (check_failures)
        fprintf(stderr, "%s: PE %d: %d failures\n", name, me, check_failures);
    return check_failures != 0;
}

// A kernel to its end, as programs start them: nvcc's <<<>>>, which no launch macro helps.
#if defined(__CUDACC__)
#define NV_RUN(kernel, grid, block, ...)                                                           \
    do {                                                                                           \
        kernel<<<grid, block>>>(__VA_ARGS__);                                                      \
        CHECK(cudaDeviceSynchronize() == cudaSuccess);                                             \
        CHECK_OK(gpushmem_device_error());                                                         \
    } while (0)
#else
#define NV_RUN RUN
#endif

#endif
