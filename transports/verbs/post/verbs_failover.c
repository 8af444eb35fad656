// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE
// Failover: a flow loses one of its lanes, and goes on over the others (docs/design/failures.md).
// Nobody here knows which of the lane's unacknowledged requests were executed. Operations that may
// be executed twice without anybody seeing it are issued again, whole; if there is another one
// among them, the peer is asked (verbs_doubt.c), and if it cannot be, the flow fails.
#include <stdio.h>

#include "transports/verbs/post/verbs_posting.h"

// The slots of everything that the lane has under way, and its chain, which no NIC has seen.
static void mark_all(struct verbs_lane *lane)
{
    struct verbs_flow *flow = lane->flow;
    for (uint32_t at = lane->tail; at != lane->head; at++) {
        struct verbs_slot *slot = &flow->slots[lane->wqes[at & lane->mask].slot];
        if (slot != verbs_note_slot(flow))
            gpsh_verbs_slot_repeat(flow, slot, VERBS_REPEAT_DRAINS);
        if (lane->head - at <= lane->count)
            slot->parts--;
    }
    gpsh_verbs_lane_drop_chain(lane);
}

static bool lane_out(struct verbs_lane *lane, const char *why)
{
    struct verbs_flow *flow = lane->flow;
    struct gpsh_verbs *verbs = flow->channel->verbs;
    int other = gpsh_verbs_other_rail(lane);
    if (flow->pub->error || other < 0 || !gpsh_verbs_may_repeat(lane, lane->tail))
        return false;
    mark_all(lane);
    gpsh_verbs_lane_kill(lane);
    gpsh_verbs_lane_leave(lane);
    GPSH_LOG(WARN, "verbs", "%s; transfers to PE %d go on over %s, which repeats %u operations",
             why, flow->pe, verbs->rails[other].name, flow->repeats);
    return true;
}

void gpsh_verbs_lane_fail(struct verbs_lane *lane, int code, const char *why)
{
    verbs_enter(lane->flow);
    if (!lane->failed && !lane_out(lane, why) && !gpsh_verbs_doubt_begin(lane, code, why))
        gpsh_verbs_flow_fail(lane->flow, code, why);
}

// The word has room for one state only, so it holds what all channels have found.
bool gpsh_verbs_note_send(struct verbs_flow *flow)
{
    uint64_t rails = atomic_load(&flow->peer->lost_rails);
    struct verbs_slot *slot = verbs_note_slot(flow);
    slot->region = GPSH_CONTROL;
    if (!gpsh_verbs_lane_reserve(verbs_home(flow), 1) ||
        !gpsh_verbs_write_word(flow, slot, GPSH_CONTROL, flow->note_there, &rails, sizeof rails))
        return false;
    flow->note_due = false;
    verbs_watch(flow);
    return true;
}

// Nobody answers there any more. The queue pair itself stays: the peer may have something under way
// by it. What this PE has under way by it is left to the NIC.
void gpsh_verbs_flow_told(struct verbs_flow *flow)
{
    uint64_t rails = atomic_load(flow->note) | atomic_load(&flow->peer->lost_rails);
    for (int i = 0; i < flow->n_rails; i++) {
        struct verbs_lane *lane = &flow->lanes[i];
        int other = gpsh_verbs_other_rail(lane);
        if (!(rails >> i & 1) || lane->failed || lane->head != lane->tail || other < 0)
            continue;
        lane->failed = flow->damaged = true;
        GPSH_LOG(INFO, "verbs",
                 "transfers to PE %d go over %s from now on: %s has lost the connection to it",
                 flow->pe, flow->channel->verbs->rails[other].name,
                 flow->channel->verbs->rails[i].name);
        gpsh_verbs_lane_give_way(lane);
    }
}
