// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE
// Failover: a flow loses one of its lanes, and goes on over the others (docs/adr/0016). Nobody
// knows which of the lane's unacknowledged requests were executed. Operations that may be executed
// twice without anybody seeing it are issued again, whole; if there is another one among them, the
// flow fails.
#include <stdio.h>

#include "transports/verbs/post/verbs_posting.h"

enum { WORD_BYTES = 8 };

// Position of a slot that is in use in the order of posting.
static uint64_t position_of(const struct verbs_flow *flow, uint32_t index)
{
    uint64_t completed = flow->pub->completed;
    return completed + ((index - completed) & flow->slot_mask);
}

// A get has told nobody anything. Of a put, the source must still be there, and no part of it may
// be a flag: a word that the target saw and changed since must not come back. A put that is larger
// than a word is none, and its signal must not have been sent.
static bool may_repeat(const struct verbs_flow *flow, const struct verbs_wqe *wqe)
{
    const struct verbs_slot *slot = &flow->slots[wqe->slot];
    if (wqe->kind != WQE_PLAIN && wqe->kind != WQE_READ)
        return false;
    bool issued = position_of(flow, wqe->slot) < flow->issued;
    // a read before anything of a put was sent looks at what others wrote (verbs_order.c)
    if (slot->kind == GPSH_OP_GET || (wqe->kind == WQE_READ && !slot->offset && !issued))
        return true;
    bool signalled = slot->kind == GPSH_OP_PUT_SIGNAL && issued;
    bool kept = slot->borrowed || slot->flags & GPSH_OP_KEPT;
    return kept && slot->bytes > WORD_BYTES && !signalled && slot->kind != GPSH_OP_AMO;
}

// Of two puts with a fence between them the second may have told the target of the first, and the
// target have changed that memory since: the first must not come back.
static bool all_may_repeat(const struct verbs_lane *lane)
{
    bool written = false, told = false;
    for (uint32_t at = lane->tail; at != lane->head; at++) {
        const struct verbs_wqe *wqe = &lane->wqes[at & lane->mask];
        const struct verbs_slot *slot = &lane->flow->slots[wqe->slot];
        if (slot == verbs_note_slot(lane->flow))
            continue;
        bool starts =
            at == lane->tail || slot != &lane->flow->slots[lane->wqes[(at - 1) & lane->mask].slot];
        told |= written && starts && slot->after_fence;
        written |= wqe->kind == WQE_PLAIN;
        if (!may_repeat(lane->flow, wqe) || (told && wqe->kind == WQE_PLAIN))
            return false;
    }
    return true;
}

static int other_rail(const struct verbs_lane *lane)
{
    const struct verbs_flow *flow = lane->flow;
    for (int i = 0; i < flow->n_rails; i++)
        if (i != lane->rail && !flow->lanes[i].failed)
            return i;
    return -1;
}

static void mark(struct verbs_flow *flow, struct verbs_slot *slot)
{
    flow->repeats += slot->repeat == VERBS_REPEAT_NOT;
    slot->repeat = VERBS_REPEAT_DRAINS;
}

// The slots of everything that the lane has under way, and its chain, which no NIC has seen.
static void mark_all(struct verbs_lane *lane)
{
    struct verbs_flow *flow = lane->flow;
    for (uint32_t at = lane->tail; at != lane->head; at++) {
        struct verbs_slot *slot = &flow->slots[lane->wqes[at & lane->mask].slot];
        if (slot != verbs_note_slot(flow))
            mark(flow, slot);
        if (lane->head - at <= lane->count)
            slot->parts--;
    }
    gpsh_verbs_lane_drop_chain(lane);
}

static void leave(struct verbs_lane *lane, int other)
{
    struct verbs_flow *flow = lane->flow;
    if (flow->home == lane->rail)
        flow->home = (uint8_t)other;
    gpsh_verbs_flow_activate(flow);
}

