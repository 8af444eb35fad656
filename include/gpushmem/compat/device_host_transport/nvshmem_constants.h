// SPDX-License-Identifier: BSD-3-Clause
// Constants of both sides.
#include "gpushmem/compat/impl/nvshmem_types.h"
