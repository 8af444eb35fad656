// SPDX-License-Identifier: BSD-3-Clause
// Channels that are traced have a table of operations of their own, which calls the transport's and
// writes records. Without a trace nothing stands between a poster and the transport.
#include <stdbool.h>
#include <stdlib.h>

#include "core/log.h"
#include "observe/trace.h"

enum { POST_SHARE_NS = 2000 };

// Operations in a row, recorded as one. What the next one must be to belong to it.
struct run {
    struct gpsh_trace_record *record;
    uint64_t end; // what the lane has written with it: nothing else came after it
    uint64_t bytes;
    uint32_t ahead; // of an operation's number is its command's index
    int32_t pe;
    uint8_t what;
};

struct traced {
    struct gpsh_transport_ops ops; // first: a channel's ops leads here
    const struct gpsh_transport_ops *real;
    struct gpsh_trace_lane *lane;
    struct run run;
    const uint64_t *at; // the command that is being posted; NULL: the host's operation
    uint16_t ring;
    uint8_t transport;
    bool unrung; // posted to since the last doorbell
    int n_active;
    struct {
        uint64_t seen;  // completions that were recorded
        int32_t active; // a list: PEs with something under way
        bool listed;
    } pes[];
};

static struct traced *traced_of(const struct gpsh_channel *channel)
{
    return (struct traced *)(uintptr_t)channel->ops;
}

// With a first operation under way: what was complete before that is no news.
static void list_pe(struct traced *t, const struct gpsh_flow *flow, int pe)
{
    t->pes[pe].listed = true;
    t->pes[pe].seen = flow->completed < flow->posted ? flow->completed : flow->posted - 1;
    t->pes[t->n_active++].active = pe;
}

// Posts of the host follow each other closely, or far apart: those within two microseconds share a
// time.
static void look_at_clock(struct traced *t)
{
    uint64_t now = gpsh_trace_now(t->lane);
    if (now - t->lane->now_ns < POST_SHARE_NS)
        return;
    t->lane->now_ns = now;
    t->run.end = 0;
}

static __attribute__((noinline)) void begin_run(struct traced *t, const struct gpsh_flow *flow,
                                                const struct gpsh_op *op, uint32_t ahead,
                                                uint8_t what)
{
    uint32_t number = (uint32_t)flow->posted;
    struct gpsh_trace_record *r = gpsh_trace_next(t->lane);
    *r = (struct gpsh_trace_record){
        .at_ns = t->lane->now_ns,
        .took_ns = 1,
        .bytes = op->bytes < UINT32_MAX ? (uint32_t)op->bytes : UINT32_MAX,
        .number = number,
        .index = t->at ? number + ahead : 0,
        .pe = op->pe,
        .ring = t->ring,
        .transport = t->transport,
        .what = what,
    };
    gpsh_trace_commit(t->lane);
    t->run = (struct run){r, t->lane->written, op->bytes, ahead, op->pe, what};
    if (!t->pes[op->pe].listed)
        list_pe(t, flow, op->pe);
}

// Field by field: a record that is put together to be compared costs more than the rest.
static inline bool continues(const struct traced *t, const struct gpsh_op *op, uint32_t number,
                             uint32_t ahead, uint8_t what)
{
    const struct run *run = &t->run;
    return t->lane->written == run->end && op->bytes == run->bytes && op->pe == run->pe &&
           what == run->what && ahead == run->ahead &&
           number == run->record->number + run->record->took_ns;
}

// One record says how far all operations to a PE have come, whatever their number. Of some no
// progress tells: they were complete when post returned.
static void record_completions(struct traced *t, const struct gpsh_channel *channel, uint64_t now)
{
    uint64_t before = t->lane->now_ns;
    for (int i = 0; i < t->n_active;) {
        int pe = t->pes[i].active;
        const struct gpsh_flow *flow = &channel->flows[pe];
        if (flow->completed != t->pes[pe].seen) {
            *gpsh_trace_next(t->lane) = (struct gpsh_trace_record){
                .at_ns = now,
                .took_ns = gpsh_trace_span(before, now),
                .number = (uint32_t)flow->completed,
                .pe = pe,
                .ring = GPSH_TRACE_NO_RING,
                .transport = t->transport,
                .what = (uint8_t)(GPSH_TRACE_DONE << 4 | (flow->error ? GPSH_TRACE_FAILED : 0))};
            gpsh_trace_commit(t->lane);
            t->lane->now_ns = now;
            t->pes[pe].seen = flow->completed;
        }
        if (flow->completed < flow->posted) {
            i++;
            continue;
        }
        t->pes[pe].listed = false;
        t->pes[i].active = t->pes[--t->n_active].active;
    }
}

