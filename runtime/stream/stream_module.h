// SPDX-License-Identifier: BSD-3-Clause
// Kernels of the library's own that streams launch: loaded once, ahead of their first use, and
// started before the kernel ahead of them has ended where that is safe.
#ifndef GPSH_STREAM_MODULE_H
#define GPSH_STREAM_MODULE_H

#include <pthread.h>
#include <stdatomic.h>

#include "core/cpu.h"
#include "core/hooks.h"
#include "gpu/gpu_driver.h"
#include "gpushmem/device_abi.h"
#include "gpushmem/stream.h"

enum { GPSH_STREAM_MODULE_KERNELS = 16 }; // at most

struct gpsh_stream_module {
    const char *what;         // completes "the kernels of"
    const void *const *image; // the fatbin; NULL in it: built without CUDA's compiler
    const char *const *names; // [n] of the kernels; NULL where a number has none
    int n;
    int asked;                  // the kernel whose code tells whether they may be launched early
    int late;                   // kernels from this number on are never launched early,
    unsigned early_blocks;      // nor those of more blocks
    unsigned idle_threads;      // of the launch that warms up, with parameters that
    void *const *idle_nothing;  // leave a kernel nothing to do
    void (*unload)(void);       // calls gpsh_stream_module_unload
    struct gpushmem_dev handle; // first parameter of every kernel; there once `ready`

    pthread_mutex_t lock;
    _Atomic bool ready; // all of it is there, and stays until finalize
    gpsh_cu_module module;
    gpsh_cu_function kernels[GPSH_STREAM_MODULE_KERNELS];
    bool early; // docs/design/kernels.md
};

// Of a launch.
struct gpsh_stream_shape {
    unsigned blocks, threads;
};

// Loads the kernels, where the heap is on a GPU: ahead of their first use, since the driver may
// wait for running kernels then, which may wait for us. A failure is told by the first operation
// that wants a kernel.
void gpsh_stream_module_preload(struct gpsh_stream_module *m);

// Makes handle and kernels, at the first operation. Any thread.
int gpsh_stream_module_prepare(struct gpsh_stream_module *m);

// Before the GPU's context goes; legal if nothing was loaded.
void gpsh_stream_module_unload(struct gpsh_stream_module *m);

// parameters[0] is &m->handle. The calling thread has the GPU's context.
gpsh_cu_result gpsh_stream_module_launch(const struct gpsh_stream_module *m, int kernel,
                                         struct gpsh_stream_shape shape, void **parameters,
                                         gpushmem_stream_t stream);

static inline int gpsh_stream_module_use(struct gpsh_stream_module *m)
{
    if (GPSH_LIKELY(atomic_load_explicit(&m->ready, memory_order_acquire)))
        return 0;
    return gpsh_stream_module_prepare(m);
}

#endif
