// SPDX-License-Identifier: BSD-3-Clause
// Allocation from the symmetric heap (the public calls are in memory.c).
#ifndef GPSH_MEMORY_H
#define GPSH_MEMORY_H

#include "comm/collective.h"

int gpsh_memory_init(void); // needs the heap's bytes
// The program is one of OpenSHMEM's: blocks need not be freed before finalize.
void gpsh_memory_leave_blocks(void);
void gpsh_memory_finalize(void); // warns about blocks still allocated

// Collective, ends with a barrier in the call `kind` with the arguments a and b. NULL on all PEs
// with a sentence, or a block; without either if `bytes` is 0.
// Host memory: of the heap, or of what is beside one in GPU memory.
void *gpsh_memory_allocate_host(const char *function, enum gpsh_collective_kind kind, uint64_t a,
                                uint64_t b, uint64_t bytes, uint64_t alignment);
// Tells a block from all others, the same on every PE: its offset in the heap, or with
// GPSH_HOST_BLOCK in the host memory beside it; or GPSH_NO_BLOCK.
uint64_t gpsh_memory_number(const void *block);

#endif
