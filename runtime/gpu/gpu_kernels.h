// SPDX-License-Identifier: BSD-3-Clause
// Small kernels of the library itself, carried as PTX, so that no CUDA compiler is needed to build
// it.
#ifndef GPSH_GPU_KERNELS_H
#define GPSH_GPU_KERNELS_H

#include "gpu/gpu_driver.h"
#include "transport/transport.h"

// Launches one thread that executes op's atomic (amo, width, operand, compare) at system scope on
// `word` and stores the previous value to *result (device-visible; NULL: not wanted). The calling
// thread has the GPU's context.
int gpsh_gpu_launch_amo(gpsh_cu_stream stream, void *word, const struct gpsh_op *op,
                        uint64_t *result);

// Loads the kernels ahead of their first use, which may come while a stream is captured into a
// graph.
int gpsh_gpu_kernels_load(void);

#endif
