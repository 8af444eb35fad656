// SPDX-License-Identifier: BSD-3-Clause
#include "comm/coll_piece.h"

#include <stdlib.h>

#include "job/job.h"
#include "memory/heap.h"

int gpsh_piece_begin(struct gpsh_piece *p, const struct gpsh_coll *c, size_t outs, size_t least)
{
    enum { NEAR_BYTES = 16384, FAR_BYTES = 65536 };
    size_t n = (size_t)c->team->n, pieces = outs + n;
    size_t bytes = gpsh_coll_direct(c) && !gpsh_heap()->device ? NEAR_BYTES : FAR_BYTES;
    char *memory = malloc(bytes * pieces);
    *p = (struct gpsh_piece){.c = c, .memory = memory};
    if (!memory) { // the others are in the operation already: small pieces then
        bytes = GPSH_TEAM_WORK * gpsh_team_room(gpsh_job()->n_pes) / pieces / 16 * 16;
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
    return status == 0 && fetches ? gpsh_coll_settle(team) : status;
}

int gpsh_piece_read(struct gpsh_piece *p, size_t at, size_t nelems)
{
    return gpsh_piece_gather(p, NULL, p->c->team->n, p->c->source, at, nelems);
}

void gpsh_piece_share(const struct gpsh_coll *c, int rank, size_t *first, size_t *last)
{
    size_t n = (size_t)c->team->n, before = (size_t)rank;
    size_t line = c->size < 64 ? 64 / c->size : 1; // no two PEs write to one cache line
    size_t part = (c->nelems / n + line) / line * line;
    *first = part * before < c->nelems ? part * before : c->nelems;
    *last = *first + part < c->nelems ? *first + part : c->nelems;
}

int gpsh_piece_no_copy(const struct gpsh_coll *c, size_t bytes)
{
    return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY,
                     "%s: no host memory for a copy of %zu bytes of source, which dest is, too; "
                     "free some, or pass a dest apart from source, which needs no copy",
                     c->what, bytes);
}

int gpsh_piece_run(const struct gpsh_coll *c, size_t outs, int (*share)(struct gpsh_piece *))
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
