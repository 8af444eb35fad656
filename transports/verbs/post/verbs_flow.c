// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE
// The books of flows: operations are completed in order, and what becomes of them when the flow
// fails. How they come in is in verbs_post.c, how they are issued in verbs_drive.c.
#include <stdio.h>
#include <string.h>

#include "transports/verbs/post/verbs_posting.h"

void gpsh_verbs_flow_activate(struct verbs_flow *flow)
{
    verbs_due_add(&flow->channel->active, &flow->due);
}

static void slot_complete(struct verbs_flow *flow, struct verbs_slot *slot, int status)
{
    struct verbs_channel *channel = flow->channel;
    struct gpsh_completion *completion = slot->completion;
    gpsh_verbs_bounce_give(&channel->bounce, slot->block);
    slot->block = VERBS_NO_BLOCK;
    gpsh_count_add(&flow->pub->completed, 1);
    channel->base.pending--;
    channel->retired++;
    if (completion)
        completion->done(completion, status); // may post: the books are in order already
}

void gpsh_verbs_flow_advance(struct verbs_flow *flow)
{
    while (flow->pub->completed < flow->issued && !flow->pub->error) {
        struct verbs_slot *slot = &flow->slots[flow->pub->completed & flow->slot_mask];
        int status = 0;
        if (slot->parts || slot->repeat != VERBS_REPEAT_NOT) {
            if (slot->parts || slot->repeat < VERBS_REPEAT_LOST)
                return;
            status =
                slot->repeat == VERBS_REPEAT_DENIED ? GPUSHMEM_ERR_TIMEOUT : GPUSHMEM_ERR_TRANSPORT;
        }
        slot_complete(flow, slot, status);
    }
}

// Whether no lane that failed has requests left.
bool gpsh_verbs_flow_is_flushed(struct verbs_flow *flow)
{
    bool flushed = true;
    for (int i = 0; i < flow->n_rails; i++)
        flushed &= !flow->lanes[i].failed || gpsh_verbs_lane_is_flushed(&flow->lanes[i]);
    return flushed;
}

// What a failed flow had under way is complete when no NIC reads its sources or writes where its
// answers go.
void gpsh_verbs_flow_end(struct verbs_flow *flow)
{
    if (!gpsh_verbs_flow_is_flushed(flow)) {
        gpsh_verbs_flow_activate(flow);
        return;
    }
    while (flow->pub->completed < flow->pub->posted)
        slot_complete(flow, &flow->slots[flow->pub->completed & flow->slot_mask], flow->pub->error);
}

void gpsh_verbs_flow_rest(struct verbs_flow *flow)
{
    if (flow->damaged || flow->note_due || flow->repeats || flow->doubts)
        return;
    for (int i = 0; i < flow->n_rails && verbs_has_lanes(flow); i++)
        if (flow->lanes[i].head != flow->lanes[i].tail)
            return;
    uint32_t now = atomic_load_explicit(&flow->channel->verbs->uses, memory_order_relaxed);
    atomic_store_explicit(&flow->used, now, memory_order_relaxed);
    // Pairs with the acquire in gpsh_verbs_shut.
    atomic_store_explicit(&flow->busy, false, memory_order_release);
}

int gpsh_verbs_judge(const struct gpsh_verbs *verbs, int pe, int code, char *why, size_t bytes)
{
    if (code != GPUSHMEM_ERR_PE_FAILED)
        return code;
    bool lives = gpsh_env_peer_lives(&verbs->env, pe);
    size_t used = strlen(why);
    if (!verbs_is_lost(verbs, pe)) // else the runtime knows more
        snprintf(why + used, bytes - used, "%s",
                 lives ? "; its process lives" : "; whether its process lives is not known");
    return lives ? GPUSHMEM_ERR_TRANSPORT : code;
}

void gpsh_verbs_tell(const struct gpsh_verbs *verbs, int pe, bool silent, int code, const char *why)
{
    const struct gpsh_transport_env *env = &verbs->env;
    if (silent && code != GPUSHMEM_ERR_PE_FAILED && env->peer_cut_off)
        env->peer_cut_off(env->arg, pe, why);
    else if (env->peer_failed)
        env->peer_failed(env->arg, pe, code, why);
}

