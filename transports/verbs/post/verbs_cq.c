// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE
// Completions: a signalled one retires every earlier request of its lane; a failed one takes down
// its flow and no other.
#include <infiniband/mlx5dv.h>
#include <stdio.h>

#include "transports/verbs/post/verbs_posting.h"

enum { POLL_ROUNDS = 4, SLOW_TICKS = 256, EVENT_TICKS = 8192 };

static void copy_in(struct verbs_flow *flow, const struct verbs_slot *slot,
                    const struct verbs_wqe *wqe)
{
    if (wqe->block != VERBS_NO_BLOCK)
        verbs_copy(flow, slot, wqe->to, gpsh_verbs_bounce_at(&flow->channel->bounce, wqe->block),
                   wqe->bytes);
}

// What has come back with a request that is no write.
static __attribute__((noinline)) void take_answer(struct verbs_lane *lane,
                                                  const struct verbs_wqe *wqe,
                                                  struct verbs_slot *slot, uint32_t position)
{
    struct verbs_flow *flow = lane->flow;
    uint64_t value = lane->results[position & lane->mask];
    switch (wqe->kind) {
    case WQE_READ: copy_in(flow, slot, wqe); break;
    case WQE_AMO: gpsh_verbs_amo_retire(flow, slot, value); break;
    case WQE_LOCK: gpsh_verbs_lock_seen(flow, wqe->loop, value); break;
    case WQE_LOOP: gpsh_verbs_loop_retire(flow, wqe->loop, slot, value); break;
    case WQE_ANSWER:
        flow->answer = value;
        flow->looking = 0;
        gpsh_verbs_flow_activate(flow);
        break;
    default: break;
    }
}

static void succeed(struct verbs_lane *lane, const struct verbs_wqe *wqe, uint32_t position)
{
    struct verbs_slot *slot = &lane->flow->slots[wqe->slot];
    if (wqe->kind != WQE_PLAIN)
        take_answer(lane, wqe, slot, position);
    slot->parts--;
}

// Of each request there is: inline, whatever the compiler takes for large.
static inline __attribute__((always_inline)) void retire_first(struct verbs_lane *lane)
{
    struct verbs_wqe *wqe = &lane->wqes[lane->tail & lane->mask];
    if (wqe->kind != WQE_PLAIN)
        lane->reads--;
    lane->cq->used--;
    succeed(lane, wqe, lane->tail);
    gpsh_verbs_bounce_give(&lane->flow->channel->bounce, wqe->block);
}

// Retires the requests up to and without `end`.
static void retire(struct verbs_lane *lane, uint32_t end)
{
    for (; lane->tail != end && !lane->failed; lane->tail++)
        retire_first(lane);
    if (__builtin_expect(lane->failed, 0)) // perhaps by a copy of the last one
        gpsh_verbs_lane_forget(lane, end);
}

static const char *advice(enum ibv_wc_status status)
{
    switch (status) {
    case IBV_WC_RETRY_EXC_ERR:
        return "it does not answer: its end of the connection has failed, its link is down, or "
               "GPUSHMEM_VERBS_TIMEOUT is too small";
    case IBV_WC_RNR_RETRY_EXC_ERR: return "it was never ready to receive";
    case IBV_WC_REM_ACCESS_ERR:
        return "the address is outside its heap, or its registration is gone";
    case IBV_WC_REM_INV_REQ_ERR:
        return "it rejected the request: too large, or a misaligned atomic";
    case IBV_WC_REM_OP_ERR: return "its NIC could not carry the request out";
    case IBV_WC_LOC_PROT_ERR:
        return "a local buffer is not registered (any more): was it freed or unregistered while in "
               "use?";
    case IBV_WC_WR_FLUSH_ERR: return "the queue pair went down";
    default: return "the NIC reports a failure: see dmesg";
    }
}

// Neither the request nor the memory that it names is to blame: other rails may do.
static bool is_connection_lost(enum ibv_wc_status status)
{
    return status == IBV_WC_RETRY_EXC_ERR || status == IBV_WC_WR_FLUSH_ERR ||
           status == IBV_WC_RESP_TIMEOUT_ERR || status == IBV_WC_FATAL_ERR;
}

// The other end is gone: the program, the NIC, or that end of the connection.
static bool is_silent(enum ibv_wc_status status)
{
    return status == IBV_WC_RETRY_EXC_ERR || status == IBV_WC_RNR_RETRY_EXC_ERR;
}

static void explain(const struct verbs_rail *rail, int pe, enum ibv_wc_status status,
                    uint32_t vendor, char *why, size_t bytes)
{
    snprintf(why, bytes, "PE %d over %s: %s (%s, vendor code %u)", pe, rail->name, advice(status),
             ibv_wc_status_str(status), vendor);
}

