// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE
// Atomics. A NIC knows two, on 8-byte words: fetch-and-add and compare-and-swap. They serve add, fetch (add
// 0) and cswap; a 4-byte fetch too, and a 4-byte add to the upper half of its word, where the carry falls
// out. All others are compare-and-swap loops on the containing word: guess the word, try, and take the value
// found as the next guess. A loop is driven by progress(); several may be under way in a flow, but nothing
// overtakes one on its own word.
#include "verbs_internal.h"

static unsigned shift_of(const struct verbs_slot *slot)
{
    return slot->remote & 4 ? 32 : 0; // little-endian: the upper half has the higher address
}

static uint64_t mask_of(const struct verbs_slot *slot)
{
    return slot->width == 8 ? UINT64_MAX : (uint64_t)UINT32_MAX << shift_of(slot);
}

static uint64_t word_of(const struct verbs_slot *slot)
{
    return slot->remote & ~(uint64_t)7;
}

bool gpsh_verbs_amo_native(const struct verbs_slot *slot)
{
    switch (slot->amo) {
    case GPSH_AMO_FETCH: return true;
    case GPSH_AMO_ADD: return slot->width == 8 || slot->remote & 4;
    case GPSH_AMO_CSWAP: return slot->width == 8;
    default: return false;
    }
}

static struct ibv_send_wr *atomic_request(struct verbs_flow *flow, struct verbs_slot *slot, uint64_t word,
                                          uint8_t kind)
{
    struct verbs_channel *channel = flow->channel;
    struct verbs_lane *lane = &flow->lanes[0];
    size_t position = lane->head & lane->mask;
    struct ibv_send_wr *wr = verbs_lane_next(lane, slot, kind);
    wr->wr.atomic.remote_addr = word;
    wr->wr.atomic.rkey = lane->rkeys[slot->region];
    wr->sg_list->addr = (uintptr_t)&channel->results[(size_t)flow->pe * (lane->mask + 1) + position];
    wr->sg_list->length = sizeof(uint64_t);
    wr->sg_list->lkey = channel->results_mr->lkey;
    return wr;
}

static void issue_add(struct verbs_flow *flow, struct verbs_slot *slot, uint64_t word, uint64_t value)
{
    struct ibv_send_wr *wr = atomic_request(flow, slot, word, WQE_AMO);
    wr->opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
    wr->wr.atomic.compare_add = value;
}

// The signal of a put_signal with add; its old value is dropped.
void gpsh_verbs_amo_signal(struct verbs_flow *flow, struct verbs_slot *slot)
{
    slot->result = NULL;
    issue_add(flow, slot, slot->signal, slot->operand);
}

// The word that the operation makes of `word`.
static uint64_t apply(const struct verbs_slot *slot, uint64_t word)
{
    uint64_t mask = mask_of(slot);
    uint64_t operand = slot->width == 8 ? slot->operand : (slot->operand & UINT32_MAX) << shift_of(slot);
    uint64_t value = operand;
    switch (slot->amo) {
    case GPSH_AMO_ADD: value = word + operand; break;
    case GPSH_AMO_AND: value = word & operand; break;
    case GPSH_AMO_OR: value = word | operand; break;
    case GPSH_AMO_XOR: value = word ^ operand; break;
    default: break; // set, swap and cswap store the operand
    }
    return (word & ~mask) | (value & mask);
}

static uint64_t compare_bits(const struct verbs_slot *slot)
{
    return slot->width == 8 ? slot->compare : (slot->compare & UINT32_MAX) << shift_of(slot);
}

static void post_loop(struct verbs_flow *flow, int index)
{
    struct verbs_loop *loop = &flow->loops[index];
    struct verbs_slot *slot = &flow->slots[loop->slot];
    loop->desired = apply(slot, loop->guess);
    struct ibv_send_wr *wr = atomic_request(flow, slot, loop->word, WQE_LOOP);
    wr->opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
    wr->wr.atomic.compare_add = loop->guess;
    wr->wr.atomic.swap = loop->desired;
    verbs_lane_last(&flow->lanes[0])->loop = (uint8_t)index;
    flow->loops_ready &= ~(1u << index);
}

