// SPDX-License-Identifier: BSD-3-Clause
// Posting: what a provider checks before it rings the doorbell, and the copy into the queue.
#include <errno.h>
#include <string.h>

#include "softhca.h"

static bool is_atomic(const struct ibv_send_wr *wr)
{
    return wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
}

static int datagram_check(const struct ibv_send_wr *wr, uint64_t bytes)
{
    return wr->opcode != IBV_WR_SEND || !wr->wr.ud.ah || bytes > (uint64_t)shca_settings.mtu
               ? EINVAL
               : 0;
}

static int send_check(const struct shca_qp *qp, const struct ibv_send_wr *wr, uint64_t *bytes)
{
    switch (wr->opcode) {
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
    case IBV_WR_ATOMIC_CMP_AND_SWP:
        if (shca_settings.atomic_cap == IBV_ATOMIC_NONE)
            return EINVAL;
        break;
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
    case IBV_WR_RDMA_READ:
    case IBV_WR_SEND:
    case IBV_WR_SEND_WITH_IMM: break;
    default: return EINVAL;
    }
    if (wr->num_sge < 0 || (uint32_t)wr->num_sge > qp->init.cap.max_send_sge)
        return EINVAL;
    *bytes = 0;
    for (int i = 0; i < wr->num_sge; i++)
        *bytes += wr->sg_list[i].length;
    if (shca_is_datagrams(qp) && datagram_check(wr, *bytes))
        return EINVAL;
    if (!(wr->send_flags & IBV_SEND_INLINE))
        return 0;
    bool fetches = is_atomic(wr) || wr->opcode == IBV_WR_RDMA_READ;
    return fetches || *bytes > qp->init.cap.max_inline_data ? EINVAL : 0;
}

static void keep_payload(struct shca_wqe *wqe, const struct ibv_send_wr *wr)
{
    char *to = wqe->payload;
    for (int i = 0; i < wr->num_sge; i++) {
        memcpy(to, (const void *)(uintptr_t)wr->sg_list[i].addr, wr->sg_list[i].length);
        to += wr->sg_list[i].length;
    }
}

// Every request of every queue pair has its own delay, the same in every run of the program with
// that seed.
uint64_t shca_ready_time(const struct shca_qp *qp, uint64_t position, uint32_t opcode)
{
    if (shca_settings.misorder_us && opcode == IBV_WR_RDMA_WRITE)
        return shca_now_ns() + (uint64_t)shca_settings.misorder_us * 1000;
    if (!shca_settings.delay_us)
        return 0;
    uint64_t index = qp->ibv.qp_num & (SHCA_QPS - 1);
    return shca_now_ns() +
           shca_random(index, position) % ((uint64_t)shca_settings.delay_us * 1000 + 1);
}

static void keep_change(struct shca_wqe *wqe, const struct ibv_send_wr *wr)
{
    bool add = wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
    wqe->change = (struct shca_change){
        .add = add,
        .width = 8,
        .operand = add ? wr->wr.atomic.compare_add : wr->wr.atomic.swap,
        .compare = wr->wr.atomic.compare_add,
        .operand_mask = add ? 0 : UINT64_MAX,
        .compare_mask = UINT64_MAX,
    };
}

static void keep(struct shca_qp *qp, const struct ibv_send_wr *wr, uint64_t position,
                 uint64_t bytes)
{
    struct shca_wqe *wqe = &qp->sq[position % qp->sq_depth];
    wqe->wr_id = wr->wr_id;
    wqe->opcode = wr->opcode;
    wqe->index = (uint16_t)position;
    wqe->change.width = 0;
    wqe->flags = wr->send_flags;
    wqe->imm = wr->imm_data;
    wqe->bytes = bytes;
    wqe->n_sge = wr->num_sge;
    wqe->early = wqe->counted = false;
    wqe->early_status = IBV_WC_SUCCESS;
    wqe->ready_ns = shca_ready_time(qp, position, wr->opcode);
    wqe->is_inline = wr->send_flags & IBV_SEND_INLINE;
    if (shca_is_datagrams(qp)) {
        wqe->ah = *(struct shca_ah *)wr->wr.ud.ah;
        wqe->remote = wr->wr.ud.remote_qpn;
        wqe->key = wr->wr.ud.remote_qkey;
    } else if (is_atomic(wr)) {
        wqe->remote = wr->wr.atomic.remote_addr;
        wqe->key = wr->wr.atomic.rkey;
        keep_change(wqe, wr);
    } else {
        wqe->remote = wr->wr.rdma.remote_addr;
        wqe->key = wr->wr.rdma.rkey;
    }
    if (wqe->is_inline)
        keep_payload(wqe, wr);
    else if (wr->num_sge)
        memcpy(wqe->sges, wr->sg_list, (size_t)wr->num_sge * sizeof *wr->sg_list);
}

