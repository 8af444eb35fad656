// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE
// Puts, gets and signals as work requests: zero-copy from registered memory, inline if small, else
// block by block through the bounce buffer; split at the largest message, striped over the rails
// when large.
#include "transports/verbs/post/verbs_posting.h"

enum { STRIPE_UNIT = 4096, LEAST_PACKET = 256 };

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t piece_bytes(const struct verbs_flow *flow, const struct verbs_slot *slot, int rail)
{
    const struct verbs_channel *channel = flow->channel;
    uint64_t bytes = least(slot->bytes - slot->offset, channel->verbs->rails[rail].max_message);
    if (slot->striped) {
        uint64_t share =
            (slot->bytes / flow->n_rails + STRIPE_UNIT - 1) / STRIPE_UNIT * STRIPE_UNIT;
        bytes = least(bytes, share);
    }
    return slot->where == VERBS_ELSEWHERE ? least(bytes, channel->bounce.large_bytes) : bytes;
}

// Of the last request: only those that may be several are noted.
static void count_packets(struct verbs_lane *lane, uint64_t bytes)
{
    if (bytes <= LEAST_PACKET)
        return;
    struct verbs_wqe *wqe = verbs_lane_last(lane);
    wqe->bytes = (uint32_t)bytes;
    lane->more += verbs_packets(lane, wqe) - 1;
}

// The caller counts its packets.
static struct ibv_send_wr *piece_request(struct verbs_lane *lane, struct verbs_slot *slot,
                                         uint64_t bytes)
{
    bool get = slot->kind == GPSH_OP_GET;
    struct ibv_send_wr *wr = verbs_lane_next(lane, slot, get ? WQE_READ : WQE_PLAIN);
    verbs_lane_writes(lane, wr, slot->remote + slot->offset, (uint32_t)bytes, slot->region);
    struct verbs_stats *stats = &lane->flow->channel->stats;
    if (get)
        wr->opcode = IBV_WR_RDMA_READ;
    if (get)
        stats->bytes_in += bytes;
    else
        stats->bytes_out += bytes;
    slot->offset += bytes;
    slot->pieces++;
    return wr;
}

// The payload is copied into the chain's own memory, so that the caller's
// may change before the doorbell rings.
static void set_inline(struct verbs_lane *lane, const struct verbs_slot *slot,
                       struct ibv_send_wr *wr, const char *from, uint32_t bytes)
{
    char *to = verbs_lane_inlined(lane, lane->head - 1);
    verbs_copy(lane->flow, slot, to, from, bytes);
    wr->send_flags |= IBV_SEND_INLINE;
    wr->sg_list->addr = (uintptr_t)to;
    wr->sg_list->length = bytes;
}

static bool issue_inline(struct verbs_lane *lane, struct verbs_slot *slot)
{
    const char *from = slot->local;
    struct ibv_send_wr *wr = piece_request(lane, slot, slot->bytes);
    set_inline(lane, slot, wr, from, (uint32_t)slot->bytes);
    gpsh_verbs_bounce_give(&lane->flow->channel->bounce, slot->block);
    slot->block = VERBS_NO_BLOCK;
    count_packets(lane, slot->bytes);
    return true;
}

// The source was captured in a block when the operation was accepted.
static bool issue_captured(struct verbs_lane *lane, struct verbs_slot *slot)
{
    struct ibv_send_wr *wr = piece_request(lane, slot, slot->bytes);
    verbs_lane_block(lane, wr, slot->block);
    slot->block = VERBS_NO_BLOCK;
    count_packets(lane, slot->bytes);
    return true;
}

static bool issue_bounced(struct verbs_lane *lane, struct verbs_slot *slot, uint64_t bytes)
{
    struct verbs_channel *channel = lane->flow->channel;
    uint16_t block = gpsh_verbs_bounce_take(&channel->bounce, bytes);
    if (block == VERBS_NO_BLOCK)
        return false;
    char *local = slot->local + slot->offset;
    struct ibv_send_wr *wr = piece_request(lane, slot, bytes);
    verbs_lane_block(lane, wr, block);
    struct verbs_wqe *wqe = verbs_lane_last(lane);
    wqe->to = local;
    wqe->bytes = (uint32_t)bytes;
    count_packets(lane, bytes);
    channel->stats.bounce_bytes += bytes;
    if (slot->kind != GPSH_OP_GET)
        verbs_copy(lane->flow, slot, gpsh_verbs_bounce_at(&channel->bounce, block), local, bytes);
    return true;
}

