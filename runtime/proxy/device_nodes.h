// SPDX-License-Identifier: BSD-3-Clause
// The nodes of a team by which its streams' operations go: PEs whose kernels load and store each
// other's heaps and no other's. docs/adr/0055-streams-by-nodes.md.
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
    int n, mine;     // 0: none, or the ranks of some node do not follow each other
    int held;        // of how many ranks a member holds the shares, at most
    int32_t *starts; // [n + 1] the first rank of each, and the members
};

// Of `n` members, pes[rank]. nodes->starts has room for n + 1. The same on all members but for
// `mine`.
void gpsh_device_nodes_find(struct gpsh_device_nodes *nodes, const int *pes, int n, int my_rank,
                            enum gpsh_kernels_map map);

#endif
