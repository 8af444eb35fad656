// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // sched_getaffinity, CPU_COUNT
#include "proxy/device_side.h"

#include <ctype.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "connect/net.h"
#include "core/config.h"
#include "core/cpu.h"
#include "core/sized.h"
#include "gpushmem/device_host.h"
#include "gpushmem/gpushmem.h"
#include "job/failure.h"
#include "job/job.h"
#include "memory/blocks.h"
#include "memory/heap.h"
#include "memory/local_memory.h"
#include "memory/regions.h"
#include "observe/board.h"
#include "progress/waiter.h"
#include "proxy/device_teams.h"
#include "proxy/emulation.h"
#include "proxy/kernel_fault.h"
#include "proxy/kernel_queues.h"
#include "proxy/kernel_watch.h"
#include "proxy/proxy.h"

static struct {
    pthread_mutex_t lock;
    const struct gpsh_device_memory *memory;
    struct gpsh_handle_host *host;
    struct gpsh_handle_device *device;
    struct gpushmem_dev_context *contexts; // in the memory of `device`
    size_t device_bytes;
    struct gpsh_ring_set rings;
    struct gpsh_proxy *proxy; // NULL: every PE is reached directly
    struct gpushmem_dev handle;
    // the program knows why a kernel's wait ended: the next kernels may wait again
    _Atomic bool loss_taken;
    unsigned
        losses_known; // so many of gpsh_job()->failures the program has heard of by other calls
} side = {.lock = PTHREAD_MUTEX_INITIALIZER};

static _Atomic bool exists;

static void (*made)(void);
static struct gpsh_channel_lender lender;

void gpsh_device_side_borrow(const struct gpsh_channel_lender *from)
{
    lender = *from;
}

void gpsh_device_side_on_make(void (*hook)(void))
{
    made = hook;
}

// ---- Making ----

static unsigned log2_of(uint64_t power)
{
    return (unsigned)__builtin_ctzll(power);
}

static int count_cpus(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 1)
        return CPU_COUNT(&set);
    return (int)sysconf(_SC_NPROCESSORS_ONLN);
}

char *gpsh_device_side_direct(int pe)
{
    if (!gpsh_settings()->p2p)
        return NULL;
    if (!gpsh_heap()->device)
        return gpsh_heap()->direct[pe];
    bool mapped = gpsh_net()->transports[gpsh_job()->peers[pe].data]->ops->caps & GPSH_CAP_MAPPED;
    return mapped ? gpsh_heap()->mapped[GPSH_HEAP][pe] : NULL;
}

static uint64_t away_from_here(int pe)
{
    const char *there = gpsh_device_side_direct(pe);
    return there ? (uintptr_t)there - (uintptr_t)gpsh_heap()->base + 1 : 0;
}

static uint32_t handle_flags(void)
{
    bool all = true, any = false;
    for (int pe = 0; pe < gpsh_job()->n_pes; pe++) {
        bool direct = gpsh_device_side_direct(pe);
        all = all && direct;
        any = any || direct;
    }
    uint32_t flags = gpsh_net()->cpu_atomics ? GPUSHMEM_DEV_DIRECT_ATOMICS : 0;
    flags |= all && gpsh_net()->cpu_atomics ? GPUSHMEM_DEV_ALL_DIRECT : 0;
    flags |= any ? 0 : GPUSHMEM_DEV_NO_DIRECT;
    flags |= gpsh_heap()->device ? GPUSHMEM_DEV_GPU_HEAP : 0;
    flags |= gpsh_settings()->stats ? GPUSHMEM_DEV_COUNTED : 0;
    flags |= gpsh_settings()->check ? GPUSHMEM_DEV_BLOCKS : 0;
    return flags |
           (gpsh_settings()->force_system_scope || !gpsh_heap()->device ? GPUSHMEM_DEV_SYSTEM_SCOPE
                                                                        : 0);
}

