// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/thread.h"
#include "transports/ofi/ofi_drive.h"
#include "transports/ofi/ofi_flow.h"
#include "transports/ofi/ofi_peers.h"
#include "transports/ofi/ofi_wire.h"

enum {
    // So long after the last message it looks without sleeping: who sends one often sends another.
    ALERT_NS = 100000,
    WATCH_MS = 500,
    LATE_TURNS = 4, // of WATCH_MS: the thread could not run
    PINGS = 8,      // of a flow without an answer; then one for so many looks
    // While somebody else makes so many passes in a nap, this thread stands by.
    HELPED_NAP_NS = 100000,
    HELPED = 10,
    // A queue that cannot be slept for is looked at so often, and while messages wait to be sent.
    NAP_NS = 100000,
};

static void nap(long ns)
{
    nanosleep(&(struct timespec){.tv_nsec = ns}, NULL);
}

// ------------------------------------------------------------------------------------------
// silent peers

// Those that a stopped PE does not read shall not pile up; some may be lost with a connection.
static void ping(struct gpsh_ofi *ofi, struct ofi_flow *flow)
{
    pthread_mutex_lock(&ofi->wire.lock);
    bool wanted = flow->pings++ < PINGS || flow->pings % PINGS == 0;
    struct ofi_message *message =
        wanted && !flow->peer->waiting
            ? gpsh_ofi_message(ofi, flow->pe, OFI_PING, flow->channel->index)
            : NULL;
    if (message) {
        message->parcel->number = atomic_load(&flow->asked);
        gpsh_ofi_send(ofi, message);
    }
    pthread_mutex_unlock(&ofi->wire.lock);
}

// `completed` first: if `posted` is not more then, nothing was under way at that moment.
static bool awaits(const struct ofi_flow *flow)
{
    uint64_t completed = __atomic_load_n(&flow->pub->completed, __ATOMIC_ACQUIRE);
    return __atomic_load_n(&flow->pub->posted, __ATOMIC_RELAXED) != completed;
}

// Whether operations of that flow are under way; those that have not moved since the last time are
// asked about. Of one-sided operations the wire hears nothing: their completion is a sign of life.
static bool watch_flow(struct gpsh_ofi *ofi, struct ofi_flow *flow, uint64_t now_ns)
{
    uint64_t completed = __atomic_load_n(&flow->pub->completed, __ATOMIC_RELAXED);
    bool awaited = awaits(flow);
    if (completed != flow->watched)
        atomic_store_explicit(&flow->peer->heard_ns, now_ns, memory_order_relaxed);
    else if (awaited)
        ping(ofi, flow);
    flow->watched = completed;
    return awaited;
}

// It cannot answer, and lives: its silence counts from the time at which it goes on.
static bool is_stopped(struct gpsh_ofi *ofi, struct ofi_peer *peer, uint64_t now_ns,
                       uint64_t silent_ns)
{
    int pe = peer->pe;
    uint64_t limit_ns = (uint64_t)ofi->env.settings->ofi_timeout * 1000000000;
    if (!gpsh_env_peer_stopped(&ofi->env, pe)) {
        peer->stopped_ns = 0;
        peer->told = false;
        return false;
    }
    peer->awaited_ns = now_ns;
    if (!peer->stopped_ns)
        peer->stopped_ns = now_ns - silent_ns;
    if (!peer->told && now_ns - peer->stopped_ns > limit_ns) {
        peer->told = true;
        GPSH_LOG(WARN, "ofi",
                 "PE %d has not answered for %llu s: its process stands still, as one that a "
                 "debugger has stopped, or word of its end is held up; operations on it wait until "
                 "either",
                 pe, (unsigned long long)((now_ns - peer->stopped_ns) / 1000000000));
    }
    return true;
}