// The peer is lost to this flow: its queue pairs go to the error state, and everything in it
// completes with the error as soon as their flushed completions have been seen (flow_end): until
// then their requests touch local memory.
void gpsh_verbs_flow_fail(struct verbs_flow *flow, int found, const char *how)
{
    struct verbs_channel *channel = flow->channel;
    char why[VERBS_WHY_BYTES];
    if (flow->pub->error)
        return;
    snprintf(why, sizeof why, "%s", how);
    int code = gpsh_verbs_judge(channel->verbs, flow->pe, found, why, sizeof why);
    verbs_enter(flow); // for good
    gpsh_flow_fail(flow->pub, gpsh_fail(code, "%s", why));
    if (!verbs_is_lost(channel->verbs, flow->pe)) // else it has been told
        GPSH_LOG(WARN, "verbs", "%s", why);
    for (int i = 0; i < flow->n_rails; i++) {
        gpsh_verbs_lane_undoubt(&flow->lanes[i]);
        gpsh_verbs_lane_drop_chain(&flow->lanes[i]);
        gpsh_verbs_lane_kill(&flow->lanes[i]);
    }
    flow->loops_used = flow->loops_ready = 0;
    flow->doubts = 0;
    flow->issued = flow->pub->posted;
    if (flow->pipe)
        channel->verbs->staging->fail(flow->pipe, code);
    gpsh_verbs_flow_activate(flow);
    channel->base.failed |= code != GPUSHMEM_ERR_PE_FAILED;
    gpsh_verbs_tell(channel->verbs, flow->pe, found == GPUSHMEM_ERR_PE_FAILED, code, why);
}

// If the GPU here has failed, what the target of the copy holds is something else: it must not be
// sent on, nor pass for what was fetched.
void gpsh_verbs_gpu_copy(struct verbs_flow *flow, void *to, const void *from, uint64_t bytes)
{
    char why[640];
    if (flow->channel->verbs->env.copy(to, from, bytes) >= 0)
        return;
    snprintf(why, sizeof why, "copying for PE %d: %s", flow->pe, gpsh_last_error());
    gpsh_verbs_flow_fail(flow, gpsh_last_error_code(), why);
}

int gpsh_verbs_other_rail(const struct verbs_lane *lane)
{
    const struct verbs_flow *flow = lane->flow;
    for (int i = 0; i < flow->n_rails; i++)
        if (i != lane->rail && !flow->lanes[i].failed)
            return i;
    return -1;
}

void gpsh_verbs_lane_give_way(struct verbs_lane *lane)
{
    struct verbs_flow *flow = lane->flow;
    int other = gpsh_verbs_other_rail(lane);
    if (flow->home == lane->rail)
        flow->home = (uint8_t)other;
    if (flow->agent == lane->rail && flow->global >> other & 1)
        flow->agent = (uint8_t)other;
    gpsh_verbs_flow_activate(flow);
}

void gpsh_verbs_lane_leave(struct verbs_lane *lane)
{
    struct verbs_flow *flow = lane->flow;
    atomic_fetch_or(&flow->peer->lost_rails, UINT64_C(1) << lane->rail);
    flow->note_due = flow->note_there != 0;
    gpsh_verbs_lane_give_way(lane);
}

// The atomics of a word need one agent, which is the NIC of rail 0; or NICs that are atomic to each
// other.
bool gpsh_verbs_atomics_lost(struct verbs_flow *flow)
{
    char why[160];
    if (!verbs_agent_lane(flow)->failed || flow->pub->error)
        return false;
    snprintf(why, sizeof why,
             "PE %d: atomics need rail 0 (%s), whose connection to it was lost earlier", flow->pe,
             flow->channel->verbs->rails[0].name);
    gpsh_verbs_flow_fail(flow, GPUSHMEM_ERR_TRANSPORT, why);
    return true;
}
