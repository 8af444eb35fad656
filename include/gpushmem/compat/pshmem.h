// SPDX-License-Identifier: BSD-3-Clause
// The profiling interface: each shmem_X can be called as pshmem_X, in libshmem. A tool that defines
// shmem_X itself is compiled with SHMEM_NO_INLINE, and so is the program that it looks at.
#ifndef PSHMEM_H
#define PSHMEM_H

#include "gpushmem/compat/shmem.h"

#ifdef __cplusplus
extern "C" {
#endif
#define GPSHM_ROW(RETURN, NAME, PARAMETERS, ...) GPUSHMEM_API RETURN p##NAME PARAMETERS;
#define GPUSHMEM_SHMEM_AGAIN
#include "gpushmem/compat/impl/shmem_rows.h"
#undef GPUSHMEM_SHMEM_AGAIN
#undef GPSHM_ROW
#ifdef __cplusplus
}
#endif

#endif
