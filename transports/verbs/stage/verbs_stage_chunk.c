// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE
// Chunks: begun in order, sent in order, retired in order. In between each goes as fast as it can.
#include <stdio.h>

#include "transport/direct.h"
#include "transports/verbs/stage/verbs_staging.h"

enum { CHECK_EVERY = 1 << 16 };

static bool is_put(const struct gpsh_op *op)
{
    return op->kind == GPSH_OP_PUT || op->kind == GPSH_OP_PUT_SIGNAL;
}

static bool brings_back(const struct gpsh_op *op)
{
    return op->kind == GPSH_OP_GET || (op->kind == GPSH_OP_AMO && op->result);
}

// The GPU here has failed: nothing that is staged can go on.
static void fail_copies(struct verbs_stage_pipe *pipe)
{
    char why[640];
    snprintf(why, sizeof why, "staging towards PE %d: %s", pipe->flow->pe, gpsh_last_error());
    gpsh_verbs_flow_fail(pipe->flow, gpsh_last_error_code(), why);
}

// A copy between a block and memory that may be a GPU's is one of the channel's queue; the
// processor does the others.
static bool is_host(const struct gpsh_op *op)
{
    return op->flags & GPSH_OP_LOCAL_HOST;
}

// Gives a copy that was put into the channel's queue its number, and a mark by which its end is
// seen.
static bool number_copy(struct verbs_stage_pipe *pipe, struct stage_chunk *chunk, int status)
{
    struct verbs_channel *channel = pipe->flow->channel;
    if (status >= 0 && status != GPSH_POST_DONE) {
        chunk->copy = ++channel->copied;
        status = channel->verbs->stage.queues->mark(channel->copies, chunk->copy);
    }
    if (status < 0)
        fail_copies(pipe);
    return status >= 0;
}

static void fill_header(const struct verbs_stage_pipe *pipe, const struct stage_chunk *chunk,
                        const struct gpsh_op *op)
{
    struct stage_request request = {.number = chunk->mail,
                                    .op = {.region = op->region,
                                           .remote = op->remote + chunk->offset,
                                           .signal = op->signal,
                                           .operand = op->operand,
                                           .compare = op->compare,
                                           .bytes = chunk->bytes,
                                           .kind = op->kind,
                                           .amo = op->amo,
                                           .width = op->width,
                                           .flags = op->flags & GPSH_OP_SIGNAL_ADD,
                                           .fetch = op->kind == GPSH_OP_AMO && op->result}};
    if (op->kind == GPSH_OP_PUT_SIGNAL && !chunk->last)
        request.op.kind = GPSH_OP_PUT;
    memcpy(stage_block(pipe, chunk), &request, sizeof request);
}

static uint32_t chunk_bytes(const struct verbs_stage_pipe *pipe, const struct stage_op *entry)
{
    if (entry->op.kind == GPSH_OP_AMO)
        return 0;
    uint64_t rest = entry->op.bytes - entry->offset;
    return (uint32_t)(rest < pipe->payload ? rest : pipe->payload);
}

static bool copy_in(struct verbs_stage_pipe *pipe, struct stage_op *entry,
                    struct stage_chunk *chunk)
{
    struct verbs_channel *channel = pipe->flow->channel;
    const char *from = entry->op.local + chunk->offset;
    if (is_host(&entry->op)) {
        memcpy(stage_payload(pipe, chunk), from, chunk->bytes);
        return true;
    }
    int status = channel->verbs->stage.queues->get(channel->copies, stage_payload(pipe, chunk),
                                                   from, chunk->bytes);
    if (!number_copy(pipe, chunk, status))
        return false;
    entry->last_copy = chunk->copy;
    return true;
}

// False if there is no block for it, or the pipe failed.
static bool begin(struct verbs_stage_pipe *pipe, struct stage_op *entry, uint64_t number)
{
    struct verbs_channel *channel = pipe->flow->channel;
    const struct gpsh_op *op = &entry->op;
    uint32_t bytes = chunk_bytes(pipe, entry),
             room = op->kind == GPSH_OP_AMO ? sizeof(uint64_t) : bytes;
    uint16_t block = gpsh_verbs_bounce_capture(&channel->bounce, STAGE_HEADER + room);
    if (block == VERBS_NO_BLOCK)
        return false;
    struct stage_chunk *chunk = stage_chunk_at(pipe, pipe->begun + 1);
    *chunk = (struct stage_chunk){.pipe = pipe,
                                  .number = ++pipe->begun,
                                  .op = number,
                                  .offset = entry->offset,
                                  .bytes = bytes,
                                  .block = block,
                                  .state = STAGE_COPY_IN};
    entry->offset += bytes;
    entry->chunks++;
    chunk->last = op->kind == GPSH_OP_AMO || entry->offset == op->bytes;
    chunk->far = entry->way == STAGE_FAR;
    if (chunk->far) {
        chunk->mail = ++pipe->mailed;
        fill_header(pipe, chunk, op);
    }
    if (!is_put(op) || !bytes)
        return true;
    channel->stats.bounce_bytes += bytes;
    return copy_in(pipe, entry, chunk);
}

