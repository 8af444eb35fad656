// SPDX-License-Identifier: BSD-3-Clause
// RC queue pairs: life, states, attributes. The rules of the transitions are those of the
// InfiniBand specification, volume 1, section 11.2.4.2 (table of required and optional attributes).
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "softhca.h"

struct transition {
    enum ibv_qp_state from, to;
    int required, optional;
};

static const struct transition transitions[] = {
    {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, 0},
    {IBV_QPS_INIT, IBV_QPS_INIT, 0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS},
    {IBV_QPS_INIT, IBV_QPS_RTR,
     IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
         IBV_QP_MIN_RNR_TIMER,
     IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
    {IBV_QPS_RTR, IBV_QPS_RTS,
     IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
     IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER},
    {IBV_QPS_RTS, IBV_QPS_RTS, 0, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER},
};

// Those of unreliable datagrams.
static const struct transition datagram_transitions[] = {
    {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY, 0},
    {IBV_QPS_INIT, IBV_QPS_RTR, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY},
    {IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN, IBV_QP_CUR_STATE | IBV_QP_QKEY},
};

static bool sizes_valid(const struct ibv_qp_cap *cap)
{
    return cap->max_send_wr <= (uint32_t)shca_settings.max_qp_wr &&
           cap->max_recv_wr <= (uint32_t)shca_settings.max_qp_wr &&
           cap->max_send_sge <= (uint32_t)shca_settings.max_sge &&
           cap->max_recv_sge <= (uint32_t)shca_settings.max_sge &&
           cap->max_inline_data <= (uint32_t)shca_settings.max_inline;
}

static void queues_free(struct shca_qp *qp)
{
    free(qp->sq);
    free(qp->sges);
    free(qp->payloads);
    free(qp->rq);
    free(qp->recv_sges);
}

static uint32_t at_least_1(uint32_t n)
{
    return n ? n : 1;
}

static int queues_new(struct shca_qp *qp)
{
    struct ibv_qp_cap *cap = &qp->init.cap;
    uint32_t n_sge = at_least_1(cap->max_send_sge), n_recv = at_least_1(cap->max_recv_wr);
    qp->sq_depth = at_least_1(cap->max_send_wr);
    qp->sq = calloc(qp->sq_depth, sizeof *qp->sq);
    qp->sges = calloc((size_t)qp->sq_depth * n_sge, sizeof *qp->sges);
    qp->payloads = calloc(qp->sq_depth, at_least_1(cap->max_inline_data));
    qp->rq = calloc(n_recv, sizeof *qp->rq);
    qp->recv_sges = calloc((size_t)n_recv * at_least_1(cap->max_recv_sge), sizeof *qp->recv_sges);
    if (!qp->sq || !qp->sges || !qp->payloads || !qp->rq || !qp->recv_sges)
        return ENOMEM;
    for (uint32_t i = 0; i < qp->sq_depth; i++) {
        qp->sq[i].sges = qp->sges + (size_t)i * n_sge;
        qp->sq[i].payload = qp->payloads + (size_t)i * cap->max_inline_data;
    }
    for (uint32_t i = 0; i < n_recv; i++)
        qp->rq[i].sges = qp->recv_sges + (size_t)i * at_least_1(cap->max_recv_sge);
    return 0;
}

static void count_users(const struct shca_qp *qp, int n)
{
    atomic_fetch_add(&((struct shca_pd *)qp->ibv.pd)->users, n);
    atomic_fetch_add(&((struct shca_cq *)qp->ibv.send_cq)->users, n);
    atomic_fetch_add(&((struct shca_cq *)qp->ibv.recv_cq)->users, n);
    shca_context_use(qp->ibv.context, n);
}

static struct ibv_qp *refuse(int error)
{
    errno = error;
    return NULL;
}

SHCA_EXPORT _Atomic int gpushmem_softhca_qp_error; // README.md

SHCA_EXPORT struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
    if ((init->qp_type != IBV_QPT_RC && init->qp_type != IBV_QPT_UD) || init->srq)
        return refuse(EOPNOTSUPP);
    if (!sizes_valid(&init->cap) || !init->send_cq || !init->recv_cq)
        return refuse(EINVAL);
    int error = atomic_load(&gpushmem_softhca_qp_error);
    if (error)
        return refuse(error);
    struct shca_device *device = shca_device_of(pd->context);
    struct shca_qp *qp = shca_lines(sizeof *qp);
    if (!qp)
        return NULL;
    qp->init = *init;
    bool room = atomic_fetch_add(&device->n_qps, 1) < shca_settings.max_qp;
    if (room && !queues_new(qp))
        qp->entry = shca_qp_entry_new(device, ((struct shca_pd *)pd)->id);
    if (!qp->entry) {
        atomic_fetch_sub(&device->n_qps, 1);
        queues_free(qp);
        free(qp);
        return refuse(ENOMEM);
    }
    qp->device = device;
    qp->mail = -1;
    qp->ibv.context = pd->context;
    qp->ibv.qp_context = init->qp_context;
    qp->ibv.pd = pd;
    qp->ibv.send_cq = init->send_cq;
    qp->ibv.recv_cq = init->recv_cq;
    qp->ibv.qp_num = atomic_load(&qp->entry->qpn);
    qp->ibv.state = IBV_QPS_RESET;
    qp->ibv.qp_type = init->qp_type;
    pthread_mutex_init(&qp->lock, NULL);
    pthread_mutex_init(&qp->ibv.mutex, NULL);
    pthread_cond_init(&qp->ibv.cond, NULL);
    count_users(qp, 1);
    pthread_mutex_lock(&device->engine_lock);
    device->qps[qp->ibv.qp_num & (SHCA_QPS - 1)] = qp;
    pthread_mutex_unlock(&device->engine_lock);
    return &qp->ibv;
}

