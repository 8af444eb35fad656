// SPDX-License-Identifier: BSD-3-Clause
// Peers of the same node whose memory is mapped into this process: loads, stores and the
// processor's atomics, complete when post returns; where heaps are GPU memory, operations of an
// in-order queue (p2p_gpu.c).
#include <stdio.h>

#include "core/error.h"
#include "transport/direct.h"
#include "transport/transport.h"
#include "transports/p2p/p2p_gpu.h"

static int p2p_open(const struct gpsh_transport_env *env, struct gpsh_transport **out)
{
    return gpsh_direct_open(&gpsh_p2p_ops, env, out);
}

static int p2p_connect(struct gpsh_transport *self, int pe, const void *blob, size_t bytes)
{
    const struct gpsh_direct *p2p = (const struct gpsh_direct *)self;
    for (int region = 0; region < GPSH_REGIONS; region++)
        if (!p2p->env.mapped[region][pe] && region != GPSH_STATIC)
            return gpsh_fail(GPUSHMEM_ERR_UNREACHABLE,
                             "p2p: PE %d's memory cannot be mapped here; it runs on another node%s",
                             pe,
                             p2p->env.queues ? " or its GPU has no peer access to this one's" : "");
    return 0;
}

static void p2p_explain(struct gpsh_transport *self, int pe, char *line, size_t bytes)
{
    const struct gpsh_direct *p2p = (const struct gpsh_direct *)self;
    const char *memory = p2p->env.queues ? "mapped GPU memory" : "mapped shared memory";
    snprintf(line, bytes, "%s", pe == p2p->env.my_pe ? "own memory" : memory);
}

static int p2p_channel_open(struct gpsh_transport *self, int index, struct gpsh_channel **out)
{
    const struct gpsh_direct *p2p = (struct gpsh_direct *)self;
    if (p2p->env.queues)
        return gpsh_p2p_gpu_open(self, &p2p->env, index, out);
    int status = gpsh_direct_channel_open(self, index, out);
    if (!status)
        (*out)->direct = p2p->env.mapped[GPSH_HEAP];
    return status;
}

static void p2p_channel_close(struct gpsh_channel *channel)
{
    const struct gpsh_direct *p2p = channel ? (const struct gpsh_direct *)channel->transport : NULL;
    if (p2p && p2p->env.queues)
        gpsh_p2p_gpu_close(channel);
    else
        gpsh_direct_channel_close(channel);
}

static int p2p_post(struct gpsh_channel *channel, const struct gpsh_op *op)
{
    const struct gpsh_direct *p2p = (const struct gpsh_direct *)channel->transport;
    char *base = p2p->env.mapped[op->region][op->pe];
    return p2p->env.queues ? gpsh_p2p_gpu_post(channel, op, base)
                           : gpsh_direct_post(channel, op, base);
}

static int p2p_flush(struct gpsh_channel *channel)
{
    const struct gpsh_direct *p2p = (const struct gpsh_direct *)channel->transport;
    return p2p->env.queues ? gpsh_p2p_gpu_flush(channel) : 0;
}

static int p2p_progress(struct gpsh_channel *channel)
{
    const struct gpsh_direct *p2p = (const struct gpsh_direct *)channel->transport;
    return p2p->env.queues ? gpsh_p2p_gpu_progress(channel) : 0;
}

const struct gpsh_transport_ops gpsh_p2p_ops = {
    .name = "p2p",
    .caps = GPSH_CAP_MAPPED,
    .open = p2p_open,
    .close = gpsh_direct_close,
    .describe = gpsh_direct_describe,
    .connect = p2p_connect,
    .explain = p2p_explain,
    .channel_open = p2p_channel_open,
    .channel_close = p2p_channel_close,
    .post = p2p_post,
    .flush = p2p_flush,
    .fence = gpsh_direct_fence, // queues of GPU operations are in order anyway
    .progress = p2p_progress,
};
