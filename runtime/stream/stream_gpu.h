// SPDX-License-Identifier: BSD-3-Clause
// Operations of CUDA streams: kernels of the library, copies of the copy engine, stores of the
// stream's front end.
#ifndef GPSH_STREAM_GPU_H
#define GPSH_STREAM_GPU_H

#include "gpushmem/device_abi.h"
#include "gpushmem/stream.h"

// Enqueues *op, whose arguments were checked. Any thread, any stream of this PE's GPU, captured or
// not; the first call makes the device side and loads the kernels.
int gpsh_stream_gpu_submit(const struct gpushmem_stream_op *op, gpushmem_stream_t stream);

// Returns when everything in the stream has ended.
int gpsh_stream_gpu_drain(const char *function, gpushmem_stream_t stream);

// 0 if a kernel may read and write `local` (any address in the heap, GPU memory, pinned host
// memory).
int gpsh_stream_gpu_check_local(const char *function, const void *local);

// See gpsh_stream_module_preload.
void gpsh_stream_gpu_preload(void);
void gpsh_stream_gpu_unload(void); // before the context goes; legal if they were never loaded

#endif
