// SPDX-License-Identifier: BSD-3-Clause
// Folds that go from node to node in a team with nodes: each share has a holder on each node
// (comm/team_nodes.h), which folds the node's sources behind what the nodes before have folded.
// That is the fold from the left if the nodes follow each other in the team. Piece follows piece,
// so that all nodes work at once. docs/adr/0052-sums-from-node-to-node.md.
#ifndef GPSH_COLL_CHAIN_H
#define GPSH_COLL_CHAIN_H

#include "comm/coll_piece.h"

// An operation, or in place a segment of it.
struct gpsh_chain {
    const struct gpsh_coll *c;
    const struct gpsh_team_nodes *nodes;
    struct gpsh_piece piece;
    size_t most;  // elements of a piece, the same on all members
    char *kept;   // in place: where this PE's source is kept, as far as dest takes what others send
    char *beside; // and that of another member of the node, or NULL
    unsigned gone; // links that a function has counted
};

// A piece of the share of a rank that this PE holds.
struct gpsh_link {
    int rank;
    size_t number, first, nelems;
};

typedef int gpsh_link_fn(struct gpsh_chain *chain, const struct gpsh_link *link);

// What this PE's links go through, one step after the other, with the meetings. Links of all
// members have one order, so that nobody waits in a circle if nodes wait for those before them
// only, or in `then` for those behind.
struct gpsh_chain_steps {
    size_t outs;        // results that the piece has room for
    gpsh_link_fn *keep; // or NULL; in place, behind the first node: fills `beside` from a source
    gpsh_link_fn *go;
    gpsh_link_fn *then; // or NULL
};
int gpsh_chain_run(const struct gpsh_coll *c, const struct gpsh_chain_steps *steps);

// A reduce's way back: the result, which comes to dest, goes to the node before and in this node.
int gpsh_chain_go_back(struct gpsh_chain *chain, const struct gpsh_link *link);

static inline bool gpsh_chain_is_first(const struct gpsh_chain *chain)
{
    return chain->nodes->mine == 0;
}

static inline bool gpsh_chain_is_last(const struct gpsh_chain *chain)
{
    return chain->nodes->mine == chain->nodes->n - 1;
}

static inline char *gpsh_chain_dest(const struct gpsh_chain *chain, const struct gpsh_link *link)
{
    return chain->c->dest + link->first * chain->c->size;
}

// Counters: what the nodes before have folded of a rank's share has come to this PE's dest.
static inline size_t gpsh_chain_up(const struct gpsh_link *link)
{
    return (size_t)link->rank;
}

// The same, of the result on its way back.
static inline size_t gpsh_chain_back(const struct gpsh_chain *chain, const struct gpsh_link *link)
{
    return (size_t)chain->c->team->n + (size_t)link->rank;
}

// Waits for the link's piece from its holder on that node.
int gpsh_chain_await(const struct gpsh_chain *chain, const struct gpsh_link *link, int node,
                     size_t counter);
// `from`, which is dest or memory of this process that stays until gpsh_coll_settle, to the dest of
// the link's holder on that node, and the counter behind it.
int gpsh_chain_pass(const struct gpsh_chain *chain, const struct gpsh_link *link, int node,
                    const char *from, size_t counter);
// The team's views become what the nodes before have folded, if there are any, which is in dest,
// and the node's sources. *count: how many these are.
int gpsh_chain_gather(struct gpsh_chain *chain, const struct gpsh_link *link, int *count);

#endif