static bool lane_out(struct verbs_lane *lane, const char *why)
{
    struct verbs_flow *flow = lane->flow;
    struct gpsh_verbs *verbs = flow->channel->verbs;
    int other = other_rail(lane);
    if (flow->pub->error || other < 0 || !all_may_repeat(lane))
        return false;
    mark_all(lane);
    gpsh_verbs_lane_kill(lane);
    atomic_fetch_or(&verbs->peers[flow->pe].lost_rails, UINT64_C(1) << lane->rail);
    flow->note_due = flow->note_there != 0;
    leave(lane, other);
    GPSH_LOG(WARN, "verbs", "%s; transfers to PE %d go on over %s, which repeats %u operations",
             why, flow->pe, verbs->rails[other].name, flow->repeats);
    return true;
}

void gpsh_verbs_lane_fail(struct verbs_lane *lane, int code, const char *why)
{
    if (!lane->failed && !lane_out(lane, why))
        gpsh_verbs_flow_fail(lane->flow, code, why);
}

// The word has room for one state only, so it holds what all channels have found.
bool gpsh_verbs_note_send(struct verbs_flow *flow)
{
    uint64_t rails = atomic_load(&flow->channel->verbs->peers[flow->pe].lost_rails);
    struct verbs_slot *slot = verbs_note_slot(flow);
    slot->region = GPSH_CONTROL;
    if (!gpsh_verbs_lane_reserve(verbs_home(flow), 1) ||
        !gpsh_verbs_write_word(flow, slot, GPSH_CONTROL, flow->note_there, &rails, sizeof rails))
        return false;
    flow->note_due = false;
    return true;
}

// Nobody answers there any more. The queue pair itself stays: the peer may have something under way
// by it. What this PE has under way by it is left to the NIC.
void gpsh_verbs_flow_told(struct verbs_flow *flow)
{
    uint64_t rails =
        atomic_load(flow->note) | atomic_load(&flow->channel->verbs->peers[flow->pe].lost_rails);
    for (int i = 0; i < flow->n_rails; i++) {
        struct verbs_lane *lane = &flow->lanes[i];
        int other = other_rail(lane);
        if (!(rails >> i & 1) || lane->failed || lane->head != lane->tail || other < 0)
            continue;
        lane->failed = true;
        GPSH_LOG(INFO, "verbs",
                 "transfers to PE %d go over %s from now on: %s has lost the connection to it",
                 flow->pe, flow->channel->verbs->rails[other].name,
                 flow->channel->verbs->rails[i].name);
        leave(lane, other);
    }
}

static void begin_again(struct verbs_slot *slot)
{
    slot->repeat = VERBS_REPEAT_GOES;
    slot->offset = 0;
    slot->pieces = 0;
    slot->fenced = true; // it may have been
}

// In the order of posting, each when nothing of it is under way any more. Returns whether the next
// operation may be issued: `slot`, the first that has not been issued whole.
bool gpsh_verbs_repeats_issue(struct verbs_flow *flow, struct verbs_slot *next)
{
    for (uint64_t n = flow->pub->completed; n != flow->issued && flow->repeats; n++) {
        struct verbs_slot *slot = &flow->slots[n & flow->slot_mask];
        if (slot->repeat == VERBS_REPEAT_NOT)
            continue;
        if (slot->repeat == VERBS_REPEAT_DRAINS && slot->parts)
            return false;
        if (slot->repeat == VERBS_REPEAT_DRAINS)
            begin_again(slot);
        if (!gpsh_verbs_rma_issue(flow, slot) || flow->pub->error)
            return false;
        slot->repeat = VERBS_REPEAT_NOT;
        flow->repeats--;
    }
    if (!next || next->repeat == VERBS_REPEAT_NOT)
        return true;
    if (next->parts)
        return false;
    begin_again(next);
    next->repeat = VERBS_REPEAT_NOT;
    flow->repeats--;
    return true;
}
