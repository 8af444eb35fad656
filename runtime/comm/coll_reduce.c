// SPDX-License-Identifier: BSD-3-Clause
// Reductions and scans: folded from the left in the order of the ranks, whoever folds.
#include <stdlib.h>
#include <string.h>

#include "comm/coll.h"

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

// A piece at a time, with room for what has to be fetched.
struct piece {
    const struct gpsh_coll *c;
    size_t most;   // elements of a piece
    char *out;     // results: `outs` pieces
    char *fetched; // sources: n pieces
    char *memory;  // to be freed
};

static int piece_begin(struct piece *p, const struct gpsh_coll *c, size_t outs)
{
    enum { NEAR_BYTES = 16384, FAR_BYTES = 65536 };
    size_t n = (size_t)c->team->n, pieces = outs + n;
    size_t bytes = gpsh_coll_direct(c) && !gpsh.device_heap ? NEAR_BYTES : FAR_BYTES;
    char *memory = malloc(bytes * pieces);
    *p = (struct piece){.c = c, .memory = memory};
    if (!memory) { // the others are in the operation already: small pieces then
        bytes = GPSH_TEAM_WORK * gpsh_team_room(gpsh.n_pes) / pieces / 16 * 16;
        memory = c->team->work;
    }
    p->most = bytes / c->size;
    p->out = memory;
    p->fetched = memory + outs * bytes;
    return p->most ? 0
                   : gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "%s: no host memory for %d sources", c->what,
                               c->team->n);
}

// views[k] becomes nelems elements from `at` (bytes) on of object `sym` of ranks[k], or of rank k.
static int piece_gather(struct piece *p, const int *ranks, int count, const char *sym, size_t at,
                        size_t nelems)
{
    const struct gpsh_coll *c = p->c;
    struct gpsh_team *team = c->team;
    int status = 0;
    bool host = !gpsh.device_heap;
    for (int i = 0; i < count && status == 0; i++) {
        int k = (team->my_rank + i) % count, rank = ranks ? ranks[k] : k;
        const char *there = gpsh_coll_at(team, rank, sym + at);
        team->views[k] = there;
        if (there && host)
            continue;
        char *copy = p->fetched + (size_t)k * p->most * c->size;
        team->views[k] = copy;
        status = gpsh_coll_get(team, rank, copy, sym + at, nelems * c->size);
    }
    return status == 0 ? gpsh_coll_settle(team) : status;
}

static int piece_read(struct piece *p, size_t at, size_t nelems)
{
    return piece_gather(p, NULL, p->c->team->n, p->c->source, at, nelems);
}

// The elements that a rank folds of an operation on all of them.
static void share_of(const struct gpsh_coll *c, int rank, size_t *first, size_t *last)
{
    size_t n = (size_t)c->team->n, before = (size_t)rank;
    size_t line = c->size < 64 ? 64 / c->size : 1; // no two PEs write to one cache line
    size_t part = (c->nelems / n + line) / line * line;
    *first = part * before < c->nelems ? part * before : c->nelems;
    *last = *first + part < c->nelems ? *first + part : c->nelems;
}

static void my_share(const struct gpsh_coll *c, size_t *first, size_t *last)
{
    share_of(c, c->team->my_rank, first, last);
}

// The result of a piece is made in dest itself where the processor may, and else in p->out. In
// place an element of the own source is read before it is overwritten, and nobody else reads it.
static char *piece_result(const struct piece *p, char *dest)
{
    return gpsh.device_heap || !gpsh_coll_direct(p->c) ? p->out : dest;
}

static int reduce_share(struct piece *p)
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

static int scatter_share(struct piece *p)
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
static void scan_plain(struct piece *p, size_t nelems, bool inclusive)
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
static void scan_wide(struct piece *p, size_t nelems, bool inclusive)
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

static int scan_share(struct piece *p, bool inclusive)
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

static int inscan_share(struct piece *p)
{
    return scan_share(p, true);
}

static int exscan_share(struct piece *p)
{
    return scan_share(p, false);
}

// ---- Large, by nodes ----

