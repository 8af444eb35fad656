// SPDX-License-Identifier: BSD-3-Clause
// Allocation from the symmetric heap (the public calls are in memory.c).
#ifndef GPSH_MEMORY_H
#define GPSH_MEMORY_H

int gpsh_memory_init(void);      // needs gpsh.heap_bytes
void gpsh_memory_finalize(void); // warns about blocks still allocated

#endif
