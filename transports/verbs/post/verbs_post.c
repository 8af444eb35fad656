// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE
// Posting: an operation is accepted (a slot, its place in the order, its source) and launched.
// Nothing in here waits or drives progress: what has no room now is refused, or goes on in
// verbs_drive.c.
#include <assert.h>

#include "transports/verbs/post/verbs_posting.h"

static bool needs_no_work(const struct gpsh_op *op)
{
    return op->bytes == 0 && (op->kind == GPSH_OP_PUT || op->kind == GPSH_OP_GET);
}

static bool is_put(const struct verbs_slot *slot)
{
    return slot->kind == GPSH_OP_PUT || slot->kind == GPSH_OP_PUT_SIGNAL;
}

// What a fence means for the operation that follows. One lane keeps its requests in order (a flag
// adds what it does not order by itself), so an operation on lane 0 waits only for earlier ones
// that used other lanes or are loops; a striped one waits for everything before the fence. A get or
// an atomic is executed after every write before it, and so passes the fence as it is; where writes
// may be placed out of order, that says nothing of the next put, which then takes the fence too.
static void take_fence(struct verbs_flow *flow, uint64_t posted_before)
{
    struct verbs_channel *channel = flow->channel;
    flow->epoch = channel->epoch;
    flow->fenced = false;
    flow->fence_seq = posted_before;
    flow->fence_hard = flow->last_hard;
}

static void slot_order(struct verbs_flow *flow, struct verbs_slot *slot, uint64_t posted_before)
{
    slot->fenced = flow->fenced || flow->epoch != flow->channel->epoch;
    slot->after_fence = slot->fenced;
    if (slot->fenced) {
        take_fence(flow, posted_before);
        flow->write_owes = !is_put(slot) && verbs_home(flow)->loose;
    } else if (__builtin_expect(flow->write_owes, 0) && is_put(slot)) {
        flow->write_owes = false;
        slot->fenced = true;
    }
    slot->after = slot->striped ? flow->fence_seq : flow->fence_hard;
    slot->looping = slot->kind == GPSH_OP_AMO && !gpsh_verbs_amo_native(flow, slot);
    if (slot->striped || slot->looping)
        flow->last_hard = posted_before + 1;
}

static enum verbs_where where_is(struct verbs_flow *flow, const struct gpsh_op *op)
{
    const struct verbs_bounce *bounce = &flow->channel->bounce;
    const struct gpsh_region blocks = {bounce->base, bounce->bytes, GPSH_MEMORY_HOST, -1, -1};
    if (flow->pipe && gpsh_region_holds(&blocks, op->local, op->bytes))
        return VERBS_BLOCK;
    return gpsh_verbs_where(flow->channel->verbs, op->local, op->bytes);
}

static void slot_fill(struct verbs_flow *flow, struct verbs_slot *slot, const struct gpsh_op *op)
{
    struct gpsh_verbs *verbs = flow->channel->verbs;
    slot->kind = op->kind;
    slot->amo = op->amo;
    slot->width = op->width;
    slot->flags = op->flags;
    slot->region = verbs_key_of(verbs, op->region, op->remote);
    slot->signal_region = verbs_key_of(verbs, op->region, op->signal);
    slot->striped = op->kind != GPSH_OP_AMO && flow->n_rails > 1 &&
                    op->bytes >= verbs->env.settings->verbs_stripe;
    slot->block = VERBS_NO_BLOCK;
    slot->parts = 0;
    slot->pieces = 0;
    slot->repeat = VERBS_REPEAT_NOT;
    slot->local = op->local;
    slot->remote = flow->remote_base[op->region] + op->remote;
    slot->bytes = op->kind == GPSH_OP_AMO ? 0 : op->bytes;
    slot->offset = 0;
    slot->borrowed = false;
    slot->operand = op->operand;
    slot->compare = op->compare;
    slot->signal = flow->remote_base[op->region] + op->signal;
    slot->result = op->result;
    slot->completion = op->completion;
    slot->where = slot->bytes ? where_is(flow, op) : VERBS_HEAP;
}

static uint64_t capture_most(const struct verbs_channel *channel)
{
    uint64_t message = channel->verbs->rails[0].max_message;
    return message < channel->bounce.large_bytes ? message : channel->bounce.large_bytes;
}

