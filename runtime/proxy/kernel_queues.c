// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // clock_gettime
#include "proxy/kernel_queues.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "connect/net.h"
#include "core/clock.h"
#include "core/config.h"
#include "core/error.h"
#include "core/log.h"
#include "core/thread.h"
#include "gpushmem/gpushmem.h"
#include "job/job.h"
#include "memory/heap.h"
#include "progress/waiter.h"
#include "proxy/doorbells.h"
#include "proxy/kernel_completions.h"

enum {
    LOOK_MS = 5,
    LOOKS_FAR = 16, // queues in GPU memory that are looked at each time
};

// What the host knows of a queue.
struct known {
    struct gpsh_kernel_queue queue;
    uint64_t *marks; // device memory
    bool told;
    bool waits; // for the thread that maps it
    bool over;  // it has failed, which kernels know
    bool heard; // it has failed, which the program was told
    // completions below this, modulo 2^24, were looked at for failures
    uint32_t looked;
};

static struct {
    pthread_mutex_t lock;
    const struct gpsh_device_memory *memory;
    // A table for each context, the default one's first, in device memory; NULL: kernels post to no
    // NIC. A queue's number counts the PEs of all tables.
    char *tables;
    size_t table_bytes;
    int n_tables;
    struct known *known;             // [n_tables * n_pes]
    uint32_t *n_used_of;             // [n_tables] queues of that table that have ever been up
    struct gpushmem_nic_queue *copy; // as one was read last, host memory
    struct gpsh_completions completions;
    uint32_t turn;                 // which queue is looked at first
    uint32_t *used, n_used;        // [n_used] queues that have ever been up
    uint32_t n_waiting;            // queues that wait for the watcher
    struct gpsh_handle_host *host; // where answers land
    bool said;                     // why some PE's queue cannot be had
    bool asked;                    // for any queue
    bool host_rings;               // for kernels, of some queue
    // Finds failures, and maps queues into a GPU, whose driver may have to wait for kernels.
    struct gpsh_thread watcher;
    pthread_cond_t wake;
    bool stop;
    void **mapped; // [n_mapped]
    size_t n_mapped;
} lane = {.lock = PTHREAD_MUTEX_INITIALIZER};

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

static size_t n_queues(void)
{
    return (size_t)lane.n_tables * (size_t)gpsh_job()->n_pes;
}

static struct gpushmem_nic *table_at(int table)
{
    return (struct gpushmem_nic *)(void *)(lane.tables + (size_t)table * lane.table_bytes);
}

static int pe_of(uint32_t number)
{
    return (int)(number % (uint32_t)gpsh_job()->n_pes);
}

// In device memory.
static struct gpushmem_nic_queue *queue_at(uint32_t number)
{
    int table = (int)(number / (uint32_t)gpsh_job()->n_pes);
    return &gpushmem_nic_queues(table_at(table))[pe_of(number)];
}

// As many as requests may be under way.
static uint32_t n_marks(const struct gpsh_kernel_queue *queue)
{
    uint32_t n = 1;
    while (n < queue->depth)
        n *= 2;
    return n;
}

static void free_marks(struct known *known)
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
    for (size_t i = 0; lane.known && i < n_queues(); i++)
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

// Words of the table, which kernels may look at meanwhile.
static void write_word(uint32_t *to, uint32_t value)
{
    if (lane.memory->cpu_threads)
        __atomic_store_n(to, value, __ATOMIC_RELEASE);
    else
        lane.memory->device_write(to, &value, sizeof value);
}

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

static struct gpushmem_nic_queue as_kernels_see(const struct known *known, int pe)
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
    struct gpushmem_nic_queue *to = queue_at(number), seen;
    int table = (int)(number / (uint32_t)gpsh_job()->n_pes), pe = pe_of(number);
    uint32_t *n_used = &lane.n_used_of[table];
    seen = as_kernels_see(&lane.known[number], pe);
    write_queue(to, &seen);
    lane.used[lane.n_used++] = number;
    write_word(&gpushmem_nic_used(table_at(table), gpsh_job()->n_pes)[*n_used], (uint32_t)pe);
    write_word(&table_at(table)->n_used, ++*n_used);
    write_word(&to->state, GPUSHMEM_NIC_UP);
    pthread_cond_signal(&lane.wake);
    GPSH_LOG(DEBUG, "kernel", "PE %d: kernels post to the NIC themselves, %u requests at a time%s",
             pe, seen.depth, table ? ", of a context" : "");
}

