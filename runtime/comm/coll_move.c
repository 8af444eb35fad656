// SPDX-License-Identifier: BSD-3-Clause
// Collectives that only move data.
#include <stdlib.h>
#include <string.h>

#include "comm/coll.h"
#include "core/error.h"
#include "job/job.h"
#include "memory/heap.h"

// ---- To each other node once: to the member that holds a part there, which passes it on ----

enum { NOBODY = -1 };

static int holder(const struct gpsh_coll *c, int rank, int node)
{
    return gpsh_team_nodes_holder(c->team->nodes, rank, node);
}

static int push(const struct gpsh_coll *c, int rank, struct gpsh_coll_share part, const char *from)
{
    return part.bytes ? gpsh_coll_push(c->team, rank, c->dest + part.first, from, part.bytes) : 0;
}

// A part of `of`, to a rank that passes it on. Counters have the numbers of the ranks whose parts
// they tell of.
static int hand(const struct gpsh_coll *c, int rank, int of, struct gpsh_coll_share part,
                const char *from)
{
    int status = push(c, rank, part, from);
    if (status < 0 || part.bytes == 0 || rank == c->team->my_rank)
        return status;
    return gpsh_team_signal(c->team, rank, (size_t)of, 1);
}

static int await(const struct gpsh_coll *c, int rank, int of, struct gpsh_coll_share part)
{
    return part.bytes ? gpsh_team_signal_wait(c->team, rank, (size_t)of, 1, c->what) : 0;
}

// This PE's part, to a member of each other node but `but`.
static int push_out(const struct gpsh_coll *c, struct gpsh_coll_share part, const char *from,
                    int but)
{
    const struct gpsh_team_nodes *nodes = c->team->nodes;
    int me = c->team->my_rank, status = 0;
    for (int k = 1; k < nodes->n && status == 0; k++) {
        int node = (nodes->mine + k) % nodes->n; // not all to one node at once
        if (node != but)
            status = hand(c, holder(c, me, node), me, part, from);
    }
    return status;
}

// A part that is in this PE's dest, to the others of its node but `but`.
static int push_near(const struct gpsh_coll *c, struct gpsh_coll_share part, int but)
{
    const struct gpsh_team_nodes *nodes = c->team->nodes;
    const int *mates = nodes->members + nodes->starts[nodes->mine];
    int size = nodes->sizes[nodes->mine], index = nodes->index[c->team->my_rank], status = 0;
    for (int k = 1; k < size && status == 0; k++) {
        int mate = mates[(index + k) % size];
        if (mate != but)
            status = push(c, mate, part, c->dest + part.first);
    }
    return status;
}

// The parts of other nodes' ranks that this PE holds, as they come: from those ranks, or all from
// the root. `root`: of a broadcast, or NOBODY; it has them.
static int pass_on(const struct gpsh_coll *c, const struct gpsh_coll_parts *parts, int root)
{
    const struct gpsh_team *team = c->team;
    const struct gpsh_team_nodes *nodes = team->nodes;
    bool near_root = root != NOBODY && nodes->node[root] == nodes->mine;
    int status = 0;
    for (int i = 1; i < team->n && status == 0; i++) {
        int rank = gpsh_coll_turn(team, i);
        struct gpsh_coll_share part = gpsh_coll_part(c, parts, rank);
        if (nodes->node[rank] == nodes->mine || holder(c, rank, nodes->mine) != team->my_rank)
            continue;
        if (root != team->my_rank)
            status = await(c, near_root ? root : rank, rank, part);
        if (status == 0)
            status = push_near(c, part, root);
    }
    return status;
}

int gpsh_coll_nodes_push_near(const struct gpsh_coll *c, struct gpsh_coll_share part)
{
    return push_near(c, part, NOBODY);
}

int gpsh_coll_nodes_collect(const struct gpsh_coll *c, const struct gpsh_coll_parts *parts)
{
    struct gpsh_coll_share mine = gpsh_coll_part(c, parts, c->team->my_rank);
    // The other nodes first: the NIC works while this processor copies.
    int status = push_out(c, mine, c->source, NOBODY);
    if (status == 0)
        status = push(c, c->team->my_rank, mine, c->source);
    if (status == 0)
        status = push_near(c, mine, NOBODY);
    return status == 0 ? pass_on(c, parts, NOBODY) : status;
}

