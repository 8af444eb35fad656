// SPDX-License-Identifier: BSD-3-Clause
// Two nodes' clocks are compared by the barriers that their PEs were in. Nobody leaves a barrier
// before all have entered it: so, in true time, a's entry comes before b's exit and b's before
// a's. Each barrier bounds from both sides how far b's clock is ahead; the bounds of many leave
// little room. (F. Cristian, "Probabilistic clock synchronization", 1989, with a barrier for the
// message and its answer.)
#include "observe/trace_clock.h"

// Of a node's PEs so many are compared with as many.
enum { COMPARED = 4 };

struct bounds {
    int64_t low, high; // of how far the clock is ahead
    uint64_t at_ns;    // where, by that clock: the last barrier's
};

static void narrow(struct bounds *bounds, const struct gpsh_trace_mark *a,
                   const struct gpsh_trace_mark *b)
{
    int64_t low = (int64_t)(b->entered_ns - a->left_ns),
            high = (int64_t)(b->left_ns - a->entered_ns);
    bounds->low = low > bounds->low ? low : bounds->low;
    bounds->high = high < bounds->high ? high : bounds->high;
    bounds->at_ns = b->left_ns > bounds->at_ns ? b->left_ns : bounds->at_ns;
}

static void compare_parts(struct bounds *bounds, const struct gpsh_trace_head *a,
                          const struct gpsh_trace_head *b, int when)
{
    for (int i = 0; i < GPSH_TRACE_MARKS; i++)
        for (int j = 0; j < GPSH_TRACE_MARKS; j++)
            if (b->marks[when][i].number && b->marks[when][i].number == a->marks[when][j].number)
                narrow(bounds, &a->marks[when][j], &b->marks[when][i]);
}

// when: 0 at the beginning of the job, 1 at its end.
static struct bounds compare_nodes(const struct gpsh_trace_parts *parts, int node, int when)
{
    struct bounds bounds = {.low = INT64_MIN, .high = INT64_MAX};
    int reference = parts->list[0].head->node;
    for (int i = 0, of_a = 0; i < parts->n && of_a < COMPARED; i++) {
        if (parts->list[i].head->node != reference)
            continue;
        of_a++;
        for (int j = 0, of_b = 0; j < parts->n && of_b < COMPARED; j++) {
            if (parts->list[j].head->node != node)
                continue;
            of_b++;
            compare_parts(&bounds, parts->list[i].head, parts->list[j].head, when);
        }
    }
    return bounds;
}

static const struct gpsh_trace_head *first_of(const struct gpsh_trace_parts *parts, int node)
{
    for (int i = 0; i < parts->n; i++)
        if (parts->list[i].head->node == node)
            return parts->list[i].head;
    return parts->list[0].head;
}

static int64_t middle(const struct bounds *b)
{
    return b->low + (b->high - b->low) / 2;
}

static bool known(const struct bounds *b)
{
    return b->at_ns && b->low <= b->high;
}

// No barrier in common: by the dates of the hosts, which something else keeps together.
static int64_t ahead_by_date(const struct gpsh_trace_head *a, const struct gpsh_trace_head *b)
{
    return (int64_t)(b->began_ns - b->began_real_ns) - (int64_t)(a->began_ns - a->began_real_ns);
}

void gpsh_trace_clock_estimate(const struct gpsh_trace_parts *parts, int node,
                               struct gpsh_trace_clock *clock)
{
    *clock = (struct gpsh_trace_clock){.node = node};
    if (node == parts->list[0].head->node)
        return;
    struct bounds begin = compare_nodes(parts, node, 0), end = compare_nodes(parts, node, 1);
    if (!known(&begin)) {
        clock->within_ns = -1;
        clock->ahead_ns = clock->ahead_later_ns =
            ahead_by_date(parts->list[0].head, first_of(parts, node));
        return;
    }
    clock->ahead_ns = clock->ahead_later_ns = middle(&begin);
    clock->at_ns = clock->later_ns = begin.at_ns;
    clock->within_ns = (begin.high - begin.low) / 2;
    if (known(&end) && end.at_ns > begin.at_ns) {
        clock->ahead_later_ns = middle(&end);
        clock->later_ns = end.at_ns;
        int64_t within = (end.high - end.low) / 2;
        clock->within_ns = within > clock->within_ns ? within : clock->within_ns;
    }
}

uint64_t gpsh_trace_clock_adjust(const struct gpsh_trace_clock *clock, uint64_t at_ns)
{
    int64_t ahead = clock->ahead_ns;
    if (at_ns > clock->at_ns && clock->later_ns > clock->at_ns) {
        double part = (double)(at_ns - clock->at_ns) / (double)(clock->later_ns - clock->at_ns);
        ahead += (int64_t)((double)(clock->ahead_later_ns - clock->ahead_ns) * part);
    }
    return at_ns - (uint64_t)ahead;
}
