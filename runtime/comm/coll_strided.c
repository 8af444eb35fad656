// SPDX-License-Identifier: BSD-3-Clause
// alltoalls.
#include <string.h>

#include "comm/coll.h"
#include "job/job.h"
#include "memory/heap.h"

// `count` elements, the strides in bytes. memcpy of a constant size is a load and a store.
static void copy_strided(char *to, size_t to_stride, const char *from, size_t from_stride,
                         size_t size, size_t count)
{
    for (size_t i = 0; i < count; i++, to += to_stride, from += from_stride)
        if (size == 8)
            memcpy(to, from, 8);
        else if (size == 4)
            memcpy(to, from, 4);
        else
            memcpy(to, from, size);
}

static char *dest_of(const struct gpsh_coll *c, int rank)
{
    return c->dest + (size_t)rank * c->nelems * (size_t)c->dst * c->size;
}

// Where this PE's part begins in the source of any rank, or the rank's part in this PE's.
static const char *source_of(const struct gpsh_coll *c, int rank)
{
    return c->source + (size_t)rank * c->nelems * (size_t)c->sst * c->size;
}

// Elements that lie side by side in this process's memory to this PE's part from `rank`, from
// element `first` on.
static int unpack(const struct gpsh_coll *c, int rank, size_t first, const char *from, size_t count)
{
    size_t stride = (size_t)c->dst * c->size;
    char *to = dest_of(c, rank) + first * stride;
    int status = 0;
    if (!gpsh_heap()->device)
        copy_strided(to, stride, from, c->size, c->size, count);
    else if (c->dst == 1)
        return gpsh_coll_copy(to, from, count * c->size);
    else
        for (size_t i = 0; i < count && status == 0; i++)
            status = gpsh_coll_copy(to + i * stride, from + i * c->size, c->size);
    return status;
}

static int strided_small(const struct gpsh_coll *c)
{
    struct gpsh_team *team = c->team;
    size_t bytes = c->nelems * c->size, all = (size_t)team->n * c->nelems,
           stride = (size_t)c->sst * c->size;
    char *packed = gpsh_team_work(team, GPSH_WORK_IN);
    int status = 0;
    if (gpsh_heap()->device)
        for (size_t i = 0; i < all && status == 0; i++)
            status = gpsh_coll_copy(packed + i * c->size, c->source + i * stride, c->size);
    else
        copy_strided(packed, c->size, c->source, stride, c->size, all);
    if (status < 0)
        return gpsh_team_break(team, status);
    status = gpsh_team_transpose(team, packed, bytes, c->what);
    for (int rank = 0; rank < team->n && status == 0; rank++)
        status = unpack(c, rank, 0, team->views[rank], c->nelems);
    return status < 0 ? gpsh_team_break(team, status) : 0;
}

// This PE's part of a rank's source, element by element where it is not mapped: as many at a time
// as the team's private memory holds.
static int fetch_part(const struct gpsh_coll *c, int rank)
{
    struct gpsh_team *team = c->team;
    size_t stride = (size_t)c->sst * c->size, part;
    size_t most = GPSH_TEAM_WORK * gpsh_team_room(gpsh_job()->n_pes) / c->size;
    const char *from = source_of(c, team->my_rank);
    int status = 0;
    for (size_t at = 0; at < c->nelems && status == 0; at += part) {
        part = c->nelems - at < most ? c->nelems - at : most;
        size_t pieces = c->sst == 1 ? 1 : part, bytes = part / pieces * c->size;
        for (size_t i = 0; i < pieces && status == 0; i++)
            status = gpsh_coll_get(team, rank, team->work + i * c->size, from + (at + i) * stride,
                                   bytes);
        if (status == 0)
            status = gpsh_coll_settle(team);
        if (status == 0)
            status = unpack(c, rank, at, team->work, part);
    }
    return status;
}

int gpsh_coll_alltoalls(const struct gpsh_coll *c)
{
    struct gpsh_team *team = c->team;
    if (c->nelems * c->size <= gpsh_team_transpose_most(team))
        return strided_small(c);
    int status = gpsh_team_meet(team, c->what);
    if (status < 0)
        return status;
    for (int i = 0; i < team->n && status == 0; i++) {
        int rank = gpsh_coll_turn(team, i);
        const char *there = gpsh_coll_at(team, rank, source_of(c, team->my_rank));
        if (there && !gpsh_heap()->device)
            copy_strided(dest_of(c, rank), (size_t)c->dst * c->size, there,
                         (size_t)c->sst * c->size, c->size, c->nelems);
        else
            status = fetch_part(c, rank);
    }
    return status < 0 ? gpsh_team_break(team, status) : gpsh_team_meet(team, c->what);
}
