// SPDX-License-Identifier: BSD-3-Clause
// The handle of kernels for modules that the program loads itself.
#include <stdint.h>

#include "gpu/gpu.h"
#include "gpushmem/compat/impl/nvshmem_calls.h"
#include "gpushmem/device_host.h"
#include "job/job.h"
#include "memory/heap.h"

// What libnvshmem_device has for them.
static const char state_name[] = "nvshmemi_device_state_d";
static const char version_name[] = "nvshmemi_device_lib_version_d";

typedef gpsh_cu_result (*gpsh_find)(void *module, gpsh_cu_ptr *variable, size_t *bytes,
                                    const char *name);

static gpsh_cu_result find_in_module(void *module, gpsh_cu_ptr *variable, size_t *bytes,
                                     const char *name)
{
    return gpsh_cu.module_global(variable, bytes, module, name);
}

static gpsh_cu_result find_in_library(void *library, gpsh_cu_ptr *variable, size_t *bytes,
                                      const char *name)
{
    return gpsh_cu.library_global(variable, bytes, library, name);
}

static int check_version(const char *function, gpsh_find find, void *module)
{
    gpsh_cu_ptr variable;
    size_t bytes = 0;
    uint32_t abi = GPUSHMEM_DEVICE_ABI;
    if (find(module, &variable, &bytes, version_name) || bytes < sizeof abi)
        return 0; // says nothing about it
    int status = gpsh_gpu_copy(&abi, (const void *)(uintptr_t)variable, sizeof abi);
    if (status || abi == GPUSHMEM_DEVICE_ABI)
        return status;
    return gpsh_fail(GPUSHMEM_ERR_UNSUPPORTED,
                     "%s: the module was built with device side %u, and this library has %u: build "
                     "the older of the two again",
                     function, abi, (unsigned)GPUSHMEM_DEVICE_ABI);
}

static int give_handle(const char *function, gpsh_find find, void *module)
{
    struct gpushmem_dev dev;
    gpsh_cu_ptr variable;
    size_t bytes = 0;
    int status = gpushmem_device_handle(&dev);
    if (status)
        return status;
    if (!gpsh_heap()->device)
        return gpsh_fail(GPUSHMEM_ERR_UNSUPPORTED,
                         "%s: the heap is in host memory; set GPUSHMEM_HEAP_KIND=device", function);
    gpsh_cu_result code = find(module, &variable, &bytes, state_name);
    if (code)
        return gpsh_fail(GPUSHMEM_ERR_INVALID,
                         "%s: the module has no variable %s: link it with libnvshmem_device",
                         function, state_name);
    if (bytes < sizeof dev)
        return gpsh_fail(GPUSHMEM_ERR_UNSUPPORTED,
                         "%s: %s of the module has %zu bytes, not %zu: build the module with this "
                         "library's libnvshmem_device",
                         function, state_name, bytes, sizeof dev);
    status = check_version(function, find, module);
    return status ? status : gpsh_gpu_copy((void *)(uintptr_t)variable, &dev, sizeof dev);
}

static int init_module(const char *function, gpsh_find find, void *module)
{
    bool known =
        find == find_in_module ? gpsh_cu.module_global != NULL : gpsh_cu.library_global != NULL;
    gpushmem_nvshmem_complete(GPUSHMEM_ERR_STATE);
    int status = gpsh_check_initialised(function + sizeof "nvshmemx_" - 1);
    if (!status && !module)
        status = gpsh_fail(GPUSHMEM_ERR_INVALID, "%s: no module (NULL)", function);
    if (!status && !known)
        status = gpsh_fail(GPUSHMEM_ERR_UNSUPPORTED, "%s: the CUDA driver has no such modules",
                           function);
    if (!status)
        status = give_handle(function, find, module);
    return gpushmem_nvshmem_check(status);
}

int gpushmem_nvshmem_module_init(gpsh_nvshmem_module module)
{
    return init_module("nvshmemx_cumodule_init", find_in_module, module);
}

int gpushmem_nvshmem_library_init(gpsh_nvshmem_library library)
{
    return init_module("nvshmemx_culibrary_init", find_in_library, library);
}

// Nothing of the library points into modules.
int gpushmem_nvshmem_module_finalize(gpsh_nvshmem_module module)
{
    (void)module;
    return 0;
}

int gpushmem_nvshmem_library_finalize(gpsh_nvshmem_library library)
{
    (void)library;
    return 0;
}

int gpushmem_nvshmem_foreign(const char *function)
{
    int status = gpsh_fail(GPUSHMEM_ERR_UNSUPPORTED,
                           "%s: a program or library of this process was compiled with NVIDIA's "
                           "NVSHMEM, whose kernels can't use gpushmem: compile it again with "
                           "gpushmem's headers, or run it without gpushmem's library path",
                           function);
    gpushmem_nvshmem_failed(status);
    return NVSHMEMX_ERROR_NOT_SUPPORTED;
}

// ---- Launches ----

int gpushmem_nvshmem_launch_begin(void)
{
    gpushmem_nvshmem_complete(GPUSHMEM_ERR_STATE);
    int status = gpsh_check_initialised("collective_launch");
    return gpushmem_nvshmem_check(status ? status : gpushmem_nvshmem_attach());
}

int gpushmem_nvshmem_launch_failed(int error)
{
    int status = error ? gpsh_fail(GPUSHMEM_ERR_CUDA,
                                   "nvshmemx_collective_launch: CUDA error %d; all blocks of the "
                                   "grid need room on the GPU at once: "
                                   "nvshmemx_collective_launch_query_gridsize says for how many "
                                   "there is. If that is 0, the kernel has too many registers for "
                                   "such a block: declare it with __launch_bounds__, or launch "
                                   "smaller blocks",
                                   error)
                       : gpsh_fail(GPUSHMEM_ERR_UNSUPPORTED,
                                   "nvshmemx_collective_launch: no shared CUDA runtime in this "
                                   "process, or nowhere to write the grid's size to");
    gpushmem_nvshmem_failed(status);
    return NVSHMEMX_ERROR_COLLECTIVE_LAUNCH_FAILED;
}
