// SPDX-License-Identifier: BSD-3-Clause
// Proxy threads: their life, their loop, and how they idle.
#define _GNU_SOURCE // syscall
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "core/cpu.h"
#include "core/error.h"
#include "core/thread.h"
#include "job/job.h"
#include "observe/status_request.h"
#include "proxy/proxy.h"

enum {
    // Posts that wait for those of the thread's next ring before the doorbell rings: few, so that
    // the first one is not late; more than one, so that rings with little in them share a doorbell.
    UNRUNG_POSTS = 16,
    // an idle proxy yields this long before it sleeps: longer than a round trip through a NIC, so
    // that a ping-pong never pays for a wake-up
    YIELD_NS = 1000000,
    REST_US = 200,        // a proxy whose work waiting kernel threads do looks again after this,
    REST_LIMIT_US = 1600, // twice as late each time it was not needed, up to this
    SLEEP_LIMIT_MS = 10,  // a wake-up that got lost costs no more than this
};

// Rings for everything that was posted with its doorbell held back.
static void ring_doorbells(struct gpsh_proxy_thread *thread)
{
    gpsh_clock_enter(&thread->clock, GPSH_STAGE_DOORBELL);
    thread->unrung = 0;
    for (int i = 0; i < thread->n_ports; i++) {
        struct gpsh_proxy_port *port = thread->ports[i];
        for (int t = 0; t < GPSH_MAX_TRANSPORTS && gpsh_port_is_open(port); t++) {
            if (!port->dirty[t])
                continue;
            port->dirty[t] = false;
            port->channels[t]->ops->flush(port->channels[t]);
        }
    }
}

// Polls for completions.
static int progress(struct gpsh_proxy_port *port)
{
    int work = 0;
    for (int t = 0; t < GPSH_MAX_TRANSPORTS; t++) {
        struct gpsh_channel *channel = port->channels[t];
        // What a lost peer leaves behind takes up room without being pending.
        if (channel && (channel->pending || port->stalled[t]))
            work += channel->ops->progress(channel);
        port->stalled[t] = false;
    }
    return work;
}

int gpsh_proxy_step(struct gpsh_proxy_thread *thread)
{
    int work = 0;
    bool traced = GPSH_UNLIKELY(thread->trace != NULL);
    gpsh_clock_pass_begin(&thread->clock);
    if (traced)
        gpsh_proxy_trace_begin(thread);
    for (int i = 0; i < thread->n_rings; i++) {
        if (gpsh_port_is_open(thread->rings[i]->port))
            work += traced ? gpsh_proxy_trace_pump(thread, thread->rings[i])
                           : gpsh_proxy_pump(thread, thread->rings[i]);
        if (thread->unrung >= (i + 1 < thread->n_rings ? UNRUNG_POSTS : 1)) {
            ring_doorbells(thread);
            gpsh_clock_enter(&thread->clock, GPSH_STAGE_PARSE);
        }
    }
    gpsh_clock_enter(&thread->clock, GPSH_STAGE_POLL);
    for (int i = 0; i < thread->n_ports; i++)
        if (gpsh_port_is_open(thread->ports[i]))
            work += progress(thread->ports[i]);
    gpsh_clock_enter(&thread->clock, GPSH_STAGE_RETIRE);
    for (int i = 0; i < thread->n_rings; i++)
        work += gpsh_proxy_retire(thread, thread->rings[i]);
    if (traced)
        gpsh_proxy_trace_retired(thread);
    if (GPSH_UNLIKELY(thread->n_ports > 1))
        gpsh_proxy_leave(thread);
    gpsh_clock_pass_end(&thread->clock, work);
    return work;
}

// Something is under way that only polling finishes. Called by the thread that makes the pass.
static bool must_poll(const struct gpsh_proxy_thread *thread)
{
    for (int i = 0; i < thread->n_ports; i++)
        for (int t = 0; t < GPSH_MAX_TRANSPORTS && gpsh_port_is_open(thread->ports[i]); t++)
            if (thread->ports[i]->channels[t] && thread->ports[i]->channels[t]->pending)
                return true;
    for (int i = 0; i < thread->n_rings; i++)
        if (thread->rings[i]->busy || thread->rings[i]->retired < thread->rings[i]->parsed)
            return true;
    return false;
}