// Copies the source into a block, which then goes as one piece by lane 0.
static bool capture(struct verbs_flow *flow, struct verbs_slot *slot)
{
    struct verbs_channel *channel = flow->channel;
    slot->block = gpsh_verbs_bounce_capture(&channel->bounce, slot->bytes);
    if (slot->block == VERBS_NO_BLOCK)
        return false;
    char *copy = gpsh_verbs_bounce_at(&channel->bounce, slot->block);
    verbs_copy(flow, slot, copy, slot->local, slot->bytes);
    channel->stats.bounce_bytes += slot->bytes;
    slot->local = copy;
    slot->where = VERBS_ELSEWHERE;
    slot->flags |= GPSH_OP_LOCAL_HOST;
    slot->striped = false;
    return true;
}

// Rings everything that is held back first: it may be what occupies the room that is missing.
int gpsh_verbs_refuse(struct verbs_channel *channel)
{
    gpsh_verbs_held_flush(channel);
    return GPSH_POST_AGAIN;
}

static int check_amo(const struct gpsh_op *op)
{
    if (op->width != 4 && op->width != 8)
        return gpsh_fail(GPUSHMEM_ERR_INVALID, "an atomic of %d bytes: 4 or 8 are possible",
                         op->width);
    if (op->remote % op->width)
        return gpsh_fail(GPUSHMEM_ERR_ALIGNMENT,
                         "atomic at heap offset %llu of PE %d: the offset must be a multiple of %d",
                         (unsigned long long)op->remote, op->pe, op->width);
    if (op->amo > GPSH_AMO_XOR)
        return gpsh_fail(GPUSHMEM_ERR_INVALID, "%d is no atomic operation", op->amo);
    return 0;
}

// A fetch is a read, and an agent needs none.
static bool needs_nic_atomics(const struct verbs_flow *flow, const struct gpsh_op *op)
{
    if (flow->serves & GPSH_VERBS_SERVES_ATOMICS ||
        (flow->serves & GPSH_VERBS_SERVES_HEAP && op->region == GPSH_HEAP))
        return false;
    return op->kind == GPSH_OP_AMO
               ? op->amo != GPSH_AMO_FETCH
               : op->kind == GPSH_OP_PUT_SIGNAL && op->flags & GPSH_OP_SIGNAL_ADD;
}

static int check_atomics(const struct verbs_flow *flow, const struct gpsh_op *op)
{
    if (!needs_nic_atomics(flow, op))
        return 0;
    return gpsh_fail(
        GPUSHMEM_ERR_UNSUPPORTED,
        "an atomic on PE %d: the NIC here (%s) or there has no atomics; puts, gets and "
        "signals that set a value work",
        op->pe, flow->channel->verbs->rails[0].name);
}

static int check(const struct verbs_channel *channel, const struct gpsh_op *op)
{
    if ((uint32_t)op->pe >= (uint32_t)channel->verbs->env.n_pes)
        return gpsh_fail(GPUSHMEM_ERR_PE, "PE %d is outside 0..%d", op->pe,
                         channel->verbs->env.n_pes - 1);
    int error = channel->base.flows[op->pe].error;
    if (error)
        return gpsh_fail(error, "PE %d: an earlier operation towards it failed", op->pe);
    if (op->region >= GPSH_REGIONS || op->kind > GPSH_OP_PUT_SIGNAL)
        return gpsh_fail(GPUSHMEM_ERR_INVALID,
                         "operation %d on region %d towards PE %d: neither kind nor region may be "
                         "outside its enum",
                         op->kind, op->region, op->pe);
    if (op->kind == GPSH_OP_AMO)
        return check_amo(op);
    if (op->kind == GPSH_OP_PUT_SIGNAL && op->signal % 8)
        return gpsh_fail(GPUSHMEM_ERR_ALIGNMENT,
                         "signal at heap offset %llu of PE %d: the offset must be a multiple of 8",
                         (unsigned long long)op->signal, op->pe);
    return 0;
}

