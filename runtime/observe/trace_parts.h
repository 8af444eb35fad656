// SPDX-License-Identifier: BSD-3-Clause
// What a PE's part of a trace looks like: a file that the PE maps while it runs, so that nothing is
// written at the end and a PE that is killed leaves what it had. A head, then one list of records
// for each lane. A lane has one writer at a time: a context or a proxy thread with its queues, or a
// thread of the host.
#ifndef GPSH_TRACE_PARTS_H
#define GPSH_TRACE_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    GPSH_TRACE_VERSION = 3,
    GPSH_TRACE_NAMES = 256, // functions that slices are named after
    GPSH_TRACE_NAME = 48,
    GPSH_TRACE_MARKS = 32, // barriers noted at the beginning, and as many at the end
    GPSH_TRACE_HOST_THREADS = 4,
    GPSH_TRACE_OTHER_LANES = GPSH_TRACE_HOST_THREADS + 1, // the last one: kernels on CPU threads
    GPSH_TRACE_NO_RING = 0xffff,
    GPSH_TRACE_TRANSPORTS = 4,
};
#define GPSH_TRACE_MAGIC "gpushtrc"

enum gpsh_trace_kind {
    GPSH_TRACE_NOTHING, // a place that was never written
    GPSH_TRACE_CALL,    // of the host: index is the name's, pe and bytes what it is about
    GPSH_TRACE_TURN,    // a proxy read `number` commands of `ring`, from `index` on, and posted
                        // `bytes` operations
    GPSH_TRACE_POST,    // a run of took_ns operations of so many bytes each, from `number` on, to
                        // `pe` taken by a transport; for the commands of `ring` from `index` on,
                        // or GPSH_TRACE_NO_RING
    GPSH_TRACE_FLUSH,   // a doorbell
    GPSH_TRACE_DONE,    // operations to `pe` up to `number` are complete
    GPSH_TRACE_RETIRED, // commands of `ring` before `index` are complete
    GPSH_TRACE_KERNEL,  // on CPU threads: index is the name's, of `number` threads, in stream `pe`
    GPSH_TRACE_KINDS,
};

enum gpsh_trace_flag {
    GPSH_TRACE_AT_ONCE = 8, // POST: complete when post returned
    GPSH_TRACE_FAILED = 8,  // DONE: the flow has failed
    // TURN: all that it had read was complete so many ns after its end: `pe`, as unsigned
    GPSH_TRACE_COMPLETE = 8,
};

// Numbers and indices are the lower halves of the library's.
struct gpsh_trace_record {
    uint64_t at_ns;   // CLOCK_MONOTONIC: beginning, of DONE the end
    uint32_t took_ns; // of POST: how many
    uint32_t bytes;
    uint32_t number;
    uint32_t index;
    int32_t pe;
    uint16_t ring;
    uint8_t transport; // index into the head's names
    uint8_t what;      // enum gpsh_trace_kind << 4 | enum gpsh_op_kind | enum gpsh_trace_flag
};
_Static_assert(sizeof(struct gpsh_trace_record) == 32, "two records in a cache line");

// When this PE was in a barrier of all PEs. No PE leaves one before all have entered it, which
// bounds the difference between two clocks.
struct gpsh_trace_mark {
    uint64_t number; // of the barrier; 0: none
    uint64_t entered_ns, left_ns;
};

struct gpsh_trace_lane_head {
    _Alignas(64) uint64_t records; // written in all; the file has the last ones
};

// Sizes that follow from the counts are checked by readers: gpsh_trace_part_bytes.
struct gpsh_trace_head {
    char magic[8];
    uint32_t version, head_bytes;
    int32_t pe, n_pes;
    int32_t node;               // the smallest PE of its node
    int32_t pid, run_pid;       // run_pid: of `gpushmem run`, or 0
    int32_t n_lanes, n_proxies; // lanes: default context, proxies, contexts, other ones
    uint32_t lane_records;      // a power of two
    uint32_t n_names;
    uint32_t ended;            // the PE has come to finalize
    uint32_t threads_left_out; // of the host, for which there was no lane
    uint32_t unused;
    uint64_t began_ns, began_real_ns; // CLOCK_MONOTONIC and CLOCK_REALTIME
    uint64_t ended_ns;
    uint64_t n_marks;
    char job[64], host[64]; // job: gpsh_sha256_mark of its name, short whatever that is
    char transports[GPSH_TRACE_TRANSPORTS][16];
    char names[GPSH_TRACE_NAMES][GPSH_TRACE_NAME];
    struct gpsh_trace_mark marks[2][GPSH_TRACE_MARKS]; // the first ones, and the last
};

static inline uint64_t gpsh_trace_lanes_at(void)
{
    return (sizeof(struct gpsh_trace_head) + 4095) / 4096 * 4096;
}

// The lanes' heads come after the file's, and then their records.
static inline uint64_t gpsh_trace_records_at(int n_lanes)
{
    uint64_t heads = (uint64_t)n_lanes * sizeof(struct gpsh_trace_lane_head);
    return gpsh_trace_lanes_at() + (heads + 4095) / 4096 * 4096;
}

static inline uint64_t gpsh_trace_part_bytes(int n_lanes, uint64_t lane_records)
{
    return gpsh_trace_records_at(n_lanes) +
           (uint64_t)n_lanes * lane_records * sizeof(struct gpsh_trace_record);
}

// ---- The files that the PEs of a job left, as memory ----

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

// ---- Their clocks ----

// How a node's clock differs from that of the lowest PE's node.
struct gpsh_trace_clock {
    int node;
    int64_t ahead_ns, ahead_later_ns; // at two times of that clock, between which it drifts
    uint64_t at_ns, later_ns;
    int64_t within_ns; // at most so wrong; -1: only the hosts' dates are known
};
void gpsh_trace_clock_estimate(const struct gpsh_trace_parts *parts, int node,
                               struct gpsh_trace_clock *clock);
// The time of a node's clock as the lowest PE's node has it.
uint64_t gpsh_trace_clock_adjust(const struct gpsh_trace_clock *clock, uint64_t at_ns);

#endif
