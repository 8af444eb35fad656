// SPDX-License-Identifier: BSD-3-Clause
// Small collectives where some member is behind a NIC, in rounds of dissemination: in round i each
// member sends one message to the member 2^i after it, with all blocks that it has. After
// ceil(log2(n)) rounds each has heard from all: J. Bruck, C. Ho, S. Kipnis, E. Upfal,
// D. Weathersby, "Efficient algorithms for all-to-all communications in multiport message-passing
// systems", 1997. Blocks are folded when all are there, so the order is that of the ranks.
//
// A round has a word for odd and one for even numbers. A member sends to a word again when it has
// heard from all in the operation between, so the receiver has taken the message before: no two
// messages to a word, or to the memory that it announces, are ever under way, and none needs a
// fence in front.
#ifndef GPUSHMEM_DEVICE_COLL_ROUNDS_CUH
#define GPUSHMEM_DEVICE_COLL_ROUNDS_CUH

#include "gpushmem/device/coll_unit.cuh"

// ---- One round ----

GPSH_DEV uint64_t *gpsh_dev_round_word(const struct gpsh_dev_coll &c, int round)
{
    return (uint64_t *)(c.scratch + GPUSHMEM_COLL_SYNC_AT) +
           (c.epoch & 1) * GPUSHMEM_COLL_ROUNDS_MOST + round;
}

// By one thread, after a fence: what goes to a mapped member is there already. For any other the
// word is the signal of the put, or comes alone; by the NIC's queue where there is one.
GPSH_DEV_CALL void gpsh_dev_round_tell(const struct gpsh_dev_coll &c, int round, int to, char *at,
                                       const char *from, uint64_t bytes)
{
    GPSH_DEV_BOUNDS();
    uint64_t *word = gpsh_dev_round_word(c, round);
    int pe = gpsh_dev_coll_pe(c, to);
    if (char *there = gpsh_dev_coll_there(c, word, to))
        gpsh_dev_store64_sys(there, c.epoch);
    else if (gpsh_dev_coll_post(*c.dev.self, at, from, bytes, word, c.epoch, pe, false))
        return;
    else if (bytes)
        gpsh_dev_ring_put_with_word(*c.dev.self, at, from, bytes, word, c.epoch, pe);
    else
        gpsh_dev_ring_put_value(*c.dev.self, word, c.epoch, sizeof *word, pe);
}

// By all threads of the group: `bytes` from here to `at` of the member `distance` = 2^round after
// this one, and a message from the member as far before it.
GPSH_DEV_CALL void gpsh_dev_round(struct gpsh_dev_coll *c, int round, int distance, char *at,
                                  const char *from, uint64_t bytes)
{
    GPSH_DEV_BOUNDS();
    int to = c->me + distance < c->n ? c->me + distance : c->me + distance - c->n;
    char *there = bytes ? gpsh_dev_coll_there(*c, at, to) : nullptr;
    if (there && !c->status)
        gpsh_dev_coll_copy(there, from, bytes, c->group.rank, c->group.size);
    c->status = gpsh_dev_group_agree(c->group, c->status);
    if (c->status)
        return;
    if (c->group.rank == 0) {
        gpsh_dev_fence_sys(); // for all threads of the group: they came through its barrier
        gpsh_dev_round_tell(*c, round, to, at, from, bytes);
        gpsh_dev_coll_await(c, gpsh_dev_round_word(*c, round), c->epoch);
    }
    c->status = gpsh_dev_group_agree(c->group, c->status); // one thread alone knows it
}

// ---- All rounds ----

// blocks[k], of `bytes`, becomes that of the rank k before this one; blocks[0] is there.
GPSH_DEV_CALL void gpsh_dev_rounds_gather(struct gpsh_dev_coll *c, char *blocks, uint64_t bytes)
{
    GPSH_DEV_BOUNDS();
    for (int round = 0, have = 1; have < c->n; round++, have *= 2) {
        int wanted = have < c->n - have ? have : c->n - have;
        gpsh_dev_round(c, round, have, blocks + (unsigned)have * bytes, blocks,
                       (unsigned)wanted * bytes);
    }
}

GPSH_DEV int gpsh_dev_rounds_met(const struct gpsh_dev_coll &c)
{
    struct gpsh_dev_coll all = c;
    gpsh_dev_rounds_gather(&all, nullptr, 0);
    return all.status;
}

