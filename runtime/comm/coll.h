// SPDX-License-Identifier: BSD-3-Clause
// Collective operations of the host: their schedules, and what these are made of. Large operations
// are direct: the members meet, so that sources are ready and dests belong to the operation, then
// read and write each other's heaps, then meet again.
#ifndef GPSH_COLL_H
#define GPSH_COLL_H

#include "comm/fold.h"
#include "comm/team_exchange.h"
#include "memory/heap.h"
#include "memory/place.h"

// One call of this PE. Arguments are checked already; but for collect, nelems is not 0.
struct gpsh_coll {
    const char *what; // the public function
    enum gpushmem_coll_kind kind;
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

typedef int gpsh_coll_fn(const struct gpsh_coll *c);
// ---- Moving data (coll_move.c) ----

// Between gpsh_coll_enter and _leave. From member to member:
gpsh_coll_fn gpsh_coll_broadcast_direct, gpsh_coll_fcollect_direct, gpsh_coll_alltoall_direct,
    gpsh_coll_alltoalls_direct;
// To each other node once (docs/design/collectives.md):
gpsh_coll_fn gpsh_coll_broadcast_nodes, gpsh_coll_fcollect_nodes;
// Small blocks, in one message from each node to each member of another. The ranks of nodes follow
// each other.
gpsh_coll_fn gpsh_coll_alltoall_nodes;
size_t gpsh_coll_alltoall_nodes_most(const struct gpsh_team *team);
// With its meetings: nobody knows the sizes before.
gpsh_coll_fn gpsh_coll_collect;
// Small ones with their meeting (comm/team_exchange.h).
gpsh_coll_fn gpsh_coll_broadcast_small, gpsh_coll_fcollect_small, gpsh_coll_alltoall_small,
    gpsh_coll_alltoalls_small;

// ---- Folding (coll_fold.c, coll_chain.c), with their meetings ----

gpsh_coll_fn gpsh_coll_reduce_small, gpsh_coll_reducescatter_small, gpsh_coll_scan_small;
// Small ones whose sum is the same however it is bracketed, in log2 of the number of nodes rounds.
gpsh_coll_fn gpsh_coll_reduce_doubling;
// Bytes that it takes, in parts one after the other: two have as many rounds as the two meetings of
// a fold by shares, and with few members a third has no more than the gets and puts between those.
size_t gpsh_coll_doubling_most(const struct gpsh_coll *c);
// Each element has one PE that reads it from all sources and folds it.
gpsh_coll_fn gpsh_coll_reduce_shares, gpsh_coll_reducescatter_shares, gpsh_coll_scan_shares;
// The same, but results cross to each node once.
gpsh_coll_fn gpsh_coll_reduce_nodes;
// From node to node (docs/design/collectives.md).
gpsh_coll_fn gpsh_coll_reduce_chain, gpsh_coll_reduce_chain_wide, gpsh_coll_reducescatter_chain,
    gpsh_coll_scan_chain;

// ---- Where each rank's part of the whole lies ----

struct gpsh_coll_share {
    size_t first, bytes;
};

struct gpsh_coll_parts {
    size_t equal;         // bytes of each, or 0
    const uint64_t *ends; // else where each ends, or NULL
    size_t whole;         // else bytes that the ranks share, in whole cache lines
};

struct gpsh_coll_share gpsh_coll_part(const struct gpsh_coll *c,
                                      const struct gpsh_coll_parts *parts, int rank);

// This PE's part to its node and the others, and what it holds of others' parts to its node.
int gpsh_coll_nodes_collect(const struct gpsh_coll *c, const struct gpsh_coll_parts *parts);
// A part that is in this PE's dest, to the others of its node.
int gpsh_coll_nodes_push_near(const struct gpsh_coll *c, struct gpsh_coll_share part);

// ---- Pieces: large folds go a piece at a time, with room for what has to be fetched ----

struct gpsh_piece {
    const struct gpsh_coll *c;
    size_t most;   // elements of a piece
    char *out;     // results: `outs` pieces
    char *fetched; // sources: n pieces
    char *memory;  // to be freed
};

// The members are in the operation already: without memory the pieces become small, but fails if
// one would have fewer than `least` elements.
int gpsh_piece_begin(struct gpsh_piece *p, const struct gpsh_coll *c, size_t outs, size_t least);
// views[k] becomes nelems elements from `at` (bytes) on of object `sym` of ranks[k], or of rank k.
int gpsh_piece_gather(struct gpsh_piece *p, const int *ranks, int count, const char *sym, size_t at,
                      size_t nelems);
// The elements that a rank folds of an operation on all of them.
void gpsh_piece_share(const struct gpsh_coll *c, int rank, size_t *first, size_t *last);
// Result i of the piece becomes the sum of the team's views 0 .. i, for `count` of them.
void gpsh_piece_sums(struct gpsh_piece *p, int count, size_t nelems);

// ---- The members' heaps (coll_rma.c) ----

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
// after gpsh_coll_quiet, and `to` or `from` must stay as they are until then.
int gpsh_coll_get(const struct gpsh_team *team, int rank, void *to, const void *sym, size_t bytes);
int gpsh_coll_put(const struct gpsh_team *team, int rank, void *sym, const void *from,
                  size_t bytes);
// This PE's own object to the rank's.
int gpsh_coll_push(const struct gpsh_team *team, int rank, void *dest, const void *source,
                   size_t bytes);
// A put, after which `from` may change.
int gpsh_coll_send(const struct gpsh_team *team, int rank, void *sym, const void *from,
                   size_t bytes);
int gpsh_coll_quiet(const struct gpsh_team *team);
// At the end of an operation that returned `status`: memory from malloc, or NULL, which _get and
// _put were given. After a failure some may be under way: then it stays until the library is
// closed.
void gpsh_coll_free(int status, void *memory);

// This PE's own objects. Overlapping is legal.
int gpsh_coll_copy(void *to, const void *from, size_t bytes);
// Where small data of this PE's can be read by the processor: `sym` itself, or a copy in
// GPSH_WORK_IN of the team's work. NULL and an error if it cannot be copied.
const char *gpsh_coll_readable(const struct gpsh_team *team, const void *sym, size_t bytes);

// ---- A member's own part and the meetings ----

// What this PE's own part of an operation returned. If it failed, the others are in the operation
// and cannot be told: the team is broken.
static inline int gpsh_coll_end(const struct gpsh_coll *c, int status)
{
    return status < 0 ? gpsh_team_break(c->team, status) : 0;
}

// Meets after this PE's own part, if that did not fail: when all have come, what each of them has
// sent or folded is there.
static inline int gpsh_coll_sync(const struct gpsh_coll *c, int status)
{
    if (status == 0)
        status = gpsh_coll_quiet(c->team);
    return status == 0 ? gpsh_team_sync(c->team, c->what) : status;
}

// The first meeting of a large operation, which may use counters (comm/team_exchange.h).
static inline int gpsh_coll_enter(const struct gpsh_coll *c)
{
    if (c->team->nodes)
        gpsh_team_signals_clear(c->team);
    return gpsh_team_sync(c->team, c->what);
}

// The last one.
static inline int gpsh_coll_leave(const struct gpsh_coll *c, int status)
{
    return gpsh_coll_end(c, gpsh_coll_sync(c, status));
}

// The rank i after this PE's own: not all go to one at once.
static inline int gpsh_coll_turn(const struct gpsh_team *team, int i)
{
    int rank = team->my_rank + i;
    return rank < team->n ? rank : rank - team->n;
}

#endif
