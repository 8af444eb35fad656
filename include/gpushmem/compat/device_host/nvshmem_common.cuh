// SPDX-License-Identifier: BSD-3-Clause
// Types and constants of both sides.
#ifndef GPUSHMEM_COMPAT_DEVICE_HOST_NVSHMEM_COMMON_CUH
#define GPUSHMEM_COMPAT_DEVICE_HOST_NVSHMEM_COMMON_CUH

#include "gpushmem/compat/impl/nvshmem_types.h"

#endif
