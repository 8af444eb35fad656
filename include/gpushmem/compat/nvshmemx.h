// SPDX-License-Identifier: BSD-3-Clause
// NVSHMEM's extensions: nvshmem.h has them.
#ifndef GPUSHMEM_COMPAT_NVSHMEMX_H
#define GPUSHMEM_COMPAT_NVSHMEMX_H

#include "gpushmem/compat/nvshmem.h"

#endif