// Some providers have less room than they promise for a moment; the caller must cope with a chain
// cut short. Room comes back with a completion: where none is due nobody would wait for the end of
// the moment.
static bool full_for_now(const struct shca_qp *qp)
{
    if (!shca_settings.post_full_every || shca_is_datagrams(qp) ||
        qp->due <= atomic_load(&qp->tail))
        return false;
    static atomic_long posts;
    return atomic_fetch_add(&posts, 1) % shca_settings.post_full_every ==
           shca_settings.post_full_every - 1;
}

static int chain_keep(struct shca_qp *qp, struct ibv_send_wr **at, uint64_t *head)
{
    for (; *at; *at = (*at)->next, ++*head) {
        uint64_t bytes;
        int error = send_check(qp, *at, &bytes);
        if (error)
            return error;
        // Room comes back when completions are polled, those of later requests included.
        if (*head - atomic_load_explicit(&qp->tail, memory_order_acquire) >= qp->sq_depth ||
            full_for_now(qp))
            return ENOMEM;
        keep(qp, *at, *head, bytes);
        if ((*at)->send_flags & IBV_SEND_SIGNALED || qp->init.sq_sig_all)
            qp->due = *head + 1;
    }
    return 0;
}

// NULL=1: the request is complete at once, and nothing moves. What it costs the caller is what its
// own software costs.
static int post_nothing(struct shca_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
    pthread_mutex_lock(&qp->lock);
    uint64_t head = atomic_load_explicit(&qp->head, memory_order_relaxed),
             end = atomic_load_explicit(&qp->tail, memory_order_acquire) + qp->sq_depth;
    for (; wr && head != end; wr = wr->next) {
        head++;
        if (!(wr->send_flags & IBV_SEND_SIGNALED) && !qp->init.sq_sig_all)
            continue;
        struct shca_cqe cqe = {.qp = qp, .send = true, .retires = head};
        cqe.wc.wr_id = wr->wr_id;
        cqe.wc.opcode = shca_wc_opcode(wr->opcode);
        cqe.wc.qp_num = qp->ibv.qp_num;
        shca_cq_push(qp->ibv.send_cq, &cqe);
    }
    qp->exec = head; // for the engine there is nothing to do
    atomic_store_explicit(&qp->head, head, memory_order_release);
    pthread_mutex_unlock(&qp->lock);
    *bad = wr;
    return wr ? ENOMEM : 0;
}

int shca_post_send(struct ibv_qp *ibv, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
    struct shca_qp *qp = (struct shca_qp *)ibv;
    uint32_t state = atomic_load(&qp->entry->state);
    if (qp->mlx5)
        shca_misuse(SHCA_MISUSE_VERBS, ibv->qp_num, "ibv_post_send, but its ring is the program's");
    if (qp->mlx5 || (state != IBV_QPS_RTS && state != IBV_QPS_ERR)) {
        *bad = wr;
        return EINVAL;
    }
    if (shca_settings.null && state == IBV_QPS_RTS && !shca_is_datagrams(qp))
        return post_nothing(qp, wr, bad);
    pthread_mutex_lock(&qp->lock);
    uint64_t before = atomic_load_explicit(&qp->head, memory_order_relaxed), head = before;
    int error = chain_keep(qp, &wr, &head);
    atomic_store(&qp->head, head);
    pthread_mutex_unlock(&qp->lock);
    if (head != before)
        shca_engine_submit(qp);
    if (error)
        *bad = wr;
    return error;
}

static int recv_keep(struct shca_qp *qp, const struct ibv_recv_wr *wr)
{
    if (wr->num_sge < 0 || (uint32_t)wr->num_sge > qp->init.cap.max_recv_sge)
        return EINVAL;
    if (qp->rq_head - qp->rq_tail >= qp->init.cap.max_recv_wr)
        return ENOMEM;
    struct shca_recv *slot = &qp->rq[qp->rq_head % qp->init.cap.max_recv_wr];
    slot->wr_id = wr->wr_id;
    slot->n_sge = wr->num_sge;
    if (wr->num_sge)
        memcpy(slot->sges, wr->sg_list, (size_t)wr->num_sge * sizeof *wr->sg_list);
    qp->rq_head++;
    return 0;
}

int shca_post_recv(struct ibv_qp *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    struct shca_qp *qp = (struct shca_qp *)ibv;
    uint32_t state = atomic_load(&qp->entry->state);
    int error = state == IBV_QPS_RESET ? EINVAL : 0;
    pthread_mutex_lock(&qp->lock);
    while (wr && !error) {
        error = recv_keep(qp, wr);
        if (!error)
            wr = wr->next;
    }
    pthread_mutex_unlock(&qp->lock);
    if (state == IBV_QPS_ERR)
        shca_engine_submit(qp);
    if (error)
        *bad = wr;
    return error;
}
