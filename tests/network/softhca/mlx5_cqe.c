// SPDX-License-Identifier: BSD-3-Clause
// Completion queues in memory: a ring of CQEs, each with the lap's owner bit, and a record in which
// the program says how far it has come.
#define _DEFAULT_SOURCE // endian.h
#include <errno.h>
#include <stdio.h>

#include "mlx5.h"

enum {
    CONSUMER_BITS = 0xffffff,
    BURST_WAITS_NS = 100000, // so long an incomplete burst is held back
};

static struct shca_mlx5_cq *cq_new(const struct shca_cq *cq)
{
    struct shca_mlx5_cq *own = calloc(1, sizeof *own);
    if (!own)
        return NULL;
    own->entries = 2;
    while (own->entries < cq->depth + 1)
        own->entries *= 2;
    own->ring = shca_mlx5_ring_new((size_t)own->entries * sizeof(struct mlx5_cqe64));
    own->record = shca_mlx5_slot_take(SHCA_MLX5_RECORDS);
    own->page = shca_mlx5_slot_take(SHCA_MLX5_REGISTERS);
    for (uint32_t i = 0; own->ring && i < own->entries; i++)
        ((struct mlx5_cqe64 *)(void *)own->ring)[i].op_own = MLX5_CQE_INVALID << 4;
    return own;
}

static void cq_delete(struct shca_mlx5_cq *own)
{
    if (own->placed) {
        free(own);
        return;
    }
    shca_mlx5_ring_free(own->ring, (size_t)own->entries * sizeof(struct mlx5_cqe64));
    shca_mlx5_slot_give(SHCA_MLX5_RECORDS, (void *)own->record);
    shca_mlx5_slot_give(SHCA_MLX5_REGISTERS, own->page);
    free(own);
}

// With the queue's lock held: two threads may ask for the first time at once.
static int cq_take(struct shca_cq *cq)
{
    if (cq->mlx5)
        return 0;
    if (atomic_load(&cq->count)) // it has completions that were to be polled
        return EINVAL;
    struct shca_mlx5_cq *own = cq_new(cq);
    if (own && own->ring && own->record && own->page)
        cq->mlx5 = own;
    else if (own)
        cq_delete(own);
    return cq->mlx5 ? 0 : ENOMEM;
}

int shca_mlx5_cq_describe(struct ibv_cq *ibv, struct mlx5dv_cq *out)
{
    struct shca_cq *cq = (struct shca_cq *)ibv;
    pthread_mutex_lock(&cq->lock);
    int error = cq_take(cq);
    pthread_mutex_unlock(&cq->lock);
    if (error)
        return error;
    *out = (struct mlx5dv_cq){.buf = cq->mlx5->ring,
                              .dbrec = (__be32 *)(void *)cq->mlx5->record,
                              .cqe_cnt = cq->mlx5->entries,
                              .cqe_size = sizeof(struct mlx5_cqe64),
                              .cq_uar = (void *)((uintptr_t)cq->mlx5->page & ~(uintptr_t)4095)};
    return 0;
}

int shca_mlx5_cq_place(struct ibv_cq *ibv, const struct shca_mlx5_memory *memory, uint32_t entries)
{
    struct shca_mlx5_cq *own = calloc(1, sizeof *own);
    if (!own)
        return ENOMEM;
    own->ring = memory->ring;
    own->entries = entries;
    own->record = memory->record;
    own->placed = true;
    if (memory->gpu) {
        own->far.device = shca_device_of(ibv->context);
        own->far.ring = memory->ring;
        own->far.record = memory->record;
        own->ring = NULL;
        own->record = own->far.words;
    }
    ((struct shca_cq *)ibv)->mlx5 = own;
    return 0;
}

void shca_mlx5_cq_free(struct shca_cq *cq)
{
    if (cq->mlx5)
        cq_delete(cq->mlx5);
    cq->mlx5 = NULL;
}

static uint8_t syndrome_of(enum ibv_wc_status status)
{
    switch (status) {
    case IBV_WC_LOC_LEN_ERR: return MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR;
    case IBV_WC_LOC_QP_OP_ERR: return MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR;
    case IBV_WC_LOC_PROT_ERR: return MLX5_CQE_SYNDROME_LOCAL_PROT_ERR;
    case IBV_WC_WR_FLUSH_ERR: return MLX5_CQE_SYNDROME_WR_FLUSH_ERR;
    case IBV_WC_REM_INV_REQ_ERR: return MLX5_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR;
    case IBV_WC_REM_ACCESS_ERR: return MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR;
    case IBV_WC_REM_OP_ERR: return MLX5_CQE_SYNDROME_REMOTE_OP_ERR;
    case IBV_WC_RETRY_EXC_ERR: return MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR;
    case IBV_WC_RNR_RETRY_EXC_ERR: return MLX5_CQE_SYNDROME_RNR_RETRY_EXC_ERR;
    default: return 0xff; // none that is documented: rdma-core calls it a general error
    }
}

