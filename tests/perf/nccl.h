// SPDX-License-Identifier: BSD-3-Clause
// NCCL for comparison, found at run time. Its names and numbers: "NCCL User Guide", NVIDIA.
#ifndef PERF_NCCL_H
#define PERF_NCCL_H

#include <stdbool.h>
#include <stddef.h>

#include "gpushmem/gpushmem.h"

#ifdef __cplusplus
extern "C" {
#endif

enum perf_nccl_kind {
    PERF_NCCL_ALL_REDUCE,
    PERF_NCCL_ALL_GATHER,
    PERF_NCCL_REDUCE_SCATTER,
    PERF_NCCL_BROADCAST,
    PERF_NCCL_ALL_TO_ALL,
};

// Collective. Opens `library` and a communicator of all PEs; a PE whose GPU it cannot use fails.
// The `bytes` of source and target are registered where the library can, but not for broadcasts of
// 4 MiB or more, in which NCCL 2.28 hangs then. 0 or a negative status, with a line on stderr that
// says what is missing.
int perf_nccl_open(const char *library, void *source, void *target, size_t bytes);
bool perf_nccl_is_open(void);
// Floats: `count` is what NCCL's call of that name takes.
int perf_nccl_enqueue(enum perf_nccl_kind kind, void *target, const void *source, size_t count,
                      gpushmem_stream_t stream);
void perf_nccl_close(void);

#ifdef __cplusplus
}
#endif

#endif
