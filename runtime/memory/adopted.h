// SPDX-License-Identifier: BSD-3-Clause
// Memory of the program whose pages have moved into the symmetric heap, and are mapped where they
// were as well. docs/design/memory.md.
#ifndef GPSH_ADOPTED_H
#define GPSH_ADOPTED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gpsh_adopted {
    char *base; // the program's address
    uint64_t bytes;
    char *block; // the same memory in the heap; NULL: it has not moved yet
    char *spare; // memory to move it back to
};

// Books it for the calls below. Else a negative status with a sentence: it cannot be moved, or is
// symmetric already.
int gpsh_adopt_claim(const char *function, void *base, size_t bytes);
// Moves the contents of what was claimed at `base` to `block` of the heap, and maps that there.
// No thread may write to it meanwhile. On failure the memory is as it was, and claimed.
int gpsh_adopt_move(const char *function, void *base, char *block);
// Host calls may name it by the program's address from here on.
int gpsh_adopt_settle(const char *function, void *base);
// It will not go back now: gives up the memory that this takes.
void gpsh_adopt_keep(void *base);
// Gets the memory that the way back takes. On failure nothing has changed.
int gpsh_adopt_prepare_return(const char *function, void *base);
// Ends a claim. What has moved is made plain memory again, contents kept, where the program has not
// unmapped it. Not after keep, but for prepare_return.
void gpsh_adopt_end(void *base);

// What is adopted, or claimed, at `address`, which is the program's or that of its block.
bool gpsh_adopted_find(const void *address, struct gpsh_adopted *out);
// Whether a byte of it is.
bool gpsh_adopted_overlaps(const void *base, size_t bytes);
// Ends one of them, at finalize: what lacks memory stays as it is mapped. False: there is none.
// `block`: where it was in the heap, or NULL.
bool gpsh_adopted_end_one(char **block);

#endif
