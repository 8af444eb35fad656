// SPDX-License-Identifier: BSD-3-Clause
// Queue pairs of lanes: created and connected in a handshake.
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>

#include "transports/verbs/setup/verbs_setup.h"

// Each side knows both ends' QP numbers and seeds. The finaliser of MurmurHash3 mixes them.
static uint32_t first_psn(uint32_t qpn, uint32_t seed)
{
    uint32_t mixed = qpn * 2654435761u ^ seed;
    mixed = (mixed ^ mixed >> 16) * 0x85ebca6bu;
    mixed = (mixed ^ mixed >> 13) * 0xc2b2ae35u;
    return (mixed ^ mixed >> 16) & 0xffffff;
}

// Asks for less inline room until the device agrees: many report no limit beforehand.
static struct ibv_qp *try_create(struct verbs_rail *rail, struct ibv_qp_init_attr *init,
                                 uint32_t *inlined)
{
    for (;;) {
        struct ibv_qp_init_attr attempt = *init;
        struct ibv_qp *qp = ibv_create_qp(rail->pd, &attempt);
        if (qp) {
            uint32_t granted = attempt.cap.max_inline_data;
            *inlined = granted < init->cap.max_inline_data ? granted : init->cap.max_inline_data;
            return qp;
        }
        if (errno != EINVAL || !init->cap.max_inline_data)
            return NULL;
        init->cap.max_inline_data /= 2;
    }
}

static int cannot_create(const struct verbs_rail *rail, uint32_t depth)
{
    bool files = errno == EMFILE || errno == ENFILE;
    return gpsh_fail(GPUSHMEM_ERR_TRANSPORT,
                     "%s cannot create a queue pair with %u send entries (%s): raise "
                     "`ulimit -%c`, or lower GPUSHMEM_CONTEXTS",
                     rail->name, depth, strerror(errno), files ? 'n' : 'l');
}

static struct ibv_qp_init_attr attributes(uint32_t depth, struct ibv_cq *cq, uint32_t inlined)
{
    return (struct ibv_qp_init_attr){.send_cq = cq,
                                     .recv_cq = cq,
                                     .qp_type = IBV_QPT_RC,
                                     .cap = {.max_send_wr = depth,
                                             .max_recv_wr = 1,
                                             .max_send_sge = 1,
                                             .max_recv_sge = 1,
                                             .max_inline_data = inlined}};
}

static struct ibv_qp_attr attributes_of_init(const struct gpsh_verbs *verbs,
                                             const struct verbs_rail *rail)
{
    return (struct ibv_qp_attr){
        .qp_state = IBV_QPS_INIT,
        .pkey_index = (uint16_t)verbs->env.settings->verbs_pkey_index,
        .port_num = rail->port,
        .qp_access_flags = gpsh_verbs_remote_access(rail),
    };
}

static int rejected(const struct gpsh_verbs *verbs, const struct verbs_rail *rail, int error)
{
    return error ? gpsh_fail(GPUSHMEM_ERR_TRANSPORT,
                             "%s rejects a queue pair's first settings (%s): is "
                             "GPUSHMEM_VERBS_PKEY_INDEX=%lld in its table?",
                             rail->name, strerror(error),
                             (long long)verbs->env.settings->verbs_pkey_index)
                 : 0;
}

