// SPDX-License-Identifier: BSD-3-Clause
// Queues in GPU memory. A NIC reads and writes it across PCIe; a processor cannot map it, so the
// driver copies, in the engine's own stream, which waits for no kernel (gpu.c).
//
// What a kernel has written before it rang is there for a copy that is asked for after the ring was
// seen: its fences order WQEs, record and doorbell, and copies read what the GPU's memory holds for
// all. Completions are published in the other direction: the word with the owner bit last, and only
// when what they tell of has been waited for.
#include "mlx5.h"

// The part of the ring from that position on, as far as it is in a row; at most as many.
static uint32_t row(const struct shca_mlx5_queue *queue, uint64_t at, uint64_t end)
{
    enum { MOST = SHCA_MAIL_BYTES / MLX5_SEND_WQE_BB };
    uint64_t left = queue->blocks - at % queue->blocks;
    left = left < end - at ? left : end - at;
    return left < MOST ? (uint32_t)left : MOST;
}

static size_t offset_of(const struct shca_mlx5_queue *queue, uint64_t at)
{
    return at % queue->blocks * MLX5_SEND_WQE_BB;
}

// From where the image is right up to there, or less; *end: how far. Behind what was asked for
// before.
static int blocks_ask(struct shca_mlx5_queue *queue, uint64_t *end)
{
    size_t offset = offset_of(queue, queue->copied);
    uint32_t n = row(queue, queue->copied, *end);
    *end = queue->copied + n;
    return n ? shca_gpu_read(queue->far.device, queue->ring + offset, queue->far.ring + offset,
                             (size_t)n * MLX5_SEND_WQE_BB)
             : IBV_WC_SUCCESS;
}

// The record, and behind it the few blocks that it probably covers: the engine waits once. Those
// that it does not cover are asked for again. No block that is still to be compared is lost.
static int record_and_blocks_ask(struct shca_mlx5_queue *queue, uint64_t *end)
{
    enum { FEW = 8 };
    struct shca_mlx5_far *far = &queue->far;
    uint64_t room = queue->compared + queue->blocks;
    int status = shca_gpu_read(far->device, far->words, far->record, sizeof far->words);
    *end = queue->posted + FEW < room ? queue->posted + FEW : room;
    queue->copied = queue->posted;
    return status == IBV_WC_SUCCESS && *end > queue->copied ? blocks_ask(queue, end) : status;
}

int shca_mlx5_records_fetch(struct shca_mlx5_queue *queue)
{
    struct shca_mlx5_cq *cq = ((struct shca_cq *)queue->qp->ibv.send_cq)->mlx5;
    uint64_t end = queue->posted;
    int status = IBV_WC_SUCCESS;
    if (queue->far.device)
        status = record_and_blocks_ask(queue, &end);
    if (cq && cq->far.device && status == IBV_WC_SUCCESS)
        status = shca_gpu_read(cq->far.device, cq->far.words, cq->far.record, sizeof cq->far.words);
    if (status == IBV_WC_SUCCESS)
        status = shca_gpu_finish(queue->qp->device);
    queue->copied = end;
    return status;
}

int shca_mlx5_cq_record_fetch(struct shca_mlx5_cq *cq)
{
    struct shca_mlx5_far *far = &cq->far;
    int status = shca_gpu_read(far->device, far->words, far->record, sizeof far->words);
    return status == IBV_WC_SUCCESS ? shca_gpu_finish(far->device) : status;
}

int shca_mlx5_blocks_fetch(struct shca_mlx5_queue *queue, uint64_t end)
{
    int status = IBV_WC_SUCCESS;
    while (queue->copied < end && status == IBV_WC_SUCCESS) {
        uint64_t next = end;
        status = blocks_ask(queue, &next);
        queue->copied = next;
    }
    return status == IBV_WC_SUCCESS ? shca_gpu_finish(queue->far.device) : status;
}

uint64_t shca_mlx5_blocks_compare(struct shca_mlx5_queue *queue, uint64_t end)
{
    char *now = queue->far.device->block->data;
    uint64_t first = queue->compared, at = first;
    queue->compared = end;
    for (uint32_t n; at < end; at += n) {
        n = row(queue, at, end);
        if (shca_gpu_read(queue->far.device, now, queue->far.ring + offset_of(queue, at),
                          (size_t)n * MLX5_SEND_WQE_BB) != IBV_WC_SUCCESS ||
            shca_gpu_finish(queue->far.device) != IBV_WC_SUCCESS)
            return end;
        for (uint32_t i = 0; i < n; i++)
            if (memcmp(now + (size_t)i * MLX5_SEND_WQE_BB, queue->ring + offset_of(queue, at + i),
                       MLX5_SEND_WQE_BB) != 0)
                return at + i;
    }
    return end;
}

int shca_mlx5_cqe_store(struct shca_mlx5_cq *cq, uint64_t number, const struct mlx5_cqe64 *cqe)
{
    char *entry = cq->far.ring + number % cq->entries * sizeof *cqe;
    return shca_gpu_publish(cq->far.device, entry, cqe, sizeof *cqe);
}
