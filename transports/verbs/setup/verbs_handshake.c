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
//
// The thread sleeps while nothing is wanted, and looks at no flow but those under way.
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/thread.h"
#include "transports/verbs/setup/verbs_message.h"
#include "transports/verbs/setup/verbs_setup.h"

enum {
    MS = 1000000,
    REPEAT_MS = 20,
    REPEAT_DOUBLES = 5, // up to 640 ms,
    CALLED_DOUBLES = 9, // or 10 s, where only the peer wants the connection
    ROOM_MS = 20,       // so long a budget makes a flow wait
    KEPT_MS = 1,        // so long nobody asks again to close what is in use: a few round trips
    HOPE_MS = 1000,     // so long a NIC that makes none is asked again before another is closed for
                        // it, or where none can be
};

struct verbs_handshakes {
    struct gpsh_verbs *verbs;
    pthread_t thread;
    int wake; // eventfd
    atomic_bool stop;
    pthread_mutex_t lock; // of the wishes
    struct verbs_flow *wishes;
    struct verbs_flow *under_way;
    struct verbs_flow *ups, *waiting; // waiting: for room
    struct verbs_awake awake;
    uint32_t attempts;
    uint32_t queue_pairs, closing; // there are, and of these about to go
    uint32_t in_vain;              // queue pairs closed since the last one was made
    uint64_t vain_ns;              // when the last of these was
    uint32_t dice;
    struct verbs_turnover turnover;
    bool may_shut;
};

// ----------------------------------------------------------------------------------- states

static void list(struct verbs_handshakes *all, struct verbs_flow *flow)
{
    struct verbs_link *link = &flow->link;
    link->tries = 0;
    gpsh_verbs_patience_begin(flow, all->awake.ns);
    link->retry_ns = 0;
    if (link->listed)
        return;
    link->listed = true;
    link->next = all->under_way;
    all->under_way = flow;
}

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

static void fail(struct verbs_flow *flow, int code, const char *why)
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

// ------------------------------------------------------------------------------------------- room

// One that may be closed, or NULL. It is shut.
static struct verbs_flow *shut_one(struct verbs_handshakes *all, const struct verbs_flow *wants)
{
    struct verbs_flow *flow;
    while ((flow = gpsh_verbs_up_choose(all->ups, wants, &all->dice)) && !gpsh_verbs_shut(flow))
        flow->link.kept_ns = gpsh_clock_ns() + KEPT_MS * UINT64_C(1000000);
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
    list(all, flow);
    GPSH_LOG(DEBUG, "verbs", "PE %d, channel %td: closes to make room", flow->pe,
             flow->channel - flow->channel->verbs->channels);
    return true;
}

// Whether the budget leaves no room for the flow yet. That is worth a short wait only: those in use
// may be so for long.
static bool waits_for_room(struct verbs_handshakes *all, struct verbs_flow *flow)
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

// Whether the NIC, which makes no more, may do so soon.
static bool gets_room(struct verbs_handshakes *all, struct verbs_flow *flow, int error)
{
    uint64_t now = gpsh_clock_ns();
    struct verbs_link *link = &flow->link;
    if (error != ENOMEM && error != ENOSPC && error != EMFILE && error != EAGAIN)
        return false;
    if (!link->full_ns)
        link->full_ns = now;
    return now - link->full_ns < (closes_for(all, flow, error) ? gpsh_verbs_patience_ns(all->verbs)
                                                               : HOPE_MS * UINT64_C(1000000));
}

static void wait_for_room(struct verbs_handshakes *all, struct verbs_flow *flow)
{
    struct verbs_link *link = &flow->link;
    if (link->waits)
        return;
    link->waits = true;
    link->next_waiting = all->waiting;
    all->waiting = flow;
}

static void call(struct verbs_handshakes *all, struct verbs_flow *flow)
{
    struct verbs_link *link = &flow->link;
    if (link->level >= VERBS_LEVEL_UP)
        return;
    if (!link->called && link->level != VERBS_LEVEL_NONE)
        list(all, flow); // the peer began, perhaps long ago
    if (!link->called)
        link->called_ns = gpsh_clock_ns();
    link->called = true;
    if (link->level != VERBS_LEVEL_NONE || link->waits)
        return;
    bool here = flow->pe == all->verbs->env.my_pe, wait = waits_for_room(all, flow);
    int error = wait ? 0 : begin(all, flow);
    if (wait || (error && gets_room(all, flow, error))) {
        wait_for_room(all, flow);
        return;
    }
    if (error || (here && meet_oneself(flow))) {
        fail(flow, gpsh_last_error_code(), gpsh_last_error());
        return;
    }
    if (here)
        return;
    int paths = 0;
    for (int i = 0; i < flow->n_rails; i++)
        paths += gpsh_verbs_path_to(flow->peer, all->verbs, i) != NULL;
    if (!paths) {
        fail(flow, gpsh_last_error_code(), gpsh_last_error());
        return;
    }
    list(all, flow);
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
    fail(flow, gpsh_last_error_code(), gpsh_last_error());
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
    wait_for_room(all, flow);
    return true;
}

