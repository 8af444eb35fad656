// SPDX-License-Identifier: BSD-3-Clause
// Posting and completing, in layers; each file uses those above it in this list only.
//
//   lane      a queue pair's chain of work requests, its doorbell, what becomes of its requests
//   flow      the books: operations completed in order, a flow that fails
//   word      requests on single words, and what their answers become
//   order     reads that make an order where the queues alone do not
//   lock, amo, rma      operations as work requests
//   repeat    operations that are issued again, in their order
//   doubt     a lane whose requests were perhaps executed: the peer is asked
//   failover  a flow that loses a lane, and goes on over the others
//   drive     what waits goes on: issued in order, as far as it goes
//   kick      lanes that have stopped
//   cq        completions, and progress
//   post      how operations come in: accepted, launched
#ifndef GPSH_VERBS_POSTING_H
#define GPSH_VERBS_POSTING_H

#include "transports/verbs/setup/verbs_setup.h"

// verbs_lane.c
bool gpsh_verbs_lane_reserve(struct verbs_lane *lane, uint32_t n);
// Rings the doorbell. 0, also if the provider is full for the moment; else the errno by which it
// refused, kept in the lane and noted in the flow: gpsh_verbs_flow_refused.
int gpsh_verbs_lane_flush(struct verbs_lane *lane);
void gpsh_verbs_lane_hold(struct verbs_lane *lane);
void gpsh_verbs_lane_drop_chain(struct verbs_lane *lane);
// Forgets what the lane still had in doubt; the flow has failed.
void gpsh_verbs_lane_undoubt(struct verbs_lane *lane);
// Reads what the lane wrote last, for the slot; there is room for a request.
void gpsh_verbs_read_back(struct verbs_lane *lane, struct verbs_slot *slot);
// Moves the queue pair to the error state: its NIC touches no memory any more once the flushed
// completions have been seen.
void gpsh_verbs_lane_kill(struct verbs_lane *lane);
// The requests of a failed lane up to and without `end` are over: they only give back what they
// hold.
void gpsh_verbs_lane_forget(struct verbs_lane *lane, uint32_t end);
// Whether the NIC touches no memory for the failed lane any more: all its completions were seen; or
// time is up, and its queue pair has been reset.
bool gpsh_verbs_lane_is_flushed(struct verbs_lane *lane);

// verbs_flow.c
// Nobody waits for anything of the flow: it may be closed, unless a lane has more to do.
void gpsh_verbs_flow_rest(struct verbs_flow *flow);
// The flow is looked at by the channel's next progress.
void gpsh_verbs_flow_activate(struct verbs_flow *flow);
void gpsh_verbs_flow_advance(struct verbs_flow *flow);
// `found`: GPUSHMEM_ERR_PE_FAILED if the peer does not answer, which is judged here.
void gpsh_verbs_flow_fail(struct verbs_flow *flow, int found, const char *how);
enum { VERBS_WHY_BYTES = 704 };
// What operations towards the peer fail with: if it does not answer (GPUSHMEM_ERR_PE_FAILED), what
// is known of its process decides, and is added to `why`.
int gpsh_verbs_judge(const struct gpsh_verbs *verbs, int pe, int code, char *why, size_t bytes);
// Tells the runtime. `silent`: the peer does not answer; `code`: of gpsh_verbs_judge.
void gpsh_verbs_tell(const struct gpsh_verbs *verbs, int pe, bool silent, int code,
                     const char *why);
// Completes what a failed flow has under way, if its lanes are flushed; else it stays active.
void gpsh_verbs_flow_end(struct verbs_flow *flow);
// Whether no lane that failed has requests left.
bool gpsh_verbs_flow_is_flushed(struct verbs_flow *flow);
void gpsh_verbs_gpu_copy(struct verbs_flow *flow, void *to, const void *from, uint64_t bytes);
// The first rail that works, but that of the lane; or -1.
int gpsh_verbs_other_rail(const struct verbs_lane *lane);
// What went by the lane, which has failed, goes by another that there is.
void gpsh_verbs_lane_give_way(struct verbs_lane *lane);
// The same, and this PE's other channels and the peer will hear of it.
void gpsh_verbs_lane_leave(struct verbs_lane *lane);
// True, and the flow has failed, if atomics cannot be executed any more.
bool gpsh_verbs_atomics_lost(struct verbs_flow *flow);

