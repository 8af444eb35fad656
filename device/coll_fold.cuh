// SPDX-License-Identifier: BSD-3-Clause
// Folding blocks that lie in memory: the members' sources, staging memory, or this PE's dest. What
// is to be folded, and how a lone thread and how many threads do it.
#ifndef GPUSHMEM_DEVICE_COLL_FOLD_CUH
#define GPUSHMEM_DEVICE_COLL_FOLD_CUH

#include "gpushmem/device/coll_unit.cuh"

// ---- What is to be folded, and where the members' blocks of it lie ----

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

// ---- By a lone thread: what programs fold most, in runs of units that stay in registers ----

// A lone thread takes 4 to 6 cycles for each instruction that needs the one before, and questions
// and calls for each unit took it 900 on H200. Here a run of two members is 16 loads, all under way
// at once, 32 additions and 8 stores. More units, or the next run's loads meanwhile, would take
// more registers than the rest of the collectives needs.
template <int UNITS> struct gpsh_dev_fold_whole {
    gpsh_dev_unit<4> in[UNITS];
};

GPSH_DEV bool gpsh_dev_fold_is_aligned(const struct gpsh_dev_fold_job &job)
{
    uint64_t all = (uintptr_t)job.source | (uintptr_t)job.dest | (uintptr_t)job.slots;
    return !((all | job.slot_bytes) & 15); // heaps begin at pages, so that peers' blocks are alike
}

template <int UNITS>
GPSH_DEV void gpsh_dev_fold_whole_load(gpsh_dev_fold_whole<UNITS> *run, const char *from)
{
    GPSH_UNROLL
    for (int k = 0; k < UNITS; k++)
        run->in[k] = gpsh_dev_load_whole(from + 16 * k);
}

template <int UNITS, class Fold>
GPSH_DEV void gpsh_dev_fold_whole_add(const Fold &fold, gpsh_dev_acc<4> *acc,
                                      const gpsh_dev_fold_whole<UNITS> &run, bool first)
{
    GPSH_UNROLL
    for (int k = 0; k < UNITS; k++)
        acc[k] = gpsh_dev_fold_with(fold, acc[k], run.in[k], first);
}

template <int UNITS, class Fold>
GPSH_DEV void gpsh_dev_fold_whole_store(const Fold &fold, const gpsh_dev_acc<4> *acc, char *to)
{
    GPSH_UNROLL
    for (int k = 0; k < UNITS; k++)
        gpsh_dev_store_whole(to + 16 * k, gpsh_dev_folded(fold, acc[k]));
}

// Returns the bytes that are done: whole runs.
template <int TYPE, int FOLD>
GPSH_DEV_CALL uint64_t gpsh_dev_fold_whole_of(struct gpsh_dev_coll c, struct gpsh_dev_fold_job job)
{
    GPSH_DEV_BOUNDS();
    constexpr bool SHORT = TYPE == GPUSHMEM_COLL_HALF || TYPE == GPUSHMEM_COLL_BFLOAT16;
    constexpr int UNITS = SHORT ? 4 : 8; // their sums are twice as wide
    const gpsh_dev_fold_one<TYPE, FOLD> fold;
    const char *zero = gpsh_dev_fold_source(c, job, 0), *one = gpsh_dev_fold_source(c, job, 1);
    uint64_t at = 0;
    for (; at + 16 * UNITS <= job.bytes; at += 16 * UNITS) {
        gpsh_dev_acc<4> acc[UNITS] = {};
        gpsh_dev_fold_whole<UNITS> first, run;
        gpsh_dev_fold_whole_load(&first, zero + at);
        gpsh_dev_fold_whole_add(fold, acc, first, true);
        for (int rank = 1; rank < job.end; rank++) {
            const char *from = rank == 1 ? one : gpsh_dev_fold_source(c, job, rank);
            gpsh_dev_fold_whole_load(&run, from + at);
            gpsh_dev_fold_whole_add(fold, acc, run, false);
        }
        gpsh_dev_fold_whole_store<UNITS>(fold, acc, job.dest + at);
        for (int r = 1; r < c.n && job.results == gpsh_dev_fold_job::all; r++) {
            int rank = c.me + r < c.n ? c.me + r : c.me + r - c.n;
            if (char *to = gpsh_dev_coll_there(c, job.dest, rank))
                gpsh_dev_fold_whole_store<UNITS>(fold, acc, to + at);
        }
    }
    return at;
}

#define GPSH_WHOLE(TYPE, FOLD)                                                                     \
    case GPUSHMEM_COLL_##TYPE: return gpsh_dev_fold_whole_of<GPUSHMEM_COLL_##TYPE, FOLD>(c, job)
// Returns the bytes that are done, of sums of words and floats, and of the largest float.
GPSH_DEV uint64_t gpsh_dev_fold_whole_runs(const struct gpsh_dev_coll &c,
                                           const struct gpushmem_coll_op &op,
                                           const struct gpsh_dev_fold_job &job)
{
    constexpr int SUM = GPUSHMEM_COLL_SUM, MAX = GPUSHMEM_COLL_MAX;
    if (!gpsh_dev_fold_is_aligned(job) || job.results == gpsh_dev_fold_job::prefixes || job.end < 2)
        return 0;
    if (op.fold == MAX && op.type == GPUSHMEM_COLL_FLOAT)
        return gpsh_dev_fold_whole_of<GPUSHMEM_COLL_FLOAT, MAX>(c, job);
    // sums wrap, so that signed numbers are as unsigned ones
    bool is_signed = op.type == GPUSHMEM_COLL_INT32 || op.type == GPUSHMEM_COLL_INT64;
    switch (op.fold != SUM ? -1 : is_signed ? op.type + GPUSHMEM_COLL_UINT8 : +op.type) {
        GPSH_WHOLE(UINT32, SUM);
        GPSH_WHOLE(UINT64, SUM);
        GPSH_WHOLE(HALF, SUM);
        GPSH_WHOLE(BFLOAT16, SUM);
        GPSH_WHOLE(FLOAT, SUM);
        GPSH_WHOLE(DOUBLE, SUM);
    default: return 0;
    }
}
#undef GPSH_WHOLE

// ---- By the threads of a scope ----

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
    GPSH_DEV_BOUNDS();
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
