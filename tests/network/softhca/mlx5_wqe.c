// SPDX-License-Identifier: BSD-3-Clause
// A WQE: from the bytes in the ring to a work request, and all that can be wrong with it. What
// hardware ignores although it is reserved is refused as well: the next generation may look at it.
#define _DEFAULT_SOURCE // endian.h
#include "mlx5.h"

enum {
    FENCE_BITS = 7 << 5,
    COMPLETION_BITS = 3 << 2,
    RESERVED_FLAGS = 1 << 4 | 1,
    OPMOD_4_BYTES = 8, // of masked atomics: 8 | log2(bytes) - 2
    OPMOD_8_BYTES = 9,
    INLINE_LENGTH = 0x3ff,
};

struct reader {
    const struct shca_mlx5_queue *queue;
    struct shca_wqe *wqe;
    const char *at; // the next segment
    uint32_t left;  // segments
    uint32_t index, opcode, opmod;
};

#define REFUSE(reader, kind, ...)                                                                  \
    (shca_misuse(SHCA_MISUSE_##kind, (reader)->queue->qp->ibv.qp_num, __VA_ARGS__), false)

static const void *segment_take(struct reader *r)
{
    const void *segment = r->at;
    r->at += SHCA_MLX5_SEGMENT;
    r->left--;
    return segment;
}

// A block that was not written since the last lap, or never, is told from one with a wrong index.
static void complain_of_index(const struct shca_mlx5_queue *queue, uint16_t index, bool empty)
{
    uint16_t expected = (uint16_t)queue->fetched;
    if (empty || index == (uint16_t)(expected - queue->blocks))
        shca_misuse(SHCA_MISUSE_RECORD_AHEAD, queue->qp->ibv.qp_num,
                    "the doorbell record covers WQE %u, which has not been written", expected);
    else
        shca_misuse(SHCA_MISUSE_WQE_INDEX, queue->qp->ibv.qp_num, "WQE %u says that it is %u",
                    expected, index);
}

uint32_t shca_mlx5_wqe_blocks(const struct shca_mlx5_queue *queue, const void *block)
{
    const struct mlx5_wqe_ctrl_seg *ctrl = block;
    uint32_t first = be32toh(ctrl->opmod_idx_opcode), second = be32toh(ctrl->qpn_ds);
    uint32_t qpn = second >> 8, size = second & 0x3f, own = queue->qp->ibv.qp_num;
    uint16_t index = (uint16_t)(first >> 8);
    bool empty = !first && !second;
    if (empty || index != (uint16_t)queue->fetched) {
        complain_of_index(queue, index, empty);
        return 0;
    }
    if (qpn != own) {
        shca_misuse(SHCA_MISUSE_WQE_QPN, own, "WQE %u is for queue 0x%06x", index, qpn);
        return 0;
    }
    if (!size || second & 0xc0) {
        shca_misuse(SHCA_MISUSE_WQE_SIZE, own, "WQE %u says that it has %u segments", index,
                    second & 0xff);
        return 0;
    }
    uint32_t blocks = (size * SHCA_MLX5_SEGMENT + MLX5_SEND_WQE_BB - 1) / MLX5_SEND_WQE_BB;
    if (queue->fetched + blocks > queue->posted) {
        shca_misuse(SHCA_MISUSE_WQE_CUT, own,
                    "WQE %u has %u blocks, of which the doorbell record covers %u", index, blocks,
                    (uint32_t)(queue->posted - queue->fetched));
        return 0;
    }
    return blocks;
}

static bool control_take(struct reader *r)
{
    const struct mlx5_wqe_ctrl_seg *ctrl = segment_take(r);
    uint32_t fence = (ctrl->fm_ce_se & FENCE_BITS) >> 5,
             completion = (ctrl->fm_ce_se & COMPLETION_BITS) >> 2;
    // 3, strong ordering, exists in hardware; this one does not do it. 1 is for local invalidates.
    if (fence > 4 || fence == 3)
        return REFUSE(r, WQE_FLAGS, "WQE %u has fence mode %u", r->index, fence);
    if (completion == 1 || ctrl->fm_ce_se & RESERVED_FLAGS)
        return REFUSE(r, WQE_FLAGS, "WQE %u has flags 0x%02x", r->index, ctrl->fm_ce_se);
    if (ctrl->dci_stream_channel_id)
        return REFUSE(r, WQE_RESERVED, "WQE %u has a DCI stream in its control segment", r->index);
    r->wqe->flags = (fence >= 2 ? IBV_SEND_FENCE : 0) | (completion ? IBV_SEND_SIGNALED : 0);
    return true;
}

static bool remote_take(struct reader *r)
{
    if (!r->left)
        return REFUSE(r, WQE_SIZE, "WQE %u has no remote address segment", r->index);
    const struct mlx5_wqe_raddr_seg *remote = segment_take(r);
    if (remote->reserved)
        return REFUSE(r, WQE_RESERVED, "WQE %u has 0x%08x behind its remote key", r->index,
                      be32toh(remote->reserved));
    r->wqe->remote = be64toh(remote->raddr);
    r->wqe->key = be32toh(remote->rkey);
    return true;
}

// The bytes follow their count at once, and end at the next whole segment.
static bool inline_take(struct reader *r, uint32_t count)
{
    uint32_t bytes = count & INLINE_LENGTH, limit = r->queue->qp->init.cap.max_inline_data;
    uint32_t segments = (4 + bytes + SHCA_MLX5_SEGMENT - 1) / SHCA_MLX5_SEGMENT;
    if (count & ~(MLX5_INLINE_SEG | INLINE_LENGTH))
        return REFUSE(r, INLINE_LENGTH, "WQE %u has an inline segment of count 0x%08x", r->index,
                      count);
    if (segments > r->left)
        return REFUSE(r, INLINE_LENGTH, "WQE %u has %u bytes inline, and %u segments for them",
                      r->index, bytes, r->left);
    if (r->wqe->bytes + bytes > limit)
        return REFUSE(r, INLINE_LENGTH,
                      "WQE %u has %u bytes inline, its queue pair was made for %u", r->index,
                      (uint32_t)r->wqe->bytes + bytes, limit);
    if (r->wqe->n_sge)
        return REFUSE(r, DATA_MIXED, "WQE %u has inline data and data segments", r->index);
    memcpy(r->wqe->payload + r->wqe->bytes, r->at + 4, bytes);
    r->wqe->is_inline = true;
    r->wqe->bytes += bytes;
    r->at += (size_t)segments * SHCA_MLX5_SEGMENT;
    r->left -= segments;
    return true;
}

static bool pointer_take(struct reader *r)
{
    const struct mlx5_wqe_data_seg *data = segment_take(r);
    uint32_t limit = r->queue->qp->init.cap.max_send_sge;
    if (!data->byte_count)
        return REFUSE(r, DATA_EMPTY, "WQE %u has a data segment of count 0, which means 2 GiB",
                      r->index);
    if ((uint32_t)r->wqe->n_sge == limit)
        return REFUSE(r, DATA_SEGMENTS, "WQE %u has more than the %u data segments of its queue",
                      r->index, limit);
    if (r->wqe->is_inline)
        return REFUSE(r, DATA_MIXED, "WQE %u has inline data and data segments", r->index);
    r->wqe->sges[r->wqe->n_sge++] =
        (struct ibv_sge){be64toh(data->addr), be32toh(data->byte_count), be32toh(data->lkey)};
    r->wqe->bytes += be32toh(data->byte_count);
    return true;
}

static bool data_take(struct reader *r, bool may_be_inline)
{
    while (r->left) {
        uint32_t count;
        memcpy(&count, r->at, sizeof count);
        count = be32toh(count);
        bool is_inline = count & MLX5_INLINE_SEG;
        if (is_inline && !may_be_inline)
            return REFUSE(r, DATA_INLINE, "WQE %u, opcode 0x%02x, has inline data", r->index,
                          r->opcode);
        if (is_inline ? !inline_take(r, count) : !pointer_take(r))
            return false;
    }
    return true;
}

static struct shca_change plain_change(const struct mlx5_wqe_atomic_seg *segment, bool add)
{
    return (struct shca_change){.add = add,
                                .width = 8,
                                .operand = be64toh(segment->swap_add),
                                .compare = be64toh(segment->compare),
                                .operand_mask = add ? 0 : UINT64_MAX,
                                .compare_mask = UINT64_MAX};
}

// Operand, compare, operand's mask, compare's mask; of an addition: operand, boundaries, nothing.
static struct shca_change narrow_change(const void *segment, bool add)
{
    uint32_t words[4];
    memcpy(words, segment, sizeof words);
    return (struct shca_change){.add = add,
                                .width = 4,
                                .operand = be32toh(words[0]),
                                .compare = be32toh(words[1]),
                                .operand_mask = be32toh(words[add ? 1 : 2]),
                                .compare_mask = be32toh(words[3])};
}

static bool change_take(struct reader *r)
{
    bool masked =
        r->opcode == MLX5_OPCODE_ATOMIC_MASKED_CS || r->opcode == MLX5_OPCODE_ATOMIC_MASKED_FA;
    bool add = r->opcode == MLX5_OPCODE_ATOMIC_FA || r->opcode == MLX5_OPCODE_ATOMIC_MASKED_FA;
    if (masked ? r->opmod != OPMOD_4_BYTES && r->opmod != OPMOD_8_BYTES : r->opmod)
        return REFUSE(r, WQE_OPMOD, "WQE %u, opcode 0x%02x, has modifier %u", r->index, r->opcode,
                      r->opmod);
    bool two = masked && !add && r->opmod == OPMOD_8_BYTES;
    if (r->left != (two ? 3 : 2))
        return REFUSE(r, WQE_SIZE, "WQE %u, opcode 0x%02x, has %u segments behind the address",
                      r->index, r->opcode, r->left);
    const void *segment = segment_take(r);
    struct shca_change change =
        r->opmod == OPMOD_4_BYTES ? narrow_change(segment, add) : plain_change(segment, add);
    if (masked && add && r->opmod == OPMOD_8_BYTES)
        change.operand_mask = change.compare; // boundaries
    if (two) {
        const struct mlx5_wqe_atomic_seg *masks = segment_take(r);
        change.operand_mask = be64toh(masks->swap_add);
        change.compare_mask = be64toh(masks->compare);
    }
    r->wqe->change = change;
    return true;
}

static bool atomic_parse(struct reader *r)
{
    if (shca_settings.atomic_cap == IBV_ATOMIC_NONE)
        return REFUSE(r, WQE_OPCODE, "WQE %u is an atomic, of which this NIC has none", r->index);
    if (!remote_take(r) || !change_take(r) || !data_take(r, false))
        return false;
    if (r->wqe->bytes != r->wqe->change.width)
        return REFUSE(r, ATOMIC_LENGTH, "WQE %u: an atomic of %u bytes has %u bytes for its result",
                      r->index, r->wqe->change.width, (uint32_t)r->wqe->bytes);
    r->wqe->opcode = r->wqe->change.add ? IBV_WR_ATOMIC_FETCH_AND_ADD : IBV_WR_ATOMIC_CMP_AND_SWP;
    return true;
}

static bool body_parse(struct reader *r)
{
    bool write = r->opcode == MLX5_OPCODE_RDMA_WRITE, read = r->opcode == MLX5_OPCODE_RDMA_READ;
    bool nop = r->opcode == MLX5_OPCODE_NOP;
    bool atomic = r->opcode == MLX5_OPCODE_ATOMIC_CS || r->opcode == MLX5_OPCODE_ATOMIC_FA ||
                  r->opcode == MLX5_OPCODE_ATOMIC_MASKED_CS ||
                  r->opcode == MLX5_OPCODE_ATOMIC_MASKED_FA;
    if (!write && !read && !nop && !atomic)
        return REFUSE(r, WQE_OPCODE, "WQE %u has opcode 0x%02x", r->index, r->opcode);
    if (!control_take(r))
        return false;
    if (nop)
        return true;
    if (atomic)
        return atomic_parse(r);
    if (r->opmod)
        return REFUSE(r, WQE_OPMOD, "WQE %u, opcode 0x%02x, has modifier %u", r->index, r->opcode,
                      r->opmod);
    if (!remote_take(r) || !data_take(r, write))
        return false;
    r->wqe->opcode = write ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ;
    return true;
}

void shca_mlx5_wqe_refuse(struct shca_wqe *wqe)
{
    wqe->opcode = SHCA_WR_NOP;
    wqe->bytes = 0;
    wqe->n_sge = 0;
    wqe->early_status = IBV_WC_LOC_QP_OP_ERR;
}

void shca_mlx5_wqe_parse(const struct shca_mlx5_queue *queue, const char *bytes,
                         struct shca_wqe *wqe)
{
    const struct mlx5_wqe_ctrl_seg *ctrl = (const void *)bytes;
    uint32_t first = be32toh(ctrl->opmod_idx_opcode);
    struct reader r = {.queue = queue, .wqe = wqe, .at = bytes};
    r.left = be32toh(ctrl->qpn_ds) & 0x3f;
    r.index = (uint16_t)(first >> 8);
    r.opcode = first & 0xff;
    r.opmod = first >> 24;
    wqe->opcode = SHCA_WR_NOP;
    wqe->hw_opcode = (uint8_t)r.opcode;
    if (!body_parse(&r))
        shca_mlx5_wqe_refuse(wqe);
}

// FNV-1a, over words.
uint64_t shca_mlx5_wqe_sum(const char *bytes, uint32_t blocks)
{
    uint64_t sum = 0xcbf29ce484222325u, word;
    for (size_t i = 0; i < (size_t)blocks * MLX5_SEND_WQE_BB; i += sizeof word) {
        memcpy(&word, bytes + i, sizeof word);
        sum = (sum ^ word) * 0x100000001b3u;
    }
    return sum;
}