// For anybody: reads only what is published.
static bool anything_to_read(const struct gpsh_proxy_thread *thread)
{
    struct gpushmem_command command;
    for (int i = 0; i < thread->n_rings; i++) {
        const struct gpushmem_ring *ring = &thread->rings[i]->shared;
        if (!gpsh_port_is_open(thread->rings[i]->port))
            continue;
        uint64_t consumed = __atomic_load_n(&ring->status->consumed, __ATOMIC_ACQUIRE);
        if (!__atomic_load_n(&ring->status->error, __ATOMIC_RELAXED) &&
            gpsh_ring_peek(ring, consumed, &command))
            return true;
    }
    return false;
}

// In this order: a helper is busy, consumes, says that something is unfinished, and is busy no
// more.
static bool may_sleep(const struct gpsh_proxy_thread *thread)
{
    return !anything_to_read(thread) && !atomic_load(&thread->busy) &&
           !atomic_load(&thread->unfinished) && !atomic_load(&thread->stop);
}

static void sleep_until_woken(struct gpsh_proxy_thread *thread)
{
    // Announced before the rings are looked at once more: a producer writes its command before it
    // reads `sleeping`, so either we see the command or it sees the announcement (both sides need a
    // full barrier between).
    __atomic_exchange_n(&thread->sleeping, 1, __ATOMIC_SEQ_CST);
    if (may_sleep(thread)) {
        struct timespec limit = {.tv_nsec = SLEEP_LIMIT_MS * 1000000L};
        syscall(SYS_futex, &thread->sleeping, FUTEX_WAIT_PRIVATE, 1, &limit, NULL, 0);
    }
    __atomic_store_n(&thread->sleeping, 0, __ATOMIC_SEQ_CST);
}

