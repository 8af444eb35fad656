// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE
#include <stdlib.h>

#include "transports/ofi/ofi_drive.h"
#include "transports/ofi/ofi_flow.h"
#include "transports/ofi/ofi_lane.h"

enum {
    CAPTURE_BYTES = 2048,
    VAIN = 128, // passes of a waiting thread after the last message, in which it expects another
};

static int check(const struct gpsh_op *op)
{
    if (op->kind > GPSH_OP_PUT_SIGNAL)
        return gpsh_fail(GPUSHMEM_ERR_INVALID, "ofi: operation kind %d does not exist", op->kind);
    if (op->kind == GPSH_OP_AMO && op->remote % op->width)
        return gpsh_fail(GPUSHMEM_ERR_ALIGNMENT,
                         "an atomic on %d bytes at offset %llu: it must be a multiple of %d",
                         op->width, (unsigned long long)op->remote, op->width);
    if (op->kind == GPSH_OP_PUT_SIGNAL && op->signal % 8)
        return gpsh_fail(GPUSHMEM_ERR_ALIGNMENT,
                         "a signal at offset %llu: it must be a multiple of 8",
                         (unsigned long long)op->signal);
    return 0;
}

// Whether one-sided operations reach both ends.
static bool has_keys(const struct ofi_flow *flow, const struct gpsh_op *op)
{
    const struct gpsh_ofi *ofi = flow->channel->ofi;
    bool device = ofi->env.queues && !(op->flags & GPSH_OP_LOCAL_HOST) && ofi_device_heap(ofi);
    return flow->peer->keys[op->region].keyed && (!device || ofi->hmem);
}

static enum ofi_way way_of(const struct ofi_flow *flow, const struct gpsh_op *op)
{
    const struct gpsh_ofi *ofi = flow->channel->ofi;
    if (op->kind == GPSH_OP_AMO)
        return ofi->atomics ? OFI_BY_ATOMIC : OFI_BY_RECORD;
    if (!op->bytes || !has_keys(flow, op))
        return OFI_BY_RECORD;
    return op->kind != GPSH_OP_GET && op->bytes <= ofi->small ? OFI_BY_RECORD : OFI_BY_RMA;
}

static void activate(struct ofi_flow *flow)
{
    struct ofi_channel *channel = flow->channel;
    if (flow->listed)
        return;
    flow->listed = true;
    flow->next = channel->active;
    channel->active = flow;
    gpsh_ofi_watch(flow);
}

static struct ofi_slot *accept(struct ofi_flow *flow, const struct gpsh_op *op)
{
    struct ofi_channel *channel = flow->channel;
    struct ofi_slot *slot = ofi_slot_at(flow, flow->pub->posted + 1);
    if (flow->epoch != channel->epoch) {
        flow->epoch = channel->epoch;
        flow->fence = flow->pub->posted;
    }
    *slot = (struct ofi_slot){.kind = op->kind,
                              .amo = op->amo,
                              .width = op->width,
                              .flags = op->flags,
                              .region = op->region,
                              .way = (uint8_t)way_of(flow, op),
                              .local = op->local,
                              .remote = op->remote,
                              .bytes = op->kind == GPSH_OP_AMO ? 0 : op->bytes,
                              .signal = op->signal,
                              .operand = op->operand,
                              .compare = op->compare,
                              .after = flow->fence,
                              .result = op->result,
                              .completion = op->completion};
    gpsh_count_add(&flow->pub->posted, 1);
    if (flow->pub->posted - flow->pub->completed == 1)
        gpsh_ofi_watch(flow);
    channel->base.pending++;
    activate(flow);
    return slot;
}

static bool is_put(const struct gpsh_op *op)
{
    return op->kind == GPSH_OP_PUT || op->kind == GPSH_OP_PUT_SIGNAL;
}

// The slot reads a copy from now on.
static bool capture(struct gpsh_ofi *ofi, struct ofi_slot *slot)
{
    slot->captured = malloc(slot->bytes ? slot->bytes : 1);
    if (!slot->captured)
        return false;
    gpsh_ofi_copy(ofi, slot->flags, slot->captured, slot->local, slot->bytes);
    slot->local = slot->captured;
    slot->flags |= GPSH_OP_LOCAL_HOST;
    return true;
}

// A record takes its source along; a one-sided operation reads it later, unless it goes through a
// block.
static int post_locked(struct ofi_flow *flow, const struct gpsh_op *op)
{
    struct gpsh_ofi *ofi = flow->channel->ofi;
    struct ofi_slot *slot = accept(flow, op);
    bool wants = is_put(op) && op->flags & GPSH_OP_CAPTURE && op->bytes <= CAPTURE_BYTES;
    bool captured = wants && slot->way == OFI_BY_RMA && capture(ofi, slot);
    gpsh_ofi_flow_issue(flow, !(op->flags & GPSH_OP_MORE));
    if (captured || (is_put(op) && gpsh_ofi_flow_has_source(slot)))
        return GPSH_POST_CAPTURED;
    return wants && capture(ofi, slot) ? GPSH_POST_CAPTURED : GPSH_POST_IN_FLIGHT;
}

