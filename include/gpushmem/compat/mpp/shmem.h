// SPDX-License-Identifier: BSD-3-Clause
// The name of shmem.h before OpenSHMEM 1.1, deprecated since.
#include "gpushmem/compat/shmem.h"