// mlx5's syndromes, by the numbers of infiniband/mlx5dv.h.
static enum ibv_wc_status status_of(uint32_t syndrome)
{
    switch (syndrome) {
    case MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR: return IBV_WC_LOC_LEN_ERR;
    case MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR: return IBV_WC_LOC_QP_OP_ERR;
    case MLX5_CQE_SYNDROME_LOCAL_PROT_ERR: return IBV_WC_LOC_PROT_ERR;
    case MLX5_CQE_SYNDROME_WR_FLUSH_ERR: return IBV_WC_WR_FLUSH_ERR;
    case MLX5_CQE_SYNDROME_BAD_RESP_ERR: return IBV_WC_BAD_RESP_ERR;
    case MLX5_CQE_SYNDROME_LOCAL_ACCESS_ERR: return IBV_WC_LOC_ACCESS_ERR;
    case MLX5_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR: return IBV_WC_REM_INV_REQ_ERR;
    case MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR: return IBV_WC_REM_ACCESS_ERR;
    case MLX5_CQE_SYNDROME_REMOTE_OP_ERR: return IBV_WC_REM_OP_ERR;
    case MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR: return IBV_WC_RETRY_EXC_ERR;
    case MLX5_CQE_SYNDROME_RNR_RETRY_EXC_ERR: return IBV_WC_RNR_RETRY_EXC_ERR;
    case MLX5_CQE_SYNDROME_REMOTE_ABORTED_ERR: return IBV_WC_REM_ABORT_ERR;
    default: return IBV_WC_GENERAL_ERR;
    }
}

void gpsh_verbs_kernel_failed(struct gpsh_transport *self, int pe, int rail, uint32_t syndrome,
                              uint32_t vendor, char *why, size_t bytes)
{
    const struct gpsh_verbs *verbs = (struct gpsh_verbs *)self;
    enum ibv_wc_status status = status_of(syndrome);
    bool silent = is_silent(status);
    explain(&verbs->rails[rail], pe, status, vendor, why, bytes);
    if (silent && verbs->n_rails > 1) // by another rail it may answer
        return;
    int found = silent ? GPUSHMEM_ERR_PE_FAILED : GPUSHMEM_ERR_TRANSPORT;
    gpsh_verbs_tell(verbs, pe, silent, gpsh_verbs_judge(verbs, pe, found, why, bytes), why);
}

static void fail(struct verbs_lane *lane, const struct ibv_wc *wc)
{
    struct verbs_flow *flow = lane->flow;
    if (flow->pub->error || lane->failed) // a request flushed after the one that failed
        return;
    bool silent = is_silent(wc->status);
    char why[320];
    explain(&flow->channel->verbs->rails[lane->rail], flow->pe, wc->status, wc->vendor_err, why,
            sizeof why);
    if (is_connection_lost(wc->status))
        gpsh_verbs_lane_fail(lane, silent ? GPUSHMEM_ERR_PE_FAILED : GPUSHMEM_ERR_TRANSPORT, why);
    else
        gpsh_verbs_flow_fail(flow, silent ? GPUSHMEM_ERR_PE_FAILED : GPUSHMEM_ERR_TRANSPORT, why);
}

// A completion of a lane in doubt: what has failed was executed perhaps, which is told later.
static void handle_doubtful(struct verbs_lane *lane, uint32_t position, bool failed)
{
    for (; lane->doubt && !failed && lane->tail != position + 1; lane->tail++)
        retire_first(lane);
    if (lane->doubt)
        gpsh_verbs_doubt_flushed(lane, position);
    else // by a copy of the last one
        gpsh_verbs_lane_forget(lane, position + 1);
}

// A completion of a lane that has failed already, or is found to have.
static void handle_failed(struct verbs_lane *lane, const struct ibv_wc *wc)
{
    uint32_t position = (uint32_t)wc->wr_id;
    if (lane->failed && position - lane->tail >= lane->head - lane->tail)
        return; // came when it was not waited for any more
    bool failed = wc->status != IBV_WC_SUCCESS;
    if (failed && !lane->doubt) {
        retire(lane, position);
        fail(lane, wc);
    }
    if (lane->doubt)
        handle_doubtful(lane, position, failed);
    else
        retire(lane, position + 1);
    gpsh_verbs_flow_advance(lane->flow);
}

static void handle(struct verbs_channel *channel, const struct ibv_wc *wc)
{
    struct verbs_lane *lane = channel->lanes[wc->wr_id >> 32];
    if (__builtin_expect(lane->failed || wc->status != IBV_WC_SUCCESS, 0)) {
        handle_failed(lane, wc);
        return;
    }
    retire(lane, (uint32_t)wc->wr_id + 1);
    gpsh_verbs_flow_advance(lane->flow);
    verbs_leave(lane->flow);
}