// Every operation has one chunk at least, but for a put or get of nothing.
static bool is_cut(const struct stage_op *entry)
{
    const struct gpsh_op *op = &entry->op;
    if (entry->way == STAGE_DIRECT)
        return true;
    if (op->kind == GPSH_OP_AMO)
        return entry->offset || entry->chunks;
    if (!op->bytes)
        return op->kind != GPSH_OP_PUT_SIGNAL || entry->chunks;
    return entry->offset == op->bytes;
}

static void cut(struct verbs_stage_pipe *pipe)
{
    while (pipe->cut < pipe->pub->posted) {
        struct stage_op *entry = stage_op_at(pipe, pipe->cut + 1);
        while (!is_cut(entry))
            if (pipe->begun - pipe->retired == pipe->depth || !begin(pipe, entry, pipe->cut + 1))
                return;
        pipe->cut++;
    }
}

// The flow's operation for a chunk has completed.
static void moved(struct gpsh_completion *self, int status)
{
    struct stage_chunk *chunk = (struct stage_chunk *)self;
    if (status)
        return; // the flow's failure takes everything along
    chunk->state = is_put(&stage_op_at(chunk->pipe, chunk->op)->op) ? STAGE_DONE : STAGE_LANDED;
}

// True if the flow took it.
static bool post(struct verbs_stage_pipe *pipe, const struct gpsh_op *op)
{
    int status = gpsh_verbs_flow_post(pipe->flow, op);
    return status >= 0 && status != GPSH_POST_AGAIN;
}

static bool send_far(struct verbs_stage_pipe *pipe, const struct stage_chunk *chunk,
                     const struct gpsh_op *of)
{
    struct gpsh_op op = {.kind = GPSH_OP_PUT_SIGNAL,
                         .region = GPSH_VERBS_STAGE,
                         .pe = pipe->flow->pe,
                         .local = stage_block(pipe, chunk),
                         .remote =
                             pipe->slots + (chunk->mail - 1) % pipe->n_slots * pipe->slot_bytes,
                         .bytes = STAGE_HEADER + (is_put(of) ? chunk->bytes : 0),
                         .flags = GPSH_OP_LOCAL_HOST,
                         .operand = chunk->mail,
                         .signal = pipe->arrived};
    if (!post(pipe, &op))
        return false;
    pipe->asked = chunk->mail;
    return true;
}

// The write or read itself. A signal waits for earlier chunks, which may have gone by other rails.
static bool send_near(struct verbs_stage_pipe *pipe, struct stage_chunk *chunk,
                      const struct stage_op *of)
{
    struct gpsh_op op = of->op;
    op.local = stage_payload(pipe, chunk);
    op.remote += chunk->offset;
    op.bytes = chunk->bytes;
    op.flags = (op.flags & GPSH_OP_SIGNAL_ADD) | GPSH_OP_LOCAL_HOST;
    op.completion = &chunk->completion;
    chunk->completion.done = moved;
    if (op.kind == GPSH_OP_PUT_SIGNAL && !chunk->last)
        op.kind = GPSH_OP_PUT;
    if ((of->fenced && !chunk->offset) || (op.kind == GPSH_OP_PUT_SIGNAL && chunk->offset))
        pipe->flow->fenced = true;
    return post(pipe, &op);
}

// What lies behind a fence, or is the signal of data that went by the flow. The mailbox's count is
// written after everything that went before by the same lane; but if that says less than is needed,
// it has to be complete. A near chunk waits until the far ones before the fence have been answered.
static bool may_send(const struct verbs_stage_pipe *pipe, struct stage_chunk *chunk,
                     const struct stage_op *of)
{
    bool behind = of->fenced && !chunk->offset;
    if (!stage_copied(pipe->flow->channel, chunk->copy))
        return false;
    if (!chunk->far)
        return !behind || !pipe->asked || pipe->retired + 1 == chunk->number;
    if (behind && pipe->apart && !chunk->behind)
        chunk->behind = pipe->inner.posted;
    return pipe->inner.completed >= chunk->behind && pipe->inner.completed >= pipe->reads;
}

