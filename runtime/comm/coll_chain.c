// SPDX-License-Identifier: BSD-3-Clause
#include "comm/coll_chain.h"

#include <stdlib.h>
#include <string.h>

#include "comm/team_signal.h"
#include "memory/heap.h"

enum {
    PIECE_BYTES = 32768,
    // In place a PE keeps a part of its own source, of so many bytes at most at a time.
    SEGMENT_BYTES = 8 << 20,
};

bool gpsh_coll_chain_fits(const struct gpsh_team *team)
{
    return team->nodes && 2 * (size_t)team->n <= gpsh_team_signals();
}

// ---- Between nodes ----

static int holder(const struct gpsh_chain *chain, const struct gpsh_link *link, int node)
{
    return gpsh_team_nodes_holder(chain->nodes, link->rank, node);
}

int gpsh_chain_await(const struct gpsh_chain *chain, const struct gpsh_link *link, int node,
                     size_t counter)
{
    return gpsh_team_signal_wait(chain->c->team, holder(chain, link, node), counter,
                                 link->number + 1, chain->c->what);
}

int gpsh_chain_pass(const struct gpsh_chain *chain, const struct gpsh_link *link, int node,
                    const char *from, size_t counter)
{
    struct gpsh_team *team = chain->c->team;
    size_t bytes = link->nelems * chain->c->size;
    char *dest = gpsh_chain_dest(chain, link);
    int to = holder(chain, link, node);
    int status = from == dest ? gpsh_coll_push(team, to, dest, dest, bytes)
                              : gpsh_coll_put(team, to, dest, from, bytes);
    return status < 0 ? status : gpsh_team_signal(team, to, counter, link->number + 1);
}

// ---- In a node ----

// views[0] becomes what the nodes before have folded, which is in dest; the sources follow it.
static int put_before(struct gpsh_chain *chain, const struct gpsh_link *link, int count)
{
    const struct gpsh_coll *c = chain->c;
    const char **views = c->team->views;
    char *dest = gpsh_chain_dest(chain, link);
    memmove(views + 1, views, (size_t)count * sizeof *views);
    views[0] = dest;
    if (!gpsh_heap()->device)
        return 0;
    char *copy = chain->piece.fetched + (size_t)count * chain->piece.most * c->size;
    views[0] = copy;
    return gpsh_coll_get(c->team, c->team->my_rank, copy, dest, link->nelems * c->size);
}

int gpsh_chain_gather(struct gpsh_chain *chain, const struct gpsh_link *link, int *count)
{
    const struct gpsh_coll *c = chain->c;
    const struct gpsh_team_nodes *nodes = chain->nodes;
    const int *mates = nodes->members + nodes->starts[nodes->mine];
    int size = nodes->sizes[nodes->mine];
    size_t at = link->first * c->size;
    int status = gpsh_piece_gather(&chain->piece, mates, size, c->source, at, link->nelems);
    if (chain->kept)
        c->team->views[nodes->index[c->team->my_rank]] = chain->kept + at;
    if (status == 0 && !gpsh_chain_is_first(chain))
        status = put_before(chain, link, size++);
    *count = size;
    return status;
}

// ---- All of it ----

static int for_each(struct gpsh_chain *chain, gpsh_link_fn *go)
{
    const struct gpsh_coll *c = chain->c;
    size_t first, last, longest;
    int status = 0;
    gpsh_piece_share(c, 0, &first, &longest);
    for (size_t at = 0; at < longest && status == 0; at += chain->most)
        for (int rank = 0; rank < c->team->n && status == 0; rank++) {
            gpsh_piece_share(c, rank, &first, &last);
            int mine = gpsh_team_nodes_holder(chain->nodes, rank, chain->nodes->mine);
            if (mine != c->team->my_rank || last - first <= at)
                continue;
            size_t left = last - first - at;
            const struct gpsh_link link = {rank, at / chain->most, first + at,
                                           left < chain->most ? left : chain->most};
            status = go(chain, &link);
        }
    return status;
}

// Before anything can reach dest.
static int keep(struct gpsh_chain *chain, const struct gpsh_link *link)
{
    const struct gpsh_coll *c = chain->c;
    size_t at = link->first * c->size;
    return gpsh_coll_get(c->team, c->team->my_rank, chain->kept + at, c->source + at,
                         link->nelems * c->size);
}

static int begin(struct gpsh_chain *chain, const struct gpsh_chain_steps *steps)
{
    const struct gpsh_coll *c = chain->c;
    size_t bytes = c->nelems * c->size;
    int status = gpsh_piece_begin(&chain->piece, c, steps->outs, chain->most);
    if (status < 0 || c->dest != c->source || gpsh_chain_is_first(chain))
        return status;
    chain->kept = malloc(bytes);
    chain->beside = steps->keep ? malloc(bytes) : NULL;
    return chain->kept && (chain->beside || !steps->keep) ? for_each(chain, keep)
                                                          : gpsh_piece_no_copy(c, bytes);
}

// The others' sources are ready after one meeting, and left alone until the next.
static int keep_beside(struct gpsh_chain *chain, gpsh_link_fn *keep_link, int status)
{
    status = gpsh_coll_meet(chain->c, status);
    return status == 0 && chain->beside ? for_each(chain, keep_link) : status;
}

static int run_segment(const struct gpsh_coll *c, const struct gpsh_chain_steps *steps)
{
    struct gpsh_chain chain = {.c = c, .nodes = c->team->nodes, .most = PIECE_BYTES / c->size};
    int status = gpsh_team_usable(c->team, c->what);
    if (status < 0)
        return status;
    status = begin(&chain, steps);
    if (steps->keep && c->dest == c->source)
        status = keep_beside(&chain, steps->keep, status);
    gpsh_team_signals_clear(c->team);
    status = gpsh_coll_meet(c, status);
    if (status == 0)
        status = for_each(&chain, steps->go);
    if (status == 0 && steps->then)
        status = for_each(&chain, steps->then);
    status = gpsh_coll_leave(c, status);
    free(chain.kept);
    gpsh_coll_free(status, chain.beside);
    gpsh_coll_free(status, chain.piece.memory);
    return status;
}

int gpsh_chain_run(const struct gpsh_coll *c, const struct gpsh_chain_steps *steps)
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
        status = run_segment(&segment, steps);
    }
    return status;
}
