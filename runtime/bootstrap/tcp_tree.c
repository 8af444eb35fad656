// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // pthread_condattr_setclock
#include "bootstrap/tcp_tree.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bootstrap/tcp_connect.h"
#include "bootstrap/tcp_exchange.h"
#include "bootstrap/tcp_membership.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/log.h"
#include "core/thread.h"

enum {
    FLUSH_MS = 500,
    PROVE_MS = 2000,
    AGAIN_MS = 20,  // until a descriptor may be free
    SERVE_MS = 200, // for others that call this PE, between two that do not answer it
};

// ------------------------------------------------------------------------------------------
// what the thread does

static void tree_link_frame(struct gpsh_tcp_link *link, struct gpsh_parcel *parcel)
{
    struct gpsh_tcp_tree *t = link->owner;
    const struct gpsh_frame frame = parcel->frame;
    char text[GPSH_SENTENCE_BYTES];
    link->unheard = false;
    if (frame.type == GPSH_FRAME_UP || frame.type == GPSH_FRAME_DOWN) {
        gpsh_tree_take_bundle(t, link, parcel);
        return;
    }
    gpsh_frame_text(parcel->payload, frame.bytes, text, sizeof text);
    gpsh_parcel_release(parcel);
    switch (frame.type) {
    case GPSH_FRAME_FAIL: gpsh_tree_fail(t, -(int)frame.round, text, link); break;
    case GPSH_FRAME_DEAD: gpsh_tree_note_death(t, frame.pe, text, link); break;
    case GPSH_FRAME_END: gpsh_tree_order_end(t, (int)frame.round, frame.pe, text, link); break;
    case GPSH_FRAME_BYE:
        link->left = true;
        t->left = link->pe + 1;
        pthread_cond_broadcast(&t->changed);
        break;
    default: break;
    }
}

static void tree_link_lost(struct gpsh_tcp_link *link, const char *why)
{
    struct gpsh_tcp_tree *t = link->owner;
    struct gpsh_tcp_link **at = &t->links;
    while (*at != link)
        at = &(*at)->next;
    *at = link->next;
    if (t->parent == link) {
        t->parent = NULL;
        t->orphan = !link->left;
    }
    if (!link->left && t->nodes)
        gpsh_tcp_nodes_lost(t, link);
    else if (!link->left && !link->unheard)
        gpsh_tree_note_death(t, link->pe, why, link);
    gpsh_tcp_link_destroy(link);
}

static const struct gpsh_tcp_link_ops link_ops = {.frame = tree_link_frame, .lost = tree_link_lost};

// A PE that calls again has lost a connection that this one still has.
static void tree_forget_link(struct gpsh_tcp_tree *t, int pe)
{
    struct gpsh_tcp_link **at = &t->links;
    while (*at && (*at)->pe != pe)
        at = &(*at)->next;
    struct gpsh_tcp_link *link = *at;
    if (!link)
        return;
    *at = link->next;
    gpsh_tcp_link_destroy(link);
}

static bool tree_fits(const struct gpsh_tcp_tree *t, const struct gpsh_hello *hello)
{
    if (hello->n_pes != t->n_pes)
        return false;
    if (t->nodes)
        return hello->purpose == GPSH_PURPOSE_ORPHAN && gpsh_tcp_nodes_admit(t, hello->pe);
    if (hello->purpose == GPSH_PURPOSE_CHILD)
        return gpsh_tree_is_child(t, hello->pe) && !gpsh_tree_link_to(t, hello->pe);
    return hello->purpose == GPSH_PURPOSE_ORPHAN && hello->pe > t->my_pe && hello->pe < t->n_pes;
}

