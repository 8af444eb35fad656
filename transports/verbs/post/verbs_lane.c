// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE
// A lane's chain: work requests collected, then posted with one doorbell. Every chain ends in a
// signalled request, and a chain is never longer than verbs_signal_every, so every request
// retires with the next completion.
#include <errno.h>
#include <stdlib.h>

#include "core/clock.h"
#include "transports/verbs/post/verbs_posting.h"

enum { ANSWER_BYTES = 8 };

static bool lane_has_room(const struct verbs_lane *lane, uint32_t n)
{
    n += lane->apart; // the read at the end
    return lane->first + lane->count + n <= lane->limit &&
           lane->head - lane->tail + n <= lane->depth && lane->cq->used + n <= lane->cq->depth;
}

// Makes sure that n more work requests fit; rings the doorbell if the chain itself is what is full.
bool gpsh_verbs_lane_reserve(struct verbs_lane *lane, uint32_t n)
{
    if (!lane->failed && !lane->refused && lane_has_room(lane, n))
        return true;
    return !gpsh_verbs_lane_flush(lane) && !lane->failed && lane_has_room(lane, n);
}

void gpsh_verbs_lane_hold(struct verbs_lane *lane)
{
    verbs_due_add(&lane->flow->channel->held, &lane->due);
}

// The provider takes no more for the moment although our books say there is room: what is left
// stays in the chain. With nothing outstanding no completion would ever make room, so then it is a
// failure like any other.
static bool is_full(const struct verbs_lane *lane, int error)
{
    return (error == ENOMEM || error == ENOSPC || error == EAGAIN) &&
           lane->head - lane->tail > lane->count;
}

// A fence that the slot still owes is not the read's.
void gpsh_verbs_read_back(struct verbs_lane *lane, struct verbs_slot *slot)
{
    const struct verbs_bounce *bounce = &lane->flow->channel->bounce;
    bool fenced = slot->fenced;
    slot->fenced = false;
    struct ibv_send_wr *wr = verbs_lane_next(lane, slot, WQE_BACK);
    slot->fenced = fenced;
    uint32_t bytes = lane->wrote_bytes < ANSWER_BYTES ? lane->wrote_bytes : ANSWER_BYTES;
    wr->opcode = IBV_WR_RDMA_READ;
    wr->wr.rdma.remote_addr = lane->wrote_to + lane->wrote_bytes - bytes;
    wr->wr.rdma.rkey = lane->wrote_key;
    wr->sg_list->addr = (uintptr_t)bounce->base + bounce->bytes;
    wr->sg_list->length = bytes;
    wr->sg_list->lkey = bounce->mr[lane->rail]->lkey;
    lane->unread = false;
}

int gpsh_verbs_lane_flush(struct verbs_lane *lane)
{
    if (!lane->count || lane->failed || lane->refused)
        return lane->refused;
    struct verbs_slot *slot = &lane->flow->slots[verbs_lane_last(lane)->slot];
    if (lane->apart && lane->unread && !(slot->flags & GPSH_OP_LAST))
        gpsh_verbs_read_back(lane, slot);
    struct verbs_stats *stats = &lane->flow->channel->stats;
    struct ibv_send_wr *first = &lane->wrs[lane->first], *last = first + lane->count - 1,
                       *bad = NULL;
    struct ibv_send_wr *next = last->next;
    last->send_flags |= IBV_SEND_SIGNALED;
    last->next = NULL;
    int error = ibv_post_send(lane->qp, first, &bad);
    last->next = next;
    stats->doorbells++;
    if (!error) {
        stats->posts += lane->count;
        lane->first = lane->count = 0;
        return 0;
    }
    uint32_t accepted = bad >= first && bad <= last ? (uint32_t)(bad - first) : 0;
    stats->posts += accepted;
    lane->first += accepted;
    lane->count -= accepted;
    if (is_full(lane, error)) {
        gpsh_verbs_lane_hold(lane);
        return 0;
    }
    lane->refused = error;
    lane->flow->refused = true;
    return error;
}

// Forgets requests that were never posted; the flow has failed.
void gpsh_verbs_lane_drop_chain(struct verbs_lane *lane)
{
    for (; lane->count; lane->count--) {
        lane->head--;
        lane->cq->used--;
        struct verbs_wqe *wqe = &lane->wqes[lane->head & lane->mask];
        if (wqe->kind != WQE_PLAIN)
            lane->reads--;
        lane->more -= verbs_packets(lane, wqe) - 1;
        gpsh_verbs_bounce_give(&lane->flow->channel->bounce, wqe->block);
    }
    lane->first = 0;
}

// The flow has failed: nobody asks any more.
void gpsh_verbs_lane_undoubt(struct verbs_lane *lane)
{
    struct verbs_doubt *doubt = lane->doubt;
    if (!doubt)
        return;
    lane->doubt = NULL;
    lane->count = lane->head - doubt->end;
    gpsh_verbs_lane_drop_chain(lane);
    if (doubt->seen - lane->tail <= lane->head - lane->tail)
        gpsh_verbs_lane_forget(lane, doubt->seen);
    free(doubt);
}

void gpsh_verbs_lane_kill(struct verbs_lane *lane)
{
    if (lane->failed)
        return;
    lane->failed = lane->flow->damaged = true;
    if (!verbs_is_up(lane->flow)) // nothing was posted, and the queue pair is the handshake's
        return;
    lane->flush_ns = gpsh_clock_ns() + VERBS_FLUSH_MS * UINT64_C(1000000);
    gpsh_verbs_qp_kill(lane->qp);
}

void gpsh_verbs_lane_forget(struct verbs_lane *lane, uint32_t end)
{
    struct verbs_flow *flow = lane->flow;
    for (; lane->tail != end; lane->tail++) {
        const struct verbs_wqe *wqe = &lane->wqes[lane->tail & lane->mask];
        if (wqe->kind != WQE_PLAIN)
            lane->reads--;
        lane->cq->used--;
        if (!flow->pub->error)
            flow->slots[wqe->slot].parts--; // to be issued again (verbs_failover.c)
        gpsh_verbs_bounce_give(&flow->channel->bounce, wqe->block);
    }
}

static void reset(struct verbs_lane *lane)
{
    const struct verbs_rail *rail = &lane->flow->channel->verbs->rails[lane->rail];
    lane->reset = true;
    lane->emptied = lane->cq->emptied;
    int error = gpsh_verbs_lane_reset(lane);
    if (error)
        GPSH_LOG(WARN, "verbs",
                 "%s does not end its queue pair with PE %d (%s): if the NIC is not gone, it may "
                 "still touch the memory of operations that are complete",
                 rail->name, lane->flow->pe, strerror(error));
}

// A NIC that is late may still read sources, and add its flushed completions: their places in the
// completion queue, and the memory, are free only when the queue pair has been reset, and what it
// had added before has been polled.
static bool is_over(struct verbs_lane *lane)
{
    if (gpsh_clock_ns() < lane->flush_ns)
        return false;
    if (!lane->reset)
        reset(lane);
    return lane->cq->emptied != lane->emptied;
}

bool gpsh_verbs_lane_is_flushed(struct verbs_lane *lane)
{
    if (lane->doubt)
        return lane->doubt->seen == lane->doubt->end || is_over(lane);
    if (lane->tail != lane->head && is_over(lane))
        gpsh_verbs_lane_forget(lane, lane->head);
    return lane->tail == lane->head;
}
