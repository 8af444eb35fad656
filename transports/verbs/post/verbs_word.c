// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE
// Requests on single words, and what their answers become.
#include "transports/verbs/post/verbs_posting.h"

// A request whose answer goes to the results, at its position.
static struct ibv_send_wr *fetching_request(struct verbs_lane *lane, struct verbs_slot *slot,
                                            uint32_t bytes, uint8_t kind)
{
    size_t position = lane->head & lane->mask;
    struct ibv_send_wr *wr = verbs_lane_next(lane, slot, kind);
    wr->sg_list->addr = (uintptr_t)&lane->results[position];
    wr->sg_list->length = bytes;
    wr->sg_list->lkey = lane->results_key;
    return wr;
}

struct ibv_send_wr *gpsh_verbs_atomic_request(struct verbs_flow *flow, struct verbs_slot *slot,
                                              int region, uint64_t word, uint8_t kind)
{
    struct verbs_lane *lane = verbs_agent_lane(flow);
    struct ibv_send_wr *wr = fetching_request(lane, slot, sizeof(uint64_t), kind);
    wr->wr.atomic.remote_addr = word;
    wr->wr.atomic.rkey = lane->rkeys[region];
    if (__builtin_expect(lane->apart && verbs_key_of_heap(region), 0)) { // it writes too
        lane->wrote_to = word;
        lane->wrote_bytes = sizeof(uint64_t);
        lane->wrote_key = lane->rkeys[region];
        lane->unread = true;
    }
    return wr;
}

void gpsh_verbs_read_word(struct verbs_lane *lane, struct verbs_slot *slot, uint8_t kind)
{
    struct ibv_send_wr *wr = fetching_request(lane, slot, slot->width, kind);
    wr->opcode = IBV_WR_RDMA_READ;
    wr->wr.rdma.remote_addr = slot->remote;
    wr->wr.rdma.rkey = lane->rkeys[slot->region];
}

void gpsh_verbs_read_control(struct verbs_lane *lane, struct verbs_slot *slot, uint64_t from,
                             uint8_t kind)
{
    struct ibv_send_wr *wr = fetching_request(lane, slot, sizeof(uint64_t), kind);
    wr->opcode = IBV_WR_RDMA_READ;
    wr->wr.rdma.remote_addr = from;
    wr->wr.rdma.rkey = lane->rkeys[GPSH_CONTROL];
}

void gpsh_verbs_add_request(struct verbs_flow *flow, struct verbs_slot *slot, int region,
                            uint64_t word, uint64_t value)
{
    struct ibv_send_wr *wr = gpsh_verbs_atomic_request(flow, slot, region, word, WQE_AMO);
    wr->opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
    wr->wr.atomic.compare_add = value;
}

void gpsh_verbs_add_signal(struct verbs_flow *flow, struct verbs_slot *slot)
{
    slot->result = NULL;
    gpsh_verbs_add_request(flow, slot, slot->signal_region, slot->signal, slot->operand);
}

// A word of up to 8 bytes to an address in that region, by the home lane, where there is room
// for a request. False if no block is free, which it takes on a device without inline payloads.
bool gpsh_verbs_write_word(struct verbs_flow *flow, struct verbs_slot *slot, uint8_t region,
                           uint64_t to, const void *word, uint32_t bytes)
{
    struct verbs_lane *lane = verbs_home(flow);
    struct verbs_bounce *bounce = &flow->channel->bounce;
    bool inlined = lane->inline_stride >= VERBS_SIGNAL_BYTES;
    uint16_t block = inlined ? VERBS_NO_BLOCK : gpsh_verbs_bounce_take(bounce, bytes);
    if (!inlined && block == VERBS_NO_BLOCK)
        return false;
    struct ibv_send_wr *wr = verbs_lane_next(lane, slot, WQE_PLAIN);
    verbs_lane_writes(lane, wr, to, bytes, region);
    if (!inlined) {
        memcpy(gpsh_verbs_bounce_at(bounce, block), word, bytes);
        verbs_lane_block(lane, wr, block);
        return true;
    }
    char *copy = verbs_lane_inlined(lane, lane->head - 1);
    memcpy(copy, word, bytes);
    wr->send_flags |= IBV_SEND_INLINE;
    wr->sg_list->addr = (uintptr_t)copy;
    return true;
}

uint64_t gpsh_verbs_amo_apply(const struct verbs_slot *slot, uint64_t old)
{
    switch (slot->amo) {
    case GPSH_AMO_ADD: return old + slot->operand;
    case GPSH_AMO_AND: return old & slot->operand;
    case GPSH_AMO_OR: return old | slot->operand;
    case GPSH_AMO_XOR: return old ^ slot->operand;
    default: return slot->operand; // set, swap and cswap store it
    }
}

void gpsh_verbs_deliver(struct verbs_flow *flow, const struct verbs_slot *slot, uint64_t before)
{
    if (slot->result)
        verbs_copy(flow, slot, slot->result, &before, slot->width);
}

void gpsh_verbs_loop_finish(struct verbs_flow *flow, int index, uint64_t before)
{
    struct verbs_slot *slot = &flow->slots[flow->loops[index].slot];
    gpsh_verbs_deliver(flow, slot, before);
    flow->loops_used &= ~(1u << index);
    slot->parts--;
}
