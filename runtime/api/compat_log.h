// SPDX-License-Identifier: BSD-3-Clause
// Failures of compatibility headers' functions, most of which return none: they are logged.
#ifndef GPSH_COMPAT_LOG_H
#define GPSH_COMPAT_LOG_H

#include <stdbool.h>

// Logs this thread's last failure as subsystem `prefix` ("shmem", "nvshmem"), unless the same
// sentence was logged before, and forgets it. A gpushmem_X in it becomes prefix_X, which is what
// the program called.
void gpsh_compat_failed(const char *prefix);

// True the first time that this sentence comes.
bool gpsh_compat_is_new(const char *prefix, const char *sentence);

// A size as OpenSHMEM's variables write it: a number, which may have a fraction, and a suffix.
bool gpsh_compat_size(const char *text, unsigned long long *bytes);

#endif
