// SPDX-License-Identifier: BSD-3-Clause
// libnvshmem_device.a, for builds that name it: the handle of kernels. All functions are in the
// header.
#include "gpushmem/compat/impl/nvshmem_device_state.cuh"

extern "C" __device__ const void *gpsh_nvshmem_device_state(void)
{
    return nvshmemi_device_lib_version_d.abi ? &nvshmemi_device_state_d : nullptr;
}