static uint8_t opcode_of(const struct shca_cqe *cqe)
{
    if (cqe->wc.status != IBV_WC_SUCCESS)
        return cqe->send ? MLX5_CQE_REQ_ERR : MLX5_CQE_RESP_ERR;
    if (cqe->send)
        return MLX5_CQE_REQ;
    return cqe->wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM ? MLX5_CQE_RESP_WR_IMM
           : cqe->wc.wc_flags & IBV_WC_WITH_IMM        ? MLX5_CQE_RESP_SEND_IMM
                                                       : MLX5_CQE_RESP_SEND;
}

static struct mlx5_cqe64 image_of(const struct shca_cqe *cqe)
{
    struct mlx5_cqe64 image = {0};
    image.byte_cnt = htobe32(cqe->wc.byte_len);
    image.timestamp = htobe64(shca_now_ns());
    if (cqe->wc.status != IBV_WC_SUCCESS) {
        struct mlx5_err_cqe *error = (struct mlx5_err_cqe *)(void *)&image;
        memset(&image, 0, sizeof image);
        error->syndrome = syndrome_of(cqe->wc.status);
        error->vendor_err_synd = (uint8_t)cqe->wc.status;
    }
    image.sop_drop_qpn = htobe32((uint32_t)cqe->hw_opcode << 24 | cqe->wc.qp_num);
    image.wqe_counter = htobe16(cqe->index);
    image.op_own = (uint8_t)(opcode_of(cqe) << 4);
    return image;
}

// False: the record is not to be believed.
static bool record_read(struct shca_mlx5_cq *own, uint32_t number)
{
    uint32_t raw = be32toh(atomic_load_explicit(&own->record[0], memory_order_acquire));
    uint32_t ahead = (raw - (uint32_t)own->consumed) & CONSUMER_BITS;
    if (raw & ~(uint32_t)CONSUMER_BITS)
        shca_misuse(SHCA_MISUSE_CQ_RECORD, number,
                    "the record of its completion queue is 0x%08x: more than 24 bits", raw);
    else if (ahead > own->produced - own->consumed)
        shca_misuse(SHCA_MISUSE_CQ_RECORD, number,
                    "the record of its completion queue says %u, between %u and %u it may be", raw,
                    (uint32_t)own->consumed & CONSUMER_BITS,
                    (uint32_t)own->produced & CONSUMER_BITS);
    else
        own->consumed += ahead;
    return own->produced + own->n_held - own->consumed < own->entries;
}

// The word with the owner bit is the last of the entry to be written.
static void write_out(struct shca_mlx5_cq *own)
{
    for (uint32_t i = 0; i < own->n_held; i++, own->produced++) {
        own->held[i].op_own |= own->produced / own->entries & 1;
        if (own->far.device)
            shca_mlx5_cqe_store(own, own->produced, &own->held[i]);
        else
            shca_copy(own->ring + own->produced % own->entries * sizeof *own->held, &own->held[i],
                      sizeof *own->held);
    }
    own->n_held = 0;
    if (own->far.device)
        shca_gpu_submit(own->far.device);
}

static uint32_t burst(void)
{
    return shca_settings.cqe_burst > 1 ? (uint32_t)shca_settings.cqe_burst : 1;
}

bool shca_mlx5_cqe_push(struct shca_cq *cq, const struct shca_cqe *cqe)
{
    struct shca_mlx5_cq *own = cq->mlx5;
    bool room = record_read(own, cqe->wc.qp_num);
    if (!room && own->far.device && shca_mlx5_cq_record_fetch(own) == IBV_WC_SUCCESS)
        room = record_read(own, cqe->wc.qp_num); // the image was old
    if (!room) {
        shca_misuse(SHCA_MISUSE_CQ_OVERRUN, cqe->wc.qp_num,
                    "no room in its completion queue of %u entries: %u of them are not consumed",
                    own->entries, (uint32_t)(own->produced + own->n_held - own->consumed));
        return false;
    }
    if (!own->n_held)
        own->held_since_ns = shca_now_ns();
    own->held[own->n_held++] = image_of(cqe);
    if (own->n_held >= burst())
        write_out(own);
    return true;
}

void shca_mlx5_cqe_release(struct shca_cq *cq)
{
    if (!cq->mlx5 || burst() == 1)
        return;
    pthread_mutex_lock(&cq->lock);
    if (cq->mlx5->n_held && shca_now_ns() - cq->mlx5->held_since_ns >= BURST_WAITS_NS)
        write_out(cq->mlx5);
    pthread_mutex_unlock(&cq->lock);
}
