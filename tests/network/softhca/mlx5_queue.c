// SPDX-License-Identifier: BSD-3-Clause
// Send queues in memory: mlx5dv_init_obj, doorbells, doorbell records, and which part of the ring
// is the NIC's.
#define _DEFAULT_SOURCE // endian.h
#include <errno.h>
#include <stdio.h>

#include "mlx5.h"

enum {
    VENDOR_OVERHEAD = 128, // bytes of an RC WQE before its data, as rdma-core reckons
    RECORD_SENDS = 1,      // MLX5_SND_DBR
};

// The functions of mlx5dv are in a library of their own, the tests' libmlx5.so.1, which calls
// these.
SHCA_EXPORT bool gpushmem_softhca_is_mlx5(void);
SHCA_EXPORT int gpushmem_softhca_init_obj(struct mlx5dv_obj *object, uint64_t types);

bool gpushmem_softhca_is_mlx5(void)
{
    return shca_settings.mlx5;
}

static uint32_t power_of_two(uint64_t n)
{
    uint32_t power = 1;
    while (power < n)
        power *= 2;
    return power;
}

static uint64_t whole_blocks(uint64_t bytes)
{
    return (bytes + MLX5_SEND_WQE_BB - 1) / MLX5_SEND_WQE_BB * MLX5_SEND_WQE_BB;
}

// rdma-core makes room for max_send_wr of the largest requests that the queue pair was made for.
static uint64_t blocks_for(const struct ibv_qp_cap *cap)
{
    uint64_t pointers = VENDOR_OVERHEAD + SHCA_MLX5_SEGMENT * (uint64_t)cap->max_send_sge;
    uint64_t text = 4 + (uint64_t)cap->max_inline_data;
    text = VENDOR_OVERHEAD + (text + SHCA_MLX5_SEGMENT - 1) / SHCA_MLX5_SEGMENT * SHCA_MLX5_SEGMENT;
    uint64_t largest = whole_blocks(cap->max_inline_data && text > pointers ? text : pointers);
    return cap->max_send_wr * largest / MLX5_SEND_WQE_BB;
}

static void registers_silence(struct shca_mlx5_queue *queue)
{
    for (size_t half = 0; half < 2; half++)
        atomic_store(queue->doorbell + half * SHCA_MLX5_BLUEFLAME / sizeof *queue->doorbell,
                     SHCA_MLX5_SILENT);
}

static void queue_free(struct shca_mlx5_queue *queue)
{
    if (queue->placed) {
        if (queue->far.device)
            free(queue->ring);
        free(queue);
        return;
    }
    shca_mlx5_ring_free(queue->ring, (size_t)queue->blocks * MLX5_SEND_WQE_BB);
    shca_mlx5_slot_give(SHCA_MLX5_RECORDS, (void *)queue->record);
    shca_mlx5_slot_give(SHCA_MLX5_REGISTERS, (void *)queue->doorbell);
    free(queue);
}

void shca_mlx5_mac_of(const unsigned char gid[16], unsigned char mac[6])
{
    memcpy(mac, (const unsigned char[]){2, gid[11], gid[12], gid[13], gid[14], gid[15]}, 6);
}

static struct shca_mlx5_queue *queue_new(struct shca_qp *qp)
{
    struct shca_mlx5_queue *queue = calloc(1, sizeof *queue);
    if (!queue)
        return NULL;
    queue->qp = qp;
    queue->blocks = power_of_two(blocks_for(&qp->init.cap));
    queue->ring = shca_mlx5_ring_new((size_t)queue->blocks * MLX5_SEND_WQE_BB);
    queue->record = shca_mlx5_slot_take(SHCA_MLX5_RECORDS);
    queue->doorbell = shca_mlx5_slot_take(SHCA_MLX5_REGISTERS);
    if (queue->ring && queue->record && queue->doorbell) {
        registers_silence(queue);
        return queue;
    }
    queue_free(queue);
    return NULL;
}

static int queue_add(struct shca_qp *qp, struct shca_mlx5_queue *queue)
{
    pthread_mutex_lock(&qp->device->engine_lock);
    bool first = !qp->mlx5; // two threads may ask at once
    if (first) {
        qp->mlx5 = queue;
        queue->next = qp->device->queues;
        qp->device->queues = queue;
    }
    pthread_mutex_unlock(&qp->device->engine_lock);
    if (!first)
        queue_free(queue);
    shca_engine_wake(qp->device->segment, qp->device->proc); // it looks at doorbells from now on
    return 0;
}

