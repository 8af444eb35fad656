// SPDX-License-Identifier: BSD-3-Clause
// Folding by a lone thread: what programs fold most, in runs of units that stay in registers.
#ifndef GPUSHMEM_DEVICE_COLL_FOLD_ALONE_CUH
#define GPUSHMEM_DEVICE_COLL_FOLD_ALONE_CUH

#include "gpushmem/device/coll_fold_job.cuh"

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

#endif
