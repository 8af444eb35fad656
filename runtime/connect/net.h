// SPDX-License-Identifier: BSD-3-Clause
// The transports of this PE. This room alone writes it (tests/house/lint/layers.py looks); the
// others read it through gpsh_net().
#ifndef GPSH_NET_H
#define GPSH_NET_H

#include <stdbool.h>

#include "core/config.h"
#include "transport/transport.h"

enum { GPSH_MAX_TRANSPORTS = 4 };

struct gpsh_net {
    int n_transports;
    struct gpsh_transport *transports[GPSH_MAX_TRANSPORTS]; // in the order of GPUSHMEM_TRANSPORTS
    struct gpsh_transport_env envs[GPSH_MAX_TRANSPORTS];
    // Processors execute all atomics: those on mapped memory here, others by an agent of the target
    bool cpu_atomics;
};

// One at most: who hears of the queues that kernels post to (transport.h).
typedef void (*gpsh_kernel_queue_fn)(void *arg, int index, int pe,
                                     const struct gpsh_kernel_queue *queue, const char *why);
void gpsh_net_on_kernel_queue(gpsh_kernel_queue_fn told);

extern struct gpsh_net gpsh_net_state __attribute__((visibility("hidden"))); // without the GOT
static inline const struct gpsh_net *gpsh_net(void)
{
    return &gpsh_net_state;
}

// Which of a transport's channels belongs to whom: known at init, because queue pairs are made in
// pairs.
enum gpsh_channel_index {
    GPSH_CHANNEL_DEFAULT = 0, // the default context, and host contexts beyond the reserve
    GPSH_CHANNEL_PROXY = 1,   // first proxy thread; thread i uses GPSH_CHANNEL_PROXY + i
};

// After the proxy threads' come those that are kept for contexts of the program; and last, not
// counted here, those of kernels' queues: of the default context, and of those of kernels.
static inline int gpsh_channel_first_context(const struct gpsh_settings *settings)
{
    return GPSH_CHANNEL_PROXY + (int)settings->proxy_threads;
}

static inline int gpsh_channel_count(const struct gpsh_settings *settings)
{
    return gpsh_channel_first_context(settings) + (int)settings->contexts;
}

#endif
