// SPDX-License-Identifier: BSD-3-Clause
// Collectives of kernels by all blocks of a grid: the bodies of streams' operations, in their
// sequence, between two meetings of the grid. Contract: gpushmem/coll_grid.cuh.
#ifndef GPUSHMEM_DEVICE_COLL_GRID_CUH
#define GPUSHMEM_DEVICE_COLL_GRID_CUH

#include "gpushmem/grid_sync.cuh"

struct gpsh_scope_grid;

// Largest blocks in packets: of two members dense ones take over, of more as streams have it.
enum { GPSH_DEV_GRID_PACKETS_OF_TWO = 64 << 10, GPSH_DEV_GRID_PACKETS = 768 << 10 };

GPSH_DEV int gpsh_dev_grid_way(const struct gpsh_dev_coll &c, const struct gpushmem_coll_op &op)
{
    uint64_t bytes = gpsh_dev_coll_bytes(op), packets = gpushmem_coll_ll_most(c.n, true);
    bool dense = gpushmem_coll_may_be_dense(op.kind, c.n, c.flags);
    if (!(c.flags & GPUSHMEM_DEV_TEAM_DIRECT))
        return gpushmem_coll_in_rounds(op.kind, bytes, c.n, true) ? +GPUSHMEM_COLL_ROUNDS
                                                                  : +GPUSHMEM_COLL_DIRECT;
    if (op.kind != GPUSHMEM_COLL_COLLECT && bytes <= packets &&
        bytes * (unsigned)(c.n - 1) <=
            (dense ? +GPSH_DEV_GRID_PACKETS_OF_TWO : +GPSH_DEV_GRID_PACKETS) &&
        !gpushmem_coll_is_wide(op.kind, op.type, op.fold))
        return GPUSHMEM_COLL_LL;
    if (dense && bytes <= GPSH_DENSE_GRID_MOST)
        return GPUSHMEM_COLL_DENSE;
    return op.kind == GPUSHMEM_COLL_BROADCAST ? +GPUSHMEM_COLL_RELAY : +GPUSHMEM_COLL_DIRECT;
}

// It moves nothing, though it could: of a collect others may bring elements.
GPSH_DEV bool gpsh_dev_grid_is_empty(const struct gpushmem_coll_op &op)
{
    return !op.n && op.kind > GPUSHMEM_COLL_BARRIER && op.kind != GPUSHMEM_COLL_COLLECT;
}

// What a member behind a NIC needs is a proxy's work, and a sync is a few words: one block is
// enough. Not more than have flags and numbers of their own.
GPSH_DEV unsigned gpsh_dev_grid_workers(const struct gpushmem_dev_team &team,
                                        const struct gpushmem_coll_op &op)
{
    unsigned blocks = gpsh_dev_grid_blocks();
    if (!(team.flags & GPUSHMEM_DEV_TEAM_DIRECT) || op.kind <= GPUSHMEM_COLL_BARRIER)
        return 1;
    return blocks < GPUSHMEM_COLL_STREAM_BLOCKS ? blocks : +GPUSHMEM_COLL_STREAM_BLOCKS;
}

// This block's part of an operation.
GPSH_DEV struct gpsh_dev_coll gpsh_dev_grid_coll_of(const struct gpushmem_dev &dev,
                                                    const struct gpushmem_dev_team &team,
                                                    const struct gpushmem_coll_op &op)
{
    struct gpsh_dev_coll c = gpsh_dev_coll_of(dev, gpsh_dev_group_of<gpsh_scope_block>());
    gpsh_dev_coll_take(&c, team);
    gpsh_dev_coll_take_stream(&c, team);
    c.block = gpsh_dev_block_number();
    c.blocks = gpsh_dev_grid_workers(team, op);
    c.lane = c.block * c.group.size + c.group.rank;
    c.lanes = c.blocks * c.group.size;
    c.epoch_word = team.epochs + GPUSHMEM_TEAM_STREAM_EPOCHS + c.block;
    return c;
}

