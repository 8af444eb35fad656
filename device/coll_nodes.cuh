// SPDX-License-Identifier: BSD-3-Clause
// Large collectives of teams on several nodes, by blocks of a stream's operation. What a node needs
// crosses to it once: to one of its members, the holder, which gives it to the others there by
// stores. It goes in pieces, each the work of one block, which waits for no block of other members
// but the one with its number.
// docs/design/collectives.md.
#ifndef GPUSHMEM_DEVICE_COLL_NODES_CUH
#define GPUSHMEM_DEVICE_COLL_NODES_CUH

#include "gpushmem/device/coll_direct.cuh"

// ---- The team by nodes ----

struct gpsh_dev_nodes {
    const int32_t *starts; // [n + 1] the first rank of each node
    char *kept;
    int n, mine;            // nodes, and this PE's
    int first, size, index; // this node's first rank and its members; this PE is rank first + index
};

GPSH_DEV struct gpsh_dev_nodes gpsh_dev_nodes_of(const struct gpsh_dev_coll &c,
                                                 const struct gpushmem_dev_nodes &nodes)
{
    const int32_t *starts = nodes.starts;
    int mine = nodes.mine, first = starts[mine];
    return {starts, nodes.kept, nodes.n, mine, first, starts[mine + 1] - first, c.me - first};
}

// Who receives for `node` what members with this index on their own nodes have or hold: a rank.
GPSH_DEV int gpsh_dev_nodes_holder(const struct gpsh_dev_nodes &nodes, int node, int index)
{
    int first = nodes.starts[node];
    return first + index % (nodes.starts[node + 1] - first);
}

// The k-th of the others on this node, counted from this PE.
GPSH_DEV int gpsh_dev_nodes_mate(const struct gpsh_dev_nodes &nodes, int k)
{
    return nodes.first + (nodes.index + k) % nodes.size;
}

// ---- Meetings ----

// By all threads of the block, of which one looks: hundreds would keep the memory busy. What that
// one has acquired is visible to the others after their barrier.
GPSH_DEV bool gpsh_dev_nodes_await_word(struct gpsh_dev_coll *c, const uint64_t *word,
                                        uint64_t value)
{
    if (c->group.rank == 0)
        gpsh_dev_coll_await(c, word, value);
    c->status = gpsh_dev_group_agree(c->group, c->status);
    return !c->status;
}

// The first block meets all members; the others hear of it.
GPSH_DEV void gpsh_dev_nodes_enter(struct gpsh_dev_coll *c)
{
    uint64_t *met = (uint64_t *)(c->scratch + GPUSHMEM_COLL_MET_AT);
    c->status = gpsh_dev_group_agree(c->group, c->status);
    if (c->status)
        return;
    if (c->block == 0) {
        c->status = gpsh_dev_rounds_met(*c);
        if (c->group.rank == 0 && !c->status)
            gpsh_dev_store64_release_sys(met, c->epoch);
    } else {
        gpsh_dev_nodes_await_word(c, met, c->epoch);
    }
}

// When this returns 0 in status, this PE's puts have been read from its memory, all that members of
// its node stored here has come, and they read nothing here any more. Pieces from other nodes were
// awaited before.
GPSH_DEV void gpsh_dev_nodes_leave(struct gpsh_dev_coll *c, const struct gpsh_dev_nodes &nodes)
{
    c->status = gpsh_dev_group_agree(c->group, c->status);
    if (c->status)
        return;
    unsigned rank = c->group.rank, size = c->group.size;
    uint64_t *own = gpsh_dev_coll_flag(*c, GPUSHMEM_COLL_EXIT, c->me);
    if (rank + 1 < (unsigned)nodes.size)
        gpsh_dev_fence_sys();
    for (int k = (int)rank + 1; k < nodes.size; k += (int)size)
        gpsh_dev_store64_sys(gpsh_dev_coll_there(*c, own, gpsh_dev_nodes_mate(nodes, k)), c->epoch);
    if (rank == 0)
        c->status = gpsh_dev_rings_quiet(*c->dev.self);
    for (int k = (int)rank + 1; k < nodes.size; k += (int)size)
        gpsh_dev_coll_await(
            c, gpsh_dev_coll_flag(*c, GPUSHMEM_COLL_EXIT, gpsh_dev_nodes_mate(nodes, k)), c->epoch);
    c->status = gpsh_dev_group_agree(c->group, c->status);
}