static bool images_make(struct shca_mlx5_queue *queue, const struct shca_mlx5_memory *memory)
{
    queue->far.device = queue->qp->device;
    queue->far.ring = memory->ring;
    queue->far.record = memory->record;
    queue->ring = calloc(queue->blocks, MLX5_SEND_WQE_BB);
    queue->record = queue->far.words;
    if (queue->ring && !shca_settings.quiet)
        shca_say("queue 0x%06x is in GPU memory, %u requests at %p: by copies",
                 queue->qp->ibv.qp_num, queue->blocks, (void *)memory->ring);
    return queue->ring;
}

int shca_mlx5_queue_place(struct ibv_qp *ibv, const struct shca_mlx5_memory *memory,
                          uint32_t blocks, void *doorbell)
{
    struct shca_mlx5_queue *queue = calloc(1, sizeof *queue);
    if (!queue)
        return ENOMEM;
    queue->qp = (struct shca_qp *)ibv;
    queue->ring = memory->ring;
    queue->blocks = blocks;
    queue->record = memory->record;
    queue->doorbell = doorbell;
    queue->placed = true;
    if (memory->gpu && !images_make(queue, memory)) {
        free(queue);
        return ENOMEM;
    }
    registers_silence(queue);
    return queue_add(queue->qp, queue);
}

bool shca_mlx5_is_far(const struct shca_qp *qp)
{
    const struct shca_mlx5_cq *cq = qp->mlx5 ? ((struct shca_cq *)qp->ibv.send_cq)->mlx5 : NULL;
    return qp->mlx5 && (qp->mlx5->far.device || (cq && cq->far.device));
}

static int queue_take(struct shca_qp *qp)
{
    if (qp->ibv.qp_type != IBV_QPT_RC)
        return EOPNOTSUPP;
    if (atomic_load(&qp->head) || blocks_for(&qp->init.cap) > SHCA_MLX5_BLOCKS)
        return EINVAL;
    struct shca_mlx5_queue *queue = queue_new(qp);
    if (!queue)
        return ENOMEM;
    return queue_add(qp, queue);
}

static int describe_queue(struct ibv_qp *ibv, struct mlx5dv_qp *out)
{
    struct shca_qp *qp = (struct shca_qp *)ibv;
    int error = qp->mlx5 ? 0 : queue_take(qp);
    if (error)
        return error;
    *out = (struct mlx5dv_qp){.dbrec = (__be32 *)(void *)qp->mlx5->record};
    out->sq.buf = qp->mlx5->ring;
    out->sq.wqe_cnt = qp->mlx5->blocks;
    out->sq.stride = MLX5_SEND_WQE_BB;
    out->bf.reg = (void *)qp->mlx5->doorbell;
    out->bf.size = SHCA_MLX5_BLUEFLAME;
    out->sqn = ibv->qp_num;
    return 0;
}

static struct mlx5_wqe_av *describe_address(struct shca_ah *ah)
{
    if (shca_settings.link == IBV_LINK_LAYER_ETHERNET) {
        shca_mlx5_mac_of(ah->path.target.raw, ah->av.rmac);
        ah->av.rlid = htobe16(0xc000); // the port that packets come from
    }
    return &ah->av;
}

int gpushmem_softhca_init_obj(struct mlx5dv_obj *object, uint64_t types)
{
    const uint64_t known = MLX5DV_OBJ_QP | MLX5DV_OBJ_CQ | MLX5DV_OBJ_PD | MLX5DV_OBJ_AH;
    if (!shca_settings.mlx5 || types & ~known)
        return EOPNOTSUPP;
    int error = types & MLX5DV_OBJ_QP ? describe_queue(object->qp.in, object->qp.out) : 0;
    if (!error && types & MLX5DV_OBJ_CQ)
        error = shca_mlx5_cq_describe(object->cq.in, object->cq.out);
    if (types & MLX5DV_OBJ_PD)
        object->pd.out->pdn = ((struct shca_pd *)object->pd.in)->id;
    if (types & MLX5DV_OBJ_AH)
        object->ah.out->av = describe_address((struct shca_ah *)object->ah.in);
    return error;
}

