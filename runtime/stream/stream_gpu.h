// SPDX-License-Identifier: BSD-3-Clause
// Operations of CUDA streams: kernels of the library, copies of the copy engine, stores of the
// stream's front end.
#ifndef GPSH_STREAM_GPU_H
#define GPSH_STREAM_GPU_H

#include "gpu/gpu_driver.h"
#include "gpushmem/device_abi.h"
#include "gpushmem/stream.h"

// Enqueues *op, whose arguments were checked. Any thread, any stream of this PE's GPU, captured or
// not; the first call makes the device side and loads the kernels.
int gpsh_stream_gpu_submit(const struct gpushmem_stream_op *op, gpushmem_stream_t stream);

// 0 if a kernel may read and write `local` (any address in the heap, GPU memory, pinned host
// memory).
int gpsh_stream_gpu_check_local(const char *function, const void *local);

// Loads the kernels, where the heap is on a GPU: ahead of their first use, since the driver may
// wait for running kernels then, which may wait for us. A failure is told by the first operation
// that wants a kernel.
void gpsh_stream_gpu_preload(void);
void gpsh_stream_gpu_unload(void); // before the context goes; legal if they were never loaded

// Whether a kernel of the library's may be launched before the one ahead of it has ended.
bool gpsh_stream_gpu_may_be_early(gpsh_cu_function kernel);

#endif
