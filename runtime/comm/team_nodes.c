// SPDX-License-Identifier: BSD-3-Clause
#include "comm/team_nodes.h"

#include <stdlib.h>
#include <string.h>

#include "job/job.h"

static struct gpsh_team_nodes *allocate(int n)
{
    size_t members = (size_t)n;
    struct gpsh_team_nodes *nodes = calloc(1, sizeof *nodes + (7 * members + 1) * sizeof(int));
    if (!nodes)
        return NULL;
    nodes->leaders = nodes->numbers;
    nodes->sizes = nodes->leaders + members;
    nodes->node = nodes->sizes + members;
    nodes->index = nodes->node + members;
    nodes->place = nodes->index + members;
    nodes->members = nodes->place + members;
    nodes->starts = nodes->members + members;
    return nodes;
}

// The rank's node: one that is known, mostly the last, or the next.
static int find(const int *pes, const struct gpsh_team_nodes *nodes, int rank)
{
    int i = nodes->n - 1;
    while (i >= 0 &&
           gpsh_job()->peers[pes[nodes->leaders[i]]].node != gpsh_job()->peers[pes[rank]].node)
        i--;
    return i < 0 ? nodes->n : i;
}

// `alone`: each member is a group.
static void group(struct gpsh_team_nodes *nodes, const int *pes, int n, bool alone)
{
    nodes->n = 0;
    memset(nodes->sizes, 0, (size_t)n * sizeof *nodes->sizes);
    for (int rank = 0; rank < n; rank++) {
        int node = alone ? nodes->n : find(pes, nodes, rank);
        if (node == nodes->n)
            nodes->leaders[nodes->n++] = rank;
        nodes->node[rank] = node;
        nodes->index[rank] = nodes->sizes[node]++;
    }
}

static void sort_members(struct gpsh_team_nodes *nodes, int n)
{
    for (int node = 1; node <= nodes->n; node++)
        nodes->starts[node] = nodes->starts[node - 1] + nodes->sizes[node - 1];
    nodes->smallest = nodes->sizes[0];
    for (int node = 1; node < nodes->n; node++)
        nodes->smallest =
            nodes->sizes[node] < nodes->smallest ? nodes->sizes[node] : nodes->smallest;
    nodes->in_order = true;
    for (int rank = 0; rank < n; rank++) {
        int at = nodes->starts[nodes->node[rank]] + nodes->index[rank];
        nodes->members[at] = rank;
        nodes->in_order = nodes->in_order && at == rank;
    }
}

int gpsh_team_nodes_members(const struct gpsh_team_nodes *nodes, int node, int count)
{
    int members = 0;
    for (int k = 0; k < count; k++)
        members += nodes->sizes[(node - k + nodes->n) % nodes->n];
    return members;
}

struct gpsh_team_nodes *gpsh_team_nodes_new(const int *pes, int n, int my_rank, bool alone)
{
    struct gpsh_team_nodes *nodes = allocate(n);
    if (!nodes)
        return NULL;
    group(nodes, pes, n, alone);
    sort_members(nodes, n);
    nodes->mine = nodes->node[my_rank];
    for (int k = 0, place = 0; k < nodes->n; k++) {
        int node = (nodes->mine - k + nodes->n) % nodes->n;
        for (int i = 0; i < nodes->sizes[node]; i++)
            nodes->place[nodes->members[nodes->starts[node] + i]] = place++;
    }
    return nodes;
}

// The first member of the smallest node is the holder of the most shares.
struct gpsh_device_nodes gpsh_team_nodes_of_kernels(const struct gpsh_team_nodes *nodes)
{
    struct gpsh_device_nodes kernels = {.mine = nodes->mine, .starts = nodes->starts};
    if (nodes->in_order && nodes->n > 1)
        kernels.n = nodes->n;
    for (int node = 0; node < nodes->n; node++)
        kernels.held += (nodes->sizes[node] + nodes->smallest - 1) / nodes->smallest;
    return kernels;
}
