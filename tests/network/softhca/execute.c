// SPDX-License-Identifier: BSD-3-Clause
// Executing one work request: the checks that the two NICs make, and the copy.
#include "softhca.h"

// What a work request does at the target.
struct job {
    struct shca_qp *qp;
    struct shca_peer *peer;
    struct shca_qp_entry *dest;
    struct shca_mr_entry *mr;
    uint64_t address; // in the target's process
    char *mapped;     // the same in this one, NULL if it is not
};

static bool is_own(const struct shca_qp *qp, const struct shca_peer *peer)
{
    return peer->device == qp->device->index && peer->proc == qp->device->proc;
}

// Asks the kernel once per turn of the queue pair: a system call costs more than a small write.
static bool still_there(struct shca_qp *qp)
{
    if (is_own(qp, qp->peer) || qp->peer_seen)
        return true;
    qp->peer_seen = shca_peer_alive(qp->peer);
    return qp->peer_seen;
}

static bool is_ipv4(const union ibv_gid *gid)
{
    static const uint8_t prefix[12] = {[10] = 0xff, [11] = 0xff};
    return !memcmp(gid->raw, prefix, sizeof prefix);
}

// A packet's addresses and its version of RoCE must be those that the queue pair there was given:
// others it drops (InfiniBand specification, volume 1, section 9.6.1.2). And no packet has a source
// of one family and a target of the other.
static bool is_on_its_path(const struct shca_path *own, const struct shca_path *there)
{
    return own->gid_type == there->gid_type && is_ipv4(&own->source) == is_ipv4(&own->target) &&
           !memcmp(&own->source, &there->target, sizeof own->source) &&
           !memcmp(&own->target, &there->source, sizeof own->target);
}

// Whether the queue pair at the other end takes our packets; if not, they go unanswered.
static bool answers(struct shca_qp *qp, struct job *job)
{
    uint32_t qpn = qp->attr.dest_qp_num;
    if (!qp->peer)
        qp->peer = shca_peer_get(qp->device, shca_device_by_address(&qp->attr.ah_attr), qpn);
    if (!qp->peer)
        return false;
    job->qp = qp;
    job->peer = qp->peer;
    job->dest = &qp->peer->segment->qps[qpn & (SHCA_QPS - 1)];
    uint32_t state = atomic_load(&job->dest->state);
    bool up = atomic_load(&job->dest->qpn) == qpn && (int)job->dest->proc == qp->peer->proc &&
              (state == IBV_QPS_RTR || state == IBV_QPS_RTS) &&
              job->dest->dest_qpn == qp->ibv.qp_num &&
              (int)job->dest->dest_device == qp->device->index &&
              is_on_its_path(&qp->entry->path, &job->dest->path) && still_there(qp);
    if (!up && qp->mail < 0)
        qp->peer = NULL; // looked up anew at the next try
    return up || shca_mail_answered(qp);
}

// The target refuses: its queue pair goes to the error state and its owner gets an event.
static int refuse(const struct job *job, int status)
{
    uint32_t state = atomic_load(&job->dest->state);
    while ((state == IBV_QPS_RTR || state == IBV_QPS_RTS) &&
           !atomic_compare_exchange_weak(&job->dest->state, &state, IBV_QPS_ERR))
        ;
    atomic_store(&job->dest->insulted, 1);
    atomic_store(&job->peer->segment->procs[job->peer->proc].insulted, 1);
    shca_engine_wake(job->peer->segment, job->peer->proc);
    return status;
}

// Whether the region that job->mr is covers that, and where it lies in its process.
static bool is_inside(struct job *job, const struct shca_wqe *wqe, uint64_t bytes)
{
    const struct shca_mr_entry *mr = job->mr;
    job->address = mr->address + (wqe->remote - mr->iova);
    return wqe->remote >= mr->iova && bytes <= mr->bytes &&
           wqe->remote - mr->iova <= mr->bytes - bytes;
}

