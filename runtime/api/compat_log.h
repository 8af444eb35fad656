// SPDX-License-Identifier: BSD-3-Clause
// Failures of compatibility headers' functions, most of which return none: they are logged.
#ifndef GPSH_COMPAT_LOG_H
#define GPSH_COMPAT_LOG_H

#include <stdbool.h>

// The program began with that header's init.
void gpsh_compat_begin(const char *prefix);
bool gpsh_compat_began(void); // so that each failure is logged under its name there

// A call of subsystem `prefix` ("shmem", "nvshmem") returns that it has failed: logs this thread's
// last failure, unless it was said or one of its kind was logged, and clears it. Names gpushmem_X
// in the sentence become prefix_X, which is what the program called. lost: the call returns
// nothing, or a value, and GPUSHMEM_ON_ERROR holds.
void gpsh_compat_failed(const char *prefix);
void gpsh_compat_lost(const char *prefix);

// A call that returns a value has failed, and its result says nothing: GPUSHMEM_ON_ERROR holds.
// `shared`: the headers of compat call this one, too, and the program knows it by their name if it
// began with them.
void gpsh_value_failed(bool shared) __attribute__((cold));

// Parses the size of a heap as OpenSHMEM's variables write it: a number, maybe with a fraction, and
// maybe a suffix K, M, G or T. One below the least that GPUSHMEM_HEAP_SIZE may be becomes that:
// programs ask for what they need. False if the text is no size, or less than 1 or more than 1e15
// bytes.
bool gpsh_compat_heap_size(const char *text, unsigned long long *bytes);

#endif