void shca_mlx5_queue_reset(struct shca_mlx5_queue *queue)
{
    queue->posted = queue->fetched = queue->done = queue->copied = queue->compared = 0;
    queue->failing = queue->broken = false;
    if (!queue->placed) // as libibverbs does it; what the program has placed it sets itself
        atomic_store(&queue->record[RECORD_SENDS], 0);
    registers_silence(queue);
}

void shca_mlx5_queue_free(struct shca_qp *qp)
{
    struct shca_mlx5_queue *queue = qp->mlx5;
    if (!queue)
        return;
    pthread_mutex_lock(&qp->device->engine_lock);
    struct shca_mlx5_queue **at = &qp->device->queues;
    while (*at != queue)
        at = &(*at)->next;
    *at = queue->next;
    qp->mlx5 = NULL;
    pthread_mutex_unlock(&qp->device->engine_lock);
    queue_free(queue);
}

// ---- Doorbells ----

// The program has done what cannot be undone: the queue pair fails, and nothing more is fetched.
#define FAIL(queue, kind, ...)                                                                     \
    do {                                                                                           \
        shca_misuse(SHCA_MISUSE_##kind, (queue)->qp->ibv.qp_num, __VA_ARGS__);                     \
        (queue)->failing = true;                                                                   \
    } while (0)

// The last ring is taken out of the register; rings in between are of no account, since the record
// says how far the queue is filled. The record is read after the register, as the program writes
// it before.
static uint64_t ring_take(_Atomic uint64_t *half)
{
    if (atomic_load_explicit(half, memory_order_relaxed) == SHCA_MLX5_SILENT)
        return SHCA_MLX5_SILENT;
    return atomic_exchange_explicit(half, SHCA_MLX5_SILENT, memory_order_acquire);
}

static void record_read(struct shca_mlx5_queue *queue)
{
    uint32_t raw =
        be32toh(atomic_load_explicit(&queue->record[RECORD_SENDS], memory_order_acquire));
    uint16_t ahead = (uint16_t)(raw - (uint32_t)queue->posted);
    if (raw >> 16) {
        FAIL(queue, RECORD_RESERVED, "its doorbell record is 0x%08x: more than 16 bits", raw);
        return;
    }
    if (ahead > 0x8000) {
        FAIL(queue, RECORD_BACK, "its doorbell record goes back from %u to %u",
             (uint16_t)queue->posted, raw);
        return;
    }
    uint64_t under_way = queue->posted + ahead - queue->done;
    if (under_way > queue->blocks) {
        FAIL(queue, SQ_OVERRUN, "%u blocks are under way in a ring of %u", (uint32_t)under_way,
             queue->blocks);
        return;
    }
    if (queue->far.device && ahead &&
        shca_mlx5_blocks_fetch(queue, queue->posted + ahead) != IBV_WC_SUCCESS)
        queue->broken = true; // what is wrong with the GPU has been said
    queue->posted += ahead;
}

static uint32_t ring_word(uint64_t ring, int i)
{
    uint32_t words[2];
    memcpy(words, &ring, sizeof ring);
    return be32toh(words[i]);
}

// A ring for another queue is not heard.
static bool is_heard(const struct shca_mlx5_queue *queue, uint64_t ring)
{
    uint32_t qpn = ring_word(ring, 1) >> 8, own = queue->qp->ibv.qp_num;
    if (ring != SHCA_MLX5_SILENT && qpn != own)
        shca_misuse(SHCA_MISUSE_DOORBELL_QPN, own, "its doorbell is rung for queue 0x%06x", qpn);
    return ring != SHCA_MLX5_SILENT && qpn == own;
}

// What is rung for must be covered by the record. Some ring with the control segment of the last
// WQE, which has a size, others with the index behind it, and no size.
static void ring_check(const struct shca_mlx5_queue *queue, uint64_t ring)
{
    bool is_wqe = ring_word(ring, 1) & 0x3f;
    uint16_t end = (uint16_t)((ring_word(ring, 0) >> 8) + is_wqe);
    uint16_t ahead = (uint16_t)(end - (uint16_t)queue->posted);
    if (ahead && ahead < 0x8000)
        shca_misuse(SHCA_MISUSE_DOORBELL_AHEAD, queue->qp->ibv.qp_num,
                    "its doorbell is rung for what is before %u, and its doorbell record says %u",
                    end, (uint16_t)queue->posted);
}

// Every time, where that costs nothing.
static bool looks_unasked(struct shca_mlx5_queue *queue)
{
    enum { SELDOM = 16 };
    return !shca_mlx5_is_far(queue->qp) || queue->looks++ % SELDOM == 0;
}

static void doorbells_answer(struct shca_mlx5_queue *queue)
{
    uint64_t rings[2];
    bool heard[2];
    for (size_t half = 0; half < 2; half++) {
        rings[half] =
            ring_take(queue->doorbell + half * SHCA_MLX5_BLUEFLAME / sizeof *queue->doorbell);
        heard[half] = is_heard(queue, rings[half]);
    }
    bool rung = heard[0] || heard[1];
    uint32_t state = atomic_load(&queue->qp->entry->state);
    if (rung && state != IBV_QPS_RTS && state != IBV_QPS_ERR) {
        shca_misuse(SHCA_MISUSE_DOORBELL_STATE, queue->qp->ibv.qp_num,
                    "its doorbell is rung in state %u, which is not ready to send", state);
        return;
    }
    // A NIC that is busy with a queue may look at its record before anybody rings.
    if (!rung && (queue->posted == queue->done || !looks_unasked(queue)))
        return;
    if (shca_mlx5_is_far(queue->qp) && shca_mlx5_records_fetch(queue) != IBV_WC_SUCCESS) {
        queue->broken = true;
        return;
    }
    record_read(queue);
    for (size_t half = 0; half < 2; half++)
        if (heard[half] && !queue->failing)
            ring_check(queue, rings[half]);
}

// ---- WQEs ----

// A WQE may begin near the end of the ring and end at its start.
static void ring_copy(const struct shca_mlx5_queue *queue, uint64_t position, uint32_t blocks,
                      char *to)
{
    for (uint32_t i = 0; i < blocks; i++)
        memcpy(to + (size_t)i * MLX5_SEND_WQE_BB,
               queue->ring + (position + i) % queue->blocks * MLX5_SEND_WQE_BB, MLX5_SEND_WQE_BB);
}

static struct shca_wqe *request_new(struct shca_mlx5_queue *queue, uint64_t position)
{
    struct shca_wqe *wqe = &queue->qp->sq[position % queue->qp->sq_depth];
    struct ibv_sge *sges = wqe->sges;
    char *payload = wqe->payload;
    *wqe = (struct shca_wqe){.sges = sges, .payload = payload, .early_status = IBV_WC_SUCCESS};
    wqe->index = (uint16_t)queue->fetched;
    wqe->wr_id = wqe->index;
    return wqe;
}

// One that says nothing but that the queue has failed, or what the next WQE says.
static void request_fill(struct shca_mlx5_queue *queue, struct shca_wqe *wqe, uint64_t position)
{
    char bytes[SHCA_MLX5_WQE_BYTES];
    uint32_t blocks = 0;
    if (!queue->failing) {
        ring_copy(queue, queue->fetched, 1, bytes);
        blocks = shca_mlx5_wqe_blocks(queue, bytes);
    }
    if (!blocks) {
        queue->broken = true;
        shca_mlx5_wqe_refuse(wqe);
        return;
    }
    ring_copy(queue, queue->fetched, blocks, bytes);
    shca_mlx5_wqe_parse(queue, bytes, wqe);
    wqe->blocks = (uint8_t)blocks;
    wqe->sum = shca_mlx5_wqe_sum(bytes, blocks);
    wqe->ready_ns = shca_ready_time(queue->qp, position, wqe->opcode);
    queue->fetched += blocks;
}

// NULL=1: nothing is looked at, and one CQE tells that all of it is done, for WQEs of one block.
static void fetch_nothing(struct shca_mlx5_queue *queue)
{
    if (queue->fetched == queue->posted)
        return;
    queue->fetched = queue->done = queue->posted;
    struct shca_cqe cqe = {.qp = queue->qp, .send = true, .index = (uint16_t)(queue->posted - 1)};
    cqe.wc.qp_num = queue->qp->ibv.qp_num;
    shca_cq_push(queue->qp->ibv.send_cq, &cqe);
}

static void fetch(struct shca_mlx5_queue *queue)
{
    struct shca_qp *qp = queue->qp;
    uint64_t before = atomic_load(&qp->head), head = before;
    while (!queue->broken && (queue->failing || queue->fetched != queue->posted) &&
           head - qp->exec < qp->sq_depth) {
        request_fill(queue, request_new(queue, head), head);
        head++;
    }
    if (head == before)
        return;
    atomic_store(&qp->head, head);
    shca_engine_submit(qp);
}

void shca_mlx5_look(struct shca_device *device)
{
    for (struct shca_mlx5_queue *queue = device->queues; queue; queue = queue->next) {
        if (!device->use_gpu && shca_mlx5_is_far(queue->qp))
            continue;
        if (!queue->broken && !queue->failing)
            doorbells_answer(queue);
        if (shca_settings.null)
            fetch_nothing(queue);
        else
            fetch(queue);
        shca_mlx5_cqe_release((struct shca_cq *)queue->qp->ibv.send_cq);
    }
}

// ---- Completions ----

static void status_explain(const struct shca_qp *qp, const struct shca_wqe *wqe, int status)
{
    uint32_t own = qp->ibv.qp_num;
    bool odd = wqe->change.width && wqe->remote % wqe->change.width;
    switch (status) {
    case IBV_WC_LOC_PROT_ERR:
        shca_misuse(SHCA_MISUSE_LOCAL_KEY, own,
                    "WQE %u: local key 0x%08x does not cover %u bytes at "
                    "0x%llx",
                    wqe->index, wqe->sges[0].lkey, wqe->sges[0].length,
                    (unsigned long long)wqe->sges[0].addr);
        break;
    case IBV_WC_LOC_LEN_ERR:
        shca_misuse(SHCA_MISUSE_LENGTH, own, "WQE %u: %llu bytes are too many", wqe->index,
                    (unsigned long long)wqe->bytes);
        break;
    case IBV_WC_REM_ACCESS_ERR:
        shca_misuse(SHCA_MISUSE_REMOTE_KEY, own,
                    "WQE %u: remote key 0x%08x does not cover %llu bytes "
                    "at 0x%llx",
                    wqe->index, wqe->key, (unsigned long long)wqe->bytes,
                    (unsigned long long)wqe->remote);
        break;
    case IBV_WC_REM_INV_REQ_ERR:
        shca_misuse(odd ? SHCA_MISUSE_ATOMIC_ALIGNMENT : SHCA_MISUSE_REMOTE_REQUEST, own,
                    "WQE %u: the other end refuses opcode 0x%02x at 0x%llx", wqe->index,
                    wqe->hw_opcode, (unsigned long long)wqe->remote);
        break;
    default: break;
    }
}

// Of a queue in GPU memory, where each look takes its time: when the program will hear of it.
static void changes_look_for(struct shca_mlx5_queue *queue, const struct shca_wqe *wqe)
{
    char bytes[SHCA_MLX5_WQE_BYTES];
    uint16_t changed = wqe->index;
    bool same;
    if (queue->far.device) {
        uint64_t first = wqe->flags & IBV_SEND_SIGNALED
                             ? shca_mlx5_blocks_compare(queue, queue->done)
                             : queue->done;
        same = first == queue->done;
        changed = (uint16_t)first;
    } else {
        ring_copy(queue, queue->done - wqe->blocks, wqe->blocks, bytes);
        same = shca_mlx5_wqe_sum(bytes, wqe->blocks) == wqe->sum;
    }
    if (!same)
        shca_misuse(SHCA_MISUSE_WQE_CHANGED, queue->qp->ibv.qp_num,
                    "WQE %u was written to before its completion", changed);
}

void shca_mlx5_completed(struct shca_qp *qp, const struct shca_wqe *wqe, int status, bool injected)
{
    struct shca_mlx5_queue *queue = qp->mlx5;
    queue->done += wqe->blocks;
    if (status == IBV_WC_SUCCESS)
        changes_look_for(queue, wqe);
    if (!injected)
        status_explain(qp, wqe, status);
}