static int accept_empty(struct verbs_flow *flow, const struct gpsh_op *op)
{
    bool idle = flow->pub->completed == flow->pub->posted;
    struct verbs_slot *slot = &flow->slots[flow->pub->posted & flow->slot_mask];
    slot_fill(flow, slot, op);
    slot->after = 0;
    gpsh_count_add(&flow->pub->posted, 1);
    flow->channel->base.pending++;
    if (flow->issued == flow->pub->posted - 1)
        flow->issued++;
    gpsh_verbs_flow_advance(flow);
    return idle ? GPSH_POST_DONE : GPSH_POST_CAPTURED;
}

static bool wants_capture(const struct verbs_slot *slot)
{
    return slot->flags & GPSH_OP_CAPTURE && is_put(slot) && slot->bytes;
}

// Whether this small put would go into a work request at once, which captures its source without a
// block.
static bool goes_inline(struct verbs_flow *flow, const struct verbs_slot *slot, bool up)
{
    bool unordered = up && flow->issued == flow->pub->posted && !flow->loops_used &&
                     !flow->fenced && !flow->write_owes && !flow->repeats &&
                     flow->epoch == flow->channel->epoch &&
                     flow->fence_hard <= flow->pub->completed;
    return unordered && !slot->striped && slot->bytes <= flow->channel->verbs->inline_bytes &&
           flow->channel->verbs->host_heap && slot->where != VERBS_DEVICE_BUFFER &&
           gpsh_verbs_lane_reserve(verbs_home(flow), 2);
}

// A source that the caller wants back goes inline or is captured in a block; one that is too large
// for a block stays in use. Returns false if the operation has to be refused for now.
static bool prepare_capture(struct verbs_flow *flow, struct verbs_slot *slot, bool up)
{
    if (!wants_capture(slot) || goes_inline(flow, slot, up) ||
        slot->bytes > capture_most(flow->channel))
        return true;
    return capture(flow, slot);
}

// Over several rails a source that went into several blocks stays in use, too: what a lost rail had
// of it is read again.
static bool source_in_use(const struct verbs_flow *flow, const struct verbs_slot *slot)
{
    return slot->block == VERBS_NO_BLOCK && (slot->borrowed || slot->offset < slot->bytes ||
                                             (slot->pieces > 1 && flow->n_rails > 1));
}

static void doorbell(struct verbs_flow *flow, bool more)
{
    for (int i = 0; i < flow->n_rails; i++) {
        if (more && flow->lanes[i].count)
            gpsh_verbs_lane_hold(&flow->lanes[i]);
        else
            gpsh_verbs_lane_flush(&flow->lanes[i]);
    }
    if (!more && flow->channel->held)
        gpsh_verbs_held_flush(flow->channel);
    if (flow->refused)
        gpsh_verbs_flow_refused(flow);
}

// `up`: as it was when the channel's thread entered the flow.
static int launch(struct verbs_flow *flow, struct verbs_slot *slot, uint64_t number, bool up)
{
    if (!up)
        gpsh_verbs_handshake_ask(flow); // if it was closed
    bool waiting = !up || flow->issued != number - 1 || !gpsh_verbs_slot_issue(flow, slot);
    if (!waiting)
        flow->issued = number;
    if (flow->refused)
        gpsh_verbs_flow_refused(flow);
    if (flow->pub->error)
        return GPSH_POST_IN_FLIGHT; // was posted, and completes with the flow's error
    if (waiting) {
        flow->channel->stats.queued++;
        gpsh_verbs_flow_activate(flow);
    }
    if (__builtin_expect(up, 1))
        doorbell(flow, slot->flags & GPSH_OP_MORE);
    else if (!(slot->flags & GPSH_OP_MORE)) // of other flows
        gpsh_verbs_held_flush(flow->channel);
    if (slot->looping && gpsh_verbs_lock_needed(flow, slot))
        return GPSH_POST_URGENT;
    slot->borrowed |= is_put(slot) && source_in_use(flow, slot);
    return is_put(slot) && !slot->borrowed ? GPSH_POST_CAPTURED : GPSH_POST_IN_FLIGHT;
}

// The channel's first operation towards that PE: it waits for the connection like one that finds no
// room, while this PE and that one do something else.
static struct verbs_flow *flow_open(struct verbs_channel *channel, int pe)
{
    struct verbs_flow *flow = gpsh_verbs_flow_get(channel, pe);
    if (!flow || gpsh_verbs_books_open(flow))
        return NULL;
    gpsh_verbs_handshake_ask(flow);
    return flow;
}