// What is in the handle's slot, or nothing.
GPSH_DEV struct gpushmem_dev_team gpsh_dev_grid_team(const struct gpsh_dev_teams &teams, int handle)
{
    const struct gpushmem_dev_team *entry = gpsh_dev_teams_at(teams, handle);
    return entry ? gpsh_dev_team_read(entry) : gpushmem_dev_team{};
}

// The team has memory for operations of streams.
GPSH_DEV bool gpsh_dev_grid_has(const struct gpushmem_dev_team &team, int handle)
{
    return gpsh_dev_team_is(team, handle) && !gpsh_dev_handle_channel(handle) &&
           team.flags & GPUSHMEM_DEV_TEAM_STREAM;
}

// ---- Meetings of the blocks ----

// Where all blocks meet, the low half of a word is 0 before and after: the first block takes off
// how many others there are, and each of these adds 1. Between two meetings in a word there is one
// in the other word, so none finds blocks that are early for the next. The high half counts those
// that brought news. The grid's own meeting (gpsh_dev_grid_meet) has no news and cannot be left
// between arriving and waiting, where a block reads what it needs next: 1 us of an operation.
#define GPSH_DEV_GRID_NEWS ((uint64_t)1 << 32)

GPSH_DEV void gpsh_dev_grid_arrive(const struct gpsh_dev_group &block, uint64_t *word,
                                   uint64_t news = 0)
{
    gpsh_dev_group_sync(block);
    if (!block.rank)
        gpsh_dev_add64_release_gpu(
            word, news + (gpsh_dev_block_number() ? 1 : 1 - (uint64_t)gpsh_dev_grid_blocks()));
}

// True in the block's first thread, where a block brought news; all that the blocks did before they
// arrived is visible to it, and to this block once that has met.
GPSH_DEV bool gpsh_dev_grid_await(const struct gpsh_dev_group &block, const uint64_t *word)
{
    uint64_t seen = 0;
#if defined(__CUDACC__)
    do
        seen = block.rank ? 0 : gpsh_dev_load64_acquire_gpu(word);
    while ((uint32_t)seen);
#else
    if (gpsh_dev_grid_blocks() > 1)
        gpsh_dev_grid_meet(); // it knows of threads that have left the kernel
    seen = block.rank ? 0 : gpsh_dev_load64_acquire_gpu(word);
#endif
    return seen >> 32;
}

GPSH_DEV void gpsh_dev_grid_enter(const struct gpsh_dev_group &block, const uint64_t *words)
{
    gpsh_dev_grid_await(block, words + GPUSHMEM_TEAM_GRID_ENTER);
    gpsh_dev_group_sync(block);
}

// 0, or why a block gave up, which this one may have done.
GPSH_DEV int gpsh_dev_grid_leave(const struct gpsh_dev_coll &c, uint64_t *words)
{
    if (c.status && c.group.rank == 0)
        gpsh_dev_store64_relaxed_gpu(words + GPUSHMEM_TEAM_GRID_FAILED,
                                     gpushmem_team_poison(c.handle, c.status));
    gpsh_dev_grid_arrive(c.group, words + GPUSHMEM_TEAM_GRID_LEAVE,
                         c.status ? GPSH_DEV_GRID_NEWS : 0);
    bool failed = gpsh_dev_grid_await(c.group, words + GPUSHMEM_TEAM_GRID_LEAVE);
    if (!gpsh_dev_group_any(c.group, failed || c.status))
        return 0;
    return gpsh_dev_poison_status(c.handle,
                                  gpsh_dev_load64_relaxed_gpu(words + GPUSHMEM_TEAM_GRID_FAILED));
}

// ---- The operation ----

