// SPDX-License-Identifier: BSD-3-Clause
// The CUDA runtimes of the program, which it is linked with, and its kernels; the library uses the
// driver alone.
#ifndef GPSH_GPU_RUNTIMES_H
#define GPSH_GPU_RUNTIMES_H

// Lets each begin that has not begun in the opened GPU's context, which is current. When it returns
// all have, also those that another thread let begin. Any thread.
void gpsh_gpu_runtimes_begin(void);

#endif