// verbs_word.c
struct ibv_send_wr *gpsh_verbs_atomic_request(struct verbs_flow *flow, struct verbs_slot *slot,
                                              int region, uint64_t word, uint8_t kind);
void gpsh_verbs_add_request(struct verbs_flow *flow, struct verbs_slot *slot, int region,
                            uint64_t word, uint64_t value);
// Reads the word that the slot is about, of its width, by that lane.
void gpsh_verbs_read_word(struct verbs_lane *lane, struct verbs_slot *slot, uint8_t kind);
// The same of 8 bytes at an address in the peer's control region.
void gpsh_verbs_read_control(struct verbs_lane *lane, struct verbs_slot *slot, uint64_t from,
                             uint8_t kind);
bool gpsh_verbs_write_word(struct verbs_flow *flow, struct verbs_slot *slot, uint8_t region,
                           uint64_t to, const void *word, uint32_t bytes);
// The signal of a put_signal with add; its old value is dropped.
void gpsh_verbs_add_signal(struct verbs_flow *flow, struct verbs_slot *slot);
// The value that the operation makes of `old`, both of its width.
uint64_t gpsh_verbs_amo_apply(const struct verbs_slot *slot, uint64_t old);
// The word's previous value, of the operation's width, goes where it is wanted.
void gpsh_verbs_deliver(struct verbs_flow *flow, const struct verbs_slot *slot, uint64_t before);
void gpsh_verbs_loop_finish(struct verbs_flow *flow, int index, uint64_t before);

// verbs_order.c
// Before a write that must not be seen before earlier ones of the lane: false if there is no room.
bool gpsh_verbs_order_writes(struct verbs_lane *lane, struct verbs_slot *slot);

// verbs_lock.c
bool gpsh_verbs_lock_needed(const struct verbs_flow *flow, const struct verbs_slot *slot);
void gpsh_verbs_lock_begin(struct verbs_flow *flow, struct verbs_loop *loop);
bool gpsh_verbs_lock_post(struct verbs_flow *flow, int index);
void gpsh_verbs_lock_seen(struct verbs_flow *flow, int index, uint64_t owner);
void gpsh_verbs_lock_retire(struct verbs_flow *flow, int index, uint64_t value);

// verbs_amo.c
bool gpsh_verbs_amo_native(const struct verbs_flow *flow, const struct verbs_slot *slot);
bool gpsh_verbs_amo_issue(struct verbs_flow *flow, struct verbs_slot *slot);
void gpsh_verbs_amo_retire(struct verbs_flow *flow, struct verbs_slot *slot, uint64_t value);
void gpsh_verbs_loop_retire(struct verbs_flow *flow, int index, struct verbs_slot *slot,
                            uint64_t found);
void gpsh_verbs_loops_post(struct verbs_flow *flow);
bool gpsh_verbs_loops_overlap(const struct verbs_flow *flow, const struct verbs_slot *slot);

// verbs_rma.c: false if not everything could be issued now.
bool gpsh_verbs_rma_issue(struct verbs_flow *flow, struct verbs_slot *slot);

// verbs_repeat.c
// Whether the requests of the lane from position `from` on may be executed, and then their
// operations be issued again whole, without anybody noticing.
bool gpsh_verbs_may_repeat(const struct verbs_lane *lane, uint32_t from);
// The operation is issued again: all of it, or its signal.
void gpsh_verbs_slot_repeat(struct verbs_flow *flow, struct verbs_slot *slot,
                            enum verbs_repeat how);
// Position of a slot that is in use in the order of posting.
uint64_t gpsh_verbs_slot_number(const struct verbs_flow *flow, uint32_t index);
// In the order of posting. Returns whether the next operation may be issued: `next`, the first that
// has not been issued whole.
bool gpsh_verbs_repeats_issue(struct verbs_flow *flow, struct verbs_slot *next);

