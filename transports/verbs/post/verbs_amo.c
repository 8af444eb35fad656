// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE
// Atomics. A NIC knows two, on 8-byte words: fetch-and-add and compare-and-swap. They serve add and
// cswap of 8 bytes. All others are loops of compare-and-swaps: guess the word, try, and take the
// value found as the next guess. A fetch is a read: adding 0 would write, and undo a put that comes
// in between. What changes 4 bytes works on the containing word if the NIC is atomic to all
// writers of its other half (IBV_ATOMIC_GLOB; an add to the upper half needs no loop then,
// since the carry falls out), and else as verbs_lock.c has it. A loop is driven by progress();
// several may be under way in a flow, but nothing overtakes one on its own word.
#include "transports/verbs/post/verbs_posting.h"

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

bool gpsh_verbs_amo_native(const struct verbs_flow *flow, const struct verbs_slot *slot)
{
    switch (slot->amo) {
    case GPSH_AMO_FETCH: return true;
    case GPSH_AMO_ADD:
        return slot->width == 8 || (slot->remote & 4 && !gpsh_verbs_lock_needed(flow, slot));
    case GPSH_AMO_CSWAP: return slot->width == 8;
    default: return false;
    }
}

// The word that the operation makes of `word`.
static uint64_t changed_word(const struct verbs_slot *slot, uint64_t word)
{
    uint64_t mask = mask_of(slot);
    unsigned shift = slot->width == 4 ? shift_of(slot) : 0;
    return (word & ~mask) | (gpsh_verbs_amo_apply(slot, word >> shift) << shift & mask);
}

static uint64_t compare_bits(const struct verbs_slot *slot)
{
    return slot->width == 8 ? slot->compare : (slot->compare & UINT32_MAX) << shift_of(slot);
}

static bool post_swap(struct verbs_flow *flow, int index)
{
    struct verbs_loop *loop = &flow->loops[index];
    struct verbs_slot *slot = &flow->slots[loop->slot];
    if (!gpsh_verbs_lane_reserve(verbs_agent_lane(flow), 1))
        return false;
    loop->desired = changed_word(slot, loop->guess);
    struct ibv_send_wr *wr =
        gpsh_verbs_atomic_request(flow, slot, slot->region, loop->word, WQE_LOOP);
    wr->opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
    wr->wr.atomic.compare_add = loop->guess;
    wr->wr.atomic.swap = loop->desired;
    verbs_lane_last(verbs_agent_lane(flow))->loop = (uint8_t)index;
    return true;
}

static bool post_loop(struct verbs_flow *flow, int index)
{
    if (!(flow->loops[index].lock ? gpsh_verbs_lock_post(flow, index) : post_swap(flow, index)))
        return false;
    flow->loops_ready &= ~(1u << index);
    return true;
}

static uint64_t first_guess(const struct verbs_flow *flow, const struct verbs_slot *slot,
                            uint64_t word)
{
    uint64_t guess = flow->cached_word == word ? flow->cached_value : 0;
    if (slot->amo == GPSH_AMO_CSWAP) // only a guess that would swap is worth trying
        guess = (guess & ~mask_of(slot)) | compare_bits(slot);
    return guess;
}

static bool issue_loop(struct verbs_flow *flow, struct verbs_slot *slot)
{
    uint32_t unused = ~flow->loops_used & ((1u << VERBS_LOOPS) - 1);
    if (!unused)
        return false;
    int index = __builtin_ctz(unused);
    struct verbs_loop *loop = &flow->loops[index];
    *loop = (struct verbs_loop){.slot = (uint32_t)(slot - flow->slots), .word = word_of(slot)};
    if (gpsh_verbs_lock_needed(flow, slot))
        gpsh_verbs_lock_begin(flow, loop);
    else
        loop->guess = first_guess(flow, slot, loop->word);
    if (!post_loop(flow, index))
        return false;
    flow->loops_used |= 1u << index;
    slot->parts++; // the loop itself, until it succeeds
    return true;
}

// A read, which any rail may do.
static bool issue_fetch(struct verbs_flow *flow, struct verbs_slot *slot)
{
    if (!gpsh_verbs_lane_reserve(verbs_home(flow), 1))
        return false;
    gpsh_verbs_read_word(verbs_home(flow), slot, WQE_AMO);
    return true;
}

bool gpsh_verbs_amo_issue(struct verbs_flow *flow, struct verbs_slot *slot)
{
    if (slot->amo == GPSH_AMO_FETCH)
        return issue_fetch(flow, slot);
    if (gpsh_verbs_atomics_lost(flow))
        return false;
    if (slot->looping)
        return issue_loop(flow, slot);
    if (!gpsh_verbs_lane_reserve(verbs_agent_lane(flow), 1))
        return false;
    if (slot->amo == GPSH_AMO_CSWAP) {
        struct ibv_send_wr *wr =
            gpsh_verbs_atomic_request(flow, slot, slot->region, slot->remote, WQE_AMO);
        wr->opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
        wr->wr.atomic.compare_add = slot->compare;
        wr->wr.atomic.swap = slot->operand;
        return true;
    }
    gpsh_verbs_add_request(flow, slot, slot->region, word_of(slot),
                           slot->width == 4 ? slot->operand << shift_of(slot) : slot->operand);
    return true;
}

// Posts the next step of every loop that has one.
void gpsh_verbs_loops_post(struct verbs_flow *flow)
{
    if (!flow->loops_ready || flow->doubts || gpsh_verbs_atomics_lost(flow))
        return;
    while (flow->loops_ready && post_loop(flow, __builtin_ctz(flow->loops_ready)))
        continue;
}

static uint64_t part_of(const struct verbs_slot *slot, uint64_t word)
{
    return slot->width == 4 ? (uint32_t)(word >> shift_of(slot)) : word;
}

void gpsh_verbs_amo_retire(struct verbs_flow *flow, struct verbs_slot *slot, uint64_t value)
{
    gpsh_verbs_deliver(flow, slot, slot->amo == GPSH_AMO_FETCH ? value : part_of(slot, value));
}

void gpsh_verbs_loop_retire(struct verbs_flow *flow, int index, struct verbs_slot *slot,
                            uint64_t found)
{
    struct verbs_loop *loop = &flow->loops[index];
    if (loop->lock) {
        gpsh_verbs_lock_retire(flow, index, found);
        return;
    }
    if (found == loop->guess) {
        flow->cached_word = loop->word;
        flow->cached_value = loop->desired;
        gpsh_verbs_loop_finish(flow, index, part_of(slot, found));
        return;
    }
    flow->channel->stats.cas_retries++;
    if (slot->amo == GPSH_AMO_CSWAP && ((found ^ compare_bits(slot)) & mask_of(slot))) {
        gpsh_verbs_loop_finish(flow, index, part_of(slot, found));
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
