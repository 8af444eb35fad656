// SPDX-License-Identifier: BSD-3-Clause
// This PE's symmetric memory regions in host memory: anonymous files (memfd) that the node's PEs
// map, or parts of one that they share. Nothing has a name in /dev/shm, so nothing can be left
// behind there and its size is no limit.
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
    uint64_t at;    // where this region begins in the file; 0 without a front in a file of its own
    int fd;
    uint32_t file;   // which one that the node's PEs share, 0: one of its own
    uint64_t part;   // bytes of each PE's part of that
    uint64_t page;   // bytes of the pages that may be mapped by themselves
    bool huge;       // some are larger than the processor's smallest
    char pages[128]; // page kind in use, and why not a larger one
};

struct gpsh_bootstrap;

// Refuses with GPUSHMEM_ERR_NO_MEMORY what cannot fit into the machine's memory, counting `bytes`
// for each of `node_pes` PEs; the user did not ask for `reserved` of them.
int gpsh_symmetric_check(uint64_t bytes, uint64_t reserved, int node_pes);
// Creates and maps a region of `bytes`, in a file that the node's PEs share if there is one.
// Address space is taken for `room` bytes (at least `bytes`), or less where there is not as much.
// `front`: bytes of the small region before it; pages of 2M and 1G have none. `boot` NULL: in a
// file of its own.
int gpsh_symmetric_create(struct gpsh_symmetric *region, uint64_t bytes, uint64_t room,
                          uint64_t front, enum gpsh_huge_pages pages,
                          const struct gpsh_bootstrap *boot);
// Makes it `bytes` large in all, within its room. Its mappings, here and at peers, need nothing.
// Also makes it smaller, for one that failed elsewhere.
int gpsh_symmetric_resize(struct gpsh_symmetric *region, uint64_t bytes, int node_pes);
// Maps PE `pe`'s region, of which fd (which stays open), bytes, room, front and at are given, after
// checking its size: sets base, and room to less if there is not as much address space. It ends at
// `end`, if that is not NULL and there is room before it.
int gpsh_symmetric_map(struct gpsh_symmetric *theirs, int pe, char *end);
// Maps the parts of all n PEs of the node, of which `own` is one, side by side. NULL: there is not
// as much address space.
char *gpsh_symmetric_map_all(const struct gpsh_symmetric *own, int n);
void gpsh_symmetric_unmap(char *base, uint64_t bytes);
void gpsh_symmetric_destroy(struct gpsh_symmetric *region);

#endif
