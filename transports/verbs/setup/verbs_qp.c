// SPDX-License-Identifier: BSD-3-Clause
// Queue pairs: created for every (peer, channel, rail) before the blob is published, connected when
// the peer's blob is read. A channel's own memory (books, chains, bounce buffer, results) is made
// here too.
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>

#include "transports/verbs/setup/verbs_setup.h"

static uint32_t power_of_two(uint32_t least)
{
    uint32_t value = 1;
    while (value < least)
        value *= 2;
    return value;
}

// Each side knows both ends' QP numbers and seeds. The finaliser of MurmurHash3 mixes them.
static uint32_t first_psn(uint32_t qpn, uint32_t seed)
{
    uint32_t mixed = qpn * 2654435761u ^ seed;
    mixed = (mixed ^ mixed >> 16) * 0x85ebca6bu;
    mixed = (mixed ^ mixed >> 13) * 0xc2b2ae35u;
    return (mixed ^ mixed >> 16) & 0xffffff;
}

static int no_memory(const char *what)
{
    return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory for the %s of a verbs channel", what);
}

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

// Asks for less inline room until the device agrees: many report no limit beforehand.
static struct ibv_qp *try_create(struct verbs_rail *rail, struct ibv_qp_init_attr *init)
{
    for (;;) {
        struct ibv_qp_init_attr attempt = *init;
        struct ibv_qp *qp = ibv_create_qp(rail->pd, &attempt);
        if (qp) {
            uint32_t granted = attempt.cap.max_inline_data;
            rail->max_inline =
                granted < init->cap.max_inline_data ? granted : init->cap.max_inline_data;
            return qp;
        }
        if (errno != EINVAL || !init->cap.max_inline_data)
            return NULL;
        init->cap.max_inline_data /= 2;
    }
}

static int create_qp(struct gpsh_verbs *verbs, struct verbs_lane *lane)
{
    struct verbs_rail *rail = &verbs->rails[lane->rail];
    uint32_t inlined = (uint32_t)verbs->env.settings->verbs_inline;
    struct ibv_qp_init_attr init = {
        .qp_context = lane,
        .send_cq = lane->cq->cq,
        .recv_cq = lane->cq->cq,
        .qp_type = IBV_QPT_RC,
        .cap = {.max_send_wr = lane->depth,
                .max_recv_wr = 1,
                .max_send_sge = 1,
                .max_recv_sge = 1,
                .max_inline_data = inlined < VERBS_SIGNAL_BYTES ? VERBS_SIGNAL_BYTES : inlined},
    };
    lane->qp = try_create(rail, &init);
    if (!lane->qp)
        return gpsh_fail(GPUSHMEM_ERR_TRANSPORT,
                         "%s cannot create a queue pair with %u send entries (%s): raise "
                         "`ulimit -l`, or lower GPUSHMEM_CONTEXTS",
                         rail->name, lane->depth, strerror(errno));
    lane->inline_stride = rail->max_inline;
    if (rail->max_inline < verbs->inline_bytes)
        verbs->inline_bytes = rail->max_inline;
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT,
        .pkey_index = (uint16_t)verbs->env.settings->verbs_pkey_index,
        .port_num = rail->port,
        .qp_access_flags = gpsh_verbs_remote_access(rail),
    };
    int error = ibv_modify_qp(lane->qp, &attr,
                              IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    return error ? gpsh_fail(GPUSHMEM_ERR_TRANSPORT,
                             "%s rejects a queue pair's first settings (%s): is "
                             "GPUSHMEM_VERBS_PKEY_INDEX=%lld in its table?",
                             rail->name, strerror(error),
                             (long long)verbs->env.settings->verbs_pkey_index)
                 : 0;
}

static int create_chain(struct gpsh_verbs *verbs, struct verbs_lane *lane)
{
    lane->limit = verbs->chain_limit;
    // One that may be posted again by another lane stays until it is complete.
    uint32_t kept = verbs->n_rails > 1 ? lane->mask + 1 : power_of_two(lane->limit);
    lane->inline_mask = kept - 1;
    lane->wrs = calloc(lane->limit, sizeof *lane->wrs);
    lane->sges = calloc(lane->limit, sizeof *lane->sges);
    lane->inlined = calloc(kept, lane->inline_stride ? lane->inline_stride : 1);
    if (!lane->wrs || !lane->sges || !lane->inlined)
        return no_memory("work requests");
    for (uint32_t i = 0; i < lane->limit; i++) {
        lane->wrs[i].sg_list = &lane->sges[i];
        lane->wrs[i].next = i + 1 < lane->limit ? &lane->wrs[i + 1] : NULL;
    }
    return 0;
}

