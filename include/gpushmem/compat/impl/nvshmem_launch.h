// SPDX-License-Identifier: BSD-3-Clause
// Launches of grids whose blocks all run at once, included by nvshmem.h where CUDA's headers are.
#ifndef GPUSHMEM_COMPAT_IMPL_NVSHMEM_LAUNCH_H
#define GPUSHMEM_COMPAT_IMPL_NVSHMEM_LAUNCH_H

#include "gpushmem/compat/impl/nvshmem_calls.h"

#ifdef __cplusplus
extern "C" {
#endif

#if defined(NVSHMEM_HOSTLIB_ONLY)

GPUSHMEM_API int nvshmemx_collective_launch(const void *func, dim3 gridDims, dim3 blockDims,
                                            void **args, size_t sharedMem, cudaStream_t stream);
GPUSHMEM_API int nvshmemx_collective_launch_query_gridsize(const void *func, dim3 blockDims,
                                                           void **args, size_t sharedMem,
                                                           int *gridsize);

#else

// A grid of 0 is the largest that fits.
static inline int nvshmemx_collective_launch_query_gridsize(const void *func, dim3 blockDims,
                                                            void **args, size_t sharedMem,
                                                            int *gridsize)
{
    int device = 0, processors = 0, blocks = 0;
    cudaError_t error = gridsize ? cudaGetDevice(&device) : cudaErrorInvalidValue;
    (void)args;
    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
    if (error == cudaSuccess)
        error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(
            &blocks, func, (int)(blockDims.x * blockDims.y * blockDims.z), sharedMem);
    if (error != cudaSuccess)
        return gpushmem_nvshmem_launch_failed((int)error);
    *gridsize = blocks * processors;
    return 0;
}

static inline int nvshmemx_collective_launch(const void *func, dim3 gridDims, dim3 blockDims,
                                             void **args, size_t sharedMem, cudaStream_t stream)
{
    int status = gpushmem_nvshmem_launch_begin();
    if (!status && gridDims.x == 0) {
        int blocks = 0;
        status =
            nvshmemx_collective_launch_query_gridsize(func, blockDims, args, sharedMem, &blocks);
        gridDims.x = (unsigned)blocks;
        gridDims.y = gridDims.z = 1;
    }
    if (status)
        return status;
    cudaError_t error =
        cudaLaunchCooperativeKernel(func, gridDims, blockDims, args, sharedMem, stream);
    return error == cudaSuccess ? 0 : gpushmem_nvshmem_launch_failed((int)error);
}

#endif

#ifdef __cplusplus
}
#endif

#endif
