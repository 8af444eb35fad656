// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE
// Lanes that have stopped. Soft-RoCE's requester may stop at a request with a fence and look at its
// queue again only when something is posted there; but what waits for that request posts nothing.
// So a small read is posted to a lane of which nothing has completed for a second. It is the last
// in the queue, belongs to the operation before it, and changes nothing at the peer.
#include "core/clock.h"
#include "transports/verbs/post/verbs_posting.h"

#define LOOK_NS  UINT64_C(250000000)
#define STILL_NS UINT64_C(1000000000)
enum { KICKS = 6 }; // after 1, 2, 4, ... s: a NIC that waits for a dead peer gets no more

static bool lane_is_out(const struct verbs_lane *lane)
{
    return lane->failed || lane->refused || lane->doubt || lane->flow->pub->error;
}

static bool kick_post(struct verbs_lane *lane)
{
    struct verbs_flow *flow = lane->flow;
    bool room = gpsh_verbs_lane_reserve(lane, 1);
    if (room) {
        struct verbs_slot *slot = &flow->slots[verbs_lane_last(lane)->slot];
        bool fenced = slot->fenced; // of what it has not issued yet
        slot->fenced = false;
        gpsh_verbs_read_control(lane, slot, flow->remote_base[GPSH_CONTROL], WQE_BACK);
        slot->fenced = fenced;
        gpsh_verbs_lane_flush(lane);
    }
    if (flow->refused)
        gpsh_verbs_flow_refused(flow);
    return room;
}

static void lane_look(struct verbs_lane *lane, uint64_t now)
{
    bool waits = lane->head - lane->tail > lane->count && !lane_is_out(lane);
    if (!waits || !lane->still_ns || lane->still_tail != lane->tail) {
        lane->still_tail = lane->tail;
        lane->still_ns = waits ? now : 0;
        lane->kicks = 0;
        return;
    }
    if (lane->kicks == KICKS || now - lane->still_ns < STILL_NS << lane->kicks || !kick_post(lane))
        return;
    lane->kicks++;
    lane->flow->channel->stats.kicks++;
    GPSH_LOG(DEBUG, "verbs", "PE %d over %s: nothing has completed for %.0f s; a read is posted",
             lane->flow->pe, lane->flow->channel->verbs->rails[lane->rail].name,
             (double)(now - lane->still_ns) * 1e-9);
}

// A flow with nothing under way leaves the list until something is posted to it.
static void flow_look(struct verbs_due *due)
{
    struct verbs_flow *flow =
        (struct verbs_flow *)(void *)((char *)due - offsetof(struct verbs_flow, watched));
    bool under_way = flow->pub->completed != flow->pub->posted;
    verbs_enter(flow);
    for (int i = 0; i < flow->n_rails && verbs_is_up(flow); i++) {
        lane_look(&flow->lanes[i], flow->channel->kick_ns);
        under_way |= flow->lanes[i].head != flow->lanes[i].tail;
    }
    if (under_way)
        verbs_watch(flow);
    verbs_leave(flow);
}

void gpsh_verbs_kicks(struct verbs_channel *channel)
{
    uint64_t now = gpsh_clock_ns();
    if (now - channel->kick_ns < LOOK_NS)
        return;
    channel->kick_ns = now;
    verbs_due_run(&channel->watched, flow_look);
}
