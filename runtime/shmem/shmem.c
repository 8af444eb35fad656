// SPDX-License-Identifier: BSD-3-Clause
// libshmem: the functions of gpushmem/compat/shmem.h, exported for those who look for them by
// name.
#define GPUSHMEM_SHMEM_LIBRARY
#include "gpushmem/compat/shmem.h"