// ---- Pieces ----

// A piece of a rank's block or share.
struct gpsh_dev_link {
    int node, index, rank; // the rank's node, and its index there
    int held;              // how many of the shares that this PE holds come before this one
    uint64_t number;       // of the piece in its block or share, from 0
    uint64_t at, bytes;    // where in the vector, or in the rank's block
    uint64_t kept;         // in place: where its copy is, from gpsh_dev_nodes.kept on
};

// Counters of pieces, two for each rank and block. Those of the way back are the flags of block
// numbers that no launch by nodes has.
enum gpsh_dev_nodes_way { GPSH_DEV_NODES_ON = 0, GPSH_DEV_NODES_BACK = GPUSHMEM_COLL_NODE_BLOCKS };

GPSH_DEV uint64_t *gpsh_dev_nodes_counter(const struct gpsh_dev_coll &c, int rank,
                                          enum gpsh_dev_nodes_way way)
{
    struct gpsh_dev_coll block = c;
    block.block += (unsigned)way;
    return gpsh_dev_coll_flag(block, GPUSHMEM_COLL_PROGRESS, rank);
}

GPSH_DEV uint64_t gpsh_dev_nodes_count(const struct gpsh_dev_coll &c, uint64_t number)
{
    return c.epoch << 20 | (number + 1);
}

GPSH_DEV bool gpsh_dev_nodes_await(struct gpsh_dev_coll *c, const struct gpsh_dev_link &link,
                                   enum gpsh_dev_nodes_way way)
{
    return gpsh_dev_nodes_await_word(c, gpsh_dev_nodes_counter(*c, link.rank, way),
                                     gpsh_dev_nodes_count(*c, link.number));
}

// By one thread, after a fence: puts a piece at `from` into the dest of a member of another node,
// and its counter after it. `to`: the same place in this PE's dest.
GPSH_DEV_CALL void gpsh_dev_nodes_put(struct gpsh_dev_coll c, struct gpsh_dev_link link, char *to,
                                      const char *from, int rank, enum gpsh_dev_nodes_way way)
{
    GPSH_DEV_BOUNDS();
    gpsh_dev_ring_put_with_word(*c.dev.self, to, from, link.bytes,
                                gpsh_dev_nodes_counter(c, link.rank, way),
                                gpsh_dev_nodes_count(c, link.number), gpsh_dev_coll_pe(c, rank));
}

// By all threads: a piece at `from` to the place `to` on the other members of this node.
GPSH_DEV void gpsh_dev_nodes_spread(const struct gpsh_dev_coll &c,
                                    const struct gpsh_dev_nodes &nodes, const char *to,
                                    const char *from, uint64_t bytes)
{
    for (int k = 1; k < nodes.size; k++)
        gpsh_dev_coll_copy(gpsh_dev_coll_there(c, to, gpsh_dev_nodes_mate(nodes, k)), from, bytes,
                           c.group.rank, c.group.size);
}

// ---- A fold from node to node ----

// Before the first of the shares that this PE holds: for gpsh_dev_nodes_next.
GPSH_DEV struct gpsh_dev_link gpsh_dev_nodes_shares(const struct gpsh_dev_nodes &nodes)
{
    return {0, nodes.index - nodes.size, 0, -1, 0, 0, 0, 0};
}