int gpsh_verbs_post(struct gpsh_channel *base, const struct gpsh_op *op)
{
    struct verbs_channel *channel = (struct verbs_channel *)base;
    int status = check(channel, op);
    if (status)
        return status;
    struct verbs_flow *flow = verbs_flow_at(channel, op->pe);
    if (__builtin_expect(!flow || !flow->slots, 0)) {
        flow = flow_open(channel, op->pe);
        if (!flow)
            return gpsh_last_error_code();
    }
    if (__builtin_expect(flow->no_atomics, 0)) {
        status = check_atomics(flow, op);
        if (status)
            return status;
    }
    if (flow->pipe) {
        status = channel->verbs->staging->post(flow->pipe, op);
        verbs_leave(flow);
        return status;
    }
    status = gpsh_verbs_flow_post(flow, op);
    if (__builtin_expect((unsigned)status > GPSH_POST_CAPTURED, 0)) // else when it has completed
        verbs_leave(flow);
    return status;
}

#ifdef GPSH_ASSERTS
static bool range_is_checked(const struct verbs_flow *flow, int region, uint64_t at, uint64_t bytes)
{
    if (region >= GPSH_REGIONS) // a mailbox: of the room above
        return true;
    const struct gpsh_verbs *verbs = flow->channel->verbs;
    uint32_t n = region == GPSH_HEAP ? atomic_load(&verbs->n_chunks) : 0;
    uint64_t all = n ? verbs->chunk_ends[n - 1] : verbs->env.regions[region].bytes;
    return bytes <= all && at <= all - bytes;
}

// What transport.h promises of every operation.
static bool op_is_checked(const struct verbs_flow *flow, const struct gpsh_op *op)
{
    uint64_t bytes = op->kind == GPSH_OP_AMO ? op->width : op->bytes;
    return (!bytes || range_is_checked(flow, op->region, op->remote, bytes)) &&
           (op->kind != GPSH_OP_PUT_SIGNAL ||
            range_is_checked(flow, op->region, op->signal, VERBS_SIGNAL_BYTES));
}
#endif

int gpsh_verbs_flow_post(struct verbs_flow *flow, const struct gpsh_op *op)
{
    struct verbs_channel *channel = flow->channel;
#ifdef GPSH_ASSERTS
    assert(op_is_checked(flow, op));
#endif
    uint64_t before = flow->pub->posted;
    verbs_enter(flow);
    bool up = verbs_is_up(flow);
    if (before - flow->pub->completed > flow->slot_mask)
        return gpsh_verbs_refuse(channel);
    if (before == flow->pub->completed && __builtin_expect(verbs_told(flow), 0) && up)
        gpsh_verbs_flow_told(flow);
    if (needs_no_work(op))
        return accept_empty(flow, op);
    struct verbs_slot *slot = &flow->slots[before & flow->slot_mask];
    slot_fill(flow, slot, op);
    if (!prepare_capture(flow, slot, up))
        return gpsh_verbs_refuse(channel);
    // found while copying, or while ringing the doorbell of what was there before
    if (flow->refused)
        gpsh_verbs_flow_refused(flow);
    if (flow->pub->error) {
        gpsh_verbs_bounce_give(&channel->bounce, slot->block);
        return flow->pub->error;
    }
    slot_order(flow, slot, before);
    verbs_watch(flow);
    gpsh_count_add(&flow->pub->posted, 1);
    channel->base.pending++;
    return launch(flow, slot, before + 1, up);
}

int gpsh_verbs_flush(struct gpsh_channel *base)
{
    gpsh_verbs_held_flush((struct verbs_channel *)base);
    return 0;
}

// Costs a flag: the next operation of the flow takes it. All flows at once are an epoch that each
// compares.
void gpsh_verbs_fence(struct gpsh_channel *base, int pe)
{
    struct verbs_channel *channel = (struct verbs_channel *)base;
    struct verbs_flow *flow = pe == GPSH_ALL_PES ? NULL : verbs_flow_at(channel, pe);
    if (pe == GPSH_ALL_PES)
        channel->epoch++;
    else if (flow && flow->pipe)
        channel->verbs->staging->fence(flow->pipe);
    else if (flow)
        flow->fenced = true;
}