// The peer begins. False: it cannot be, and the peer knows why; or it cannot be now.
static bool accept(struct verbs_handshakes *all, struct verbs_flow *flow,
                   const struct gpsh_verbs_message *message)
{
    bool wait = waits_for_room(all, flow);
    int error = wait ? 0 : begin(all, flow);
    bool full = wait || (error && gets_room(all, flow, error));
    if (full && error && give_way(all, message->from)) {
        error = begin(all, flow);
        full = error && gets_room(all, flow, error);
    }
    flow->link.greeted = full;
    if (flow->link.greeted) {
        flow->link.greeting = *message;
        wait_for_room(all, flow);
        return false;
    }
    if (error) {
        gpsh_verbs_reply(flow, GPSH_VERBS_REFUSES, message->own, (uint32_t)error);
        fail(flow, gpsh_last_error_code(), gpsh_last_error());
        return false;
    }
    list(all, flow);
    return true;
}

static void hear_greeting(struct verbs_handshakes *all, struct verbs_flow *flow,
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
            hear_greeting(all, flow, message);
            return;
        }
        gpsh_verbs_reply(flow, GPSH_VERBS_OVER, message->own, 0);
        if (link->called)
            call(all, flow);
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

// It is not closed after all.
static void keep(struct verbs_handshakes *all, struct verbs_flow *flow)
{
    all->closing -= flow->n_rails;
    flow->link.level = VERBS_LEVEL_UP;
    flow->link.kept_ns = gpsh_clock_ns() + KEPT_MS * UINT64_C(1000000);
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
        fail(flow, GPUSHMEM_ERR_TRANSPORT, why);
        return;
    }
    drop(flow);
    if (link->called)
        call(all, flow);
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
        call(all, flow);
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
        keep(all, flow);
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
static void hear(void *arg, int rail, const void *bytes, size_t n)
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

// -------------------------------------------------------------------------------------------
// thread

static void take_wishes(struct verbs_handshakes *all)
{
    pthread_mutex_lock(&all->lock);
    struct verbs_flow *flow = all->wishes, *next;
    all->wishes = NULL;
    for (struct verbs_flow *at = flow; at; at = at->link.next_wish)
        at->link.wished = false;
    pthread_mutex_unlock(&all->lock);
    for (; flow; flow = next) {
        next = flow->link.next_wish;
        call(all, flow);
    }
}

static void call_waiting(struct verbs_handshakes *all)
{
    struct verbs_flow *flow = all->waiting, *next;
    all->waiting = NULL;
    for (; flow; flow = next) {
        next = flow->link.next_waiting;
        struct gpsh_verbs_message greeting = flow->link.greeting;
        flow->link.waits = false;
        if (flow->link.greeted && flow->link.level == VERBS_LEVEL_NONE)
            hear_greeting(all, flow, &greeting);
        else if (flow->link.called)
            call(all, flow);
    }
}

static void give_up(struct verbs_handshakes *all, struct verbs_flow *flow)
{
    char why[256];
    if (flow->link.level == VERBS_LEVEL_CLOSES) {
        keep(all, flow); // who posts there will find out
        return;
    }
    int code = gpsh_verbs_patience_over(flow, why, sizeof why);
    fail(flow, code, why);
}

static void repeat(struct verbs_handshakes *all, struct verbs_flow *flow, uint64_t now)
{
    struct verbs_link *link = &flow->link;
    uint32_t most = link->called ? REPEAT_DOUBLES : CALLED_DOUBLES;
    uint32_t doubles = link->tries < most ? link->tries : most;
    if (now < link->retry_ns)
        return;
    if (link->retry_ns) { // the link of one rail may be down
        link->tries++;
        link->rail = (uint8_t)((link->rail + 1) % flow->n_rails);
        if (link->called) // nothing here waits for the others
            gpsh_verbs_patience_look(flow, all->awake.ns);
    }
    link->retry_ns = now + ((uint64_t)REPEAT_MS * MS << doubles);
    gpsh_verbs_say(flow);
}

// An end that only the peer wants stays as it is: the peer, which may be stopped, finds it ready
// when it goes on.
static bool is_over(const struct verbs_handshakes *all, const struct verbs_flow *flow)
{
    const struct verbs_link *link = &flow->link;
    bool wanted = link->called || link->level == VERBS_LEVEL_CLOSES;
    return verbs_is_lost(all->verbs, flow->pe) || (wanted && all->awake.ns >= link->until_ns);
}

// Returns when the next one is due.
static uint64_t drive(struct verbs_handshakes *all)
{
    uint64_t now = gpsh_clock_ns(), due = UINT64_MAX;
    for (struct verbs_flow **at = &all->under_way; *at;) {
        struct verbs_flow *flow = *at;
        struct verbs_link *link = &flow->link;
        bool meets = link->level != VERBS_LEVEL_NONE && link->level != VERBS_LEVEL_UP;
        if (meets && is_over(all, flow)) {
            give_up(all, flow);
            meets = false;
        }
        if (!meets) {
            *at = link->next;
            link->listed = false;
            continue;
        }
        repeat(all, flow, now);
        due = link->retry_ns < due ? link->retry_ns : due;
        at = &link->next;
    }
    return due;
}

