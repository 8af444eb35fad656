// SPDX-License-Identifier: BSD-3-Clause
// Mail: requests that only the engine of the target's process can execute, because they touch its
// GPU's memory (batch.c) or take from its receive queue. Each process has a row of boxes in the
// segment, each with a block for data.
#include <unistd.h>

#include "softhca.h"

static int deliver(struct shca_qp *qp, const struct shca_mail *mail, const char *data,
                   struct shca_recv *receive)
{
    struct shca_cqe cqe = {.qp = qp, .solicited = mail->solicited};
    bool send = mail->kind == SHCA_MAIL_SEND;
    cqe.wc.wr_id = receive->wr_id;
    cqe.wc.opcode = send ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM;
    cqe.wc.byte_len = (uint32_t)mail->bytes;
    cqe.wc.qp_num = qp->ibv.qp_num;
    cqe.wc.src_qp = qp->attr.dest_qp_num;
    if (mail->has_imm) {
        cqe.wc.wc_flags = IBV_WC_WITH_IMM;
        cqe.wc.imm_data = mail->imm;
    }
    if (send && mail->bytes)
        cqe.wc.status = (enum ibv_wc_status)shca_scatter(qp, receive->sges, receive->n_sge, 0, data,
                                                         mail->bytes);
    int arrived = shca_gpu_finish(qp->device);
    if (cqe.wc.status == IBV_WC_SUCCESS)
        cqe.wc.status = (enum ibv_wc_status)arrived;
    shca_cq_push(qp->ibv.recv_cq, &cqe);
    if (cqe.wc.status == IBV_WC_SUCCESS)
        return IBV_WC_SUCCESS;
    atomic_store(&qp->entry->state, IBV_QPS_ERR);
    shca_engine_submit(qp);
    return cqe.wc.status == IBV_WC_LOC_LEN_ERR ? IBV_WC_REM_INV_REQ_ERR : IBV_WC_REM_OP_ERR;
}

static int receive(struct shca_device *device, const struct shca_mail *mail, const char *data)
{
    struct shca_qp *qp = device->qps[mail->qpn & (SHCA_QPS - 1)];
    if (!qp || qp->ibv.qp_num != mail->qpn)
        return IBV_WC_RETRY_EXC_ERR;
    pthread_mutex_lock(&qp->lock);
    int status = IBV_WC_RNR_RETRY_EXC_ERR;
    if (mail->kind == SHCA_MAIL_DATAGRAM)
        shca_datagram_deliver(qp, mail, data);
    else if (qp->rq_head != qp->rq_tail) {
        status = deliver(qp, mail, data, &qp->rq[qp->rq_tail % qp->init.cap.max_recv_wr]);
        qp->rq_tail++;
    }
    pthread_mutex_unlock(&qp->lock);
    return status;
}

// What it asks of GPU memory is done at the next shca_gpu_finish.
static void begin(struct shca_device *device, struct shca_mail *mail, struct shca_block *block)
{
    if (mail->kind == SHCA_MAIL_BATCH)
        shca_batch_begin(device, mail, block);
    else
        mail->status = (uint32_t)receive(device, mail, block->data);
}

static void end(struct shca_device *device, struct shca_mail *mail, const struct shca_block *block,
                int status)
{
    if (mail->kind == SHCA_MAIL_BATCH)
        shca_batch_end(device, mail, block, status);
}

bool shca_mail_waiting(const struct shca_device *device)
{
    const struct shca_proc *proc = &device->segment->procs[device->proc];
    for (int i = 0; i < SHCA_MAILS; i++)
        if (atomic_load(&proc->mails[i].state) == SHCA_MAIL_POSTED)
            return true;
    return false;
}

// Memory requests are about GPU memory, and a receive may be into it: those are for the engine's
// own thread.
static bool may_serve(const struct shca_device *device, const struct shca_mail *mail)
{
    return device->use_gpu || (!device->gpu && mail->kind != SHCA_MAIL_BATCH);
}