// The target's checks. On success the caller ends the use of job->mr.
static int target_find(struct job *job, const struct shca_wqe *wqe, uint64_t bytes, uint32_t access)
{
    if (!(job->dest->access & access))
        return IBV_WC_REM_INV_REQ_ERR;
    job->mr = shca_mr_begin(job->peer->segment, wqe->key);
    if (!job->mr)
        return IBV_WC_REM_ACCESS_ERR;
    const struct shca_mr_entry *mr = job->mr;
    if (is_inside(job, wqe, bytes) && (mr->access & access) && mr->proc == job->dest->proc &&
        mr->pd == job->dest->pd)
        return IBV_WC_SUCCESS;
    shca_mr_end(job->mr);
    return IBV_WC_REM_ACCESS_ERR;
}

static int target_begin(struct job *job, const struct shca_wqe *wqe, uint64_t bytes,
                        uint32_t access)
{
    int status = target_find(job, wqe, bytes, access);
    if (status != IBV_WC_SUCCESS)
        return refuse(job, status);
    job->mapped = job->mr->kind == SHCA_HOST
                      ? shca_peer_map(job->peer, job->mr, wqe->key, job->address)
                      : NULL;
    return IBV_WC_SUCCESS;
}

static struct shca_mr_entry *local_begin(const struct shca_qp *qp, const struct ibv_sge *sge,
                                         uint32_t access)
{
    struct shca_mr_entry *mr = shca_mr_begin(qp->device->segment, sge->lkey);
    if (!mr)
        return NULL;
    bool inside = sge->addr >= mr->iova && sge->length <= mr->bytes &&
                  sge->addr - mr->iova <= mr->bytes - sge->length;
    bool mine = (int)mr->proc == qp->device->proc && mr->pd == ((struct shca_pd *)qp->ibv.pd)->id;
    if (inside && mine && (mr->access & access) == access)
        return mr;
    shca_mr_end(mr);
    return NULL;
}

static char *local_address(const struct shca_mr_entry *mr, const struct ibv_sge *sge)
{
    return (char *)(uintptr_t)(mr->address + (sge->addr - mr->iova));
}

// Whether this pass may do it: only the engine's own thread touches GPU memory.
static bool gpu_turn(const struct shca_qp *qp, enum shca_kind kind)
{
    return kind == SHCA_HOST || qp->device->use_gpu;
}

static int copy(struct shca_qp *qp, void *to, const void *from, uint64_t bytes, bool gpu)
{
    if (gpu)
        return shca_gpu_copy(qp->device, to, from, bytes);
    shca_copy(to, from, bytes);
    return IBV_WC_SUCCESS;
}

// Between local memory and the target's host memory, in one of both directions; through a buffer
// where the local side is GPU memory and the target's can only be reached with the kernel's help.
static int move(const struct job *job, char *local, enum shca_kind kind, uint64_t offset,
                uint64_t bytes, bool out)
{
    bool gpu = kind == SHCA_GPU;
    if (!gpu_turn(job->qp, kind))
        return SHCA_AGAIN;
    if (job->mapped)
        return out ? copy(job->qp, job->mapped + offset, local, bytes, gpu)
                   : copy(job->qp, local, job->mapped + offset, bytes, gpu);
    if (!gpu)
        return out ? shca_peer_write(job->peer, job->address + offset, local, bytes)
                   : shca_peer_read(job->peer, local, job->address + offset, bytes);
    char *bounce = job->qp->device->block->data;
    int status = IBV_WC_SUCCESS;
    for (uint64_t done = 0, n; done < bytes && status == IBV_WC_SUCCESS; done += n) {
        n = bytes - done < SHCA_MAIL_BYTES ? bytes - done : SHCA_MAIL_BYTES;
        status = out ? shca_gpu_copy(job->qp->device, bounce, local + done, n)
                     : shca_peer_read(job->peer, bounce, job->address + offset + done, n);
        if (status == IBV_WC_SUCCESS)
            status = out ? shca_peer_write(job->peer, job->address + offset + done, bounce, n)
                         : shca_gpu_copy(job->qp->device, local + done, bounce, n);
    }
    return status;
}

