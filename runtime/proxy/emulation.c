// SPDX-License-Identifier: BSD-3-Clause
#include "proxy/emulation.h"

#include <stdatomic.h>

#include "core/error.h"
#include "gpushmem/device_host.h"
#include "job/job.h"
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

static _Atomic uint64_t missed; // 0: none; else of the first block or warp, of which none `came`
enum { MISSED_BITS = 21 };      // of each number: more threads than a block may have

void gpushmem_warp_missed(unsigned calling, unsigned threads)
{
    gpushmem_block_missed(calling, 0, threads);
}

void gpushmem_block_missed(unsigned calling, unsigned came, unsigned threads)
{
    uint64_t none = 0,
             here = (uint64_t)threads << 2 * MISSED_BITS | (uint64_t)came << MISSED_BITS | calling;
    atomic_compare_exchange_strong(&missed, &none, here);
}

int gpsh_emulation_take_missed(void)
{
    const uint64_t mask = (1 << MISSED_BITS) - 1, found = atomic_exchange(&missed, 0);
    if (!found)
        return 0;
    unsigned calling = found & mask, came = found >> MISSED_BITS & mask,
             threads = (unsigned)(found >> 2 * MISSED_BITS);
    if (!came)
        return gpsh_fail(GPUSHMEM_ERR_INVALID,
                         "a kernel on PE %d failed: %u of the %u threads of a warp made a call of "
                         "the warp (..._warp): only their part was moved; all threads of the warp "
                         "make such a call, or one makes that without _warp",
                         gpsh_job()->my_pe, calling, threads);
    return gpsh_fail(GPUSHMEM_ERR_INVALID,
                     "a kernel on PE %d failed: %u of the %u threads of a block made a call of the "
                     "block (..._block), %u were in __syncthreads, %u had left the kernel: only "
                     "their part was moved; all threads of the block make such a call, or one "
                     "makes that without _block",
                     gpsh_job()->my_pe, calling, threads, came - calling, threads - came);
}

void gpushmem_proxy_help(uint32_t *sleeping)
{
    gpsh_proxy_help(sleeping);
}

void gpushmem_proxy_wake(uint32_t *sleeping)
{
    gpsh_proxy_wake(sleeping);
}
