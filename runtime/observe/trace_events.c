// SPDX-License-Identifier: BSD-3-Clause
// Slices of one track must not overlap, but operations of a queue do. They complete in order: so
// each is drawn from when the one before it was complete, and those whose completion was seen
// together share that time.
#include "observe/trace_events.h"

#include <stdlib.h>
#include <string.h>

#include "transport/transport.h"

// The operations under way of one lane, transport and PE: indices into the list of events, plus 1.
struct queue {
    size_t first, last;
    uint64_t free_ns; // when the last one was complete
};

struct maker {
    const struct gpsh_trace_head *head;
    struct gpsh_events *events;
    struct queue *queues; // [transport][pe] of the lane at hand
    size_t *next;         // of operations under way, by event
    size_t next_room;
    bool failed;
};

static struct gpsh_event *event_add(struct maker *m, enum gpsh_event_kind kind, uint32_t track,
                                    const struct gpsh_trace_record *record)
{
    static struct gpsh_event nowhere;
    struct gpsh_events *e = m->events;
    if (e->n == e->room) {
        size_t room = e->room ? 2 * e->room : 1024;
        struct gpsh_event *longer = realloc(e->list, room * sizeof *longer);
        size_t *next = longer ? realloc(m->next, room * sizeof *next) : NULL;
        e->list = longer ? longer : e->list;
        m->next = next ? next : m->next;
        if (!next) {
            m->failed = true;
            return &nowhere;
        }
        e->room = room;
    }
    m->next[e->n] = 0;
    e->list[e->n] = (struct gpsh_event){.at_ns = record->at_ns,
                                        .took_ns = record->took_ns,
                                        .track = track,
                                        .kind = (uint8_t)kind,
                                        .record = record};
    return &e->list[e->n++];
}

static struct queue *queue_of(struct maker *m, const struct gpsh_trace_record *r)
{
    if (r->transport >= GPSH_TRACE_TRANSPORTS || r->pe < 0 || r->pe >= m->head->n_pes)
        return NULL;
    return &m->queues[(size_t)r->transport * (size_t)m->head->n_pes + (size_t)r->pe];
}

static void add_operation(struct maker *m, struct queue *q, uint32_t track,
                          const struct gpsh_trace_record *r, uint32_t offset)
{
    struct gpsh_event *event = event_add(m, GPSH_EVENT_OPERATION, track, r);
    event->took_ns = 0;
    event->posted_ns = r->at_ns;
    event->offset = offset;
    if (r->what & GPSH_TRACE_AT_ONCE || m->failed) {
        event->at_ns = event->at_ns > q->free_ns ? event->at_ns : q->free_ns;
        return;
    }
    event->unfinished = true;
    size_t number = m->events->n;
    if (q->last)
        m->next[q->last - 1] = number;
    else
        q->first = number;
    q->last = number;
}

static void add_posts(struct maker *m, int lane, const struct gpsh_trace_record *r)
{
    enum { MOST = 1 << 20 }; // a longer run is none
    struct queue *q = queue_of(m, r);
    if (!q)
        return;
    uint64_t row = (uint64_t)lane * GPSH_TRACE_TRANSPORTS + r->transport;
    uint64_t track = GPSH_TRACK_QUEUES + row * (uint64_t)m->head->n_pes + (uint64_t)r->pe;
    for (uint32_t i = 0; i < r->took_ns && i < MOST && !m->failed; i++)
        add_operation(m, q, (uint32_t)track, r, i);
}

static uint32_t number_of(const struct gpsh_event *event)
{
    return event->record->number + event->offset;
}

static bool is_up_to(uint32_t number, uint32_t last)
{
    return (int32_t)(last - number) >= 0;
}

// All operations up to the record's number are complete: they share the time since the first of
// them was posted, or the one before it was complete.
static void add_done(struct maker *m, const struct gpsh_trace_record *r)
{
    struct queue *q = queue_of(m, r);
    struct gpsh_event *list = m->events->list;
    uint64_t n = 0;
    if (!q)
        return;
    for (size_t i = q->first; i && is_up_to(number_of(&list[i - 1]), r->number); i = m->next[i - 1])
        n++;
    for (; n; n--) {
        struct gpsh_event *event = &list[q->first - 1];
        uint64_t from = event->posted_ns > q->free_ns ? event->posted_ns : q->free_ns;
        event->at_ns = from;
        event->took_ns = r->at_ns > from ? (r->at_ns - from) / n : 0;
        event->unfinished = false;
        q->free_ns = from + event->took_ns;
        q->first = m->next[q->first - 1];
    }
    if (!q->first)
        q->last = 0;
}

