// SPDX-License-Identifier: BSD-3-Clause
// Collectives that only move data.
#include <stdlib.h>
#include <string.h>

#include "comm/coll.h"

// ---- broadcast ----

static int broadcast_small(const struct gpsh_coll *c, size_t bytes)
{
    struct gpsh_team *team = c->team;
    const char *mine = NULL;
    if (team->my_rank == c->root) {
        mine = gpsh_coll_bring(team, c->source, bytes, GPSH_WORK_IN);
        if (!mine)
            return gpsh_coll_end(c, gpsh_last_error_code());
    }
    int status = gpsh_team_cast(team, c->root, mine, bytes, c->what);
    return status < 0 ? status
                      : gpsh_coll_end(c, gpsh_coll_copy(c->dest, team->views[c->root], bytes));
}

// R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of collective communication operations in
// MPICH", 2005: the root sends each rank a part of its own, which that rank passes on to all
// others.
static int broadcast_parts(const struct gpsh_coll *c, size_t bytes)
{
    struct gpsh_team *team = c->team;
    const struct gpsh_coll_parts parts = {.whole = bytes};
    int status = 0, n = team->n;
    if (team->my_rank == c->root) {
        status = gpsh_coll_copy(c->dest, c->source, bytes);
        for (int i = 1; i < n && status == 0; i++) {
            int rank = gpsh_coll_turn(team, i);
            struct gpsh_coll_share share = gpsh_coll_part(c, &parts, rank);
            if (share.bytes)
                status = gpsh_coll_push(team, rank, c->dest + share.first, c->source + share.first,
                                        share.bytes);
        }
        if (status == 0)
            status = gpsh_coll_settle(team);
    }
    if (status == 0)
        status = gpsh_team_meet(team, c->what);
    struct gpsh_coll_share mine = gpsh_coll_part(c, &parts, team->my_rank);
    for (int i = 1; i < n && status == 0; i++) {
        int rank = gpsh_coll_turn(team, i);
        if (mine.bytes && rank != c->root)
            status =
                gpsh_coll_push(team, rank, c->dest + mine.first, c->dest + mine.first, mine.bytes);
    }
    return status;
}

static int broadcast_large(const struct gpsh_coll *c, size_t bytes)
{
    struct gpsh_team *team = c->team;
    if (team->nodes)
        return gpsh_coll_nodes_broadcast(c, bytes);
    if (!gpsh_coll_direct(c))
        return broadcast_parts(c, bytes);
    // Each reads the root's: the copies run side by side.
    char *source = gpsh_coll_at(team, c->root, c->source);
    return source ? gpsh_coll_copy(c->dest, source, bytes) : 0;
}

int gpsh_coll_broadcast(const struct gpsh_coll *c)
{
    size_t bytes = c->nelems * c->size;
    if (bytes <= gpsh_team_cast_most(c->team))
        return broadcast_small(c, bytes);
    int status = gpsh_coll_enter(c);
    return status < 0 ? status : gpsh_coll_leave(c, broadcast_large(c, bytes));
}

// ---- fcollect and collect ----

// `most`: bytes of the largest part.
static int collect_small(const struct gpsh_coll *c, const struct gpsh_coll_parts *parts,
                         size_t most)
{
    struct gpsh_team *team = c->team;
    size_t bytes = gpsh_coll_part(c, parts, team->my_rank).bytes;
    char *copy = gpsh_team_work(team, GPSH_WORK_IN);
    const char *mine = bytes ? gpsh_coll_bring(team, c->source, bytes, GPSH_WORK_IN) : copy;
    if (!mine)
        return gpsh_coll_end(c, gpsh_last_error_code());
    if (bytes < most && mine != copy) // `most` of it will be read
        mine = memcpy(copy, mine, bytes);
    int status = gpsh_team_gather(team, mine, most, c->what);
    if (status < 0)
        return status;
    for (int rank = 0; rank < team->n && status == 0; rank++) {
        struct gpsh_coll_share part = gpsh_coll_part(c, parts, rank);
        if (part.bytes)
            status = gpsh_coll_copy(c->dest + part.first, team->views[rank], part.bytes);
    }
    return gpsh_coll_end(c, status);
}

