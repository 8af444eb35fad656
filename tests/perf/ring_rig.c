// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // CPU sets, environ
#include "ring_rig.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/config.h"
#include "core/cpu.h"
#include "core/error.h"
#include "job/job.h"
#include "proxy/device_side.h"
#include "proxy/proxy.h"
#include "transports/verbs/setup/verbs_blob.h"

// With the peers' table, which stays empty: everything goes through a ring.
enum { DEVICE_BYTES = sizeof(struct gpsh_handle_device) + RING_RIG_PES * sizeof(char *) };

struct ring_rig {
    const struct gpsh_device_memory *memory;
    struct gpsh_handle_host *host;
    struct gpsh_handle_device *device;
    char *heaps[RING_RIG_PES], *unmapped[RING_RIG_PES];
    struct gpsh_peer peers[RING_RIG_PES];
    struct gpsh_settings settings;
    struct gpsh_transport_env transport_env;
    struct gpsh_transport *far; // PE 1's, by verbs
    struct gpsh_transport *transport;
    struct gpsh_ring_set rings;
    struct gpsh_proxy *proxy;
    const struct gpsh_transport_ops *traced, *untraced; // of the channel
};

typedef int open_transport(struct ring_rig *rig, int proxies);

static const _Atomic bool kernels_wake = true;

static int cpu_of(int i)
{
    cpu_set_t set;
    int n = sched_getaffinity(0, sizeof set, &set) ? 0 : CPU_COUNT(&set);
    int wanted = n ? 2 * (i + 1) % n : 0;
    for (int cpu = 0; n && cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &set) && wanted-- == 0)
            return cpu;
    return -1;
}