GPSH_DEV void gpsh_dev_grid_work(struct gpsh_dev_coll *c, const struct gpushmem_coll_op &op)
{
    if (op.kind <= GPUSHMEM_COLL_BARRIER) {
        if (op.kind == GPUSHMEM_COLL_BARRIER && c->lane == 0 &&
            !(c->dev.flags & GPUSHMEM_DEV_ALL_DIRECT))
            gpsh_dev_quiet(c->dev, c->dev);
        gpsh_dev_coll_sync(c);
    } else if (c->n == 1) {
        gpsh_dev_coll_alone(*c, op);
    } else {
        switch (gpsh_dev_grid_way(*c, op)) {
        case GPUSHMEM_COLL_LL: c->status = gpsh_dev_coll_packets(*c, op); break;
        case GPUSHMEM_COLL_DENSE: gpsh_dev_coll_dense<GPSH_DENSE_GRID>(c, op); break;
        case GPUSHMEM_COLL_ROUNDS: gpsh_dev_coll_rounds(c, op); break;
        case GPUSHMEM_COLL_RELAY: gpsh_dev_broadcast_relayed(c, op); break;
        default: gpsh_dev_coll_direct(c, op); break;
        }
    }
    gpsh_dev_coll_finish(c, c->status);
}

// GPUSHMEM_CHECK=1: the first block compares the calls, in the sequence of kernels' own operations.
GPSH_DEV int gpsh_dev_grid_compare(const struct gpushmem_dev &dev,
                                   const struct gpsh_dev_teams &teams,
                                   const struct gpushmem_coll_op &op, int status)
{
    struct gpsh_dev_coll c = gpsh_dev_coll_of(dev, gpsh_dev_group_of<gpsh_scope_block>());
    if (!gpsh_dev_coll_begin(&c, teams, op.team))
        return c.status;
    if (gpsh_dev_coll_compares(&c))
        if (int refused = gpsh_dev_coll_compare(c, op, status, gpsh_dev_grid_blocks()))
            return refused;
    return gpsh_dev_coll_end(&c);
}

// Any operation. Functions want the address of its state, so that lies in local memory here: each
// look at it after a meeting is one at the second-level cache.
GPSH_DEV_CALL int gpsh_dev_grid_large(const struct gpushmem_dev &dev, struct gpsh_dev_teams teams,
                                      struct gpushmem_coll_op op)
{
    GPSH_DEV_BOUNDS();
    const struct gpushmem_dev_team team = gpsh_dev_grid_team(teams, op.team);
    struct gpsh_dev_coll c = gpsh_dev_grid_coll_of(dev, team, op);
    if (!gpsh_dev_grid_has(team, op.team)) {
        gpsh_dev_coll_refuse(&c, GPUSHMEM_FAULT_TEAM, 0, (uint64_t)op.team, 1);
        return c.status;
    }
    const bool compares = team.flags & GPUSHMEM_DEV_TEAM_CHECKED;
    int status = op.kind > GPUSHMEM_COLL_BARRIER ? gpsh_dev_coll_check(c, op) : 0;
    if (!compares && (status || gpsh_dev_grid_is_empty(op)))
        return status ? status : gpsh_dev_grid_sync(dev); // without elements it is a meeting
    if (int state = gpsh_dev_grid_check(dev))
        return state;
    bool works = c.block < c.blocks;
    if (compares && c.block == 0) {
        status = gpsh_dev_grid_compare(dev, teams, op, status);
        if (c.group.rank == 0)
            gpsh_dev_store64_relaxed_gpu(team.epochs + GPUSHMEM_TEAM_GRID_REFUSED,
                                         (uint64_t)-status);
    }
    gpsh_dev_grid_arrive(c.group, team.epochs + GPUSHMEM_TEAM_GRID_ENTER);
    if (works && !compares)
        gpsh_dev_coll_start(&c, false);
    gpsh_dev_grid_enter(c.group, team.epochs);
    if (compares) {
        status = -(int)gpsh_dev_load64_relaxed_gpu(team.epochs + GPUSHMEM_TEAM_GRID_REFUSED);
        works = works && !status && !gpsh_dev_grid_is_empty(op);
        if (works)
            gpsh_dev_coll_start(&c, false);
    }
    if (works)
        gpsh_dev_grid_work(&c, op);
    int failed = gpsh_dev_grid_leave(c, team.epochs);
    return status ? status : failed;
}