// Each rank gets its part, and the root's node all of them.
static int scatter(const struct gpsh_coll *c, const struct gpsh_coll_parts *parts)
{
    const struct gpsh_team *team = c->team;
    int near = team->nodes->mine, status = gpsh_coll_copy(c->dest, c->source, parts->whole);
    for (int i = 1; i < team->n && status == 0; i++) {
        int rank = gpsh_coll_turn(team, i), mate = holder(c, rank, near);
        struct gpsh_coll_share part = gpsh_coll_part(c, parts, rank);
        status = hand(c, rank, rank, part, c->source + part.first);
        if (status == 0 && mate != rank && mate != c->root)
            status = hand(c, mate, rank, part, c->source + part.first);
    }
    return status;
}

int gpsh_coll_broadcast_nodes(const struct gpsh_coll *c)
{
    const struct gpsh_team *team = c->team;
    const struct gpsh_coll_parts parts = {.whole = c->nelems * c->size};
    int me = team->my_rank;
    struct gpsh_coll_share mine = gpsh_coll_part(c, &parts, me);
    int status = me == c->root ? scatter(c, &parts) : await(c, c->root, me, mine);
    if (status == 0)
        status = push_out(c, mine, c->dest + mine.first, team->nodes->node[c->root]);
    if (status == 0)
        status = push_near(c, mine, c->root);
    return status == 0 ? pass_on(c, &parts, c->root) : status;
}

// ---- broadcast ----

int gpsh_coll_broadcast_small(const struct gpsh_coll *c)
{
    struct gpsh_team *team = c->team;
    size_t bytes = c->nelems * c->size;
    const char *mine = NULL;
    if (team->my_rank == c->root) {
        mine = gpsh_coll_readable(team, c->source, bytes);
        if (!mine)
            return gpsh_coll_end(c, gpsh_last_error_code());
    }
    int status = gpsh_team_broadcast(team, c->root, mine, bytes, c->what);
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
            status = gpsh_coll_quiet(team);
    }
    if (status == 0)
        status = gpsh_team_sync(team, c->what);
    struct gpsh_coll_share mine = gpsh_coll_part(c, &parts, team->my_rank);
    for (int i = 1; i < n && status == 0; i++) {
        int rank = gpsh_coll_turn(team, i);
        if (mine.bytes && rank != c->root)
            status =
                gpsh_coll_push(team, rank, c->dest + mine.first, c->dest + mine.first, mine.bytes);
    }
    return status;
}

int gpsh_coll_broadcast_direct(const struct gpsh_coll *c)
{
    size_t bytes = c->nelems * c->size;
    if (!gpsh_coll_direct(c))
        return broadcast_parts(c, bytes);
    // Each reads the root's: the copies run side by side.
    char *source = gpsh_coll_at(c->team, c->root, c->source);
    return source ? gpsh_coll_copy(c->dest, source, bytes) : 0;
}

// ---- fcollect and collect ----

