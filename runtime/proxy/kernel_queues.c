// SPDX-License-Identifier: BSD-3-Clause
#include "proxy/kernel_queues.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "connect/net.h"
#include "core/clock.h"
#include "core/config.h"
#include "core/error.h"
#include "core/log.h"
#include "core/thread.h"
#include "gpushmem/gpushmem.h"
#include "job/job.h"
#include "memory/heap.h"
#include "proxy/doorbells.h"
#include "proxy/kernel_lane.h"
#include "proxy/kernel_requests.h"

enum { LOOK_MS = 5 };

static struct gpsh_kernel_lane lane = {.lock = PTHREAD_MUTEX_INITIALIZER};

// ---- Making ----

// With auto nobody minds where kernels cannot.
static bool is_demanded(void)
{
    return gpsh_settings()->device_post == GPSH_DEVICE_POST_NIC;
}

static bool has_queues(int transport)
{
    return gpsh_net()->envs[transport].kernel_channels > 0;
}

static int register_answers(void)
{
    struct gpsh_region region = {(char *)lane.host, sizeof *lane.host, GPSH_MEMORY_HOST, -1, -1};
    for (int t = 0; t < gpsh_net()->n_transports; t++) {
        struct gpsh_transport *transport = gpsh_net()->transports[t];
        int status = has_queues(t) ? transport->ops->buffer_register(transport, &region) : 0;
        if (status)
            return status;
    }
    return 0;
}

// As many as requests may be under way.
static uint32_t n_marks(const struct gpsh_kernel_queue *queue)
{
    uint32_t n = 1;
    while (n < queue->depth)
        n *= 2;
    return n;
}

static void free_marks(struct gpsh_known_queue *known)
{
    if (known->marks)
        lane.memory->device_free(known->marks, n_marks(&known->queue) * sizeof *known->marks);
}

static void release(void)
{
    for (int t = 0; lane.tables && t < gpsh_net()->n_transports; t++) {
        struct gpsh_transport *transport = gpsh_net()->transports[t];
        if (has_queues(t))
            (void)transport->ops->buffer_unregister(transport, lane.host);
    }
    for (size_t i = 0; i < lane.n_mapped; i++)
        lane.memory->unmap(lane.mapped[i]);
    free(lane.mapped);
    lane.mapped = NULL;
    lane.n_mapped = 0;
    if (lane.tables)
        lane.memory->device_free(lane.tables, (size_t)lane.n_tables * lane.table_bytes);
    for (size_t i = 0; lane.known && i < gpsh_lane_n_queues(&lane); i++)
        free_marks(&lane.known[i]);
    free(lane.known);
    free(lane.used);
    free(lane.n_used_of);
    if (lane.copy)
        lane.memory->host_free(lane.copy, sizeof *lane.copy);
    gpsh_completions_close(&lane.completions);
    lane.tables = NULL;
    lane.known = NULL;
    lane.copy = NULL;
    lane.used = lane.n_used_of = NULL;
    lane.n_used = lane.n_waiting = 0;
}

// ---- Queues that come up ----

// What the host writes of a queue. A kernel that finds out whether it is up may look at some of it.
static void write_queue(struct gpushmem_nic_queue *to, const struct gpushmem_nic_queue *from)
{
    uint64_t words[GPUSHMEM_NIC_LINE / sizeof(uint64_t)];
    memcpy(words, from, sizeof words);
    for (size_t i = 0; lane.memory->cpu_threads && i < sizeof words / sizeof *words; i++)
        __atomic_store_n((uint64_t *)(void *)to + i, words[i], __ATOMIC_RELAXED);
    if (!lane.memory->cpu_threads)
        lane.memory->device_write(to, words, sizeof words);
}

static unsigned log2_of(uint32_t power)
{
    return (unsigned)__builtin_ctz(power);
}

// The NIC never runs out of room if the completions under way and those that the record does not
// tell of fit in: from one of its multiples to the end of the next one.
static uint8_t record_log2(const struct gpsh_kernel_queue *queue)
{
    uint32_t spare = queue->cqes - queue->depth;
    return spare < 2 ? 0 : (uint8_t)(31 - __builtin_clz(spare / 2));
}

static bool takes_atomics(int pe)
{
    const struct gpsh_peer *peer = &gpsh_job()->peers[pe];
    return !gpsh_net()->cpu_atomics && (peer->amo < 0 || peer->amo == peer->data);
}

