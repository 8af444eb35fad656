// SPDX-License-Identifier: BSD-3-Clause
// Collectives of streams: the same bodies as kernels of several blocks. Each block has the
// operation's number in a word of its own, and all words are advanced by each operation, so that
// the number of blocks may change and no block waits for another one of its launch.
#ifndef GPUSHMEM_DEVICE_COLL_STREAM_CUH
#define GPUSHMEM_DEVICE_COLL_STREAM_CUH

#include "gpushmem/device/coll.cuh"
#include "gpushmem/device/coll_few.cuh"
#include "gpushmem/device/coll_nodes.cuh"
#if defined(GPSH_COLL_SUMS)
#include "gpushmem/device/coll_unrolled.cuh"
#endif

// The library launches blocks of one dimension: no numbers of three are put together.
GPSH_DEV struct gpsh_dev_group gpsh_dev_stream_group(void)
{
#if defined(__CUDA_ARCH__)
    return {threadIdx.x, blockDim.x, gpsh_dev_group::block};
#else
    return gpsh_dev_group_of<gpsh_scope_block>();
#endif
}
GPSH_DEV unsigned gpsh_dev_stream_block(void)
{
#if defined(__CUDA_ARCH__)
    return blockIdx.x;
#else
    return gpsh_dev_block_number();
#endif
}
GPSH_DEV unsigned gpsh_dev_stream_blocks(void)
{
#if defined(__CUDA_ARCH__)
    return gridDim.x;
#else
    return gpsh_dev_grid_blocks();
#endif
}

GPSH_DEV struct gpsh_dev_coll gpsh_dev_stream_coll_of(const struct gpushmem_dev &dev,
                                                      const struct gpushmem_dev_team &team)
{
    struct gpsh_dev_coll c = gpsh_dev_coll_of(dev, gpsh_dev_stream_group());
    gpsh_dev_coll_take(&c, team);
    gpsh_dev_coll_take_stream(&c, team);
    c.block = gpsh_dev_stream_block();
    c.blocks = gpsh_dev_stream_blocks();
    c.lane = c.block * c.group.size + c.group.rank;
    c.lanes = c.blocks * c.group.size;
    c.epoch_word = team.epochs + GPUSHMEM_TEAM_STREAM_EPOCHS + c.block;
    return c;
}