static bool issue_loop(struct verbs_flow *flow, struct verbs_slot *slot)
{
    uint32_t unused = ~flow->loops_used & ((1u << VERBS_LOOPS) - 1);
    if (!unused)
        return false;
    int index = __builtin_ctz(unused);
    struct verbs_loop *loop = &flow->loops[index];
    loop->slot = (uint32_t)(slot - flow->slots);
    loop->word = word_of(slot);
    loop->guess = flow->cached_word == loop->word ? flow->cached_value : 0;
    if (slot->amo == GPSH_AMO_CSWAP) // only a guess that would swap is worth trying
        loop->guess = (loop->guess & ~mask_of(slot)) | compare_bits(slot);
    flow->loops_used |= 1u << index;
    slot->parts++; // the loop itself, until it succeeds
    post_loop(flow, index);
    return true;
}

bool gpsh_verbs_amo_issue(struct verbs_flow *flow, struct verbs_slot *slot)
{
    if (!gpsh_verbs_lane_reserve(&flow->lanes[0], 1))
        return false;
    if (slot->looping)
        return issue_loop(flow, slot);
    if (slot->amo == GPSH_AMO_CSWAP) {
        struct ibv_send_wr *wr = atomic_request(flow, slot, slot->remote, WQE_AMO);
        wr->opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
        wr->wr.atomic.compare_add = slot->compare;
        wr->wr.atomic.swap = slot->operand;
        return true;
    }
    uint64_t value = slot->amo == GPSH_AMO_FETCH ? 0 : slot->operand;
    issue_add(flow, slot, word_of(slot), slot->width == 4 ? value << shift_of(slot) : value);
    return true;
}

// Posts the next attempt of every loop that lost its last one.
void gpsh_verbs_loops_post(struct verbs_flow *flow)
{
    while (flow->loops_ready && gpsh_verbs_lane_reserve(&flow->lanes[0], 1))
        post_loop(flow, __builtin_ctz(flow->loops_ready));
}

static void deliver(struct verbs_flow *flow, const struct verbs_slot *slot, uint64_t word)
{
    uint64_t value = word >> (slot->width == 4 ? shift_of(slot) : 0);
    if (slot->result)
        verbs_copy(flow, slot, slot->result, &value, slot->width);
}

void gpsh_verbs_amo_retire(struct verbs_flow *flow, struct verbs_slot *slot, uint64_t value)
{
    deliver(flow, slot, value);
}

static void finish_loop(struct verbs_flow *flow, struct verbs_slot *slot, int index, uint64_t found)
{
    deliver(flow, slot, found);
    flow->loops_used &= ~(1u << index);
    slot->parts--;
}

void gpsh_verbs_loop_retire(struct verbs_flow *flow, int index, struct verbs_slot *slot, uint64_t found)
{
    struct verbs_loop *loop = &flow->loops[index];
    if (found == loop->guess) {
        flow->cached_word = loop->word;
        flow->cached_value = loop->desired;
        finish_loop(flow, slot, index, found);
        return;
    }
    flow->channel->stats.cas_retries++;
    if (slot->amo == GPSH_AMO_CSWAP && ((found ^ compare_bits(slot)) & mask_of(slot))) {
        finish_loop(flow, slot, index, found);
        return;
    }
    loop->guess = found;
    flow->loops_ready |= 1u << index;
    gpsh_verbs_flow_activate(flow);
}

static bool covers(uint64_t start, uint64_t bytes, uint64_t word)
{
    return start < word + 8 && word < start + bytes;
}

// Whether the operation touches a word that a loop is working on.
bool gpsh_verbs_loops_overlap(const struct verbs_flow *flow, const struct verbs_slot *slot)
{
    uint64_t bytes = slot->kind == GPSH_OP_AMO ? slot->width : slot->bytes;
    for (uint32_t rest = flow->loops_used; rest; rest &= rest - 1) {
        uint64_t word = flow->loops[__builtin_ctz(rest)].word;
        if (covers(slot->remote, bytes, word))
            return true;
        if (slot->kind == GPSH_OP_PUT_SIGNAL && covers(slot->signal, VERBS_SIGNAL_BYTES, word))
            return true;
    }
    return false;
}
