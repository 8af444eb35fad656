// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE
// A lane is lost, and some of its unacknowledged requests may not be executed twice. How far the
// peer got is a number: that of the packet which its queue pair would have taken next. The peer is
// asked for it by another rail (its side is setup/verbs_answer.c); every request takes a known
// number of packets, so the number says which were executed. Those are complete; the others are
// issued again, in their order. Meanwhile the flow issues nothing new.
#include <stdio.h>
#include <stdlib.h>

#include "core/clock.h"
#include "transports/verbs/post/verbs_posting.h"

enum {
    MS = 1000000,
    ASK_AGAIN_NS = 500 * MS, // the question, or the answer, went by a rail that was lost meanwhile
    YIELD_NS = 200 * MS,     // so long other channels leave a channel its turn
    AWAY_NS = 50 * MS,       // a channel that is driven less often is not waiting
    LOOK_NS = MS,
};

static uint32_t question_of(const struct verbs_lane *lane)
{
    const struct verbs_channel *channel = lane->flow->channel;
    return verbs_question((uint32_t)(channel - channel->verbs->channels), lane->rail);
}

static uint64_t packets_between(const struct verbs_lane *lane, uint32_t from, uint32_t end)
{
    uint64_t packets = 0;
    for (; from != end; from++)
        packets += verbs_packets(lane, &lane->wqes[from & lane->mask]);
    return packets;
}

// Four bytes at a time, under a lock there that only the rail of atomics can release.
static bool holds_lock(const struct verbs_lane *lane)
{
    const struct verbs_flow *flow = lane->flow;
    uint32_t loops = lane->rail == flow->agent ? flow->loops_used : 0;
    for (uint32_t rest = loops; rest; rest &= rest - 1)
        if (flow->loops[__builtin_ctz(rest)].lock)
            return true;
    return false;
}

// More packets than half of all numbers would leave it open which of two requests is meant.
static bool may_ask(const struct verbs_lane *lane)
{
    const struct verbs_flow *flow = lane->flow;
    return flow->note_there && !flow->pub->error &&
           flow->channel->verbs->env.settings->verbs_failover_ms > 0 &&
           gpsh_verbs_other_rail(lane) >= 0 && !holds_lock(lane) &&
           packets_between(lane, lane->tail, lane->head) < VERBS_PSNS / 2;
}

bool gpsh_verbs_doubt_begin(struct verbs_lane *lane, int code, const char *why)
{
    struct verbs_flow *flow = lane->flow;
    struct gpsh_verbs *verbs = flow->channel->verbs;
    struct verbs_doubt *doubt = may_ask(lane) ? calloc(1, sizeof *doubt) : NULL;
    if (!doubt)
        return false;
    doubt->question = question_of(lane);
    doubt->seen = lane->tail;
    doubt->end = lane->head - lane->count;
    doubt->code = code;
    doubt->driven_ns = gpsh_clock_ns();
    doubt->until_ns =
        doubt->driven_ns + (uint64_t)verbs->env.settings->verbs_failover_ms * UINT64_C(1000000);
    snprintf(doubt->why, sizeof doubt->why, "%s", why);
    lane->first = lane->count = 0;
    lane->doubt = doubt;
    flow->doubts++;
    flow->repeats++;
    gpsh_verbs_lane_kill(lane);
    gpsh_verbs_lane_leave(lane);
    GPSH_LOG(INFO, "verbs", "%s; PE %d is asked by %s how far it got", why, flow->pe,
             verbs->rails[flow->home].name);
    return true;
}

void gpsh_verbs_doubt_flushed(struct verbs_lane *lane, uint32_t position)
{
    lane->doubt->seen = position + 1;
}

// ------------------------------------------------------------------------------------------ asking

// One question at a time to each PE: the last one that some channel has written. Its turn ends with
// the answer, or when the channel is not driven for a while.
static bool has_turn(struct verbs_lane *lane, uint64_t now)
{
    struct verbs_peer *peer = lane->flow->peer;
    uint32_t asked = atomic_load(&peer->question), own = lane->doubt->question;
    if (asked && asked != own && now - atomic_load(&peer->asked_ns) < YIELD_NS)
        return false;
    if (asked != own && !atomic_compare_exchange_strong(&peer->question, &asked, own))
        return false;
    if (asked != own)
        lane->doubt->asked_ns = 0;
    return true;
}

static void ask(struct verbs_lane *lane, uint64_t now)
{
    struct verbs_flow *flow = lane->flow;
    struct verbs_doubt *doubt = lane->doubt;
    uint64_t question = doubt->question;
    if (doubt->asked_ns && now - doubt->asked_ns < ASK_AGAIN_NS)
        return;
    if (!gpsh_verbs_lane_reserve(verbs_home(flow), 1) ||
        !gpsh_verbs_write_word(flow, verbs_note_slot(flow), GPSH_CONTROL, flow->question_there,
                               &question, sizeof question))
        return;
    doubt->asked_ns = now;
    verbs_watch(flow);
    atomic_store(&flow->peer->asked_ns, now);
}