// `most`: bytes of the largest part.
static int collect_small(const struct gpsh_coll *c, const struct gpsh_coll_parts *parts,
                         size_t most)
{
    struct gpsh_team *team = c->team;
    size_t bytes = gpsh_coll_part(c, parts, team->my_rank).bytes;
    char *copy = gpsh_team_work(team, GPSH_WORK_IN);
    const char *mine = bytes ? gpsh_coll_readable(team, c->source, bytes) : copy;
    if (!mine)
        return gpsh_coll_end(c, gpsh_last_error_code());
    if (bytes < most && mine != copy) // `most` of it will be read
        mine = memcpy(copy, mine, bytes);
    int status = gpsh_team_allgather(team, mine, most, c->what);
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
static int collect_direct(const struct gpsh_coll *c, const struct gpsh_coll_parts *parts)
{
    struct gpsh_team *team = c->team;
    struct gpsh_coll_share mine = gpsh_coll_part(c, parts, team->my_rank);
    bool in_place = !parts->ends && c->source == c->dest + mine.first; // on all PEs
    int status = 0;
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
    return status;
}

int gpsh_coll_fcollect_small(const struct gpsh_coll *c)
{
    const struct gpsh_coll_parts parts = {.equal = c->nelems * c->size};
    return collect_small(c, &parts, parts.equal);
}

int gpsh_coll_fcollect_direct(const struct gpsh_coll *c)
{
    const struct gpsh_coll_parts parts = {.equal = c->nelems * c->size};
    return collect_direct(c, &parts);
}

int gpsh_coll_fcollect_nodes(const struct gpsh_coll *c)
{
    const struct gpsh_coll_parts parts = {.equal = c->nelems * c->size};
    return gpsh_coll_nodes_collect(c, &parts);
}

static int collect_large(const struct gpsh_coll *c, const struct gpsh_coll_parts *parts)
{
    int status = gpsh_coll_enter(c);
    if (status < 0)
        return status;
    return gpsh_coll_leave(c, c->team->nodes ? gpsh_coll_nodes_collect(c, parts)
                                             : collect_direct(c, parts));
}

int gpsh_coll_collect(const struct gpsh_coll *c)
{
    struct gpsh_team *team = c->team;
    uint64_t mine = c->nelems * c->size, most = 0;
    uint64_t *ends = calloc((size_t)team->n, sizeof *ends);
    if (!ends)
        return gpsh_coll_end(c, gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "%s: no host memory for %d sizes",
                                          c->what, team->n));
    int status = gpsh_team_allgather_any(team, &mine, sizeof mine, ends, c->what);
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
        status = most <= gpsh_team_allgather_most(team) ? collect_small(c, &parts, most)
                                                        : collect_large(c, &parts);
    free(ends);
    return status;
}

// ---- alltoall ----

int gpsh_coll_alltoall_small(const struct gpsh_coll *c)
{
    struct gpsh_team *team = c->team;
    size_t bytes = c->nelems * c->size;
    const char *mine = gpsh_coll_readable(team, c->source, (size_t)team->n * bytes);
    if (!mine)
        return gpsh_coll_end(c, gpsh_last_error_code());
    int status = gpsh_team_alltoall(team, mine, bytes, c->what);
    if (status < 0)
        return status;
    for (int rank = 0; rank < team->n && status == 0; rank++)
        status = gpsh_coll_copy(c->dest + (size_t)rank * bytes, team->views[rank], bytes);
    return gpsh_coll_end(c, status);
}

static int push_alltoall(const struct gpsh_coll *c, int rank)
{
    size_t bytes = c->nelems * c->size;
    return gpsh_coll_push(c->team, rank, c->dest + (size_t)c->team->my_rank * bytes,
                          c->source + (size_t)rank * bytes, bytes);
}

int gpsh_coll_alltoall_direct(const struct gpsh_coll *c)
{
    struct gpsh_team *team = c->team;
    size_t bytes = c->nelems * c->size, mine = (size_t)team->my_rank * bytes;
    int status = 0;
    for (int i = 0; i < team->n && status == 0; i++) {
        int rank = gpsh_coll_turn(team, i);
        status = gpsh_coll_direct(c)
                     ? gpsh_coll_copy(c->dest + (size_t)rank * bytes,
                                      gpsh_coll_at(team, rank, c->source) + mine, bytes)
                     : push_alltoall(c, rank);
    }
    return status;
}

// What the members of this node have for one of another lies side by side in its dest: one message,
// by the member that has its number there. So each sends to as many as there are nodes.
enum { PACKED_BYTES = 16384 };

size_t gpsh_coll_alltoall_nodes_most(const struct gpsh_team *team)
{
    const struct gpsh_team_nodes *nodes = team->nodes;
    int largest = 1;
    for (int i = 0; i < nodes->n; i++)
        largest = nodes->sizes[i] > largest ? nodes->sizes[i] : largest;
    return gpsh_heap()->device ? 0 : PACKED_BYTES / (size_t)largest;
}

