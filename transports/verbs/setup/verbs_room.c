// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE
// Room for queue pairs: a budget of this PE's (GPUSHMEM_VERBS_QUEUE_PAIRS), and what a NIC makes,
// which may be that of other PEs, too. For a flow that finds none, others are closed, and it waits.
#include <errno.h>

#include "core/clock.h"
#include "transports/verbs/setup/verbs_handshakes.h"

enum {
    ROOM_MS = 20,   // so long a budget makes a flow wait
    KEPT_MS = 1,    // so long nobody asks again to close what is in use: a few round trips
    HOPE_MS = 1000, // so long a NIC that makes none is asked again before another is closed for
                    // it, or where none can be
};

void gpsh_verbs_room_kept(struct verbs_flow *flow)
{
    flow->link.kept_ns = gpsh_clock_ns() + KEPT_MS * UINT64_C(1000000);
}

// One that may be closed, or NULL. It is shut.
static struct verbs_flow *shut_one(struct verbs_handshakes *all, const struct verbs_flow *wants)
{
    struct verbs_flow *flow;
    while ((flow = gpsh_verbs_up_choose(all->ups, wants, &all->dice)) && !gpsh_verbs_shut(flow))
        gpsh_verbs_room_kept(flow);
    return flow;
}

static bool close_one(struct verbs_handshakes *all, const struct verbs_flow *wants)
{
    struct verbs_flow *flow = all->may_shut ? shut_one(all, wants) : NULL;
    if (!flow)
        return false;
    gpsh_verbs_up_remove(flow);
    flow->link.level = VERBS_LEVEL_CLOSES;
    flow->link.asks++;
    all->closing += flow->n_rails;
    verbs_list(all, flow);
    GPSH_LOG(DEBUG, "verbs", "PE %d, channel %td: closes to make room", flow->pe,
             flow->channel - flow->channel->verbs->channels);
    return true;
}

// That is worth a short wait only: those in use may be so for long.
bool gpsh_verbs_room_lacks(struct verbs_handshakes *all, struct verbs_flow *flow)
{
    uint64_t now = gpsh_clock_ns(), budget = (uint64_t)all->verbs->env.settings->verbs_queue_pairs;
    struct verbs_link *link = &flow->link;
    if (!budget || !all->may_shut || all->queue_pairs + flow->n_rails <= budget)
        return false;
    if (!link->room_ns)
        link->room_ns = now + ROOM_MS * UINT64_C(1000000);
    while (all->queue_pairs + flow->n_rails > budget + all->closing && close_one(all, flow))
        continue;
    return now < link->room_ns;
}

// There are others, which may be closed later if not now.
static bool others_have_room(const struct verbs_handshakes *all, const struct verbs_flow *flow)
{
    for (const struct verbs_flow *up = all->ups; up; up = up->link.next_up)
        if (up->pe != all->verbs->env.my_pe)
            return true;
    return all->under_way && (all->under_way != flow || flow->link.next);
}

// Whether to close another one for a NIC that makes no more. Where it makes none though some were
// closed, closing more at once would cost what still works; but other PEs may have got their room,
// so another one goes after a while. Of files that a process may have open, queue pairs are none.
static bool closes_for(struct verbs_handshakes *all, struct verbs_flow *flow, int error)
{
    if (error == EMFILE)
        return false;
    bool helps = all->in_vain < flow->n_rails ||
                 gpsh_clock_ns() - all->vain_ns >= HOPE_MS * UINT64_C(1000000);
    return all->closing || (helps && close_one(all, flow)) || others_have_room(all, flow);
}

bool gpsh_verbs_room_may_come(struct verbs_handshakes *all, struct verbs_flow *flow, int error)
{
    uint64_t now = gpsh_clock_ns();
    struct verbs_link *link = &flow->link;
    if (error != ENOMEM && error != ENOSPC && error != EMFILE && error != EAGAIN)
        return false;
    if (!link->full_ns)
        link->full_ns = now;
    if (closes_for(all, flow, error))
        return now - link->full_ns < gpsh_verbs_patience_ns(all->verbs);
    // Others may have got the room of the last one that was closed, which may have taken long.
    uint64_t since = link->full_ns > all->vain_ns ? link->full_ns : all->vain_ns;
    return now - since < HOPE_MS * UINT64_C(1000000);
}

void gpsh_verbs_room_await(struct verbs_handshakes *all, struct verbs_flow *flow)
{
    struct verbs_link *link = &flow->link;
    if (link->waits)
        return;
    link->waits = true;
    link->next_waiting = all->waiting;
    all->waiting = flow;
}
