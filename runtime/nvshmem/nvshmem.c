// SPDX-License-Identifier: BSD-3-Clause
// libnvshmem_host: the functions of gpushmem/compat/nvshmem.h, exported for those who look for them
// by name.
#define GPUSHMEM_NVSHMEM_LIBRARY
#include "gpushmem/compat/nvshmem.h"
