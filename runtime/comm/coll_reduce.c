// SPDX-License-Identifier: BSD-3-Clause
// Reductions and scans: folded from the left in the order of the ranks, whoever folds.
#include <stdlib.h>
#include <string.h>

#include "comm/coll_piece.h"

// Where a small result is made.
static char *small_result(const struct gpsh_coll *c)
{
    return gpsh.device_heap ? gpsh_team_work(c->team, GPSH_WORK_OUT) : c->dest;
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

static int piece_read(struct gpsh_piece *p, size_t at, size_t nelems)
{
    return gpsh_piece_gather(p, NULL, p->c->team->n, p->c->source, at, nelems);
}

static void my_share(const struct gpsh_coll *c, size_t *first, size_t *last)
{
    gpsh_piece_share(c, c->team->my_rank, first, last);
}

// The result of a piece is made in dest itself where the processor may, and else in p->out. In
// place an element of the own source is read before it is overwritten, and nobody else reads it.
static char *piece_result(const struct gpsh_piece *p, char *dest)
{
    return gpsh.device_heap || !gpsh_coll_direct(p->c) ? p->out : dest;
}

static int reduce_share(struct gpsh_piece *p)
{
    const struct gpsh_coll *c = p->c;
    struct gpsh_team *team = c->team;
    size_t at, last, part;
    int status = 0;
    for (my_share(c, &at, &last); at < last && status == 0; at += part) {
        part = last - at < p->most ? last - at : p->most;
        char *dest = c->dest + at * c->size, *result = piece_result(p, dest);
        status = piece_read(p, at * c->size, part);
        if (status == 0)
            gpsh_fold_all(c->type, c->op, result, team->views, team->n, 0, part);
        for (int i = 0; i < team->n && status == 0; i++)
            status = gpsh_coll_put(team, gpsh_coll_turn(team, i), dest, result, part * c->size);
        if (status == 0)
            status = gpsh_coll_settle(team);
    }
    return status;
}

static int scatter_share(struct gpsh_piece *p)
{
    const struct gpsh_coll *c = p->c;
    size_t first = (size_t)c->team->my_rank * c->nelems, part;
    int status = 0;
    for (size_t at = 0; at < c->nelems && status == 0; at += part) {
        part = c->nelems - at < p->most ? c->nelems - at : p->most;
        status = piece_read(p, (first + at) * c->size, part);
        if (status == 0) {
            char *dest = c->dest + at * c->size, *result = piece_result(p, dest);
            gpsh_fold_all(c->type, c->op, result, c->team->views, c->team->n, 0, part);
            status = gpsh_coll_copy(dest, result, part * c->size);
        }
    }
    return status;
}

// Each rank's result is the one before it and one source more.
static void scan_plain(struct gpsh_piece *p, size_t nelems, bool inclusive)
{
    const struct gpsh_coll *c = p->c;
    const char *const *sources = c->team->views;
    size_t piece = p->most * c->size, bytes = nelems * c->size;
    char *first = inclusive ? p->out : p->out + piece;
    if (!inclusive)
        memset(p->out, 0, bytes);
    if (!inclusive && c->team->n == 1)
        return;
    memcpy(first, sources[0], bytes);
    for (int rank = 1; rank < c->team->n - !inclusive; rank++)
        gpsh_fold_pair(c->type, c->op, first + (size_t)rank * piece,
                       first + (size_t)(rank - 1) * piece, sources[rank], nelems);
}

// out[r] becomes the sum of the sources 0 .. r, or 0 .. r - 1, in blocks of the accumulator's size.
static void scan_wide(struct gpsh_piece *p, size_t nelems, bool inclusive)
{
    const struct gpsh_coll *c = p->c;
    size_t piece = p->most * c->size, part;
    struct gpsh_fold acc;
    for (size_t at = 0; at < nelems; at += part) {
        part = nelems - at < GPSH_FOLD_BLOCK ? nelems - at : GPSH_FOLD_BLOCK;
        char *out = p->out + at * c->size;
        if (!inclusive)
            memset(out, 0, part * c->size);
        for (int rank = 0; rank < c->team->n; rank++) {
            const char *from = c->team->views[rank] + at * c->size;
            size_t to = (size_t)(inclusive ? rank : rank + 1);
            if (rank == 0)
                gpsh_fold_load(c->type, &acc, from, part);
            else
                gpsh_fold_step(c->type, c->op, &acc, from, part);
            if (to < (size_t)c->team->n)
                gpsh_fold_store(c->type, &acc, out + to * piece, part);
        }
    }
}

static int scan_share(struct gpsh_piece *p, bool inclusive)
{
    const struct gpsh_coll *c = p->c;
    struct gpsh_team *team = c->team;
    size_t at, last, part;
    int status = 0;
    for (my_share(c, &at, &last); at < last && status == 0; at += part) {
        part = last - at < p->most ? last - at : p->most;
        status = piece_read(p, at * c->size, part);
        if (status == 0)
            (gpsh_fold_is_plain(c->type) ? scan_plain : scan_wide)(p, part, inclusive);
        for (int i = 0; i < team->n && status == 0; i++) {
            int rank = gpsh_coll_turn(team, i);
            status = gpsh_coll_put(team, rank, c->dest + at * c->size,
                                   p->out + (size_t)rank * p->most * c->size, part * c->size);
        }
        if (status == 0)
            status = gpsh_coll_settle(team);
    }
    return status;
}

static int inscan_share(struct gpsh_piece *p)
{
    return scan_share(p, true);
}

static int exscan_share(struct gpsh_piece *p)
{
    return scan_share(p, false);
}

// Whether each element goes through all nodes once. Bits show the order of folding only where that
// of the nodes is not the team's; integers do not show it. Of several NaNs the first one wins. A
// half's sum would have to travel as a float, for which dest has no room.
static bool goes_by_nodes(const struct gpsh_coll *c)
{
    enum { PER_NODE = 16384 }; // measured: docs/adr/0052-sums-from-node-to-node.md
    const struct gpsh_team_nodes *nodes = c->team->nodes;
    if (!gpsh_coll_chain_fits(c->team) || c->nelems * c->size < (size_t)(nodes->n - 2) * PER_NODE)
        return false;
    bool choice = c->op == GPSH_MIN || c->op == GPSH_MAX;
    bool wide = c->type == GPSH_HALF || c->type == GPSH_BFLOAT16;
    return c->type <= GPSH_UINT64 || (nodes->in_order && (choice || !wide));
}

// ---- The operations ----

// Members meet, share the work, and leave together.
static int by_shares(const struct gpsh_coll *c, size_t outs, int (*share)(struct gpsh_piece *))
{
    struct gpsh_piece piece;
    int status = gpsh_team_meet(c->team, c->what);
    if (status < 0)
        return status;
    status = gpsh_piece_begin(&piece, c, outs);
    status = gpsh_coll_leave(c, status < 0 ? status : share(&piece));
    gpsh_coll_free(status, piece.memory);
    return status;
}

int gpsh_coll_reduce(const struct gpsh_coll *c)
{
    if (c->nelems * c->size <= gpsh_team_gather_most(c->team))
        return gather_small(c, c->team->n);
    if (goes_by_nodes(c))
        return gpsh_coll_chain_reduce(c);
    return by_shares(c, 1, reduce_share);
}

int gpsh_coll_reducescatter(const struct gpsh_coll *c)
{
    if (c->nelems * c->size <= gpsh_team_transpose_most(c->team))
        return scatter_small(c);
    // A part crosses to each node twice: nodes of two would save nothing.
    const struct gpsh_team_nodes *nodes = c->team->nodes;
    bool saves = goes_by_nodes(c) && c->team->n > 2 * nodes->n;
    return saves ? gpsh_coll_nodes_reducescatter(c) : by_shares(c, 1, scatter_share);
}

int gpsh_coll_scan(const struct gpsh_coll *c, bool inclusive)
{
    if (c->nelems * c->size <= gpsh_team_gather_most(c->team))
        return gather_small(c, c->team->my_rank + (inclusive ? 1 : 0));
    return by_shares(c, (size_t)c->team->n, inclusive ? inscan_share : exscan_share);
}