static void tree_admit(struct gpsh_tcp_gate *gate, int fd, const struct gpsh_hello *hello,
                       const struct gpsh_tcp_address *from)
{
    struct gpsh_tcp_tree *t = gate->owner;
    (void)from;
    if (!tree_fits(t, hello)) {
        close(fd);
        return;
    }
    tree_forget_link(t, hello->pe);
    struct gpsh_tcp_link *link = gpsh_tree_add_link(t, fd, hello->pe);
    // It may have given up the call a moment ago. If it has not, it says at once who died; and if
    // it dies before, the sweep finds it.
    if (link && hello->purpose == GPSH_PURPOSE_ORPHAN)
        link->unheard = true;
}

static void tree_call_later(struct gpsh_tcp_tree *t, int ms)
{
    t->call_ns = gpsh_clock_ns() + (uint64_t)ms * 1000000;
}

// All that live are called. Those that did not answer are called again: else a PE that was stopped
// would be cut off from the others for ever.
static void tree_end_round(struct gpsh_tcp_tree *t)
{
    t->orphan = t->missed;
    t->missed = false;
    t->call_next = 0;
}

// Calls the lowest-numbered PE that has not been called in this round. All do, so that they end up
// in one tree again. If nobody below this PE lives, it is the first one. Without the lock, which
// others need meanwhile.
static void tree_find_parent(struct gpsh_tcp_tree *t)
{
    int pe = t->call_next;
    while (pe < t->my_pe && (t->deaths.list[pe].died || gpsh_tree_link_to(t, pe)))
        pe++;
    if (!t->addresses || pe >= t->my_pe) {
        tree_end_round(t);
        return;
    }
    int fd = gpsh_tree_call(t, pe);
    t->parent = fd < 0 ? NULL : gpsh_tree_add_link(t, fd, pe);
    t->orphan = !t->parent;
    t->call_next = t->parent ? 0 : pe + 1;
    if (t->parent) {
        t->missed = false;
    } else if (fd == GPUSHMEM_ERR_SYSTEM) { // says nothing about that PE
        t->call_next = pe;
        tree_call_later(t, AGAIN_MS);
    } else if (fd == GPUSHMEM_ERR_BOOTSTRAP &&
               gpsh_tcp_has_ended(gpsh_tree_prove(t, pe, PROVE_MS))) {
        gpsh_tree_note_gone(t, pe, "nobody listens any more where it did");
    } else {
        t->missed = true;
        tree_call_later(t, SERVE_MS);
    }
}

// In how many ms to call somebody, -1: never.
static int tree_due(const struct gpsh_tcp_tree *t)
{
    uint64_t now = gpsh_clock_ns();
    if (t->nodes)
        return gpsh_tcp_nodes_due(t);
    if (!t->orphan || t->leaving)
        return -1;
    return t->call_ns > now ? (int)((t->call_ns - now) / 1000000) + 1 : 0;
}

// The runtime hears of deaths without the lock: it may end the job then.
static void tree_tell_deaths(struct gpsh_tcp_tree *t)
{
    gpsh_pe_death_fn fn = t->on_death;
    void *arg = t->on_death_arg;
    int pe;
    while (fn && !t->stop && (pe = gpsh_tcp_deaths_take(&t->deaths)) >= 0) {
        pthread_mutex_unlock(&t->lock);
        fn(pe, t->deaths.list[pe].reason, arg);
        pthread_mutex_lock(&t->lock);
    }
}

// The process has too many files open to take another connection: callers wait meanwhile.
static void tree_pause(struct gpsh_tcp_tree *t)
{
    t->gate.accept_error = 0;
    pthread_mutex_unlock(&t->lock);
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    pthread_mutex_lock(&t->lock);
}

