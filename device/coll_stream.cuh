// SPDX-License-Identifier: BSD-3-Clause
// Collectives of streams: the same bodies as kernels of several blocks. Each block has the
// operation's number in a word of its own, and all words are advanced by each operation, so that
// the number of blocks may change and no block waits for another one of its launch.
#ifndef GPUSHMEM_DEVICE_COLL_STREAM_CUH
#define GPUSHMEM_DEVICE_COLL_STREAM_CUH

#include "gpushmem/device/coll.cuh"

enum { GPSH_STREAM_EPOCHS = GPUSHMEM_TEAM_EPOCHS - GPUSHMEM_COLL_STREAM_BLOCKS };

GPSH_DEV struct gpsh_dev_coll gpsh_dev_stream_coll_begin(const struct gpushmem_dev &dev,
                                                         const struct gpushmem_dev_team &team,
                                                         bool goes_on = false)
{
    struct gpsh_dev_coll c = gpsh_dev_coll_of(dev, gpsh_dev_group_of<gpsh_scope_block>());
    gpsh_dev_coll_take(&c, team);
    c.handle = team.team;
    c.stream = true;
    c.scratch = team.stream_scratch;
    c.block = gpsh_dev_block_number();
    c.blocks = gpsh_dev_grid_blocks();
    c.lane = c.block * c.group.size + c.group.rank;
    c.lanes = c.blocks * c.group.size;
    c.epoch_word = team.epochs + GPSH_STREAM_EPOCHS + c.block;
    gpsh_dev_coll_start(&c, goes_on);
    return c;
}

GPSH_DEV void gpsh_dev_stream_coll_end(struct gpsh_dev_coll *c)
{
    gpsh_dev_coll_finish(c, c->status);
}

// ---- One kernel each ----

GPSH_DEV void gpsh_dev_stream_sync(const struct gpushmem_dev &dev,
                                   const struct gpushmem_dev_team &team,
                                   const struct gpushmem_coll_op &op)
{
    struct gpsh_dev_coll c = gpsh_dev_stream_coll_begin(dev, team);
    if (op.kind == GPUSHMEM_COLL_BARRIER && c.lane == 0 && !(dev.flags & GPUSHMEM_DEV_ALL_DIRECT))
        gpsh_dev_quiet(dev, dev);
    gpsh_dev_coll_sync(&c);
    gpsh_dev_stream_coll_end(&c);
}

GPSH_DEV void gpsh_dev_stream_packets(const struct gpushmem_dev &dev,
                                      const struct gpushmem_dev_team &team,
                                      const struct gpushmem_coll_op &op)
{
    struct gpsh_dev_coll c = gpsh_dev_stream_coll_begin(dev, team);
    if (c.n == 1)
        gpsh_dev_coll_alone(c, op);
    else
        gpsh_dev_coll_ll(&c, op);
    gpsh_dev_stream_coll_end(&c);
}

GPSH_DEV void gpsh_dev_stream_large(const struct gpushmem_dev &dev,
                                    const struct gpushmem_dev_team &team,
                                    const struct gpushmem_coll_op &op)
{
    struct gpsh_dev_coll c = gpsh_dev_stream_coll_begin(dev, team);
    if (c.n == 1)
        gpsh_dev_coll_alone(c, op);
    else if (op.way == GPUSHMEM_COLL_PUSH)
        gpsh_dev_fold_push(&c, op);
    else if (op.way == GPUSHMEM_COLL_ROUNDS)
        gpsh_dev_coll_rounds(&c, op);
    else
        gpsh_dev_coll_direct(&c, op);
    gpsh_dev_stream_coll_end(&c);
}

// The copy engine's work lies between the two: both have the same number.
GPSH_DEV void gpsh_dev_stream_enter(const struct gpushmem_dev &dev,
                                    const struct gpushmem_dev_team &team)
{
    struct gpsh_dev_coll c = gpsh_dev_stream_coll_begin(dev, team);
    gpsh_dev_coll_exchange(&c, GPUSHMEM_COLL_ENTRY);
    if (c.status && c.group.rank == 0)
        gpsh_dev_coll_poison(c);
}

GPSH_DEV void gpsh_dev_stream_leave(const struct gpushmem_dev &dev,
                                    const struct gpushmem_dev_team &team)
{
    struct gpsh_dev_coll c = gpsh_dev_stream_coll_begin(dev, team, true);
    gpsh_dev_coll_exchange(&c, GPUSHMEM_COLL_EXIT);
    gpsh_dev_stream_coll_end(&c);
}

// On CPU threads: whatever it is. There are no copy engines.
GPSH_DEV void gpsh_dev_stream_coll(const struct gpushmem_dev &dev,
                                   const struct gpushmem_dev_team &team,
                                   const struct gpushmem_coll_op &op)
{
    if (op.kind <= GPUSHMEM_COLL_BARRIER)
        gpsh_dev_stream_sync(dev, team, op);
    else if (op.way == GPUSHMEM_COLL_LL)
        gpsh_dev_stream_packets(dev, team, op);
    else
        gpsh_dev_stream_large(dev, team, op);
}

#endif