// What was still under way is drawn as points, at the end of its queue.
static void end_queues(struct maker *m)
{
    for (size_t i = 0; i < (size_t)GPSH_TRACE_TRANSPORTS * (size_t)m->head->n_pes; i++) {
        struct queue *q = &m->queues[i];
        for (size_t at = q->first; at; at = m->next[at - 1]) {
            struct gpsh_event *event = &m->events->list[at - 1];
            event->at_ns = event->posted_ns > q->free_ns ? event->posted_ns : q->free_ns;
            q->free_ns = event->at_ns;
        }
    }
}

// All commands of the ring were complete in the pass in which it had this turn.
static void add_complete(struct maker *m, const struct gpsh_trace_record *turn)
{
    uint32_t ring = GPSH_TRACK_RING + (uint32_t)turn->ring;
    struct gpsh_event *event = event_add(m, GPSH_EVENT_PUBLISH, ring, turn);
    event->at_ns = turn->at_ns + turn->took_ns + (uint32_t)turn->pe;
    event->took_ns = 0;
    event->offset = turn->number;
}

static void add_record(struct maker *m, int lane, const struct gpsh_trace_record *r)
{
    bool is_proxy = lane >= 1 && lane <= m->head->n_proxies;
    uint32_t proxy = GPSH_TRACK_PROXY + (uint32_t)lane - 1;
    int kernels = m->head->n_lanes - 1, first_host = kernels - GPSH_TRACE_HOST_THREADS;
    enum { STREAMS = GPSH_TRACK_PROXY - GPSH_TRACK_STREAM };
    switch (r->what >> 4) {
    case GPSH_TRACE_CALL:
        if (lane >= first_host && lane < kernels)
            event_add(m, GPSH_EVENT_CALL, GPSH_TRACK_HOST + (uint32_t)(lane - first_host), r);
        break;
    case GPSH_TRACE_KERNEL:
        if (lane == kernels && r->pe >= 0)
            event_add(m, GPSH_EVENT_KERNEL, GPSH_TRACK_STREAM + (uint32_t)r->pe % STREAMS, r);
        break;
    case GPSH_TRACE_TURN:
        event_add(m, GPSH_EVENT_TURN, proxy, r);
        event_add(m, GPSH_EVENT_BATCH, GPSH_TRACK_RING + (uint32_t)r->ring, r);
        if (r->what & GPSH_TRACE_COMPLETE)
            add_complete(m, r);
        break;
    case GPSH_TRACE_POST: add_posts(m, lane, r); break;
    case GPSH_TRACE_DONE:
        add_done(m, r);
        if (is_proxy && r->took_ns)
            event_add(m, GPSH_EVENT_POLL, proxy, r)->at_ns = r->at_ns - r->took_ns;
        break;
    case GPSH_TRACE_FLUSH:
        if (is_proxy)
            event_add(m, GPSH_EVENT_DOORBELL, proxy, r);
        break;
    case GPSH_TRACE_RETIRED:
        event_add(m, GPSH_EVENT_PUBLISH, GPSH_TRACK_RING + (uint32_t)r->ring, r);
        break;
    default: break;
    }
}

static void add_lane(struct maker *m, int lane)
{
    const struct gpsh_trace_head *head = m->head;
    const struct gpsh_trace_record *records = gpsh_trace_part_records(head, lane);
    uint64_t written = gpsh_trace_part_lane(head, lane)->records, first = 0;
    size_t queues = (size_t)GPSH_TRACE_TRANSPORTS * (size_t)head->n_pes;
    // A record that was being written when the part ended lies where the oldest one was.
    if (written >= head->lane_records)
        first = written - head->lane_records + 1;
    memset(m->queues, 0, queues * sizeof *m->queues);
    for (uint64_t i = first; i < written && !m->failed; i++)
        add_record(m, lane, &records[i & (head->lane_records - 1)]);
    if (!m->failed)
        end_queues(m);
    m->events->records += written - first;
    m->events->dropped += first;
}

// ---- Commands: what a ring's turn and a queue's operation have in common ----

static int by_ring(const void *a, const void *b)
{
    const struct gpsh_trace_record *l = *(const struct gpsh_trace_record *const *)a,
                                   *r = *(const struct gpsh_trace_record *const *)b;
    if (l->ring != r->ring)
        return l->ring < r->ring ? -1 : 1;
    if (l->index != r->index)
        return l->index < r->index ? -1 : 1;
    return (l->at_ns > r->at_ns) - (l->at_ns < r->at_ns);
}

// The turn in which the command was read; NULL: its record was dropped, or never written.
static const struct gpsh_trace_record *turn_of(const struct gpsh_trace_record *const *turns,
                                               size_t n, uint16_t ring, uint32_t index)
{
    size_t low = 0, high = n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct gpsh_trace_record *t = turns[middle];
        if (t->ring < ring || (t->ring == ring && t->index <= index))
            low = middle + 1;
        else
            high = middle;
    }
    const struct gpsh_trace_record *turn = low ? turns[low - 1] : NULL;
    return turn && turn->ring == ring && index - turn->index < turn->number ? turn : NULL;
}