static bool issue_in_place(struct verbs_lane *lane, struct verbs_slot *slot, uint64_t bytes,
                           uint32_t lkey)
{
    char *local = slot->local + slot->offset;
    struct ibv_send_wr *wr = piece_request(lane, slot, bytes);
    wr->sg_list->addr = (uintptr_t)local;
    wr->sg_list->lkey = lkey;
    slot->borrowed = true;
    count_packets(lane, bytes);
    return true;
}

static bool fits_inline(const struct gpsh_verbs *verbs, const struct verbs_slot *slot)
{
    if (slot->kind == GPSH_OP_GET || slot->offset || slot->bytes > verbs->inline_bytes ||
        slot->striped)
        return false;
    // The processor reads an inline payload: never straight from GPU memory.
    return slot->where != VERBS_DEVICE_BUFFER && (verbs->host_heap || slot->where != VERBS_HEAP);
}

static bool issue_piece(struct verbs_flow *flow, struct verbs_slot *slot)
{
    struct gpsh_verbs *verbs = flow->channel->verbs;
    int rail = slot->striped ? (int)(slot->pieces % flow->n_rails) : flow->home;
    if (__builtin_expect(flow->lanes[rail].failed, 0))
        rail = flow->home;
    struct verbs_lane *lane = &flow->lanes[rail];
    if (!gpsh_verbs_lane_reserve(lane, 1))
        return false;
    if (fits_inline(verbs, slot))
        return issue_inline(lane, slot);
    if (slot->block != VERBS_NO_BLOCK)
        return issue_captured(lane, slot);
    uint64_t bytes = piece_bytes(flow, slot, rail);
    if (slot->where == VERBS_ELSEWHERE)
        return issue_bounced(lane, slot, bytes);
    if (slot->where == VERBS_BLOCK)
        return issue_in_place(lane, slot, bytes, flow->channel->bounce.mr[rail]->lkey);
    if (slot->where < VERBS_BUFFER)
        return issue_in_place(lane, slot, bytes, lane->lkeys[slot->where]);
    uint32_t lkey;
    if (!gpsh_verbs_buffer_lkey(verbs, slot->local, slot->bytes, rail, &lkey)) {
        slot->where = VERBS_ELSEWHERE; // unregistered while the operation waited
        return issue_piece(flow, slot);
    }
    return issue_in_place(lane, slot, bytes, lkey);
}

// The signal goes by the home lane after the data, which makes the order; data on other lanes must
// have arrived: it waits for the reads at the end of their chains. An atomic is executed after
// every write before it.
static bool issue_signal(struct verbs_flow *flow, struct verbs_slot *slot)
{
    struct verbs_lane *lane = verbs_home(flow);
    if (slot->striped && slot->parts)
        return false;
    if (slot->flags & GPSH_OP_SIGNAL_ADD && gpsh_verbs_atomics_lost(flow))
        return false;
    if (!(slot->flags & GPSH_OP_SIGNAL_ADD) && !gpsh_verbs_order_writes(lane, slot))
        return false;
    if (!gpsh_verbs_lane_reserve(lane, 1))
        return false;
    if (slot->flags & GPSH_OP_SIGNAL_ADD) {
        gpsh_verbs_add_signal(flow, slot);
        return true;
    }
    return gpsh_verbs_write_word(flow, slot, slot->signal_region, slot->signal, &slot->operand,
                                 VERBS_SIGNAL_BYTES);
}

bool gpsh_verbs_rma_issue(struct verbs_flow *flow, struct verbs_slot *slot)
{
    bool get = slot->kind == GPSH_OP_GET;
    if (slot->fenced && !slot->offset && !get && !gpsh_verbs_order_writes(verbs_home(flow), slot))
        return false;
    while (slot->offset < slot->bytes)
        if (!issue_piece(flow, slot))
            return false;
    return slot->kind != GPSH_OP_PUT_SIGNAL || issue_signal(flow, slot);
}