static int create_lane(struct gpsh_verbs *verbs, struct verbs_channel *channel,
                       struct verbs_flow *flow, int rail)
{
    struct verbs_lane *lane = &flow->lanes[rail];
    lane->flow = flow;
    lane->rail = (uint8_t)rail;
    lane->id = (uint32_t)(lane - channel->lanes);
    lane->cq = &channel->cqs[rail];
    lane->depth = verbs->sq_depth;
    lane->mask = power_of_two(lane->depth) - 1;
    for (int r = 0; r < GPSH_VERBS_REGIONS; r++)
        lane->lkeys[r] = verbs->rails[rail].mrs[r] ? verbs->rails[rail].mrs[r]->lkey : 0;
    lane->wqes = gpsh_lines_alloc(lane->mask + 1, sizeof *lane->wqes);
    if (!lane->wqes)
        return no_memory("send queue's books");
    int status = create_qp(verbs, lane);
    return status ? status : create_chain(verbs, lane);
}

static int create_flow(struct gpsh_verbs *verbs, struct verbs_channel *channel, int pe)
{
    struct verbs_flow *flow = &channel->flows[pe];
    flow->pub = &channel->base.flows[pe];
    flow->pub->error = GPUSHMEM_ERR_UNREACHABLE; // until it is connected
    flow->channel = channel;
    flow->lanes = &channel->lanes[pe * verbs->n_rails];
    flow->pe = pe;
    flow->n_rails = verbs->n_rails;
    flow->cached_word = UINT64_MAX;
    flow->slot_mask = power_of_two(verbs->sq_depth) - 1;
    flow->slots = gpsh_lines_alloc(flow->slot_mask + 2, sizeof *flow->slots);
    if (!flow->slots)
        return no_memory("flows");
    int status = 0;
    for (int rail = 0; !status && rail < verbs->n_rails; rail++)
        status = create_lane(verbs, channel, flow, rail);
    return status;
}

static int create_results(struct gpsh_verbs *verbs, struct verbs_channel *channel)
{
    size_t words = (size_t)verbs->env.n_pes * power_of_two(verbs->sq_depth);
    channel->results_bytes = (words * sizeof(uint64_t) + 4095) / 4096 * 4096;
    channel->results = aligned_alloc(4096, channel->results_bytes);
    if (!channel->results)
        return no_memory("atomics' results");
    memset(channel->results, 0, channel->results_bytes);
    struct gpsh_region region = {(char *)channel->results, channel->results_bytes, GPSH_MEMORY_HOST,
                                 -1, -1};
    for (int i = 0; i < verbs->n_rails; i++) {
        channel->results_mr[i] =
            gpsh_verbs_register(verbs, &verbs->rails[i], &region, IBV_ACCESS_LOCAL_WRITE, NULL);
        if (!channel->results_mr[i])
            return gpsh_last_error_code();
    }
    return 0;
}

// On failure the caller destroys the channel, whatever was made of it.
int gpsh_verbs_channel_create(struct gpsh_verbs *verbs, struct verbs_channel *channel)
{
    size_t n_pes = (size_t)verbs->env.n_pes;
    channel->verbs = verbs;
    channel->base.ops = verbs->base.ops;
    channel->base.transport = &verbs->base;
    bool has_flows = gpsh_flows_open(&channel->base, &verbs->env, (int)(channel - verbs->channels));
    channel->flows = gpsh_lines_alloc(n_pes, sizeof *channel->flows);
    channel->lanes = gpsh_lines_alloc(n_pes * verbs->n_rails, sizeof *channel->lanes);
    if (!has_flows || !channel->flows || !channel->lanes)
        return no_memory("flows");
    int status = 0;
    for (int rail = 0; !status && rail < verbs->n_rails; rail++)
        status = create_cq(verbs, &channel->cqs[rail], &verbs->rails[rail]);
    for (int pe = 0; !status && pe < verbs->env.n_pes; pe++)
        status = create_flow(verbs, channel, pe);
    if (!status)
        status = create_results(verbs, channel);
    return status ? status : gpsh_verbs_bounce_create(verbs, &channel->bounce);
}

static void destroy_lane(struct verbs_lane *lane)
{
    free(lane->doubt);
    if (lane->qp)
        ibv_destroy_qp(lane->qp);
    free(lane->wqes);
    free(lane->wrs);
    free(lane->sges);
    free(lane->inlined);
}

