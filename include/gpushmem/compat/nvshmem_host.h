// SPDX-License-Identifier: BSD-3-Clause
// The host's side of NVSHMEM: nvshmem.h has it.
#ifndef GPUSHMEM_COMPAT_NVSHMEM_HOST_H
#define GPUSHMEM_COMPAT_NVSHMEM_HOST_H

#include "gpushmem/compat/nvshmem.h"

#endif
