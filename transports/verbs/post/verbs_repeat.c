// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE
// Operations that are issued again, by another lane than the one that was lost: which may be, and
// in which order (docs/design/failures.md).
#include "transports/verbs/post/verbs_posting.h"

enum { WORD_BYTES = 8 };

uint64_t gpsh_verbs_slot_number(const struct verbs_flow *flow, uint32_t index)
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
    bool back = wqe->kind == WQE_BACK;
    if (wqe->kind != WQE_PLAIN && wqe->kind != WQE_READ && !back)
        return false;
    bool issued = gpsh_verbs_slot_number(flow, wqe->slot) < flow->issued;
    // a read before anything of a put was sent looks at what others wrote (verbs_order.c)
    if (slot->kind == GPSH_OP_GET || (back && !slot->offset && !issued))
        return true;
    bool signalled = slot->kind == GPSH_OP_PUT_SIGNAL && issued;
    bool kept = slot->borrowed || slot->flags & GPSH_OP_KEPT;
    return kept && slot->bytes > WORD_BYTES && !signalled && slot->kind != GPSH_OP_AMO;
}

// Of two puts with a fence between them the second may have told the target of the first, and the
// target have changed that memory since: the first must not come back.
bool gpsh_verbs_may_repeat(const struct verbs_lane *lane, uint32_t from)
{
    bool written = false, told = false;
    for (uint32_t at = from; at != lane->head; at++) {
        const struct verbs_wqe *wqe = &lane->wqes[at & lane->mask];
        const struct verbs_slot *slot = &lane->flow->slots[wqe->slot];
        if (slot == verbs_note_slot(lane->flow))
            continue;
        bool starts =
            at == from || slot != &lane->flow->slots[lane->wqes[(at - 1) & lane->mask].slot];
        told |= written && starts && slot->after_fence;
        written |= wqe->kind == WQE_PLAIN;
        if (!may_repeat(lane->flow, wqe) || (told && wqe->kind == WQE_PLAIN))
            return false;
    }
    return true;
}

void gpsh_verbs_slot_repeat(struct verbs_flow *flow, struct verbs_slot *slot, enum verbs_repeat how)
{
    flow->repeats += slot->repeat == VERBS_REPEAT_NOT;
    if (slot->repeat != VERBS_REPEAT_DRAINS)
        slot->repeat = (uint8_t)how;
}

static void begin_again(struct verbs_slot *slot)
{
    bool signal_only = slot->repeat == VERBS_REPEAT_SIGNAL;
    slot->repeat = VERBS_REPEAT_GOES;
    slot->offset = signal_only ? slot->bytes : 0;
    slot->pieces = 0;
    slot->fenced = true; // it may have been
}

static bool waits_to_drain(const struct verbs_slot *slot)
{
    return slot->repeat == VERBS_REPEAT_DRAINS || slot->repeat == VERBS_REPEAT_SIGNAL;
}

static bool is_repeated(const struct verbs_slot *slot)
{
    return slot->repeat != VERBS_REPEAT_NOT && slot->repeat < VERBS_REPEAT_LOST;
}

static bool slot_go_on(struct verbs_flow *flow, struct verbs_slot *slot)
{
    if (waits_to_drain(slot) && slot->parts)
        return false;
    if (waits_to_drain(slot))
        begin_again(slot);
    bool issued = slot->kind == GPSH_OP_AMO ? gpsh_verbs_amo_issue(flow, slot)
                                            : gpsh_verbs_rma_issue(flow, slot);
    return issued && !flow->pub->error;
}

// Each when nothing of it is under way any more.
bool gpsh_verbs_repeats_issue(struct verbs_flow *flow, struct verbs_slot *next)
{
    if (flow->doubts)
        return false;
    for (uint64_t n = flow->pub->completed; n != flow->issued && flow->repeats; n++) {
        struct verbs_slot *slot = &flow->slots[n & flow->slot_mask];
        if (!is_repeated(slot))
            continue;
        if (!slot_go_on(flow, slot))
            return false;
        slot->repeat = VERBS_REPEAT_NOT;
        flow->repeats--;
    }
    if (!next || !is_repeated(next))
        return true;
    if (next->parts)
        return false;
    begin_again(next);
    next->repeat = VERBS_REPEAT_NOT;
    flow->repeats--;
    return true;
}