static struct gpushmem_nic_queue as_kernels_see(const struct gpsh_known_queue *known, int pe)
{
    const struct gpsh_kernel_queue *queue = &known->queue;
    return (struct gpushmem_nic_queue){
        .sq = queue->sq,
        .doorbell = queue->doorbell,
        .sq_record = queue->sq_record,
        .cq_record = queue->cq_record,
        .cq = (const char *)queue->cq + (queue->cqe_bytes - GPSH_CQE_BYTES),
        .scrap = queue->answers ? queue->answers + GPSH_KERNEL_ANSWERS : lane.host->scrap,
        .landing = queue->answers,
        .failure = lane.host->nic_failure,
        .remote = queue->remote_base - (uint64_t)(uintptr_t)gpsh_heap()->base,
        .heap_bytes = queue->heap_bytes,
        .qpn = queue->qpn,
        .lkey = queue->lkey,
        .rkey = queue->rkey,
        .answers_lkey = queue->answers_lkey,
        .cqe_bytes = queue->cqe_bytes,
        .depth = queue->depth,
        .most = queue->most,
        .entries_log2 = (uint8_t)log2_of(queue->entries),
        .cqes_log2 = (uint8_t)log2_of(queue->cqes),
        .record_log2 = record_log2(queue),
        .marks = known->marks,
        .marks_log2 = (uint8_t)log2_of(n_marks(queue)),
        .pe = pe,
        .flags = (queue->atomics && takes_atomics(pe) ? GPUSHMEM_NIC_ATOMICS : 0) |
                 (queue->apart ? GPUSHMEM_NIC_APART : 0) | (queue->rails ? GPUSHMEM_NIC_RAILS : 0) |
                 (queue->near_gpu && gpsh_heap()->device ? GPUSHMEM_NIC_NEAR : 0),
    };
}

// The caller holds the lock. Those that wait for all queues find it before anybody posts there.
static void come_up(uint32_t number)
{
    struct gpushmem_nic_queue *to = gpsh_lane_queue(&lane, number), seen;
    int table = gpsh_lane_table_of(number), pe = gpsh_lane_pe_of(number);
    uint32_t *n_used = &lane.n_used_of[table];
    seen = as_kernels_see(&lane.known[number], pe);
    write_queue(to, &seen);
    lane.used[lane.n_used++] = number;
    gpsh_lane_write_word(
        &lane, &gpushmem_nic_used(gpsh_lane_table(&lane, table), gpsh_job()->n_pes)[*n_used],
        (uint32_t)pe);
    gpsh_lane_write_word(&lane, &gpsh_lane_table(&lane, table)->n_used, ++*n_used);
    gpsh_lane_write_word(&lane, &to->state, GPUSHMEM_NIC_UP);
    pthread_cond_signal(&lane.wake);
    GPSH_LOG(DEBUG, "kernel", "PE %d: kernels post to the NIC themselves, %u requests at a time%s",
             pe, seen.depth, table ? ", of a context" : "");
}

static void stay_out(uint32_t number, const char *why)
{
    gpsh_lane_write_word(&lane, &gpsh_lane_queue(&lane, number)->state, GPUSHMEM_NIC_OUT);
    if (!lane.said && is_demanded())
        GPSH_LOG(WARN, "kernel",
                 "GPUSHMEM_DEVICE_POST=nic, but what kernels do to PE %d goes through rings and "
                 "proxy: %s",
                 gpsh_lane_pe_of(number), why);
    else if (!lane.said)
        GPSH_LOG(INFO, "kernel", "what kernels do to PE %d goes through rings and proxy: %s",
                 gpsh_lane_pe_of(number), why);
    lane.said = true;
}

// ---- Mapping into a GPU ----

static int map(void *memory, size_t bytes, bool registers)
{
    bool mapped = false;
    void **more = realloc(lane.mapped, (lane.n_mapped + 1) * sizeof *more);
    if (!more)
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory to map a NIC's queues");
    lane.mapped = more;
    int status = lane.memory->map(memory, bytes, registers, &mapped);
    if (mapped)
        lane.mapped[lane.n_mapped++] = memory;
    return status;
}

static int map_queue(const struct gpsh_kernel_queue *queue)
{
    if (queue->near_gpu)
        return 0;
    int status = map(queue->sq, (size_t)queue->entries * GPUSHMEM_NIC_BLOCK, false);
    if (!status)
        status = map(queue->cq, (size_t)queue->cqes * queue->cqe_bytes, false);
    if (!status)
        status = map(queue->sq_record, sizeof *queue->sq_record, false);
    if (!status)
        status = map(queue->cq_record, sizeof *queue->cq_record, false);
    return status;
}