GPSH_DEV struct gpsh_dev_coll gpsh_dev_stream_coll_begin(const struct gpushmem_dev &dev,
                                                         const struct gpushmem_dev_team &team,
                                                         bool goes_on = false)
{
    struct gpsh_dev_coll c = gpsh_dev_stream_coll_of(dev, team);
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

GPSH_DEV_CALL void gpsh_dev_stream_packets_once(const struct gpushmem_dev &dev,
                                                const struct gpushmem_dev_team &team,
                                                const struct gpushmem_coll_op &op)
{
    GPSH_DEV_BOUNDS();
    gpsh_dev_stream_packets(dev, team, op);
}

// The same packets, of threads that have one unit each. A number whose low half is 0 is rare.
template <int OTHERS>
GPSH_DEV void
gpsh_dev_stream_few(const struct gpushmem_dev &dev, const struct gpushmem_dev_team &team,
                    const struct gpushmem_coll_op &op, const struct gpushmem_coll_few &ready)
{
    struct gpsh_dev_few<OTHERS> few;
    struct gpsh_dev_coll c = gpsh_dev_stream_coll_of(dev, team);
    // one latency for the operation's number, the team's poison and the data
    uint64_t before = gpsh_dev_load64_relaxed_gpu(ready.epochs + c.block);
    uint64_t poison = gpsh_dev_load64_value_sys(ready.scratch);
    gpsh_dev_few_load(ready, c.lane, &few);
    c.epoch = before + 1;
    c.status = gpsh_dev_poison_status(c.handle, poison);
    if (!(uint32_t)c.epoch) {
        gpsh_dev_stream_packets_once(dev, team, op);
        return;
    }
    if (c.status)
        gpsh_dev_fail(c.dev, c.status, -1, nullptr, 0);
    gpsh_dev_coll_few(&c, ready, op, &few);
    gpsh_dev_stream_coll_end(&c);
}

// Copies and the sums of gradients in place.
GPSH_DEV void gpsh_dev_stream_dense_do(struct gpsh_dev_coll *c, const struct gpushmem_coll_op &op)
{
    constexpr int sum = GPUSHMEM_COLL_SUM;
    const gpsh_dev_fold_any any = {op.type, op.fold};
    if (!gpsh_dev_dense_whole(op)) {
        c->status = gpsh_dev_dense_parts<GPSH_DENSE_GRID>(*c, op);
        return;
    }
    switch (!gpsh_dev_coll_folds(op) ? -1 : op.fold == sum ? +op.type : -2) {
    case -1: gpsh_dev_dense_run<GPSH_DENSE_GRID, true>(c, op, gpsh_dev_fold_none(), false); break;
    case GPUSHMEM_COLL_FLOAT:
        gpsh_dev_dense_run<GPSH_DENSE_GRID, true>(
            c, op, gpsh_dev_fold_one<GPUSHMEM_COLL_FLOAT, sum>(), true);
        break;
#if defined(GPSH_COLL_SUMS)
    case GPUSHMEM_COLL_HALF:
        gpsh_dev_dense_run<GPSH_DENSE_GRID, true>(
            c, op, gpsh_dev_fold_one<GPUSHMEM_COLL_HALF, sum>(), true);
        break;
    case GPUSHMEM_COLL_BFLOAT16:
        gpsh_dev_dense_run<GPSH_DENSE_GRID, true>(
            c, op, gpsh_dev_fold_one<GPUSHMEM_COLL_BFLOAT16, sum>(), true);
        break;
#endif
    default: c->status = gpsh_dev_dense_by<GPSH_DENSE_GRID, true>(*c, op, any, true); break;
    }
}

GPSH_DEV void gpsh_dev_stream_dense(const struct gpushmem_dev &dev,
                                    const struct gpushmem_dev_team &team,
                                    const struct gpushmem_coll_op &op)
{
    struct gpsh_dev_coll c = gpsh_dev_stream_coll_begin(dev, team);
    gpsh_dev_dense_begin(&c, op);
    const uint64_t last = c.epoch + gpushmem_coll_dense_chunks(gpsh_dev_coll_bytes(op), true) - 1;
    if (!c.status)
        gpsh_dev_stream_dense_do(&c, op);
    c.epoch = last;
    gpsh_dev_stream_coll_end(&c);
}

GPSH_DEV void gpsh_dev_stream_large(const struct gpushmem_dev &dev,
                                    const struct gpushmem_dev_team &team,
                                    const struct gpushmem_coll_op &op)
{
    struct gpsh_dev_coll c = gpsh_dev_stream_coll_begin(dev, team);
    if (c.n == 1)
        gpsh_dev_coll_alone(c, op);
    else if (op.way == GPUSHMEM_COLL_ROUNDS)
        gpsh_dev_coll_rounds(&c, op);
#if defined(GPSH_COLL_SUMS)
    else if (gpsh_dev_coll_unrolled(&c, op))
        ;
#endif
    else if (op.way == GPUSHMEM_COLL_RELAY)
        gpsh_dev_broadcast_relayed(&c, op);
    else
        gpsh_dev_coll_direct(&c, op);
    gpsh_dev_stream_coll_end(&c);
}

// GPUSHMEM_COLL_KEEP is no operation of its own: the next kernel's number is not used.
GPSH_DEV void gpsh_dev_stream_nodes(const struct gpushmem_dev &dev,
                                    const struct gpushmem_dev_team &team,
                                    const struct gpushmem_coll_op &op)
{
    if (op.way == GPUSHMEM_COLL_KEEP) {
        const struct gpsh_dev_coll c = gpsh_dev_stream_coll_of(dev, team);
        gpsh_dev_nodes_keep(c, gpsh_dev_nodes_of(c, *team.nodes), op);
        return;
    }
    struct gpsh_dev_coll c = gpsh_dev_stream_coll_begin(dev, team);
    gpsh_dev_coll_nodes(&c, *team.nodes, op);
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

// On CPU threads, where no host has worked the addresses out.
GPSH_DEV void gpsh_dev_stream_small(const struct gpushmem_dev &dev,
                                    const struct gpushmem_dev_team &team,
                                    const struct gpushmem_coll_op &op)
{
    unsigned lanes = gpsh_dev_grid_blocks() * gpsh_dev_block_threads();
    if (!gpushmem_coll_is_few(&team, &op, lanes)) {
        gpsh_dev_stream_packets(dev, team, op);
        return;
    }
    struct gpushmem_coll_few few = gpushmem_coll_few_of(&team, &op);
    for (int j = 0; j < few.others; j++) {
        int rank = j < team.my_rank ? j : j + 1;
        int pe = team.stride ? team.start + rank * team.stride : team.pes[rank];
        for (char *&to : few.members[j].to)
            to = gpsh_dev_direct(dev, to, pe);
    }
    if (few.others == 1)
        gpsh_dev_stream_few<1>(dev, team, op, few);
    else if (few.others <= 3)
        gpsh_dev_stream_few<3>(dev, team, op, few);
    else
        gpsh_dev_stream_few<GPUSHMEM_COLL_FEW_OTHERS>(dev, team, op, few);
}

// On CPU threads: whatever it is. There are no copy engines.
GPSH_DEV void gpsh_dev_stream_coll(const struct gpushmem_dev &dev,
                                   const struct gpushmem_dev_team &team,
                                   const struct gpushmem_coll_op &op)
{
    if (op.kind <= GPUSHMEM_COLL_BARRIER)
        gpsh_dev_stream_sync(dev, team, op);
    else if (op.way == GPUSHMEM_COLL_LL)
        gpsh_dev_stream_small(dev, team, op);
    else if (op.way == GPUSHMEM_COLL_DENSE)
        gpsh_dev_stream_dense(dev, team, op);
    else if (op.way == GPUSHMEM_COLL_NODES || op.way == GPUSHMEM_COLL_KEEP)
        gpsh_dev_stream_nodes(dev, team, op);
    else
        gpsh_dev_stream_large(dev, team, op);
}

#endif