static int to_init(const struct gpsh_verbs *verbs, const struct verbs_rail *rail, struct ibv_qp *qp)
{
    struct ibv_qp_attr attr = attributes_of_init(verbs, rail);
    int error = ibv_modify_qp(qp, &attr,
                              IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    return rejected(verbs, rail, error);
}

static int modify(const struct verbs_lane *lane, struct ibv_qp_attr *attr, int mask)
{
    return lane->devx ? gpsh_verbs_devx_modify(lane, attr) : ibv_modify_qp(lane->qp, attr, mask);
}

// What a device refuses is told at init, not in the middle of a run.
int gpsh_verbs_qp_try(struct gpsh_verbs *verbs, struct verbs_rail *rail)
{
    uint32_t inlined = (uint32_t)verbs->env.settings->verbs_inline;
    struct ibv_cq *cq = ibv_create_cq(rail->context, 1, NULL, NULL, 0);
    if (!cq)
        return gpsh_fail(GPUSHMEM_ERR_TRANSPORT,
                         "%s cannot create a completion queue of 1 entries (%s): raise "
                         "`ulimit -l`, or lower GPUSHMEM_CONTEXTS",
                         rail->name, strerror(errno));
    struct ibv_qp_init_attr init = attributes(
        verbs->sq_depth, cq, inlined < VERBS_SIGNAL_BYTES ? VERBS_SIGNAL_BYTES : inlined);
    struct ibv_qp *qp = try_create(rail, &init, &rail->max_inline);
    int status = qp ? to_init(verbs, rail, qp) : cannot_create(rail, verbs->sq_depth);
    if (qp)
        ibv_destroy_qp(qp);
    ibv_destroy_cq(cq);
    if (rail->max_inline < verbs->inline_bytes)
        verbs->inline_bytes = rail->max_inline;
    return status;
}

// Kernels poll a completion queue for each queue pair.
static int own_cq_create(struct verbs_lane *lane)
{
    const struct verbs_rail *rail = &lane->flow->channel->verbs->rails[lane->rail];
    if (!lane->own_cq)
        lane->own_cq = ibv_create_cq(rail->context, (int)lane->depth, NULL, NULL, 0);
    return lane->own_cq ? 0
                        : gpsh_fail(GPUSHMEM_ERR_TRANSPORT,
                                    "%s cannot create a completion queue of %u entries (%s): raise "
                                    "`ulimit -l`, or set GPUSHMEM_DEVICE_POST=ring",
                                    rail->name, lane->depth, strerror(errno));
}

int gpsh_verbs_lane_create(struct verbs_lane *lane)
{
    struct gpsh_verbs *verbs = lane->flow->channel->verbs;
    struct verbs_rail *rail = &verbs->rails[lane->rail];
    bool kernels = verbs_is_kernels(lane->flow->channel);
    if (kernels && gpsh_verbs_devx_create(lane)) {
        struct ibv_qp_attr attr = attributes_of_init(verbs, rail);
        return rejected(verbs, rail, gpsh_verbs_devx_modify(lane, &attr));
    }
    if (kernels && own_cq_create(lane))
        return gpsh_last_error_code();
    struct ibv_qp_init_attr init =
        attributes(lane->depth, kernels ? lane->own_cq : lane->cq->cq, rail->max_inline);
    init.qp_context = lane;
    struct ibv_qp *qp = ibv_create_qp(rail->pd, &init);
    if (!qp)
        return cannot_create(rail, lane->depth);
    pthread_mutex_lock(&verbs->queue_pairs);
    lane->qp = qp;
    lane->qpn = qp->qp_num;
    pthread_mutex_unlock(&verbs->queue_pairs);
    return to_init(verbs, rail, qp);
}

void gpsh_verbs_lane_destroy(struct verbs_lane *lane)
{
    pthread_mutex_t *lock = &lane->flow->channel->verbs->queue_pairs;
    pthread_mutex_lock(lock);
    if (lane->qp)
        ibv_destroy_qp(lane->qp);
    lane->qp = NULL;
    if (lane->own_cq)
        ibv_destroy_cq(lane->own_cq);
    lane->own_cq = NULL;
    gpsh_verbs_devx_destroy(lane);
    pthread_mutex_unlock(lock);
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
    int error = modify(lane, &attr,
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
    int error = modify(lane, &attr,
                       IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                           IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC);
    return error
               ? gpsh_fail(GPUSHMEM_ERR_TRANSPORT, "%s cannot start the queue pair with PE %d (%s)",
                           verbs->rails[lane->rail].name, lane->flow->pe, strerror(error))
               : 0;
}

int gpsh_verbs_lane_connect(struct verbs_lane *lane, uint32_t remote_qpn)
{
    struct gpsh_verbs *verbs = lane->flow->channel->verbs;
    const struct gpsh_verbs_blob_rail *remote = &lane->flow->peer->blob.rails[lane->rail];
    uint8_t own = verbs->rails[lane->rail].mtu, reads_out = verbs->rails[lane->rail].reads_out;
    enum ibv_mtu mtu = (enum ibv_mtu)(own < remote->mtu ? own : remote->mtu);
    lane->first_psn = first_psn(lane->qpn, verbs->rails[lane->rail].psn_seed);
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

void gpsh_verbs_kernel_kill(struct verbs_lane *lane)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    if (lane->devx)
        gpsh_verbs_devx_modify(lane, &attr);
    else if (lane->qp)
        gpsh_verbs_qp_kill(lane->qp);
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
