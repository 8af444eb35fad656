// SPDX-License-Identifier: BSD-3-Clause
// Large reduces of a team with nodes: each share goes from node to node, where its holder
// (comm/team_nodes.h) folds the node's sources behind what it got, and the last node's result goes
// back the same way. That is the fold from the left if the nodes follow each other in the team.
// Piece follows piece, so that all nodes work at once. docs/adr/0052-sums-from-node-to-node.md.
#include <stdlib.h>
#include <string.h>

#include "comm/coll_piece.h"
#include "comm/team_signal.h"

enum {
    PIECE_BYTES = 32768,
    // In place a PE keeps a part of its own source, of so many bytes at most at a time.
    SEGMENT_BYTES = 8 << 20,
};

struct chain {
    const struct gpsh_coll *c;
    const struct gpsh_team_nodes *nodes;
    struct gpsh_piece piece;
    size_t most; // elements of a piece, the same on all members
    char *kept;  // in place: where this PE's source is kept, as far as dest takes what others send
};

// A piece of the share of a rank that this PE holds.
struct link {
    int rank;
    size_t number, first, nelems;
};

bool gpsh_coll_chain_fits(const struct gpsh_team *team)
{
    return team->nodes && 2 * (size_t)team->n <= gpsh_team_signals();
}

// Counters of the pieces of a rank's share that have come on their way up, and back.
static size_t up(const struct link *link)
{
    return (size_t)link->rank;
}

static size_t back(const struct chain *chain, const struct link *link)
{
    return (size_t)chain->c->team->n + (size_t)link->rank;
}

static char *dest_of(const struct chain *chain, const struct link *link)
{
    return chain->c->dest + link->first * chain->c->size;
}

static bool is_first(const struct chain *chain)
{
    return chain->nodes->mine == 0;
}

static bool is_last(const struct chain *chain)
{
    return chain->nodes->mine == chain->nodes->n - 1;
}

static int await(const struct chain *chain, const struct link *link, int node, size_t counter)
{
    int from = gpsh_team_nodes_holder(chain->nodes, link->rank, node);
    return gpsh_team_signal_wait(chain->c->team, from, counter, link->number + 1, chain->c->what);
}

// What is in this PE's dest, to the share's holder on that node.
static int pass(const struct chain *chain, const struct link *link, int node, size_t counter)
{
    struct gpsh_team *team = chain->c->team;
    int to = gpsh_team_nodes_holder(chain->nodes, link->rank, node);
    char *dest = dest_of(chain, link);
    int status = gpsh_coll_push(team, to, dest, dest, link->nelems * chain->c->size);
    return status < 0 ? status : gpsh_team_signal(team, to, counter, link->number + 1);
}

// views[0] becomes what the nodes before have folded, which is in dest; the sources follow it.
static int put_before(struct chain *chain, const struct link *link, int count)
{
    const struct gpsh_coll *c = chain->c;
    const char **views = c->team->views;
    char *dest = dest_of(chain, link);
    memmove(views + 1, views, (size_t)count * sizeof *views);
    views[0] = dest;
    if (!gpsh.device_heap)
        return 0;
    char *copy = chain->piece.fetched + (size_t)count * chain->piece.most * c->size;
    views[0] = copy;
    return gpsh_coll_get(c->team, c->team->my_rank, copy, dest, link->nelems * c->size);
}

static int fold(struct chain *chain, const struct link *link)
{
    const struct gpsh_coll *c = chain->c;
    const struct gpsh_team_nodes *nodes = chain->nodes;
    const int *mates = nodes->members + nodes->starts[nodes->mine];
    int count = nodes->sizes[nodes->mine];
    size_t at = link->first * c->size;
    char *dest = c->dest + at, *result = gpsh.device_heap ? chain->piece.out : dest;
    int status = gpsh_piece_gather(&chain->piece, mates, count, c->source, at, link->nelems);
    if (chain->kept)
        c->team->views[nodes->index[c->team->my_rank]] = chain->kept + at;
    if (status == 0 && !is_first(chain))
        status = put_before(chain, link, count++);
    if (status < 0)
        return status;
    gpsh_fold_all(c->type, c->op, result, c->team->views, count, 0, link->nelems);
    return gpsh_coll_copy(dest, result, link->nelems * c->size);
}

