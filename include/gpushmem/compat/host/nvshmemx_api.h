// SPDX-License-Identifier: BSD-3-Clause
// Functions of the host: nvshmem.h has them.
#include "gpushmem/compat/nvshmem.h"