static int move_all(const struct job *job, const struct shca_wqe *wqe, bool out)
{
    if (wqe->is_inline)
        return move(job, wqe->payload, SHCA_HOST, 0, wqe->bytes, out);
    uint64_t offset = 0;
    for (int i = 0; i < wqe->n_sge; i++) {
        const struct ibv_sge *sge = &wqe->sges[i];
        struct shca_mr_entry *mr = local_begin(job->qp, sge, out ? 0 : IBV_ACCESS_LOCAL_WRITE);
        if (!mr)
            return IBV_WC_LOC_PROT_ERR;
        int status =
            move(job, local_address(mr, sge), (enum shca_kind)mr->kind, offset, sge->length, out);
        shca_mr_end(mr);
        if (status != IBV_WC_SUCCESS)
            return status;
        offset += sge->length;
    }
    return IBV_WC_SUCCESS;
}

// The part [offset, offset + bytes) of a scatter list, to or from one block.
static int spread(struct shca_qp *qp, const struct ibv_sge *sges, int n, uint64_t offset,
                  char *block, uint64_t bytes, bool gather)
{
    for (int i = 0; i < n && bytes; i++) {
        if (offset >= sges[i].length) {
            offset -= sges[i].length;
            continue;
        }
        struct shca_mr_entry *mr = local_begin(qp, &sges[i], gather ? 0 : IBV_ACCESS_LOCAL_WRITE);
        if (!mr)
            return IBV_WC_LOC_PROT_ERR;
        uint64_t part = sges[i].length - offset < bytes ? sges[i].length - offset : bytes;
        char *local = local_address(mr, &sges[i]) + offset;
        bool gpu = mr->kind == SHCA_GPU;
        int status = !gpu_turn(qp, (enum shca_kind)mr->kind) ? SHCA_AGAIN
                     : !gpu ? copy(qp, gather ? block : local, gather ? local : block, part, false)
                     : gather ? shca_gpu_read(qp->device, block, local, part)
                              : shca_gpu_write(qp->device, local, block, part);
        shca_mr_end(mr);
        if (status != IBV_WC_SUCCESS)
            return status;
        block += part;
        bytes -= part;
        offset = 0;
    }
    return bytes ? IBV_WC_LOC_LEN_ERR : IBV_WC_SUCCESS;
}

int shca_gather(struct shca_qp *qp, const struct shca_wqe *wqe, uint64_t offset, char *to,
                uint64_t bytes)
{
    if (!wqe->is_inline)
        return spread(qp, wqe->sges, wqe->n_sge, offset, to, bytes, true);
    shca_copy(to, wqe->payload + offset, bytes);
    return IBV_WC_SUCCESS;
}

int shca_scatter(struct shca_qp *qp, const struct ibv_sge *sges, int n, uint64_t offset,
                 const char *from, uint64_t bytes)
{
    return spread(qp, sges, n, offset, (char *)(uintptr_t)from, bytes, false);
}

static bool by_mail(const struct job *job)
{
    return job->mr->kind == SHCA_GPU;
}

static int write_data(struct job *job, struct shca_wqe *wqe)
{
    if (!wqe->bytes)
        return IBV_WC_SUCCESS; // no key is looked at
    int status = target_begin(job, wqe, wqe->bytes, IBV_ACCESS_REMOTE_WRITE);
    if (status != IBV_WC_SUCCESS)
        return status;
    status = by_mail(job) ? shca_mail_run(job->qp, wqe, SHCA_MAIL_BATCH) : move_all(job, wqe, true);
    shca_mr_end(job->mr);
    return status;
}

