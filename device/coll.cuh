// SPDX-License-Identifier: BSD-3-Clause
// A collective operation of kernels: the way that it takes, and the calls that the public
// functions, ours (api_coll.cuh) and those of compat/nvshmem.h, are made of.
#ifndef GPUSHMEM_DEVICE_COLL_CUH
#define GPUSHMEM_DEVICE_COLL_CUH

#include "gpushmem/device/coll_direct.cuh"
#include "gpushmem/device/coll_small.cuh"
#include "gpushmem/device/coll_sync.cuh"

// ---- The way ----

// The same on all members: nothing local is looked at. Why, by docs/design/collectives.md and
// docs/benchmarks.md: in rounds while all that is gathered fits 8 KiB, as only hops take time then.
// In packets to 1 KiB, or 3 KiB divided by the other members, as a lone thread polls 16 bytes for 8
// of data. In dense packets from there to 64 KiB: two members took a third of the time that staging
// takes.
GPSH_DEV int gpsh_dev_coll_way(const struct gpsh_dev_coll &c, const struct gpushmem_coll_op &op)
{
    uint64_t bytes = gpsh_dev_coll_bytes(op), packets = gpushmem_coll_ll_most(c.n, c.stream);
    if (!(c.flags & GPUSHMEM_DEV_TEAM_DIRECT))
        return gpushmem_coll_in_rounds(op.kind, bytes, c.n, c.stream) ? +GPUSHMEM_COLL_ROUNDS
                                                                      : +GPUSHMEM_COLL_DIRECT;
    if (op.kind == GPUSHMEM_COLL_COLLECT)
        return GPUSHMEM_COLL_DIRECT;
    if (bytes <= packets && bytes <= gpushmem_coll_kernel_packets(op.kind, c.n, c.flags) &&
        !gpushmem_coll_is_wide(op.kind, op.type, op.fold))
        return GPUSHMEM_COLL_LL;
    if (gpushmem_coll_may_be_dense(op.kind, c.n, c.flags) && bytes <= GPSH_DENSE_KERNEL_MOST)
        return GPUSHMEM_COLL_DENSE;
    return bytes <= gpushmem_coll_stage_most(c.n) && op.kind != GPUSHMEM_COLL_ALLTOALLS
               ? GPUSHMEM_COLL_STAGED
               : GPUSHMEM_COLL_DIRECT;
}

// Alone in the team: folds are copies, and an exclusive scan of nothing is 0.
GPSH_DEV void gpsh_dev_coll_alone(const struct gpsh_dev_coll &c, const struct gpushmem_coll_op &op)
{
    if (op.kind == GPUSHMEM_COLL_EXSCAN)
        for (uint64_t i = c.lane; i < gpsh_dev_coll_bytes(op); i += c.lanes)
            ((char *)op.dest)[i] = 0;
    else
        gpsh_dev_copy_own(c, op);
}

// Without packets and staging memory.
GPSH_DEV void gpsh_dev_coll_direct(struct gpsh_dev_coll *c, const struct gpushmem_coll_op &op)
{
    if (op.kind == GPUSHMEM_COLL_COLLECT)
        gpsh_dev_collect(c, op);
    else if (!gpsh_dev_coll_folds(op))
        gpsh_dev_copy_direct(c, op);
    else if (c->flags & GPUSHMEM_DEV_TEAM_DIRECT)
        gpsh_dev_fold_direct(c, op);
    else
        gpsh_dev_fold_by_ring(c, op);
}

// In packets, of more units than threads, or members than small operations have.
GPSH_DEV_CALL int gpsh_dev_coll_packets(struct gpsh_dev_coll c, struct gpushmem_coll_op op)
{
    GPSH_DEV_BOUNDS();
    if (c.n > GPSH_DEV_SMALL_OTHERS + 1 || op.kind == GPUSHMEM_COLL_ALLTOALLS)
        gpsh_dev_coll_ll(&c, op);
    else if (!c.status)
        c.status = c.n == 2 ? gpsh_dev_small_many<1>(c, op)
                            : gpsh_dev_small_many<GPSH_DEV_SMALL_OTHERS>(c, op);
    return c.status;
}

