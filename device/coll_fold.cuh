// SPDX-License-Identifier: BSD-3-Clause
// Folding blocks that lie in memory: the members' sources, staging memory, or this PE's dest.
#ifndef GPUSHMEM_DEVICE_COLL_FOLD_CUH
#define GPUSHMEM_DEVICE_COLL_FOLD_CUH

#include "gpushmem/device/coll_unit.cuh"

// Loads of 16 bytes that a thread of many keeps in flight: kernels of 1024 threads have registers
// for two, and the library's own, of 512, for four.
#if !defined(GPSH_COLL_LOADS)
#define GPSH_COLL_LOADS 2
#endif

struct gpsh_dev_fold_job {
    const char *source; // this PE's block; the other mapped members' at the same place
    char *dest;
    uint64_t bytes;
    // Blocks of the other members (or of those that are not mapped) lie in slots here, in their
    // order; NULL: in their sources.
    const char *slots;
    uint64_t slot_bytes;                 // 0: there is one other member
    bool only_unmapped;                  // slots hold the blocks of those alone
    enum { own, all, prefixes } results; // goes to: own dest; all mapped dests; each its prefix
    int end;                             // fold ranks below this
};

// All members' blocks in their sources, the result in this PE's dest.
GPSH_DEV struct gpsh_dev_fold_job gpsh_dev_fold_all(const struct gpsh_dev_coll &c,
                                                    const char *source, char *dest, uint64_t bytes)
{
    return {source, dest, bytes, nullptr, 0, false, gpsh_dev_fold_job::own, c.n};
}

GPSH_DEV const char *gpsh_dev_fold_source(const struct gpsh_dev_coll &c,
                                          const struct gpsh_dev_fold_job &job, int rank)
{
    if (rank == c.me)
        return job.source;
    if (job.slots && !job.only_unmapped)
        return job.slots + (unsigned)(rank < c.me ? rank : rank - 1) * job.slot_bytes;
    const char *there = gpsh_dev_coll_there(c, job.source, rank);
    return there ? there : job.slots + (unsigned)(rank < c.me ? rank : rank - 1) * job.slot_bytes;
}

// A member's units.
template <int UNITS>
GPSH_DEV void gpsh_dev_fold_load(const struct gpsh_dev_coll &c, const struct gpsh_dev_fold_job &job,
                                 int rank, uint64_t first, uint64_t lanes, gpsh_dev_unit<4> *in)
{
    const char *from = gpsh_dev_fold_source(c, job, rank);
    GPSH_UNROLL
    for (int k = 0; k < UNITS; k++) {
        uint64_t at = 16 * (first + (unsigned)k * lanes);
        if (at < job.bytes)
            in[k] = gpsh_dev_load_unit<4>(from + at, job.bytes - at);
    }
}

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

// A lone thread: runs of units, which lie in its local memory while they are folded. Those of the
// next member, or of the next run, are under way meanwhile.
struct gpsh_dev_fold_runs {
    enum { UNITS = 8 };
    gpsh_dev_acc<4> acc[UNITS];
    gpsh_dev_unit<4> in[UNITS];
    int units; // of this run
};

GPSH_DEV void gpsh_dev_fold_run_store(const struct gpsh_dev_fold_job &job, int type,
                                      const struct gpsh_dev_fold_runs &run, uint64_t first,
                                      char *to)
{
    GPSH_NO_UNROLL
    for (int k = 0; to && k < run.units; k++) {
        uint64_t at = 16 * (first + (unsigned)k);
        gpsh_dev_store_unit<4>(to + at, gpsh_dev_fold_result<4>(run.acc[k], type), job.bytes - at);
    }
}

// To all that are to have what has been folded of all members.
GPSH_DEV void gpsh_dev_fold_run_results(const struct gpsh_dev_coll &c,
                                        const struct gpsh_dev_fold_job &job, int type,
                                        const struct gpsh_dev_fold_runs &run, uint64_t first)
{
    if (job.results == gpsh_dev_fold_job::own)
        gpsh_dev_fold_run_store(job, type, run, first, job.dest);
    for (int r = 0; r < c.n && job.results == gpsh_dev_fold_job::all; r++) {
        int rank = c.me + r < c.n ? c.me + r : c.me + r - c.n;
        gpsh_dev_fold_run_store(job, type, run, first, gpsh_dev_coll_there(c, job.dest, rank));
    }
}

