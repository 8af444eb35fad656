// SPDX-License-Identifier: BSD-3-Clause
// A collective operation: its arguments, the way that it takes, and the kernels of streams.
#ifndef GPUSHMEM_DEVICE_COLL_CUH
#define GPUSHMEM_DEVICE_COLL_CUH

#include "gpushmem/device/coll_direct.cuh"
#include "gpushmem/device/coll_small.cuh"
#include "gpushmem/device/coll_sync.cuh"

// ---- Arguments ----

// Bytes of source and dest, for GPUSHMEM_DEVICE_CHECKS.
GPSH_DEV uint64_t gpsh_dev_coll_span(const struct gpushmem_coll_op &op, int n, bool dest)
{
    uint64_t block = gpsh_dev_bytes(op.n, op.width), members = (uint64_t)n;
    switch (op.kind) {
    case GPUSHMEM_COLL_FCOLLECT: return dest ? gpsh_dev_bytes(block, members) : block;
    case GPUSHMEM_COLL_ALLTOALL: return gpsh_dev_bytes(block, members);
    case GPUSHMEM_COLL_REDUCESCATTER: return dest ? block : gpsh_dev_bytes(block, members);
    case GPUSHMEM_COLL_ALLTOALLS:
        return op.n ? gpsh_dev_span(op.n * members, dest ? op.dest_stride : op.source_stride,
                                    op.width)
                    : 0;
    default: return block;
    }
}

#if GPSH_DEV_CHECKS
GPSH_DEV int gpsh_dev_coll_bad(const struct gpsh_dev_coll &c, int which, int64_t seen)
{
    struct gpsh_dev_coll refused = c; // its status is of this call, not of the team
    gpsh_dev_coll_refuse(&refused, GPUSHMEM_FAULT_ARGUMENT, which, (uint64_t)seen, (uint64_t)c.n);
    return refused.status;
}

GPSH_DEV int gpsh_dev_coll_check_numbers(const struct gpsh_dev_coll &c,
                                         const struct gpushmem_coll_op &op)
{
    if (op.kind == GPUSHMEM_COLL_BROADCAST && (unsigned)op.root >= (unsigned)c.n)
        return gpsh_dev_coll_bad(c, GPUSHMEM_COLL_CALL_ROOT, op.root);
    if (op.kind == GPUSHMEM_COLL_ALLTOALLS && op.dest_stride < 1)
        return gpsh_dev_coll_bad(c, GPUSHMEM_COLL_CALL_DST, op.dest_stride);
    if (op.kind == GPUSHMEM_COLL_ALLTOALLS && op.source_stride < 1)
        return gpsh_dev_coll_bad(c, GPUSHMEM_COLL_CALL_SST, op.source_stride);
    return 0;
}
#endif

GPSH_DEV int gpsh_dev_coll_check(const struct gpsh_dev_coll &c, const struct gpushmem_coll_op &op)
{
#if GPSH_DEV_CHECKS
    int pe = c.dev.my_pe;
    uint64_t to = gpsh_dev_coll_span(op, c.n, true), from = gpsh_dev_coll_span(op, c.n, false);
    bool source_is_own = op.kind != GPUSHMEM_COLL_BROADCAST || op.root == c.me;
    if (int status = gpsh_dev_coll_check_numbers(c, op))
        return status;
    if ((to && !gpsh_dev_check(c.dev, op.dest, to, pe)) ||
        (from && source_is_own && !gpsh_dev_check(c.dev, op.source, from, pe)))
        return GPUSHMEM_ERR_ADDRESS;
    const char *d = (const char *)op.dest, *s = (const char *)op.source;
    bool apart = d + to <= s || s + from <= d || !to || !from || !source_is_own;
    bool same = d == s && (op.kind == GPUSHMEM_COLL_REDUCE || gpsh_dev_coll_scans(op) ||
                           op.kind == GPUSHMEM_COLL_BROADCAST);
    bool slice = (op.kind == GPUSHMEM_COLL_FCOLLECT && s == gpsh_dev_coll_dest(op, c.me)) ||
                 (op.kind == GPUSHMEM_COLL_REDUCESCATTER && d == gpsh_dev_coll_source(op, c.me));
    if (apart || same || slice || op.kind == GPUSHMEM_COLL_COLLECT)
        return 0;
    return gpsh_dev_coll_bad(c, GPUSHMEM_COLL_CALL_DEST, 0);
#else
    return 0;
#endif
}

// ---- The way ----