void gpsh_verbs_channel_destroy(struct verbs_channel *channel)
{
    struct gpsh_verbs *verbs = channel->verbs;
    if (!verbs) // never created
        return;
    for (int i = 0; channel->lanes && i < verbs->env.n_pes * verbs->n_rails; i++)
        destroy_lane(&channel->lanes[i]);
    for (int i = 0; channel->flows && i < verbs->env.n_pes; i++)
        free(channel->flows[i].slots);
    for (int rail = 0; rail < verbs->n_rails; rail++)
        if (channel->cqs[rail].cq)
            ibv_destroy_cq(channel->cqs[rail].cq);
    gpsh_verbs_bounce_destroy(&channel->bounce);
    for (int rail = 0; rail < verbs->n_rails; rail++)
        if (channel->results_mr[rail])
            ibv_dereg_mr(channel->results_mr[rail]);
    free(channel->results);
    gpsh_flows_close(&channel->base);
    free(channel->flows);
    free(channel->lanes);
    memset(channel, 0, sizeof *channel);
}

static int to_rtr(struct gpsh_verbs *verbs, struct verbs_lane *lane,
                  const struct gpsh_verbs_blob_rail *remote, uint32_t remote_qpn, enum ibv_mtu mtu)
{
    const struct verbs_rail *rail = &verbs->rails[lane->rail];
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = mtu,
        .dest_qp_num = remote_qpn,
        .rq_psn = first_psn(remote_qpn, remote->psn_seed),
        .max_dest_rd_atomic = rail->reads_in,
        .min_rnr_timer = 12,
    };
    int status = gpsh_verbs_path(verbs, rail, remote, lane->flow->pe, &attr.ah_attr);
    if (status)
        return status;
    int error = ibv_modify_qp(lane->qp, &attr,
                              IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                  IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    if (!error)
        return 0;
    char address[GPSH_VERBS_ADDRESS_TEXT];
    gpsh_verbs_gid_text(attr.ah_attr.grh.dgid.raw, address);
    return gpsh_fail(GPUSHMEM_ERR_TRANSPORT,
                     "%s cannot reach PE %d at %s (%s): are rail %d of both PEs in one network, "
                     "and is there a route?",
                     rail->name, lane->flow->pe, rail->ethernet ? address : "its LID",
                     strerror(error), lane->rail);
}

static int to_rts(struct gpsh_verbs *verbs, struct verbs_lane *lane, uint8_t reads_out)
{
    const struct gpsh_settings *settings = verbs->env.settings;
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTS,
        .sq_psn = lane->first_psn,
        .timeout = (uint8_t)settings->verbs_timeout,
        .retry_cnt = (uint8_t)settings->verbs_retry_count,
        .rnr_retry = (uint8_t)settings->verbs_rnr_retry,
        .max_rd_atomic = reads_out,
    };
    int error = ibv_modify_qp(lane->qp, &attr,
                              IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                                  IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC);
    return error
               ? gpsh_fail(GPUSHMEM_ERR_TRANSPORT, "%s cannot start the queue pair with PE %d (%s)",
                           verbs->rails[lane->rail].name, lane->flow->pe, strerror(error))
               : 0;
}

int gpsh_verbs_lane_connect(struct gpsh_verbs *verbs, struct verbs_lane *lane,
                            const struct gpsh_verbs_blob_rail *remote, uint32_t remote_qpn,
                            enum ibv_mtu mtu)
{
    uint8_t reads_out = verbs->rails[lane->rail].reads_out;
    memcpy(lane->rkeys, remote->rkeys, sizeof remote->rkeys);
    lane->first_psn = first_psn(lane->qp->qp_num, verbs->rails[lane->rail].psn_seed);
    lane->packet_bytes = 128u << mtu;
    int status = to_rtr(verbs, lane, remote, remote_qpn, mtu);
    return status
               ? status
               : to_rts(verbs, lane, reads_out < remote->reads_in ? reads_out : remote->reads_in);
}

void gpsh_verbs_qp_kill(struct ibv_qp *qp)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    // in that state already, or the device is gone: the same to us
    ibv_modify_qp(qp, &attr, IBV_QP_STATE);
}

// The number of the packet that it takes next goes with the reset, and the peer may ask for it.
int gpsh_verbs_lane_reset(struct verbs_lane *lane)
{
    struct ibv_qp_attr attr = {0};
    struct ibv_qp_init_attr init;
    if (!ibv_query_qp(lane->qp, &attr, IBV_QP_STATE | IBV_QP_RQ_PSN, &init) &&
        attr.qp_state == IBV_QPS_ERR)
        atomic_store(&lane->expected, VERBS_ANSWER_KNOWN | (attr.rq_psn & (VERBS_PSNS - 1)));
    attr.qp_state = IBV_QPS_RESET;
    return ibv_modify_qp(lane->qp, &attr, IBV_QP_STATE);
}