GPSH_DEV_CALL void gpsh_dev_fold_alone(struct gpsh_dev_coll c, struct gpushmem_coll_op op,
                                       struct gpsh_dev_fold_job job)
{
    constexpr int UNITS = gpsh_dev_fold_runs::UNITS;
    const bool excludes = op.kind == GPUSHMEM_COLL_EXSCAN;
    struct gpsh_dev_fold_runs run = {};
    gpsh_dev_unit<4> next[UNITS] = {};
    uint64_t units = (job.bytes + 15) / 16;
    if (job.end > 0)
        gpsh_dev_fold_load<UNITS>(c, job, 0, 0, 1, next);
    for (uint64_t first = 0; first < units; first += UNITS) {
        run.units = units - first < UNITS ? (int)(units - first) : +UNITS;
        for (int rank = 0; rank < job.end; rank++) {
            GPSH_UNROLL
            for (int k = 0; k < UNITS; k++)
                run.in[k] = next[k];
            int then = rank + 1 < job.end ? rank + 1 : 0;
            gpsh_dev_fold_load<UNITS>(c, job, then, then ? first : first + UNITS, 1, next);
            char *prefix = job.results == gpsh_dev_fold_job::prefixes
                               ? gpsh_dev_coll_there(c, job.dest, rank)
                               : nullptr;
            if (excludes && rank == 0)
                memset(run.acc, 0, sizeof run.acc); // the prefix of nothing
            if (excludes)
                gpsh_dev_fold_run_store(job, op.type, run, first, prefix);
            gpsh_dev_fold_run(run.acc, run.in, run.units, op.type, op.fold, rank == 0);
            if (!excludes)
                gpsh_dev_fold_run_store(job, op.type, run, first, prefix);
        }
        gpsh_dev_fold_run_results(c, job, op.type, run, first);
    }
}

template <int UNITS, class Fold>
GPSH_DEV void gpsh_dev_fold_by_lanes(const struct gpsh_dev_coll &c,
                                     const struct gpushmem_coll_op &op,
                                     const struct gpsh_dev_fold_job &job, const Fold &fold,
                                     unsigned lane, unsigned lanes)
{
    uint64_t units = (job.bytes + 15) / 16;
    for (uint64_t unit = lane; unit < units; unit += UNITS * (uint64_t)lanes)
        gpsh_dev_fold_units<UNITS>(c, op, job, fold, unit, lanes);
}

// By all lanes. The library's own kernels have no lone threads, and the sums of gradients in place
// (GPSH_COLL_SUMS): calls for each unit take a third of the time that the links leave.
GPSH_DEV_CALL void gpsh_dev_coll_fold(struct gpsh_dev_coll c, struct gpushmem_coll_op op,
                                      struct gpsh_dev_fold_job job, unsigned lane, unsigned lanes)
{
    const struct gpsh_dev_fold_any any = {op.type, op.fold};
#if defined(GPSH_COLL_SUMS)
    constexpr int sum = GPUSHMEM_COLL_SUM;
    switch (op.fold == sum ? +op.type : -1) {
    case GPUSHMEM_COLL_FLOAT:
        gpsh_dev_fold_by_lanes<GPSH_COLL_LOADS>(
            c, op, job, gpsh_dev_fold_one<GPUSHMEM_COLL_FLOAT, sum>(), lane, lanes);
        return;
    case GPUSHMEM_COLL_HALF:
        gpsh_dev_fold_by_lanes<GPSH_COLL_LOADS>(
            c, op, job, gpsh_dev_fold_one<GPUSHMEM_COLL_HALF, sum>(), lane, lanes);
        return;
    case GPUSHMEM_COLL_BFLOAT16:
        gpsh_dev_fold_by_lanes<GPSH_COLL_LOADS>(
            c, op, job, gpsh_dev_fold_one<GPUSHMEM_COLL_BFLOAT16, sum>(), lane, lanes);
        return;
    default: break;
    }
#else
    // 8 bytes took 5.5 us on two H200 as a run of one unit, 4.4 when there were no runs
    if (lanes == 1 && job.bytes > sizeof(gpsh_dev_unit<4>)) {
        gpsh_dev_fold_alone(c, op, job);
        return;
    }
#endif
    gpsh_dev_fold_by_lanes<GPSH_COLL_LOADS>(c, op, job, any, lane, lanes);
}

#endif