// The root's block goes to all: those that have it send it, the others send the word alone.
GPSH_DEV_CALL void gpsh_dev_rounds_cast(struct gpsh_dev_coll *c, int root, char *block,
                                        uint64_t bytes)
{
    GPSH_DEV_BOUNDS();
    int after = c->me - root < 0 ? c->me - root + c->n : c->me - root;
    for (int round = 0, have = 1; have < c->n; round++, have *= 2)
        gpsh_dev_round(c, round, have, block, block,
                       after < have && after + have < c->n ? bytes : 0);
}

// ---- Operations ----

// Where the block of `rank` lies after gather.
GPSH_DEV const char *gpsh_dev_rounds_block(const struct gpsh_dev_coll &c, const char *blocks,
                                           uint64_t bytes, int rank)
{
    return blocks + (unsigned)(rank <= c.me ? c.me - rank : c.me - rank + c.n) * bytes;
}

GPSH_DEV void gpsh_dev_rounds_fold(const struct gpsh_dev_coll &c, const struct gpushmem_coll_op &op,
                                   const char *blocks, uint64_t padded)
{
    uint64_t bytes = gpsh_dev_coll_bytes(op);
    int end = gpsh_dev_coll_fold_end(c, op);
    for (uint64_t at = 16 * c.group.rank; at < bytes; at += 16 * (uint64_t)c.group.size) {
        gpsh_dev_acc<4> acc = {};
        for (int r = 0; r < end; r++) {
            const char *from = gpsh_dev_rounds_block(c, blocks, padded, r) + at;
            acc = gpsh_dev_fold_step<4>(acc, gpsh_dev_load_unit<4>(from, bytes - at), op.type,
                                        op.fold, r == 0);
        }
        gpsh_dev_store_unit<4>((char *)op.dest + at, gpsh_dev_fold_result(acc, op.type),
                               bytes - at);
    }
}

// What is left to do with the blocks that are here. The own block of fcollect and broadcast may be
// in its place.
GPSH_DEV void gpsh_dev_rounds_take(const struct gpsh_dev_coll &c, const struct gpushmem_coll_op &op,
                                   const char *blocks, uint64_t padded)
{
    uint64_t bytes = gpsh_dev_coll_bytes(op);
    if (gpsh_dev_coll_folds(op)) {
        gpsh_dev_rounds_fold(c, op, blocks, padded);
        return;
    }
    bool gathered = op.kind == GPUSHMEM_COLL_FCOLLECT;
    for (int r = 0; r < (gathered ? c.n : 1); r++)
        gpsh_dev_coll_copy(gpsh_dev_coll_dest(op, r),
                           gathered ? gpsh_dev_rounds_block(c, blocks, padded, r) : blocks, bytes,
                           c.group.rank, c.group.size);
}

// gpushmem_coll_in_rounds says which. By one block.
GPSH_DEV_CALL int gpsh_dev_rounds_done(struct gpsh_dev_coll c, struct gpushmem_coll_op op)
{
    GPSH_DEV_BOUNDS();
    uint64_t bytes = gpsh_dev_coll_bytes(op), padded = gpushmem_coll_padded(bytes);
    char *blocks = c.scratch + gpushmem_coll_stage_at(c.room, c.stream) +
                   (c.epoch & 1) * gpushmem_coll_half_stage(c.stream);
    bool cast = op.kind == GPUSHMEM_COLL_BROADCAST;
    if (!cast || op.root == c.me)
        gpsh_dev_coll_copy(blocks, (const char *)op.source, bytes, c.group.rank, c.group.size);
    gpsh_dev_group_sync(c.group); // a thread sends what others copied
    if (cast)
        gpsh_dev_rounds_cast(&c, op.root, blocks, bytes);
    else
        gpsh_dev_rounds_gather(&c, blocks, padded);
    if (!c.status)
        gpsh_dev_rounds_take(c, op, blocks, padded);
    return c.status;
}

GPSH_DEV void gpsh_dev_coll_rounds(struct gpsh_dev_coll *c, const struct gpushmem_coll_op &op)
{
    c->status = gpsh_dev_rounds_done(*c, op);
}

#endif