// The rank's share of `sym` of `ranks`, folded, into this PE's dest. In place nobody else reads the
// elements that are overwritten.
static int fold_share(struct piece *p, int rank, const int *ranks, int count, const char *sym)
{
    const struct gpsh_coll *c = p->c;
    size_t at, last, part;
    int status = 0;
    for (share_of(c, rank, &at, &last); at < last && status == 0; at += part) {
        char *dest = c->dest + at * c->size, *result = gpsh.device_heap ? p->out : dest;
        part = last - at < p->most ? last - at : p->most;
        status = piece_gather(p, ranks, count, sym, at * c->size, part);
        if (status == 0) {
            gpsh_fold_all(c->type, c->op, result, c->team->views, count, 0, part);
            status = gpsh_coll_copy(dest, result, part * c->size);
        }
    }
    return status;
}

// This PE's dest has a rank's share: others get it.
static int push_share(const struct gpsh_coll *c, int rank, const int *ranks, int count)
{
    size_t first, last;
    int status = 0;
    share_of(c, rank, &first, &last);
    char *dest = c->dest + first * c->size;
    for (int i = 0; i < count && status == 0 && first < last; i++) {
        int to = ranks[(c->team->my_rank + i) % count];
        if (to != c->team->my_rank)
            status = gpsh_coll_push(c->team, to, dest, dest, (last - first) * c->size);
    }
    return status;
}

// The holders of a share (comm/team_nodes.h) fold it, each on its node, into their dests; the rank
// whose share it is folds those, and sends the result back to them; they pass it on in their nodes.
static int reduce_by_nodes(struct piece *p)
{
    const struct gpsh_coll *c = p->c;
    const struct gpsh_team *team = c->team;
    const struct gpsh_team_nodes *nodes = team->nodes;
    const int *mates = nodes->members + nodes->starts[nodes->mine];
    const int *holders = nodes->holders;
    int n_mates = nodes->sizes[nodes->mine], me = team->my_rank, status = 0;
    for (int rank = 0; rank < team->n && status == 0; rank++)
        if (gpsh_team_nodes_holder(nodes, rank, nodes->mine) == me)
            status = fold_share(p, rank, mates, n_mates, c->source);
    status = gpsh_coll_meet(c, status);
    if (status == 0)
        status = fold_share(p, me, holders, nodes->n, c->dest);
    if (status == 0)
        status = push_share(c, me, holders, nodes->n);
    status = gpsh_coll_meet(c, status);
    for (int rank = 0; rank < team->n && status == 0; rank++)
        if (gpsh_team_nodes_holder(nodes, rank, nodes->mine) == me)
            status = push_share(c, rank, mates, n_mates);
    return status;
}

// Whether no bit shows that nodes are folded first. Of several NaNs the first one wins: it is the
// same if the nodes follow each other in the team.
static bool any_order(const struct gpsh_coll *c)
{
    bool choice = c->op == GPSH_MIN || c->op == GPSH_MAX;
    return c->type <= GPSH_UINT64 || (choice && c->team->nodes->in_order);
}

// ---- The operations ----

// Members meet, share the work, and leave together.
static int by_shares(const struct gpsh_coll *c, size_t outs, int (*share)(struct piece *))
{
    struct piece piece;
    int status = gpsh_team_meet(c->team, c->what);
    if (status < 0)
        return status;
    status = piece_begin(&piece, c, outs);
    status = gpsh_coll_leave(c, status < 0 ? status : share(&piece));
    free(piece.memory);
    return status;
}

int gpsh_coll_reduce(const struct gpsh_coll *c)
{
    if (c->nelems * c->size <= gpsh_team_gather_most(c->team))
        return gather_small(c, c->team->n);
    return by_shares(c, 1, c->team->nodes && any_order(c) ? reduce_by_nodes : reduce_share);
}

int gpsh_coll_reducescatter(const struct gpsh_coll *c)
{
    return c->nelems * c->size <= gpsh_team_transpose_most(c->team)
               ? scatter_small(c)
               : by_shares(c, 1, scatter_share);
}

int gpsh_coll_scan(const struct gpsh_coll *c, bool inclusive)
{
    if (c->nelems * c->size <= gpsh_team_gather_most(c->team))
        return gather_small(c, c->team->my_rank + (inclusive ? 1 : 0));
    return by_shares(c, (size_t)c->team->n, inclusive ? inscan_share : exscan_share);
}