static void look(struct verbs_flow *flow, uint64_t now)
{
    if (flow->looking == flow->home + 1 || now - flow->looked_ns < LOOK_NS ||
        !gpsh_verbs_lane_reserve(verbs_home(flow), 1))
        return;
    gpsh_verbs_read_control(verbs_home(flow), verbs_note_slot(flow), flow->answer_there,
                            WQE_ANSWER);
    flow->looking = (uint8_t)(flow->home + 1);
    flow->looked_ns = now;
}

static void give_up(struct verbs_lane *lane, const char *reason)
{
    const struct verbs_doubt *doubt = lane->doubt;
    char why[480];
    snprintf(why, sizeof why, "%s; what of it was executed is not known: %s", doubt->why, reason);
    gpsh_verbs_flow_fail(lane->flow, doubt->code, why);
}

// ----------------------------------------------------------------------------------------- the
// answer

// The signal is the last request of its operation.
static bool is_signal(const struct verbs_lane *lane, uint32_t at)
{
    const struct verbs_flow *flow = lane->flow;
    uint32_t slot = lane->wqes[at & lane->mask].slot;
    if (flow->slots[slot].kind != GPSH_OP_PUT_SIGNAL ||
        flow->slots[slot].repeat == VERBS_REPEAT_GOES ||
        gpsh_verbs_slot_number(flow, slot) >= flow->issued)
        return false;
    for (at++; at != lane->head; at++) {
        const struct verbs_wqe *later = &lane->wqes[at & lane->mask];
        if (later->slot == slot && later->kind != WQE_BACK)
            return false;
    }
    return true;
}

// What a write sent is still there: in the program's memory, in the bounce block that the request
// holds, or where inline payloads stay.
static bool has_source(const struct verbs_slot *slot, const struct verbs_wqe *wqe)
{
    return slot->borrowed || slot->flags & GPSH_OP_KEPT || slot->pieces == 1;
}

// Whether the operation of a request can be completed, knowing whether the request was executed.
static bool can_go_on(const struct verbs_lane *lane, uint32_t at, bool executed)
{
    const struct verbs_flow *flow = lane->flow;
    const struct verbs_wqe *wqe = &lane->wqes[at & lane->mask];
    const struct verbs_slot *slot = &flow->slots[wqe->slot];
    bool fetches = slot->kind == GPSH_OP_AMO && slot->result;
    switch (wqe->kind) {
    case WQE_PLAIN:
        return executed || slot == verbs_note_slot(flow) || is_signal(lane, at) ||
               has_source(slot, wqe);
    case WQE_AMO: return !executed || !fetches || slot->amo == GPSH_AMO_FETCH || slot->completion;
    case WQE_LOOP: return !executed; // else nobody knows whether it swapped
    default: return true;
    }
}

static void keep_source(struct verbs_lane *lane, struct verbs_slot *slot, uint32_t at)
{
    struct verbs_wqe *wqe = &lane->wqes[at & lane->mask];
    bool in_block = wqe->block != VERBS_NO_BLOCK;
    bool whole = slot->pieces == 1 && slot->offset == slot->bytes;
    if (slot->borrowed || !whole || (!in_block && slot->flags & GPSH_OP_KEPT))
        return;
    slot->local = in_block ? gpsh_verbs_bounce_at(&lane->flow->channel->bounce, wqe->block)
                           : verbs_lane_inlined(lane, at); // which is not used any more
    slot->block = wqe->block;
    wqe->block = VERBS_NO_BLOCK;
    slot->where = VERBS_ELSEWHERE;
    slot->flags |= GPSH_OP_LOCAL_HOST;
}

static void repeat_plain(struct verbs_lane *lane, struct verbs_slot *slot, uint32_t at, bool signal)
{
    if (slot == verbs_note_slot(lane->flow)) {
        lane->flow->note_due = true;
        return;
    }
    if (!signal)
        keep_source(lane, slot, at);
    gpsh_verbs_slot_repeat(lane->flow, slot, signal ? VERBS_REPEAT_SIGNAL : VERBS_REPEAT_DRAINS);
}

static void settle_amo(struct verbs_flow *flow, struct verbs_slot *slot, bool executed)
{
    bool read = slot->kind == GPSH_OP_AMO && slot->amo == GPSH_AMO_FETCH;
    if (executed && !read)
        slot->repeat = slot->kind == GPSH_OP_AMO && slot->result ? VERBS_REPEAT_LOST : slot->repeat;
    else
        gpsh_verbs_slot_repeat(
            flow, slot, slot->kind == GPSH_OP_AMO ? VERBS_REPEAT_DRAINS : VERBS_REPEAT_SIGNAL);
}

