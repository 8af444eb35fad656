// SPDX-License-Identifier: BSD-3-Clause
// Large collectives of teams whose members share nodes: data crosses to each other node once, to
// the member that holds it there, which passes it on in its node.
#include "comm/coll.h"
#include "comm/team_signal.h"

enum { NOBODY = -1 };

static int holder(const struct gpsh_coll *c, int rank, int node)
{
    return gpsh_team_nodes_holder(c->team->nodes, rank, node);
}

static int push(const struct gpsh_coll *c, int rank, struct gpsh_coll_share part, const char *from)
{
    return part.bytes ? gpsh_coll_push(c->team, rank, c->dest + part.first, from, part.bytes) : 0;
}

// A part of `of`, to a rank that passes it on. Counters have the numbers of the ranks whose parts
// they tell of.
static int hand(const struct gpsh_coll *c, int rank, int of, struct gpsh_coll_share part,
                const char *from)
{
    int status = push(c, rank, part, from);
    if (status < 0 || part.bytes == 0 || rank == c->team->my_rank)
        return status;
    return gpsh_team_signal(c->team, rank, (size_t)of, 1);
}

static int await(const struct gpsh_coll *c, int rank, int of, struct gpsh_coll_share part)
{
    return part.bytes ? gpsh_team_signal_wait(c->team, rank, (size_t)of, 1, c->what) : 0;
}

// This PE's part, to a member of each other node but `but`.
static int push_out(const struct gpsh_coll *c, struct gpsh_coll_share part, const char *from,
                    int but)
{
    const struct gpsh_team_nodes *nodes = c->team->nodes;
    int me = c->team->my_rank, status = 0;
    for (int k = 1; k < nodes->n && status == 0; k++) {
        int node = (nodes->mine + k) % nodes->n; // not all to one node at once
        if (node != but)
            status = hand(c, holder(c, me, node), me, part, from);
    }
    return status;
}

// A part that is in this PE's dest, to the others of its node but `but`.
static int push_near(const struct gpsh_coll *c, struct gpsh_coll_share part, int but)
{
    const struct gpsh_team_nodes *nodes = c->team->nodes;
    const int *mates = nodes->members + nodes->starts[nodes->mine];
    int size = nodes->sizes[nodes->mine], index = nodes->index[c->team->my_rank], status = 0;
    for (int k = 1; k < size && status == 0; k++) {
        int mate = mates[(index + k) % size];
        if (mate != but)
            status = push(c, mate, part, c->dest + part.first);
    }
    return status;
}

// The parts of other nodes' ranks that this PE holds, as they come: from those ranks, or all from
// the root. `root`: of a broadcast, or NOBODY; it has them.
static int pass_on(const struct gpsh_coll *c, const struct gpsh_coll_parts *parts, int root)
{
    const struct gpsh_team *team = c->team;
    const struct gpsh_team_nodes *nodes = team->nodes;
    bool near_root = root != NOBODY && nodes->node[root] == nodes->mine;
    int status = 0;
    for (int i = 1; i < team->n && status == 0; i++) {
        int rank = gpsh_coll_turn(team, i);
        struct gpsh_coll_share part = gpsh_coll_part(c, parts, rank);
        if (nodes->node[rank] == nodes->mine || holder(c, rank, nodes->mine) != team->my_rank)
            continue;
        if (root != team->my_rank)
            status = await(c, near_root ? root : rank, rank, part);
        if (status == 0)
            status = push_near(c, part, root);
    }
    return status;
}

int gpsh_coll_nodes_push_near(const struct gpsh_coll *c, struct gpsh_coll_share part)
{
    return push_near(c, part, NOBODY);
}

int gpsh_coll_nodes_collect(const struct gpsh_coll *c, const struct gpsh_coll_parts *parts)
{
    struct gpsh_coll_share mine = gpsh_coll_part(c, parts, c->team->my_rank);
    // The other nodes first: the NIC works while this processor copies.
    int status = push_out(c, mine, c->source, NOBODY);
    if (status == 0)
        status = push(c, c->team->my_rank, mine, c->source);
    if (status == 0)
        status = push_near(c, mine, NOBODY);
    return status == 0 ? pass_on(c, parts, NOBODY) : status;
}

// Each rank gets its part, and the root's node all of them.
static int scatter(const struct gpsh_coll *c, const struct gpsh_coll_parts *parts)
{
    const struct gpsh_team *team = c->team;
    int near = team->nodes->mine, status = gpsh_coll_copy(c->dest, c->source, parts->whole);
    for (int i = 1; i < team->n && status == 0; i++) {
        int rank = gpsh_coll_turn(team, i), mate = holder(c, rank, near);
        struct gpsh_coll_share part = gpsh_coll_part(c, parts, rank);
        status = hand(c, rank, rank, part, c->source + part.first);
        if (status == 0 && mate != rank && mate != c->root)
            status = hand(c, mate, rank, part, c->source + part.first);
    }
    return status;
}

int gpsh_coll_nodes_broadcast(const struct gpsh_coll *c, size_t bytes)
{
    const struct gpsh_team *team = c->team;
    const struct gpsh_coll_parts parts = {.whole = bytes};
    int me = team->my_rank;
    struct gpsh_coll_share mine = gpsh_coll_part(c, &parts, me);
    int status = me == c->root ? scatter(c, &parts) : await(c, c->root, me, mine);
    if (status == 0)
        status = push_out(c, mine, c->dest + mine.first, team->nodes->node[c->root]);
    if (status == 0)
        status = push_near(c, mine, c->root);
    return status == 0 ? pass_on(c, &parts, c->root) : status;
}
