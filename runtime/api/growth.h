// SPDX-License-Identifier: BSD-3-Clause
// A heap that is exhausted grows on all PEs, or on none. docs/design/memory.md.
#ifndef GPSH_GROWTH_H
#define GPSH_GROWTH_H

#include <stdbool.h>
#include <stdint.h>

#include "comm/collective.h"

// Whether this PE's heap has room to grow. Where all PEs' have, the heap grows.
bool gpsh_heap_may_grow(void);

// Collective, a barrier: every PE is in this call for the same allocation (kind, a, b), a block of
// `bytes`, which takes `need`. 0: the heap's bytes has grown by at least that, everywhere alike.
// Else a negative status with a sentence, and nothing has changed on any PE that is left.
// `buffer`: by these `bytes` of VMM memory of each PE's program, at a heap in GPU memory; or NULL.
int gpsh_heap_grow(const char *function, enum gpsh_collective_kind kind, uint64_t a, uint64_t b,
                   uint64_t bytes, uint64_t need, const void *buffer);
// NICs do not reach it any more.
void gpsh_heap_adopted_ends(const void *symmetric);

void gpsh_heap_growth_init(void);

#endif