// The GPU is waited for once for all that is here.
void shca_mail_serve(struct shca_device *device)
{
    struct shca_mail *mails = device->segment->procs[device->proc].mails;
    struct shca_block *blocks = device->segment->blocks[device->proc];
    int served[SHCA_MAILS], n = 0;
    for (int i = 0; i < SHCA_MAILS; i++) {
        if (atomic_load(&mails[i].state) != SHCA_MAIL_POSTED || !may_serve(device, &mails[i]))
            continue;
        begin(device, &mails[i], &blocks[i]);
        served[n++] = i;
    }
    int status = n ? shca_gpu_finish(device) : IBV_WC_SUCCESS;
    for (int k = 0; k < n; k++) {
        struct shca_mail *mail = &mails[served[k]];
        end(device, mail, &blocks[served[k]], status);
        struct shca_segment *from = shca_devices[mail->from_device].segment;
        int from_proc = (int)mail->from_proc;
        if (mail->kind == SHCA_MAIL_DATAGRAM) { // nobody waits for it
            atomic_store(&mail->state, SHCA_MAIL_FREE);
            continue;
        }
        atomic_store(&mail->state, SHCA_MAIL_DONE);
        if (from)
            shca_engine_wake(from, from_proc);
    }
}

static bool dead(uint32_t pid)
{
    return pid != (uint32_t)getpid() && !shca_start_time(pid);
}

// A free box of the peer. Boxes of senders that died are taken over.
int shca_box_claim(struct shca_proc *proc, int boxes)
{
    for (int i = 0; i < boxes; i++) {
        uint32_t free = SHCA_MAIL_FREE;
        if (atomic_compare_exchange_strong(&proc->mails[i].state, &free, SHCA_MAIL_CLAIMED)) {
            proc->mails[i].from_pid = (uint32_t)getpid();
            return i;
        }
    }
    for (int i = 0; i < boxes; i++) {
        uint32_t state = atomic_load(&proc->mails[i].state);
        if (state != SHCA_MAIL_POSTED && dead(proc->mails[i].from_pid))
            atomic_compare_exchange_strong(&proc->mails[i].state, &state, SHCA_MAIL_FREE);
    }
    return -1;
}

static void address(struct shca_mail *mail, const struct shca_qp *qp, const struct shca_wqe *wqe)
{
    mail->key = wqe->key;
    mail->qpn = qp->attr.dest_qp_num;
    mail->has_imm =
        wqe->opcode == IBV_WR_RDMA_WRITE_WITH_IMM || wqe->opcode == IBV_WR_SEND_WITH_IMM;
    mail->imm = wqe->imm;
    mail->solicited = (wqe->flags & IBV_SEND_SOLICITED) != 0;
    mail->from_device = (uint32_t)qp->device->index;
    mail->from_proc = (uint32_t)qp->device->proc;
}

static int fill(struct shca_mail *mail, struct shca_qp *qp, const struct shca_wqe *wqe,
                enum shca_mail_kind kind, struct shca_block *block)
{
    const struct shca_mr_entry *mr = &qp->peer->segment->mrs[(wqe->key >> 16) & (SHCA_MRS - 1)];
    address(mail, qp, wqe);
    mail->kind = kind;
    mail->bytes = wqe->bytes;
    if (kind == SHCA_MAIL_BATCH)
        return shca_batch_fill(qp, wqe, mr->address + (wqe->remote - mr->iova), mail, block);
    int status = kind == SHCA_MAIL_SEND && wqe->bytes
                     ? shca_gather(qp, wqe, 0, block->data, wqe->bytes)
                     : IBV_WC_SUCCESS;
    int arrived = shca_gpu_finish(qp->device);
    return status == IBV_WC_SUCCESS ? arrived : status;
}

static int pick_up(struct shca_qp *qp, const struct shca_mail *mail, const struct shca_block *block)
{
    if (mail->kind == SHCA_MAIL_BATCH)
        return shca_batch_pick_up(qp, mail, block);
    return mail->status == IBV_WC_RNR_RETRY_EXC_ERR ? SHCA_NOT_READY : (int)mail->status;
}

// A write or read that is larger than a block goes in pieces.
static bool is_over(const struct shca_qp *qp, const struct shca_wqe *wqe, enum shca_mail_kind kind)
{
    return kind != SHCA_MAIL_BATCH || qp->moved == wqe->bytes;
}

