// SPDX-License-Identifier: BSD-3-Clause
// Contexts of kernels: who has one, and whose channels its ring posts through meanwhile. A claim is
// a command, carried out by whichever thread reads it, or a call of the host; the thread that
// serves the context's ring ends it.
#include "connect/net.h"
#include "core/cpu.h"
#include "core/error.h"
#include "proxy/proxy.h"

// 0 is nobody's.
static uint32_t next_tag(struct gpsh_proxy *proxy)
{
    uint32_t tag;
    do
        tag = atomic_fetch_add(&proxy->last_tag, 1) + 1;
    while (!tag);
    return tag;
}

// False: it is in use, or there are no channels for it.
static bool try_claim(struct gpsh_proxy *proxy, struct gpsh_proxy_context *context, uint32_t tag,
                      bool *channels)
{
    uint32_t nobody = 0;
    if (!atomic_compare_exchange_strong(&context->tag, &nobody, tag))
        return false;
    *channels = proxy->env.take_channels(context->port.channels);
    if (!*channels) {
        atomic_store(&context->tag, 0);
        return false;
    }
    atomic_store_explicit(&context->port.open, true, memory_order_release);
    return true;
}

uint64_t gpsh_proxy_claim(struct gpsh_proxy *proxy)
{
    uint32_t tag = next_tag(proxy);
    bool channels = true;
    for (int i = 0; i < proxy->env.n_contexts && channels; i++)
        if (try_claim(proxy, &proxy->contexts[i], tag, &channels))
            return (uint64_t)tag << 32 | (uint32_t)(i + 1);
    if (proxy->env.none_left)
        proxy->env.none_left();
    return 0;
}

int gpsh_proxy_free(struct gpsh_proxy *proxy, uint32_t number, uint32_t tag)
{
    struct gpsh_proxy_context *context =
        number - 1 < (uint32_t)proxy->env.n_contexts ? &proxy->contexts[number - 1] : NULL;
    if (!context || !tag || atomic_load(&context->tag) != tag ||
        atomic_exchange(&context->leaving, true))
        return gpsh_fail(
            GPUSHMEM_ERR_INVALID,
            "context %u of the device is not in use by that name: it was destroyed before", number);
    return 0;
}

bool gpsh_proxy_is_leaving(const struct gpsh_proxy *proxy, uint32_t number)
{
    return atomic_load(&proxy->contexts[number - 1].leaving);
}

// Nothing is under way in the channels.
static bool is_idle(const struct gpsh_proxy_context *context)
{
    for (int t = 0; t < GPSH_MAX_TRANSPORTS; t++)
        if (context->port.channels[t] && context->port.channels[t]->pending)
            return false;
    return true;
}

static void close_port(struct gpsh_proxy_context *context)
{
    const struct gpsh_proxy_ring *ring = context->ring;
    struct gpsh_channel *channels[GPSH_MAX_TRANSPORTS];
    for (int t = 0; t < GPSH_MAX_TRANSPORTS; t++) {
        channels[t] = context->port.channels[t];
        context->port.channels[t] = NULL;
        context->port.dirty[t] = context->port.stalled[t] = false;
    }
    atomic_store(&context->port.open, false);
    if (GPSH_UNLIKELY(ring->thread->trace != NULL))
        gpsh_trace_ring(channels, GPSH_MAX_TRANSPORTS, ring->thread->trace->now_ns, 0, NULL);
    ring->thread->proxy->env.leave_channels(channels);
    atomic_store(&context->leaving, false);
    // a ring that was closed by an error stays out of use
    if (!__atomic_load_n(&ring->shared.status->error, __ATOMIC_ACQUIRE))
        atomic_store(&context->tag, 0);
}

int gpsh_proxy_free_own(struct gpsh_proxy_ring *ring, uint32_t tag)
{
    struct gpsh_proxy *proxy = ring->thread->proxy;
    uint32_t number = (uint32_t)gpsh_proxy_context_number(ring);
    int status = gpsh_proxy_free(proxy, number, tag);
    if (!status && is_idle(ring->context) && ring->retired == ring->parsed)
        close_port(ring->context);
    return status;
}

void gpsh_proxy_leave(struct gpsh_proxy_thread *thread)
{
    struct gpsh_proxy *proxy = thread->proxy;
    for (int i = 0; i < proxy->env.n_contexts; i++) {
        struct gpsh_proxy_context *context = &proxy->contexts[i];
        if (context->ring->thread == thread && atomic_load(&context->leaving) && is_idle(context) &&
            !context->ring->busy && context->ring->retired == context->ring->parsed)
            close_port(context);
    }
}

void gpsh_proxy_leave_all(struct gpsh_proxy *proxy)
{
    for (int i = 0; proxy->contexts && i < proxy->env.n_contexts; i++)
        if (gpsh_port_is_open(&proxy->contexts[i].port))
            close_port(&proxy->contexts[i]);
}