// ---- Small ones ----

// Each thread has one unit at most. Others may send the same packets in a loop: members' grids may
// have different numbers of threads.
GPSH_DEV bool gpsh_dev_grid_may_be_small(const struct gpushmem_coll_op &op)
{
    const uint64_t most = GPSH_DEV_GRID_PACKETS_OF_TWO;
    uint64_t all = (uint64_t)gpsh_dev_grid_blocks() * gpsh_dev_block_threads() * GPSH_LL_UNIT,
             bytes = gpsh_dev_coll_bytes(op);
    return op.n - 1 < most && bytes <= most && bytes <= all && op.kind > GPUSHMEM_COLL_BARRIER &&
           op.kind != GPUSHMEM_COLL_COLLECT && op.kind != GPUSHMEM_COLL_ALLTOALLS;
}
GPSH_DEV bool gpsh_dev_grid_is_small(const struct gpsh_dev_coll &c,
                                     const struct gpushmem_coll_op &op)
{
    return c.n >= 2 && c.n <= GPSH_DEV_SMALL_OTHERS + 1 && !gpsh_dev_checked(c) &&
           gpsh_dev_coll_bytes(op) <= (uint64_t)c.lanes * GPSH_LL_UNIT &&
           gpsh_dev_grid_way(c, op) == GPUSHMEM_COLL_LL;
}

template <int OTHERS>
GPSH_DEV int gpsh_dev_grid_small_of(struct gpsh_dev_coll *c, const struct gpushmem_coll_op &op,
                                    uint64_t *words)
{
    const bool works = c->block < c->blocks;
    gpsh_dev_grid_arrive(c->group, words + GPUSHMEM_TEAM_GRID_ENTER);
    if (works)
        gpsh_dev_coll_start(c, false);
    gpsh_dev_grid_enter(c->group, words);
    if (works) {
        gpsh_dev_small_of_grid<OTHERS>(c, op);
        gpsh_dev_coll_finish(c, c->status);
    }
    return gpsh_dev_grid_leave(*c, words);
}

// Its state is in registers.
GPSH_DEV_CALL int gpsh_dev_grid_small(const struct gpushmem_dev &dev, struct gpsh_dev_teams teams,
                                      struct gpushmem_coll_op op)
{
    GPSH_DEV_BOUNDS();
    const struct gpushmem_dev_team team = gpsh_dev_grid_team(teams, op.team);
    struct gpsh_dev_coll c = gpsh_dev_grid_coll_of(dev, team, op);
    if (!gpsh_dev_grid_has(team, op.team) || !gpsh_dev_grid_is_small(c, op))
        return gpsh_dev_grid_large(dev, teams, op);
    int status = gpsh_dev_coll_check(c, op);
    if (!status)
        status = gpsh_dev_grid_check(dev);
    if (status)
        return status;
    return c.n == 2 ? gpsh_dev_grid_small_of<1>(&c, op, team.epochs)
                    : gpsh_dev_grid_small_of<GPSH_DEV_SMALL_OTHERS>(&c, op, team.epochs);
}

// By all threads of the grid: 0, or a status that is the same for all. All blocks meet before it,
// as all have written their parts of source and read what was in dest, and after it.
GPSH_DEV int gpsh_dev_coll_grid(const struct gpushmem_dev &dev, const struct gpsh_dev_teams &teams,
                                const struct gpushmem_coll_op &op)
{
    return gpsh_dev_grid_may_be_small(op) ? gpsh_dev_grid_small(dev, teams, op)
                                          : gpsh_dev_grid_large(dev, teams, op);
}

#endif