static int make_tables(void)
{
    side.memory = gpsh_regions_device_memory();
    size_t before_contexts =
        (sizeof(struct gpsh_handle_device) + (size_t)gpsh_job()->n_pes * sizeof(uint64_t) + 15) /
        16 * 16;
    side.device_bytes = before_contexts + (size_t)gpsh_settings()->contexts * sizeof *side.contexts;
    side.host = side.memory->host_alloc(sizeof *side.host);
    side.device = side.memory->device_alloc(side.device_bytes);
    if (side.device)
        side.contexts = (struct gpushmem_dev_context *)((char *)side.device + before_contexts);
    uint64_t *away = calloc((size_t)gpsh_job()->n_pes, sizeof *away);
    int status = side.host && side.device && away
                     ? 0
                     : gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory for the device side of %d PEs",
                                 gpsh_job()->n_pes);
    for (int pe = 0; !status && pe < gpsh_job()->n_pes; pe++)
        away[pe] = away_from_here(pe);
    if (!status)
        status = side.memory->device_write(side.device->away, away,
                                           (size_t)gpsh_job()->n_pes * sizeof *away);
    free(away);
    return status;
}

static int open_channels(struct gpsh_proxy *proxy)
{
    for (int i = 0; i < proxy->n_threads; i++) {
        for (int t = 0; t < gpsh_net()->n_transports; t++) {
            struct gpsh_transport *transport = gpsh_net()->transports[t];
            int status = transport->ops->channel_open(transport, GPSH_CHANNEL_PROXY + i,
                                                      &proxy->threads[i].port.channels[t]);
            if (status < 0)
                return status;
            gpsh_trace_channel(proxy->threads[i].port.channels[t], GPSH_CHANNEL_PROXY + i, t);
        }
        proxy->threads[i].trace = gpsh_trace_lane(GPSH_CHANNEL_PROXY + i);
    }
    return 0;
}

static bool any_mixed(void)
{
    bool mixed = false;
    for (int pe = 0; pe < gpsh_job()->n_pes; pe++)
        mixed |= gpsh_peer_amo_transport(&gpsh_job()->peers[pe]) != gpsh_job()->peers[pe].data;
    return mixed;
}

