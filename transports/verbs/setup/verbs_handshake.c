// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE
// Connections on first use. A flow is connected by a handshake of both PEs' threads, whose messages
// are datagrams (verbs_message.h); the programs may compute meanwhile. Both ends do the same: each
// says what it has (queue pairs; ones connected to the other's), and a flow is up as soon as this
// end is connected and the other has said that it is. So it does not matter who began, or whether
// both did:
//
//      greets(A) ->
//                  <- ready(B)      B has connected its queue pairs to A's
//      up(A)     ->                 so has A: from here on A posts, and B when it has this
//
// Whoever is not up repeats what it has, and every message of somebody who is not up is answered,
// so any of them may be lost or come again. Each attempt of an end has a number, higher than all
// before it: what comes late is known by that. A message bears a secret of its receiver's, which
// PEs of the job alone know.
//
// With a budget of queue pairs (GPUSHMEM_VERBS_QUEUE_PAIRS), or when a NIC makes no more, those
// used least recently are closed. Both ends have to have nothing under way:
//
//      closes    ->                 is shut: what is posted waits
//                  <- closed        so is that end, and has destroyed its queue pairs; or
//                  <- keeps         it has something under way: up again
#include <errno.h>
#include <stdio.h>

#include "core/clock.h"
#include "transports/verbs/setup/verbs_handshakes.h"

// ----------------------------------------------------------------------------------- states

// What there is of this attempt goes; no other thread uses it.
static void drop(struct verbs_flow *flow)
{
    struct verbs_link *link = &flow->link;
    struct verbs_handshakes *all = flow->channel->verbs->handshakes;
    gpsh_verbs_up_remove(flow);
    all->queue_pairs -= link->own ? flow->n_rails : 0;
    if (link->level == VERBS_LEVEL_CLOSES) {
        all->closing -= flow->n_rails;
        atomic_store(&flow->state, VERBS_APART);
    }
    for (int i = 0; i < flow->n_rails; i++)
        gpsh_verbs_lane_destroy(&flow->lanes[i]);
    if (link->theirs)
        link->over = link->theirs;
    link->own = link->theirs = link->asks = link->kept = 0;
    link->closed |= link->level >= VERBS_LEVEL_UP;
    link->level = VERBS_LEVEL_NONE;
}

void gpsh_verbs_handshake_fail(struct verbs_flow *flow, int code, const char *why)
{
    struct verbs_link *link = &flow->link;
    drop(flow);
    link->full_ns = 0;
    if (verbs_is_kernels(flow->channel))
        gpsh_verbs_kernel_out(flow, why);
    if (!link->called) {
        GPSH_LOG(DEBUG, "verbs", "%s", why);
        return;
    }
    link->called = false;
    link->code = code;
    snprintf(link->why, sizeof link->why, "%s", why);
    atomic_store_explicit(&flow->state, VERBS_REFUSED, memory_order_release);
}

// Makes this end's queue pairs; an errno and a sentence if that is not possible.
static int begin(struct verbs_handshakes *all, struct verbs_flow *flow)
{
    gpsh_verbs_lanes_renew(flow);
    for (int i = 0; i < flow->n_rails; i++) {
        errno = 0;
        if (gpsh_verbs_lane_create(&flow->lanes[i])) {
            int error = errno ? errno : EIO;
            drop(flow);
            return error;
        }
    }
    all->in_vain = 0;
    flow->link.own = ++all->attempts;
    flow->link.room_ns = flow->link.full_ns = 0;
    all->queue_pairs += flow->n_rails;
    flow->link.level = VERBS_LEVEL_GREETS;
    return 0;
}

static void up(struct verbs_flow *flow)
{
    struct verbs_handshakes *all = flow->channel->verbs->handshakes;
    flow->link.level = VERBS_LEVEL_UP;
    if (flow->link.closed && flow->link.called)
        gpsh_verbs_turnover_note(&all->turnover, flow, all->ups);
    flow->link.called = flow->link.closed = false;
    gpsh_verbs_up_add(&all->ups, flow);
    atomic_store(&flow->used, 1 + atomic_fetch_add(&flow->channel->verbs->uses, 1));
    atomic_store_explicit(&flow->state, VERBS_UP, memory_order_release);
    atomic_store(&flow->wanted, false);
    if (verbs_is_kernels(flow->channel))
        gpsh_verbs_kernel_up(flow);
    GPSH_LOG(DEBUG, "verbs", "PE %d, channel %td: connected after %u repeats", flow->pe,
             flow->channel - flow->channel->verbs->channels, flow->link.tries);
}

// A sentence if that is not possible.
static int connect_lanes(struct verbs_flow *flow, const uint32_t *qpns)
{
    int status = 0;
    for (int i = 0; !status && i < flow->n_rails; i++)
        status = gpsh_verbs_lane_connect(&flow->lanes[i], qpns[i]);
    flow->link.level = VERBS_LEVEL_READY;
    return status;
}