// verbs_doubt.c
// The lane has failed, and may be asked about; false if not, and nothing has changed.
bool gpsh_verbs_doubt_begin(struct verbs_lane *lane, int code, const char *why);
// A completion of a lane in doubt, at that position.
void gpsh_verbs_doubt_flushed(struct verbs_lane *lane, uint32_t position);
void gpsh_verbs_doubts_drive(struct verbs_flow *flow);

// verbs_failover.c
// The lane's queue pair has failed, or will: the flow goes on without it, or fails with `code`.
void gpsh_verbs_lane_fail(struct verbs_lane *lane, int code, const char *why);
// Leaves rails whose connection to the peer was lost in another channel, or as the peer sees it.
void gpsh_verbs_flow_told(struct verbs_flow *flow);
// Tells the peer which rails this flow has left; false if there is no room.
bool gpsh_verbs_note_send(struct verbs_flow *flow);

// verbs_drive.c
// Of a flow that is up. False if not everything of the operation could be issued now.
bool gpsh_verbs_slot_issue(struct verbs_flow *flow, struct verbs_slot *slot);
// A lane of the flow was refused by its NIC's library.
void gpsh_verbs_flow_refused(struct verbs_flow *flow);
// Posts the requests that were held back because of MORE or a full send queue.
void gpsh_verbs_held_flush(struct verbs_channel *channel);
void gpsh_verbs_flow_drive(struct verbs_flow *flow);

// verbs_kick.c
// Looks at the lanes now and then, and has those that stand still look at their queues again.
void gpsh_verbs_kicks(struct verbs_channel *channel);

// verbs_cq.c
int gpsh_verbs_progress(struct gpsh_channel *base);
void gpsh_verbs_kernel_failed(struct gpsh_transport *self, int pe, int rail, uint32_t syndrome,
                              uint32_t vendor, char *why, size_t bytes);

// verbs_post.c
int gpsh_verbs_post(struct gpsh_channel *base, const struct gpsh_op *op);
int gpsh_verbs_refuse(struct verbs_channel *channel);
// Posts to the lanes; op->region may be GPSH_VERBS_STAGE too. Everything else was checked.
int gpsh_verbs_flow_post(struct verbs_flow *flow, const struct gpsh_op *op);
int gpsh_verbs_flush(struct gpsh_channel *base);
void gpsh_verbs_fence(struct gpsh_channel *base, int pe);

// Copies that may touch GPU memory. One that fails takes the flow down: callers need not ask.
static inline void verbs_copy(struct verbs_flow *flow, const struct verbs_slot *slot, void *to,
                              const void *from, uint64_t bytes)
{
    if (flow->channel->verbs->host_heap || (slot->flags & GPSH_OP_LOCAL_HOST))
        memcpy(to, from, bytes);
    else
        gpsh_verbs_gpu_copy(flow, to, from, bytes);
}

// The flow has something under way: its lanes are looked at now and then (verbs_kick.c).
static inline void verbs_watch(struct verbs_flow *flow)
{
    verbs_due_add(&flow->channel->watched, &flow->watched);
}

// The channel's thread is done with the flow for now. With nothing under way it may be closed.
static inline void verbs_leave(struct verbs_flow *flow)
{
    if (flow->pub->completed == flow->pub->posted && !flow->pub->error && !flow->due.listed)
        gpsh_verbs_flow_rest(flow);
}

// Where the payload of the last request of the chain stays, if it is inline.
static inline char *verbs_lane_inlined(const struct verbs_lane *lane, uint32_t position)
{
    return lane->inlined + (size_t)(position & lane->inline_mask) * lane->inline_stride;
}

