// SPDX-License-Identifier: BSD-3-Clause
// From the records of one PE to what is drawn: slices that follow each other on tracks, and arrows.
#ifndef GPSH_TRACE_EVENTS_H
#define GPSH_TRACE_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "observe/trace_parts.h"

// Of one PE; a track of a queue is GPSH_TRACK_QUEUES + ((lane * transports) + transport) * n_pes
// + pe.
enum {
    GPSH_TRACK_HOST = 1,
    GPSH_TRACK_STREAM = 100, // of kernels on CPU threads
    GPSH_TRACK_PROXY = 1000,
    GPSH_TRACK_RING = 2000,
    GPSH_TRACK_QUEUES = 100000,
};

enum gpsh_event_kind {
    GPSH_EVENT_CALL,
    GPSH_EVENT_KERNEL,
    GPSH_EVENT_TURN,      // of a proxy
    GPSH_EVENT_BATCH,     // the same on its ring's track
    GPSH_EVENT_COMMAND,   // in a batch
    GPSH_EVENT_OPERATION, // in a queue: from when it was its turn until it was complete
    GPSH_EVENT_DOORBELL,
    GPSH_EVENT_POLL,
    GPSH_EVENT_PUBLISH,
    GPSH_EVENT_ARROW_BEGIN, // from a command,
    GPSH_EVENT_ARROW_STEP,  // by the proxy's turn,
    GPSH_EVENT_ARROW_END,   // to its operation
};

struct gpsh_event {
    uint64_t at_ns, took_ns;
    uint32_t track;
    uint8_t kind;
    // OPERATION, and what comes of it: its place in the record's run; PUBLISH: commands more than
    // the record's index
    uint32_t offset;
    bool unfinished;    // OPERATION: was not complete when the trace ended
    uint64_t posted_ns; // OPERATION
    const struct gpsh_trace_record *record;
};

struct gpsh_events {
    struct gpsh_event *list; // by track, then by time
    size_t n, room;
    uint64_t records, dropped;
};

// False: no memory. Free the list in either case.
bool gpsh_trace_events_make(const struct gpsh_trace_head *head, struct gpsh_events *events);

#endif
