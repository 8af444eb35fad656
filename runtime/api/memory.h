// SPDX-License-Identifier: BSD-3-Clause
// Allocation from the symmetric heap (the public calls are in memory.c).
#ifndef GPSH_MEMORY_H
#define GPSH_MEMORY_H

#include "comm/collective.h"

int gpsh_memory_init(void);      // needs gpsh.heap_bytes
void gpsh_memory_finalize(void); // warns about blocks still allocated

// Collective, ends with a barrier in the call `kind` with the arguments a and b. NULL on all PEs
// with a sentence, or a block; without either if `bytes` is 0.
void *gpsh_memory_allocate(const char *function, enum gpsh_collective_kind kind, uint64_t a,
                           uint64_t b, uint64_t bytes, uint64_t alignment);
// Of this PE; the caller makes it collective.
void gpsh_memory_give(uint64_t offset);

#endif
