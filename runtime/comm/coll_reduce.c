// SPDX-License-Identifier: BSD-3-Clause
// Reductions and scans: folded from the left in the order of the ranks, whoever folds.
#include <string.h>

#include "comm/coll_scan.h"
#include "core/error.h"
#include "memory/heap.h"

// Where a small result is made.
static char *small_result(const struct gpsh_coll *c)
{
    return gpsh_heap()->device ? gpsh_team_work(c->team, GPSH_WORK_OUT) : c->dest;
}

// ---- Small ----

static int fold_small(const struct gpsh_coll *c, int sources)
{
    size_t bytes = c->nelems * c->size;
    char *result = small_result(c);
    if (sources)
        gpsh_fold_all(c->type, c->op, result, c->team->views, sources, 0, c->nelems);
    else
        memset(result, 0, bytes); // the exclusive scan's first
    return gpsh_coll_end(c, gpsh_coll_copy(c->dest, result, bytes));
}

static int gather_small(const struct gpsh_coll *c, int sources)
{
    size_t bytes = c->nelems * c->size;
    const char *mine = gpsh_coll_bring(c->team, c->source, bytes, GPSH_WORK_IN);
    if (!mine)
        return gpsh_coll_end(c, gpsh_last_error_code());
    int status = gpsh_team_gather(c->team, mine, bytes, c->what);
    return status < 0 ? status : fold_small(c, sources);
}

static int scatter_small(const struct gpsh_coll *c)
{
    size_t bytes = c->nelems * c->size, all = (size_t)c->team->n * bytes;
    const char *mine = gpsh_coll_bring(c->team, c->source, all, GPSH_WORK_IN);
    if (!mine)
        return gpsh_coll_end(c, gpsh_last_error_code());
    int status = gpsh_team_transpose(c->team, mine, bytes, c->what);
    return status < 0 ? status : fold_small(c, c->team->n);
}

// ---- Large: each element has one PE that reads it from all sources and folds it ----

// The result of a piece is made in dest itself where the processor may, and else in p->out. In
// place an element of the own source is read before it is overwritten, and nobody else reads it.
static char *piece_result(const struct gpsh_piece *p, char *dest)
{
    return gpsh_heap()->device || !gpsh_coll_direct(p->c) ? p->out : dest;
}

static int reduce_share(struct gpsh_piece *p)
{
    const struct gpsh_coll *c = p->c;
    struct gpsh_team *team = c->team;
    size_t at, last, part;
    int status = 0;
    for (gpsh_piece_share(c, team->my_rank, &at, &last); at < last && status == 0; at += part) {
        part = last - at < p->most ? last - at : p->most;
        char *dest = c->dest + at * c->size, *result = piece_result(p, dest);
        status = gpsh_piece_read(p, at * c->size, part);
        if (status == 0)
            gpsh_fold_all(c->type, c->op, result, team->views, team->n, 0, part);
        for (int i = 0; i < team->n && status == 0; i++)
            status = gpsh_coll_put(team, gpsh_coll_turn(team, i), dest, result, part * c->size);
        if (status == 0)
            status = gpsh_coll_settle(team);
    }
    return status;
}

// Elements of all sources, from `first` on, to this PE's own memory.
static int fold_to(struct gpsh_piece *p, char *to, size_t first, size_t nelems)
{
    const struct gpsh_coll *c = p->c;
    size_t part;
    int status = 0;
    for (size_t at = 0; at < nelems && status == 0; at += part) {
        part = nelems - at < p->most ? nelems - at : p->most;
        status = gpsh_piece_read(p, (first + at) * c->size, part);
        if (status == 0) {
            char *dest = to + at * c->size, *result = piece_result(p, dest);
            gpsh_fold_all(c->type, c->op, result, c->team->views, c->team->n, 0, part);
            status = gpsh_coll_copy(dest, result, part * c->size);
        }
    }
    return status;
}

static int scatter_share(struct gpsh_piece *p)
{
    const struct gpsh_coll *c = p->c;
    return fold_to(p, c->dest, (size_t)c->team->my_rank * c->nelems, c->nelems);
}