// To this device itself: nobody need be asked.
static int run_here(struct shca_qp *qp, struct shca_wqe *wqe, enum shca_mail_kind kind)
{
    struct shca_device *device = qp->device;
    struct shca_mail mail = {.kind = kind};
    int status = may_serve(device, &mail) ? IBV_WC_SUCCESS : SHCA_AGAIN;
    for (bool over = false; status == IBV_WC_SUCCESS && !over; over = is_over(qp, wqe, kind)) {
        status = fill(&mail, qp, wqe, kind, device->block);
        if (status != IBV_WC_SUCCESS)
            return status;
        begin(device, &mail, device->block);
        end(device, &mail, device->block, shca_gpu_finish(device));
        status = pick_up(qp, &mail, device->block);
    }
    return status;
}

int shca_mail_run(struct shca_qp *qp, struct shca_wqe *wqe, enum shca_mail_kind kind)
{
    struct shca_peer *peer = qp->peer;
    struct shca_proc *proc = &peer->segment->procs[peer->proc];
    if (qp->overtaking)
        return SHCA_AGAIN;
    if (peer->device == qp->device->index && peer->proc == qp->device->proc)
        return run_here(qp, wqe, kind);
    if (qp->mail >= 0) {
        struct shca_mail *mail = &proc->mails[qp->mail];
        if (atomic_load(&mail->state) != SHCA_MAIL_DONE)
            return SHCA_AGAIN;
        int status = pick_up(qp, mail, &peer->segment->blocks[peer->proc][qp->mail]);
        if (status == SHCA_AGAIN)
            return status; // for the engine's thread
        atomic_store(&mail->state, SHCA_MAIL_FREE);
        qp->mail = -1;
        if (status != IBV_WC_SUCCESS || is_over(qp, wqe, kind))
            return status;
    }
    int box = shca_box_claim(proc, SHCA_MAILS);
    if (box < 0)
        return SHCA_AGAIN;
    int status = fill(&proc->mails[box], qp, wqe, kind, &peer->segment->blocks[peer->proc][box]);
    atomic_store(&proc->mails[box].state,
                 status == IBV_WC_SUCCESS ? SHCA_MAIL_POSTED : SHCA_MAIL_FREE);
    if (status != IBV_WC_SUCCESS)
        return status;
    qp->mail = box;
    shca_engine_wake(peer->segment, peer->proc);
    return SHCA_AGAIN;
}

// Whether the answer to a request under way is here; it counts even if the peer's queue pair is in
// error since.
bool shca_mail_answered(const struct shca_qp *qp)
{
    return qp->mail >= 0 &&
           atomic_load(&qp->peer->segment->procs[qp->peer->proc].mails[qp->mail].state) ==
               SHCA_MAIL_DONE;
}

// Whether the peer has the request, or its answer came since somebody looked: a peer whose queue
// pair goes to the error state says why after that. A dead one's is given up.
bool shca_mail_pending(struct shca_qp *qp)
{
    if (qp->mail < 0 || !qp->peer)
        return qp->mail >= 0;
    uint32_t state = atomic_load(&qp->peer->segment->procs[qp->peer->proc].mails[qp->mail].state);
    bool pending =
        state == SHCA_MAIL_DONE || (state == SHCA_MAIL_POSTED && shca_peer_alive(qp->peer));
    qp->mail = pending ? qp->mail : -1;
    return pending;
}

// Gives up a request under way, as soon as the peer has let go of it; qp->mail tells whether that
// is so.
void shca_mail_drop(struct shca_qp *qp)
{
    if (qp->mail < 0 || !qp->peer)
        return;
    struct shca_mail *mail = &qp->peer->segment->procs[qp->peer->proc].mails[qp->mail];
    uint32_t state = atomic_load(&mail->state);
    if (state == SHCA_MAIL_DONE)
        atomic_store(&mail->state, SHCA_MAIL_FREE);
    else if (state == SHCA_MAIL_POSTED && shca_peer_alive(qp->peer))
        return;
    qp->mail = -1;
}
