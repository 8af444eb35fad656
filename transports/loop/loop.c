// SPDX-License-Identifier: BSD-3-Clause
// The reference transport: one PE talking to itself, in the simplest code that keeps every promise
// of transport.h.
#include <stdio.h>

#include "core/error.h"
#include "transport/direct.h"
#include "transport/transport.h"

static int loop_open(const struct gpsh_transport_env *env, struct gpsh_transport **out)
{
    return gpsh_direct_open(&gpsh_loop_ops, env, out);
}

static int loop_connect(struct gpsh_transport *self, int pe, const void *blob, size_t bytes)
{
    const struct gpsh_direct *loop = (const struct gpsh_direct *)self;
    if (pe == loop->env.my_pe)
        return 0;
    return gpsh_fail(GPUSHMEM_ERR_UNREACHABLE,
                     "loop: PE %d is another process; loop reaches only the PE itself", pe);
}

static void loop_explain(struct gpsh_transport *self, int pe, char *line, size_t bytes)
{
    snprintf(line, bytes, "own memory");
}

static int loop_post(struct gpsh_channel *channel, const struct gpsh_op *op)
{
    const struct gpsh_direct *loop = (const struct gpsh_direct *)channel->transport;
    char *base = loop->env.regions[op->region].base;
    if (op->pe != loop->env.my_pe)
        return gpsh_fail(GPUSHMEM_ERR_UNREACHABLE, "loop: PE %d is another process", op->pe);
    return gpsh_direct_post(channel, op, base);
}

const struct gpsh_transport_ops gpsh_loop_ops = {
    .name = "loop",
    .open = loop_open,
    .close = gpsh_direct_close,
    .describe = gpsh_direct_describe,
    .connect = loop_connect,
    .explain = loop_explain,
    .channel_open = gpsh_direct_channel_open,
    .channel_close = gpsh_direct_channel_close,
    .post = loop_post,
    .flush = gpsh_direct_flush,
    .fence = gpsh_direct_fence,
    .progress = gpsh_direct_progress,
};
