// SPDX-License-Identifier: BSD-3-Clause
// Constants of both sides.
#ifndef GPUSHMEM_COMPAT_DEVICE_HOST_TRANSPORT_NVSHMEM_CONSTANTS_H
#define GPUSHMEM_COMPAT_DEVICE_HOST_TRANSPORT_NVSHMEM_CONSTANTS_H

#include "gpushmem/compat/impl/nvshmem_types.h"

#endif