// Kernels store to the NIC's register, or, where a GPU cannot, to a word by which a thread of the
// host rings for them.
static int give_doorbell(struct gpsh_kernel_queue *queue)
{
    bool by_host = gpsh_settings()->device_doorbell == GPSH_DOORBELL_HOST;
    if (!by_host && (!lane.memory->map || !map(queue->doorbell, sizeof(uint64_t), true)))
        return 0;
    if (!lane.host_rings)
        GPSH_LOG(INFO, "kernel", "a thread of the host rings the NIC's doorbell for kernels: %s",
                 by_host ? "GPUSHMEM_TEST_DEVICE_DOORBELL=host" : gpsh_last_error());
    lane.host_rings = true;
    uint64_t *word = gpsh_doorbells_add(lane.memory, queue->doorbell);
    if (!word)
        return gpsh_last_error_code();
    queue->doorbell = word;
    return 0;
}

static int make_marks(struct gpsh_known_queue *known)
{
    known->marks = lane.memory->device_alloc(n_marks(&known->queue) * sizeof *known->marks);
    return known->marks ? 0 : gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory for a queue's marks");
}

// The first queue that waits; false: none.
static bool next_waiting(uint32_t *number)
{
    for (*number = 0; lane.n_waiting && *number < gpsh_lane_n_queues(&lane); ++*number)
        if (lane.known[*number].waits)
            return true;
    return false;
}

// The caller holds the lock.
static void map_one(uint32_t number)
{
    lane.known[number].waits = false;
    lane.n_waiting--;
    pthread_mutex_unlock(&lane.lock);
    int status = lane.memory->map ? map_queue(&lane.known[number].queue) : 0;
    if (!status)
        status = make_marks(&lane.known[number]);
    if (!status)
        status = give_doorbell(&lane.known[number].queue);
    pthread_mutex_lock(&lane.lock);
    if (status)
        stay_out(number, gpsh_last_error());
    else
        come_up(number);
}

// Until somebody wakes it, or it is time to look for failures again: that nobody finds who waits
// for words, and not for completions.
static void rest(void)
{
    gpsh_cond_wait_until(&lane.wake, &lane.lock, gpsh_clock_in(LOOK_MS));
}

static void *run_watcher(void *arg)
{
    (void)arg;
    pthread_mutex_lock(&lane.lock);
    while (!lane.stop) {
        uint32_t number;
        if (next_waiting(&number))
            map_one(number);
        else if (lane.n_used)
            rest();
        else
            pthread_cond_wait(&lane.wake, &lane.lock);
        if (!lane.stop)
            gpsh_kernel_requests_find_failures(&lane);
    }
    pthread_mutex_unlock(&lane.lock);
    return NULL;
}

static int start_watcher(void)
{
    lane.stop = false;
    gpsh_cond_init(&lane.wake);
    int status = gpsh_thread_start(&lane.watcher, "gpshmem-nics", run_watcher, NULL);
    if (status)
        pthread_cond_destroy(&lane.wake);
    return status;
}

// False: it did not run.
static bool stop_watcher(void)
{
    if (!lane.watcher.runs)
        return false;
    pthread_mutex_lock(&lane.lock);
    lane.stop = true;
    pthread_cond_signal(&lane.wake);
    pthread_mutex_unlock(&lane.lock);
    gpsh_thread_join(&lane.watcher);
    return true;
}

// ---- What transports tell ----

// The caller holds the lock.
static void take_queue(uint32_t number, const struct gpsh_kernel_queue *queue)
{
    lane.known[number].queue = *queue;
    lane.known[number].waits = true;
    lane.n_waiting++;
    pthread_cond_signal(&lane.wake);
}

static void on_queue(void *arg, int index, int pe, const struct gpsh_kernel_queue *queue,
                     const char *why)
{
    uint32_t number = (uint32_t)(index * gpsh_job()->n_pes + pe);
    (void)arg;
    pthread_mutex_lock(&lane.lock);
    if (lane.tables && index < lane.n_tables && !lane.known[number].told) {
        lane.known[number].told = true;
        if (queue)
            take_queue(number, queue);
        else
            stay_out(number, why);
    }
    pthread_mutex_unlock(&lane.lock);
}