static void fail_all(struct verbs_channel *channel, int rail)
{
    char why[160];
    snprintf(why, sizeof why,
             "polling the completion queue on %s failed: the NIC is gone or its queue overran; see "
             "dmesg",
             channel->verbs->rails[rail].name);
    for (uint32_t i = 0; i < channel->n_lanes; i++) {
        struct verbs_lane *lane = channel->lanes[i];
        if (lane->rail != rail)
            continue;
        gpsh_verbs_lane_fail(lane, GPUSHMEM_ERR_TRANSPORT, why);
        if (lane->flow->pub->error)
            lane->flush_ns = 0; // no completion comes any more
    }
}

static void poll_rail(struct verbs_channel *channel, int rail)
{
    struct ibv_wc wcs[VERBS_POLL_BATCH];
    for (int round = 0; round < POLL_ROUNDS && channel->cqs[rail].used; round++) {
        int n = ibv_poll_cq(channel->cqs[rail].cq, VERBS_POLL_BATCH, wcs);
        channel->cqs[rail].emptied += n < VERBS_POLL_BATCH; // one that fails holds nothing either
        if (n < 0) {
            fail_all(channel, rail);
            return;
        }
        channel->stats.cqes += (uint64_t)n;
        for (int i = 0; i < n; i++)
            handle(channel, &wcs[i]);
        if (n < VERBS_POLL_BATCH)
            return;
    }
}

static void drive_flow(struct verbs_due *due)
{
    gpsh_verbs_flow_drive(VERBS_DUE_OF(due, struct verbs_flow));
}

static void fail_lost(struct verbs_channel *channel)
{
    for (uint32_t i = 0; i < channel->n_lanes; i++) {
        struct verbs_flow *flow = channel->lanes[i]->flow;
        char why[64];
        if (!verbs_is_lost(channel->verbs, flow->pe))
            continue;
        snprintf(why, sizeof why, "PE %d is lost", flow->pe);
        gpsh_verbs_flow_fail(flow, GPUSHMEM_ERR_PE_FAILED, why);
    }
}

// A queue pair or NIC reported a fatal event, or the runtime a lost PE (verbs_event.c): requests
// may never complete, or not for long.
static void fail_fatal(struct verbs_channel *channel)
{
    atomic_store(&channel->fatal, false);
    fail_lost(channel);
    for (uint32_t i = 0; i < channel->n_lanes; i++) {
        struct verbs_lane *lane = channel->lanes[i];
        char why[160];
        if (!atomic_load(&lane->fatal) || lane->failed)
            continue;
        snprintf(
            why, sizeof why,
            "PE %d over %s: the NIC reported a fatal error of the queue pair or itself; see dmesg",
            lane->flow->pe, channel->verbs->rails[lane->rail].name);
        gpsh_verbs_lane_fail(lane, GPUSHMEM_ERR_TRANSPORT, why);
    }
}

// What the peers have told meanwhile; a flow that is idle looks itself when something is posted.
static void look_at_notes(struct verbs_channel *channel)
{
    if (channel->verbs->n_rails < 2)
        return;
    for (uint32_t i = 0; i < channel->n_lanes; i++) {
        struct verbs_flow *flow = channel->lanes[i]->flow;
        if (channel->lanes[i]->rail || !verbs_told(flow))
            continue;
        verbs_enter(flow);
        if (verbs_is_up(flow))
            gpsh_verbs_flow_told(flow);
        verbs_leave(flow);
    }
}

// What no completion waits for.
static void look_around(struct verbs_channel *channel)
{
    gpsh_verbs_kicks(channel);
    if (channel->ticks % EVENT_TICKS)
        return;
    gpsh_verbs_events_poll(channel->verbs);
    look_at_notes(channel);
}

int gpsh_verbs_progress(struct gpsh_channel *base)
{
    struct verbs_channel *channel = (struct verbs_channel *)base;
    if (channel->driving) // called from a completion's callback
        return 0;
    channel->driving = true;
    channel->retired = 0;
    if (channel->held)
        gpsh_verbs_held_flush(channel);
    for (int rail = 0; rail < channel->verbs->n_rails; rail++)
        poll_rail(channel, rail);
    verbs_due_run(&channel->active, drive_flow);
    if (channel->pipes || channel->verbs->stage.agent)
        channel->verbs->staging->progress(channel);
    if (++channel->ticks % SLOW_TICKS == 0)
        look_around(channel);
    if (atomic_load_explicit(&channel->fatal, memory_order_relaxed))
        fail_fatal(channel);
    channel->driving = false;
    return channel->retired;
}
