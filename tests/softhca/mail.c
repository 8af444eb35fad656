// SPDX-License-Identifier: BSD-3-Clause
// Mail: requests that only the engine of the target's process can execute, because they touch its GPU's memory or take
// from its receive queue. Each process has a row of boxes in the segment, each with a block for data.
#include <unistd.h>

#include "softhca.h"

static bool carries_data(uint32_t kind)
{
    return kind == SHCA_MAIL_WRITE || kind == SHCA_MAIL_READ;
}

static int block_copy(struct shca_device *device, void *to, const void *from, uint64_t bytes, uint32_t kind)
{
    if (kind == SHCA_GPU)
        return shca_gpu_copy(device, to, from, bytes);
    shca_copy(to, from, bytes);
    return IBV_WC_SUCCESS;
}

static int change_word(struct shca_device *device, const struct shca_mail *mail, void *word, char *data, uint32_t memory)
{
    uint64_t old, new;
    shca_lock(&device->segment->atomics);
    int status = block_copy(device, &old, word, 8, memory);
    new = mail->kind == SHCA_MAIL_ADD ? old + mail->operand : old == mail->compare ? mail->operand : old;
    if (status == IBV_WC_SUCCESS)
        status = block_copy(device, word, &new, 8, memory);
    pthread_mutex_unlock(&device->segment->atomics);
    shca_copy(data, &old, 8);
    return status;
}

static int access_memory(struct shca_device *device, const struct shca_mail *mail, char *data)
{
    struct shca_mr_entry *mr = shca_mr_begin(device->segment, mail->key);
    if (!mr)
        return IBV_WC_REM_ACCESS_ERR; // the sender's NIC checked it, but it is gone since
    void *at = (void *)(uintptr_t)mail->address;
    int status;
    if (mail->kind == SHCA_MAIL_WRITE)
        status = block_copy(device, at, data, mail->bytes, mr->kind);
    else if (mail->kind == SHCA_MAIL_READ)
        status = block_copy(device, data, at, mail->bytes, mr->kind);
    else
        status = change_word(device, mail, at, data, mr->kind);
    shca_mr_end(mr);
    return status;
}

static int deliver(struct shca_qp *qp, const struct shca_mail *mail, const char *data, struct shca_recv *receive)
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
        cqe.wc.status = (enum ibv_wc_status)shca_scatter(qp, receive->sges, receive->n_sge, 0, data, mail->bytes);
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
    if (qp->rq_head != qp->rq_tail) {
        status = deliver(qp, mail, data, &qp->rq[qp->rq_tail % qp->init.cap.max_recv_wr]);
        qp->rq_tail++;
    }
    pthread_mutex_unlock(&qp->lock);
    return status;
}

void shca_mail_execute(struct shca_device *device, struct shca_mail *mail, char *data)
{
    bool message = mail->kind == SHCA_MAIL_SEND || mail->kind == SHCA_MAIL_IMM;
    mail->status = (uint32_t)(message ? receive(device, mail, data) : access_memory(device, mail, data));
}

bool shca_mail_waiting(const struct shca_device *device)
{
    const struct shca_proc *proc = &device->segment->procs[device->proc];
    for (int i = 0; i < SHCA_MAILS; i++)
        if (atomic_load(&proc->mails[i].state) == SHCA_MAIL_POSTED)
            return true;
    return false;
}

// Memory requests are about GPU memory, and a receive may be into it: those are for the engine's own thread.
static bool may_serve(const struct shca_device *device, const struct shca_mail *mail)
{
    return device->use_gpu || (!device->gpu && (mail->kind == SHCA_MAIL_SEND || mail->kind == SHCA_MAIL_IMM));
}