static int send_packed(const struct gpsh_coll *c, int rank, char *packed)
{
    struct gpsh_team *team = c->team;
    const struct gpsh_team_nodes *nodes = team->nodes;
    const int *mates = nodes->members + nodes->starts[nodes->mine];
    int size = nodes->sizes[nodes->mine], status = 0;
    size_t bytes = c->nelems * c->size;
    bool fetches = false;
    for (int i = 0; i < size && status == 0; i++) {
        const char *block = c->source + (size_t)rank * bytes;
        fetches = fetches || !gpsh_coll_at(team, mates[i], block);
        status = gpsh_coll_get(team, mates[i], packed + (size_t)i * bytes, block, bytes);
    }
    if (status == 0 && fetches)
        status = gpsh_coll_quiet(team);
    return status < 0 ? status
                      : gpsh_coll_send(team, rank, c->dest + (size_t)mates[0] * bytes, packed,
                                       (size_t)size * bytes);
}

int gpsh_coll_alltoall_nodes(const struct gpsh_coll *c)
{
    const struct gpsh_team *team = c->team;
    const struct gpsh_team_nodes *nodes = team->nodes;
    int size = nodes->sizes[nodes->mine], status = 0;
    char packed[PACKED_BYTES];
    for (int k = 0; k < nodes->n && status == 0; k++) {
        int node = (nodes->mine + 1 + k) % nodes->n; // this one last
        const int *members = nodes->members + nodes->starts[node];
        bool near = node == nodes->mine;
        for (int i = near ? 0 : nodes->index[team->my_rank]; i < nodes->sizes[node] && status == 0;
             i += near ? 1 : size)
            status = near ? push_alltoall(c, members[i]) : send_packed(c, members[i], packed);
    }
    return status;
}

// ---- alltoalls ----

// `count` elements, the strides in bytes. memcpy of a constant size is a load and a store.
static inline __attribute__((always_inline)) void copy_each(char *to, size_t to_stride,
                                                            const char *from, size_t from_stride,
                                                            size_t size, size_t count)
{
    for (size_t i = 0; i < count; i++, to += to_stride, from += from_stride)
        memcpy(to, from, size);
}

static void copy_strided(char *to, size_t to_stride, const char *from, size_t from_stride,
                         size_t size, size_t count)
{
    if (size == 8)
        copy_each(to, to_stride, from, from_stride, 8, count);
    else if (size == 4)
        copy_each(to, to_stride, from, from_stride, 4, count);
    else
        copy_each(to, to_stride, from, from_stride, size, count);
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

int gpsh_coll_alltoalls_small(const struct gpsh_coll *c)
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
    status = gpsh_team_alltoall(team, packed, bytes, c->what);
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
    size_t most = GPSH_TEAM_WORK * team->room / c->size;
    const char *from = source_of(c, team->my_rank);
    int status = 0;
    for (size_t at = 0; at < c->nelems && status == 0; at += part) {
        part = c->nelems - at < most ? c->nelems - at : most;
        size_t pieces = c->sst == 1 ? 1 : part, bytes = part / pieces * c->size;
        for (size_t i = 0; i < pieces && status == 0; i++)
            status = gpsh_coll_get(team, rank, team->work + i * c->size, from + (at + i) * stride,
                                   bytes);
        if (status == 0)
            status = gpsh_coll_quiet(team);
        if (status == 0)
            status = unpack(c, rank, at, team->work, part);
    }
    return status;
}

int gpsh_coll_alltoalls_direct(const struct gpsh_coll *c)
{
    struct gpsh_team *team = c->team;
    int status = 0;
    for (int i = 0; i < team->n && status == 0; i++) {
        int rank = gpsh_coll_turn(team, i);
        const char *there = gpsh_coll_at(team, rank, source_of(c, team->my_rank));
        if (there && !gpsh_heap()->device)
            copy_strided(dest_of(c, rank), (size_t)c->dst * c->size, there,
                         (size_t)c->sst * c->size, c->size, c->nelems);
        else
            status = fetch_part(c, rank);
    }
    return status;
}