// The same on all members: nothing local is looked at.
GPSH_DEV int gpsh_dev_coll_way(const struct gpsh_dev_coll &c, const struct gpushmem_coll_op &op)
{
    uint64_t bytes = gpsh_dev_coll_bytes(op), packets = gpushmem_coll_ll_most(c.n, c.stream);
    if (!(c.flags & GPUSHMEM_DEV_TEAM_DIRECT))
        return gpushmem_coll_in_rounds(op.kind, bytes, c.n, c.stream) ? +GPUSHMEM_COLL_ROUNDS
                                                                      : +GPUSHMEM_COLL_DIRECT;
    if (op.kind == GPUSHMEM_COLL_COLLECT)
        return GPUSHMEM_COLL_DIRECT;
    if (bytes <= packets && bytes <= GPUSHMEM_COLL_PACKET_BYTES &&
        !gpushmem_coll_is_wide(op.kind, op.type, op.fold))
        return GPUSHMEM_COLL_LL;
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

GPSH_DEV void gpsh_dev_coll_do(struct gpsh_dev_coll *c, const struct gpushmem_coll_op &op)
{
    if (c->n == 1) {
        gpsh_dev_coll_alone(*c, op);
        return;
    }
    switch (gpsh_dev_coll_way(*c, op)) {
    case GPUSHMEM_COLL_LL: gpsh_dev_coll_ll(c, op); return;
    case GPUSHMEM_COLL_STAGED: gpsh_dev_coll_staged(c, op); return;
    case GPUSHMEM_COLL_ROUNDS: gpsh_dev_coll_rounds(c, op); return;
    default: gpsh_dev_coll_direct(c, op); return;
    }
}

GPSH_DEV int gpsh_dev_coll_body(const struct gpushmem_dev &dev, const struct gpsh_dev_teams &teams,
                                struct gpsh_dev_group group, const struct gpushmem_coll_op &op)
{
    struct gpsh_dev_coll c = gpsh_dev_coll_of(dev, teams.n_pes, group);
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

// Long, and the way of few calls: a copy of the arguments in registers.
GPSH_DEV_CALL int gpsh_dev_coll_large(const struct gpushmem_dev &dev, struct gpsh_dev_teams teams,
                                      struct gpsh_dev_group group, struct gpushmem_coll_op op)
{
    return gpsh_dev_coll_body(dev, teams, group, op);
}

// All threads of a group, rank of size. A block's first warp is one.
template <class Scope>
GPSH_DEV_CALL int gpsh_dev_coll_group(const struct gpushmem_dev &dev, struct gpsh_dev_teams teams,
                                      unsigned rank, unsigned size, struct gpushmem_coll_op op)
{
    const struct gpsh_dev_group group = {rank, size, gpsh_dev_scope_name<Scope>::value};
    int slot = op.team & GPUSHMEM_TEAM_SLOT_MASK, status = GPSH_DEV_NOT_SMALL;
    if (op.team >= 0 && slot < teams.n && gpsh_dev_coll_may_be_small(size, op)) {
        struct gpsh_dev_coll c = gpsh_dev_coll_of(dev, teams.n_pes, group);
        status = gpsh_dev_small_do<Scope>(&c, teams.entries + slot, gpsh_dev_small_op(op),
                                          gpsh_dev_coll_check);
    }
    return status == GPSH_DEV_NOT_SMALL ? gpsh_dev_coll_large(dev, teams, group, op) : status;
}

// Small operations of a block are its first warp's: the others would go through as many
// instructions, at the cost of that one, and have no data to move. The bytes of all members count.
GPSH_DEV bool gpsh_dev_coll_by_warp(int n_pes, unsigned size, const struct gpushmem_coll_op &op)
{
    return size >= 64 && op.n <= 2048 && op.kind != GPUSHMEM_COLL_COLLECT &&
           gpsh_dev_coll_bytes(op) * (unsigned)n_pes <= 2048;
}

GPSH_DEV_CALL int gpsh_dev_coll_block(const struct gpushmem_dev &dev, struct gpsh_dev_teams teams,
                                      unsigned rank, unsigned size, struct gpushmem_coll_op op)
{
    const struct gpsh_dev_group block = {rank, size, gpsh_dev_group::block};
    int status = 0;
    if (!gpsh_dev_coll_by_warp(teams.n_pes, size, op))
        return gpsh_dev_coll_group<gpsh_scope_block>(dev, teams, rank, size, op);
    gpsh_dev_group_sync(block);
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

#endif