static int notify(struct job *job, struct shca_wqe *wqe)
{
    enum shca_mail_kind kind =
        wqe->opcode == IBV_WR_RDMA_WRITE_WITH_IMM ? SHCA_MAIL_IMM : SHCA_MAIL_SEND;
    if (kind == SHCA_MAIL_SEND && wqe->bytes > SHCA_MAIL_BYTES)
        return IBV_WC_LOC_LEN_ERR;
    return shca_mail_run(job->qp, wqe, kind);
}

static int write_with_imm(struct job *job, struct shca_wqe *wqe)
{
    if (!job->qp->imm_turn) {
        int status = write_data(job, wqe);
        if (status != IBV_WC_SUCCESS)
            return status;
        job->qp->imm_turn = true;
        job->qp->moved = 0;
    }
    return notify(job, wqe);
}

// A requester may only have as many reads and atomics under way as the responder agreed to.
static int fetch_check(const struct job *job)
{
    if (!job->qp->attr.max_rd_atomic)
        return IBV_WC_LOC_QP_OP_ERR;
    return job->qp->attr.max_rd_atomic > job->dest->reads_in ? refuse(job, IBV_WC_REM_INV_REQ_ERR)
                                                             : IBV_WC_SUCCESS;
}

static int read_data(struct job *job, struct shca_wqe *wqe)
{
    int status = fetch_check(job);
    if (status != IBV_WC_SUCCESS || !wqe->bytes)
        return status;
    status = target_begin(job, wqe, wqe->bytes, IBV_ACCESS_REMOTE_READ);
    if (status != IBV_WC_SUCCESS)
        return status;
    status =
        by_mail(job) ? shca_mail_run(job->qp, wqe, SHCA_MAIL_BATCH) : move_all(job, wqe, false);
    shca_mr_end(job->mr);
    return status;
}

static int change(const struct job *job, const struct shca_wqe *wqe, uint64_t *old)
{
    if (job->mapped) {
        *old = shca_change_word(&wqe->change, job->mapped);
        return IBV_WC_SUCCESS;
    }
    uint32_t width = wqe->change.width; // a word of 4 bytes is in the lower half
    int status = move(job, (char *)old, SHCA_HOST, 0, width, false);
    uint64_t new = shca_changed(&wqe->change, *old);
    return status == IBV_WC_SUCCESS ? move(job, (char *)&new, SHCA_HOST, 0, width, true) : status;
}

static int change_locked(const struct job *job, struct shca_wqe *wqe, uint64_t *old)
{
    pthread_mutex_t *lock = &job->peer->segment->atomics;
    shca_lock(lock);
    int status = change(job, wqe, old);
    pthread_mutex_unlock(lock);
    char answer[8];
    shca_change_answer(&wqe->change, *old, answer);
    if (status == IBV_WC_SUCCESS)
        status = shca_scatter(job->qp, wqe->sges, wqe->n_sge, 0, answer, wqe->change.width);
    int arrived = shca_gpu_finish(job->qp->device);
    return status == IBV_WC_SUCCESS ? arrived : status;
}

// The result's place is looked at before anything is changed: an atomic that fails must not have
// happened.
static int result_check(const struct job *job, const struct shca_wqe *wqe)
{
    if (wqe->bytes != wqe->change.width)
        return IBV_WC_LOC_LEN_ERR;
    for (int i = 0; i < wqe->n_sge; i++) {
        struct shca_mr_entry *mr = local_begin(job->qp, &wqe->sges[i], IBV_ACCESS_LOCAL_WRITE);
        if (!mr)
            return IBV_WC_LOC_PROT_ERR;
        enum shca_kind kind = (enum shca_kind)mr->kind;
        shca_mr_end(mr);
        if (!gpu_turn(job->qp, kind) || !gpu_turn(job->qp, (enum shca_kind)job->mr->kind))
            return SHCA_AGAIN;
    }
    return IBV_WC_SUCCESS;
}

