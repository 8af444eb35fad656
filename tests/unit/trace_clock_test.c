// SPDX-License-Identifier: BSD-3-Clause
// The times of records: a counter that follows the clock, and the clocks of several nodes.
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "observe/trace.h"

// ---- The time between two looks at the clock ----

Test(trace_clock, gpsh_trace_time_learn__even_counter__follows_the_clock)
{
    struct gpsh_trace_time time = {0};
    gpsh_trace_time_learn(&time, 1000000, 5000, 1000100);
    cr_assert_eq(time.limit, 0, "one look tells nothing of a tick's length");
    gpsh_trace_time_learn(&time, 1001000, 5500, 1001100);
    cr_assert_eq(time.limit, 0, "two that are close to each other neither");
    gpsh_trace_time_learn(&time, 1400000, 205000, 1400100); // 2 ticks a ns
    cr_assert_gt(time.limit, 0);
    cr_assert_eq(gpsh_trace_time_at(&time, 1000), 205500);
}

Test(trace_clock, gpsh_trace_time_learn__interrupted_look__is_not_taken)
{
    struct gpsh_trace_time time = {0}, before;
    gpsh_trace_time_learn(&time, 1000000, 5000, 1000100);
    gpsh_trace_time_learn(&time, 1400000, 205000, 1400100);
    before = time;
    gpsh_trace_time_learn(&time, 1700000, 355000, 9900000);
    cr_assert_eq(memcmp(&time, &before, sizeof time), 0);
}

Test(trace_clock, gpsh_trace_time_learn__counter_jumps__asks_the_clock_each_time)
{
    struct gpsh_trace_time time = {0};
    gpsh_trace_time_learn(&time, 1000000, 5000, 1000100);
    gpsh_trace_time_learn(&time, 1400000, 205000, 1400100);
    gpsh_trace_time_learn(&time, 5000000, 355000, 5000100); // another processor's
    cr_assert_eq(time.limit, 0);
    gpsh_trace_time_learn(&time, 5400000, 555000, 5400100);
    cr_assert_gt(time.limit, 0);
    cr_assert_eq(gpsh_trace_time_at(&time, 1000), 555500);
}

Test(trace_clock, gpsh_trace_time_learn__counter_goes_back__is_no_time_to_add)
{
    struct gpsh_trace_time time = {0};
    gpsh_trace_time_learn(&time, 1000000, 5000, 1000100);
    gpsh_trace_time_learn(&time, 1400000, 205000, 1400100);
    gpsh_trace_time_learn(&time, 400000, 305000, 400100);
    cr_assert_eq(time.limit, 0);
}

Test(trace_clock, gpsh_trace_now__never_goes_back)
{
    struct gpsh_trace_lane lane = {0};
    for (int i = 0; i < 1000000; i++) {
        uint64_t ns = gpsh_trace_now(&lane);
        cr_assert_geq(ns, lane.now_ns);
        lane.now_ns = ns;
    }
}

// ---- Clocks ----

// Parts of two nodes in memory; node 1's clock is ahead, and drifts.
static struct gpsh_trace_head heads[2];
static struct gpsh_trace_part list[2] = {{.head = &heads[0]}, {.head = &heads[1]}};
static const struct gpsh_trace_parts two_nodes = {.list = list, .n = 2};

static uint64_t at_node_1(uint64_t ns, int64_t ahead, double drift)
{
    return ns + (uint64_t)ahead + (uint64_t)((double)ns * drift);
}

// Barrier i of those at the beginning (when 0) or the end: one PE comes late, in turn.
static void meet(int when, int i, uint64_t ns, int64_t ahead, double drift)
{
    uint64_t late_ns = ns + 1000 * (uint64_t)(1 + i % 3), left_ns = late_ns + 400;
    uint64_t came[2] = {i % 2 ? ns : late_ns, i % 2 ? late_ns : ns};
    uint64_t number = (uint64_t)(when * 1000 + i + 1);
    heads[0].marks[when][i] = (struct gpsh_trace_mark){number, came[0], left_ns};
    heads[1].marks[when][i] = (struct gpsh_trace_mark){number, at_node_1(came[1], ahead, drift),
                                                       at_node_1(left_ns + 100, ahead, drift)};
}

Test(trace_clock, gpsh_trace_clock_estimate__barriers__bound_the_difference)
{
    static const int64_t aheads[] = {0, 5000000000, -700000};
    for (int row = 0; row < 3; row++) {
        struct gpsh_trace_clock clock;
        memset(heads, 0, sizeof heads);
        heads[1].node = 1;
        for (int i = 0; i < 16; i++)
            meet(0, i, 10000000000 + 100000 * (uint64_t)i, aheads[row], 0);
        gpsh_trace_clock_estimate(&two_nodes, 1, &clock);
        cr_assert_leq(clock.within_ns, 1000);
        cr_assert_leq(llabs(clock.ahead_ns - aheads[row]), clock.within_ns);
        gpsh_trace_clock_estimate(&two_nodes, 0, &clock);
        cr_assert_eq(clock.ahead_ns, 0);
    }
}

Test(trace_clock, gpsh_trace_clock_estimate__drift__is_followed)
{
    const double drift = 20e-6;
    const uint64_t begin_ns = 10000000000, end_ns = 110000000000, between_ns = 60000000000;
    struct gpsh_trace_clock clock;
    memset(heads, 0, sizeof heads);
    heads[1].node = 1;
    for (int i = 0; i < 16; i++) {
        meet(0, i, begin_ns + 100000 * (uint64_t)i, 333, drift);
        meet(1, i, end_ns + 100000 * (uint64_t)i, 333, drift);
    }
    gpsh_trace_clock_estimate(&two_nodes, 1, &clock);
    uint64_t seen = gpsh_trace_clock_adjust(&clock, at_node_1(between_ns, 333, drift));
    cr_assert_leq(llabs((int64_t)(seen - between_ns)), 2000, "off by %lld ns",
                  (long long)(seen - between_ns));
}

Test(trace_clock, gpsh_trace_clock_estimate__no_common_barrier__takes_the_hosts_dates)
{
    struct gpsh_trace_clock clock;
    memset(heads, 0, sizeof heads);
    heads[0].began_ns = 1000;
    heads[0].began_real_ns = 1700000000000001000;
    heads[1].node = 1;
    heads[1].began_ns = 9000;
    heads[1].began_real_ns = 1700000000000003000;
    gpsh_trace_clock_estimate(&two_nodes, 1, &clock);
    cr_assert_eq(clock.ahead_ns, 6000);
    cr_assert_eq(clock.within_ns, -1);
}