// What the kernel says about the CPUs near this PE's GPU; NULL if threads are to run elsewhere, or
// there is no GPU.
static const char *near_cpus_file(char *path, size_t bytes)
{
    const char *pci = gpsh_regions_pci();
    if (!pci || gpsh_settings()->proxy_cpus[0])
        return NULL;
    snprintf(path, bytes, "/sys/bus/pci/devices/%s/local_cpulist", pci);
    for (char *c = path; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    return path;
}

static int make_proxy(void)
{
    const struct gpsh_settings *s = gpsh_settings();
    static char near_path[64];
    int n_threads = (int)(s->proxy_threads < s->rings ? s->proxy_threads : s->rings);
    struct gpsh_proxy_env env = {
        .n_pes = gpsh_job()->n_pes,
        .heap = gpsh_heap()->base,
        .heap_bytes = gpsh_heap_bytes(),
        .mixed = any_mixed(),
        .host_memory = !gpsh_heap()->device,
        .local_known = gpsh_heap()->device ? gpsh_local_known : NULL,
        .block_check = s->check ? gpsh_blocks_check : NULL,
        .peers = gpsh_job()->peers,
        .flush_writes = gpsh_heap()->flush_writes ? gpsh_flush_remote : NULL,
        .n_transports = gpsh_net()->n_transports,
        .replies = side.host->replies,
        .n_replies = 1 << GPSH_REPLIES_LOG2,
        .spin_ns = (uint64_t)s->proxy_spin_us * 1000,
        .times = s->proxy_times,
        .crowded = gpsh_job()->boot->node_n_pes * (1 + n_threads) > count_cpus(),
        .near_cpus_file = near_cpus_file(near_path, sizeof near_path),
        .nap_ns = (uint64_t)s->proxy_nap_us * 1000,
        .counters = gpsh_board_rings(),
        .n_contexts = (int)s->contexts,
        .take_channels = lender.take,
        .leave_channels = lender.leave,
        .none_left = lender.none_left,
        .kernel_queue = gpsh_kernel_queues_ask,
        .helpers = side.memory->cpu_threads,
        .wakers = side.memory->cpu_threads ? &gpsh_kernels_wake : NULL,
    };
    int status = gpsh_proxy_create(&env, n_threads, &side.proxy);
    if (status)
        return status;
    int cpus[32];
    uint32_t *sleeping[32];
    status = gpsh_parse_cpus(s->proxy_cpus, cpus, n_threads);
    for (int i = 0; i < n_threads; i++) {
        sleeping[i] = &side.proxy->threads[i].sleeping;
        side.proxy->threads[i].cpu = cpus[i];
    }
    int n_sleeping = env.helpers ? n_threads : 0;
    if (!status)
        status = gpsh_ring_set_create(side.memory, (int)(s->rings + s->contexts),
                                      log2_of((uint64_t)s->ring_entries), gpsh_job()->n_pes,
                                      sleeping, n_sleeping, &side.rings);
    if (!status)
        status = gpsh_proxy_attach(side.proxy, &side.rings);
    if (!status)
        status = open_channels(side.proxy);
    return status ? status : gpsh_proxy_start(side.proxy);
}

// No proxy: only for a PE that does not exist a kernel comes to a ring then. This one refuses it.
static int make_refusing_ring(void)
{
    const uint64_t head = GPUSHMEM_RING_LOST;
    int status = gpsh_ring_set_create(side.memory, 1, 0, gpsh_job()->n_pes, NULL, 0, &side.rings);
    if (status)
        return status;
    side.rings.rings[0].status->closed = side.rings.rings[0].status->error = GPUSHMEM_ERR_PE;
    return side.memory->device_write(side.rings.rings[0].head, &head, sizeof head);
}

// The same handle, with ring `number` alone. What is computed from a layout does not depend on its
// first ring.
static int fill_context(int number, struct gpushmem_dev_context *to)
{
    struct gpushmem_dev_context context = {.dev = side.handle};
    struct gpushmem_dev *dev = &context.dev;
    dev->n_rings = 1;
    dev->rings += number;
    dev->layout.host += (uint64_t)number * dev->layout.host_stride;
    dev->layout.device += (uint64_t)number * GPUSHMEM_RING_DEVICE_BYTES;
    dev->self = &to->dev;
    dev->nic = gpsh_kernel_queues_table(number - (int)side.handle.n_rings + 1);
    return side.memory->device_write(to, &context, sizeof context);
}

static uint32_t plain_part(void)
{
    uint64_t plain = gpsh_heap()->user_bytes / GPUSHMEM_DEV_PLAIN_BYTES;
    return gpsh_settings()->check ? 0 : plain < UINT32_MAX ? (uint32_t)plain : UINT32_MAX;
}

static int fill_handle(void)
{
    int n_contexts = side.proxy ? side.proxy->env.n_contexts : 0;
    side.handle = (struct gpushmem_dev){
        .abi = GPUSHMEM_DEVICE_ABI,
        .flags = handle_flags(),
        .my_pe = gpsh_job()->my_pe,
        .n_pes = gpsh_job()->n_pes,
        .heap = gpsh_heap()->base,
        // kernels keep their handle while the heap grows; the proxy knows its size
        .heap_bytes = gpsh_heap()->grows ? gpsh_regions_heap_max() : gpsh_heap_bytes(),
        .away = side.device->away,
        .rings = side.rings.device_rings,
        .n_rings = (uint32_t)(side.rings.n_rings - n_contexts),
        .replies = side.host->replies,
        .replies_log2 = GPSH_REPLIES_LOG2,
        .reply_owners = side.device->reply_owners,
        .fault = side.host->faults,
        .fault_claim = side.device->fault_claims,
        .control = &side.host->control,
        .sync = (struct gpushmem_dev_sync *)(gpsh_heap()->base + gpsh_heap()->user_bytes),
        .sync_sequence = &side.device->sync_sequence,
        .timeout_ns = (uint64_t)gpsh_settings()->wait_timeout_ms * 1000000,
        .generation = (uint32_t)gpsh_job()->generation,
        .n_contexts = (uint32_t)n_contexts,
        .plain = plain_part(),
        .contexts = side.contexts,
        .layout = side.rings.layout,
        .self = &side.device->handle,
        .n_teams = (uint32_t)gpsh_settings()->teams,
        .teams = gpsh_device_teams_table(),
        .nic = gpsh_kernel_queues_table(GPSH_CONTEXT_DEFAULT),
    };
    for (int pe = 0; pe < gpsh_job()->n_pes && pe < GPUSHMEM_DEV_NEAR_PEERS; pe++)
        side.handle.near_away[pe] = away_from_here(pe);
    side.host->control.heap_first_bytes = gpsh_heap()->first_bytes;
    __atomic_store_n(&side.host->control.heap_bytes, gpsh_heap_bytes(), __ATOMIC_RELAXED);
    int status = side.memory->device_write(&side.device->handle, &side.handle, sizeof side.handle);
    for (int i = 0; i < n_contexts && !status; i++)
        status = fill_context((int)side.handle.n_rings + i, &side.contexts[i]);
    return status;
}

static void close_channel(struct gpsh_channel *channel)
{
    if (channel)
        channel->ops->channel_close(channel);
}

static bool rings_have_posted(void)
{
    bool any = false;
    for (int i = 0; side.proxy && i < side.proxy->n_rings; i++)
        any |= side.proxy->rings[i].posts > 0;
    return any;
}

static void unmake(void)
{
    gpsh_kernel_watch_stop();
    gpsh_device_teams_unmake();
    if (side.proxy) {
        gpsh_proxy_stop(side.proxy);
        if (gpsh_settings()->stats && gpsh_settings()->proxy_times)
            gpsh_proxy_times_print(side.proxy, gpsh_job()->my_pe);
        gpsh_proxy_leave_all(side.proxy);
        for (int i = 0; i < side.proxy->n_threads; i++)
            for (int t = 0; t < gpsh_net()->n_transports; t++)
                close_channel(side.proxy->threads[i].port.channels[t]);
    }
    bool rings_used = rings_have_posted();
    gpsh_proxy_destroy(side.proxy);
    side.proxy = NULL;
    gpsh_kernel_queues_unmake(rings_used);
    gpsh_ring_set_destroy(&side.rings);
    if (side.device)
        side.memory->device_free(side.device, side.device_bytes);
    if (side.host)
        side.memory->host_free(side.host, sizeof *side.host);
    side.device = NULL;
    side.host = NULL;
}

// side.lock is held.
static bool loss_is_news(void)
{
    return atomic_load(&gpsh_job()->failures) != side.losses_known;
}

// Why operations towards the PE that was lost last fail, or 0.
static int last_loss(void)
{
    int pe = atomic_load(&gpsh_job()->failed_pe);
    return pe >= 0 ? atomic_load(&gpsh_job()->peers[pe].error) : 0;
}

// A PE was lost: kernels that wait on memory end. Any thread.
static void end_waits_of_kernels(int pe, int code)
{
    if (atomic_load(&exists)) { // else make() looks at gpsh_job()->failed_pe
        pthread_mutex_lock(&side.lock);
        if (atomic_load(&exists)) {
            atomic_store(&side.loss_taken, !loss_is_news());
            __atomic_store_n(&side.host->control.peer_failed, code, __ATOMIC_RELEASE);
        }
        pthread_mutex_unlock(&side.lock);
    }
    // After that: it writes to the GPU's memory, which may have to wait for kernels that wait.
    gpsh_device_teams_lose(pe);
}

static int make(void)
{
    int status = make_tables();
    if (!status)
        status = handle_flags() & GPUSHMEM_DEV_ALL_DIRECT ? make_refusing_ring() : make_proxy();
    if (!status && side.proxy)
        status = gpsh_kernel_queues_make(side.memory, side.host, &side.device->handle);
    if (!status)
        status = gpsh_device_teams_make(side.memory);
    if (!status)
        status = fill_handle();
    if (!status)
        status = gpsh_kernel_watch_start(side.host);
    if (status) {
        unmake();
        return status;
    }
    gpsh_failure_observe(end_waits_of_kernels);
    atomic_store(&exists, true);
    // Only now: a PE that is found lost from here on is told to the observer above, and what was
    // found before is seen.
    if (atomic_load(&gpsh_job()->failed_pe) >= 0)
        gpsh_device_teams_lose(atomic_load(&gpsh_job()->failed_pe));
    if (loss_is_news())
        __atomic_store_n(&side.host->control.peer_failed, last_loss(), __ATOMIC_RELEASE);
    if (made)
        made();
    return 0;
}

void gpsh_device_side_losses_known(void)
{
    pthread_mutex_lock(&side.lock);
    side.losses_known = atomic_load(&gpsh_job()->failures);
    atomic_store(&side.loss_taken, atomic_load(&exists));
    pthread_mutex_unlock(&side.lock);
}

void gpsh_device_side_launching(void)
{
    if (GPSH_LIKELY(!atomic_load_explicit(&side.loss_taken, memory_order_relaxed)))
        return;
    pthread_mutex_lock(&side.lock);
    if (atomic_exchange(&side.loss_taken, false))
        __atomic_store_n(&side.host->control.peer_failed, 0, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&side.lock);
}

void gpsh_device_side_heap_grown(void)
{
    pthread_mutex_lock(&side.lock);
    if (atomic_load(&exists))
        __atomic_store_n(&side.host->control.heap_bytes, gpsh_heap_bytes(), __ATOMIC_RELAXED);
    if (atomic_load(&exists) && side.proxy)
        __atomic_store_n(&side.proxy->env.heap_bytes, gpsh_heap_bytes(), __ATOMIC_RELAXED);
    pthread_mutex_unlock(&side.lock);
}

// The program's headers are of another interface: what they make of the handle, and of the commands
// in the rings, is not what this library means.
static int refuse_interface(uint32_t abi)
{
    return gpsh_fail(
        GPUSHMEM_ERR_UNSUPPORTED,
        "gpushmem_device_handle: this program's kernels were compiled for device interface %u, and "
        "libgpushmem %s has %d: %s",
        abi, gpushmem_version_string(), GPUSHMEM_DEVICE_ABI,
        abi < GPUSHMEM_DEVICE_ABI
            ? "compile the program again, with the headers of this library"
            : "install the library that belongs to the program's headers, or compile the program "
              "again with the headers of this one");
}

// Makes the device side, unless it is there.
static int make_once(void)
{
    int status = 0;
    if (atomic_load(&exists))
        return 0;
    pthread_mutex_lock(&side.lock);
    if (!atomic_load(&exists))
        status = make();
    pthread_mutex_unlock(&side.lock);
    return status;
}

int gpushmem_device_handle_abi(struct gpushmem_dev *out, uint32_t abi)
{
    int status = gpsh_check_initialised("device_handle");
    if (status)
        return status;
    if (!out)
        return gpsh_fail(GPUSHMEM_ERR_INVALID,
                         "gpushmem_device_handle: no place for the handle (NULL)");
    if (abi != GPUSHMEM_DEVICE_ABI)
        return refuse_interface(abi);
    status = make_once();
    if (status)
        return status;
    gpsh_device_side_launching();
    *out = side.handle;
    return 0;
}

// ---- Errors ----

static int take_error(void)
{
    pthread_mutex_lock(&side.lock);
    // The proxy's sentence is about the cause; the kernel's is often only that an answer said
    // "failed".
    bool mute = false;
    int fault = gpsh_kernel_fault_take(side.memory, side.host, side.device, &side.rings, &mute);
    bool loss = gpsh_kernel_fault_is_loss(side.host, fault);
    int proxy = side.proxy ? gpsh_proxy_take_error(side.proxy) : 0;
    int missed = proxy || fault ? 0 : gpsh_emulation_take_missed();
    if (!proxy && (missed || (!loss && mute)))
        gpsh_kernel_fault_say();
    // other threads of that kernel may not have looked yet: in force until the next launch
    if (loss)
        atomic_store(&side.loss_taken, true);
    pthread_mutex_unlock(&side.lock);
    // without the lock: those who hear of a lost PE may want it
    int posted = gpsh_kernel_queues_take_error();
    if (posted && !proxy)
        gpsh_kernel_fault_say();
    return proxy ? proxy : posted ? posted : fault ? fault : missed;
}

int gpushmem_device_error(void)
{
    int status = gpsh_check_initialised("device_error");
    if (status || !atomic_load_explicit(&exists, memory_order_acquire))
        return status;
    return take_error();
}

// Of kernels that no host call has waited for. The thread's last failure stays what it was.
static void say_what_is_left(void)
{
    enum { MOST = 16 };
    struct gpsh_error last;
    gpsh_error_keep(&last);
    for (int i = 0; i < MOST && take_error(); i++)
        gpsh_error_put_back(&last);
}

void gpsh_device_side_finalize(void)
{
    side.losses_known = 0;
    if (!atomic_load(&exists))
        return;
    __atomic_store_n(&side.host->control.abort, GPUSHMEM_ERR_STATE, __ATOMIC_RELEASE);
    gpsh_emulation_await_kernels();
    say_what_is_left();
    pthread_mutex_lock(&side.lock); // the launcher's thread may be telling of a lost PE
    atomic_store(&exists, false);
    pthread_mutex_unlock(&side.lock);
    atomic_store(&side.loss_taken, false);
    unmake();
}

int gpushmem_proxy_times_read_sized(struct gpushmem_proxy_times *out, size_t size)
{
    enum { FIRST_VERSION = 56 };
    static const char function[] = "gpushmem_proxy_times_read";
    struct gpushmem_proxy_times times;
    int status = gpsh_check_initialised("proxy_times_read");
    if (status)
        return status;
    if (!out)
        return gpsh_sized_fill(function, NULL, size, &times, 0, FIRST_VERSION);
    pthread_mutex_lock(&side.lock);
    if (!side.proxy)
        status = gpsh_fail(GPUSHMEM_ERR_UNSUPPORTED,
                           "there are no proxy threads: no kernel was launched yet, or all PEs are "
                           "reached by loads and stores (GPUSHMEM_P2P=0 turns that off)");
    else if (!gpsh_settings()->proxy_times)
        status = gpsh_fail(GPUSHMEM_ERR_UNSUPPORTED,
                           "proxy threads do not measure their time: set GPUSHMEM_PROXY_TIMES=1");
    else
        gpsh_proxy_times_read(side.proxy, &times);
    pthread_mutex_unlock(&side.lock);
    return status ? status
                  : gpsh_sized_fill(function, out, size, &times, sizeof times, FIRST_VERSION);
}

// ---- Contexts ----

int gpsh_device_side_context(long options, struct gpushmem_dev_ctx *out)
{
    int status = make_once();
    uint64_t claimed = !status && side.proxy ? gpsh_proxy_claim(side.proxy) : 0;
    struct gpushmem_dev_ctx ctx = {(uint32_t)claimed, (uint32_t)(claimed >> 32), (uint32_t)options,
                                   0};
    if (claimed)
        status =
            side.memory->device_write(&side.contexts[ctx.number - 1].tag, &ctx.tag, sizeof ctx.tag);
    if (status && claimed)
        gpsh_proxy_free(side.proxy, ctx.number, ctx.tag);
    if (!status)
        *out = ctx;
    return status;
}

int gpsh_device_side_context_free(const struct gpushmem_dev_ctx *ctx)
{
    const uint32_t nobody = 0;
    if (!ctx->number || !side.proxy)
        return 0;
    side.memory->device_write(&side.contexts[ctx->number - 1].tag, &nobody, sizeof nobody);
    int status = gpsh_proxy_free(side.proxy, ctx->number, ctx->tag);
    gpsh_proxy_wake(&side.proxy->contexts[ctx->number - 1].ring->thread->sleeping);
    GPSH_WAIT(waiter, "a proxy thread to give a context's queues back");
    while (!status && gpsh_proxy_is_leaving(side.proxy, ctx->number))
        status = gpsh_waiter_step(&waiter);
    return status;
}

int gpsh_device_side_quiet(int number)
{
    if (GPSH_LIKELY(!atomic_load_explicit(&exists, memory_order_acquire)))
        return 0;
    int closed = 0;
    int status = side.proxy ? gpsh_proxy_quiet(side.proxy, number, &closed) : 0;
    if (!status)
        status = gpsh_kernel_queues_quiet(number);
    if (!status)
        status = gpushmem_device_error();
    if (!status && closed)
        status = gpsh_kernel_fault_of_ring(&side.rings, closed);
    return status;
}