// This PE itself: both ends are here.
static int meet_oneself(struct verbs_flow *flow)
{
    uint32_t qpns[GPSH_VERBS_MAX_RAILS];
    for (int i = 0; i < flow->n_rails; i++)
        qpns[i] = flow->lanes[i].qpn;
    int status = connect_lanes(flow, qpns);
    if (!status)
        up(flow);
    return status;
}

void gpsh_verbs_handshake_call(struct verbs_handshakes *all, struct verbs_flow *flow)
{
    struct verbs_link *link = &flow->link;
    if (link->level >= VERBS_LEVEL_UP)
        return;
    if (!link->called && link->level != VERBS_LEVEL_NONE)
        verbs_list(all, flow); // the peer began, perhaps long ago
    if (!link->called)
        link->called_ns = gpsh_clock_ns();
    link->called = true;
    if (link->level != VERBS_LEVEL_NONE || link->waits)
        return;
    bool here = flow->pe == all->verbs->env.my_pe, wait = gpsh_verbs_room_lacks(all, flow);
    int error = wait ? 0 : begin(all, flow);
    if (wait || (error && gpsh_verbs_room_may_come(all, flow, error))) {
        gpsh_verbs_room_await(all, flow);
        return;
    }
    if (error || (here && meet_oneself(flow))) {
        gpsh_verbs_handshake_fail(flow, gpsh_last_error_code(), gpsh_last_error());
        return;
    }
    if (here)
        return;
    int paths = 0;
    for (int i = 0; i < flow->n_rails; i++)
        paths += gpsh_verbs_path_to(flow->peer, all->verbs, i) != NULL;
    if (!paths) {
        gpsh_verbs_handshake_fail(flow, gpsh_last_error_code(), gpsh_last_error());
        return;
    }
    verbs_list(all, flow);
}

// ------------------------------------------------------------------------------------------
// hearing

// The peer's queue pairs are known now.
static bool meet(struct verbs_flow *flow, const struct gpsh_verbs_message *message)
{
    struct verbs_link *link = &flow->link;
    link->theirs = message->own;
    memcpy(link->qpns, message->qpns, sizeof link->qpns);
    if (!connect_lanes(flow, link->qpns))
        return true;
    gpsh_verbs_reply(flow, GPSH_VERBS_REFUSES, message->own, EIO);
    gpsh_verbs_handshake_fail(flow, gpsh_last_error_code(), gpsh_last_error());
    return false;
}

// PEs whose NICs make no more, and that greet each other in a circle, would all wait for the next
// one's room. A greeting of a PE with a smaller number takes the room of one of this PE's own,
// which has no answer yet: that one waits. So there is always a PE that gets its answer.
static bool give_way(struct verbs_handshakes *all, uint32_t to)
{
    struct verbs_flow *flow = to < (uint32_t)all->verbs->env.my_pe ? all->under_way : NULL;
    while (flow && (flow->link.level != VERBS_LEVEL_GREETS || flow->link.theirs))
        flow = flow->link.next;
    if (!flow)
        return false;
    drop(flow);
    gpsh_verbs_room_await(all, flow);
    return true;
}

// False: it cannot be, and the peer knows why; or it cannot be now.
static bool accept(struct verbs_handshakes *all, struct verbs_flow *flow,
                   const struct gpsh_verbs_message *message)
{
    bool wait = gpsh_verbs_room_lacks(all, flow);
    int error = wait ? 0 : begin(all, flow);
    bool full = wait || (error && gpsh_verbs_room_may_come(all, flow, error));
    if (full && error && give_way(all, message->from)) {
        error = begin(all, flow);
        full = error && gpsh_verbs_room_may_come(all, flow, error);
    }
    flow->link.greeted = full;
    if (flow->link.greeted) {
        flow->link.greeting = *message;
        gpsh_verbs_room_await(all, flow);
        return false;
    }
    if (error) {
        gpsh_verbs_reply(flow, GPSH_VERBS_REFUSES, message->own, (uint32_t)error);
        gpsh_verbs_handshake_fail(flow, gpsh_last_error_code(), gpsh_last_error());
        return false;
    }
    verbs_list(all, flow);
    return true;
}

void gpsh_verbs_handshake_greeted(struct verbs_handshakes *all, struct verbs_flow *flow,
                                  const struct gpsh_verbs_message *message)
{
    if (accept(all, flow, message) && meet(flow, message))
        gpsh_verbs_say(flow);
}

