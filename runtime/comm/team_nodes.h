// SPDX-License-Identifier: BSD-3-Clause
// The members of a team in groups, by nodes or each alone. docs/design/collectives.md.
#ifndef GPSH_TEAM_NODES_H
#define GPSH_TEAM_NODES_H

#include <stdbool.h>

#include "proxy/device_teams.h"

struct gpsh_team_nodes {
    int n, mine;   // nodes, in the order of their first members; this PE's
    bool in_order; // the ranks of each node follow each other
    int smallest;  // members of the smallest
    int *leaders;  // [n] rank of the node's first member
    int *sizes;    // [n] members
    int *node;     // [members] of each rank
    int *index;    // [members] how many members of its node come before a rank
    int *place;    // [members] where a rank's block is gathered: this node's come first
    int *members;  // [members] ranks, node by node; of a node, in the order of the team
    int *starts;   // [n + 1] where a node's begin among them
    int numbers[]; // what the others point to
};

// Of `n` members, pes[rank], each alone or not. To be freed; NULL: no memory.
struct gpsh_team_nodes *gpsh_team_nodes_new(const int *pes, int n, int my_rank, bool alone);

// As kernels know them, with the memory of `nodes`: none if all members are one, or the ranks of
// some do not follow each other.
struct gpsh_device_nodes gpsh_team_nodes_of_kernels(const struct gpsh_team_nodes *nodes);

// Members of `count` nodes: of this one, and those before it.
int gpsh_team_nodes_members(const struct gpsh_team_nodes *nodes, int node, int count);

// The member of a node that takes what is for the node of a rank's data: that rank itself in its
// own node. So the members of a node share what comes from another.
static inline int gpsh_team_nodes_holder(const struct gpsh_team_nodes *nodes, int rank, int node)
{
    return nodes->members[nodes->starts[node] + nodes->index[rank] % nodes->sizes[node]];
}

#endif
