// SPDX-License-Identifier: BSD-3-Clause
// Types and constants of both sides.
#include "gpushmem/compat/impl/nvshmem_types.h"
