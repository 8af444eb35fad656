// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE
// What waits goes on: operations are issued in order, as far as there is room and nothing before
// them is in the way.
#include <stdio.h>

#include "transports/verbs/post/verbs_posting.h"

bool gpsh_verbs_slot_issue(struct verbs_flow *flow, struct verbs_slot *slot)
{
    if (slot->after > flow->pub->completed)
        return false;
    if (flow->loops_used && gpsh_verbs_loops_overlap(flow, slot))
        return false;
    if (__builtin_expect(flow->repeats != 0, 0) && !gpsh_verbs_repeats_issue(flow, slot))
        return false;
    return slot->kind == GPSH_OP_AMO ? gpsh_verbs_amo_issue(flow, slot)
                                     : gpsh_verbs_rma_issue(flow, slot);
}

// Issues what waits, in order, as far as it goes.
static void issue_waiting(struct verbs_flow *flow)
{
    if (flow->issued != flow->pub->posted && !verbs_is_up(flow)) {
        gpsh_verbs_handshake_ask(flow); // if it was closed
        return;
    }
    while (flow->issued != flow->pub->posted) {
        if (!gpsh_verbs_slot_issue(flow, &flow->slots[flow->issued & flow->slot_mask]) ||
            flow->pub->error)
            return;
        flow->issued++;
    }
}

void gpsh_verbs_flow_refused(struct verbs_flow *flow)
{
    char why[160];
    flow->refused = false;
    for (int i = 0; i < flow->n_rails && !flow->pub->error; i++) {
        struct verbs_lane *lane = &flow->lanes[i];
        if (!lane->refused)
            continue;
        snprintf(why, sizeof why, "posting to PE %d on %s failed: %s", flow->pe,
                 flow->channel->verbs->rails[i].name, strerror(lane->refused));
        lane->refused = 0;
        gpsh_verbs_lane_fail(lane, GPUSHMEM_ERR_TRANSPORT, why);
    }
}

static void flush_lanes(struct verbs_flow *flow)
{
    for (int i = 0; i < flow->n_rails && verbs_has_lanes(flow); i++)
        gpsh_verbs_lane_flush(&flow->lanes[i]);
    if (flow->refused)
        gpsh_verbs_flow_refused(flow);
}

static void flush_held(struct verbs_due *due)
{
    struct verbs_lane *lane = VERBS_DUE_OF(due, struct verbs_lane);
    gpsh_verbs_lane_flush(lane);
    if (lane->flow->refused)
        gpsh_verbs_flow_refused(lane->flow);
}

void gpsh_verbs_held_flush(struct verbs_channel *channel)
{
    verbs_due_run(&channel->held, flush_held);
}

// The peer has to be told which rails are lost, over one that is connected.
static bool tell(struct verbs_flow *flow)
{
    if (!flow->note_due)
        return true;
    if (verbs_is_up(flow))
        return gpsh_verbs_note_send(flow);
    gpsh_verbs_handshake_ask(flow); // if it was closed
    return false;
}

// Everything that can move on moves on; stays on the channel's active list while something is left.
static void drive(struct verbs_flow *flow)
{
    // A failure of the handshake: what was posted waits for it.
    if (__builtin_expect(atomic_load(&flow->state) == VERBS_REFUSED, 0))
        gpsh_verbs_flow_fail(flow, flow->link.code, flow->link.why);
    if (flow->pub->error) {
        gpsh_verbs_flow_end(flow);
        return;
    }
    bool flushed = gpsh_verbs_flow_is_flushed(flow);
    bool told = tell(flow);
    if (flow->doubts)
        gpsh_verbs_doubts_drive(flow);
    if (flow->pub->error) {
        gpsh_verbs_flow_end(flow);
        return;
    }
    gpsh_verbs_loops_post(flow);
    if (flow->repeats)
        gpsh_verbs_repeats_issue(flow, NULL);
    issue_waiting(flow);
    flush_lanes(flow);
    // operations without a work request, like an empty put after others
    gpsh_verbs_flow_advance(flow);
    if (flow->pub->error || !flushed || !told || flow->issued != flow->pub->posted ||
        flow->loops_ready || flow->repeats)
        gpsh_verbs_flow_activate(flow);
}

void gpsh_verbs_flow_drive(struct verbs_flow *flow)
{
    verbs_enter(flow);
    drive(flow);
    verbs_leave(flow);
}
