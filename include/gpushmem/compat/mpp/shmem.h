// SPDX-License-Identifier: BSD-3-Clause
// The name of shmem.h before OpenSHMEM 1.1, deprecated since.
#ifndef MPP_SHMEM_H
#define MPP_SHMEM_H

#include "gpushmem/compat/shmem.h"

#endif
