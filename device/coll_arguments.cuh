// SPDX-License-Identifier: BSD-3-Clause
// What a kernel's collective looks at before it begins, with GPUSHMEM_DEVICE_CHECKS.
#ifndef GPUSHMEM_DEVICE_COLL_ARGUMENTS_CUH
#define GPUSHMEM_DEVICE_COLL_ARGUMENTS_CUH

#include "gpushmem/device/coll_unit.cuh"

// Bytes of source and dest.
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

#endif
