// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE
// A channel's own memory: its completion queues, its bounce buffer, and the table of its flows.
#include <errno.h>
#include <stdlib.h>

#include "transports/verbs/setup/verbs_setup.h"

static int create_cq(struct gpsh_verbs *verbs, struct verbs_cq *cq, const struct verbs_rail *rail)
{
    uint64_t wanted = (uint64_t)verbs->sq_depth * (uint64_t)verbs->env.n_pes;
    uint64_t most = rail->max_cqe < VERBS_CQ_MOST ? (uint64_t)rail->max_cqe : VERBS_CQ_MOST;
    cq->depth = (uint32_t)(wanted < most ? wanted : most);
    cq->cq = ibv_create_cq(rail->context, (int)cq->depth, NULL, NULL, 0);
    if (cq->cq)
        return 0;
    return gpsh_fail(GPUSHMEM_ERR_TRANSPORT,
                     "%s cannot create a completion queue of %u entries (%s): raise "
                     "`ulimit -l`, or lower GPUSHMEM_CONTEXTS",
                     rail->name, cq->depth, strerror(errno));
}

// Nobody posts to it but kernels: it has a table of flows alone.
static int kernels_create(struct gpsh_verbs *verbs, struct verbs_channel *channel)
{
    channel->flows = calloc((size_t)verbs->env.n_pes, sizeof *channel->flows);
    return channel->flows ? 0
                          : gpsh_fail(GPUSHMEM_ERR_NO_MEMORY,
                                      "no memory for kernels' queues to %d PEs", verbs->env.n_pes);
}

// On failure the caller destroys the channel, whatever was made of it.
int gpsh_verbs_channel_create(struct gpsh_verbs *verbs, struct verbs_channel *channel)
{
    channel->verbs = verbs;
    channel->base.ops = verbs->base.ops;
    channel->base.transport = &verbs->base;
    if (verbs_is_kernels(channel))
        return kernels_create(verbs, channel);
    bool has_flows = gpsh_flows_open(&channel->base, &verbs->env, (int)(channel - verbs->channels));
    channel->flows = calloc((size_t)verbs->env.n_pes, sizeof *channel->flows);
    if (!has_flows || !channel->flows)
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory for a verbs channel to %d PEs",
                         verbs->env.n_pes);
    int status = 0;
    for (int rail = 0; !status && rail < verbs->n_rails; rail++)
        status = create_cq(verbs, &channel->cqs[rail], &verbs->rails[rail]);
    return status ? status : gpsh_verbs_bounce_create(verbs, &channel->bounce);
}

// When no handshake is made any more, and stage/ has taken back its pipes.
void gpsh_verbs_channel_destroy(struct verbs_channel *channel)
{
    struct gpsh_verbs *verbs = channel->verbs;
    if (!verbs) // never created
        return;
    for (int pe = 0; channel->flows && pe < verbs->env.n_pes; pe++)
        if (verbs_flow_at(channel, pe))
            gpsh_verbs_flow_free(verbs_flow_at(channel, pe));
    for (int rail = 0; rail < verbs->n_rails; rail++)
        if (channel->cqs[rail].cq)
            ibv_destroy_cq(channel->cqs[rail].cq);
    gpsh_verbs_bounce_destroy(&channel->bounce);
    gpsh_verbs_results_free(channel);
    gpsh_flows_close(&channel->base);
    free((void *)channel->flows);
    free(channel->lanes);
    memset(channel, 0, sizeof *channel);
}
