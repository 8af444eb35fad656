// SPDX-License-Identifier: BSD-3-Clause
// Records of what this PE does, for GPUSHMEM_TRACE (docs/design/observing.md). Who writes: a proxy
// thread or a context, by channels that are traced (trace_channel.c); threads of the host, by calls
// (observe/call.h). Each has a lane of its own and waits for nobody. A full lane loses its oldest
// records.
#ifndef GPSH_TRACE_H
#define GPSH_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/clock.h"
#include "core/ticks.h"
#include "observe/trace_parts.h"
#include "transport/transport.h"

struct gpsh_trace_owner {
    const char *file; // GPUSHMEM_TRACE
    const char *job;
    int pe, n_pes, node;
    int n_channels, n_proxies; // channel i writes to lane i
    uint64_t lane_records;
};

// Begins the part of this PE. A negative status with a sentence: there will be none.
int gpsh_trace_open(const struct gpsh_trace_owner *owner);
// Nothing is recorded any more, and the part is complete. Others may be writing records.
void gpsh_trace_stop(void);
// Nobody writes records any more.
void gpsh_trace_close(void);
// In the child of a fork, which shares the parent's part: it records nothing.
void gpsh_trace_forget(void);
bool gpsh_trace_is_open(void);

// CLOCK_MONOTONIC at the price of the processor's counter, for one thread: the clock is looked at
// once in some 2^18 ticks (100 us), and what the counter has gained since is added to it. How long
// a tick is follows from two looks at the clock.
struct gpsh_trace_time {
    uint64_t ticks, ns; // the last good look at the clock
    uint64_t scale;     // 2^32 times the ns of a tick
    uint64_t limit;     // ticks after which the clock is asked again; 0: each time
};

// Between two looks at the counter, `before` and `after`, the clock said `ns`. A thread that did
// not run in between learns nothing from it.
void gpsh_trace_time_learn(struct gpsh_trace_time *time, uint64_t before, uint64_t ns,
                           uint64_t after);
// Asks the clock.
uint64_t gpsh_trace_time_look(struct gpsh_trace_time *time);

static inline uint64_t gpsh_trace_time_at(const struct gpsh_trace_time *time, uint64_t gained)
{
    return time->ns + (gained * time->scale >> 32);
}

static inline uint64_t gpsh_trace_time_ns(struct gpsh_trace_time *time)
{
    uint64_t gained = gpsh_ticks() - time->ticks;
    return gained < time->limit ? gpsh_trace_time_at(time, gained) : gpsh_trace_time_look(time);
}

// A writer's own.
struct gpsh_trace_lane {
    _Alignas(64) struct gpsh_trace_record *records;
    uint64_t mask, written;
    uint64_t now_ns; // the last look at the clock
    uint64_t pass;   // what was written before a proxy's pass
    struct gpsh_trace_time time;
    struct gpsh_trace_lane_head *head;
    struct gpsh_trace_record spare; // where records go that come too late
};

// Of a channel, whose posts, doorbells and completions are records from now on. Nothing if there is
// no trace. `transport`: its index and name.
void gpsh_trace_channel(struct gpsh_channel *channel, int index, int transport);

// Between the files of the trace: notes the name of a transport, and returns how many PEs there
// are.
int gpsh_trace_prepare(int transport, const char *name);

// The lane of a channel, for its thread; NULL: no trace.
struct gpsh_trace_lane *gpsh_trace_lane(int channel);
// The lane of the calling thread of the host, NULL: there is none left.
struct gpsh_trace_lane *gpsh_trace_host_lane(void);
// The number of a function's name, which is a literal.
uint32_t gpsh_trace_name(const char *name);
// A kernel on CPU threads that has ended. `name` is a literal, or of a program that stays loaded.
struct gpsh_trace_kernel {
    const char *name;
    int name_length;   // of it: more may follow
    uint64_t began_ns; // by gpsh_trace_kernel_begin; 0: there was no trace
    uint32_t threads;
    int stream; // a number of its own for each
};
uint64_t gpsh_trace_kernel_begin(void);
void gpsh_trace_kernel(const struct gpsh_trace_kernel *kernel);
// This PE was in barrier `number` of all PEs.
void gpsh_trace_mark(uint64_t number, uint64_t entered_ns, uint64_t left_ns);

// What the channels post until the next call belongs to the commands of a ring: the one that *at
// counts when it is posted. NULL: to no ring.
void gpsh_trace_ring(struct gpsh_channel *const *channels, int n_channels, uint64_t now_ns,
                     uint16_t ring, const uint64_t *at);

extern bool gpsh_trace_stopped __attribute__((visibility("hidden")));

// A record to be filled, then gpsh_trace_commit.
static inline struct gpsh_trace_record *gpsh_trace_next(struct gpsh_trace_lane *lane)
{
    if (__builtin_expect(__atomic_load_n(&gpsh_trace_stopped, __ATOMIC_RELAXED), 0))
        return &lane->spare;
    return &lane->records[lane->written & lane->mask];
}

static inline void gpsh_trace_commit(struct gpsh_trace_lane *lane)
{
    if (__builtin_expect(__atomic_load_n(&gpsh_trace_stopped, __ATOMIC_RELAXED), 0))
        return;
    // A reader of a part whose writer was killed sees whole records.
    __atomic_store_n(&lane->head->records, ++lane->written, __ATOMIC_RELEASE);
}

// What the clock says now, and never earlier than it said.
static inline uint64_t gpsh_trace_now(struct gpsh_trace_lane *lane)
{
    uint64_t ns = gpsh_trace_time_ns(&lane->time);
    return ns > lane->now_ns ? ns : lane->now_ns;
}

static inline uint32_t gpsh_trace_span(uint64_t from_ns, uint64_t to_ns)
{
    uint64_t span = to_ns - from_ns;
    return span < UINT32_MAX ? (uint32_t)span : UINT32_MAX;
}

#endif
