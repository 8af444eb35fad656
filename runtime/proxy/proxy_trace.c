// SPDX-License-Identifier: BSD-3-Clause
// What a proxy thread does, as records of the trace: a record for each turn of a ring that read or
// posted something. What it posted is recorded by the channels themselves
// (observe/trace_channel.c), which are told whose commands they are.
#include "observe/trace.h"
#include "proxy/proxy.h"

// After a pass that did something, the last look at the clock was just now.
void gpsh_proxy_trace_begin(struct gpsh_proxy_thread *thread)
{
    struct gpsh_trace_lane *lane = thread->trace;
    if (lane->written == lane->pass)
        lane->now_ns = gpsh_trace_now(lane);
    lane->pass = lane->written;
}

int gpsh_proxy_trace_pump(struct gpsh_proxy_thread *thread, struct gpsh_proxy_ring *ring)
{
    struct gpsh_trace_lane *lane = thread->trace;
    const uint16_t number = (uint16_t)ring->shared.number;
    uint64_t began_ns = lane->now_ns, first = ring->parsed, posts = ring->posts;
    gpsh_trace_ring(ring->port->channels, GPSH_MAX_TRANSPORTS, began_ns, number, &ring->parsed);
    int work = gpsh_proxy_pump(thread, ring);
    if (ring->parsed == first && ring->posts == posts)
        return work;
    lane->now_ns = gpsh_trace_now(lane);
    *gpsh_trace_next(lane) =
        (struct gpsh_trace_record){.at_ns = began_ns,
                                   .took_ns = gpsh_trace_span(began_ns, lane->now_ns),
                                   .bytes = (uint32_t)(ring->posts - posts),
                                   .number = (uint32_t)(ring->parsed - first),
                                   .index = (uint32_t)first,
                                   .ring = number,
                                   .what = GPSH_TRACE_TURN << 4};
    gpsh_trace_commit(lane);
    ring->turn = (uint32_t)lane->written;
    return work;
}

// The record of the turn that the ring had in this pass says it, too, if it is still there.
static bool turn_is_complete(struct gpsh_trace_lane *lane, const struct gpsh_proxy_ring *ring)
{
    uint32_t since = (uint32_t)lane->written - ring->turn;
    if (ring->retired != ring->parsed || since >= lane->written - lane->pass || since >= lane->mask)
        return false;
    struct gpsh_trace_record *turn = &lane->records[(lane->written - since - 1) & lane->mask];
    turn->pe = (int32_t)gpsh_trace_span(turn->at_ns + turn->took_ns, lane->now_ns);
    turn->what = GPSH_TRACE_TURN << 4 | GPSH_TRACE_COMPLETE;
    return true;
}

void gpsh_proxy_trace_retired(struct gpsh_proxy_thread *thread)
{
    struct gpsh_trace_lane *lane = thread->trace;
    for (int i = 0; i < thread->n_rings; i++) {
        struct gpsh_proxy_ring *ring = thread->rings[i];
        if ((uint32_t)ring->retired == ring->traced)
            continue;
        ring->traced = (uint32_t)ring->retired;
        if (turn_is_complete(lane, ring))
            continue;
        *gpsh_trace_next(lane) = (struct gpsh_trace_record){.at_ns = lane->now_ns,
                                                            .index = (uint32_t)ring->retired,
                                                            .ring = (uint16_t)ring->shared.number,
                                                            .what = GPSH_TRACE_RETIRED << 4};
        gpsh_trace_commit(lane);
    }
}
