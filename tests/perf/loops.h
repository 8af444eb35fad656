// SPDX-License-Identifier: BSD-3-Clause
// The loops that are timed, around a call that gives a status. The call sees `b` and `c`; it stands
// in the loop itself, so that the compiler sees what a program's would.
#ifndef PERF_LOOPS_H
#define PERF_LOOPS_H

#include "bench.h"

// NAME is a perf_run_fn: the call, n times.
#define PERF_REPEAT(NAME, CALL)                                                                    \
    static int NAME(struct perf_bench *b, const struct perf_case *c, uint64_t n)                   \
    {                                                                                              \
        int status = 0;                                                                            \
        for (uint64_t i = 0; i < n && !status; i++)                                                \
            status = CALL;                                                                         \
        return status;                                                                             \
    }

// n windows of the call, each ended by a quiet; `k` is the place in the window.
#define PERF_WINDOWS(NAME, CALL)                                                                   \
    static int NAME(struct perf_bench *b, const struct perf_case *c, uint64_t n)                   \
    {                                                                                              \
        int status = 0;                                                                            \
        for (uint64_t i = 0; i < n && !status; i++) {                                              \
            for (uint64_t k = 0; k < c->window && !status; k++)                                    \
                status = CALL;                                                                     \
            if (!status)                                                                           \
                status = gpushmem_quiet();                                                         \
        }                                                                                          \
        return status;                                                                             \
    }

#endif
