// SPDX-License-Identifier: BSD-3-Clause
// What is to be folded, and where the members' blocks of it lie.
#ifndef GPUSHMEM_DEVICE_COLL_FOLD_JOB_CUH
#define GPUSHMEM_DEVICE_COLL_FOLD_JOB_CUH

#include "gpushmem/device/coll_unit.cuh"

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

#endif
