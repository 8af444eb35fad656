// SPDX-License-Identifier: BSD-3-Clause
// NVSHMEM's extensions: nvshmem.h has them.
#include "gpushmem/compat/nvshmem.h"
