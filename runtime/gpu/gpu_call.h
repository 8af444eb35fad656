// SPDX-License-Identifier: BSD-3-Clause
// How long calls of the CUDA driver keep threads of the library. The driver lets a call wait behind
// one of another thread that waits for a kernel itself: if that kernel waits for a proxy, none of
// the three gets on. So a thread of the library notes when it enters the driver, and others look.
#ifndef GPSH_GPU_CALL_H
#define GPSH_GPU_CALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// What a thread of the library is in, while it is in a block of GPSH_IN_GPU.
struct gpsh_gpu_call {
    const char *thread; // its name
    uint64_t since_ns;  // gpsh_clock_ns
    uint64_t lasted_ns;
};

// The longest call that is under way or, of those that took half of GPUSHMEM_WAIT_TIMEOUT_MS, ended
// less than ago_ns ago. False: none has lasted for at_least_ns. Any thread.
bool gpsh_gpu_long_call(uint64_t at_least_ns, uint64_t ago_ns, struct gpsh_gpu_call *out);

// A sentence about it: what is likely to be why, and what to do.
enum { GPSH_GPU_CALL_TEXT = 448 };
void gpsh_gpu_call_describe(const struct gpsh_gpu_call *call, char *text, size_t bytes);

// For gpu.c alone. Pairs may nest, of which the outermost counts. In threads of the program they do
// nothing: the program's own calls may have to wait for its kernels.
void gpsh_gpu_call_begin(void);
void gpsh_gpu_call_end(void);
void gpsh_gpu_forget_calls(void); // once no thread of the library is left that enters

#endif
