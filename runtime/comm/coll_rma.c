// SPDX-License-Identifier: BSD-3-Clause
#include <stdlib.h>
#include <string.h>

#include "comm/coll.h"
#include "comm/context.h"
#include "memory/heap.h"
#include "memory/regions.h"
#include "observe/counters.h"
#include "transport/direct.h"

static int submit(const struct gpsh_team *team, int rank, int kind, void *local, const void *sym,
                  size_t bytes, int flags, enum gpsh_wait wait)
{
    struct gpsh_place place = {0};
    gpsh_place_find(sym, bytes, team->pes[rank], &place); // it was checked
    const struct gpsh_op op = {.kind = (uint8_t)kind,
                               .flags = (uint8_t)flags,
                               .region = place.region,
                               .pe = team->pes[rank],
                               .local = local,
                               .remote = place.offset,
                               .bytes = bytes};
    return gpsh_context_submit(&gpsh_default_context, &op, wait);
}

struct gpsh_coll_share gpsh_coll_part(const struct gpsh_coll *c,
                                      const struct gpsh_coll_parts *parts, int rank)
{
    if (parts->equal)
        return (struct gpsh_coll_share){(size_t)rank * parts->equal, parts->equal};
    if (parts->ends) {
        size_t first = rank ? parts->ends[rank - 1] : 0;
        return (struct gpsh_coll_share){first, parts->ends[rank] - first};
    }
    size_t part = (parts->whole / (size_t)c->team->n + 63) / 64 * 64 + 64;
    size_t first = part * (size_t)rank < parts->whole ? part * (size_t)rank : parts->whole;
    size_t last = first + part < parts->whole ? first + part : parts->whole;
    return (struct gpsh_coll_share){first, last - first};
}

int gpsh_coll_get(const struct gpsh_team *team, int rank, void *to, const void *sym, size_t bytes)
{
    const char *there = gpsh_coll_at(team, rank, sym);
    if (rank == team->my_rank)
        return gpsh_coll_copy(to, sym, bytes);
    if (there) {
        gpsh_count_direct(team->pes[rank], bytes);
        gpsh_direct_copy(to, there, bytes);
        return 0;
    }
    return submit(team, rank, GPSH_OP_GET, to, sym, bytes, GPSH_OP_LOCAL_HOST, GPSH_WAIT_NONE);
}

static int put(const struct gpsh_team *team, int rank, void *sym, const void *from, size_t bytes,
               int flags, enum gpsh_wait wait)
{
    if (rank == team->my_rank)
        return gpsh_coll_copy(sym, from, bytes);
    char *there = gpsh_coll_at(team, rank, sym);
    if (there) {
        gpsh_count_direct(team->pes[rank], bytes);
        gpsh_direct_copy(there, from, bytes);
        return 0;
    }
    return submit(team, rank, GPSH_OP_PUT, (void *)(uintptr_t)from, sym, bytes, flags, wait);
}

int gpsh_coll_put(const struct gpsh_team *team, int rank, void *sym, const void *from, size_t bytes)
{
    return put(team, rank, sym, from, bytes, GPSH_OP_LOCAL_HOST, GPSH_WAIT_NONE);
}

int gpsh_coll_send(const struct gpsh_team *team, int rank, void *sym, const void *from,
                   size_t bytes)
{
    return put(team, rank, sym, from, bytes, GPSH_OP_LOCAL_HOST, GPSH_WAIT_SOURCE);
}

int gpsh_coll_push(const struct gpsh_team *team, int rank, void *dest, const void *source,
                   size_t bytes)
{
    return put(team, rank, dest, source, bytes, 0, GPSH_WAIT_NONE);
}

int gpsh_coll_quiet(const struct gpsh_team *team)
{
    int result = 0;
    if (!gpsh_default_context.remote)
        return 0;
    for (int rank = 0; rank < team->n && result != GPUSHMEM_ERR_TIMEOUT; rank++) {
        if (rank == team->my_rank)
            continue;
        int status = gpsh_context_quiet(&gpsh_default_context, team->pes[rank]);
        if (result == 0 || status == GPUSHMEM_ERR_TIMEOUT)
            result = status;
    }
    return result;
}

void gpsh_coll_free(int status, void *memory)
{
    if (status < 0 && gpsh_default_context.remote && gpsh_context_drive(&gpsh_default_context))
        gpsh_context_keep(memory);
    else
        free(memory);
}

int gpsh_coll_copy(void *to, const void *from, size_t bytes)
{
    if (to == from)
        return 0;
    if (gpsh_heap()->device)
        return gpsh_regions_copy(to, from, bytes);
    gpsh_direct_copy(to, from, bytes);
    return 0;
}

const char *gpsh_coll_readable(const struct gpsh_team *team, const void *sym, size_t bytes)
{
    if (!gpsh_heap()->device)
        return sym;
    char *copy = gpsh_team_work(team, GPSH_WORK_IN);
    return gpsh_regions_copy(copy, sym, bytes) ? NULL : copy;
}