// To the next share that this PE holds; after the last one to the first one's next piece.
GPSH_DEV void gpsh_dev_nodes_next_share(const struct gpsh_dev_nodes &nodes,
                                        struct gpsh_dev_link *link)
{
    link->index += nodes.size;
    link->held++;
    while (link->index >= nodes.starts[link->node + 1] - nodes.starts[link->node]) {
        link->index = nodes.index;
        if (++link->node < nodes.n)
            continue;
        link->node = 0;
        link->held = 0;
        link->number++;
    }
}

// The block's next piece of a vector of so many bytes; false: there are no more. First pieces come
// first, and of those the ones of low ranks: all members have one order.
GPSH_DEV bool gpsh_dev_nodes_next(const struct gpsh_dev_coll &c, const struct gpsh_dev_nodes &nodes,
                                  uint64_t bytes, struct gpsh_dev_link *link)
{
    const uint64_t share = gpsh_dev_slice_of(bytes, 0, (unsigned)c.n).bytes;
    const uint64_t piece = gpushmem_coll_node_piece(share);
    for (;;) {
        gpsh_dev_nodes_next_share(nodes, link);
        const uint64_t at = link->number * piece;
        if (at >= share)
            return false;
        const uint32_t turn = (uint32_t)link->number * (uint32_t)nodes.n + (uint32_t)link->node;
        if (turn % c.blocks != c.block) // where it wraps around, it does on all members
            continue;
        link->rank = nodes.starts[link->node] + link->index;
        struct gpsh_dev_slice slice = gpsh_dev_slice_of(bytes, (unsigned)link->rank, (unsigned)c.n);
        if (at >= slice.bytes)
            continue;
        link->at = slice.first + at;
        link->kept = (unsigned)link->held * share + at;
        link->bytes = slice.bytes - at < piece ? slice.bytes - at : piece;
        return true;
    }
}

// The members of this node as a team, led by one more that stands for all nodes before this one.
// That is the last PE of the node before: no kernel here maps it, so the fold takes its part from a
// slot, which has what those nodes have folded.
GPSH_DEV struct gpsh_dev_coll gpsh_dev_nodes_alone(const struct gpsh_dev_coll &c,
                                                   const struct gpsh_dev_nodes &nodes)
{
    struct gpsh_dev_coll node = c;
    const int before = nodes.mine > 0;
    node.n = nodes.size + before;
    node.me = nodes.index + before;
    node.start += (nodes.first - before) * node.stride;
    node.pes += nodes.first - before;
    return node;
}

// In place: exchanges what came into dest for the copy of what was there. Then dest is this PE's
// source again, and the copy's place has what the nodes before have folded.
GPSH_DEV void gpsh_dev_nodes_swap(const struct gpsh_dev_coll &c, char *dest, char *kept,
                                  uint64_t bytes)
{
    for (uint64_t at = 16 * (uint64_t)c.group.rank; at < bytes; at += 16 * (uint64_t)c.group.size) {
        const gpsh_dev_unit<4> came = gpsh_dev_load_unit<4>(dest + at, bytes - at);
        gpsh_dev_store_unit<4>(dest + at, gpsh_dev_load_unit<4>(kept + at, bytes - at), bytes - at);
        gpsh_dev_store_unit<4>(kept + at, came, bytes - at);
    }
    gpsh_dev_group_sync(c.group);
}

GPSH_DEV void gpsh_dev_nodes_fold(const struct gpsh_dev_coll &c, const struct gpsh_dev_nodes &nodes,
                                  const struct gpushmem_coll_op &op,
                                  const struct gpsh_dev_link &link)
{
    const struct gpsh_dev_coll node = gpsh_dev_nodes_alone(c, nodes);
    char *dest = (char *)op.dest + link.at;
    struct gpsh_dev_fold_job job =
        gpsh_dev_fold_all(node, (const char *)op.source + link.at, dest, link.bytes);
    job.slots = dest;
    job.only_unmapped = true;
    if (nodes.mine > 0 && op.dest == op.source) {
        gpsh_dev_nodes_swap(c, dest, nodes.kept + link.kept, link.bytes);
        job.slots = nodes.kept + link.kept;
    }
    if (nodes.mine + 1 == nodes.n)
        job.results = gpsh_dev_fold_job::all;
    gpsh_dev_coll_fold(node, op, job, c.group.rank, c.group.size);
}

