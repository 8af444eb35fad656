// SPDX-License-Identifier: BSD-3-Clause
// What the device headers call in the library to launch kernels and to run them on CPU threads.
// Programs do not need it.
#ifndef GPUSHMEM_IMPL_LAUNCH_HOST_H
#define GPUSHMEM_IMPL_LAUNCH_HOST_H

#include <stddef.h>
#include <stdint.h>

#include "gpushmem/device_abi.h"
#include "gpushmem/stream.h"

#if defined(__cplusplus)
extern "C" {
#endif

// Makes `sentence` this thread's gpushmem_last_error() and returns `status`.
GPUSHMEM_API int gpushmem_launch_refused(int status, const char *sentence);

// The same of a launch whose shape explains it, and of another call: "function: sentence".
struct gpushmem_launch_shape {
    unsigned grid[3], block[3];
    size_t shared_bytes;
};
GPUSHMEM_API int gpushmem_launch_failed(int status, const struct gpushmem_launch_shape *shape,
                                        const char *sentence);
GPUSHMEM_API int gpushmem_call_failed(int status, const char *function, const char *sentence);

// With GPUSHMEM_CHECK=1 a barrier: GPUSHMEM_ERR_ASYMMETRY if PEs are to launch different shapes.
// Else 0 at once.
GPUSHMEM_API int gpushmem_launch_compare(const struct gpushmem_launch_shape *shape);

// Tells the library that this thread of the program enters (1) or leaves (-1)
// gpushmem_launch_wait, for those who ask what a PE waits for.
GPUSHMEM_API void gpushmem_launch_waiting(int change);

// A CUDA runtime that is linked into the program, or into a library of it. With its first call it
// loads kernels, for which the driver waits for those that run, and lets no other thread in
// meanwhile. Kernels of a stream's operation may need the proxies, which need the driver. So the
// library calls `begin`, which makes such a call, before the first of these operations: once for
// each CUDA context, with that current, in the thread that enqueues.
//
// From add to remove the structure belongs to the library, which writes all of it but `begin`. Both
// are called by any thread, also while some `begin` runs, and wait for none: whoever unloads a
// library sees to it that no other thread enqueues its first operation just then.
struct gpushmem_cuda_runtime {
    void (*begin)(void);
    const void *begun; // the context in which it has; written by the library
    struct gpushmem_cuda_runtime *next;
};
GPUSHMEM_API void gpushmem_cuda_runtime_add(struct gpushmem_cuda_runtime *runtime);
GPUSHMEM_API void gpushmem_cuda_runtime_remove(struct gpushmem_cuda_runtime *runtime);

// Loads all kernels of the module that this CUfunction is of, where CUDA loads kernels when they
// are first launched: a launch would wait then for kernels that run, which may wait for it. Does
// nothing with a driver older than CUDA 12.4, and leaves failures to the launches. Any thread.
GPUSHMEM_API void gpushmem_kernels_load(void *function);

// Wakes a proxy thread of the CPU emulation, or does a piece of its work.
GPUSHMEM_API void gpushmem_proxy_wake(uint32_t *sleeping);
GPUSHMEM_API void gpushmem_proxy_help(uint32_t *sleeping);

// CPU threads: `calling` of the block's `threads` met in a call that all make together; `came` of
// them met there or elsewhere, the rest has left the kernel. Told by the next
// gpushmem_device_error.
GPUSHMEM_API void gpushmem_block_missed(unsigned calling, unsigned came, unsigned threads);
// The same of a warp, of whose `threads` only `calling` made a call that all make together.
GPUSHMEM_API void gpushmem_warp_missed(unsigned calling, unsigned threads);

// CPU threads: of the block's `threads` only `came` met in a __syncthreads, the rest has left the
// kernel. Told once, as a warning.
GPUSHMEM_API void gpushmem_sync_missed(unsigned came, unsigned threads);

// CPU threads: host code has called `function`, which is a kernel's. Told up to 16 times.
GPUSHMEM_API void gpushmem_outside_kernel(const char *function);

// CPU threads, with GPUSHMEM_DEV_COUNTED: an operation on `pe` was loads and stores.
GPUSHMEM_API void gpushmem_direct_counted(int pe, uint64_t bytes);

// CPU threads, with GPUSHMEM_DEV_BLOCKS: 1 if these bytes of the heap are in one allocated block,
// or are none of the program's.
GPUSHMEM_API int gpushmem_block_holds(const void *address, uint64_t bytes);

// CPU threads: a launch begins to run, which returns a time, or 0 if nobody wants to know; and it
// has ended. `text` is what the launch was given, kernel first, or NULL for an operation of a
// stream; it is read until gpushmem_finalize.
GPUSHMEM_API uint64_t gpushmem_kernel_begins(void);
GPUSHMEM_API void gpushmem_kernel_ends(uint64_t began, const char *text, unsigned threads,
                                       int stream);

// CPU threads: starts a detached thread that takes none of the program's signals, but for those
// that its own instructions cause. 0 or an errno value.
GPUSHMEM_API int gpushmem_kernel_thread_start(void *(*run)(void *), void *arg, size_t stack_bytes);

// A thread that touches what is no memory is asked for a sentence: `tell` writes it and returns its
// length, or 0 if the thread runs no kernel. It may only do what a signal handler may. Then the
// signal takes its course. Where the program, or a sanitizer, has plans of its own for the signal,
// it stays theirs.
GPUSHMEM_API void gpushmem_faults_watch(int (*tell)(char *text, size_t bytes, const void *address));

// Kernels of this program run on CPU threads: from now on operations of streams (gpushmem/stream.h)
// are handed to `enqueue`, which lets *op run after what is in the stream, and returns 0 or a
// negative status at once. GPUSHMEM_STREAM_END is not one: gpushmem_finalize has ended the waits of
// kernels, and goes on when this returns.
GPUSHMEM_API void gpushmem_stream_serve(int (*enqueue)(gpushmem_stream_t stream,
                                                       const struct gpushmem_stream_op *op));

#if defined(__cplusplus)
}
#endif

#endif
