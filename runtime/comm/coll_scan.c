// SPDX-License-Identifier: BSD-3-Clause
#include "comm/coll_scan.h"

#include <string.h>

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

void gpsh_scan_sums(struct gpsh_piece *p, int count, size_t nelems)
{
    if (count > 0)
        (gpsh_fold_is_plain(p->c->type) ? sum_plain : sum_wide)(p, count, nelems);
}

// To each rank what it gets of a piece: the sums, or those of the rank before, and zeros.
static int give(struct gpsh_piece *p, size_t at, size_t nelems, bool inclusive)
{
    const struct gpsh_coll *c = p->c;
    struct gpsh_team *team = c->team;
    size_t bytes = nelems * c->size;
    char *zeros = p->out + (size_t)(team->n - 1) * p->most * c->size;
    int status = 0;
    if (!inclusive)
        memset(zeros, 0, bytes);
    for (int i = 0; i < team->n && status == 0; i++) {
        int rank = gpsh_coll_turn(team, i), sum = inclusive ? rank : rank - 1;
        const char *result = sum < 0 ? zeros : p->out + (size_t)sum * p->most * c->size;
        status = gpsh_coll_put(team, rank, c->dest + at * c->size, result, bytes);
    }
    return status == 0 ? gpsh_coll_settle(team) : status;
}

static int scan_share(struct gpsh_piece *p, bool inclusive)
{
    const struct gpsh_coll *c = p->c;
    size_t at, last, part;
    int status = 0;
    gpsh_piece_share(c, c->team->my_rank, &at, &last);
    for (; at < last && status == 0; at += part) {
        part = last - at < p->most ? last - at : p->most;
        status = gpsh_piece_read(p, at * c->size, part);
        if (status < 0)
            return status;
        gpsh_scan_sums(p, c->team->n - !inclusive, part);
        status = give(p, at, part, inclusive);
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

int gpsh_scan_by_shares(const struct gpsh_coll *c, bool inclusive)
{
    return gpsh_piece_run(c, (size_t)c->team->n, inclusive ? inscan_share : exscan_share);
}
