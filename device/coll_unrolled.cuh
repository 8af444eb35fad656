// SPDX-License-Identifier: BSD-3-Clause
// Large collectives in the library's own kernels, of up to eight members: what coll_direct.cuh does
// member after member, with all members' loads under way at once, and the sums of gradients in
// place. The flags, and so what the other members do, are the same either way.
#ifndef GPUSHMEM_DEVICE_COLL_UNROLLED_CUH
#define GPUSHMEM_DEVICE_COLL_UNROLLED_CUH

#include "gpushmem/device/coll_dense.cuh"
#include "gpushmem/device/coll_direct.cuh"

enum { GPSH_UNROLLED_RANKS = 8 };

// Of up to RANKS members, all aligned. NULL: there is no such member, or nothing to do for it.
template <int RANKS> struct gpsh_dev_unrolled {
    enum { UNITS = GPSH_UNROLLED_RANKS / RANKS }; // of 16 bytes that a thread loads of each
    const char *from[RANKS];                      // copies: from[0] alone goes to all
    char *to[RANKS];
};

template <int RANKS> GPSH_DEV bool gpsh_dev_unrolled_aligned(const gpsh_dev_unrolled<RANKS> &u)
{
    uintptr_t all = 0;
    GPSH_UNROLL
    for (int r = 0; r < RANKS; r++)
        all |= (uintptr_t)u.from[r] | (uintptr_t)u.to[r];
    return !(all & 15);
}

// The k-th member from this PE's next one on, this PE being the last; of n.
GPSH_DEV int gpsh_dev_unrolled_next(const struct gpsh_dev_coll &c, int k)
{
    return c.me + 1 + k < c.n ? c.me + 1 + k : c.me + 1 + k - c.n;
}

// ---- Units ----

// All that were read as one; nothing to do for copies.
template <int RANKS, int UNITS>
GPSH_DEV void gpsh_dev_unrolled_fold(const gpsh_dev_unrolled<RANKS> &, const gpsh_dev_fold_none &,
                                     gpsh_dev_unit<4> (&)[RANKS][UNITS])
{
}
template <int RANKS, int UNITS, class Fold>
GPSH_DEV void gpsh_dev_unrolled_fold(const gpsh_dev_unrolled<RANKS> &u, const Fold &fold,
                                     gpsh_dev_unit<4> (&in)[RANKS][UNITS])
{
    GPSH_UNROLL
    for (int k = 0; k < UNITS; k++) {
        gpsh_dev_acc<4> acc = gpsh_dev_fold_with(fold, gpsh_dev_acc<4>{}, in[0][k], true);
        GPSH_UNROLL
        for (int r = 1; r < RANKS; r++)
            if (RANKS == 2 || u.from[r])
                acc = gpsh_dev_fold_with(fold, acc, in[r][k], false);
        gpsh_dev_unit<4> result = gpsh_dev_folded(fold, acc);
        GPSH_UNROLL
        for (int r = 0; r < RANKS; r++)
            in[r][k] = result;
    }
}

template <int UNITS, int RANKS, class Fold>
GPSH_DEV void gpsh_dev_unrolled_units(const gpsh_dev_unrolled<RANKS> &u, const Fold &fold,
                                      uint64_t at, uint64_t step)
{
    gpsh_dev_unit<4> in[RANKS][UNITS];
    GPSH_UNROLL
    for (int r = 0; r < RANKS; r++)
        GPSH_UNROLL
    for (int k = 0; k < UNITS; k++)
        if (r == 0 || u.from[r])
            in[r][k] = gpsh_dev_load_whole(u.from[r] + at + (unsigned)k * step);
        else
            in[r][k] = in[0][k];
    gpsh_dev_unrolled_fold(u, fold, in);
    GPSH_UNROLL
    for (int r = 0; r < RANKS; r++)
        GPSH_UNROLL
    for (int k = 0; k < UNITS; k++)
        if (u.to[r])
            gpsh_dev_store_whole(u.to[r] + at + (unsigned)k * step, in[r][k]);
}

// By all lanes. Returns the first unit of this lane that is left: the last one, if it is not whole.
template <int RANKS, class Fold>
GPSH_DEV uint64_t gpsh_dev_unrolled_run(const struct gpsh_dev_coll &c,
                                        const gpsh_dev_unrolled<RANKS> &u, const Fold &fold,
                                        uint64_t bytes)
{
    constexpr int some = gpsh_dev_unrolled<RANKS>::UNITS;
    const uint64_t units = bytes / 16, lanes = c.lanes;
    uint64_t unit = c.lane;
    for (; unit + (some - 1) * lanes < units; unit += some * lanes)
        gpsh_dev_unrolled_units<some>(u, fold, 16 * unit, 16 * lanes);
    for (; unit < units; unit += lanes)
        gpsh_dev_unrolled_units<1>(u, fold, 16 * unit, 0);
    return unit;
}