// Something is awaited from that PE.
static void judge_peer(struct gpsh_ofi *ofi, struct ofi_peer *peer, uint64_t now_ns)
{
    int pe = peer->pe;
    uint64_t limit_ns = (uint64_t)ofi->env.settings->ofi_timeout * 1000000000;
    uint64_t heard_ns = atomic_load_explicit(&peer->heard_ns, memory_order_relaxed);
    if (heard_ns < peer->awaited_ns)
        heard_ns = peer->awaited_ns;
    uint64_t silent_ns = now_ns > heard_ns ? now_ns - heard_ns : 0;
    if (silent_ns < WATCH_MS * UINT64_C(500000)) // it has spoken since the last look
        peer->stopped_ns = 0;
    else if (limit_ns && silent_ns >= limit_ns / 4 && !is_stopped(ofi, peer, now_ns, silent_ns) &&
             silent_ns > limit_ns)
        gpsh_ofi_peer_fail(ofi, pe, GPUSHMEM_ERR_PE_FAILED,
                           "PE %d has not answered for %llu s (GPUSHMEM_OFI_TIMEOUT)", pe,
                           (unsigned long long)ofi->env.settings->ofi_timeout);
}

void gpsh_ofi_watch(struct ofi_flow *flow)
{
    struct gpsh_ofi *ofi = flow->channel->ofi;
    // Pairs with the fence in is_idle: either the thread sees the operation, or this the mark.
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load_explicit(&flow->in_watch, memory_order_relaxed) ||
        atomic_exchange(&flow->in_watch, true))
        return;
    struct ofi_flow *first = atomic_load(&ofi->entered);
    do
        flow->next_watched = first;
    while (!atomic_compare_exchange_weak(&ofi->entered, &first, flow));
}

// Whether it leaves the list: its owner puts it there again.
static bool is_idle(struct ofi_flow *flow)
{
    if (awaits(flow))
        return false;
    atomic_store(&flow->in_watch, false);
    atomic_thread_fence(memory_order_seq_cst);
    return !awaits(flow) || atomic_exchange(&flow->in_watch, true);
}

static void take_entered(struct gpsh_ofi *ofi)
{
    struct ofi_flow *flow = atomic_exchange(&ofi->entered, NULL);
    while (flow) {
        struct ofi_flow *next = flow->next_watched;
        flow->next_watched = ofi->watched;
        ofi->watched = flow;
        flow = next;
    }
}

static void look_at(struct gpsh_ofi *ofi, struct ofi_flow *flow, uint64_t now_ns, bool late)
{
    struct ofi_peer *peer = flow->peer;
    if (atomic_load(&peer->lost) || !watch_flow(ofi, flow, now_ns) || peer->look == ofi->looks)
        return;
    bool anew = peer->look + 1 != ofi->looks;
    if (anew || late)
        peer->awaited_ns = now_ns;
    if (anew)
        peer->stopped_ns = 0;
    peer->look = ofi->looks;
    peer->judged = false;
}

// Every flow of a peer is looked at before the peer is judged. late: this PE was stopped itself, or
// had no processor, and has heard nobody meanwhile.
static void watch(struct gpsh_ofi *ofi, uint64_t now_ns, bool late)
{
    ofi->looks++;
    take_entered(ofi);
    for (struct ofi_flow **at = &ofi->watched; *at;) {
        struct ofi_flow *flow = *at, *next = flow->next_watched;
        look_at(ofi, flow, now_ns, late);
        if (is_idle(flow))
            *at = next;
        else
            at = &flow->next_watched;
    }
    for (struct ofi_flow *flow = ofi->watched; flow; flow = flow->next_watched) {
        struct ofi_peer *peer = flow->peer;
        if (peer->look == ofi->looks && !peer->judged)
            judge_peer(ofi, peer, now_ns);
        peer->judged = true;
    }
}

// ------------------------------------------------------------------------------------------
// sleep