void shca_mail_serve(struct shca_device *device)
{
    struct shca_proc *proc = &device->segment->procs[device->proc];
    for (int i = 0; i < SHCA_MAILS; i++) {
        struct shca_mail *mail = &proc->mails[i];
        if (atomic_load(&mail->state) != SHCA_MAIL_POSTED || !may_serve(device, mail))
            continue;
        shca_mail_execute(device, mail, device->segment->staging[device->proc][i]);
        struct shca_segment *from = shca_devices[mail->from_device].segment;
        int from_proc = (int)mail->from_proc;
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
static int box_claim(struct shca_proc *proc)
{
    for (int i = 0; i < SHCA_MAILS; i++) {
        uint32_t free = SHCA_MAIL_FREE;
        if (atomic_compare_exchange_strong(&proc->mails[i].state, &free, SHCA_MAIL_CLAIMED)) {
            proc->mails[i].from_pid = (uint32_t)getpid();
            return i;
        }
    }
    for (int i = 0; i < SHCA_MAILS; i++) {
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
    mail->has_imm = wqe->opcode == IBV_WR_RDMA_WRITE_WITH_IMM || wqe->opcode == IBV_WR_SEND_WITH_IMM;
    mail->imm = wqe->imm;
    mail->solicited = (wqe->flags & IBV_SEND_SOLICITED) != 0;
    mail->from_device = (uint32_t)qp->device->index;
    mail->from_proc = (uint32_t)qp->device->proc;
}

static int fill(struct shca_mail *mail, struct shca_qp *qp, const struct shca_wqe *wqe, enum shca_mail_kind kind, char *data)
{
    const struct shca_mr_entry *mr = &qp->peer->segment->mrs[(wqe->key >> 16) & (SHCA_MRS - 1)];
    address(mail, qp, wqe);
    mail->kind = kind;
    mail->address = mr->address + (wqe->remote - mr->iova) + qp->moved;
    mail->bytes = wqe->bytes - qp->moved;
    if (carries_data(kind) && mail->bytes > SHCA_MAIL_BYTES)
        mail->bytes = SHCA_MAIL_BYTES;
    mail->operand = kind == SHCA_MAIL_ADD ? wqe->compare : wqe->swap;
    mail->compare = wqe->compare;
    bool out = kind == SHCA_MAIL_WRITE || kind == SHCA_MAIL_SEND;
    return out && mail->bytes ? shca_gather(qp, wqe, qp->moved, data, mail->bytes) : IBV_WC_SUCCESS;
}

static int pick_up(struct shca_qp *qp, const struct shca_wqe *wqe, const struct shca_mail *mail, const char *data)
{
    if (mail->status != IBV_WC_SUCCESS)
        return mail->status == IBV_WC_RNR_RETRY_EXC_ERR ? SHCA_NOT_READY : (int)mail->status;
    int status = IBV_WC_SUCCESS;
    if (mail->kind == SHCA_MAIL_READ)
        status = shca_scatter(qp, wqe->sges, wqe->n_sge, qp->moved, data, mail->bytes);
    else if (mail->kind == SHCA_MAIL_ADD || mail->kind == SHCA_MAIL_CAS)
        status = shca_scatter(qp, wqe->sges, wqe->n_sge, 0, data, 8);
    if (status == IBV_WC_SUCCESS && carries_data(mail->kind))
        qp->moved += mail->bytes;
    return status;
}

// To this device itself: nobody need be asked.
static int run_here(struct shca_qp *qp, struct shca_wqe *wqe, enum shca_mail_kind kind)
{
    struct shca_mail mail = {.kind = kind};
    if (!may_serve(qp->device, &mail))
        return SHCA_AGAIN;
    int status = fill(&mail, qp, wqe, kind, qp->device->bounce);
    if (status != IBV_WC_SUCCESS)
        return status;
    shca_mail_execute(qp->device, &mail, qp->device->bounce);
    return pick_up(qp, wqe, &mail, qp->device->bounce);
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
        int status = pick_up(qp, wqe, mail, peer->segment->staging[peer->proc][qp->mail]);
        if (status == SHCA_AGAIN)
            return status; // for the engine's thread
        atomic_store(&mail->state, SHCA_MAIL_FREE);
        qp->mail = -1;
        if (status != IBV_WC_SUCCESS || !carries_data(kind) || qp->moved == wqe->bytes)
            return status;
    }
    int box = box_claim(proc);
    if (box < 0)
        return SHCA_AGAIN;
    int status = fill(&proc->mails[box], qp, wqe, kind, peer->segment->staging[peer->proc][box]);
    atomic_store(&proc->mails[box].state, status == IBV_WC_SUCCESS ? SHCA_MAIL_POSTED : SHCA_MAIL_FREE);
    if (status != IBV_WC_SUCCESS)
        return status;
    qp->mail = box;
    shca_engine_wake(peer->segment, peer->proc);
    return SHCA_AGAIN;
}

// Whether the answer to a request under way is here; it counts even if the peer's queue pair is in error since.
bool shca_mail_answered(const struct shca_qp *qp)
{
    return qp->mail >= 0 &&
           atomic_load(&qp->peer->segment->procs[qp->peer->proc].mails[qp->mail].state) == SHCA_MAIL_DONE;
}

// Gives up a request under way, as soon as the peer has let go of it; qp->mail tells whether that is so.
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
