// SPDX-License-Identifier: BSD-3-Clause
#include "proxy/device_nodes.h"

#include <limits.h>
#include <stdbool.h>

#include "job/job.h"

static bool share_node(const int *pes, int a, int b, enum gpsh_kernels_map map)
{
    return map == GPSH_KERNELS_MAP_NODE &&
           gpsh_job()->peers[pes[a]].node == gpsh_job()->peers[pes[b]].node;
}

// Whether ranks of one node come before and after those of another.
static bool is_torn(const struct gpsh_device_nodes *nodes, const int *pes,
                    enum gpsh_kernels_map map)
{
    for (int a = 0; a < nodes->n && map == GPSH_KERNELS_MAP_NODE; a++)
        for (int b = a + 2; b < nodes->n; b++)
            if (share_node(pes, nodes->starts[a], nodes->starts[b], map))
                return true;
    return false;
}

static int size_of(const struct gpsh_device_nodes *nodes, int node)
{
    return nodes->starts[node + 1] - nodes->starts[node];
}

// The first member of the smallest node is the holder of the most shares.
static int most_held(const struct gpsh_device_nodes *nodes)
{
    int least = INT_MAX, held = 0;
    for (int node = 0; node < nodes->n; node++)
        least = size_of(nodes, node) < least ? size_of(nodes, node) : least;
    for (int node = 0; node < nodes->n; node++)
        held += (size_of(nodes, node) + least - 1) / least;
    return held;
}

void gpsh_device_nodes_find(struct gpsh_device_nodes *nodes, const int *pes, int n, int my_rank,
                            enum gpsh_kernels_map map)
{
    nodes->n = 0;
    if (map == GPSH_KERNELS_MAP_SOME)
        return;
    for (int rank = 0; rank < n; rank++) {
        if (!rank || !share_node(pes, rank - 1, rank, map))
            nodes->starts[nodes->n++] = rank;
        if (rank == my_rank)
            nodes->mine = nodes->n - 1;
    }
    nodes->starts[nodes->n] = n;
    if (nodes->n == 1 || is_torn(nodes, pes, map))
        nodes->n = 0;
    nodes->held = most_held(nodes);
}
