// SPDX-License-Identifier: BSD-3-Clause
#include "gpu/gpu_call.h"

#include <stdatomic.h>
#include <stdio.h>

#include "core/clock.h"
#include "core/config.h"
#include "core/cpu.h"
#include "core/thread.h"
#include "job/job.h"

enum { CALLERS = 64 }; // proxies and agents; of threads beyond them nothing is known

// A thread of the library, on a cache line of its own.
static struct caller {
    _Alignas(64) _Atomic(const char *) thread;   // NULL: none yet
    _Atomic uint64_t since_ns;                   // of the call that it is in; 0: of none
    _Atomic uint64_t past_since_ns, past_end_ns; // of its last one that is remembered
} callers[CALLERS];
static atomic_int n_callers;

static _Thread_local struct caller *own;
static _Thread_local int depth; // of pairs of enter and leave

// What a call must have lasted for to be remembered: half of what kernels wait for; 0: none is.
static uint64_t remembered_ns(void)
{
    return (uint64_t)gpsh_settings()->wait_timeout_ms * 500000;
}

static struct caller *claim(const char *thread)
{
    int i = atomic_load(&n_callers) < CALLERS ? atomic_fetch_add(&n_callers, 1) : CALLERS;
    if (i >= CALLERS)
        return NULL;
    atomic_store(&callers[i].thread, thread);
    return &callers[i];
}

void gpsh_gpu_call_begin(void)
{
    const char *thread = own ? NULL : gpsh_thread_name();
    if (thread)
        own = claim(thread);
    if (own && !depth++)
        atomic_store_explicit(&own->since_ns, gpsh_clock_coarse_ns(), memory_order_relaxed);
}

void gpsh_gpu_call_end(void)
{
    if (!own || --depth)
        return;
    uint64_t since_ns = atomic_load_explicit(&own->since_ns, memory_order_relaxed);
    uint64_t now_ns = gpsh_clock_coarse_ns(), limit_ns = remembered_ns();
    if (GPSH_UNLIKELY(limit_ns && now_ns - since_ns >= limit_ns)) {
        atomic_store(&own->past_since_ns, since_ns);
        atomic_store(&own->past_end_ns, now_ns);
    }
    atomic_store_explicit(&own->since_ns, 0, memory_order_release);
}

void gpsh_gpu_forget_calls(void)
{
    for (int i = 0; i < CALLERS; i++) {
        atomic_store(&callers[i].thread, NULL);
        atomic_store(&callers[i].since_ns, 0);
        atomic_store(&callers[i].past_end_ns, 0);
    }
    atomic_store(&n_callers, 0);
}

// ---- Looking ----

static void take_longer(struct gpsh_gpu_call *longest, const char *thread, uint64_t since_ns,
                        uint64_t end_ns)
{
    if (since_ns && end_ns > since_ns && end_ns - since_ns >= longest->lasted_ns)
        *longest = (struct gpsh_gpu_call){thread, since_ns, end_ns - since_ns};
}

bool gpsh_gpu_long_call(uint64_t at_least_ns, uint64_t ago_ns, struct gpsh_gpu_call *out)
{
    struct gpsh_gpu_call longest = {.lasted_ns = at_least_ns};
    uint64_t now_ns = gpsh_clock_coarse_ns();
    for (int i = 0; i < CALLERS && atomic_load(&callers[i].thread); i++) {
        const char *thread = atomic_load(&callers[i].thread);
        take_longer(&longest, thread, atomic_load(&callers[i].since_ns), now_ns);
        uint64_t end_ns = atomic_load(&callers[i].past_end_ns);
        if (end_ns && ago_ns && now_ns < end_ns + ago_ns)
            take_longer(&longest, thread, atomic_load(&callers[i].past_since_ns), end_ns);
    }
    if (longest.thread)
        *out = longest;
    return longest.thread;
}

void gpsh_gpu_call_describe(const struct gpsh_gpu_call *call, char *text, size_t bytes)
{
    snprintf(text, bytes,
             "the CUDA driver has kept the thread %s of PE %d waiting for %.1f s: a thread of the "
             "program is probably in a copy of pageable memory, or in cudaFree, in the default "
             "stream behind a kernel that waits for this PE. Synchronise before it, or copy to and "
             "from pinned memory, or in a stream of cudaStreamNonBlocking (docs/gpu.md, Deadlocks)",
             call->thread, gpsh_job()->my_pe, (double)call->lasted_ns * 1e-9);
}
