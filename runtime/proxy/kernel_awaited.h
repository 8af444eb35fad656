// SPDX-License-Identifier: BSD-3-Clause
// Whom a kernel waits for, by the word that it waits for: the library's own words lie in the heap
// in an order that tells it.
#ifndef GPSH_KERNEL_AWAITED_H
#define GPSH_KERNEL_AWAITED_H

#include <stddef.h>
#include <stdint.h>

// ", in a collective operation of GPUSHMEM_TEAM_WORLD, for PE 2, rank 2 of 3". `at`: of the word,
// from the beginning of what is reserved in the heap.
void gpsh_kernel_awaited(uint64_t at, char *text, size_t bytes);

#endif
