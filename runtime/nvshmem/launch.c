// SPDX-License-Identifier: BSD-3-Clause
// Collective launches for programs that look for them by name. CUDA's runtime library is theirs:
// its functions are looked for in the process.
#define _GNU_SOURCE // RTLD_DEFAULT
#include <dlfcn.h>

#include "gpushmem/compat/impl/nvshmem_calls.h"

// CUDA's dim3.
struct launch_dim {
    unsigned x, y, z;
};

GPUSHMEM_API int nvshmemx_collective_launch(const void *func, struct launch_dim grid,
                                            struct launch_dim block, void **args, size_t shared,
                                            cudaStream_t stream);
GPUSHMEM_API int nvshmemx_collective_launch_query_gridsize(const void *func,
                                                           struct launch_dim block, void **args,
                                                           size_t shared, int *gridsize);

#define FIND(field, name) *(void **)&field = dlsym(RTLD_DEFAULT, name)

int nvshmemx_collective_launch(const void *func, struct launch_dim grid, struct launch_dim block,
                               void **args, size_t shared, cudaStream_t stream)
{
    int (*launch)(const void *, struct launch_dim, struct launch_dim, void **, size_t,
                  cudaStream_t);
    int status = gpushmem_nvshmem_launch_begin();
    FIND(launch, "cudaLaunchCooperativeKernel");
    if (status || !launch)
        return status ? status : gpushmem_nvshmem_launch_failed(0);
    int error = launch(func, grid, block, args, shared, stream);
    return error ? gpushmem_nvshmem_launch_failed(error) : 0;
}

int nvshmemx_collective_launch_query_gridsize(const void *func, struct launch_dim block,
                                              void **args, size_t shared, int *gridsize)
{
    enum { MULTIPROCESSORS = 16 }; // cudaDevAttrMultiProcessorCount
    int (*get_device)(int *), (*attribute)(int *, int, int);
    int (*occupancy)(int *, const void *, int, size_t);
    int device = 0, processors = 0, blocks = 0;
    (void)args;
    FIND(get_device, "cudaGetDevice");
    FIND(attribute, "cudaDeviceGetAttribute");
    FIND(occupancy, "cudaOccupancyMaxActiveBlocksPerMultiprocessor");
    if (!get_device || !attribute || !occupancy || !gridsize)
        return gpushmem_nvshmem_launch_failed(0);
    int error = get_device(&device);
    if (!error)
        error = attribute(&processors, MULTIPROCESSORS, device);
    if (!error)
        error = occupancy(&blocks, func, (int)(block.x * block.y * block.z), shared);
    if (error)
        return gpushmem_nvshmem_launch_failed(error);
    *gridsize = blocks * processors;
    return 0;
}