static void send(struct verbs_stage_pipe *pipe)
{
    while (pipe->sent < pipe->begun) {
        struct stage_chunk *chunk = stage_chunk_at(pipe, pipe->sent + 1);
        struct stage_op *entry = stage_op_at(pipe, chunk->op);
        if (!may_send(pipe, chunk, entry))
            return;
        chunk->state = STAGE_SENT; // first: it may complete at once
        if (!(chunk->far ? send_far(pipe, chunk, &entry->op) : send_near(pipe, chunk, entry))) {
            chunk->state = STAGE_COPY_IN;
            return;
        }
        pipe->sent++;
    }
}

// What the agent left in the slot.
static bool fetch(struct verbs_stage_pipe *pipe, struct stage_chunk *chunk,
                  const struct gpsh_op *of)
{
    struct gpsh_op op = {
        .kind = GPSH_OP_GET,
        .region = GPSH_VERBS_STAGE,
        .pe = pipe->flow->pe,
        .local = stage_payload(pipe, chunk),
        .remote = pipe->slots + (chunk->mail - 1) % pipe->n_slots * pipe->slot_bytes + STAGE_HEADER,
        .bytes = of->kind == GPSH_OP_AMO ? sizeof(uint64_t) : chunk->bytes,
        .flags = GPSH_OP_LOCAL_HOST,
        .completion = &chunk->completion};
    chunk->completion.done = moved;
    chunk->fetching = true;
    if (!post(pipe, &op))
        chunk->fetching = false;
    return chunk->fetching;
}

static void copy_out(struct verbs_stage_pipe *pipe, struct stage_chunk *chunk,
                     const struct gpsh_op *op)
{
    struct verbs_channel *channel = pipe->flow->channel;
    bool amo = op->kind == GPSH_OP_AMO;
    void *to = amo ? op->result : op->local + chunk->offset;
    uint32_t bytes = amo ? op->width : chunk->bytes;
    channel->stats.bounce_bytes += bytes;
    if (is_host(op)) {
        gpsh_direct_copy(to, stage_payload(pipe, chunk), bytes);
        chunk->state = STAGE_DONE;
        return;
    }
    int status = channel->verbs->stage.queues->put(channel->copies, to, stage_payload(pipe, chunk),
                                                   bytes, false);
    if (number_copy(pipe, chunk, status))
        chunk->state = STAGE_COPY_OUT;
}

// False if the chunks after it need not be looked at.
static bool step(struct verbs_stage_pipe *pipe, struct stage_chunk *chunk)
{
    const struct gpsh_op *op = &stage_op_at(pipe, chunk->op)->op;
    if (chunk->state == STAGE_SENT && chunk->far && !chunk->fetching) {
        if (chunk->mail > pipe->answered)
            return false;
        if (!brings_back(op))
            chunk->state = STAGE_DONE;
        else if (!fetch(pipe, chunk, op))
            return false;
    }
    if (chunk->state == STAGE_LANDED)
        copy_out(pipe, chunk, op);
    if (chunk->state == STAGE_COPY_OUT && stage_copied(pipe->flow->channel, chunk->copy))
        chunk->state = STAGE_DONE;
    return !pipe->pub->error;
}

static void retire(struct verbs_stage_pipe *pipe)
{
    while (pipe->retired < pipe->sent) {
        struct stage_chunk *chunk = stage_chunk_at(pipe, pipe->retired + 1);
        if (chunk->state != STAGE_DONE)
            return;
        gpsh_verbs_bounce_give(&pipe->flow->channel->bounce, chunk->block);
        stage_op_at(pipe, chunk->op)->chunks--;
        pipe->retired++;
    }
}

static void polled(struct gpsh_completion *self, int status)
{
    struct verbs_stage_pipe *pipe =
        (struct verbs_stage_pipe *)(void *)((char *)self -
                                            offsetof(struct verbs_stage_pipe, polled));
    if (status)
        return; // the block is given back with the others
    struct verbs_bounce *bounce = &pipe->flow->channel->bounce;
    uint64_t word;
    memcpy(&word, gpsh_verbs_bounce_at(bounce, pipe->poll_block), sizeof word);
    pipe->refused = word & (STAGE_REFUSED_RANGE | STAGE_REFUSED_QUEUE);
    pipe->answered = word & ~(STAGE_REFUSED_RANGE | STAGE_REFUSED_QUEUE);
    gpsh_verbs_bounce_give(bounce, pipe->poll_block);
    pipe->poll_block = VERBS_NO_BLOCK;
    pipe->polling = false;
}