static void forget_work(struct shca_qp *qp)
{
    shca_engine_forget(qp);
    shca_cq_forget(qp->ibv.send_cq, qp);
    shca_cq_forget(qp->ibv.recv_cq, qp);
}

SHCA_EXPORT int ibv_destroy_qp(struct ibv_qp *ibv)
{
    struct shca_qp *qp = (struct shca_qp *)ibv;
    struct shca_device *device = qp->device;
    atomic_store(&qp->entry->state, IBV_QPS_RESET);
    pthread_mutex_lock(&device->engine_lock);
    device->qps[ibv->qp_num & (SHCA_QPS - 1)] = NULL;
    pthread_mutex_unlock(&device->engine_lock);
    shca_mlx5_queue_free(qp);
    forget_work(qp);
    shca_context_forget(ibv->context, qp);
    // like the real one: not before the events taken are acknowledged
    while (atomic_load(&qp->unacked) > 0)
        sched_yield();
    atomic_store(&qp->entry->qpn, 0);
    atomic_fetch_sub(&device->n_qps, 1);
    count_users(qp, -1);
    pthread_mutex_destroy(&qp->lock);
    pthread_mutex_destroy(&ibv->mutex);
    pthread_cond_destroy(&ibv->cond);
    queues_free(qp);
    free(qp);
    return 0;
}

static const struct transition *transition_find(enum ibv_qp_type type, enum ibv_qp_state from,
                                                enum ibv_qp_state to)
{
    bool datagrams = type == IBV_QPT_UD;
    const struct transition *all = datagrams ? datagram_transitions : transitions;
    size_t n =
        datagrams ? sizeof datagram_transitions / sizeof *all : sizeof transitions / sizeof *all;
    for (size_t i = 0; i < n; i++)
        if (all[i].from == from && all[i].to == to)
            return &all[i];
    return NULL;
}

// ETIMEDOUT: what RoCE says where no host answers for the address.
static int connect_check(const struct shca_qp *qp, const struct ibv_qp_attr *attr, int *device)
{
    *device = shca_device_by_address(&attr->ah_attr);
    if (*device < 0)
        return attr->ah_attr.is_global ? ETIMEDOUT : EINVAL;
    if (attr->path_mtu < IBV_MTU_256 || (128 << attr->path_mtu) > shca_settings.mtu)
        return EINVAL;
    if (attr->ah_attr.port_num != 1 || attr->dest_qp_num >= 1u << 24 || attr->rq_psn >= 1u << 24)
        return EINVAL;
    return attr->max_dest_rd_atomic > shca_settings.max_rd_atomic ? EINVAL : 0;
}

static int attributes_check(const struct shca_qp *qp, const struct ibv_qp_attr *attr, int mask,
                            int *device)
{
    if ((mask & IBV_QP_PORT) && attr->port_num != 1)
        return EINVAL;
    if ((mask & IBV_QP_PKEY_INDEX) && attr->pkey_index)
        return EINVAL;
    if ((mask & IBV_QP_TIMEOUT) && attr->timeout > 31)
        return EINVAL;
    if (((mask & IBV_QP_RETRY_CNT) && attr->retry_cnt > 7) ||
        ((mask & IBV_QP_RNR_RETRY) && attr->rnr_retry > 7))
        return EINVAL;
    if ((mask & IBV_QP_MIN_RNR_TIMER) && attr->min_rnr_timer > 31)
        return EINVAL;
    if ((mask & IBV_QP_MAX_QP_RD_ATOMIC) && attr->max_rd_atomic > shca_settings.max_rd_atomic)
        return EINVAL;
    return mask & IBV_QP_DEST_QPN ? connect_check(qp, attr, device) : 0;
}

