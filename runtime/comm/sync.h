// SPDX-License-Identifier: BSD-3-Clause
// Barriers over all PEs, through the control regions.
#ifndef GPSH_SYNC_H
#define GPSH_SYNC_H

#include "comm/collective.h"

// All PEs have arrived, each in this call with these arguments. Completes nothing. `what` is the
// name for reports of a wait that lasts. Fails if a PE dies or GPUSHMEM_WAIT_TIMEOUT_MS runs out,
// and on all PEs with GPUSHMEM_ERR_ASYMMETRY if some are in another call.
int gpsh_sync_as(enum gpsh_collective_kind kind, uint64_t a, uint64_t b, const char *what);
// quiet of the default context and of kernels first.
int gpsh_barrier_as(enum gpsh_collective_kind kind, uint64_t a, uint64_t b, const char *what);
// The same of calls that hand out memory. `place`: where the block is that this PE would return: an
// offset in the heap, or GPSH_HOST_BLOCK and one in host memory, or GPSH_NO_BLOCK. PEs that would
// return different ones are told as if they had passed different arguments.
int gpsh_sync_at(enum gpsh_collective_kind kind, uint64_t a, uint64_t b, uint64_t place,
                 const char *what);
int gpsh_barrier_at(enum gpsh_collective_kind kind, uint64_t a, uint64_t b, uint64_t place,
                    const char *what);
// The same of a call in which a PE may fail by itself: all PEs learn of it, and then none goes on.
// `here`: 0, or the failure of this PE's part, whose sentence is the thread's last one. 0 if no PE
// has failed; else this PE's own failure, or that of another with its sentence.
int gpsh_barrier_agree(const char *what, enum gpsh_collective_kind kind, uint64_t a, uint64_t b,
                       int here);
// Barriers count from `number` on, the same on all PEs. In every init, before PEs may sync.
void gpsh_sync_init(uint64_t number);
// In every init, when all PEs have agreed whether they share cores.
void gpsh_sync_share(void);

#endif
