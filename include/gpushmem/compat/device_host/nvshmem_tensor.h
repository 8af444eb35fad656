// SPDX-License-Identifier: BSD-3-Clause
// Tensors and their layouts: nvshmem.h has them where kernels are compiled.
#include "gpushmem/compat/nvshmem.h"