void gpsh_proxy_wake(uint32_t *sleeping)
{
    if (__atomic_exchange_n(sleeping, 0, __ATOMIC_SEQ_CST))
        syscall(SYS_futex, sleeping, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

struct idle {
    unsigned helped;  // kernel threads' passes that were seen
    unsigned rest_us; // how long it rested last, 0: it worked since
    unsigned passes;  // without work
    uint64_t since_ns;
    uint64_t idle_ns; // how long, at the last look at the clock
};

static bool take_turn(struct gpsh_proxy_thread *thread)
{
    return !atomic_load_explicit(&thread->busy, memory_order_relaxed) &&
           !atomic_exchange_explicit(&thread->busy, true, memory_order_acquire);
}

// An idle or resting thread answers: one that finds work all the time does not hang.
static void answer_status_requests(struct gpsh_proxy_thread *thread)
{
    unsigned questions = gpsh_status_requests();
    if (GPSH_LIKELY(questions == thread->asked) || !take_turn(thread))
        return;
    thread->asked = questions;
    gpsh_proxy_report(thread);
    atomic_store_explicit(&thread->busy, false, memory_order_release);
}

static bool can_be_woken(const struct gpsh_proxy_env *env)
{
    return env->wakers && atomic_load_explicit(env->wakers, memory_order_acquire);
}

// One empty pass: spin, then yield, then sleep (where a producer can wake us) or nap.
static void idle_step(struct gpsh_proxy_thread *thread, struct idle *idle)
{
    const struct gpsh_proxy_env *env = &thread->proxy->env;
    answer_status_requests(thread);
    if (idle->passes++ % 32 == 0) {
        uint64_t now = gpsh_clock_ns();
        if (idle->passes == 1)
            idle->since_ns = now;
        idle->idle_ns = now - idle->since_ns;
    }
    if (!env->crowded && idle->idle_ns < env->spin_ns) {
        gpsh_cpu_relax();
    } else if (idle->idle_ns < env->spin_ns + YIELD_NS || atomic_load(&thread->unfinished)) {
        sched_yield();
    } else if (can_be_woken(env)) {
        sleep_until_woken(thread);
    } else {
        struct timespec nap = {.tv_nsec = (long)env->nap_ns};
        nanosleep(&nap, NULL);
    }
}

// One pass, if nobody else is making one; acquire and release hand the thread's state over.
static int try_step(struct gpsh_proxy_thread *thread)
{
    if (!take_turn(thread))
        return -1;
    int work = gpsh_proxy_step(thread);
    atomic_store_explicit(&thread->unfinished, must_poll(thread), memory_order_relaxed);
    atomic_store_explicit(&thread->busy, false, memory_order_release);
    return work;
}

void gpsh_proxy_help(uint32_t *sleeping)
{
    struct gpsh_proxy_thread *thread =
        (struct gpsh_proxy_thread *)(void *)((char *)sleeping -
                                             offsetof(struct gpsh_proxy_thread, sleeping));
    if (try_step(thread) >= 0)
        atomic_fetch_add_explicit(&thread->helped, 1, memory_order_relaxed);
}

// Kernel threads have been doing this thread's work: it stays out of their way, and looks again a
// little later.
static bool is_helped(struct gpsh_proxy_thread *thread, struct idle *idle)
{
    unsigned helped = atomic_load_explicit(&thread->helped, memory_order_relaxed);
    if (helped == idle->helped)
        return false;
    unsigned rest_us = idle->rest_us ? 2 * idle->rest_us : REST_US;
    *idle = (struct idle){.helped = helped,
                          .rest_us = rest_us < REST_LIMIT_US ? rest_us : REST_LIMIT_US};
    struct timespec rest = {.tv_nsec = idle->rest_us * 1000L};
    nanosleep(&rest, NULL);
    answer_status_requests(thread);
    return true;
}

static void run_with_helpers(struct gpsh_proxy_thread *thread)
{
    struct idle idle = {0};
    while (!atomic_load_explicit(&thread->stop, memory_order_relaxed)) {
        if (is_helped(thread, &idle))
            continue;
        int work = try_step(thread);
        if (work > 0)
            idle = (struct idle){.helped = idle.helped};
        else
            idle_step(thread, &idle);
    }
}

static void *run(void *arg)
{
    struct gpsh_proxy_thread *thread = arg;
    struct idle idle = {0};
    gpsh_proxy_place(thread);
    // The kernel may end a nap this much late, by default 50 us, to merge it with other timers.
    prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
    if (thread->proxy->env.helpers) {
        run_with_helpers(thread);
        return NULL;
    }
    while (!atomic_load_explicit(&thread->stop, memory_order_relaxed)) {
        if (gpsh_proxy_step(thread)) {
            idle = (struct idle){0};
            continue;
        }
        atomic_store_explicit(&thread->unfinished, must_poll(thread), memory_order_relaxed);
        idle_step(thread, &idle);
    }
    return NULL;
}

int gpsh_proxy_create(const struct gpsh_proxy_env *env, int n_threads, struct gpsh_proxy **out)
{
    struct gpsh_proxy *proxy = calloc(1, sizeof *proxy);
    struct gpsh_proxy_thread *threads = gpsh_lines_alloc((size_t)n_threads, sizeof *threads);
    if (!proxy || !threads) {
        free(threads);
        free(proxy);
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory for %d proxy threads", n_threads);
    }
    proxy->env = *env;
    proxy->threads = threads;
    proxy->n_threads = n_threads;
    pthread_mutex_init(&proxy->heads_lock, NULL);
    pthread_mutex_init(&proxy->error_lock, NULL);
    for (int i = 0; i < n_threads; i++) {
        threads[i].proxy = proxy;
        threads[i].cpu = -1;
        atomic_store(&threads[i].port.open, true);
        threads[i].asked = gpsh_status_requests();
        if (env->times)
            gpsh_clock_start(&threads[i].clock);
    }
    *out = proxy;
    return 0;
}

static int attach_ring(struct gpsh_proxy_ring *ring, const struct gpushmem_ring *shared,
                       struct gpsh_proxy_thread *thread, struct gpsh_proxy_context *context)
{
    ring->shared = *shared;
    ring->thread = thread;
    ring->port = &thread->port;
    if (context) {
        ring->context = context;
        ring->port = thread->ports[thread->n_ports++] = &context->port;
        context->ring = ring;
    }
    uint64_t entries = gpsh_ring_entries(ring);
    ring->inflight = calloc(entries, sizeof *ring->inflight);
    ring->payloads = calloc(entries, sizeof *ring->payloads);
    if (!ring->inflight || !ring->payloads)
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY,
                         "no memory for %llu commands in flight; lower GPUSHMEM_RINGS",
                         (unsigned long long)entries);
    for (uint64_t i = 0; i < entries; i++)
        gpsh_inflight_init(&ring->inflight[i], ring);
    thread->rings[thread->n_rings++] = ring;
    return 0;
}

int gpsh_proxy_attach(struct gpsh_proxy *proxy, const struct gpsh_ring_set *set)
{
    proxy->rings = gpsh_lines_alloc((size_t)set->n_rings, sizeof *proxy->rings);
    proxy->contexts = gpsh_lines_alloc((size_t)proxy->env.n_contexts, sizeof *proxy->contexts);
    if (!proxy->env.counters)
        proxy->counters = gpsh_lines_alloc((size_t)set->n_rings, sizeof *proxy->counters);
    if (!proxy->rings || !proxy->contexts || !(proxy->env.counters || proxy->counters))
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory for %d command rings", set->n_rings);
    proxy->n_rings = set->n_rings;
    proxy->set = set;
    for (int t = 0; t < proxy->n_threads; t++) {
        proxy->threads[t].rings = calloc((size_t)set->n_rings, sizeof *proxy->threads[t].rings);
        proxy->threads[t].ways = calloc((size_t)proxy->env.n_pes, sizeof *proxy->threads[t].ways);
        proxy->threads[t].ports =
            calloc((size_t)proxy->env.n_contexts + 1, sizeof *proxy->threads[t].ports);
        if (!proxy->threads[t].rings || !proxy->threads[t].ways || !proxy->threads[t].ports)
            return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY,
                             "no memory for %d command rings and the ways to %d PEs", set->n_rings,
                             proxy->env.n_pes);
        proxy->threads[t].ports[proxy->threads[t].n_ports++] = &proxy->threads[t].port;
    }
    int shared = gpsh_proxy_shared_rings(proxy);
    for (int i = 0; i < set->n_rings; i++) {
        proxy->rings[i].counters =
            proxy->env.counters ? &proxy->env.counters[i] : &proxy->counters[i];
        int status =
            attach_ring(&proxy->rings[i], &set->rings[i], &proxy->threads[i % proxy->n_threads],
                        i < shared ? NULL : &proxy->contexts[i - shared]);
        if (status)
            return status;
    }
    return 0;
}