static int atomic_word(struct job *job, struct shca_wqe *wqe)
{
    int status = fetch_check(job);
    if (status != IBV_WC_SUCCESS)
        return status;
    if (wqe->remote % wqe->change.width)
        return refuse(job, IBV_WC_REM_INV_REQ_ERR);
    status = target_begin(job, wqe, wqe->change.width, IBV_ACCESS_REMOTE_ATOMIC);
    if (status != IBV_WC_SUCCESS)
        return status;
    uint64_t old = 0;
    status = result_check(job, wqe);
    if (status == IBV_WC_SUCCESS)
        status = by_mail(job) ? shca_mail_run(job->qp, wqe, SHCA_MAIL_BATCH)
                              : change_locked(job, wqe, &old);
    shca_mr_end(job->mr);
    return status;
}

bool shca_may_join(struct shca_qp *qp, const struct shca_wqe *wqe, uint64_t *address)
{
    struct job job = {.qp = qp, .peer = qp->peer};
    bool write = wqe->opcode == IBV_WR_RDMA_WRITE, read = wqe->opcode == IBV_WR_RDMA_READ;
    bool word =
        wqe->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || wqe->opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
    if (!(write || read || word) || !wqe->bytes)
        return false;
    job.dest = &qp->peer->segment->qps[qp->attr.dest_qp_num & (SHCA_QPS - 1)];
    if (!write && (!qp->attr.max_rd_atomic || qp->attr.max_rd_atomic > job.dest->reads_in))
        return false;
    uint32_t access = write  ? IBV_ACCESS_REMOTE_WRITE
                      : read ? IBV_ACCESS_REMOTE_READ
                             : IBV_ACCESS_REMOTE_ATOMIC;
    if ((word && wqe->remote % wqe->change.width) ||
        target_find(&job, wqe, wqe->bytes, access) != IBV_WC_SUCCESS)
        return false;
    bool good = job.mr->kind == SHCA_GPU && (!word || result_check(&job, wqe) == IBV_WC_SUCCESS);
    shca_mr_end(job.mr);
    *address = job.address;
    return good;
}

bool shca_write_passes(struct shca_qp *qp, const struct shca_wqe *wqe)
{
    struct job job = {0};
    if (!wqe->bytes || wqe->bytes > (uint64_t)shca_settings.max_msg || !answers(qp, &job) ||
        target_find(&job, wqe, wqe->bytes, IBV_ACCESS_REMOTE_WRITE) != IBV_WC_SUCCESS)
        return false;
    bool host = job.mr->kind == SHCA_HOST;
    shca_mr_end(job.mr);
    return host;
}

// What the target has acknowledged it places, whatever becomes of its queue pair.
void shca_place(struct shca_qp *qp, struct shca_peer *peer, const struct shca_wqe *wqe)
{
    struct job job = {.qp = qp, .peer = peer, .mr = shca_mr_begin(peer->segment, wqe->key)};
    if (!job.mr)
        return;
    if (is_inside(&job, wqe, wqe->bytes) && (int)job.mr->proc == peer->proc) {
        job.mapped = shca_peer_map(peer, job.mr, wqe->key, job.address);
        (void)move_all(&job, wqe, true);
    }
    shca_mr_end(job.mr);
}

int shca_execute(struct shca_qp *qp, struct shca_wqe *wqe)
{
    struct job job = {0};
    if (wqe->opcode == SHCA_WR_NOP)
        return wqe->early_status;
    if (wqe->bytes > (uint64_t)shca_settings.max_msg)
        return IBV_WC_LOC_LEN_ERR;
    if (!answers(qp, &job))
        return shca_mail_pending(qp) ? SHCA_AGAIN : SHCA_NO_ANSWER;
    switch (wqe->opcode) {
    case IBV_WR_RDMA_WRITE: return write_data(&job, wqe);
    case IBV_WR_RDMA_WRITE_WITH_IMM: return write_with_imm(&job, wqe);
    case IBV_WR_RDMA_READ: return read_data(&job, wqe);
    case IBV_WR_SEND:
    case IBV_WR_SEND_WITH_IMM: return notify(&job, wqe);
    default: return atomic_word(&job, wqe);
    }
}
