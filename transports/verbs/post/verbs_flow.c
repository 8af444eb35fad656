// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE
// The books of flows: issuing operations in order, completing them in order, and what becomes of
// them when the peer is lost. How they come in is in verbs_post.c.
#include <stdio.h>

#include "transports/verbs/stage/verbs_stage.h"

void gpsh_verbs_flow_activate(struct verbs_flow *flow)
{
    struct verbs_channel *channel = flow->channel;
    if (flow->active)
        return;
    flow->active = true;
    flow->next_active = channel->active;
    channel->active = flow;
}

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
    for (int i = 0; i < flow->n_rails; i++)
        gpsh_verbs_lane_flush(&flow->lanes[i]);
    if (flow->refused)
        gpsh_verbs_flow_refused(flow);
}

void gpsh_verbs_held_flush(struct verbs_channel *channel)
{
    struct verbs_lane *lane = channel->held;
    channel->held = NULL;
    while (lane) {
        struct verbs_lane *next = lane->next_held;
        lane->held = false;
        gpsh_verbs_lane_flush(lane); // may put the lane on the list again
        if (lane->flow->refused)
            gpsh_verbs_flow_refused(lane->flow);
        lane = next;
    }
}

static void slot_complete(struct verbs_flow *flow, struct verbs_slot *slot, int status)
{
    struct verbs_channel *channel = flow->channel;
    struct gpsh_completion *completion = slot->completion;
    gpsh_verbs_bounce_give(&channel->bounce, slot->block);
    slot->block = VERBS_NO_BLOCK;
    flow->pub->completed++;
    channel->base.pending--;
    channel->retired++;
    if (completion)
        completion->done(completion, status); // may post: the books are in order already
}

void gpsh_verbs_flow_advance(struct verbs_flow *flow)
{
    while (flow->pub->completed < flow->issued && !flow->pub->error) {
        struct verbs_slot *slot = &flow->slots[flow->pub->completed & flow->slot_mask];
        if (slot->parts || slot->repeat != VERBS_REPEAT_NOT)
            return;
        slot_complete(flow, slot, 0);
    }
}

// Whether no lane that failed has requests left.
static bool lanes_are_flushed(struct verbs_flow *flow)
{
    bool flushed = true;
    for (int i = 0; i < flow->n_rails; i++)
        flushed &= !flow->lanes[i].failed || gpsh_verbs_lane_is_flushed(&flow->lanes[i]);
    return flushed;
}

// What a failed flow had under way is complete when no NIC reads its sources or writes where its
// answers go.
static void flow_end(struct verbs_flow *flow)
{
    if (!lanes_are_flushed(flow)) {
        gpsh_verbs_flow_activate(flow);
        return;
    }
    while (flow->pub->completed < flow->pub->posted)
        slot_complete(flow, &flow->slots[flow->pub->completed & flow->slot_mask], flow->pub->error);
}

// Everything that can move on moves on; stays on the channel's active list while something is left.
void gpsh_verbs_flow_drive(struct verbs_flow *flow)
{
    if (flow->pub->error) {
        flow_end(flow);
        return;
    }
    bool flushed = lanes_are_flushed(flow);
    bool told = !flow->note_due || gpsh_verbs_note_send(flow);
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

// The peer is lost to this flow: its queue pairs go to the error state, and everything in it
// completes with the error as soon as their flushed completions have been seen (flow_end): until
// then their requests touch local memory.
void gpsh_verbs_flow_fail(struct verbs_flow *flow, int code, const char *why)
{
    struct verbs_channel *channel = flow->channel;
    if (flow->pub->error)
        return;
    flow->pub->error = gpsh_fail(code, "%s", why);
    if (!atomic_load(&channel->verbs->peers[flow->pe].lost)) // else it has been told
        GPSH_LOG(WARN, "verbs", "%s", why);
    for (int i = 0; i < flow->n_rails; i++) {
        gpsh_verbs_lane_drop_chain(&flow->lanes[i]);
        gpsh_verbs_lane_kill(&flow->lanes[i]);
    }
    flow->loops_used = flow->loops_ready = 0;
    flow->issued = flow->pub->posted;
    if (flow->pipe)
        gpsh_verbs_pipe_fail(flow->pipe, code);
    gpsh_verbs_flow_activate(flow);
    channel->base.failed |= code != GPUSHMEM_ERR_PE_FAILED;
    channel->verbs->env.peer_failed(channel->verbs->env.arg, flow->pe, code, why);
}

// If the GPU here has failed, what the target of the copy holds is something else: it must not be
// sent on, nor pass for what was fetched.
void gpsh_verbs_gpu_copy(struct verbs_flow *flow, void *to, const void *from, uint64_t bytes)
{
    char why[320];
    if (flow->channel->verbs->env.copy(to, from, bytes) >= 0)
        return;
    snprintf(why, sizeof why, "copying for PE %d: %s", flow->pe, gpsh_last_error());
    gpsh_verbs_flow_fail(flow, gpsh_last_error_code(), why);
}