// The next work request of the lane's chain; gpsh_verbs_lane_reserve has made sure that there is
// one.
static inline struct ibv_send_wr *verbs_lane_next(struct verbs_lane *lane, struct verbs_slot *slot,
                                                  uint8_t kind)
{
    uint32_t index = lane->first + lane->count++;
    struct ibv_send_wr *wr = &lane->wrs[index];
    struct verbs_wqe *wqe = &lane->wqes[lane->head & lane->mask];
    wqe->slot = (uint32_t)(slot - lane->flow->slots);
    wqe->kind = kind;
    wqe->block = VERBS_NO_BLOCK;
    wqe->bytes = 0;
    wqe->to = NULL;
    wr->wr_id = (uint64_t)lane->id << 32 | lane->head;
    wr->num_sge = 1;
    // After a fence: the queue itself does not order earlier reads and atomics before this
    // operation. Its first request carries the flag; the queue executes the others after that one.
    wr->send_flags = slot->fenced && lane->reads ? IBV_SEND_FENCE : 0;
    slot->fenced = false;
    if (kind != WQE_PLAIN)
        lane->reads++;
    lane->unread = kind == WQE_PLAIN || (lane->apart && lane->unread);
    lane->head++;
    lane->cq->used++;
    slot->parts++;
    return wr;
}

// Makes a write of the request, and notes what it writes.
static inline void verbs_lane_writes(struct verbs_lane *lane, struct ibv_send_wr *wr, uint64_t to,
                                     uint32_t bytes, uint8_t region)
{
    wr->opcode = IBV_WR_RDMA_WRITE;
    wr->wr.rdma.remote_addr = lane->wrote_to = to;
    wr->wr.rdma.rkey = lane->wrote_key = lane->rkeys[region];
    wr->sg_list->length = lane->wrote_bytes = bytes;
}

// Which key of a lane reaches that offset of a region: a heap that has grown has several.
static inline uint8_t verbs_key_of(const struct gpsh_verbs *verbs, uint8_t region, uint64_t offset)
{
    if (__builtin_expect(region != GPSH_HEAP || offset < verbs->env.regions[GPSH_HEAP].bytes, 1))
        return region;
    uint32_t n = atomic_load_explicit(&verbs->n_chunks, memory_order_acquire);
    for (uint32_t i = 0; i < n; i++)
        if (offset < verbs->chunk_ends[i])
            return (uint8_t)(VERBS_CHUNK_KEYS + i);
    return region;
}

static inline bool verbs_key_of_heap(int region)
{
    return region == GPSH_HEAP || region >= VERBS_CHUNK_KEYS;
}

static inline struct verbs_lane *verbs_home(struct verbs_flow *flow)
{
    return &flow->lanes[flow->home];
}

static inline struct verbs_lane *verbs_agent_lane(struct verbs_flow *flow)
{
    return &flow->lanes[flow->agent];
}

// How many packet numbers a request takes (InfiniBand specification, volume 1, section 9.7.2: a
// write has a packet for each path MTU, at least one; a read takes as many as its answer has; an
// atomic one).
static inline uint32_t verbs_packets(const struct verbs_lane *lane, const struct verbs_wqe *wqe)
{
    return wqe->bytes > lane->packet_bytes ? (wqe->bytes - 1) / lane->packet_bytes + 1 : 1;
}

static inline bool verbs_told(const struct verbs_flow *flow)
{
    return flow->note && (atomic_load_explicit(flow->note, memory_order_relaxed) |
                          atomic_load_explicit(&flow->peer->lost_rails, memory_order_relaxed));
}

static inline struct verbs_slot *verbs_note_slot(const struct verbs_flow *flow)
{
    return &flow->slots[flow->slot_mask + 1];
}

static inline struct verbs_wqe *verbs_lane_last(struct verbs_lane *lane)
{
    return &lane->wqes[(lane->head - 1) & lane->mask];
}

// The request's payload is in a bounce block, which comes back with its completion.
static inline void verbs_lane_block(struct verbs_lane *lane, struct ibv_send_wr *wr, uint16_t block)
{
    const struct verbs_bounce *bounce = &lane->flow->channel->bounce;
    verbs_lane_last(lane)->block = block;
    wr->sg_list->addr = (uintptr_t)gpsh_verbs_bounce_at(bounce, block);
    wr->sg_list->lkey = bounce->mr[lane->rail]->lkey;
}

#endif