GPSH_DEV void gpsh_dev_coll_do(struct gpsh_dev_coll *c, const struct gpushmem_coll_op &op)
{
    if (c->n == 1) {
        gpsh_dev_coll_alone(*c, op);
        return;
    }
    switch (gpsh_dev_coll_way(*c, op)) {
    case GPUSHMEM_COLL_LL: c->status = gpsh_dev_coll_packets(*c, op); return;
    case GPUSHMEM_COLL_DENSE:
        c->lanes == 1 ? gpsh_dev_coll_dense<GPSH_DENSE_ALONE>(c, op)
                      : gpsh_dev_coll_dense<GPSH_DENSE_GROUP>(c, op);
        return;
    case GPUSHMEM_COLL_STAGED: gpsh_dev_coll_staged(c, op); return;
    case GPUSHMEM_COLL_ROUNDS: gpsh_dev_coll_rounds(c, op); return;
    default: gpsh_dev_coll_direct(c, op); return;
    }
}

// Long, and the way of few calls: a copy of the arguments in registers.
GPSH_DEV_CALL int gpsh_dev_coll_large(const struct gpushmem_dev &dev, struct gpsh_dev_teams teams,
                                      struct gpsh_dev_group group, struct gpushmem_coll_op op)
{
    GPSH_DEV_BOUNDS();
    struct gpsh_dev_coll c = gpsh_dev_coll_of(dev, group);
    if (!gpsh_dev_coll_begin(&c, teams, op.team))
        return c.status;
    int status = gpsh_dev_coll_check(c, op);
    if (gpsh_dev_coll_compares(&c)) {
        status = gpsh_dev_coll_compare(c, op, status);
        if (status)
            return status;
        if (!op.n && op.kind != GPUSHMEM_COLL_COLLECT)
            return gpsh_dev_coll_end(&c);
    }
    if (status || (!op.n && op.kind != GPUSHMEM_COLL_COLLECT))
        return gpsh_dev_group_agree(group, status ? status : c.status);
    gpsh_dev_coll_do(&c, op);
    return gpsh_dev_coll_end(&c);
}

// All threads of a group, rank of size. A block's first warp is one.
template <class Scope>
GPSH_DEV_CALL int gpsh_dev_coll_group(const struct gpushmem_dev &dev, struct gpsh_dev_teams teams,
                                      unsigned rank, unsigned size, struct gpushmem_coll_op op)
{
    GPSH_DEV_BOUNDS();
    const struct gpsh_dev_group group = {rank, size, gpsh_dev_scope_name<Scope>::value};
    const struct gpushmem_dev_team *entry = gpsh_dev_teams_at(teams, op.team);
    int status = GPSH_DEV_NOT_SMALL;
    bool dense = gpsh_dev_coll_may_be_dense(op), small = gpsh_dev_coll_may_be_small(size, op);
    if (entry && (dense || small)) {
        struct gpsh_dev_coll c = gpsh_dev_coll_of(dev, group);
        status = gpsh_dev_small_do<Scope>(&c, entry, gpsh_dev_small_op(op), dense, small);
    }
    return status == GPSH_DEV_NOT_SMALL ? gpsh_dev_coll_large(dev, teams, group, op) : status;
}

// What a warp has a unit or a slot of dense packets each for is the work of a block's first one:
// the others would go through as many instructions, at the cost of that one, and have no data to
// move. Of many members there is work for all threads.
GPSH_DEV bool gpsh_dev_coll_by_warp(int n_pes, unsigned size, const struct gpushmem_coll_op &op)
{
    const unsigned units = gpsh_scope_warp::threads * GPSH_LL_UNIT;
    uint64_t bytes = gpsh_dev_coll_bytes(op);
    if (size < 64 || op.n > GPSH_DENSE_TILE || op.kind == GPUSHMEM_COLL_COLLECT)
        return false;
    return (bytes <= units && bytes * (unsigned)n_pes <= 2048) ||
           (n_pes == 2 && gpsh_dev_coll_may_be_dense(op) && bytes <= GPSH_DENSE_TILE);
}

GPSH_DEV_CALL int gpsh_dev_coll_block(const struct gpushmem_dev &dev, struct gpsh_dev_teams teams,
                                      unsigned rank, unsigned size, struct gpushmem_coll_op op)
{
    GPSH_DEV_BOUNDS();
    const struct gpsh_dev_group block = {rank, size, gpsh_dev_group::block};
    int status = 0;
    if (!gpsh_dev_coll_by_warp(teams.n_pes, size, op))
        return gpsh_dev_coll_group<gpsh_scope_block>(dev, teams, rank, size, op);
    gpsh_dev_group_sync(block);
    if (gpsh_dev_group_incomplete(block)) // maybe without that warp
        return gpsh_dev_coll_group<gpsh_scope_block>(dev, teams, rank, size, op);
    if (rank < gpsh_scope_warp::threads)
        status =
            gpsh_dev_coll_group<gpsh_scope_warp>(dev, teams, rank, gpsh_scope_warp::threads, op);
    return gpsh_dev_group_agree(block, status);
}