static bool may_sleep(struct gpsh_ofi *ofi, bool *waiting)
{
    struct fid *queue = &ofi->wire.cq->fid;
    pthread_mutex_lock(&ofi->wire.lock);
    *waiting = ofi->wire.unsent || ofi->wire.unposted;
    bool may = fi_trywait(ofi->fabric, &queue, 1) == FI_SUCCESS;
    pthread_mutex_unlock(&ofi->wire.lock);
    return may;
}

// True if something has come, perhaps an operation of a peer that this PE is not told of.
static bool sleep_until_something(struct gpsh_ofi *ofi)
{
    struct pollfd fds[] = {{.fd = ofi->wake, .events = POLLIN},
                           {.fd = ofi->wire.fd, .events = POLLIN}};
    bool waiting;
    if (ofi->wire.fd < 0)
        nap(NAP_NS);
    else if (!may_sleep(ofi, &waiting))
        return true;
    else
        return poll(fds, 2, waiting ? 1 : WATCH_MS) > 0;
    return false;
}

// Threads that wait read again, too: one-sided operations of peers, whose data the provider moves
// when it is read, leave nothing there by which those threads could tell that some come.
static uint64_t expect_more(struct gpsh_ofi *ofi)
{
    atomic_store_explicit(&ofi->wire.vain, 0, memory_order_relaxed);
    return gpsh_clock_ns();
}

// How often others made passes of late.
struct company {
    uint64_t since_ns;
    uint32_t passes;
    bool helps;
};

// Whether threads that wait make passes, and will see what arrives before this one could.
static bool is_helped(const struct gpsh_ofi *ofi, struct company *company, uint64_t now_ns)
{
    if (now_ns - company->since_ns < HELPED_NAP_NS)
        return company->helps;
    uint32_t passes = atomic_load_explicit(&ofi->wire.helped, memory_order_relaxed);
    company->helps = passes - company->passes >= HELPED;
    company->since_ns = now_ns;
    company->passes = passes;
    return company->helps;
}

static void *run(void *arg)
{
    struct gpsh_ofi *ofi = arg;
    struct ofi_flow *pushed;
    uint64_t now_ns = gpsh_clock_ns(), watched_ns = now_ns, found_ns = 0;
    struct company company = {0};
    while (!atomic_load_explicit(&ofi->stop, memory_order_relaxed)) {
        bool found = gpsh_ofi_serve(ofi, &pushed);
        gpsh_ofi_push(pushed);
        now_ns = gpsh_clock_ns();
        found_ns = found ? now_ns : found_ns;
        if (is_helped(ofi, &company, now_ns))
            nap(HELPED_NAP_NS);
        else if (now_ns - found_ns > ALERT_NS && sleep_until_something(ofi))
            found_ns = expect_more(ofi);
        else if (!found)
            sched_yield();
        const uint64_t turn_ns = WATCH_MS * UINT64_C(1000000);
        if (now_ns - watched_ns >= turn_ns) {
            watch(ofi, now_ns, now_ns - watched_ns > LATE_TURNS * turn_ns);
            watched_ns = now_ns;
        }
    }
    return NULL;
}

int gpsh_ofi_thread_start(struct gpsh_ofi *ofi)
{
    ofi->looks = 1; // no peer's last one is the one before
    ofi->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (ofi->wake < 0)
        return gpsh_fail(GPUSHMEM_ERR_SYSTEM, "no descriptor for the thread that serves peers: %s",
                         strerror(errno));
    return gpsh_thread_start(&ofi->thread, "gpushmem-ofi", run, ofi);
}

void gpsh_ofi_thread_stop(struct gpsh_ofi *ofi)
{
    atomic_store(&ofi->stop, true);
    if (ofi->thread.runs) {
        uint64_t one = 1;
        (void)!write(ofi->wake, &one, sizeof one);
    }
    gpsh_thread_join(&ofi->thread);
    if (ofi->wake >= 0)
        close(ofi->wake);
    ofi->wake = -1;
}
