// SPDX-License-Identifier: BSD-3-Clause
// Functions of the host: nvshmem.h has them.
#ifndef GPUSHMEM_COMPAT_HOST_NVSHMEMX_COLL_API_H
#define GPUSHMEM_COMPAT_HOST_NVSHMEMX_COLL_API_H

#include "gpushmem/compat/nvshmem.h"

#endif
