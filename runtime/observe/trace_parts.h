// SPDX-License-Identifier: BSD-3-Clause
// The files that the PEs of a job with a trace left, as memory.
#ifndef GPSH_TRACE_PARTS_H
#define GPSH_TRACE_PARTS_H

#include <stdbool.h>
#include <stddef.h>

#include "observe/trace_part.h"

struct gpsh_trace_part {
    char *path;
    const struct gpsh_trace_head *head; // mapped
    size_t bytes;
};
struct gpsh_trace_parts {
    struct gpsh_trace_part *list; // by PE
    int n;
    int refused;   // files that are no parts, or damaged ones
    char why[320]; // of the last of them
    int others;    // further jobs that have left parts
    int running;   // parts of jobs that still run here, if no job was picked
    int running_pid;
};

// Whose parts: of the job of this name, or started by that `gpushmem run`; if both are unset, of
// the job that began last, of those that do not run any more.
struct gpsh_trace_pick {
    const char *job;
    int run_pid;
};

// Maps the parts of FILE that belong together, and checks all that can be wrong with
// them. If a job is picked, files of other users are refused. Returns 0, also if there are none, or
// a negative status with a sentence.
int gpsh_trace_parts_open(const char *file, const struct gpsh_trace_pick *pick,
                          struct gpsh_trace_parts *parts);
// With `remove` the files are deleted.
void gpsh_trace_parts_close(struct gpsh_trace_parts *parts, bool remove);

static inline const struct gpsh_trace_lane_head *
gpsh_trace_part_lane(const struct gpsh_trace_head *head, int lane)
{
    const void *heads = (const char *)head + gpsh_trace_lanes_at();
    return (const struct gpsh_trace_lane_head *)heads + lane;
}

static inline const struct gpsh_trace_record *
gpsh_trace_part_records(const struct gpsh_trace_head *head, int lane)
{
    const void *records = (const char *)head + gpsh_trace_records_at(head->n_lanes);
    return (const struct gpsh_trace_record *)records + (uint64_t)lane * head->lane_records;
}

#endif