void gpsh_kernel_queues_ask(int context, int pe)
{
    int t = gpsh_job()->peers[pe].data;
    struct gpsh_transport *transport = gpsh_net()->transports[t];
    lane.asked = true;
    if (has_queues(t))
        transport->ops->kernel_queue(transport, context, pe, lane.host, sizeof *lane.host);
    else
        on_queue(NULL, context, pe, NULL, "its transport has no queues that kernels could post to");
}

static bool wanted(void)
{
    bool any = false;
    if (gpsh_settings()->device_post == GPSH_DEVICE_POST_RING)
        return false;
    for (int t = 0; t < gpsh_net()->n_transports; t++)
        any |= has_queues(t);
    if (!any && is_demanded())
        GPSH_LOG(WARN, "kernel",
                 "GPUSHMEM_DEVICE_POST=nic, but no transport of this job has queues that kernels "
                 "could post to: all goes through rings and proxy");
    return any;
}

// `dev`: the handle, device memory.
static int allocate(const struct gpushmem_dev *dev)
{
    size_t n_pes = (size_t)gpsh_job()->n_pes;
    lane.n_tables = 1 + (int)gpsh_settings()->contexts;
    lane.table_bytes = sizeof(struct gpushmem_nic) +
                       n_pes * (sizeof(struct gpushmem_nic_queue) + sizeof(uint32_t));
    lane.table_bytes = (lane.table_bytes + GPUSHMEM_NIC_LINE - 1) & ~(GPUSHMEM_NIC_LINE - 1u);
    lane.known = calloc(gpsh_lane_n_queues(&lane), sizeof *lane.known);
    lane.used = calloc(gpsh_lane_n_queues(&lane), sizeof *lane.used);
    lane.n_used_of = calloc((size_t)lane.n_tables, sizeof *lane.n_used_of);
    lane.copy = lane.memory->host_alloc(sizeof *lane.copy);
    int no_room = gpsh_completions_open(&lane.completions, lane.memory);
    lane.tables = lane.memory->device_alloc((size_t)lane.n_tables * lane.table_bytes);
    if (!lane.known || !lane.used || !lane.n_used_of || !lane.copy || no_room || !lane.tables)
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory for kernels' queues to %d PEs",
                         gpsh_job()->n_pes);
    const struct gpushmem_nic first = {.fences = 1, .dev = dev};
    int status = 0;
    for (int t = 0; t < lane.n_tables && !status; t++)
        status = lane.memory->device_write(gpsh_lane_table(&lane, t), &first, sizeof first);
    return status;
}

int gpsh_kernel_queues_make(const struct gpsh_device_memory *memory, struct gpsh_handle_host *host,
                            const struct gpushmem_dev *dev)
{
    if (!wanted())
        return 0;
    lane.memory = memory;
    lane.host = host;
    lane.said = lane.asked = lane.host_rings = false;
    pthread_mutex_lock(&lane.lock);
    int status = allocate(dev);
    if (!status)
        status = register_answers();
    if (status)
        release();
    pthread_mutex_unlock(&lane.lock);
    if (!status)
        status = start_watcher();
    if (!status)
        gpsh_net_on_kernel_queue(on_queue);
    return status;
}

// Without a word, a program that was compiled without would be taken for one whose queues are slow.
static void say_unasked(bool rings_used)
{
    static const char why[] = "no kernel asked for a queue of its own: they were compiled without "
                              "-DGPUSHMEM_DEVICE_NIC=1, or had no operation for one";
    if (rings_used && is_demanded())
        GPSH_LOG(WARN, "kernel", "GPUSHMEM_DEVICE_POST=nic, but %s", why);
    else
        GPSH_LOG(INFO, "kernel", "%s", why);
}

void gpsh_kernel_queues_unmake(bool rings_used)
{
    bool watched = stop_watcher();
    gpsh_doorbells_stop();
    if (lane.tables && !lane.asked)
        say_unasked(rings_used);
    pthread_mutex_lock(&lane.lock);
    release();
    pthread_mutex_unlock(&lane.lock);
    if (watched) // without tables no transport's thread wakes it any more
        pthread_cond_destroy(&lane.wake);
}

struct gpushmem_nic *gpsh_kernel_queues_table(int context)
{
    return lane.tables ? gpsh_lane_table(&lane, context) : NULL;
}

// ---- What was posted there ----

int gpsh_kernel_queues_quiet(int context)
{
    return gpsh_kernel_requests_quiet(&lane, context);
}

int gpsh_kernel_queues_take_error(void)
{
    return lane.tables ? gpsh_kernel_requests_take_error(&lane) : 0;
}