static void settle(struct verbs_lane *lane, uint32_t at, bool executed)
{
    struct verbs_flow *flow = lane->flow;
    struct verbs_wqe *wqe = &lane->wqes[at & lane->mask];
    struct verbs_slot *slot = &flow->slots[wqe->slot];
    switch (wqe->kind) {
    case WQE_PLAIN:
        if (!executed)
            repeat_plain(lane, slot, at, is_signal(lane, at));
        break;
    case WQE_READ: gpsh_verbs_slot_repeat(flow, slot, VERBS_REPEAT_DRAINS); break;
    case WQE_AMO: settle_amo(flow, slot, executed); break;
    case WQE_LOOP: flow->loops_ready |= 1u << wqe->loop; break;
    default: break;
    }
    slot->parts--;
    lane->reads -= wqe->kind != WQE_PLAIN;
    lane->cq->used--;
    gpsh_verbs_bounce_give(&flow->channel->bounce, wqe->block);
}

// The first request that was not executed whole, if the target's queue pair expects packet `psn`;
// `end` + 1 if that cannot be.
static uint32_t first_left(const struct verbs_lane *lane, uint32_t psn)
{
    uint32_t end = lane->doubt->end;
    uint32_t under_way = (uint32_t)packets_between(lane, lane->tail, end);
    uint32_t later = (uint32_t)packets_between(lane, end, lane->head) - (lane->head - end);
    uint32_t next = lane->first_psn + end + lane->more - later; // of a request posted at `end`
    uint32_t executed = (psn - (next - under_way)) & (VERBS_PSNS - 1);
    if (executed > under_way)
        return end + 1;
    uint32_t at = lane->tail;
    for (uint32_t n = 0; at != end; at++) {
        n += verbs_packets(lane, &lane->wqes[at & lane->mask]);
        if (n > executed)
            break;
    }
    return at;
}

static bool all_can_go_on(const struct verbs_lane *lane, uint32_t left)
{
    for (uint32_t at = lane->tail; at != lane->head; at++)
        if (!can_go_on(lane, at, at - lane->tail < left - lane->tail))
            return false;
    return true;
}

static void finish(struct verbs_lane *lane, uint32_t left)
{
    struct verbs_flow *flow = lane->flow;
    struct verbs_peer *peer = flow->peer;
    uint32_t first = lane->tail, own = lane->doubt->question;
    uint32_t before = flow->repeats;
    for (uint32_t at = first; at != lane->head; at++)
        settle(lane, at, at - first < left - first);
    GPSH_LOG(WARN, "verbs",
             "%s; it had executed %u of %u requests; transfers go on over %s, which repeats %u "
             "operations",
             lane->doubt->why, left - first, lane->doubt->end - first,
             flow->channel->verbs->rails[flow->home].name, flow->repeats - before);
    lane->tail = lane->head;
    free(lane->doubt);
    lane->doubt = NULL;
    flow->doubts--;
    flow->repeats--;
    atomic_compare_exchange_strong(&peer->question, &own, 0);
}

// Where writes may be placed in any order, some after the first that is missing may be there.
static void answered(struct verbs_lane *lane, uint32_t answer)
{
    uint32_t left = answer & VERBS_ANSWER_KNOWN ? first_left(lane, answer & (VERBS_PSNS - 1)) : 0;
    if (!(answer & VERBS_ANSWER_KNOWN))
        give_up(lane, "the NIC there does not tell");
    else if (left == lane->doubt->end + 1)
        give_up(lane, "what the NIC there tells cannot be");
    else if (lane->loose && !gpsh_verbs_may_repeat(lane, left))
        give_up(lane, "the network may have delivered later packets before earlier ones");
    else if (!all_can_go_on(lane, left))
        give_up(lane, "something cannot be repeated, or its answer was lost");
    else
        finish(lane, left);
}

// The program may compute for longer than the peer has time to answer, or be stopped: the answer is
// looked for when it is back.
static void count_wait(struct verbs_doubt *doubt, uint64_t now)
{
    uint64_t away_ns = now - doubt->driven_ns;
    if (away_ns > AWAY_NS)
        doubt->until_ns += away_ns;
    doubt->driven_ns = now;
}

static void drive(struct verbs_lane *lane, uint64_t now)
{
    struct verbs_flow *flow = lane->flow;
    count_wait(lane->doubt, now);
    if (!gpsh_verbs_lane_is_flushed(lane))
        return;
    if (flow->answer >> 32 == lane->doubt->question) {
        answered(lane, (uint32_t)flow->answer);
    } else if (now >= lane->doubt->until_ns) {
        give_up(lane, "that PE has not told it within GPUSHMEM_VERBS_FAILOVER_MS");
    } else if (has_turn(lane, now)) {
        ask(lane, now);
        look(flow, now);
    }
}

void gpsh_verbs_doubts_drive(struct verbs_flow *flow)
{
    uint64_t now = gpsh_clock_ns();
    for (int i = 0; i < flow->n_rails && !flow->pub->error; i++)
        if (flow->lanes[i].doubt)
            drive(&flow->lanes[i], now);
    gpsh_verbs_flow_advance(flow); // what was executed is complete, even if what follows fails
}