// ---- Operations: where members are is looked up before their flags are awaited ----

// A GPU needs no fence for what kernels before this one wrote, here and in other members' memory:
// they have ended, and what they stored is visible to whoever is told of that.
GPSH_DEV void gpsh_dev_unrolled_enter(struct gpsh_dev_coll *c)
{
#if defined(__CUDA_ARCH__)
    constexpr bool fence = false;
#else
    constexpr bool fence = true;
#endif
    c->status = gpsh_dev_coll_met(*c, GPUSHMEM_COLL_ENTRY, fence);
}

template <int RANKS, int TYPE>
GPSH_DEV_CALL int gpsh_dev_unrolled_sum(struct gpsh_dev_coll c, struct gpushmem_coll_op op)
{
    GPSH_DEV_BOUNDS();
    const gpsh_dev_fold_one<TYPE, GPUSHMEM_COLL_SUM> fold;
    const struct gpsh_dev_fold_job job = gpsh_dev_fold_plan(c, op);
    gpsh_dev_unrolled<RANKS> u = {};
    GPSH_UNROLL
    for (int r = 0; r < RANKS; r++) {
        if (r >= c.n)
            continue;
        int next = gpsh_dev_unrolled_next(c, r);
        u.from[r] = gpsh_dev_coll_there(c, job.source, r);
        if (next == c.me || job.results == gpsh_dev_fold_job::all)
            u.to[r] = gpsh_dev_coll_there(c, job.dest, next);
    }
    gpsh_dev_unrolled_enter(&c);
    if (c.status)
        return c.status;
    uint64_t unit = gpsh_dev_unrolled_run(c, u, fold, job.bytes);
    gpsh_dev_fold_by_lanes<1>(c, op, job, fold, unit, c.lanes);
    return gpsh_dev_coll_left(c);
}

// fcollect and alltoall. A block of this PE's that is there already need not go.
template <int RANKS>
GPSH_DEV_CALL int gpsh_dev_unrolled_push(struct gpsh_dev_coll c, struct gpushmem_coll_op op)
{
    GPSH_DEV_BOUNDS();
    char *base = gpsh_dev_coll_dest(op, c.me);
    gpsh_dev_unrolled<RANKS> u = {};
    GPSH_UNROLL
    for (int k = 0; k < RANKS; k++) {
        if (k >= c.n)
            continue;
        int next = gpsh_dev_unrolled_next(c, k);
        const char *from = gpsh_dev_coll_source(op, next);
        if (next != c.me || base != from)
            u.to[k] = gpsh_dev_coll_there(c, base, next);
        if (!k || (op.kind == GPUSHMEM_COLL_ALLTOALL && u.to[k]))
            u.from[k] = from;
    }
    gpsh_dev_unrolled_enter(&c);
    if (c.status)
        return c.status;
    gpsh_dev_unrolled_run(c, u, gpsh_dev_fold_none(), gpsh_dev_coll_bytes(op));
    return gpsh_dev_coll_left(c);
}

// A leaf of a relayed broadcast. How the root's source is aligned is known after its flag alone.
template <int RANKS>
GPSH_DEV_CALL int gpsh_dev_unrolled_relay(struct gpsh_dev_coll c, struct gpushmem_coll_op op)
{
    GPSH_DEV_BOUNDS();
    const struct gpsh_dev_slice part = gpsh_dev_relay_part(c, op);
    char *dest = (char *)op.dest + part.first;
    gpsh_dev_unrolled<RANKS> u = {};
    GPSH_UNROLL
    for (int k = 0; k < RANKS; k++) {
        int next = gpsh_dev_unrolled_next(c, k);
        if (k < c.n && next != op.root)
            u.to[k] = gpsh_dev_coll_there(c, dest, next);
    }
    gpsh_dev_unrolled_enter(&c);
    if (c.status)
        return c.status;
    u.from[0] = gpsh_dev_relay_source(c, op) + part.first;
    uint64_t done = 0;
    if (gpsh_dev_unrolled_aligned(u)) {
        gpsh_dev_unrolled_run(c, u, gpsh_dev_fold_none(), part.bytes);
        done = part.bytes & ~(uint64_t)15;
    }
    gpsh_dev_relay_copy(c, op.root, dest + done, u.from[0] + done, part.bytes - done);
    return gpsh_dev_coll_left(c);
}