static void stay_out(uint32_t number, const char *why)
{
    write_word(&queue_at(number)->state, GPUSHMEM_NIC_OUT);
    if (!lane.said && is_demanded())
        GPSH_LOG(WARN, "kernel",
                 "GPUSHMEM_DEVICE_POST=nic, but what kernels do to PE %d goes through rings and "
                 "proxy: %s",
                 pe_of(number), why);
    else if (!lane.said)
        GPSH_LOG(INFO, "kernel", "what kernels do to PE %d goes through rings and proxy: %s",
                 pe_of(number), why);
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

static int make_marks(struct known *known)
{
    known->marks = lane.memory->device_alloc(n_marks(&known->queue) * sizeof *known->marks);
    return known->marks ? 0 : gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory for a queue's marks");
}

// The first queue that waits; false: none.
static bool next_waiting(uint32_t *number)
{
    for (*number = 0; lane.n_waiting && *number < n_queues(); ++*number)
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

static void look_for_failures(void);

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
            look_for_failures();
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
    lane.known = calloc(n_queues(), sizeof *lane.known);
    lane.used = calloc(n_queues(), sizeof *lane.used);
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
        status = lane.memory->device_write(table_at(t), &first, sizeof first);
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
    return lane.tables ? table_at(context) : NULL;
}

// ---- Failures ----

static bool is_lost(int pe)
{
    return atomic_load_explicit(&gpsh_job()->peers[pe].error, memory_order_acquire);
}

static int say_failure(uint32_t number, const struct gpsh_failed_request *request)
{
    char why[320] = "";
    int pe = pe_of(number);
    const struct gpsh_peer *peer = &gpsh_job()->peers[pe];
    struct gpsh_transport *transport = gpsh_net()->transports[peer->data];
    if (!is_lost(pe) && transport->ops->kernel_failed)
        transport->ops->kernel_failed(transport, pe, lane.known[number].queue.rail,
                                      request->syndrome, request->vendor, why, sizeof why);
    bool known = is_lost(pe);
    return gpsh_fail(known ? GPUSHMEM_ERR_PE_FAILED : GPUSHMEM_ERR_TRANSPORT,
                     "a kernel's operation towards PE %d failed: %.250s", pe,
                     known ? peer->reason : why);
}

// ---- Quiet ----

// A queue as it is now. Kernels may go on meanwhile.
static int read_queue(uint32_t number, struct gpushmem_nic_queue *out)
{
    const struct gpushmem_nic_queue *q = queue_at(number);
    if (lane.memory->device_read)
        return lane.memory->device_read(out, q, sizeof *out);
    out->polled = __atomic_load_n(&q->polled, __ATOMIC_ACQUIRE);
    out->done = __atomic_load_n(&q->done, __ATOMIC_ACQUIRE);
    out->head = __atomic_load_n(&q->head, __ATOMIC_ACQUIRE);
    out->failed = __atomic_load_n(&q->failed, __ATOMIC_ACQUIRE);
    return 0;
}

static bool has_failed(const struct gpushmem_nic_queue *q, uint64_t end)
{
    return ~q->failed < end;
}

// The kernels' words say that the host has told of it.
static int fail_queue(uint32_t number, const struct gpsh_failed_request *request)
{
    struct gpushmem_nic_queue *to = queue_at(number);
    int status = say_failure(number, request);
    uint64_t failed = ~request->position;
    write_word((uint32_t *)&to->error, (uint32_t)status);
    write_word(&to->state, GPUSHMEM_NIC_OUT);
    if (lane.memory->cpu_threads)
        __atomic_store_n(&to->failed, failed, __ATOMIC_RELEASE);
    else
        lane.memory->device_write(&to->failed, &failed, sizeof failed);
    return status;
}

static int reach(uint32_t number, const struct gpushmem_nic_queue *q, uint64_t end,
                 struct gpsh_failed_request *failed)
{
    return gpsh_completions_reach(&lane.completions, &lane.known[number].queue, q, end, failed);
}

// A kernel has found it. One that only gave up what is behind it has not.
static bool is_told(const struct gpushmem_nic_queue *q, const struct gpsh_failed_request *request)
{
    return has_failed(q, request->position + 1);
}

// Whether what is below `end` is complete, or will not be, as was told (1), not yet (0), or why it
// will not be. `q`: as it was read.
static int look(uint32_t number, const struct gpushmem_nic_queue *q, uint64_t end)
{
    struct gpsh_failed_request failed;
    int reached = reach(number, q, end, &failed);
    if (reached < 0 && !is_told(q, &failed)) {
        lane.known[number].heard = true;
        return fail_queue(number, &failed);
    }
    return reached < 0 || has_failed(q, end) ? 1 : reached;
}

// About how many completions kernels have consumed, modulo 2^24: of a queue in host memory, what
// its record says, so that nothing of the GPU's is read.
static uint32_t consumed(uint32_t number)
{
    const struct gpsh_kernel_queue *queue = &lane.known[number].queue;
    if (!gpsh_completions_are_far(&lane.completions, queue))
        return __builtin_bswap32(__atomic_load_n(queue->cq_record, __ATOMIC_ACQUIRE));
    return read_queue(number, lane.copy) ? 0 : (uint32_t)lane.copy->polled & GPSH_CQE_COUNT_MASK;
}

static bool shows_error(uint32_t number)
{
    struct known *known = &lane.known[number];
    return gpsh_completions_show_error(&lane.completions, &known->queue, consumed(number),
                                       &known->looked);
}

// As a kernel would that polls: the program hears of it at its next call. `q`: as it was read.
static void find_failure(uint32_t number, const struct gpushmem_nic_queue *q)
{
    struct gpsh_failed_request failed;
    if (reach(number, q, UINT64_MAX, &failed) >= 0)
        return;
    lane.known[number].over = true;
    if (is_told(q, &failed))
        return;
    fail_queue(number, &failed);
    __atomic_store_n(lane.host->nic_failure, 1, __ATOMIC_RELEASE);
}

static void look_for_failures(void)
{
    uint32_t far = 0;
    for (uint32_t i = 0; i < lane.n_used && far < LOOKS_FAR; i++) {
        uint32_t number = lane.used[lane.turn++ % lane.n_used];
        struct known *known = &lane.known[number];
        far += gpsh_completions_are_far(&lane.completions, &known->queue);
        if (!known->over && shows_error(number) && !read_queue(number, lane.copy))
            find_failure(number, lane.copy);
    }
}

// Of a lost PE it is enough to hear once.
static bool is_heard(uint32_t number)
{
    const uint32_t n_pes = (uint32_t)gpsh_job()->n_pes;
    const bool lost = is_lost(pe_of(number));
    bool any = false;
    for (size_t i = number % n_pes; lost && i < n_queues(); i += n_pes)
        any |= lane.known[i].heard;
    return any || lane.known[number].heard;
}

// The first queue with a failure that the program has not heard of. The caller holds the lock.
static bool take_failure(uint32_t *number, struct gpsh_failed_request *failed)
{
    for (uint32_t i = 0; i < lane.n_used; i++) {
        *number = lane.used[i];
        if (!is_heard(*number) && !read_queue(*number, lane.copy) &&
            reach(*number, lane.copy, UINT64_MAX, failed) < 0) {
            lane.known[*number].heard = true;
            return true;
        }
    }
    return false;
}

// Kernels say that some queue has failed, not which: more than one may have.
int gpsh_kernel_queues_take_error(void)
{
    struct gpsh_handle_host *host = lane.host;
    struct gpsh_failed_request failed;
    uint32_t number;
    if (!lane.tables || !__atomic_exchange_n(host->nic_failure, 0, __ATOMIC_ACQUIRE))
        return 0;
    pthread_mutex_lock(&lane.lock);
    bool found = take_failure(&number, &failed);
    if (found) // another one is the next call's
        __atomic_store_n(host->nic_failure, 1, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&lane.lock);
    return found ? say_failure(number, &failed) : 0;
}

// Where queues stood when a wait began.
struct ends {
    uint32_t n;
    struct end {
        uint32_t number;
        uint64_t position;
    } * of; // [n]
};

// `context`: as of gpsh_kernel_queues_quiet.
static int read_ends(struct ends *ends, int context)
{
    int status = 0;
    for (uint32_t i = 0; !status && i < lane.n_used; i++) {
        uint32_t number = lane.used[i];
        if (context >= 0 && (int)(number / (uint32_t)gpsh_job()->n_pes) != context)
            continue;
        status = read_queue(number, lane.copy);
        ends->of[ends->n++] = (struct end){number, lane.copy->head};
    }
    return status;
}

// 1 when all are there, 0 not yet, or a negative status: of a queue that has failed, the others are
// there then.
static int all_reached(const struct ends *ends)
{
    int first = 1;
    for (uint32_t i = 0; i < ends->n; i++) {
        int status = read_queue(ends->of[i].number, lane.copy);
        if (!status)
            status = look(ends->of[i].number, lane.copy, ends->of[i].position);
        if (!status)
            return 0;
        first = first < 0 ? first : status;
    }
    return first;
}

int gpsh_kernel_queues_quiet(int context)
{
    GPSH_WAIT(waiter, "completion of what kernels posted to NICs");
    int status = 0, reached = 0;
    struct ends ends = {0, NULL};
    pthread_mutex_lock(&lane.lock);
    if (lane.n_used)
        ends.of = calloc(lane.n_used, sizeof *ends.of);
    if (lane.n_used && !ends.of)
        status = gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory to wait for kernels' queues");
    if (!status)
        status = read_ends(&ends, context);
    while (!status && !(reached = all_reached(&ends))) {
        pthread_mutex_unlock(&lane.lock);
        status = gpsh_waiter_step(&waiter);
        pthread_mutex_lock(&lane.lock);
    }
    pthread_mutex_unlock(&lane.lock);
    free(ends.of);
    return status ? status : reached < 0 ? reached : 0;
}