static void sleep_until(struct verbs_handshakes *all, uint64_t due)
{
    struct gpsh_verbs *verbs = all->verbs;
    struct pollfd fds[1 + GPSH_VERBS_MAX_RAILS] = {{.fd = all->wake, .events = POLLIN}};
    for (int i = 0; i < verbs->n_rails; i++)
        fds[1 + i] =
            (struct pollfd){.fd = gpsh_verbs_datagrams_fd(&verbs->rails[i]), .events = POLLIN};
    uint64_t now = gpsh_clock_ns(), left = due > now ? due - now : 0;
    int timeout = due == UINT64_MAX ? -1 : (int)((left + MS - 1) / MS);
    uint64_t count;
    if (poll(fds, 1u + verbs->n_rails, timeout) > 0 && fds[0].revents &&
        read(all->wake, &count, sizeof count) < 0)
        count = 0; // nobody has called
    gpsh_verbs_awake(&all->awake);
    for (int i = 0; i < verbs->n_rails; i++) // what has come is heard before it judges
        gpsh_verbs_datagrams_take(&verbs->rails[i], hear, i, all);
}

// Before something is sent. Returns when that has to be tried again.
static uint64_t mend(struct verbs_handshakes *all)
{
    uint64_t due = UINT64_MAX;
    for (int i = 0; i < all->verbs->n_rails; i++) {
        uint64_t again = gpsh_verbs_datagrams_mend(all->verbs, &all->verbs->rails[i]);
        due = again < due ? again : due;
    }
    return due;
}

static void *run(void *arg)
{
    struct verbs_handshakes *all = arg;
    while (!atomic_load(&all->stop)) {
        uint64_t mended = mend(all);
        take_wishes(all);
        call_waiting(all);
        uint64_t due = drive(all), soon = gpsh_clock_ns() + MS;
        due = mended < due ? mended : due;
        sleep_until(all, all->waiting && soon < due ? soon : due);
    }
    return NULL;
}

static void wake(const struct verbs_handshakes *all)
{
    const uint64_t one = 1;
    if (write(all->wake, &one, sizeof one) < 0) // full: it is awake
        return;
}

void gpsh_verbs_handshakes_wake(struct gpsh_verbs *verbs)
{
    if (verbs->handshakes)
        wake(verbs->handshakes);
}

void gpsh_verbs_handshake_ask(struct verbs_flow *flow)
{
    struct verbs_handshakes *all = flow->channel->verbs->handshakes;
    int state = VERBS_APART;
    if (!atomic_compare_exchange_strong(&flow->state, &state, VERBS_MEETING))
        return;
    pthread_mutex_lock(&all->lock);
    if (!flow->link.wished) {
        flow->link.wished = true;
        flow->link.next_wish = all->wishes;
        all->wishes = flow;
    }
    pthread_mutex_unlock(&all->lock);
    wake(all);
}

static void destroy(struct verbs_handshakes *all)
{
    if (all->wake >= 0)
        close(all->wake);
    pthread_mutex_destroy(&all->lock);
    free(all);
}

static int no_thread(struct verbs_handshakes *all, int error)
{
    destroy(all);
    return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY,
                     "cannot start the thread that connects PEs (%s): is `ulimit -u` or `ulimit "
                     "-n` reached?",
                     strerror(error));
}

int gpsh_verbs_handshakes_start(struct gpsh_verbs *verbs)
{
    struct verbs_handshakes *all = calloc(1, sizeof *all);
    if (!all)
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory for the thread that connects PEs");
    all->verbs = verbs;
    all->awake.looked_ns = gpsh_clock_ns();
    all->dice = (uint32_t)verbs->env.my_pe;
    pthread_mutex_init(&all->lock, NULL);
    all->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (all->wake < 0)
        return no_thread(all, errno);
    verbs->handshakes = all;
    all->may_shut = gpsh_verbs_shut_prepare();
    int error = gpsh_thread_start(&all->thread, "gpshmem-connect", run, all);
    if (error) {
        verbs->handshakes = NULL;
        return no_thread(all, error);
    }
    return 0;
}

void gpsh_verbs_handshakes_stop(struct gpsh_verbs *verbs)
{
    struct verbs_handshakes *all = verbs->handshakes;
    if (!all)
        return;
    atomic_store(&all->stop, true);
    wake(all);
    pthread_join(all->thread, NULL);
    for (struct verbs_peer *peer = atomic_load(&verbs->newest); peer; peer = peer->next)
        for (int i = 0; i < GPSH_VERBS_MAX_RAILS; i++)
            if (peer->paths[i])
                ibv_destroy_ah(peer->paths[i]);
    destroy(all);
    verbs->handshakes = NULL;
}
