// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE
// The thread that connects flows, those of this PE and those of its peers, while programs do
// something else. It sleeps while nothing is wanted, and looks at no flow but those under way.
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/thread.h"
#include "transports/verbs/setup/verbs_handshakes.h"

enum {
    MS = 1000000, // in ns
    REPEAT_MS = 20,
    REPEAT_DOUBLES = 5, // up to 640 ms,
    CALLED_DOUBLES = 9, // or 10 s, where only the peer wants the connection
};

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
        gpsh_verbs_handshake_call(all, flow);
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
            gpsh_verbs_handshake_greeted(all, flow, &greeting);
        else if (flow->link.called)
            gpsh_verbs_handshake_call(all, flow);
    }
}

static void give_up(struct verbs_handshakes *all, struct verbs_flow *flow)
{
    char why[256];
    if (flow->link.level == VERBS_LEVEL_CLOSES) {
        gpsh_verbs_handshake_keep(all, flow); // who posts there will find out
        return;
    }
    int code = gpsh_verbs_patience_over(flow, why, sizeof why);
    gpsh_verbs_handshake_fail(flow, code, why);
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
        gpsh_verbs_datagrams_take(&verbs->rails[i], gpsh_verbs_handshake_hear, i, all);
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
    verbs->handshakes = all;
    all->may_shut = gpsh_verbs_shut_prepare();
    int status = all->wake < 0 ? gpsh_fail(GPUSHMEM_ERR_SYSTEM,
                                           "no descriptor for the thread that connects PEs (%s): "
                                           "is `ulimit -n` reached?",
                                           strerror(errno))
                               : gpsh_thread_start(&all->thread, "gpshmem-connect", run, all);
    if (status) {
        verbs->handshakes = NULL;
        destroy(all);
    }
    return status;
}

void gpsh_verbs_handshakes_stop(struct gpsh_verbs *verbs)
{
    struct verbs_handshakes *all = verbs->handshakes;
    if (!all)
        return;
    atomic_store(&all->stop, true);
    wake(all);
    gpsh_thread_join(&all->thread);
    for (struct verbs_peer *peer = atomic_load(&verbs->newest); peer; peer = peer->next)
        for (int i = 0; i < GPSH_VERBS_MAX_RAILS; i++)
            if (peer->paths[i])
                ibv_destroy_ah(peer->paths[i]);
    destroy(all);
    verbs->handshakes = NULL;
}
