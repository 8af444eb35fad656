// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE
// Pipes: accepting the operations of a flow that is staged, and completing them in order. What
// becomes of their chunks is in verbs_stage_chunk.c.
#include <stdlib.h>

#include "transports/verbs/stage/verbs_staging.h"

static uint32_t lesser(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static void set_sizes(struct verbs_stage_pipe *pipe, uint32_t channel,
                      const struct gpsh_verbs_blob *peer)
{
    const struct gpsh_verbs *verbs = pipe->flow->channel->verbs;
    const struct gpsh_settings *settings = verbs->env.settings;
    uint32_t block = pipe->flow->channel->bounce.large_bytes;
    bool whole = peer->serves & GPSH_VERBS_SERVES_HEAP;
    pipe->serves = peer->serves;
    pipe->n_slots = peer->slots;
    pipe->slot_bytes = peer->slot_bytes;
    pipe->depth = peer->slots ? peer->slots : (uint32_t)settings->stage_depth;
    pipe->payload =
        lesser(block, whole ? peer->slot_bytes : (uint32_t)settings->stage_chunk) - STAGE_HEADER;
    uint32_t box = (uint32_t)verbs->env.my_pe * peer->n_channels + channel;
    struct gpsh_verbs_stage_layout at =
        gpsh_verbs_stage_layout(peer->n_pes * peer->n_channels, peer->slots, peer->slot_bytes);
    pipe->arrived = at.arrived + 8 * (uint64_t)box;
    pipe->answered_at = at.answered + 8 * (uint64_t)box;
    pipe->slots = at.slots + (uint64_t)box * peer->slots * peer->slot_bytes;
}

static void activate(struct verbs_stage_pipe *pipe)
{
    if (pipe->pub->posted != pipe->pub->completed || pipe->draining)
        verbs_due_add(&pipe->flow->channel->pipes, &pipe->due);
}

static void op_complete(struct verbs_stage_pipe *pipe, int status)
{
    struct verbs_channel *channel = pipe->flow->channel;
    struct gpsh_completion *completion = stage_op_at(pipe, pipe->pub->completed + 1)->op.completion;
    gpsh_count_add(&pipe->pub->completed, 1);
    channel->base.pending--;
    channel->retired++;
    if (completion)
        completion->done(completion, status); // may post: the books are in order already
}

static void ops_retire(struct verbs_stage_pipe *pipe)
{
    while (pipe->pub->completed < pipe->cut) {
        const struct stage_op *op = stage_op_at(pipe, pipe->pub->completed + 1);
        if (op->way == STAGE_DIRECT ? !op->done : op->chunks)
            return;
        op_complete(pipe, 0);
    }
}

static void ops_fail(struct verbs_stage_pipe *pipe)
{
    while (pipe->pub->completed < pipe->pub->posted)
        op_complete(pipe, pipe->pub->error);
}

static void drive(struct verbs_stage_pipe *pipe)
{
    gpsh_verbs_chunks_drive(pipe);
    if (!pipe->pub->error)
        ops_retire(pipe);
    else if (!pipe->draining)
        ops_fail(pipe);
    activate(pipe);
}

static void drive_due(struct verbs_due *due)
{
    drive(VERBS_DUE_OF(due, struct verbs_stage_pipe));
}

static void pipes_progress(struct verbs_channel *channel)
{
    verbs_due_run(&channel->pipes, drive_due);
    if (channel->verbs->stage.agent)
        gpsh_verbs_agent_help(channel->verbs);
}

// The flow below has failed: so has everything here. It completes, and the blocks come back, when
// neither NIC nor GPU works on them any more.
static void pipe_fail(struct verbs_stage_pipe *pipe, int code)
{
    gpsh_flow_fail(pipe->pub, code);
    pipe->cut = pipe->pub->posted;
    pipe->draining = true;
    activate(pipe);
}

static bool is_put(const struct gpsh_op *op)
{
    return op->kind == GPSH_OP_PUT || op->kind == GPSH_OP_PUT_SIGNAL;
}

// A fetch is a read of the flow, which the mailbox would only delay. A signal that is set is a
// write, which no atomic of the same kind meets.
static enum stage_way way_of(const struct verbs_stage_pipe *pipe, const struct gpsh_op *op)
{
    const struct gpsh_verbs *verbs = pipe->flow->channel->verbs;
    if (pipe->serves & GPSH_VERBS_SERVES_ATOMICS && op->kind == GPSH_OP_AMO &&
        op->amo != GPSH_AMO_FETCH)
        return STAGE_FAR;
    if (op->region != GPSH_HEAP)
        return STAGE_DIRECT;
    if (pipe->serves & GPSH_VERBS_SERVES_HEAP)
        return STAGE_FAR;
    bool near = op->kind != GPSH_OP_AMO && op->bytes && op->bytes >= verbs->stage.from &&
                gpsh_env_in_heap(&verbs->env, op->local, op->bytes);
    return near ? STAGE_NEAR : STAGE_DIRECT;
}

// A fence is about what goes by the flow and what goes by the mailbox, in all four combinations:
//   flow, then flow     its next operation takes the fence
//   flow, then mailbox  the next chunk to there is behind the flow's (verbs_stage_chunk.c)
//   mailbox, then flow  waits for the answer to the last far operation before the fence
//   mailbox, then mailbox  are in order
static void note_fence(struct verbs_stage_pipe *pipe)
{
    pipe->fenced = pipe->far_fenced = true;
    pipe->fence_far = pipe->last_far;
}

static void note_epoch(struct verbs_stage_pipe *pipe)
{
    if (pipe->epoch != pipe->flow->channel->epoch)
        note_fence(pipe);
    pipe->epoch = pipe->flow->channel->epoch;
}

static struct stage_op *accept(struct verbs_stage_pipe *pipe, const struct gpsh_op *op,
                               enum stage_way way)
{
    struct verbs_channel *channel = pipe->flow->channel;
    bool *fenced = way == STAGE_FAR ? &pipe->far_fenced : &pipe->fenced;
    struct stage_op *entry = stage_op_at(pipe, pipe->pub->posted + 1);
    *entry = (struct stage_op){.pipe = pipe, .op = *op, .way = (uint8_t)way, .fenced = *fenced};
    *fenced = false;
    gpsh_count_add(&pipe->pub->posted, 1);
    channel->base.pending++;
    if (way == STAGE_NEAR)
        pipe->last_near = pipe->pub->posted;
    if (way == STAGE_FAR)
        pipe->last_far = pipe->pub->posted;
    return entry;
}

static void direct_done(struct gpsh_completion *self, int status)
{
    struct stage_op *entry = (struct stage_op *)self;
    entry->done = true;
    if (!status) // else the pipe's failure completes it
        ops_retire(entry->pipe);
}

static bool is_sent(struct verbs_stage_pipe *pipe, uint64_t number)
{
    return stage_op_done(pipe, number) || (pipe->cut >= number && pipe->sent == pipe->begun);
}

// Whether an operation of the flow would overtake one that it must not. Behind near ones the lanes
// keep the order, once they are sent. A far one must have been answered: if a fence lies between;
// if that is a fetch, perhaps of its word; and always where the heap itself is staged, for words of
// other regions tell of it.
static bool must_wait(struct verbs_stage_pipe *pipe, const struct gpsh_op *op)
{
    bool any = pipe->serves & GPSH_VERBS_SERVES_HEAP || op->kind == GPSH_OP_AMO;
    return !stage_op_done(pipe, any ? pipe->last_far : pipe->fence_far) ||
           !is_sent(pipe, pipe->last_near);
}

static int post_direct(struct verbs_stage_pipe *pipe, const struct gpsh_op *op)
{
    struct verbs_flow *flow = pipe->flow;
    if (must_wait(pipe, op))
        return gpsh_verbs_refuse(flow->channel);
    bool idle = pipe->pub->completed == pipe->pub->posted;
    bool all_cut = pipe->cut == pipe->pub->posted;
    struct stage_op *entry = accept(pipe, op, STAGE_DIRECT);
    entry->completion.done = direct_done;
    pipe->cut += all_cut;
    flow->fenced |= entry->fenced;
    struct gpsh_op inner = *op;
    inner.completion = &entry->completion;
    int status = gpsh_verbs_flow_post(flow, &inner);
    if (pipe->pub->error)
        return GPSH_POST_IN_FLIGHT; // was posted, and completes with the flow's error
    if (status == GPSH_POST_AGAIN || status < 0) {
        pipe->fenced = entry->fenced;
        pipe->cut -= all_cut;
        pipe->pub->posted--;
        flow->channel->base.pending--;
        return status;
    }
    if (op->kind == GPSH_OP_AMO)
        pipe->reads = pipe->inner.posted;
    return status == GPSH_POST_DONE && !idle ? GPSH_POST_CAPTURED : status;
}

static bool source_free(struct verbs_stage_pipe *pipe, uint64_t number)
{
    return pipe->pub->completed >= number ||
           (pipe->cut >= number &&
            stage_copied(pipe->flow->channel, stage_op_at(pipe, number)->last_copy));
}

static uint64_t chunks_of(const struct verbs_stage_pipe *pipe, uint64_t bytes)
{
    return (bytes + pipe->payload - 1) / pipe->payload;
}

// `free`: how many large blocks there are.
static bool has_blocks(const struct verbs_stage_pipe *pipe, uint64_t bytes, uint64_t free)
{
    const struct verbs_bounce *bounce = &pipe->flow->channel->bounce;
    bool small = STAGE_HEADER + bytes <= bounce->small_bytes && bytes <= pipe->payload;
    return (small && bounce->free_small) || chunks_of(pipe, bytes) + VERBS_BLOCKS_KEPT <= free;
}

// Whether all of the operation's chunks can begin now, so that its source is free as soon as it is
// copied.
static bool fits_now(const struct verbs_stage_pipe *pipe, uint64_t bytes)
{
    return pipe->cut == pipe->pub->posted &&
           pipe->begun - pipe->retired + chunks_of(pipe, bytes) <= pipe->depth &&
           has_blocks(pipe, bytes, pipe->flow->channel->bounce.free_large);
}

// The same if nothing else were under way.
static bool fits_alone(const struct verbs_stage_pipe *pipe, uint64_t bytes)
{
    return chunks_of(pipe, bytes) <= pipe->depth &&
           has_blocks(pipe, bytes, pipe->flow->channel->bounce.n_large);
}

// Copies of this PE's GPU, which take less time than an answer of the target. One that failed takes
// the pipe down: then the source is in use until the operation is complete.
static void wait_for_copies(struct verbs_stage_pipe *pipe, uint64_t number)
{
    while (!source_free(pipe, number) && !pipe->pub->error)
        drive(pipe);
    drive(pipe); // what was copied goes out
}

static int post_chunked(struct verbs_stage_pipe *pipe, const struct gpsh_op *op, enum stage_way way)
{
    bool captured = is_put(op) && op->bytes && op->flags & GPSH_OP_CAPTURE;
    // The caller can give up, or do something else meanwhile; a wait in here could not. The source
    // of an operation that does not fit even alone stays in use until the operation is complete.
    bool fits = fits_alone(pipe, op->bytes);
    if (captured && fits && !fits_now(pipe, op->bytes))
        return gpsh_verbs_refuse(pipe->flow->channel);
    bool idle = pipe->pub->completed == pipe->pub->posted;
    accept(pipe, op, way);
    uint64_t number = pipe->pub->posted;
    drive(pipe);
    if (captured && fits)
        wait_for_copies(pipe, number);
    if (idle && !pipe->pub->error && pipe->pub->completed >= number)
        return GPSH_POST_DONE;
    return is_put(op) && source_free(pipe, number) ? GPSH_POST_CAPTURED : GPSH_POST_IN_FLIGHT;
}

static int post_one(struct verbs_stage_pipe *pipe, const struct gpsh_op *op)
{
    enum stage_way way = way_of(pipe, op);
    return way == STAGE_DIRECT ? post_direct(pipe, op) : post_chunked(pipe, op, way);
}

// A signal that is added where the data does not go by the mailbox: a put, and an atomic behind it.
// Once the put is accepted so is the atomic, also if the pipe has failed meanwhile: the operation's
// completion is the atomic's.
static int post_in_two(struct verbs_stage_pipe *pipe, const struct gpsh_op *op)
{
    struct gpsh_op data = *op, add = *op;
    int status = GPSH_POST_CAPTURED;
    data.kind = GPSH_OP_PUT;
    data.flags = (uint8_t)((op->flags & ~GPSH_OP_SIGNAL_ADD) | GPSH_OP_MORE);
    data.completion = NULL;
    add.kind = GPSH_OP_AMO;
    add.amo = GPSH_AMO_ADD;
    add.width = sizeof(uint64_t);
    add.remote = op->signal;
    add.bytes = 0;
    add.result = NULL;
    if (op->bytes)
        status = post_one(pipe, &data);
    if (status < 0 || status == GPSH_POST_AGAIN)
        return status;
    accept(pipe, &add, STAGE_FAR)->fenced = true;
    if (pipe->pub->error)
        pipe->cut = pipe->pub->posted;
    drive(pipe);
    if (!(op->flags & GPSH_OP_MORE))
        gpsh_verbs_held_flush(pipe->flow->channel); // the data, if the atomic has to wait
    return status == GPSH_POST_DONE ? GPSH_POST_CAPTURED : status;
}

static bool goes_in_two(const struct verbs_stage_pipe *pipe, const struct gpsh_op *op)
{
    return pipe->serves & GPSH_VERBS_SERVES_ATOMICS && op->kind == GPSH_OP_PUT_SIGNAL &&
           op->flags & GPSH_OP_SIGNAL_ADD && way_of(pipe, op) != STAGE_FAR;
}

static int pipe_post(struct verbs_stage_pipe *pipe, const struct gpsh_op *op)
{
    bool in_two = goes_in_two(pipe, op);
    if (pipe->pub->posted - pipe->pub->completed + in_two > pipe->flow->slot_mask)
        return gpsh_verbs_refuse(pipe->flow->channel);
    note_epoch(pipe);
    return in_two ? post_in_two(pipe, op) : post_one(pipe, op);
}

static void pipe_destroy(struct verbs_flow *flow)
{
    struct verbs_stage_pipe *pipe = flow->pipe;
    if (!pipe)
        return;
    flow->pub = pipe->pub;
    free(pipe->chunks);
    free(pipe->ops);
    free(pipe);
    flow->pipe = NULL;
}

static int pipe_open(struct verbs_flow *flow)
{
    struct gpsh_verbs *verbs = flow->channel->verbs;
    const struct gpsh_verbs_blob *peer = &flow->peer->blob;
    if (!peer->slots && verbs->stage.mode == VERBS_STAGE_NOTHING)
        return 0;
    struct verbs_stage_pipe *pipe = calloc(1, sizeof *pipe);
    if (!pipe)
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory for staged operations towards PE %d",
                         flow->pe);
    pipe->flow = flow;
    pipe->pub = flow->pub;
    pipe->poll_block = VERBS_NO_BLOCK;
    set_sizes(pipe, (uint32_t)(flow->channel - verbs->channels), peer);
    pipe->chunks = calloc(pipe->depth, sizeof *pipe->chunks);
    pipe->ops = calloc(flow->slot_mask + 1, sizeof *pipe->ops);
    flow->pipe = pipe;
    flow->serves = pipe->serves;
    pipe->apart = flow->lanes[0].apart;
    flow->pub = &pipe->inner;
    int status =
        !pipe->chunks || !pipe->ops
            ? gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory for %u staged chunks towards PE %d",
                        pipe->depth, flow->pe)
            : gpsh_verbs_copies_open(verbs, flow->channel);
    if (status)
        pipe_destroy(flow);
    return status;
}

const struct verbs_staging gpsh_verbs_staging = {.open = pipe_open,
                                                 .post = pipe_post,
                                                 .fence = note_fence,
                                                 .fail = pipe_fail,
                                                 .progress = pipes_progress};

void gpsh_verbs_pipes_destroy(struct verbs_channel *channel)
{
    for (uint32_t i = 0; i < channel->n_lanes; i++)
        pipe_destroy(channel->lanes[i]->flow);
    gpsh_verbs_copies_close(channel);
}
