// SPDX-License-Identifier: BSD-3-Clause
// Collectives of CUDA streams: kernels of the library and, for large blocks, copies of the copy
// engine between two of them.
#ifndef GPSH_COLL_GPU_H
#define GPSH_COLL_GPU_H

#include "gpushmem/device_abi.h"
#include "gpushmem/stream.h"
#include "proxy/device_teams.h"
#include "stream/coll_choice.h"

// Enqueues *op, whose arguments were checked and whose way is `choice`'s. Any thread, any stream of
// this PE's GPU, captured or not.
int gpsh_coll_gpu_submit(const struct gpushmem_coll_op *op,
                         const struct gpsh_device_team_view *team, struct gpsh_coll_choice choice,
                         gpushmem_stream_t stream);

// See gpsh_stream_module_preload.
void gpsh_coll_gpu_preload(void);

#endif
