// SPDX-License-Identifier: BSD-3-Clause
// The nodes by which a team's operations of streams go: groups of PEs whose kernels load and store
// each other's heaps and no other's. docs/adr/0055-streams-by-nodes.md.
#ifndef GPSH_DEVICE_NODES_H
#define GPSH_DEVICE_NODES_H

#include <stdint.h>

// What the kernels of each PE of the job map.
enum gpsh_kernels_map {
    GPSH_KERNELS_MAP_SOME,  // anything else
    GPSH_KERNELS_MAP_NODE,  // the PEs of their node
    GPSH_KERNELS_MAP_ALONE, // no other PE
};

struct gpsh_device_nodes {
    // how many. 0: only one, or the ranks of some node do not follow each other; the rest says
    // nothing then
    int n;
    int mine;        // the number of this PE's
    int held;        // for how many ranks' shares one member is the holder, at most
    int32_t *starts; // [n + 1] the first rank of each, and how many members the team has
};

// Finds those of a team of pes[n]. nodes->starts has room for n + 1. All members find the same, but
// for `mine`.
void gpsh_device_nodes_find(struct gpsh_device_nodes *nodes, const int *pes, int n, int my_rank,
                            enum gpsh_kernels_map map);

#endif
