// SPDX-License-Identifier: BSD-3-Clause
// Collective operations of the host. Arguments are checked already; sizes are not 0.
//
// Each has two ways. Small ones hand their data over in a meeting of the team (comm/team_meet.h).
// Large ones are direct: the members meet, so that sources are ready and dests belong to the
// operation, then read and write each other's heaps, then meet again.
#ifndef GPSH_COLL_H
#define GPSH_COLL_H

#include "comm/fold.h"
#include "comm/team_signal.h"
#include "memory/heap.h"
#include "memory/place.h"

// One call of this PE.
struct gpsh_coll {
    const char *what; // the public function
    struct gpsh_team *team;
    char *dest;
    const char *source;
    size_t size;   // of an element
    size_t nelems; // of a part
    int root;
    ptrdiff_t dst, sst;
    enum gpsh_type type;
    enum gpsh_fold_op op;
};

int gpsh_coll_broadcast(const struct gpsh_coll *c);
int gpsh_coll_fcollect(const struct gpsh_coll *c);
int gpsh_coll_collect(const struct gpsh_coll *c); // nelems may be 0
int gpsh_coll_alltoall(const struct gpsh_coll *c);
int gpsh_coll_alltoalls(const struct gpsh_coll *c);
int gpsh_coll_reduce(const struct gpsh_coll *c);
int gpsh_coll_reducescatter(const struct gpsh_coll *c);
int gpsh_coll_scan(const struct gpsh_coll *c, bool inclusive);

// ---- For the files that carry them out: parts ----

struct gpsh_coll_share {
    size_t first, bytes;
};

// Where each rank's part of the whole lies.
struct gpsh_coll_parts {
    size_t equal;         // bytes of each, or 0
    const uint64_t *ends; // else where each ends, or NULL
    size_t whole;         // else bytes that the ranks share, in whole cache lines
};

struct gpsh_coll_share gpsh_coll_part(const struct gpsh_coll *c,
                                      const struct gpsh_coll_parts *parts, int rank);

// ---- By nodes (coll_nodes.c): what a node has to get goes there once ----

// Between gpsh_coll_enter and _leave of a large operation, in a team with nodes. Every PE's
// objects are as for the operations themselves. docs/adr/0051-large-collectives-by-nodes.md.
int gpsh_coll_nodes_collect(const struct gpsh_coll *c, const struct gpsh_coll_parts *parts);
int gpsh_coll_nodes_broadcast(const struct gpsh_coll *c, size_t bytes);
// A part that is in this PE's dest, to the others of its node.
int gpsh_coll_nodes_push_near(const struct gpsh_coll *c, struct gpsh_coll_share part);

// ---- From node to node (coll_chain.c): a fold that crosses to each node once, and back ----

// Whether the team is one for it; the same on all members.
bool gpsh_coll_chain_fits(const struct gpsh_team *team);
// A reduce with its meetings. Nodes are folded in the order of their first members, with a result
// of the type between them. docs/adr/0052-sums-from-node-to-node.md.
int gpsh_coll_chain_reduce(const struct gpsh_coll *c);
// The same of half and bfloat16, whose partial results are floats, where that fits: nodes follow
// each other, and each has several members, whose memory is the processor's.
bool gpsh_coll_chain_wide_fits(const struct gpsh_team *team);
int gpsh_coll_chain_wide(const struct gpsh_coll *c);
// A scan of a team whose nodes follow each other.
int gpsh_coll_chain_scan(const struct gpsh_coll *c, bool inclusive);
// The same of a reducescatter (coll_scatter.c).
int gpsh_coll_nodes_reducescatter(const struct gpsh_coll *c);

// ---- The members' heaps (coll_reach.c) ----

// Where the rank's object is: for the processor, and of this PE's own for gpsh_coll_copy. NULL:
// only a transport reaches it.
static inline char *gpsh_coll_at(const struct gpsh_team *team, int rank, const void *sym)
{
    struct gpsh_place place;
    if (rank == team->my_rank)
        return (char *)(uintptr_t)sym;
    return gpsh_place_find(sym, 1, team->pes[rank], &place) ? place.direct : NULL;
}

// All members can load and store each other's dest and source. It is so on all of them: objects lie
// in the same region everywhere.
static inline bool gpsh_coll_direct(const struct gpsh_coll *c)
{
    return c->team->direct && gpsh_offset(c->dest) < gpsh_heap_bytes() &&
           gpsh_offset(c->source) < gpsh_heap_bytes();
}

// The rank's object to or from this process's own memory, which is not the heap. They are complete
// after settle, and `to` or `from` must stay as they are until then.
int gpsh_coll_get(const struct gpsh_team *team, int rank, void *to, const void *sym, size_t bytes);
int gpsh_coll_put(const struct gpsh_team *team, int rank, void *sym, const void *from,
                  size_t bytes);
// This PE's own object to the rank's.
int gpsh_coll_push(const struct gpsh_team *team, int rank, void *dest, const void *source,
                   size_t bytes);
int gpsh_coll_settle(const struct gpsh_team *team);
// At the end of an operation that returned `status`: memory from malloc, or NULL, which _get and
// _put were given. After a failure some may be under way: then it stays until the library is
// closed.
void gpsh_coll_free(int status, void *memory);

// This PE's own objects. Overlapping is legal.
int gpsh_coll_copy(void *to, const void *from, size_t bytes);
// Where small data of this PE's can be read by the processor: `sym` itself, or a copy in `part` of
// the team's work. NULL and an error if it cannot be copied.
const char *gpsh_coll_bring(const struct gpsh_team *team, const void *sym, size_t bytes,
                            enum gpsh_team_work part);

// ---- A member's own part and the meetings ----

// What this PE's own part of an operation returned. If it failed, the others are in the operation
// and cannot be told: the team is broken.
static inline int gpsh_coll_end(const struct gpsh_coll *c, int status)
{
    return status < 0 ? gpsh_team_break(c->team, status) : 0;
}

// Meets after this PE's own part, if that did not fail: when all have come, what each of them has
// sent or folded is there.
static inline int gpsh_coll_meet(const struct gpsh_coll *c, int status)
{
    if (status == 0)
        status = gpsh_coll_settle(c->team);
    return status == 0 ? gpsh_team_meet(c->team, c->what) : status;
}

// The first meeting of a large operation that may use counters (comm/team_signal.h).
static inline int gpsh_coll_enter(const struct gpsh_coll *c)
{
    if (c->team->nodes)
        gpsh_team_signals_clear(c->team);
    return gpsh_team_meet(c->team, c->what);
}

// The last meeting of a large operation.
static inline int gpsh_coll_leave(const struct gpsh_coll *c, int status)
{
    return gpsh_coll_end(c, gpsh_coll_meet(c, status));
}

// The next rank, counted from this PE's own, so that not all go to one at once.
static inline int gpsh_coll_turn(const struct gpsh_team *team, int i)
{
    int rank = team->my_rank + i;
    return rank < team->n ? rank : rank - team->n;
}

#endif