// By all threads of the group: 0 or a negative status.
#if defined(GPSH_EMU_LINKED)
int gpsh_dev_coll_run(const struct gpushmem_dev &dev, const struct gpsh_dev_group &group,
                      const struct gpushmem_coll_op &op);
#else
#if !defined(GPSH_EMU_LIBRARY)
GPSH_DEV
#endif
int gpsh_dev_coll_run(const struct gpushmem_dev &dev, const struct gpsh_dev_group &group,
                      const struct gpushmem_coll_op &op)
{
    const struct gpsh_dev_teams teams = gpsh_dev_teams_of(dev);
    switch (group.scope) {
    case gpsh_dev_group::thread:
        return gpsh_dev_coll_group<gpsh_scope_thread>(*dev.self, teams, 0, 1, op);
    case gpsh_dev_group::warp:
        return gpsh_dev_coll_group<gpsh_scope_warp>(*dev.self, teams, group.rank, group.size, op);
    default: return gpsh_dev_coll_block(*dev.self, teams, group.rank, group.size, op);
    }
}
#endif

// ---- Calls: the arguments of each kind as one operation ----

// Who calls. All blocks of a grid do so in another way (coll_grid.cuh).
template <class Scope> struct gpsh_dev_caller {
    static __device__ __forceinline__ int meet(const struct gpushmem_dev &dev, gpushmem_team_t team,
                                               bool quiet)
    {
        return gpsh_dev_team_sync(*dev.self, gpsh_dev_teams_of(dev), gpsh_dev_group_of<Scope>(),
                                  team, quiet);
    }
    static __device__ __forceinline__ int run(const struct gpushmem_dev &dev,
                                              const struct gpushmem_coll_op &op)
    {
        return gpsh_dev_coll_run(dev, gpsh_dev_group_of<Scope>(), op);
    }
};

template <class Scope>
GPSH_DEV int gpsh_dev_team_meet(const struct gpushmem_dev &dev, gpushmem_team_t team, bool quiet)
{
    return gpsh_dev_caller<Scope>::meet(dev, team, quiet);
}

GPSH_DEV struct gpushmem_coll_op gpsh_dev_coll_op(int kind, gpushmem_team_t team, void *dest,
                                                  const void *source, uint64_t n, uint32_t width)
{
    struct gpushmem_coll_op op = {};
    op.team = team;
    op.kind = (uint8_t)kind;
    op.dest = dest;
    op.source = source;
    op.n = n;
    op.width = width;
    return op;
}

template <class Scope>
GPSH_DEV int gpsh_dev_collective(const struct gpushmem_dev &dev, struct gpushmem_coll_op op,
                                 int root = 0)
{
    op.root = root;
    return gpsh_dev_caller<Scope>::run(dev, op);
}

template <class Scope>
GPSH_DEV int gpsh_dev_collective_fold(const struct gpushmem_dev &dev, struct gpushmem_coll_op op,
                                      int type, int fold)
{
    op.type = (uint8_t)type;
    op.fold = (uint8_t)fold;
    return gpsh_dev_caller<Scope>::run(dev, op);
}

template <class Scope>
GPSH_DEV int gpsh_dev_collective_strided(const struct gpushmem_dev &dev, struct gpushmem_coll_op op,
                                         ptrdiff_t dst, ptrdiff_t sst)
{
    op.dest_stride = dst;
    op.source_stride = sst;
    return gpsh_dev_caller<Scope>::run(dev, op);
}

// A team's entry in the kernels' table, or nullptr: this PE is in no such team.
GPSH_DEV const struct gpushmem_dev_team *gpsh_dev_team_entry(const struct gpushmem_dev &dev,
                                                             gpushmem_team_t team)
{
    return gpsh_dev_team_is_valid(dev, team) ? &dev.teams[team & GPUSHMEM_TEAM_SLOT_MASK] : nullptr;
}

#endif