static char *way_base(const struct gpsh_proxy_thread *thread, int transport, int pe)
{
    char *const *direct = transport >= 0 ? thread->port.channels[transport]->direct : NULL;
    return direct ? direct[pe] : NULL;
}

static struct gpsh_way way_to(const struct gpsh_proxy_thread *thread, int pe)
{
    const struct gpsh_peer *peer = &thread->proxy->env.peers[pe];
    int data = peer->data, amo = gpsh_peer_amo_transport(peer);
    data = data >= 0 && thread->port.channels[data] ? data : -1;
    amo = amo >= 0 && thread->port.channels[amo] ? amo : -1;
    return (struct gpsh_way){way_base(thread, data, pe), way_base(thread, amo, pe), (int8_t)data,
                             (int8_t)amo};
}

void gpsh_proxy_choose_ways(struct gpsh_proxy *proxy)
{
    for (int i = 0; i < proxy->n_threads; i++)
        for (int pe = 0; pe < proxy->env.n_pes; pe++)
            proxy->threads[i].ways[pe] = way_to(&proxy->threads[i], pe);
}

int gpsh_proxy_start(struct gpsh_proxy *proxy)
{
    gpsh_proxy_choose_ways(proxy);
    for (int i = 0; i < proxy->n_threads; i++) {
        struct gpsh_proxy_thread *thread = &proxy->threads[i];
        int status = gpsh_thread_start(&thread->thread, "gpushmem-proxy", run, thread);
        if (status) {
            gpsh_proxy_stop(proxy);
            return status;
        }
    }
    return 0;
}

void gpsh_proxy_stop(struct gpsh_proxy *proxy)
{
    for (int i = 0; i < proxy->n_threads; i++)
        atomic_store(&proxy->threads[i].stop, true);
    for (int i = 0; i < proxy->n_threads; i++) {
        gpsh_proxy_wake(&proxy->threads[i].sleeping);
        gpsh_thread_join(&proxy->threads[i].thread);
    }
}

void gpsh_proxy_destroy(struct gpsh_proxy *proxy)
{
    if (!proxy)
        return;
    gpsh_proxy_stop(proxy);
    for (int i = 0; i < proxy->n_rings; i++) {
        free(proxy->rings[i].inflight);
        free(proxy->rings[i].payloads);
    }
    for (int i = 0; i < proxy->n_threads; i++) {
        free(proxy->threads[i].rings);
        free(proxy->threads[i].ways);
        free(proxy->threads[i].ports);
    }
    free(proxy->contexts);
    free(proxy->counters);
    free(proxy->rings);
    free(proxy->threads);
    pthread_mutex_destroy(&proxy->error_lock);
    pthread_mutex_destroy(&proxy->heads_lock);
    free(proxy);
}
