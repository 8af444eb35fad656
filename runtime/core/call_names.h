// SPDX-License-Identifier: BSD-3-Clause
// By which names the program knows the library's calls: gpushmem_X, or those of a header of compat.
#ifndef GPSH_CALL_NAMES_H
#define GPSH_CALL_NAMES_H

#include <stddef.h>

// "shmem" or "nvshmem": by whose init the program began. NULL: by the library's own.
void gpsh_call_names_are(const char *prefix);
const char *gpsh_call_names(void);

// `sentence` with shmem_X or nvshmem_X in the place of gpushmem_X, and of gpushmem_X_status, which
// such a program has not.
void gpsh_calls_rename(const char *prefix, const char *sentence, char *out, size_t bytes);

// What the program knows gpushmem_X, `call`, by: itself, or `out`.
const char *gpsh_call_name(const char *call, char *out, size_t bytes);

#endif