static void *tree_run(void *arg)
{
    struct gpsh_tcp_tree *t = arg;
    pthread_mutex_lock(&t->lock);
    while (!t->stop) {
        uint32_t events;
        int ms = gpsh_tcp_end_step(&t->end), tick = gpsh_tcp_gate_tick(&t->gate);
        if (tick >= 0 && (ms < 0 || tick < ms))
            ms = tick;
        int due = tree_due(t);
        if (due >= 0 && (ms < 0 || due < ms))
            ms = due;
        int sweep = gpsh_tcp_sweep_due(t);
        if (sweep >= 0 && (ms < 0 || sweep < ms))
            ms = sweep;
        pthread_mutex_unlock(&t->lock);
        struct gpsh_tcp_watch *watch = gpsh_tcp_loop_wait(&t->loop, ms, &events);
        pthread_mutex_lock(&t->lock);
        if (watch)
            watch->ready(watch, events);
        if (t->gate.accept_error)
            tree_pause(t);
        if (t->nodes && !t->stop)
            gpsh_tcp_nodes_step(t);
        tree_tell_deaths(t);
        if (!t->nodes && !t->stop && tree_due(t) == 0)
            tree_find_parent(t);
        if (!t->stop)
            gpsh_tcp_sweep_step(t);
    }
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

// ------------------------------------------------------------------------------------------
// what others ask

static void tree_free(struct gpsh_tcp_tree *t)
{
    while (t->links) {
        struct gpsh_tcp_link *next = t->links->next;
        gpsh_tcp_link_destroy(t->links);
        t->links = next;
    }
    gpsh_tcp_hold_close(&t->hold);
    gpsh_tcp_gate_close(&t->gate);
    gpsh_tcp_loop_close(&t->loop);
    gpsh_tcp_deaths_close(&t->deaths);
    gpsh_tcp_nodes_free(t->nodes);
    gpsh_parcel_release(t->mine);
    gpsh_parcel_release(t->bundle);
    pthread_cond_destroy(&t->changed);
    pthread_mutex_destroy(&t->lock);
    free(t->sweep.silent_ns);
    free(t->addresses);
    free(t);
}

struct gpsh_tcp_tree *gpsh_tcp_tree_create(const struct gpsh_uniqueid *id, int my_pe, int n_pes,
                                           struct gpsh_tcp_address *address)
{
    struct gpsh_tcp_tree *t = calloc(1, sizeof *t);
    struct gpsh_uniqueid here = *id;
    pthread_condattr_t clock;
    if (!t) {
        gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory to connect %d PEs", n_pes);
        return NULL;
    }
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&t->changed, &clock);
    pthread_condattr_destroy(&clock);
    pthread_mutex_init(&t->lock, NULL);
    t->my_pe = my_pe;
    t->n_pes = n_pes;
    t->link_ops = &link_ops;
    t->hold = (struct gpsh_tcp_hold){.caller = -1, .called = -1};
    here.n_addresses = 1;
    here.address[0] = *address;
    here.address[0].port = 0;
    int error = gpsh_tcp_loop_open(&t->loop);
    if (error)
        gpsh_fail(GPUSHMEM_ERR_SYSTEM, "no file descriptors to connect the PEs: %s",
                  strerror(error));
    if (error || gpsh_tcp_deaths_open(&t->deaths, n_pes) ||
        gpsh_tcp_gate_open(&t->gate, &t->loop, &here, tree_admit, t)) {
        tree_free(t);
        return NULL;
    }
    *address = t->gate.id.address[0];
    return t;
}

void gpsh_tcp_tree_hold_port(struct gpsh_tcp_tree *tree)
{
    gpsh_tcp_hold_open(&tree->hold, tree->gate.listener[0].watch.fd, &tree->gate.id.address[0]);
}

int gpsh_tcp_tree_start(struct gpsh_tcp_tree *tree)
{
    int error = gpsh_thread_start(&tree->thread, "gpushmem-boot", tree_run, tree);
    tree->running = !error;
    return error ? gpsh_fail(GPUSHMEM_ERR_SYSTEM, "cannot start a thread: %s", strerror(error)) : 0;
}

int gpsh_tcp_tree_set_parent(struct gpsh_tcp_tree *tree, int fd, int pe)
{
    pthread_mutex_lock(&tree->lock);
    tree->parent = gpsh_tree_add_link(tree, fd, pe);
    bool made = tree->parent != NULL;
    pthread_mutex_unlock(&tree->lock);
    return made ? 0 : gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory for a connection");
}