// Folds this node's sources to what the nodes before have folded, and puts that to the next node,
// or the result from the last node to the one before.
GPSH_DEV void gpsh_dev_nodes_go_on(struct gpsh_dev_coll *c, const struct gpsh_dev_nodes &nodes,
                                   const struct gpushmem_coll_op &op,
                                   const struct gpsh_dev_link &link)
{
    char *dest = (char *)op.dest + link.at;
    bool last = nodes.mine + 1 == nodes.n;
    int to = gpsh_dev_nodes_holder(nodes, last ? nodes.mine - 1 : nodes.mine + 1, link.index);
    if (nodes.mine > 0 && !gpsh_dev_nodes_await(c, link, GPSH_DEV_NODES_ON))
        return;
    gpsh_dev_nodes_fold(*c, nodes, op, link);
    gpsh_dev_group_sync(c->group);
    if (c->group.rank != 0)
        return;
    gpsh_dev_fence_sys();
    gpsh_dev_nodes_put(*c, link, dest, dest, to, last ? GPSH_DEV_NODES_BACK : GPSH_DEV_NODES_ON);
}

// The result, from the node after this one: to the node before, and to the members of this one.
GPSH_DEV void gpsh_dev_nodes_go_back(struct gpsh_dev_coll *c, const struct gpsh_dev_nodes &nodes,
                                     const struct gpushmem_coll_op &op,
                                     const struct gpsh_dev_link &link)
{
    char *dest = (char *)op.dest + link.at;
    if (!gpsh_dev_nodes_await(c, link, GPSH_DEV_NODES_BACK))
        return;
    if (nodes.mine > 0 && c->group.rank == 0)
        gpsh_dev_nodes_put(*c, link, dest, dest,
                           gpsh_dev_nodes_holder(nodes, nodes.mine - 1, link.index),
                           GPSH_DEV_NODES_BACK);
    gpsh_dev_nodes_spread(*c, nodes, dest, dest, link.bytes);
}

// Each rank has a share of the vector, and each share a holder on each node. On the way on a node
// waits for the one before it, on the way back for the one after it, and a block begins with the
// way back when it has sent all its pieces on: so nobody waits in a circle.
GPSH_DEV void gpsh_dev_nodes_reduce(struct gpsh_dev_coll *c, const struct gpsh_dev_nodes &nodes,
                                    const struct gpushmem_coll_op &op)
{
    const uint64_t bytes = gpsh_dev_coll_bytes(op);
    for (struct gpsh_dev_link link = gpsh_dev_nodes_shares(nodes);
         !c->status && gpsh_dev_nodes_next(*c, nodes, bytes, &link);)
        gpsh_dev_nodes_go_on(c, nodes, op, link);
    for (struct gpsh_dev_link link = gpsh_dev_nodes_shares(nodes);
         !c->status && nodes.mine + 1 < nodes.n && gpsh_dev_nodes_next(*c, nodes, bytes, &link);)
        gpsh_dev_nodes_go_back(c, nodes, op, link);
}

// For a reduce in place: a kernel of its own before that of the reduce, in which what others send
// lands in source.
GPSH_DEV void gpsh_dev_nodes_keep(const struct gpsh_dev_coll &c, const struct gpsh_dev_nodes &nodes,
                                  const struct gpushmem_coll_op &op)
{
    for (struct gpsh_dev_link link = gpsh_dev_nodes_shares(nodes);
         gpsh_dev_nodes_next(c, nodes, gpsh_dev_coll_bytes(op), &link);)
        gpsh_dev_coll_copy(nodes.kept + link.kept, (const char *)op.source + link.at, link.bytes,
                           c.group.rank, c.group.size);
}