// ---- The choice, which is this PE's own ----

template <int RANKS>
GPSH_DEV int gpsh_dev_unrolled_sums(const struct gpsh_dev_coll &c,
                                    const struct gpushmem_coll_op &op)
{
    switch (op.type) { // sums wrap, so that signed numbers are as unsigned ones
    case GPUSHMEM_COLL_INT32:
    case GPUSHMEM_COLL_UINT32: return gpsh_dev_unrolled_sum<RANKS, GPUSHMEM_COLL_UINT32>(c, op);
    case GPUSHMEM_COLL_INT64:
    case GPUSHMEM_COLL_UINT64: return gpsh_dev_unrolled_sum<RANKS, GPUSHMEM_COLL_UINT64>(c, op);
    case GPUSHMEM_COLL_HALF: return gpsh_dev_unrolled_sum<RANKS, GPUSHMEM_COLL_HALF>(c, op);
    case GPUSHMEM_COLL_BFLOAT16: return gpsh_dev_unrolled_sum<RANKS, GPUSHMEM_COLL_BFLOAT16>(c, op);
    case GPUSHMEM_COLL_DOUBLE: return gpsh_dev_unrolled_sum<RANKS, GPUSHMEM_COLL_DOUBLE>(c, op);
    default: return gpsh_dev_unrolled_sum<RANKS, GPUSHMEM_COLL_FLOAT>(c, op);
    }
}

template <int RANKS>
GPSH_DEV int gpsh_dev_unrolled_do(const struct gpsh_dev_coll &c, const struct gpushmem_coll_op &op)
{
    if (gpsh_dev_coll_folds(op))
        return gpsh_dev_unrolled_sums<RANKS>(c, op);
    return op.kind == GPUSHMEM_COLL_BROADCAST ? gpsh_dev_unrolled_relay<RANKS>(c, op)
                                              : gpsh_dev_unrolled_push<RANKS>(c, op);
}

GPSH_DEV bool gpsh_dev_unrolled_sums_of(int type)
{
    constexpr unsigned types = 1u << GPUSHMEM_COLL_INT32 | 1u << GPUSHMEM_COLL_UINT32 |
                               1u << GPUSHMEM_COLL_INT64 | 1u << GPUSHMEM_COLL_UINT64 |
                               1u << GPUSHMEM_COLL_HALF | 1u << GPUSHMEM_COLL_BFLOAT16 |
                               1u << GPUSHMEM_COLL_FLOAT | 1u << GPUSHMEM_COLL_DOUBLE;
    return types >> type & 1;
}

GPSH_DEV bool gpsh_dev_may_be_unrolled(const struct gpsh_dev_coll &c,
                                       const struct gpushmem_coll_op &op)
{
    if (c.n < 2 || c.n > GPSH_UNROLLED_RANKS || !(c.flags & GPUSHMEM_DEV_TEAM_DIRECT))
        return false;
    bool aligned = !(((uintptr_t)op.source | (uintptr_t)op.dest) & 15); // heaps begin at pages
    switch (op.kind) {
    case GPUSHMEM_COLL_REDUCE:
    case GPUSHMEM_COLL_REDUCESCATTER:
        return aligned && op.fold == GPUSHMEM_COLL_SUM && gpsh_dev_unrolled_sums_of(op.type) &&
               (op.kind == GPUSHMEM_COLL_REDUCE || gpsh_dev_coll_bytes(op) % 16 == 0);
    case GPUSHMEM_COLL_FCOLLECT:
    case GPUSHMEM_COLL_ALLTOALL: return aligned && gpsh_dev_coll_bytes(op) % 16 == 0;
    case GPUSHMEM_COLL_BROADCAST: return op.way == GPUSHMEM_COLL_RELAY && c.me != op.root;
    default: return false;
    }
}

// False: nothing was done.
GPSH_DEV bool gpsh_dev_coll_unrolled(struct gpsh_dev_coll *c, const struct gpushmem_coll_op &op)
{
    if (!gpsh_dev_may_be_unrolled(*c, op))
        return false;
    c->status = c->n == 2   ? gpsh_dev_unrolled_do<2>(*c, op)
                : c->n <= 4 ? gpsh_dev_unrolled_do<4>(*c, op)
                            : gpsh_dev_unrolled_do<8>(*c, op);
    return true;
}

#endif
