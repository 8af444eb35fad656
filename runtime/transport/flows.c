// SPDX-License-Identifier: BSD-3-Clause
// Where the counters of channels are: where the runtime shows them to others, or on the heap.
#include <stdlib.h>

#include "core/lines.h"
#include "transport/transport.h"

bool gpsh_flows_open(struct gpsh_channel *channel, const struct gpsh_transport_env *env, int index)
{
    char *shown = env->flows ? env->flows + (size_t)index * env->flow_stride : NULL;
    channel->flows_lent = shown != NULL;
    channel->flows = shown ? (struct gpsh_flow *)(void *)shown
                           : gpsh_lines_alloc((size_t)env->n_pes, sizeof *channel->flows);
    return channel->flows != NULL;
}

void gpsh_flows_close(struct gpsh_channel *channel)
{
    if (!channel->flows_lent)
        free(channel->flows);
    channel->flows = NULL;
}
