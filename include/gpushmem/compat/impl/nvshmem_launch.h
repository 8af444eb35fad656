// SPDX-License-Identifier: BSD-3-Clause
// Launches of grids whose blocks all run at once, included by nvshmem.h where CUDA's headers are.
#ifndef GPUSHMEM_COMPAT_IMPL_NVSHMEM_LAUNCH_H
#define GPUSHMEM_COMPAT_IMPL_NVSHMEM_LAUNCH_H

#include <string.h>

#include "gpushmem/compat/impl/nvshmem_calls.h"

#ifdef __cplusplus
extern "C" {
#endif

#if defined(NVSHMEM_HOSTLIB_ONLY) || defined(__CUDA_ARCH__)

GPUSHMEM_API int nvshmemx_collective_launch(const void *func, dim3 gridDims, dim3 blockDims,
                                            void **args, size_t sharedMem, cudaStream_t stream);
GPUSHMEM_API int nvshmemx_collective_launch_query_gridsize(const void *func, dim3 blockDims,
                                                           void **args, size_t sharedMem,
                                                           int *gridsize);
GPUSHMEM_API int nvshmemx_collective_launch_attr(const void *func, dim3 gridDims, dim3 blockDims,
                                                 void **args, size_t sharedMem, cudaStream_t stream,
                                                 cudaLaunchAttribute *attrs, unsigned int numAttrs);

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

static inline int gpsh_nvshmem_launch_begin(const void *func, dim3 *gridDims, dim3 blockDims,
                                            void **args, size_t sharedMem)
{
    int status = gpushmem_nvshmem_launch_begin(), blocks = 0;
    if (status || gridDims->x)
        return status;
    status = nvshmemx_collective_launch_query_gridsize(func, blockDims, args, sharedMem, &blocks);
    gridDims->x = (unsigned)blocks;
    gridDims->y = gridDims->z = 1;
    return status;
}

static inline int nvshmemx_collective_launch(const void *func, dim3 gridDims, dim3 blockDims,
                                             void **args, size_t sharedMem, cudaStream_t stream)
{
    int status = gpsh_nvshmem_launch_begin(func, &gridDims, blockDims, args, sharedMem);
    if (status)
        return status;
    cudaError_t error =
        cudaLaunchCooperativeKernel(func, gridDims, blockDims, args, sharedMem, stream);
    return error == cudaSuccess ? 0 : gpushmem_nvshmem_launch_failed((int)error);
}

// With the program's attributes. That of cooperative launches is added where it is not among them.
static inline int nvshmemx_collective_launch_attr(const void *func, dim3 gridDims, dim3 blockDims,
                                                  void **args, size_t sharedMem,
                                                  cudaStream_t stream, cudaLaunchAttribute *attrs,
                                                  unsigned int numAttrs)
{
    enum { GPSH_MOST = 32 };
    cudaLaunchAttribute all[GPSH_MOST + 1];
    cudaLaunchConfig_t config;
    int status = gpsh_nvshmem_launch_begin(func, &gridDims, blockDims, args, sharedMem);
    if (status)
        return status;
    if (numAttrs > GPSH_MOST || (numAttrs && !attrs))
        return gpushmem_nvshmem_launch_failed((int)cudaErrorInvalidValue);
    memset((void *)&config, 0, sizeof config);
    config.gridDim = gridDims;
    config.blockDim = blockDims;
    config.dynamicSmemBytes = sharedMem;
    config.stream = stream;
    config.attrs = all;
    for (unsigned int i = 0; i < numAttrs; i++)
        if (attrs[i].id != cudaLaunchAttributeCooperative)
            all[config.numAttrs++] = attrs[i];
    all[config.numAttrs].id = cudaLaunchAttributeCooperative;
    all[config.numAttrs++].val.cooperative = 1;
    cudaError_t error = cudaLaunchKernelExC(&config, func, args);
    return error == cudaSuccess ? 0 : gpushmem_nvshmem_launch_failed((int)error);
}

#endif

#ifdef __cplusplus
}
#endif

#endif