// Mapped members are read from, which leaves dest in this processor's caches; others are sent to.
static int collect_large(const struct gpsh_coll *c, const struct gpsh_coll_parts *parts)
{
    struct gpsh_team *team = c->team;
    int status = gpsh_coll_enter(c);
    if (status < 0)
        return status;
    if (team->nodes)
        return gpsh_coll_leave(c, gpsh_coll_nodes_collect(c, parts));
    struct gpsh_coll_share mine = gpsh_coll_part(c, parts, team->my_rank);
    bool in_place = !parts->ends && c->source == c->dest + mine.first; // on all PEs
    for (int i = 0; i < team->n && status == 0; i++) {
        int rank = gpsh_coll_turn(team, i);
        struct gpsh_coll_share theirs = gpsh_coll_part(c, parts, rank);
        const char *source = in_place ? c->dest + theirs.first : c->source;
        if (gpsh_coll_direct(c) && theirs.bytes)
            status = gpsh_coll_copy(c->dest + theirs.first, gpsh_coll_at(team, rank, source),
                                    theirs.bytes);
        else if (!gpsh_coll_direct(c) && mine.bytes)
            status = gpsh_coll_push(team, rank, c->dest + mine.first, c->source, mine.bytes);
    }
    return gpsh_coll_leave(c, status);
}

int gpsh_coll_fcollect(const struct gpsh_coll *c)
{
    const struct gpsh_coll_parts parts = {.equal = c->nelems * c->size};
    bool small = parts.equal <= gpsh_team_gather_most(c->team);
    return small ? collect_small(c, &parts, parts.equal) : collect_large(c, &parts);
}

int gpsh_coll_collect(const struct gpsh_coll *c)
{
    struct gpsh_team *team = c->team;
    uint64_t mine = c->nelems * c->size, most = 0;
    uint64_t *ends = calloc((size_t)team->n, sizeof *ends);
    if (!ends)
        return gpsh_coll_end(c, gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "%s: no host memory for %d sizes",
                                          c->what, team->n));
    int status = gpsh_team_gather_all(team, &mine, sizeof mine, ends, c->what);
    for (int rank = 0; rank < team->n; rank++) {
        most = ends[rank] > most ? ends[rank] : most;
        ends[rank] += rank ? ends[rank - 1] : 0;
    }
    const struct gpsh_coll_parts parts = {.ends = ends};
    uint64_t total = ends[team->n - 1];
    if (status == 0 && total && !gpsh_is_symmetric(c->dest, total)) // on all PEs
        status = gpsh_fail(
            GPUSHMEM_ERR_ADDRESS,
            "%s: the parts of all PEs have %llu bytes together, for which dest has no room in "
            "symmetric memory",
            c->what, (unsigned long long)total);
    else if (status == 0 && most)
        status = most <= gpsh_team_gather_most(team) ? collect_small(c, &parts, most)
                                                     : collect_large(c, &parts);
    free(ends);
    return status;
}

// ---- alltoall ----

static int alltoall_small(const struct gpsh_coll *c, size_t bytes)
{
    struct gpsh_team *team = c->team;
    const char *mine = gpsh_coll_bring(team, c->source, (size_t)team->n * bytes, GPSH_WORK_IN);
    if (!mine)
        return gpsh_coll_end(c, gpsh_last_error_code());
    int status = gpsh_team_transpose(team, mine, bytes, c->what);
    if (status < 0)
        return status;
    for (int rank = 0; rank < team->n && status == 0; rank++)
        status = gpsh_coll_copy(c->dest + (size_t)rank * bytes, team->views[rank], bytes);
    return gpsh_coll_end(c, status);
}

int gpsh_coll_alltoall(const struct gpsh_coll *c)
{
    struct gpsh_team *team = c->team;
    size_t bytes = c->nelems * c->size, mine = (size_t)team->my_rank * bytes;
    if (bytes <= gpsh_team_transpose_most(team))
        return alltoall_small(c, bytes);
    int status = gpsh_team_meet(team, c->what);
    if (status < 0)
        return status;
    for (int i = 0; i < team->n && status == 0; i++) {
        int rank = gpsh_coll_turn(team, i);
        size_t theirs = (size_t)rank * bytes;
        status = gpsh_coll_direct(c)
                     ? gpsh_coll_copy(c->dest + theirs, gpsh_coll_at(team, rank, c->source) + mine,
                                      bytes)
                     : gpsh_coll_push(team, rank, c->dest + mine, c->source + theirs, bytes);
    }
    return gpsh_coll_leave(c, status);
}
