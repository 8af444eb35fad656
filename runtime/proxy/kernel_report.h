// SPDX-License-Identifier: BSD-3-Clause
// What kernels say, in words: where one failed, and what one waits for.
#ifndef GPSH_KERNEL_REPORT_H
#define GPSH_KERNEL_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/text.h"
#include "gpushmem/device_abi.h"

enum { GPSH_KERNEL_TEXT = 384 };

// "block (0,0,0), thread (1,0,0), for the word at heap offset 64, which is 0, to be >= 7", or
// whatever else the thread has told.
void gpsh_kernel_describe(const struct gpushmem_device_fault *fault, char *text, size_t bytes);
// Whether that says what was wrong, so that the status need not be told as well.
bool gpsh_kernel_explained(const struct gpushmem_device_fault *fault);

// Whom a kernel waits for, by the word that it waits for: the library's own words lie in the heap
// in an order that tells it.

// ", in a collective operation of GPUSHMEM_TEAM_WORLD, for PE 2, rank 2 of 3". `at`: of the word,
// from the beginning of what is reserved in the heap.
void gpsh_kernel_awaited(uint64_t at, struct gpsh_text *text);

#endif
