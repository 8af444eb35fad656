// SPDX-License-Identifier: BSD-3-Clause
// Reductions and scans: folded from the left in the order of the ranks, whoever folds.
#include <stdlib.h>
#include <string.h>

#include "comm/coll.h"
#include "core/error.h"
#include "job/job.h"
#include "memory/heap.h"

// ---- Small ----

static int fold_small(const struct gpsh_coll *c, int sources)
{
    size_t bytes = c->nelems * c->size;
    char *result = gpsh_heap()->device ? gpsh_team_work(c->team, GPSH_WORK_OUT) : c->dest;
    if (sources)
        gpsh_fold_all(c->type, c->op, result, c->team->views, sources, 0, c->nelems);
    else
        memset(result, 0, bytes); // the exclusive scan's first
    return gpsh_coll_end(c, gpsh_coll_copy(c->dest, result, bytes));
}

static int gather_small(const struct gpsh_coll *c, int sources)
{
    size_t bytes = c->nelems * c->size;
    const char *mine = gpsh_coll_readable(c->team, c->source, bytes);
    if (!mine)
        return gpsh_coll_end(c, gpsh_last_error_code());
    int status = gpsh_team_allgather(c->team, mine, bytes, c->what);
    return status < 0 ? status : fold_small(c, sources);
}

int gpsh_coll_reduce_small(const struct gpsh_coll *c)
{
    return gather_small(c, c->team->n);
}

static void add(const void *self, void *to, const void *left, const void *right)
{
    const struct gpsh_coll *c = self;
    gpsh_fold_pair(c->type, c->op, to, left, right, c->nelems);
}

static int double_part(const struct gpsh_coll *c)
{
    const struct gpsh_team_fold fold = {add, c};
    size_t bytes = c->nelems * c->size;
    const char *mine = gpsh_coll_readable(c->team, c->source, bytes);
    if (!mine)
        return gpsh_coll_end(c, gpsh_last_error_code());
    int status = gpsh_team_allreduce(c->team, mine, bytes, &fold, c->what);
    if (status == 0)
        status = gpsh_coll_end(c, gpsh_coll_copy(c->dest, c->team->views[0], bytes));
    return status;
}

size_t gpsh_coll_doubling_most(const struct gpsh_coll *c)
{
    enum { FEW = 16 };
    size_t parts = c->team->n <= FEW ? 3 : 2;
    return parts * (gpsh_team_allreduce_most(c->team) / c->size * c->size);
}

int gpsh_coll_reduce_doubling(const struct gpsh_coll *c)
{
    size_t most = gpsh_team_allreduce_most(c->team) / c->size;
    struct gpsh_coll part = *c;
    int status = 0;
    for (size_t at = 0; at < c->nelems && status == 0; at += part.nelems) {
        part.nelems = c->nelems - at < most ? c->nelems - at : most;
        part.source = c->source + at * c->size;
        part.dest = c->dest + at * c->size;
        status = double_part(&part);
    }
    return status;
}

int gpsh_coll_scan_small(const struct gpsh_coll *c)
{
    return gather_small(c, c->team->my_rank + (c->kind == GPUSHMEM_COLL_INSCAN));
}

int gpsh_coll_reducescatter_small(const struct gpsh_coll *c)
{
    size_t bytes = c->nelems * c->size, all = (size_t)c->team->n * bytes;
    const char *mine = gpsh_coll_readable(c->team, c->source, all);
    if (!mine)
        return gpsh_coll_end(c, gpsh_last_error_code());
    int status = gpsh_team_alltoall(c->team, mine, bytes, c->what);
    return status < 0 ? status : fold_small(c, c->team->n);
}

// ---- Pieces ----

enum { NEAR_BYTES = 16384, FAR_BYTES = 65536, FAR_MOST_BYTES = 524288, FAR_ALL_BYTES = 4 << 20 };

// Each piece costs a trip to the others and back: where there are few, they are large.
static size_t far_bytes(size_t pieces)
{
    size_t bytes = FAR_ALL_BYTES / pieces / FAR_BYTES * FAR_BYTES;
    return bytes < FAR_BYTES ? FAR_BYTES : bytes > FAR_MOST_BYTES ? FAR_MOST_BYTES : bytes;
}

