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

// The same packets either way: members' grids may have different numbers of threads.
GPSH_DEV void gpsh_dev_grid_packets(struct gpsh_dev_coll *c, const struct gpushmem_coll_op &op)
{
    bool one_each = gpsh_dev_coll_bytes(op) <= (uint64_t)c->lanes * GPSH_LL_UNIT &&
                    op.kind != GPUSHMEM_COLL_ALLTOALLS;
    if (one_each && c->n == 2)
        gpsh_dev_small_of_grid<1>(c, op);
    else if (one_each && c->n <= GPSH_DEV_SMALL_OTHERS + 1)
        gpsh_dev_small_of_grid<GPSH_DEV_SMALL_OTHERS>(c, op);
    else
        gpsh_dev_coll_ll(c, op);
}

// False: there is no such team with memory for operations of streams, and c->status says so. The
// same in all threads of the grid, but one of them records it.
GPSH_DEV bool gpsh_dev_grid_team(struct gpsh_dev_coll *c, const struct gpsh_dev_teams &teams,
                                 int handle)
{
    struct gpushmem_dev_team team = {};
    const struct gpushmem_dev_team *entry = gpsh_dev_teams_at(teams, handle);
    if (entry)
        team = gpsh_dev_team_read(entry);
    if (!entry || !gpsh_dev_team_is(team, handle) || gpsh_dev_handle_channel(handle) ||
        !(team.flags & GPUSHMEM_DEV_TEAM_STREAM)) {
        gpsh_dev_coll_refuse(c, GPUSHMEM_FAULT_TEAM, 0, (uint64_t)handle, 1);
        return false;
    }
    gpsh_dev_coll_take(c, team);
    gpsh_dev_coll_take_stream(c, team);
    c->epoch_word = team.epochs;
    return true;
}

// What a member behind a NIC needs is a proxy's work, and a sync is a few words: one block is
// enough. Not more than have flags and numbers of their own.
GPSH_DEV unsigned gpsh_dev_grid_workers(const struct gpsh_dev_coll &c,
                                        const struct gpushmem_coll_op &op)
{
    unsigned blocks = gpsh_dev_grid_blocks();
    if (!(c.flags & GPUSHMEM_DEV_TEAM_DIRECT) || op.kind <= GPUSHMEM_COLL_BARRIER)
        return 1;
    return blocks < GPUSHMEM_COLL_STREAM_BLOCKS ? blocks : +GPUSHMEM_COLL_STREAM_BLOCKS;
}

GPSH_DEV void gpsh_dev_grid_work(struct gpsh_dev_coll *c, const struct gpushmem_coll_op &op)
{
    gpsh_dev_coll_start(c, false);
    if (op.kind <= GPUSHMEM_COLL_BARRIER) {
        if (op.kind == GPUSHMEM_COLL_BARRIER && c->lane == 0 &&
            !(c->dev.flags & GPUSHMEM_DEV_ALL_DIRECT))
            gpsh_dev_quiet(c->dev, c->dev);
        gpsh_dev_coll_sync(c);
    } else if (c->n == 1) {
        gpsh_dev_coll_alone(*c, op);
    } else {
        switch (gpsh_dev_grid_way(*c, op)) {
        case GPUSHMEM_COLL_LL: gpsh_dev_grid_packets(c, op); break;
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

// By all threads of the grid: 0, or a status that is the same for all.
GPSH_DEV_CALL int gpsh_dev_coll_grid(const struct gpushmem_dev &dev, struct gpsh_dev_teams teams,
                                     struct gpushmem_coll_op op)
{
    GPSH_DEV_BOUNDS();
    struct gpsh_dev_coll c = gpsh_dev_coll_of(dev, gpsh_dev_group_of<gpsh_scope_block>());
    if (!gpsh_dev_grid_team(&c, teams, op.team))
        return c.status;
    uint64_t *words = c.epoch_word;
    bool nothing = !op.n && op.kind > GPUSHMEM_COLL_BARRIER && op.kind != GPUSHMEM_COLL_COLLECT;
    bool compares = c.flags & GPUSHMEM_DEV_TEAM_CHECKED;
    int status = op.kind > GPUSHMEM_COLL_BARRIER ? gpsh_dev_coll_check(c, op) : 0;
    if (!compares && (status || nothing))
        return status ? status : gpsh_dev_grid_sync(dev); // without elements it is a meeting
    c.block = gpsh_dev_block_number();
    c.blocks = gpsh_dev_grid_workers(c, op);
    c.lane = c.block * c.group.size + c.group.rank;
    c.lanes = c.blocks * c.group.size;
    if (compares && c.block == 0) {
        status = gpsh_dev_grid_compare(dev, teams, op, status);
        if (c.group.rank == 0)
            gpsh_dev_store64_relaxed_gpu(words + GPUSHMEM_TEAM_GRID_REFUSED, (uint64_t)-status);
    }
    // all blocks have written their parts of source, and read what was in dest
    if ((status = gpsh_dev_grid_sync(dev)))
        return status;
    if (compares) {
        status = -(int)gpsh_dev_load64_relaxed_gpu(words + GPUSHMEM_TEAM_GRID_REFUSED);
        if (status || nothing) {
            int late = gpsh_dev_grid_sync(dev); // all have read it before the next call writes it
            return late ? late : status;
        }
    }
    if (c.block < c.blocks) {
        c.epoch_word = words + GPUSHMEM_TEAM_STREAM_EPOCHS + c.block;
        gpsh_dev_grid_work(&c, op);
        if (c.status && c.group.rank == 0)
            gpsh_dev_store64_relaxed_gpu(words + GPUSHMEM_TEAM_GRID_FAILED,
                                         gpushmem_team_poison(c.handle, c.status));
    }
    if ((status = gpsh_dev_grid_sync(dev)))
        return status;
    return gpsh_dev_poison_status(c.handle,
                                  gpsh_dev_load64_relaxed_gpu(words + GPUSHMEM_TEAM_GRID_FAILED));
}

#endif
