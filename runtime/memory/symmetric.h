// SPDX-License-Identifier: BSD-3-Clause
// This PE's symmetric memory regions in host memory: anonymous files (memfd) that the node's PEs
// map. Nothing has a name in /dev/shm, so nothing can be left behind there and its size is no
// limit.
#ifndef GPSH_SYMMETRIC_H
#define GPSH_SYMMETRIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/config.h"

// Regions begin at a multiple of this, or of the largest power of two in their size: then whatever
// is aligned in a region is aligned in memory, on every PE.
enum { GPSH_SYMMETRIC_ALIGNMENT = 1 << 30 };
// What a region of so many bytes begins at a multiple of.
uint64_t gpsh_symmetric_alignment(uint64_t bytes);

struct gpsh_symmetric {
    char *base;
    uint64_t bytes;
    uint64_t room; // of address space from base: it may grow to that
    // A file may hold a small region as well, which does not grow: a peer is then mapped at once.
    uint64_t front; // bytes of it, whole pages, mapped right before base
    uint64_t at;    // where this region begins in the file; 0 without a front
    int fd;
    uint64_t page;   // bytes of the pages that may be mapped by themselves
    bool huge;       // some are larger than the processor's smallest
    char pages[128]; // page kind in use, and why not a larger one
};

// Creates and maps a region of `bytes`, of which the user did not ask for `reserved`; refuses with
// GPUSHMEM_ERR_NO_MEMORY what cannot fit into the machine's memory, counting `node_pes` regions of
// that size. Address space is taken for `room` bytes (at least `bytes`), or less where there is not
// as much. `front`: bytes of the small region before it; pages of 2M and 1G have none.
int gpsh_symmetric_create(struct gpsh_symmetric *region, uint64_t bytes, uint64_t reserved,
                          uint64_t room, uint64_t front, enum gpsh_huge_pages pages, int node_pes);
// Makes it `bytes` large in all, within its room. Its mappings, here and at peers, need nothing.
// Also makes it smaller, for one that failed elsewhere.
int gpsh_symmetric_resize(struct gpsh_symmetric *region, uint64_t bytes, int node_pes);
// Maps PE `pe`'s region, of which fd (which stays open), bytes, room, front and at are given, after
// checking its size: sets base, and room to less if there is not as much address space. It ends at
// `end`, if that is not NULL and there is room before it.
int gpsh_symmetric_map(struct gpsh_symmetric *theirs, int pe, char *end);
void gpsh_symmetric_unmap(char *base, uint64_t bytes);
void gpsh_symmetric_destroy(struct gpsh_symmetric *region);

#endif