int gpsh_piece_begin(struct gpsh_piece *p, const struct gpsh_coll *c, size_t outs, size_t least)
{
    size_t n = (size_t)c->team->n, pieces = outs + n;
    size_t bytes = gpsh_coll_direct(c) && !gpsh_heap()->device ? NEAR_BYTES : far_bytes(pieces);
    char *memory = malloc(bytes * pieces);
    *p = (struct gpsh_piece){.c = c, .memory = memory};
    if (!memory) { // the others are in the operation already: small pieces then
        bytes = GPSH_TEAM_WORK * c->team->room / pieces / 16 * 16;
        memory = c->team->work;
    }
    p->most = bytes / c->size;
    p->out = memory;
    p->fetched = memory + outs * bytes;
    if (p->most >= least)
        return 0;
    return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY,
                     "%s: no host memory for pieces of %d sources, %zu bytes each; free some, or "
                     "set a smaller GPUSHMEM_HEAP_SIZE",
                     c->what, c->team->n, least * c->size);
}

int gpsh_piece_gather(struct gpsh_piece *p, const int *ranks, int count, const char *sym, size_t at,
                      size_t nelems)
{
    const struct gpsh_coll *c = p->c;
    struct gpsh_team *team = c->team;
    int status = 0;
    bool host = !gpsh_heap()->device, fetches = false;
    for (int i = 0; i < count && status == 0; i++) {
        int k = (team->my_rank + i) % count, rank = ranks ? ranks[k] : k;
        const char *there = gpsh_coll_at(team, rank, sym + at);
        team->views[k] = there;
        if (there && host)
            continue;
        char *copy = p->fetched + (size_t)k * p->most * c->size;
        team->views[k] = copy;
        fetches = fetches || !there;
        status = gpsh_coll_get(team, rank, copy, sym + at, nelems * c->size);
    }
    return status == 0 && fetches ? gpsh_coll_quiet(team) : status;
}

void gpsh_piece_share(const struct gpsh_coll *c, int rank, size_t *first, size_t *last)
{
    size_t n = (size_t)c->team->n, before = (size_t)rank;
    size_t line = c->size < 64 ? 64 / c->size : 1; // no two PEs write to one cache line
    size_t part = (c->nelems / n + line) / line * line;
    *first = part * before < c->nelems ? part * before : c->nelems;
    *last = *first + part < c->nelems ? *first + part : c->nelems;
}

// Each sum is the one before it and one view more.
static void sum_plain(struct gpsh_piece *p, int count, size_t nelems)
{
    const struct gpsh_coll *c = p->c;
    const char *const *views = c->team->views;
    size_t piece = p->most * c->size;
    char *sum = memcpy(p->out, views[0], nelems * c->size);
    for (int i = 1; i < count; i++, sum += piece)
        gpsh_fold_pair(c->type, c->op, sum + piece, sum, views[i], nelems);
}

// In blocks of the accumulator's size.
static void sum_wide(struct gpsh_piece *p, int count, size_t nelems)
{
    const struct gpsh_coll *c = p->c;
    size_t piece = p->most * c->size, part;
    struct gpsh_fold acc;
    for (size_t at = 0; at < nelems; at += part) {
        part = nelems - at < GPSH_FOLD_BLOCK ? nelems - at : GPSH_FOLD_BLOCK;
        for (int i = 0; i < count; i++) {
            const char *from = c->team->views[i] + at * c->size;
            if (i == 0)
                gpsh_fold_load(c->type, &acc, from, part);
            else
                gpsh_fold_step(c->type, c->op, &acc, from, part);
            gpsh_fold_store(c->type, &acc, p->out + (size_t)i * piece + at * c->size, part);
        }
    }
}

void gpsh_piece_sums(struct gpsh_piece *p, int count, size_t nelems)
{
    if (count > 0)
        (gpsh_fold_is_plain(p->c->type) ? sum_plain : sum_wide)(p, count, nelems);
}

// ---- Shares ----

// What becomes of elements first .. last of all sources, a piece at a time: `done` gets those that
// the views show, from `at` on.
typedef int piece_fn(struct gpsh_piece *p, size_t at, size_t nelems);

static int for_pieces(struct gpsh_piece *p, size_t first, size_t last, piece_fn *done)
{
    const struct gpsh_coll *c = p->c;
    size_t part;
    int status = 0;
    for (size_t at = first; at < last && status == 0; at += part) {
        part = last - at < p->most ? last - at : p->most;
        status = gpsh_piece_gather(p, NULL, c->team->n, c->source, at * c->size, part);
        if (status == 0)
            status = done(p, at, part);
    }
    return status;
}

