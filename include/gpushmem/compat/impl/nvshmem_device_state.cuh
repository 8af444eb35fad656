// SPDX-License-Identifier: BSD-3-Clause
// Where NVSHMEM's kernels find the handle: NVSHMEM has no launch macro and passes no argument, so
// it is a variable of the module. docs/design/compatibility.md
#ifndef GPUSHMEM_COMPAT_IMPL_NVSHMEM_DEVICE_STATE_CUH
#define GPUSHMEM_COMPAT_IMPL_NVSHMEM_DEVICE_STATE_CUH

#include <stdio.h>

#include "gpushmem/compat/impl/nvshmem_calls.h"
#include "gpushmem/device/coll.cuh"
#include "gpushmem/device/context.cuh"

#if defined(__CUDACC__)
// Clients look for these two names in modules that they load (nvshmemx_cumodule_init). Without
// relocatable device code each translation unit is a module and has its own; with it, those of one
// program or shared library are one: in each shared library another, which takes a hidden symbol on
// the host's side, where nvcc drops the attribute.
// What a module was compiled with: {GPUSHMEM_DEVICE_ABI, size of the handle}.
struct gpsh_nvshmem_lib_version {
    uint32_t abi, bytes;
};
#if defined(__CUDACC_RDC__)
inline __constant__ struct gpushmem_dev nvshmemi_device_state_d;
inline __constant__ struct gpsh_nvshmem_lib_version nvshmemi_device_lib_version_d = {
    GPUSHMEM_DEVICE_ABI, sizeof(struct gpushmem_dev)};
#if !defined(__CUDA_ARCH__)
__asm__(".hidden nvshmemi_device_state_d\n.hidden nvshmemi_device_lib_version_d");
#endif
#else
__constant__ struct gpushmem_dev nvshmemi_device_state_d;
__constant__ struct gpsh_nvshmem_lib_version nvshmemi_device_lib_version_d = {
    GPUSHMEM_DEVICE_ABI, sizeof(struct gpushmem_dev)};
#endif

#if !defined(__CUDA_ARCH__)
// Gives this module the handle of now: 0 or a negative status.
static inline int gpsh_nvshmem_attach(void)
{
    struct gpushmem_dev dev;
    int status = gpushmem_device_handle(&dev);
    if (status)
        return status;
    cudaError_t error = cudaMemcpyToSymbol(nvshmemi_device_state_d, &dev, sizeof dev);
    if (error == cudaSuccess)
        return 0;
    cudaGetLastError();
    char why[200];
    snprintf(why, sizeof why, "%s; `gpushmem doctor` says more under cuda",
             cudaGetErrorString(error));
    return gpushmem_call_failed(GPUSHMEM_ERR_CUDA, "giving kernels their handle", why);
}
#endif
#else
// On CPU threads there is one copy for all, ours, which GPUSHMEM_LAUNCH looks after.
#define nvshmemi_device_state_d gpsh_dev_implicit
static inline int gpsh_nvshmem_attach(void)
{
    return gpushmem_device_attach();
}
#endif

#if !defined(__CUDA_ARCH__)
// The library calls it once there is a handle, until this library is unloaded.
struct gpsh_nvshmem_unit {
    gpsh_nvshmem_unit()
    {
        gpushmem_nvshmem_attach_by(gpsh_nvshmem_attach);
    }
    ~gpsh_nvshmem_unit()
    {
        gpushmem_nvshmem_attach_no_more(gpsh_nvshmem_attach);
    }
};
[[maybe_unused]] static struct gpsh_nvshmem_unit gpsh_nvshmem_this_unit;
#endif

#endif
