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

void gpushmem_proxy_help(uint32_t *sleeping)
{
    gpsh_proxy_help(sleeping);
}

void gpushmem_proxy_wake(uint32_t *sleeping)
{
    gpsh_proxy_wake(sleeping);
}
