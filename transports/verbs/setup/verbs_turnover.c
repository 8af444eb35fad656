// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE
// Connections that are up, and those that are closed for others and made again. A program that uses
// more peers in turn than there is room for spends its time on that: it is slower by a factor of a
// hundred, and right all the same, so that nobody would look for the reason. It is told once.
#include <stdio.h>

#include "core/clock.h"
#include "core/count.h"
#include "transports/verbs/setup/verbs_setup.h"

void gpsh_verbs_up_add(struct verbs_flow **ups, struct verbs_flow *flow)
{
    struct verbs_link *link = &flow->link;
    link->next_up = *ups;
    link->up_at = ups;
    if (*ups)
        (*ups)->link.up_at = &link->next_up;
    *ups = flow;
}

void gpsh_verbs_up_remove(struct verbs_flow *flow)
{
    struct verbs_link *link = &flow->link;
    if (!link->up_at)
        return;
    *link->up_at = link->next_up;
    if (link->next_up)
        link->next_up->link.up_at = link->up_at;
    link->up_at = NULL;
}

struct verbs_flow *gpsh_verbs_up_choose(struct verbs_flow *ups, const struct verbs_flow *wants,
                                        uint32_t *dice)
{
    uint64_t now = gpsh_clock_ns();
    struct verbs_flow *best = NULL;
    uint32_t seen = 0;
    for (struct verbs_flow *flow = ups; flow; flow = flow->link.next_up) {
        if (flow->pe == flow->channel->verbs->env.my_pe || flow->link.kept_ns > now)
            continue;
        *dice = *dice * 1664525 + 1013904223;
        uint32_t age = best ? atomic_load(&best->used) - atomic_load(&flow->used) : 0;
        bool takes = wants->link.closed ? (*dice >> 16) % ++seen == 0 : (int32_t)age > 0;
        if (!best || takes)
            best = flow;
    }
    return best;
}

enum { LEAST_MS = 500 }; // nobody is told about a shorter time

static void begin(struct verbs_turnover *t, uint64_t now)
{
    *t = (struct verbs_turnover){.since_ns = now, .window = t->window + 1, .told = t->told};
}

static void count(struct verbs_turnover *t, struct verbs_flow *flow)
{
    if (flow->link.window == t->window)
        return;
    flow->link.window = t->window;
    t->queue_pairs += flow->n_rails;
    t->peers += flow->peer->window != t->window;
    flow->peer->window = t->window;
}

static void tell(struct verbs_turnover *t, const struct gpsh_verbs *verbs, double seconds)
{
    long long budget = verbs->env.settings->verbs_queue_pairs;
    char remedy[256];
    if (budget && budget < t->queue_pairs)
        snprintf(remedy, sizeof remedy,
                 "GPUSHMEM_VERBS_QUEUE_PAIRS=%lld is too few: set it to %u or more on all PEs, or "
                 "to 0, for as many as the NICs make",
                 budget, t->queue_pairs);
    else
        snprintf(
            remedy, sizeof remedy,
            "the NICs, here or there, make fewer, or GPUSHMEM_VERBS_QUEUE_PAIRS is less there: "
            "use fewer GPUSHMEM_CONTEXTS, GPUSHMEM_PROXY_THREADS or GPUSHMEM_VERBS_RAILS");
    GPSH_LOG(WARN, "verbs",
             "making connections takes more time than data: in %.1f s %u were made again that had "
             "been closed to make room, and operations waited %.1f s for them. %u queue pairs, to "
             "%u PEs, were in use; %s",
             seconds, t->made, (double)t->waited_ns * 1e-9, t->queue_pairs, t->peers, remedy);
    t->told = true;
}

void gpsh_verbs_turnover_note(struct verbs_turnover *t, struct verbs_flow *flow,
                              struct verbs_flow *ups)
{
    uint64_t now = gpsh_clock_ns(), passed = now - t->since_ns;
    gpsh_count_add(&flow->pub->reconnects, 1);
    if (t->told)
        return;
    bool long_enough = passed >= LEAST_MS * UINT64_C(1000000);
    if (!t->since_ns || (long_enough && 2 * t->waited_ns < passed))
        begin(t, now);
    uint64_t from = flow->link.called_ns > t->since_ns ? flow->link.called_ns : t->since_ns;
    t->waited_ns += now - from;
    t->made++;
    t->again += flow->link.window != t->window;
    count(t, flow);
    // What is not gone round more than once is no circle.
    if (!long_enough || 2 * t->waited_ns < passed || t->made < 2 * t->again)
        return;
    for (; ups; ups = ups->link.next_up)
        count(t, ups);
    tell(t, flow->channel->verbs, (double)passed * 1e-9);
}
