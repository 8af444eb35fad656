// SPDX-License-Identifier: BSD-3-Clause
// Folding blocks that lie in memory: the members' sources, staging memory, or this PE's dest.
#ifndef GPUSHMEM_DEVICE_COLL_FOLD_CUH
#define GPUSHMEM_DEVICE_COLL_FOLD_CUH

#include "gpushmem/device/coll_fold_alone.cuh"

// Loads of 16 bytes that a thread of many keeps in flight: kernels of 1024 threads have registers
// for two, and the library's own, of 512, for four.
#if !defined(GPSH_COLL_LOADS)
#define GPSH_COLL_LOADS 2
#endif

// Units first, first + lanes, ... of 16 bytes, with the loads of two members under way. For
// prefixes a member's dest is written after its source was read: they may be the same.
template <int UNITS, class Fold>
GPSH_DEV void gpsh_dev_fold_units(const struct gpsh_dev_coll &c, const struct gpushmem_coll_op &op,
                                  const struct gpsh_dev_fold_job &job, const Fold &fold,
                                  uint64_t first, uint64_t lanes)
{
    gpsh_dev_acc<4> acc[UNITS] = {};
    gpsh_dev_unit<4> in[UNITS], next[UNITS] = {};
    if (job.end > 0)
        gpsh_dev_fold_load<UNITS>(c, job, 0, first, lanes, next);
    for (int rank = 0; rank < job.end; rank++) {
        GPSH_UNROLL
        for (int k = 0; k < UNITS; k++)
            in[k] = next[k];
        if (rank + 1 < job.end) // under way while these are folded
            gpsh_dev_fold_load<UNITS>(c, job, rank + 1, first, lanes, next);
        char *to = job.results == gpsh_dev_fold_job::prefixes
                       ? gpsh_dev_coll_there(c, job.dest, rank)
                       : nullptr;
        GPSH_UNROLL
        for (int k = 0; k < UNITS; k++) {
            uint64_t at = 16 * (first + (unsigned)k * lanes);
            if (at >= job.bytes)
                continue;
            if (to && op.kind == GPUSHMEM_COLL_EXSCAN)
                gpsh_dev_store_unit<4>(to + at, gpsh_dev_folded(fold, acc[k]), job.bytes - at);
            acc[k] = gpsh_dev_fold_with(fold, acc[k], in[k], rank == 0);
            if (to && op.kind != GPUSHMEM_COLL_EXSCAN)
                gpsh_dev_store_unit<4>(to + at, gpsh_dev_folded(fold, acc[k]), job.bytes - at);
        }
    }
    for (int r = 0; r < c.n && job.results != gpsh_dev_fold_job::prefixes; r++) {
        int rank = c.me + r < c.n ? c.me + r : c.me + r - c.n;
        char *to = job.results == gpsh_dev_fold_job::own && rank != c.me
                       ? nullptr
                       : gpsh_dev_coll_there(c, job.dest, rank);
        GPSH_UNROLL
        for (int k = 0; k < UNITS; k++) {
            uint64_t at = 16 * (first + (unsigned)k * lanes);
            if (to && at < job.bytes)
                gpsh_dev_store_unit<4>(to + at, gpsh_dev_folded(fold, acc[k]), job.bytes - at);
        }
    }
}

template <int UNITS, class Fold>
GPSH_DEV void gpsh_dev_fold_by_lanes(const struct gpsh_dev_coll &c,
                                     const struct gpushmem_coll_op &op,
                                     const struct gpsh_dev_fold_job &job, const Fold &fold,
                                     uint64_t first, unsigned lanes)
{
    uint64_t units = (job.bytes + 15) / 16;
    for (uint64_t unit = first; unit < units; unit += UNITS * (uint64_t)lanes)
        gpsh_dev_fold_units<UNITS>(c, op, job, fold, unit, lanes);
}

// By all lanes. The library's own kernels have no lone threads, and the sums of gradients in place
// (GPSH_COLL_SUMS): calls for each unit take a third of the time that the links leave.
GPSH_DEV_CALL void gpsh_dev_coll_fold(struct gpsh_dev_coll c, struct gpushmem_coll_op op,
                                      struct gpsh_dev_fold_job job, unsigned lane, unsigned lanes)
{
    const struct gpsh_dev_fold_any any = {op.type, op.fold};
    uint64_t first = lane;
#if defined(GPSH_COLL_SUMS)
    constexpr int sum = GPUSHMEM_COLL_SUM;
    switch (op.fold == sum ? +op.type : -1) {
    case GPUSHMEM_COLL_FLOAT:
        gpsh_dev_fold_by_lanes<GPSH_COLL_LOADS>(
            c, op, job, gpsh_dev_fold_one<GPUSHMEM_COLL_FLOAT, sum>(), first, lanes);
        return;
    case GPUSHMEM_COLL_HALF:
        gpsh_dev_fold_by_lanes<GPSH_COLL_LOADS>(
            c, op, job, gpsh_dev_fold_one<GPUSHMEM_COLL_HALF, sum>(), first, lanes);
        return;
    case GPUSHMEM_COLL_BFLOAT16:
        gpsh_dev_fold_by_lanes<GPSH_COLL_LOADS>(
            c, op, job, gpsh_dev_fold_one<GPUSHMEM_COLL_BFLOAT16, sum>(), first, lanes);
        return;
    default: break;
    }
#else
    if (lanes == 1)
        first = gpsh_dev_fold_whole_runs(c, op, job) / 16;
#endif
    gpsh_dev_fold_by_lanes<GPSH_COLL_LOADS>(c, op, job, any, first, lanes);
}

#endif
