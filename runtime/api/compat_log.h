// SPDX-License-Identifier: BSD-3-Clause
// Failures of compatibility headers' functions, most of which return none: they are logged.
#ifndef GPSH_COMPAT_LOG_H
#define GPSH_COMPAT_LOG_H

#include <stdbool.h>

// Logs this thread's last failure as subsystem `prefix` ("shmem", "nvshmem"), unless the same
// sentence was logged before, and clears it. Names gpushmem_X in the sentence become prefix_X,
// which is what the program called.
void gpsh_compat_failed(const char *prefix);

// True the first time that it is asked about this sentence.
bool gpsh_compat_is_new(const char *prefix, const char *sentence);

// Parses a size as OpenSHMEM's variables write it: a number, maybe with a fraction, and maybe a
// suffix K, M, G or T. False if the text is none, or less than 1 or more than 1e15 bytes.
bool gpsh_compat_size(const char *text, unsigned long long *bytes);

#endif
