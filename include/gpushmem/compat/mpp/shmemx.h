// SPDX-License-Identifier: BSD-3-Clause
// The name of shmemx.h beside mpp/shmem.h.
#include "gpushmem/compat/shmemx.h"