// ---- Copies to each node once ----

// The block's pieces of `bytes`, one after the other; begun with number + 1 = 0.
GPSH_DEV bool gpsh_dev_nodes_next_piece(const struct gpsh_dev_coll &c, uint64_t bytes,
                                        struct gpsh_dev_link *link)
{
    const uint64_t piece = gpushmem_coll_node_piece(bytes);
    link->number = link->number + 1 == 0 ? c.block : link->number + c.blocks;
    link->at = link->number * piece;
    if (link->at >= bytes)
        return false;
    link->bytes = bytes - link->at < piece ? bytes - link->at : piece;
    return true;
}

GPSH_DEV struct gpsh_dev_link gpsh_dev_nodes_pieces(const struct gpsh_dev_nodes &nodes, int node,
                                                    int index)
{
    return {node, index, nodes.starts[node] + index, 0, ~(uint64_t)0, 0, 0, 0};
}

// By one thread: a piece at `from` to the holders on all other nodes.
GPSH_DEV void gpsh_dev_nodes_put_all(const struct gpsh_dev_coll &c,
                                     const struct gpsh_dev_nodes &nodes,
                                     const struct gpsh_dev_link &link, char *to, const char *from)
{
    for (int k = 1; k < nodes.n; k++)
        gpsh_dev_nodes_put(c, link, to, from,
                           gpsh_dev_nodes_holder(nodes, (nodes.mine + k) % nodes.n, nodes.index),
                           GPSH_DEV_NODES_ON);
}

// Gives each member's block that this PE holds for its node to the others there, as it comes.
GPSH_DEV void gpsh_dev_nodes_take_blocks(struct gpsh_dev_coll *c,
                                         const struct gpsh_dev_nodes &nodes,
                                         const struct gpushmem_coll_op &op)
{
    for (int k = 1; k < nodes.n; k++) {
        int node = (nodes.mine + k) % nodes.n;
        for (int i = nodes.index; i < nodes.starts[node + 1] - nodes.starts[node];
             i += nodes.size) {
            struct gpsh_dev_link link = gpsh_dev_nodes_pieces(nodes, node, i);
            char *block = gpsh_dev_coll_dest(op, link.rank);
            while (!c->status && gpsh_dev_nodes_next_piece(*c, gpsh_dev_coll_bytes(op), &link))
                if (gpsh_dev_nodes_await(c, link, GPSH_DEV_NODES_ON))
                    gpsh_dev_nodes_spread(*c, nodes, block + link.at, block + link.at, link.bytes);
        }
    }
}

GPSH_DEV void gpsh_dev_nodes_fcollect(struct gpsh_dev_coll *c, const struct gpsh_dev_nodes &nodes,
                                      const struct gpushmem_coll_op &op)
{
    const char *source = (const char *)op.source;
    char *block = gpsh_dev_coll_dest(op, c->me);
    struct gpsh_dev_link link = gpsh_dev_nodes_pieces(nodes, nodes.mine, nodes.index);
    while (gpsh_dev_nodes_next_piece(*c, gpsh_dev_coll_bytes(op), &link)) {
        if (c->group.rank == 0)
            gpsh_dev_nodes_put_all(*c, nodes, link, block + link.at, source + link.at);
        gpsh_dev_nodes_spread(*c, nodes, block + link.at, source + link.at, link.bytes);
        if (block != source)
            gpsh_dev_coll_copy(block + link.at, source + link.at, link.bytes, c->group.rank,
                               c->group.size);
    }
    gpsh_dev_nodes_take_blocks(c, nodes, op);
}