// The same as reduce_share where members share nodes: results cross to each node once.
static int reduce_by_nodes(struct gpsh_piece *p)
{
    struct gpsh_coll results = *p->c;
    const struct gpsh_coll_parts parts = {.whole = results.nelems * results.size};
    struct gpsh_coll_share mine = gpsh_coll_part(&results, &parts, results.team->my_rank);
    results.source = results.dest + mine.first;
    int status =
        fold_to(p, results.dest + mine.first, mine.first / results.size, mine.bytes / results.size);
    return status == 0 ? gpsh_coll_nodes_collect(&results, &parts) : status;
}

// A partial result has no room in dest.
static bool is_wide(const struct gpsh_coll *c)
{
    bool half = c->type == GPSH_HALF || c->type == GPSH_BFLOAT16;
    return half && c->op != GPSH_MIN && c->op != GPSH_MAX;
}

// Whether the way from node to node is short for so many bytes of each node, as measured:
// docs/adr/0052-sums-from-node-to-node.md.
static bool chain_pays(const struct gpsh_coll *c, size_t per_node)
{
    return gpsh_coll_chain_fits(c->team) &&
           c->nelems * c->size >= (size_t)(c->team->nodes->n - 2) * per_node;
}

// Whether each element goes through all nodes once. Bits show the order of folding only where that
// of the nodes is not the team's; integers do not show it. Of several NaNs the first one wins.
static bool goes_by_nodes(const struct gpsh_coll *c)
{
    enum { PER_NODE = 16384 };
    return chain_pays(c, PER_NODE) &&
           (c->type <= GPSH_UINT64 || (c->team->nodes->in_order && !is_wide(c)));
}

// The same of partial results that are twice as large: with four members for each node they are
// fewer messages than the sources.
static bool wide_goes_by_nodes(const struct gpsh_coll *c)
{
    enum { PER_NODE = 16384, LEAST = 4096 };
    return is_wide(c) && c->nelems * c->size >= LEAST && chain_pays(c, PER_NODE) &&
           c->team->n >= 4 * c->team->nodes->n && gpsh_coll_chain_wide_fits(c->team);
}

// A rank's sum ends in the middle of its node: all types show the order. There is no way back.
static bool scan_goes_by_nodes(const struct gpsh_coll *c)
{
    enum { PER_NODE = 2048 };
    return chain_pays(c, PER_NODE) && c->team->nodes->in_order && !is_wide(c);
}

// Nodes of two would save nothing where an element crosses to each node once more.
static bool saves_messages(const struct gpsh_team *team)
{
    return team->nodes && team->n > 2 * team->nodes->n;
}

// ---- The operations ----

int gpsh_coll_reduce(const struct gpsh_coll *c)
{
    if (c->nelems * c->size <= gpsh_team_gather_most(c->team))
        return gather_small(c, c->team->n);
    if (goes_by_nodes(c))
        return gpsh_coll_chain_reduce(c);
    if (wide_goes_by_nodes(c))
        return gpsh_coll_chain_wide(c);
    return gpsh_piece_run(c, 1, saves_messages(c->team) ? reduce_by_nodes : reduce_share);
}

int gpsh_coll_reducescatter(const struct gpsh_coll *c)
{
    if (c->nelems * c->size <= gpsh_team_transpose_most(c->team))
        return scatter_small(c);
    bool saves = goes_by_nodes(c) && saves_messages(c->team);
    return saves ? gpsh_coll_nodes_reducescatter(c) : gpsh_piece_run(c, 1, scatter_share);
}

int gpsh_coll_scan(const struct gpsh_coll *c, bool inclusive)
{
    if (c->nelems * c->size <= gpsh_team_gather_most(c->team))
        return gather_small(c, c->team->my_rank + (inclusive ? 1 : 0));
    return scan_goes_by_nodes(c) ? gpsh_coll_chain_scan(c, inclusive)
                                 : gpsh_scan_by_shares(c, inclusive);
}