// Folded in dest itself where the processor may, and else in p->out. In place an element of the own
// source is read before it is overwritten, and nobody else reads it.
static char *fold(struct gpsh_piece *p, char *dest, size_t nelems)
{
    const struct gpsh_coll *c = p->c;
    char *result = gpsh_heap()->device || !gpsh_coll_direct(c) ? p->out : dest;
    gpsh_fold_all(c->type, c->op, result, c->team->views, c->team->n, 0, nelems);
    return result;
}

static int reduce_piece(struct gpsh_piece *p, size_t at, size_t nelems)
{
    const struct gpsh_coll *c = p->c;
    struct gpsh_team *team = c->team;
    char *dest = c->dest + at * c->size, *result = fold(p, dest, nelems);
    int status = 0;
    for (int i = 0; i < team->n && status == 0; i++)
        status = gpsh_coll_put(team, gpsh_coll_turn(team, i), dest, result, nelems * c->size);
    return status == 0 ? gpsh_coll_quiet(team) : status;
}

static int reduce_share(struct gpsh_piece *p)
{
    size_t first, last;
    gpsh_piece_share(p->c, p->c->team->my_rank, &first, &last);
    return for_pieces(p, first, last, reduce_piece);
}

static int own_piece(struct gpsh_piece *p, size_t at, size_t nelems)
{
    const struct gpsh_coll *c = p->c;
    char *dest = c->dest + at * c->size;
    return gpsh_coll_copy(dest, fold(p, dest, nelems), nelems * c->size);
}

static int scattered_piece(struct gpsh_piece *p, size_t at, size_t nelems)
{
    return own_piece(p, at - (size_t)p->c->team->my_rank * p->c->nelems, nelems);
}

static int scatter_share(struct gpsh_piece *p)
{
    size_t first = (size_t)p->c->team->my_rank * p->c->nelems;
    return for_pieces(p, first, first + p->c->nelems, scattered_piece);
}

static int nodes_share(struct gpsh_piece *p)
{
    struct gpsh_coll results = *p->c;
    const struct gpsh_coll_parts parts = {.whole = results.nelems * results.size};
    struct gpsh_coll_share mine = gpsh_coll_part(&results, &parts, results.team->my_rank);
    size_t first = mine.first / results.size, last = first + mine.bytes / results.size;
    int status = for_pieces(p, first, last, own_piece);
    results.source = results.dest + mine.first;
    return status == 0 ? gpsh_coll_nodes_collect(&results, &parts) : status;
}

// To each rank what it gets of a piece: the sums, or those of the rank before, and zeros.
static int scan_piece(struct gpsh_piece *p, size_t at, size_t nelems)
{
    const struct gpsh_coll *c = p->c;
    struct gpsh_team *team = c->team;
    int inclusive = c->kind == GPUSHMEM_COLL_INSCAN, status = 0;
    size_t bytes = nelems * c->size;
    char *zeros = p->out + (size_t)(team->n - 1) * p->most * c->size;
    gpsh_piece_sums(p, team->n - !inclusive, nelems);
    if (!inclusive)
        memset(zeros, 0, bytes);
    for (int i = 0; i < team->n && status == 0; i++) {
        int rank = gpsh_coll_turn(team, i), sum = rank - !inclusive;
        const char *result = sum < 0 ? zeros : p->out + (size_t)sum * p->most * c->size;
        status = gpsh_coll_put(team, rank, c->dest + at * c->size, result, bytes);
    }
    return status == 0 ? gpsh_coll_quiet(team) : status;
}

static int scan_share(struct gpsh_piece *p)
{
    size_t first, last;
    gpsh_piece_share(p->c, p->c->team->my_rank, &first, &last);
    return for_pieces(p, first, last, scan_piece);
}

// Members meet, share the work, with room for `outs` results each, and leave together.
static int run(const struct gpsh_coll *c, size_t outs, int (*share)(struct gpsh_piece *))
{
    struct gpsh_piece piece;
    int status = gpsh_coll_enter(c);
    if (status < 0)
        return status;
    status = gpsh_piece_begin(&piece, c, outs, 1);
    status = gpsh_coll_leave(c, status < 0 ? status : share(&piece));
    gpsh_coll_free(status, piece.memory);
    return status;
}

int gpsh_coll_reduce_shares(const struct gpsh_coll *c)
{
    return run(c, 1, reduce_share);
}

int gpsh_coll_reduce_nodes(const struct gpsh_coll *c)
{
    return run(c, 1, nodes_share);
}

int gpsh_coll_reducescatter_shares(const struct gpsh_coll *c)
{
    return run(c, 1, scatter_share);
}

int gpsh_coll_scan_shares(const struct gpsh_coll *c)
{
    return run(c, (size_t)c->team->n, scan_share);
}
