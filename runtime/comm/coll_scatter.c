// SPDX-License-Identifier: BSD-3-Clause
// Large reducescatters of a team with nodes: what is folded of a rank's part waits in that rank's
// dest. Node after node, the part's holder there (comm/team_nodes.h) fetches it, folds the node's
// sources behind it and puts it back; on the rank's own node the rank does so itself. So a part
// crosses twice for each node at most, whatever the members.
// docs/adr/0052-sums-from-node-to-node.md.
#include <stdlib.h>

#include "comm/coll_piece.h"

enum {
    PIECE_BYTES = 65536,
    OUTS = 4, // results on their way
};

struct scatter {
    const struct gpsh_coll *c;
    const struct gpsh_team_nodes *nodes;
    struct gpsh_piece piece;
    size_t most;   // elements of a piece, the same on all members
    unsigned outs; // results that were made
    char *kept;    // in place: this PE's own part of its source, where dest takes what others send
};

// A piece of a rank's part.
struct chunk {
    int rank;
    size_t number, at, nelems;
};

static bool in_place(const struct gpsh_coll *c, int rank, const char *dest)
{
    return dest == c->source + (size_t)rank * c->nelems * c->size;
}

// The rank's dest, as an address of this PE: in place it is on all members.
static char *dest_of(const struct scatter *s, const struct chunk *chunk)
{
    const struct gpsh_coll *c = s->c;
    int me = c->team->my_rank;
    ptrdiff_t part = (ptrdiff_t)(c->nelems * c->size);
    char *dest = in_place(c, me, c->dest) ? c->dest + (chunk->rank - me) * part : c->dest;
    return dest + chunk->at * c->size;
}

// Counters: what the nodes before this one have folded is there; the result is.
static size_t prefix(const struct chunk *chunk)
{
    return (size_t)chunk->rank;
}

static size_t result(const struct scatter *s, const struct chunk *chunk)
{
    return (size_t)s->c->team->n + (size_t)chunk->rank;
}

static int await(const struct scatter *s, const struct chunk *chunk, int node, size_t counter)
{
    int from = gpsh_team_nodes_holder(s->nodes, chunk->rank, node);
    return gpsh_team_signal_wait(s->c->team, from, counter, chunk->number + 1, s->c->what);
}

// views[0] becomes what the nodes before have folded; the sources follow it.
static int fetch_before(struct scatter *s, const struct chunk *chunk, int count)
{
    struct gpsh_team *team = s->c->team;
    const char **views = team->views;
    char *copy = s->piece.fetched + (size_t)count * s->piece.most * s->c->size;
    for (int i = count; i > 0; i--)
        views[i] = views[i - 1];
    views[0] = copy;
    int status =
        gpsh_coll_get(team, chunk->rank, copy, dest_of(s, chunk), chunk->nelems * s->c->size);
    return status == 0 && chunk->rank != team->my_rank ? gpsh_coll_settle(team) : status;
}

static int fold(struct scatter *s, const struct chunk *chunk, char *out)
{
    const struct gpsh_coll *c = s->c;
    const struct gpsh_team_nodes *nodes = s->nodes;
    const int *mates = nodes->members + nodes->starts[nodes->mine];
    int count = nodes->sizes[nodes->mine], me = c->team->my_rank;
    size_t at = ((size_t)chunk->rank * c->nelems + chunk->at) * c->size;
    int status = gpsh_piece_gather(&s->piece, mates, count, c->source, at, chunk->nelems);
    if (s->kept && chunk->rank == me)
        c->team->views[nodes->index[me]] = s->kept + chunk->at * c->size;
    if (status == 0 && nodes->mine != 0)
        status = fetch_before(s, chunk, count++);
    if (status == 0)
        gpsh_fold_all(c->type, c->op, out, c->team->views, count, 0, chunk->nelems);
    return status;
}

// The next node's holder may be told of what is in the rank's dest, or the rank of its result.
static int tell(struct scatter *s, const struct chunk *chunk)
{
    struct gpsh_team *team = s->c->team;
    int node = s->nodes->mine, home = s->nodes->node[chunk->rank], status = 0;
    if (node == s->nodes->n - 1)
        return node == home
                   ? 0
                   : gpsh_team_signal(team, chunk->rank, result(s, chunk), chunk->number + 1);
    if (node != home && node + 1 != home) // it reads there by another way than this PE wrote
        status = gpsh_coll_settle(team);
    int next = gpsh_team_nodes_holder(s->nodes, chunk->rank, node + 1);
    return status < 0 ? status : gpsh_team_signal(team, next, prefix(chunk), chunk->number + 1);
}

static int go(struct scatter *s, const struct chunk *chunk)
{
    const struct gpsh_coll *c = s->c;
    unsigned turn = s->outs++ % OUTS;
    char *out = s->piece.out + turn * s->piece.most * c->size;
    int status = s->nodes->mine ? await(s, chunk, s->nodes->mine - 1, prefix(chunk)) : 0;
    if (status == 0 && turn == 0)
        status = gpsh_coll_settle(c->team); // the last ones have left
    if (status == 0)
        status = fold(s, chunk, out);
    if (status == 0)
        status =
            gpsh_coll_put(c->team, chunk->rank, dest_of(s, chunk), out, chunk->nelems * c->size);
    return status == 0 ? tell(s, chunk) : status;
}

// All members go through pieces and ranks in this order, and wait for nodes before theirs only: so
// nobody waits in a circle.
static int go_all(struct scatter *s)
{
    const struct gpsh_coll *c = s->c;
    int me = c->team->my_rank, mine = s->nodes->mine, status = 0;
    struct chunk chunk = {0};
    for (; chunk.at < c->nelems && status == 0; chunk.at += s->most, chunk.number++) {
        size_t left = c->nelems - chunk.at;
        chunk.nelems = left < s->most ? left : s->most;
        for (chunk.rank = 0; chunk.rank < c->team->n && status == 0; chunk.rank++)
            if (gpsh_team_nodes_holder(s->nodes, chunk.rank, mine) == me)
                status = go(s, &chunk);
    }
    if (status < 0 || mine == s->nodes->n - 1)
        return status;
    chunk.rank = me;
    chunk.number--;
    return await(s, &chunk, s->nodes->n - 1, result(s, &chunk));
}

static int scatter_begin(struct scatter *s)
{
    const struct gpsh_coll *c = s->c;
    size_t bytes = c->nelems * c->size;
    int status = gpsh_piece_begin(&s->piece, c, OUTS, s->most);
    if (status < 0 || s->nodes->mine == 0 || !in_place(c, c->team->my_rank, c->dest))
        return status;
    s->kept = malloc(bytes);
    return s->kept ? gpsh_coll_get(c->team, c->team->my_rank, s->kept, c->dest, bytes)
                   : gpsh_piece_no_copy(c, bytes);
}

int gpsh_coll_nodes_reducescatter(const struct gpsh_coll *c)
{
    struct scatter s = {.c = c, .nodes = c->team->nodes, .most = PIECE_BYTES / c->size};
    int status = gpsh_team_usable(c->team, c->what);
    if (status < 0)
        return status;
    status = scatter_begin(&s);
    status = status < 0 ? status : gpsh_coll_enter(c);
    status = gpsh_coll_leave(c, status < 0 ? status : go_all(&s));
    free(s.kept);
    gpsh_coll_free(status, s.piece.memory);
    return status;
}