// The member of the root's node that sends a piece to the other nodes, in turn: so each of the
// node's NICs carries a part.
GPSH_DEV int gpsh_dev_nodes_sender(const struct gpsh_dev_coll &c, uint64_t number, int size)
{
    return (int)(number / c.blocks % (unsigned)size);
}

// The root gives each piece to its node, and says so to the one that sends it on.
GPSH_DEV void gpsh_dev_nodes_cast(struct gpsh_dev_coll *c, const struct gpsh_dev_nodes &nodes,
                                  const struct gpushmem_coll_op &op, struct gpsh_dev_link link)
{
    const char *from = (const char *)op.source + link.at;
    char *to = (char *)op.dest + link.at;
    const int sender = gpsh_dev_nodes_sender(*c, link.number, nodes.size);
    if (sender == nodes.index && c->group.rank == 0)
        gpsh_dev_nodes_put_all(*c, nodes, link, to, from);
    gpsh_dev_nodes_spread(*c, nodes, to, from, link.bytes);
    if (to != from)
        gpsh_dev_coll_copy(to, from, link.bytes, c->group.rank, c->group.size);
    if (sender == nodes.index)
        return;
    gpsh_dev_group_sync(c->group);
    if (c->group.rank != 0)
        return;
    gpsh_dev_fence_sys();
    gpsh_dev_coll_store(*c, gpsh_dev_nodes_counter(*c, link.rank, GPSH_DEV_NODES_ON),
                        gpsh_dev_nodes_count(*c, link.number), nodes.first + sender);
}

GPSH_DEV void gpsh_dev_nodes_broadcast(struct gpsh_dev_coll *c, const struct gpsh_dev_nodes &nodes,
                                       const struct gpushmem_coll_op &op)
{
    int home = 0; // the root's node
    while (op.root >= nodes.starts[home + 1])
        home++;
    const int first = nodes.starts[home], senders = nodes.starts[home + 1] - first;
    struct gpsh_dev_link link = gpsh_dev_nodes_pieces(nodes, home, op.root - first);
    while (!c->status && gpsh_dev_nodes_next_piece(*c, gpsh_dev_coll_bytes(op), &link)) {
        const int sender = gpsh_dev_nodes_sender(*c, link.number, senders);
        char *dest = (char *)op.dest + link.at;
        struct gpsh_dev_link sent = link;
        sent.rank = first + sender; // each member that sends has a counter of its own
        if (op.root == c->me) {
            gpsh_dev_nodes_cast(c, nodes, op, link);
        } else if (sent.rank == c->me) {
            if (gpsh_dev_nodes_await(c, link, GPSH_DEV_NODES_ON) && c->group.rank == 0)
                gpsh_dev_nodes_put_all(*c, nodes, sent, dest, dest);
        } else if (home != nodes.mine && sender % nodes.size == nodes.index) {
            if (gpsh_dev_nodes_await(c, sent, GPSH_DEV_NODES_ON))
                gpsh_dev_nodes_spread(*c, nodes, dest, dest, link.bytes);
        }
    }
}

// ---- All of it ----

// By the blocks of a launch, as many on all members. stream/coll_choice.h says which operations.
GPSH_DEV void gpsh_dev_coll_nodes(struct gpsh_dev_coll *c, const struct gpushmem_dev_nodes &table,
                                  const struct gpushmem_coll_op &op)
{
    const struct gpsh_dev_nodes nodes = gpsh_dev_nodes_of(*c, table);
    gpsh_dev_nodes_enter(c);
    if (c->status)
        return;
    if (op.kind == GPUSHMEM_COLL_REDUCE)
        gpsh_dev_nodes_reduce(c, nodes, op);
    else if (op.kind == GPUSHMEM_COLL_FCOLLECT)
        gpsh_dev_nodes_fcollect(c, nodes, op);
    else
        gpsh_dev_nodes_broadcast(c, nodes, op);
    gpsh_dev_nodes_leave(c, nodes);
}

#endif