static int go_up(struct chain *chain, const struct link *link)
{
    int node = chain->nodes->mine, status = 0;
    if (!is_first(chain))
        status = await(chain, link, node - 1, up(link));
    if (status == 0)
        status = fold(chain, link);
    if (status < 0)
        return status;
    return is_last(chain) ? pass(chain, link, node - 1, back(chain, link))
                          : pass(chain, link, node + 1, up(link));
}

static int go_back(struct chain *chain, const struct link *link)
{
    const struct gpsh_coll *c = chain->c;
    int node = chain->nodes->mine, status = 0;
    if (!is_last(chain))
        status = await(chain, link, node + 1, back(chain, link));
    if (status == 0 && !is_last(chain) && !is_first(chain))
        status = pass(chain, link, node - 1, back(chain, link));
    const struct gpsh_coll_share part = {link->first * c->size, link->nelems * c->size};
    return status == 0 ? gpsh_coll_nodes_push_near(c, part) : status;
}

// All members go through pieces and ranks in this order, and nodes wait for those before them only:
// so nobody waits in a circle.
static int for_each(struct chain *chain, int (*go)(struct chain *, const struct link *))
{
    const struct gpsh_coll *c = chain->c;
    size_t first, last, longest;
    int status = 0;
    gpsh_piece_share(c, 0, &first, &longest);
    for (size_t at = 0; at < longest && status == 0; at += chain->most)
        for (int rank = 0; rank < c->team->n && status == 0; rank++) {
            gpsh_piece_share(c, rank, &first, &last);
            int holder = gpsh_team_nodes_holder(chain->nodes, rank, chain->nodes->mine);
            if (holder != c->team->my_rank || last - first <= at)
                continue;
            size_t left = last - first - at;
            const struct link link = {rank, at / chain->most, first + at,
                                      left < chain->most ? left : chain->most};
            status = go(chain, &link);
        }
    return status;
}

// Before anything can reach dest.
static int keep(struct chain *chain, const struct link *link)
{
    const struct gpsh_coll *c = chain->c;
    size_t at = link->first * c->size;
    return gpsh_coll_get(c->team, c->team->my_rank, chain->kept + at, c->source + at,
                         link->nelems * c->size);
}

static int chain_begin(struct chain *chain)
{
    const struct gpsh_coll *c = chain->c;
    int status = gpsh_piece_begin(&chain->piece, c, 1);
    if (status == 0 && chain->piece.most < chain->most)
        status = gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "%s: no host memory for %d sources", c->what,
                           c->team->n);
    if (status < 0 || c->dest != c->source || is_first(chain))
        return status;
    chain->kept = malloc(c->nelems * c->size);
    return chain->kept ? for_each(chain, keep)
                       : gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "%s: no host memory for %zu bytes",
                                   c->what, c->nelems * c->size);
}

static int reduce_segment(const struct gpsh_coll *c)
{
    struct chain chain = {.c = c, .nodes = c->team->nodes, .most = PIECE_BYTES / c->size};
    int status = gpsh_team_usable(c->team, c->what);
    if (status < 0)
        return status;
    status = chain_begin(&chain);
    gpsh_team_signals_clear(c->team);
    status = gpsh_coll_meet(c, status);
    if (status == 0)
        status = for_each(&chain, go_up);
    if (status == 0)
        status = for_each(&chain, go_back);
    status = gpsh_coll_leave(c, status);
    free(chain.kept);
    gpsh_coll_free(status, chain.piece.memory);
    return status;
}

int gpsh_coll_chain_reduce(const struct gpsh_coll *c)
{
    bool in_place = c->dest == c->source; // on all members
    size_t most = in_place ? SEGMENT_BYTES / c->size : c->nelems, part;
    int status = 0;
    for (size_t at = 0; at < c->nelems && status == 0; at += part) {
        struct gpsh_coll segment = *c;
        part = c->nelems - at < most ? c->nelems - at : most;
        segment.nelems = part;
        segment.dest += at * c->size;
        segment.source += at * c->size;
        status = reduce_segment(&segment);
    }
    return status;
}