int gpsh_ofi_post(struct gpsh_channel *base, const struct gpsh_op *op)
{
    struct ofi_channel *channel = (struct ofi_channel *)base;
    int status = check(op), error = base->flows[op->pe].error;
    if (status)
        return status;
    if (error)
        return gpsh_fail(error, "operations towards PE %d fail since it was lost", op->pe);
    struct ofi_flow *flow = gpsh_ofi_flow(channel, op->pe);
    if (!flow)
        return gpsh_last_error_code();
    if (flow->pub->posted - flow->pub->completed == OFI_SLOTS)
        return GPSH_POST_AGAIN;
    pthread_mutex_lock(&channel->lock);
    status = post_locked(flow, op);
    gpsh_ofi_unlock(channel);
    return status;
}

int gpsh_ofi_flush(struct gpsh_channel *base)
{
    struct ofi_channel *channel = (struct ofi_channel *)base;
    if (!channel->active)
        return 0;
    pthread_mutex_lock(&channel->lock);
    for (struct ofi_flow *flow = channel->active; flow; flow = flow->next)
        gpsh_ofi_flow_issue(flow, true);
    gpsh_ofi_unlock(channel);
    return 0;
}

void gpsh_ofi_fence(struct gpsh_channel *base, int pe)
{
    struct ofi_channel *channel = (struct ofi_channel *)base;
    if (pe == GPSH_ALL_PES) {
        channel->epoch++;
        return;
    }
    struct ofi_flow *flow = ofi_flow_of(channel, pe);
    if (flow)
        flow->fence = flow->pub->posted;
}

// Peers that were lost since the channel looked last.
static void note_losses(struct ofi_channel *channel)
{
    struct gpsh_ofi *ofi = channel->ofi;
    uint32_t losses = atomic_load(&ofi->losses);
    if (losses == channel->losses)
        return;
    channel->losses = losses;
    for (int pe = 0; pe < ofi->env.n_pes; pe++) {
        const struct ofi_peer *peer = ofi_peer_of(ofi, pe);
        struct ofi_flow *flow = ofi_flow_of(channel, pe);
        int lost = peer ? atomic_load(&peer->lost) : 0;
        if (lost && flow)
            gpsh_ofi_flow_fail(flow, lost);
        else if (lost)
            gpsh_flow_fail(&channel->base.flows[pe], lost);
    }
}

static void drive(struct ofi_channel *channel)
{
    pthread_mutex_lock(&channel->lock);
    note_losses(channel);
    gpsh_ofi_lane_read(channel);
    for (struct ofi_flow *flow = channel->active; flow; flow = flow->next) {
        gpsh_ofi_flow_issue(flow, true);
        if (flow->failing)
            gpsh_ofi_flow_fail(flow, flow->failing);
    }
    gpsh_ofi_unlock(channel);
}

// The callbacks of what is complete may post, and so make other flows active.
static void retire(struct ofi_channel *channel)
{
    struct ofi_flow *flow = channel->active;
    channel->active = NULL;
    while (flow) {
        struct ofi_flow *next = flow->next;
        flow->listed = false;
        gpsh_ofi_flow_retire(flow);
        if (flow->pub->completed != flow->pub->posted)
            activate(flow);
        flow = next;
    }
}

// By a thread that waits, and not the service thread: which stands by while there are such.
static bool help(struct gpsh_ofi *ofi)
{
    struct ofi_flow *pushed;
    bool found = gpsh_ofi_serve(ofi, &pushed);
    atomic_store_explicit(&ofi->wire.helped,
                          atomic_load_explicit(&ofi->wire.helped, memory_order_relaxed) + 1,
                          memory_order_relaxed);
    gpsh_ofi_push(pushed);
    return found;
}

bool gpsh_ofi_help(struct gpsh_transport *self)
{
    struct gpsh_ofi *ofi = (struct gpsh_ofi *)self;
    uint32_t vain = atomic_load_explicit(&ofi->wire.vain, memory_order_relaxed);
    if (vain >= VAIN)
        return false;
    if (!help(ofi))
        atomic_store_explicit(&ofi->wire.vain, vain + 1, memory_order_relaxed);
    return true;
}

int gpsh_ofi_progress(struct gpsh_channel *base)
{
    struct ofi_channel *channel = (struct ofi_channel *)base;
    struct gpsh_ofi *ofi = channel->ofi;
    if (channel->driving)
        return 0;
    channel->driving = true;
    channel->retired = 0;
    // What this channel has under way comes by its own queue: the wire is looked at now and then.
    if (!channel->under_way || ++channel->passes % 4 == 0)
        help(ofi);
    if (channel->active || atomic_load(&ofi->losses) != channel->losses) {
        drive(channel);
        retire(channel);
    }
    channel->driving = false;
    return channel->retired;
}