static void hear_state(struct verbs_handshakes *all, struct verbs_flow *flow,
                       const struct gpsh_verbs_message *message)
{
    struct verbs_link *link = &flow->link;
    if (message->own <= link->over || (link->theirs && message->own < link->theirs))
        return; // late
    if (link->theirs && message->own != link->theirs) {
        if (link->level == VERBS_LEVEL_UP)
            return;
        drop(flow); // the peer has given up what this end knows, and has begun anew
    }
    if (link->level == VERBS_LEVEL_NONE) {
        if (message->kind == GPSH_VERBS_GREETS) {
            gpsh_verbs_handshake_greeted(all, flow, message);
            return;
        }
        gpsh_verbs_reply(flow, GPSH_VERBS_OVER, message->own, 0);
        if (link->called)
            gpsh_verbs_handshake_call(all, flow);
        return;
    }
    if (message->yours && message->yours != link->own)
        return; // about an attempt before
    if (!link->theirs && !meet(flow, message))
        return;
    if (message->kind >= GPSH_VERBS_READY && message->yours && link->level < VERBS_LEVEL_UP)
        up(flow);
    if (message->kind != GPSH_VERBS_UP)
        gpsh_verbs_say(flow);
}

void gpsh_verbs_handshake_keep(struct verbs_handshakes *all, struct verbs_flow *flow)
{
    all->closing -= flow->n_rails;
    flow->link.level = VERBS_LEVEL_UP;
    gpsh_verbs_room_kept(flow);
    gpsh_verbs_up_add(&all->ups, flow);
    atomic_store_explicit(&flow->state, VERBS_UP, memory_order_release);
}

static void hear_no(struct verbs_handshakes *all, struct verbs_flow *flow,
                    const struct gpsh_verbs_message *message)
{
    char why[256];
    struct verbs_link *link = &flow->link;
    if (message->yours != link->own || !link->own || link->level >= VERBS_LEVEL_UP)
        return;
    if (message->kind == GPSH_VERBS_REFUSES) {
        snprintf(why, sizeof why,
                 "PE %d refuses a connection: its NIC makes no queue pair for it (%s); see its log",
                 flow->pe, strerror((int)message->reason));
        gpsh_verbs_handshake_fail(flow, GPUSHMEM_ERR_TRANSPORT, why);
        return;
    }
    drop(flow);
    if (link->called)
        gpsh_verbs_handshake_call(all, flow);
}

// The peer has nothing under way. What it does not know of is closed already.
static void hear_closes(struct verbs_handshakes *all, struct verbs_flow *flow,
                        const struct gpsh_verbs_message *message)
{
    struct verbs_link *link = &flow->link;
    bool known = link->own && message->yours == link->own && message->own == link->theirs;
    // Each time it asks has one answer, however often and late the message comes.
    bool old = known && message->reason <= link->kept;
    if (old || (known && link->level == VERBS_LEVEL_UP && !gpsh_verbs_shut(flow))) {
        link->kept = old ? link->kept : message->reason;
        gpsh_verbs_reply(flow, GPSH_VERBS_KEEPS, message->own, message->reason);
        return;
    }
    if (known && link->level == VERBS_LEVEL_UP)
        atomic_store(&flow->state, VERBS_APART);
    if (known)
        drop(flow);
    gpsh_verbs_reply(flow, GPSH_VERBS_CLOSED, message->own, message->reason);
    if (known && link->called)
        gpsh_verbs_handshake_call(all, flow);
}

// What this end has asked for.
static void hear_closed(struct verbs_handshakes *all, struct verbs_flow *flow,
                        const struct gpsh_verbs_message *message)
{
    struct verbs_link *link = &flow->link;
    if (!link->own || message->yours != link->own || link->level != VERBS_LEVEL_CLOSES)
        return;
    if (message->kind == GPSH_VERBS_CLOSED) {
        all->in_vain += flow->n_rails;
        all->vain_ns = gpsh_clock_ns();
        drop(flow);
    } else if (message->reason == link->asks) {
        gpsh_verbs_handshake_keep(all, flow);
    }
}

static bool is_for_us(const struct gpsh_verbs *verbs, const struct gpsh_verbs_message *message)
{
    return message->secret == verbs->secret && message->to == (uint32_t)verbs->env.my_pe &&
           message->from < (uint32_t)verbs->env.n_pes && message->from != message->to &&
           message->channel < (uint32_t)verbs->env.channels && verbs->blobs[message->from] &&
           !verbs_is_lost(verbs, (int)message->from);
}

// What is said next goes by the rail that works for the peer.
void gpsh_verbs_handshake_hear(void *arg, int rail, const void *bytes, size_t n)
{
    struct verbs_handshakes *all = arg;
    struct gpsh_verbs_message message;
    if (!gpsh_verbs_message_parse(bytes, n, &message) || !is_for_us(all->verbs, &message))
        return;
    struct verbs_flow *flow =
        gpsh_verbs_flow_get(&all->verbs->channels[message.channel], (int)message.from);
    if (!flow || message.n_rails != flow->n_rails || rail >= flow->n_rails)
        return;
    flow->link.rail = (uint8_t)rail;
    if (message.kind <= GPSH_VERBS_UP)
        hear_state(all, flow, &message);
    else if (message.kind == GPSH_VERBS_CLOSES)
        hear_closes(all, flow, &message);
    else if (message.kind > GPSH_VERBS_CLOSES)
        hear_closed(all, flow, &message);
    else
        hear_no(all, flow, &message);
}
