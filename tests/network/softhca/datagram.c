// SPDX-License-Identifier: BSD-3-Clause
// Unreliable datagrams: address handles, and messages to the receive queue of any queue pair of
// this kind. The sender's completion says that it has left. On its way it may be lost
// (DATAGRAM_LOSS), or come twice (DATAGRAM_TWICE); with DELAY_US it is late. A receiver without a
// receive, or with another queue key, drops it.
#include <errno.h>

#include "softhca.h"

enum { GRH_BYTES = 40 };

SHCA_EXPORT struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
    int device = shca_device_by_address(attr);
    if (device < 0) {
        errno = attr->is_global ? ETIMEDOUT : EINVAL;
        return NULL;
    }
    struct shca_ah *ah = calloc(1, sizeof *ah);
    if (!ah)
        return NULL;
    ah->ibv.context = pd->context;
    ah->ibv.pd = pd;
    ah->device = device;
    ah->path = shca_path_of(shca_device_of(pd->context), attr);
    atomic_fetch_add(&((struct shca_pd *)pd)->users, 1);
    shca_context_use(pd->context, 1);
    return &ah->ibv;
}

SHCA_EXPORT int ibv_destroy_ah(struct ibv_ah *ibv)
{
    atomic_fetch_sub(&((struct shca_pd *)ibv->pd)->users, 1);
    shca_context_use(ibv->context, -1);
    free(ibv);
    return 0;
}

static bool happens(long percent)
{
    static atomic_ulong n;
    return percent && (long)(shca_random(atomic_fetch_add(&n, 1), 3) % 100) < percent;
}

// Into a box of the other process, if one is free.
static int deliver(struct shca_qp *qp, struct shca_wqe *wqe, struct shca_peer *peer)
{
    struct shca_proc *proc = &peer->segment->procs[peer->proc];
    int box = shca_box_claim(proc, SHCA_DATAGRAM_MAILS);
    if (box < 0)
        return IBV_WC_SUCCESS;
    struct shca_mail *mail = &proc->mails[box];
    char *data = peer->segment->blocks[peer->proc][box].data;
    memset(data, 0, GRH_BYTES);
    int status = shca_gather(qp, wqe, 0, data + GRH_BYTES, wqe->bytes);
    mail->kind = SHCA_MAIL_DATAGRAM;
    mail->key = wqe->key;
    mail->qpn = (uint32_t)wqe->remote;
    mail->source = qp->ibv.qp_num;
    mail->bytes = GRH_BYTES + wqe->bytes;
    mail->has_imm = mail->solicited = 0;
    mail->from_device = (uint32_t)qp->device->index;
    mail->from_proc = (uint32_t)qp->device->proc;
    atomic_store(&mail->state, status == IBV_WC_SUCCESS ? SHCA_MAIL_POSTED : SHCA_MAIL_FREE);
    shca_engine_wake(peer->segment, peer->proc);
    return status;
}

int shca_datagram_send(struct shca_qp *qp, struct shca_wqe *wqe)
{
    struct shca_peer *peer = shca_peer_get(qp->device, wqe->ah.device, (uint32_t)wqe->remote);
    bool arrives = peer && shca_peer_alive(peer) && !happens(shca_settings.datagram_loss) &&
                   shca_link_between(qp->device, wqe->ah.device, peer->segment);
    if (!arrives)
        return IBV_WC_SUCCESS;
    int status = deliver(qp, wqe, peer);
    if (status == IBV_WC_SUCCESS && happens(shca_settings.datagram_twice))
        status = deliver(qp, wqe, peer);
    return status;
}

void shca_datagram_deliver(struct shca_qp *qp, const struct shca_mail *mail, const char *data)
{
    uint32_t state = atomic_load(&qp->entry->state);
    bool takes = shca_is_datagrams(qp) && mail->key == qp->entry->qkey &&
                 qp->rq_head != qp->rq_tail && (state == IBV_QPS_RTR || state == IBV_QPS_RTS);
    if (!takes)
        return;
    const struct shca_recv *receive = &qp->rq[qp->rq_tail % qp->init.cap.max_recv_wr];
    struct shca_cqe cqe = {.qp = qp};
    cqe.wc.wr_id = receive->wr_id;
    cqe.wc.opcode = IBV_WC_RECV;
    cqe.wc.byte_len = (uint32_t)mail->bytes;
    cqe.wc.qp_num = qp->ibv.qp_num;
    cqe.wc.src_qp = mail->source;
    cqe.wc.wc_flags = shca_settings.link == IBV_LINK_LAYER_ETHERNET ? IBV_WC_GRH : 0;
    cqe.wc.status =
        (enum ibv_wc_status)shca_scatter(qp, receive->sges, receive->n_sge, 0, data, mail->bytes);
    qp->rq_tail++;
    shca_cq_push(qp->ibv.recv_cq, &cqe);
}
