// SPDX-License-Identifier: BSD-3-Clause
// What programs call that were compiled with NVIDIA's NVSHMEM: their part of its device library
// starts the host's side by these names. Frameworks load such libraries whether they use them or
// not, and a loader that binds at once refuses the whole process for one missing name. So the names
// are here, and the call fails with a sentence.
#include "gpushmem/compat/impl/nvshmem_calls.h"

GPUSHMEM_API int nvshmemid_hostlib_init_attr(void);
GPUSHMEM_API void nvshmemid_hostlib_finalize(void);
GPUSHMEM_API int nvshmemid_init_status(void);
// A variable, by how PyTorch 2.15 refers to it; nobody reads it before an init that succeeds.
GPUSHMEM_API extern long nvshmem_selected_device_transport;

long nvshmem_selected_device_transport;

int nvshmemid_hostlib_init_attr(void)
{
    return gpushmem_nvshmem_foreign("nvshmemid_hostlib_init_attr");
}

// Nothing was started.
void nvshmemid_hostlib_finalize(void)
{
}

int nvshmemid_init_status(void)
{
    return NVSHMEM_STATUS_NOT_INITIALIZED;
}