void ring_rig_pin(int i)
{
    cpu_set_t set;
    int cpu = cpu_of(i);
    if (cpu < 0)
        return;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

static int make_proxy(struct ring_rig *rig, int rings, int proxies, unsigned entries_log2,
                      bool started)
{
    bool emulated = rig->memory->cpu_threads;
    const struct gpsh_proxy_env env = {.n_pes = RING_RIG_PES,
                                       .heap = rig->heaps[0],
                                       .heap_bytes = RING_RIG_HEAP_BYTES,
                                       .host_memory = true,
                                       .peers = rig->peers,
                                       .n_transports = 1,
                                       .replies = rig->host->replies,
                                       .n_replies = 1 << GPSH_REPLIES_LOG2,
                                       .control = &rig->host->control,
                                       .spin_ns = 10000000,
                                       .crowded = emulated,
                                       .nap_ns = 45000,
                                       .helpers = emulated,
                                       .wakers = emulated ? &kernels_wake : NULL};
    int status = gpsh_proxy_create(&env, proxies, &rig->proxy);
    if (status)
        return status;
    uint32_t *sleeping[32];
    for (int i = 0; i < proxies; i++) {
        struct gpsh_proxy_thread *thread = &rig->proxy->threads[i];
        sleeping[i] = &thread->sleeping;
        thread->cpu = emulated ? -1 : cpu_of(i);
        status = rig->transport->ops->channel_open(rig->transport, i, &thread->port.channels[0]);
        if (status)
            return status;
        rig->untraced = thread->port.channels[0]->ops;
        gpsh_trace_channel(thread->port.channels[0], 1 + i, 0); // nothing if there is no trace
        rig->traced = thread->port.channels[0]->ops;
        thread->trace = gpsh_trace_lane(1 + i);
    }
    status = gpsh_ring_set_create(rig->memory, rings, entries_log2, RING_RIG_PES, sleeping,
                                  emulated ? proxies : 0, &rig->rings);
    if (!status)
        status = gpsh_proxy_attach(rig->proxy, &rig->rings);
    if (!status && !started)
        gpsh_proxy_choose_ways(rig->proxy);
    return status || !started ? status : gpsh_proxy_start(rig->proxy);
}

static void on_peer_failed(void *arg, int pe, int code, const char *why)
{
    fprintf(stderr, "ring rig: PE %d: %s\n", pe, why);
}

static int open_p2p(struct ring_rig *rig, int proxies)
{
    rig->transport_env = (struct gpsh_transport_env){
        .n_pes = RING_RIG_PES,
        .mapped = {[GPSH_HEAP] = rig->heaps, [GPSH_CONTROL] = rig->heaps},
        .channels = proxies};
    return gpsh_p2p_ops.open(&rig->transport_env, &rig->transport);
}

static int open_end(struct ring_rig *rig, int pe, int proxies, struct gpsh_transport **out)
{
    static char control[RING_RIG_PES][4096];
    struct gpsh_transport_env env = {
        .my_pe = pe,
        .n_pes = RING_RIG_PES,
        .settings = &rig->settings,
        .regions = {[GPSH_HEAP] = {rig->heaps[pe], RING_RIG_HEAP_BYTES, GPSH_MEMORY_HOST, -1, -1},
                    [GPSH_CONTROL] = {control[pe], sizeof control[pe], GPSH_MEMORY_HOST, -1, -1}},
        .mapped = {[GPSH_HEAP] = rig->unmapped, [GPSH_CONTROL] = rig->unmapped},
        .channels = proxies,
        .peer_failed = on_peer_failed};
    return gpsh_verbs_ops.open(&env, out);
}

static int connect_ends(struct gpsh_transport *from, struct gpsh_transport *to, int pe)
{
    int64_t bytes = to->ops->describe(to, NULL, 0);
    void *blob = bytes > 0 ? malloc((size_t)bytes) : NULL;
    if (!blob)
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory for connection data");
    to->ops->describe(to, blob, (size_t)bytes);
    int status = from->ops->connect(from, pe, blob, (size_t)bytes);
    free(blob);
    return status;
}

static int open_verbs(struct ring_rig *rig, int proxies)
{
    const struct timespec nap = {.tv_nsec = 1000000};
    int status = gpsh_settings_read(environ, &rig->settings);
    if (!status)
        status = open_end(rig, 0, proxies, &rig->transport);
    if (!status)
        status = open_end(rig, 1, proxies, &rig->far);
    for (int pe = 0; !status && pe < RING_RIG_PES; pe++) {
        rig->peers[pe].amo = 0;
        status = connect_ends(rig->transport, pe ? rig->far : rig->transport, pe);
        if (!status)
            status = connect_ends(rig->far, pe ? rig->far : rig->transport, pe);
    }
    if (!status)
        status = rig->transport->ops->establish(rig->transport, 1, true);
    while (!status && !(status = rig->transport->ops->establish(rig->transport, 1, false)))
        nanosleep(&nap, NULL);
    return status < 0 ? status : 0;
}

static int make(struct ring_rig *rig, int rings, int proxies, unsigned entries_log2, bool started,
                open_transport *open)
{
    rig->host = rig->memory->host_alloc(sizeof *rig->host);
    rig->device = rig->memory->device_alloc(DEVICE_BYTES);
    for (int pe = 0; pe < RING_RIG_PES; pe++) {
        rig->heaps[pe] = rig->memory->host_alloc(RING_RIG_HEAP_BYTES);
        rig->peers[pe] =
            (struct gpsh_peer){.data = 0, .amo = -1, .same_node = true, .device = -1, .reason = ""};
    }
    if (!rig->host || !rig->device || !rig->heaps[0] || !rig->heaps[1])
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory for the heaps");
    int status = open(rig, proxies);
    return status ? status : make_proxy(rig, rings, proxies, entries_log2, started);
}

static struct ring_rig *open_rig(const struct gpsh_device_memory *memory, int rings, int proxies,
                                 unsigned entries_log2, bool started, open_transport *open)
{
    struct ring_rig *rig = calloc(1, sizeof *rig);
    if (!rig)
        return NULL;
    rig->memory = memory;
    if (!make(rig, rings, proxies, entries_log2, started, open))
        return rig;
    fprintf(stderr, "ring rig: %s\n", gpsh_last_error());
    ring_rig_close(rig);
    return NULL;
}

struct ring_rig *ring_rig_open(const struct gpsh_device_memory *memory, int rings, int proxies,
                               unsigned entries_log2, bool started)
{
    return open_rig(memory, rings, proxies, entries_log2, started, open_p2p);
}

struct ring_rig *ring_rig_open_verbs(const struct gpsh_device_memory *memory, int rings,
                                     int proxies, unsigned entries_log2, bool started)
{
    return open_rig(memory, rings, proxies, entries_log2, started, open_verbs);
}

static void age(struct gpsh_proxy_ring *ring, uint64_t commands)
{
    const struct gpushmem_ring *shared = &ring->shared;
    const struct gpushmem_command last = {.opcode = GPUSHMEM_CMD_NOP};
    uint64_t entries = gpsh_ring_entries(ring);
    for (uint64_t i = commands - entries; i < commands; i++)
        gpushmem_command_pack(&last, gpushmem_ring_lap(i, shared->entries_log2),
                              shared->slots + (i & (entries - 1)) * GPUSHMEM_COMMAND_WORDS);
    *shared->head = *shared->consumed_seen = *shared->completed_seen = commands;
    shared->status->consumed = shared->status->completed = commands;
    ring->parsed = ring->retired = ring->published = commands;
}

void ring_rig_age(struct ring_rig *rig, uint64_t commands, uint32_t nonce)
{
    for (int i = 0; i < rig->proxy->n_rings; i++)
        age(&rig->proxy->rings[i], commands);
    for (int i = 0; i < 1 << GPSH_REPLIES_LOG2; i++) {
        rig->device->reply_owners[i] = nonce;
        rig->host->replies[i].low = rig->host->replies[i].high =
            gpushmem_reply_pack(nonce, false, 0);
    }
}

void ring_rig_nap(struct ring_rig *rig, uint64_t nap_ns)
{
    rig->proxy->env.nap_ns = nap_ns;
}

int ring_rig_start(struct ring_rig *rig)
{
    return gpsh_proxy_start(rig->proxy);
}

static void close_channel(struct gpsh_channel *channel)
{
    if (channel)
        channel->ops->channel_close(channel);
}

void ring_rig_trace(struct ring_rig *rig, bool on)
{
    struct gpsh_proxy_thread *thread = &rig->proxy->threads[0];
    thread->port.channels[0]->ops = on ? rig->traced : rig->untraced;
    thread->trace = on ? gpsh_trace_lane(1) : NULL;
}

void ring_rig_close(struct ring_rig *rig)
{
    if (!rig)
        return;
    if (rig->proxy) {
        gpsh_proxy_stop(rig->proxy);
        for (int i = 0; i < rig->proxy->n_threads; i++)
            close_channel(rig->proxy->threads[i].port.channels[0]);
    }
    gpsh_proxy_destroy(rig->proxy);
    gpsh_ring_set_destroy(&rig->rings);
    if (rig->transport)
        rig->transport->ops->close(rig->transport);
    if (rig->far)
        rig->far->ops->close(rig->far);
    for (int pe = 0; pe < RING_RIG_PES; pe++)
        if (rig->heaps[pe])
            rig->memory->host_free(rig->heaps[pe], RING_RIG_HEAP_BYTES);
    if (rig->device)
        rig->memory->device_free(rig->device, DEVICE_BYTES);
    if (rig->host)
        rig->memory->host_free(rig->host, sizeof *rig->host);
    free(rig);
}

void ring_rig_handle(const struct ring_rig *rig, struct gpushmem_dev *out)
{
    *out = (struct gpushmem_dev){
        .abi = GPUSHMEM_DEVICE_ABI,
        .n_pes = RING_RIG_PES,
        .heap = rig->heaps[0],
        .heap_bytes = RING_RIG_HEAP_BYTES,
        .away = rig->device->away,
        .rings = rig->rings.device_rings,
        .n_rings = (uint32_t)rig->rings.n_rings,
        .replies = rig->host->replies,
        .replies_log2 = GPSH_REPLIES_LOG2,
        .reply_owners = rig->device->reply_owners,
        .fault = rig->host->faults,
        .fault_claim = rig->device->fault_claims,
        .control = &rig->host->control,
        .sync = (struct gpushmem_dev_sync *)(void *)(rig->heaps[0] + RING_RIG_HEAP_BYTES),
        .sync_sequence = &rig->device->sync_sequence,
        .timeout_ns = 20000000000u,
        .generation = 1,
        .layout = rig->rings.layout,
        .self = &rig->device->handle};
    rig->memory->device_write(&rig->device->handle, out, sizeof *out);
}

char *ring_rig_heap(const struct ring_rig *rig, int pe)
{
    return rig->heaps[pe];
}

bool ring_rig_drain(struct ring_rig *rig)
{
    int closed = 0;
    uint64_t heads[GPSH_MAX_RINGS];
    int status = gpsh_proxy_heads(rig->proxy, heads);
    while (!status && !gpsh_proxy_reached(rig->proxy, GPSH_CONTEXT_ALL, heads, &closed))
        gpsh_cpu_relax();
    if (status || gpsh_proxy_take_error(rig->proxy) || closed) {
        fprintf(stderr, "ring rig: %s\n", gpsh_last_error());
        return false;
    }
    const struct gpushmem_device_fault *fault = &rig->host->faults[GPUSHMEM_FAULT_FIRST];
    if (fault->status)
        fprintf(stderr, "ring rig: block %u, thread %u: status %d\n", fault->block[0],
                fault->thread[0], (int)fault->status);
    return !fault->status;
}

int ring_rig_step(struct ring_rig *rig)
{
    return gpsh_proxy_step(&rig->proxy->threads[0]);
}

const struct gpushmem_ring *ring_rig_ring(const struct ring_rig *rig, int number)
{
    return &rig->rings.rings[number];
}
