// SPDX-License-Identifier: BSD-3-Clause
// Completion of what kernels wrote, for the host. A ring is never "empty for now": other kernels
// may use it all the time, and a slot that is reserved but not yet written hides the commands after
// it. So each ring's head is read once, which covers every command of kernels that have ended, and
// then `completed` only has to get there.
#include <stdio.h>

#include "core/clock.h"
#include "core/error.h"
#include "progress/waiter.h"
#include "proxy/proxy.h"

// A GPU whose context has died never writes what it reserved: asked this often, the driver says so.
enum { PROBE_NS = 100000000, SPINS_BETWEEN_CLOCKS = 1024 };

int gpsh_proxy_heads(struct gpsh_proxy *proxy, uint64_t *heads)
{
    pthread_mutex_lock(&proxy->heads_lock);
    int status = gpsh_ring_heads(proxy->set, heads);
    pthread_mutex_unlock(&proxy->heads_lock);
    return status;
}

// Why nothing more completes in the ring, or 0.
static int ring_error(const struct gpushmem_ring *ring)
{
    return __atomic_load_n(&ring->status->error, __ATOMIC_ACQUIRE);
}

static uint64_t ring_completed(const struct gpushmem_ring *ring)
{
    return __atomic_load_n(&ring->status->completed, __ATOMIC_ACQUIRE);
}

// Whether ring i is one of these.
static bool is_of(const struct gpsh_proxy *proxy, int i, int number)
{
    int context = i - gpsh_proxy_shared_rings(proxy) + 1;
    return number == GPSH_CONTEXT_ALL || number == (context > 0 ? context : GPSH_CONTEXT_DEFAULT);
}

bool gpsh_proxy_reached(const struct gpsh_proxy *proxy, int number, const uint64_t *heads,
                        int *error)
{
    *error = 0;
    for (int i = 0; i < proxy->n_rings; i++) {
        if (!is_of(proxy, i, number))
            continue;
        const struct gpushmem_ring *ring = &proxy->rings[i].shared;
        int status = ring_error(ring);
        if (!status && ring_completed(ring) < heads[i])
            return false;
        if (status && !*error)
            *error = status;
    }
    return true;
}

struct target {
    const struct gpsh_proxy *proxy;
    int number;
    const uint64_t *heads;
};

// To follow "waiting": names the first command that is missing.
static void describe_target(const void *subject, char *text, size_t bytes)
{
    const struct target *target = subject;
    for (int i = 0; i < target->proxy->n_rings; i++) {
        const struct gpushmem_ring *ring = &target->proxy->rings[i].shared;
        struct gpushmem_command command;
        uint64_t completed = ring_completed(ring),
                 consumed = __atomic_load_n(&ring->status->consumed, __ATOMIC_ACQUIRE);
        if (!is_of(target->proxy, i, target->number) || ring_error(ring) ||
            completed >= target->heads[i])
            continue;
        bool written = consumed > completed || gpsh_ring_peek(ring, completed, &command);
        snprintf(text, bytes, " for ring %u, commands %llu to %llu: the first is %s", ring->number,
                 (unsigned long long)completed, (unsigned long long)target->heads[i] - 1,
                 written ? "under way"
                         : "reserved by a kernel that has not written it; was the kernel killed?");
        return;
    }
}

// 0, or the driver's error if the GPU is gone. `scratch` may be written.
static int probe(struct gpsh_proxy *proxy, uint64_t *probed_ns, uint64_t *scratch)
{
    uint64_t now = gpsh_clock_ns();
    if (now - *probed_ns < PROBE_NS)
        return 0;
    *probed_ns = now;
    return gpsh_proxy_heads(proxy, scratch);
}

int gpsh_proxy_quiet(struct gpsh_proxy *proxy, int number, int *closed)
{
    uint64_t heads[GPSH_MAX_RINGS], scratch[GPSH_MAX_RINGS], probed_ns = gpsh_clock_ns();
    struct target target = {proxy, number, heads};
    GPSH_WAIT(waiter, "completion of what kernels issued");
    waiter.flows_tell = true;
    waiter.about = describe_target;
    waiter.subject = &target;
    int status = gpsh_proxy_heads(proxy, heads);
    while (!status && !gpsh_proxy_reached(proxy, number, heads, closed)) {
        status = gpsh_waiter_step(&waiter);
        if (!status && waiter.spins % SPINS_BETWEEN_CLOCKS == 0)
            status = probe(proxy, &probed_ns, scratch);
    }
    return status;
}
