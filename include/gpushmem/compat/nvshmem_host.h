// SPDX-License-Identifier: BSD-3-Clause
// The host's side of NVSHMEM: nvshmem.h has it.
#include "gpushmem/compat/nvshmem.h"
