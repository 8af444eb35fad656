// SPDX-License-Identifier: BSD-3-Clause
#include "proxy/emulation.h"

#include <stdatomic.h>

#include "core/error.h"
#include "gpushmem/device_host.h"
#include "proxy/proxy.h"

static gpsh_enqueue *_Atomic emulation; // of the program's kernels, once it has any

_Atomic bool gpsh_kernels_wake;

void gpushmem_stream_serve(int (*function)(gpushmem_stream_t stream,
                                           const struct gpushmem_stream_op *op))
{
    atomic_store_explicit(&emulation, function, memory_order_release);
    atomic_store_explicit(&gpsh_kernels_wake, true, memory_order_release);
}

gpsh_enqueue *gpsh_emulation(void)
{
    return atomic_load_explicit(&emulation, memory_order_acquire);
}

void gpsh_emulation_await_kernels(void)
{
    const struct gpushmem_stream_op end = {.kind = GPUSHMEM_STREAM_END};
    gpsh_enqueue *emulated = gpsh_emulation();
    if (emulated)
        (void)emulated(NULL, &end);
}

int gpushmem_launch_refused(int status, const char *sentence)
{
    return gpsh_fail(status, "a kernel was not launched: %s", sentence);
}

int gpushmem_launch_failed(int status, const struct gpushmem_launch_shape *shape,
                           const char *sentence)
{
    const unsigned *grid = shape->grid, *block = shape->block;
    return gpsh_fail(status,
                     "a kernel was not launched (grid %u x %u x %u, block %u x %u x %u, %zu bytes "
                     "of dynamic shared memory): %s",
                     grid[0], grid[1], grid[2], block[0], block[1], block[2], shape->shared_bytes,
                     sentence);
}

int gpushmem_call_failed(int status, const char *function, const char *sentence)
{
    return gpsh_fail(status, "%s: %s", function, sentence);
}

void gpushmem_proxy_help(uint32_t *sleeping)
{
    gpsh_proxy_help(sleeping);
}

void gpushmem_proxy_wake(uint32_t *sleeping)
{
    gpsh_proxy_wake(sleeping);
}