void gpsh_tcp_tree_set_addresses(struct gpsh_tcp_tree *tree, struct gpsh_tcp_address *addresses,
                                 const uint8_t secret[GPSH_SECRET_BYTES])
{
    pthread_mutex_lock(&tree->lock);
    memcpy(tree->gate.id.secret, secret, GPSH_SECRET_BYTES);
    tree->addresses = addresses;
    pthread_mutex_unlock(&tree->lock);
}

// Waits until everything is with the kernel, but not long. Where the network may lose a packet, a
// goodbye has to arrive first: a connection that is closed with something to read is reset, and
// what it was to send is gone.
static void tree_flush(struct gpsh_tcp_tree *t)
{
    for (int ms = 0; t->running && ms < FLUSH_MS; ms++) {
        bool pending = false;
        pthread_mutex_lock(&t->lock);
        for (const struct gpsh_tcp_link *link = t->links; link; link = link->next)
            pending |= t->nodes ? !gpsh_tcp_link_has_arrived(link) : link->n_out > 0;
        pthread_mutex_unlock(&t->lock);
        if (!pending)
            return;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
}

void gpsh_tcp_tree_destroy(struct gpsh_tcp_tree *tree)
{
    if (!tree)
        return;
    pthread_mutex_lock(&tree->lock);
    tree->leaving = true;
    gpsh_tree_flood(tree, gpsh_parcel_create(GPSH_FRAME_BYE, tree->my_pe, 0, 0), NULL);
    pthread_mutex_unlock(&tree->lock);
    tree_flush(tree);
    pthread_mutex_lock(&tree->lock);
    tree->stop = true;
    pthread_mutex_unlock(&tree->lock);
    gpsh_tcp_loop_wake(&tree->loop);
    if (tree->running)
        pthread_join(tree->thread, NULL);
    tree_free(tree);
}

void gpsh_tcp_tree_give_up(struct gpsh_tcp_tree *tree, int code)
{
    pthread_mutex_lock(&tree->lock);
    gpsh_tree_fail(tree, code, gpsh_last_error(), NULL);
    pthread_mutex_unlock(&tree->lock);
}

void gpsh_tcp_tree_expect_departures(struct gpsh_tcp_tree *tree, bool (*has_told)(int pe))
{
    pthread_mutex_lock(&tree->lock);
    tree->departures = true;
    tree->has_told = has_told;
    pthread_mutex_unlock(&tree->lock);
}

void gpsh_tcp_tree_on_death(struct gpsh_tcp_tree *tree, gpsh_pe_death_fn fn, void *arg)
{
    pthread_mutex_lock(&tree->lock);
    tree->on_death_arg = arg;
    tree->on_death = fn;
    tree_tell_deaths(tree);
    pthread_mutex_unlock(&tree->lock);
}

int gpsh_tcp_tree_check(struct gpsh_tcp_tree *tree, const char *what, int ms)
{
    enum { LOOK_MS = 20 };
    int status;
    do {
        pthread_mutex_lock(&tree->lock);
        status = gpsh_tcp_deaths_fail(&tree->deaths, what);
        pthread_mutex_unlock(&tree->lock);
        if (!status && ms > 0)
            nanosleep(&(struct timespec){.tv_nsec = LOOK_MS * 1000000L}, NULL);
        ms -= LOOK_MS;
    } while (!status && ms > 0);
    return status;
}

void gpsh_tcp_tree_end_job(struct gpsh_tcp_tree *tree, int status, const char *why,
                           bool this_one_too)
{
    pthread_mutex_lock(&tree->lock);
    if (this_one_too)
        gpsh_tree_order_end(tree, status, false, why, NULL);
    else
        gpsh_tree_flood(tree, gpsh_parcel_text(GPSH_FRAME_END, 1, (uint32_t)status, why), NULL);
    pthread_mutex_unlock(&tree->lock);
    gpsh_tcp_loop_wake(&tree->loop);
    if (!this_one_too)
        tree_flush(tree);
}
