// SPDX-License-Identifier: BSD-3-Clause
// The blocks of this PE's symmetric memory, as it hands them out. Callers make that collective. Any
// thread.
#ifndef GPSH_BLOCKS_H
#define GPSH_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "memory/heap_alloc.h"

// What blocks are taken from: the heap, and beside one in GPU memory some host memory.
enum gpsh_arena { GPSH_ARENA_HEAP, GPSH_ARENA_HOST, GPSH_ARENAS };

int gpsh_blocks_init(void); // needs the heap's bytes
void gpsh_blocks_finalize(void);

// Of an address that need not be a block's: those of no arena count as the heap's.
enum gpsh_arena gpsh_blocks_arena(const void *block);
uint64_t gpsh_blocks_offset(const void *block); // in its arena

// NULL and a sentence if the arena is exhausted.
void *gpsh_blocks_take(const char *function, enum gpsh_arena arena, uint64_t bytes,
                       uint64_t alignment);
void gpsh_blocks_give(const void *block);
// As it was asked for; 0: none begins there.
uint64_t gpsh_blocks_size(const void *block);
// The heap had `before` bytes, and has `more` now.
int gpsh_blocks_extend(uint64_t before, uint64_t more);
// False: there is no such arena.
bool gpsh_blocks_usage(enum gpsh_arena arena, struct gpsh_heap_usage *usage);
// Of `bytes` of symmetric memory: where they are in an arena, they are inside one block that is
// allocated. Else false, and `why` (NULL: not wanted) says which bytes, and what is there.
bool gpsh_blocks_hold(const void *sym, size_t bytes, char *why, size_t room);
// The same as a status: GPUSHMEM_ERR_ADDRESS and a sentence.
int gpsh_blocks_check(const char *function, const void *sym, size_t bytes);

#endif