// Asks what has been answered. Also how a target that has died is noticed.
static void poll(struct verbs_stage_pipe *pipe)
{
    struct verbs_bounce *bounce = &pipe->flow->channel->bounce;
    if (pipe->polling || pipe->answered == pipe->asked)
        return;
    uint16_t block = gpsh_verbs_bounce_take(bounce, sizeof(uint64_t));
    if (block == VERBS_NO_BLOCK)
        return;
    struct gpsh_op op = {.kind = GPSH_OP_GET,
                         .region = GPSH_VERBS_STAGE,
                         .pe = pipe->flow->pe,
                         .local = gpsh_verbs_bounce_at(bounce, block),
                         .remote = pipe->answered_at,
                         .bytes = sizeof(uint64_t),
                         .flags = GPSH_OP_LOCAL_HOST,
                         .completion = &pipe->polled};
    pipe->polled.done = polled;
    pipe->poll_block = block;
    pipe->polling = true;
    if (!post(pipe, &op) && !pipe->pub->error) {
        gpsh_verbs_bounce_give(bounce, block);
        pipe->poll_block = VERBS_NO_BLOCK;
        pipe->polling = false;
    }
}

static void fail_refused(struct verbs_stage_pipe *pipe)
{
    char why[200];
    snprintf(why, sizeof why, "PE %d's agent refuses: %s", pipe->flow->pe,
             pipe->refused & STAGE_REFUSED_RANGE ? "the address is outside its heap"
                                                 : "its GPU failed; see its log");
    gpsh_verbs_flow_fail(pipe->flow, GPUSHMEM_ERR_TRANSPORT, why);
}

// No mark comes from a CUDA context that broke: it is asked now and then.
static void check_copies(struct verbs_stage_pipe *pipe)
{
    struct verbs_channel *channel = pipe->flow->channel;
    if (stage_copied(channel, channel->copied) || ++pipe->idle % CHECK_EVERY)
        return;
    if (channel->verbs->stage.queues->check(channel->copies) < 0)
        fail_copies(pipe);
}

// Whether the GPU still works on a block of the pipe. One that broke reaches no mark, but does not
// write any more either.
static bool is_copying(struct verbs_stage_pipe *pipe)
{
    struct verbs_channel *channel = pipe->flow->channel;
    bool copying = false;
    for (uint64_t number = pipe->retired + 1; number <= pipe->begun; number++)
        copying |= !stage_copied(channel, stage_chunk_at(pipe, number)->copy);
    return copying && (++pipe->idle % CHECK_EVERY ||
                       channel->verbs->stage.queues->check(channel->copies) >= 0);
}

// After a failure: the blocks come back when neither NIC nor GPU works on them any more.
static void drain(struct verbs_stage_pipe *pipe)
{
    struct verbs_channel *channel = pipe->flow->channel;
    const struct gpsh_flow *flow = pipe->flow->pub;
    if (flow->completed != flow->posted || is_copying(pipe))
        return;
    for (; pipe->retired < pipe->begun; pipe->retired++)
        gpsh_verbs_bounce_give(&channel->bounce, stage_chunk_at(pipe, pipe->retired + 1)->block);
    gpsh_verbs_bounce_give(&channel->bounce, pipe->poll_block);
    pipe->poll_block = VERBS_NO_BLOCK;
    pipe->draining = false;
}

void gpsh_verbs_chunks_drive(struct verbs_stage_pipe *pipe)
{
    uint64_t before;
    do {
        if (pipe->pub->error)
            break;
        before = pipe->begun + pipe->sent + pipe->retired;
        cut(pipe);
        send(pipe);
        for (uint64_t number = pipe->retired + 1;
             number <= pipe->sent && step(pipe, stage_chunk_at(pipe, number)); number++)
            ;
        if (!pipe->pub->error)
            retire(pipe);
    } while (before != pipe->begun + pipe->sent + pipe->retired);
    if (!pipe->pub->error && pipe->refused)
        fail_refused(pipe);
    if (!pipe->pub->error) {
        poll(pipe);
        check_copies(pipe);
    }
    if (pipe->draining)
        drain(pipe);
}
