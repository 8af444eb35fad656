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

// ---- With the program's attributes, as CUDA's runtime takes them ----

enum { ATTRIBUTE_COOPERATIVE = 2, ATTRIBUTES_MOST = 32 };
struct launch_attribute {
    int id;
    char padding[4];
    union {
        int cooperative;
        char value[64];
    };
};
_Static_assert(sizeof(struct launch_attribute) == 72, "CUDA's cudaLaunchAttribute");
struct launch_config {
    struct launch_dim grid, block;
    size_t shared;
    cudaStream_t stream;
    struct launch_attribute *attributes;
    unsigned n;
};

GPUSHMEM_API int nvshmemx_collective_launch_attr(const void *func, struct launch_dim grid,
                                                 struct launch_dim block, void **args,
                                                 size_t shared, cudaStream_t stream,
                                                 struct launch_attribute *attributes, unsigned n);

int nvshmemx_collective_launch_attr(const void *func, struct launch_dim grid,
                                    struct launch_dim block, void **args, size_t shared,
                                    cudaStream_t stream, struct launch_attribute *attributes,
                                    unsigned n)
{
    enum { INVALID_VALUE = 1 }; // cudaErrorInvalidValue
    struct launch_attribute all[ATTRIBUTES_MOST + 1];
    struct launch_config config = {grid, block, shared, stream, all, 0};
    int (*launch)(const struct launch_config *, const void *, void **);
    int status = gpushmem_nvshmem_launch_begin();
    FIND(launch, "cudaLaunchKernelExC");
    if (status || !launch)
        return status ? status : gpushmem_nvshmem_launch_failed(0);
    if (n > ATTRIBUTES_MOST || (n && !attributes))
        return gpushmem_nvshmem_launch_failed(INVALID_VALUE);
    for (unsigned i = 0; i < n; i++)
        if (attributes[i].id != ATTRIBUTE_COOPERATIVE)
            all[config.n++] = attributes[i];
    all[config.n++] = (struct launch_attribute){.id = ATTRIBUTE_COOPERATIVE, .cooperative = 1};
    int error = launch(&config, func, args);
    return error ? gpushmem_nvshmem_launch_failed(error) : 0;
}