static void attributes_keep(struct shca_qp *qp, const struct ibv_qp_attr *attr, int mask,
                            int device)
{
    struct ibv_qp_attr *kept = &qp->attr;
    struct shca_qp_entry *entry = qp->entry;
    if (mask & IBV_QP_ACCESS_FLAGS)
        entry->access = kept->qp_access_flags = attr->qp_access_flags;
    if (mask & IBV_QP_QKEY)
        entry->qkey = kept->qkey = attr->qkey;
    if (mask & IBV_QP_PORT)
        kept->port_num = attr->port_num;
    if (mask & IBV_QP_MIN_RNR_TIMER)
        entry->rnr_timer = kept->min_rnr_timer = attr->min_rnr_timer;
    if (mask & IBV_QP_DEST_QPN) {
        kept->ah_attr = attr->ah_attr;
        kept->path_mtu = attr->path_mtu;
        kept->rq_psn = attr->rq_psn;
        atomic_store(&entry->rq_psn, attr->rq_psn);
        kept->dest_qp_num = entry->dest_qpn = attr->dest_qp_num;
        kept->max_dest_rd_atomic = attr->max_dest_rd_atomic;
        entry->reads_in = attr->max_dest_rd_atomic;
        entry->dest_device = (uint32_t)device;
        entry->path = shca_path_of(qp->device, &attr->ah_attr);
    }
    if (mask & IBV_QP_TIMEOUT) {
        kept->timeout = attr->timeout;
        kept->retry_cnt = attr->retry_cnt;
        kept->rnr_retry = attr->rnr_retry;
        kept->sq_psn = attr->sq_psn;
        kept->max_rd_atomic = attr->max_rd_atomic;
        qp->rnr_left = attr->rnr_retry;
    }
}

static void state_set(struct shca_qp *qp, enum ibv_qp_state state)
{
    qp->ibv.state = state;
    qp->attr.qp_state = state;
    atomic_store(&qp->entry->state, state);
}

SHCA_EXPORT int ibv_modify_qp(struct ibv_qp *ibv, struct ibv_qp_attr *attr, int mask)
{
    struct shca_qp *qp = (struct shca_qp *)ibv;
    enum ibv_qp_state from = (enum ibv_qp_state)atomic_load(&qp->entry->state);
    enum ibv_qp_state to = mask & IBV_QP_STATE ? attr->qp_state : from;
    if ((mask & IBV_QP_CUR_STATE) && attr->cur_qp_state != from)
        return errno = EINVAL;
    if (to == IBV_QPS_RESET) {
        state_set(qp, to);
        forget_work(qp);
        return 0;
    }
    if (to == IBV_QPS_ERR) {
        state_set(qp, to);
        shca_engine_submit(qp);
        return 0;
    }
    const struct transition *rule = transition_find(ibv->qp_type, from, to);
    int given = mask & ~IBV_QP_STATE, device = -1;
    if (!rule || (rule->required & ~given) || (given & ~(rule->required | rule->optional)))
        return errno = EINVAL;
    int error = attributes_check(qp, attr, mask, &device);
    if (error)
        return errno = error;
    attributes_keep(qp, attr, mask, device);
    state_set(qp, to);
    return 0;
}

SHCA_EXPORT int ibv_query_qp(struct ibv_qp *ibv, struct ibv_qp_attr *attr, int mask,
                             struct ibv_qp_init_attr *init)
{
    struct shca_qp *qp = (struct shca_qp *)ibv;
    *attr = qp->attr;
    attr->qp_state = attr->cur_qp_state = (enum ibv_qp_state)atomic_load(&qp->entry->state);
    ibv->state = attr->qp_state;
    attr->cap = qp->init.cap;
    attr->rq_psn = atomic_load(&qp->entry->rq_psn) & 0xffffff;
    if (!shca_settings.psn && attr->qp_state == IBV_QPS_ERR)
        attr->rq_psn = 0;
    *init = qp->init;
    return 0;
}

// What the queue pair's own memory sees of writes; fabric and NICs are the same for all.
SHCA_EXPORT int ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags)
{
    return !flags && !shca_settings.misorder_us &&
           atomic_load(&((struct shca_qp *)qp)->entry->state) >= IBV_QPS_RTR;
}

SHCA_EXPORT struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
    return NULL;
}

SHCA_EXPORT struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
    errno = EOPNOTSUPP;
    return NULL;
}

SHCA_EXPORT int ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
    return EOPNOTSUPP;
}

SHCA_EXPORT int ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
    return EOPNOTSUPP;
}