static int proxy_of(const struct maker *m, const struct gpsh_trace_record *turn)
{
    int lane = 0;
    while (lane < m->head->n_lanes &&
           (turn < gpsh_trace_part_records(m->head, lane) ||
            turn >= gpsh_trace_part_records(m->head, lane) + m->head->lane_records))
        lane++;
    return lane - 1;
}

// What belongs to an operation, elsewhere.
static struct gpsh_event *add_mark(struct maker *m, enum gpsh_event_kind kind, uint32_t track,
                                   const struct gpsh_event *operation, uint64_t at_ns)
{
    struct gpsh_event *event = event_add(m, kind, track, operation->record);
    event->at_ns = at_ns;
    event->took_ns = 0;
    event->offset = operation->offset;
    return event;
}

// A turn has one time for all its commands: each gets an equal part of it. A strided command
// becomes many operations, of which the first carries the arrow.
static void add_command(struct maker *m, const struct gpsh_trace_record *turn, size_t operation)
{
    const struct gpsh_event at = m->events->list[operation];
    const struct gpsh_trace_record *r = at.record;
    uint32_t place = r->index + at.offset - turn->index;
    uint64_t from = (uint64_t)turn->took_ns * place / turn->number,
             to = (uint64_t)turn->took_ns * (place + 1) / turn->number;
    uint32_t ring = GPSH_TRACK_RING + r->ring,
             proxy = GPSH_TRACK_PROXY + (uint32_t)proxy_of(m, turn);
    add_mark(m, GPSH_EVENT_COMMAND, ring, &at, turn->at_ns + from)->took_ns = to - from;
    add_mark(m, GPSH_EVENT_ARROW_BEGIN, ring, &at, turn->at_ns + from);
    add_mark(m, GPSH_EVENT_ARROW_STEP, proxy, &at, turn->at_ns + from);
    add_mark(m, GPSH_EVENT_ARROW_END, at.track, &at, at.at_ns);
}

static void add_commands(struct maker *m)
{
    size_t n_turns = 0, n = m->events->n;
    const struct gpsh_trace_record **turns = calloc(n + 1, sizeof(void *));
    uint64_t *drawn = calloc(UINT16_MAX + 1, sizeof *drawn); // by ring: the last command, plus 1
    m->failed |= !turns || !drawn;
    for (size_t i = 0; i < n && !m->failed; i++)
        if (m->events->list[i].kind == GPSH_EVENT_TURN && m->events->list[i].record->number)
            turns[n_turns++] = m->events->list[i].record;
    if (n_turns)
        qsort(turns, n_turns, sizeof *turns, by_ring);
    for (size_t i = 0; i < n && !m->failed; i++) {
        const struct gpsh_trace_record *r = m->events->list[i].record;
        if (m->events->list[i].kind != GPSH_EVENT_OPERATION || r->ring == GPSH_TRACE_NO_RING)
            continue;
        uint32_t index = r->index + m->events->list[i].offset;
        const struct gpsh_trace_record *turn = turn_of(turns, n_turns, r->ring, index);
        if (turn && drawn[r->ring] != (uint64_t)index + 1)
            add_command(m, turn, i);
        drawn[r->ring] = (uint64_t)index + 1;
    }
    free(drawn);
    free(turns);
}

// Outer slices before inner ones, arrows after their slices.
static int by_track(const void *a, const void *b)
{
    const struct gpsh_event *l = a, *r = b;
    if (l->track != r->track)
        return l->track < r->track ? -1 : 1;
    if (l->at_ns != r->at_ns)
        return l->at_ns < r->at_ns ? -1 : 1;
    bool l_arrow = l->kind >= GPSH_EVENT_ARROW_BEGIN, r_arrow = r->kind >= GPSH_EVENT_ARROW_BEGIN;
    if (l_arrow != r_arrow)
        return l_arrow ? 1 : -1;
    if (l->took_ns != r->took_ns)
        return l->took_ns > r->took_ns ? -1 : 1;
    if (l->kind != r->kind)
        return l->kind < r->kind ? -1 : 1;
    if (l->record != r->record)
        return l->record < r->record ? -1 : 1;
    return (l->offset > r->offset) - (l->offset < r->offset);
}

bool gpsh_trace_events_make(const struct gpsh_trace_head *head, struct gpsh_events *events)
{
    struct maker m = {.head = head, .events = events};
    *events = (struct gpsh_events){0};
    m.queues = calloc((size_t)GPSH_TRACE_TRANSPORTS * (size_t)head->n_pes, sizeof *m.queues);
    m.failed = !m.queues;
    for (int lane = 0; lane < head->n_lanes && !m.failed; lane++)
        add_lane(&m, lane);
    if (!m.failed)
        add_commands(&m);
    if (events->n && !m.failed)
        qsort(events->list, events->n, sizeof *events->list, by_track);
    free(m.queues);
    free(m.next);
    return !m.failed;
}