static int traced_post(struct gpsh_channel *channel, const struct gpsh_op *op)
{
    struct traced *t = traced_of(channel);
    if (!t->at)
        look_at_clock(t);
    int result = t->real->post(channel, op);
    if (result == GPSH_POST_AGAIN || result < 0)
        return result;
    const struct gpsh_flow *flow = &channel->flows[op->pe];
    uint32_t number = (uint32_t)flow->posted, ahead = t->at ? (uint32_t)*t->at - number : 0;
    uint8_t at_once = result == GPSH_POST_DONE ? GPSH_TRACE_AT_ONCE : 0;
    uint8_t what = (uint8_t)(GPSH_TRACE_POST << 4 | op->kind | at_once);
    t->unrung = true;
    if (__builtin_expect(continues(t, op, number, ahead, what), 1))
        t->run.record->took_ns++;
    else
        begin_run(t, flow, op, ahead, what);
    return result;
}

static int traced_flush(struct gpsh_channel *channel)
{
    struct traced *t = traced_of(channel);
    int result = t->real->flush(channel);
    if (!t->unrung || !t->at) // the host's operations ring by themselves, as a rule
        return result;
    uint64_t now = gpsh_trace_now(t->lane);
    *gpsh_trace_next(t->lane) =
        (struct gpsh_trace_record){.at_ns = t->lane->now_ns,
                                   .took_ns = gpsh_trace_span(t->lane->now_ns, now),
                                   .transport = t->transport,
                                   .ring = GPSH_TRACE_NO_RING,
                                   .what = GPSH_TRACE_FLUSH << 4};
    gpsh_trace_commit(t->lane);
    t->lane->now_ns = now;
    t->unrung = false;
    record_completions(t, channel, now);
    return result;
}

static int traced_progress(struct gpsh_channel *channel)
{
    struct traced *t = traced_of(channel);
    int done = t->real->progress(channel);
    if (done > 0)
        record_completions(t, channel, gpsh_trace_now(t->lane));
    return done;
}

static void traced_close(struct gpsh_channel *channel)
{
    struct traced *t = traced_of(channel);
    channel->ops = t->real;
    free(t);
    channel->ops->channel_close(channel);
}

void gpsh_trace_channel(struct gpsh_channel *channel, int index, int transport)
{
    struct gpsh_trace_lane *lane = gpsh_trace_lane(index);
    if (!lane)
        return;
    int n_pes = gpsh_trace_prepare(transport, channel->ops->name);
    struct traced *t = calloc(1, sizeof *t + (size_t)n_pes * sizeof t->pes[0]);
    if (!t) {
        GPSH_LOG(WARN, "trace", "no memory to trace queues of %s", channel->ops->name);
        return;
    }
    t->real = channel->ops;
    t->ops = *channel->ops;
    t->ops.post = traced_post;
    t->ops.flush = traced_flush;
    t->ops.progress = traced_progress;
    t->ops.channel_close = traced_close;
    t->lane = lane;
    t->transport = (uint8_t)transport;
    t->ring = GPSH_TRACE_NO_RING;
    channel->ops = &t->ops;
}

void gpsh_trace_ring(struct gpsh_channel *const *channels, int n_channels, uint64_t now_ns,
                     uint16_t ring, const uint64_t *at)
{
    for (int i = 0; i < n_channels; i++) {
        if (!channels[i] || channels[i]->ops->post != traced_post)
            continue;
        struct traced *t = traced_of(channels[i]);
        t->lane->now_ns = now_ns;
        record_completions(t, channels[i], now_ns);
        t->at = at;
        t->run.end = 0; // what comes is of another turn
        t->ring = at ? ring : GPSH_TRACE_NO_RING;
    }
}
