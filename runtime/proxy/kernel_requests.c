// SPDX-License-Identifier: BSD-3-Clause
#include "proxy/kernel_requests.h"

#include <stdlib.h>

#include "connect/net.h"
#include "core/error.h"
#include "gpushmem/gpushmem.h"
#include "job/job.h"
#include "progress/waiter.h"
#include "proxy/kernel_completions.h"

enum { LOOKS_FAR = 16 }; // queues in GPU memory that are looked at each time

// ---- One queue ----

static int loss_of(int pe)
{
    return atomic_load_explicit(&gpsh_job()->peers[pe].error, memory_order_acquire);
}

static int say_failure(struct gpsh_kernel_lane *lane, uint32_t number,
                       const struct gpsh_failed_request *request)
{
    char why[GPSH_REASON_BYTES] = "";
    int pe = gpsh_lane_pe_of(number);
    const struct gpsh_peer *peer = &gpsh_job()->peers[pe];
    struct gpsh_transport *transport = gpsh_net()->transports[peer->data];
    if (!loss_of(pe) && transport->ops->kernel_failed)
        transport->ops->kernel_failed(transport, pe, lane->known[number].queue.rail,
                                      request->syndrome, request->vendor, why, sizeof why);
    int known = loss_of(pe);
    return gpsh_fail(known ? known : GPUSHMEM_ERR_TRANSPORT,
                     "a kernel's operation towards PE %d failed: %.600s", pe,
                     known ? peer->reason : why);
}

// A queue as it is now. Kernels may go on meanwhile.
static int read_queue(struct gpsh_kernel_lane *lane, uint32_t number,
                      struct gpushmem_nic_queue *out)
{
    const struct gpushmem_nic_queue *q = gpsh_lane_queue(lane, number);
    if (lane->memory->device_read)
        return lane->memory->device_read(out, q, sizeof *out);
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
static int fail_queue(struct gpsh_kernel_lane *lane, uint32_t number,
                      const struct gpsh_failed_request *request)
{
    struct gpushmem_nic_queue *to = gpsh_lane_queue(lane, number);
    int status = say_failure(lane, number, request);
    uint64_t failed = ~request->position;
    gpsh_lane_write_word(lane, (uint32_t *)&to->error, (uint32_t)status);
    gpsh_lane_write_word(lane, &to->state, GPUSHMEM_NIC_OUT);
    if (lane->memory->cpu_threads)
        __atomic_store_n(&to->failed, failed, __ATOMIC_RELEASE);
    else
        lane->memory->device_write(&to->failed, &failed, sizeof failed);
    return status;
}

static int reach(struct gpsh_kernel_lane *lane, uint32_t number, const struct gpushmem_nic_queue *q,
                 uint64_t end, struct gpsh_failed_request *failed)
{
    return gpsh_completions_reach(&lane->completions, &lane->known[number].queue, q, end, failed);
}

// A kernel has found it. One that only gave up what is behind it has not.
static bool is_told(const struct gpushmem_nic_queue *q, const struct gpsh_failed_request *request)
{
    return has_failed(q, request->position + 1);
}

// Whether what is below `end` is complete, or will not be, as was told (1), not yet (0), or why it
// will not be. `q`: as it was read.
static int look(struct gpsh_kernel_lane *lane, uint32_t number, const struct gpushmem_nic_queue *q,
                uint64_t end)
{
    struct gpsh_failed_request failed;
    int reached = reach(lane, number, q, end, &failed);
    if (reached < 0 && !is_told(q, &failed)) {
        lane->known[number].heard = true;
        return fail_queue(lane, number, &failed);
    }
    return reached < 0 || has_failed(q, end) ? 1 : reached;
}

// ---- Failures: found by the host, told to the program ----

// About how many completions kernels have consumed, modulo 2^24: of a queue in host memory, what
// its record says, so that nothing of the GPU's is read.
static uint32_t consumed(struct gpsh_kernel_lane *lane, uint32_t number)
{
    const struct gpsh_kernel_queue *queue = &lane->known[number].queue;
    if (!gpsh_completions_are_far(&lane->completions, queue))
        return __builtin_bswap32(__atomic_load_n(queue->cq_record, __ATOMIC_ACQUIRE));
    return read_queue(lane, number, lane->copy)
               ? 0
               : (uint32_t)lane->copy->polled & GPSH_CQE_COUNT_MASK;
}

static bool shows_error(struct gpsh_kernel_lane *lane, uint32_t number)
{
    struct gpsh_known_queue *known = &lane->known[number];
    return gpsh_completions_show_error(&lane->completions, &known->queue, consumed(lane, number),
                                       &known->looked);
}

// As a kernel would that polls: the program hears of it at its next call. `q`: as it was read.
static void find_failure(struct gpsh_kernel_lane *lane, uint32_t number,
                         const struct gpushmem_nic_queue *q)
{
    struct gpsh_failed_request failed;
    if (reach(lane, number, q, UINT64_MAX, &failed) >= 0)
        return;
    lane->known[number].over = true;
    if (is_told(q, &failed))
        return;
    fail_queue(lane, number, &failed);
    __atomic_store_n(lane->host->nic_failure, 1, __ATOMIC_RELEASE);
}

void gpsh_kernel_requests_find_failures(struct gpsh_kernel_lane *lane)
{
    uint32_t far = 0;
    for (uint32_t i = 0; i < lane->n_used && far < LOOKS_FAR; i++) {
        uint32_t number = lane->used[lane->turn++ % lane->n_used];
        struct gpsh_known_queue *known = &lane->known[number];
        far += gpsh_completions_are_far(&lane->completions, &known->queue);
        if (!known->over && shows_error(lane, number) && !read_queue(lane, number, lane->copy))
            find_failure(lane, number, lane->copy);
    }
}

// Of a lost PE it is enough to hear once.
static bool is_heard(struct gpsh_kernel_lane *lane, uint32_t number)
{
    const uint32_t n_pes = (uint32_t)gpsh_job()->n_pes;
    const bool lost = loss_of(gpsh_lane_pe_of(number));
    bool any = false;
    for (size_t i = number % n_pes; lost && i < gpsh_lane_n_queues(lane); i += n_pes)
        any |= lane->known[i].heard;
    return any || lane->known[number].heard;
}

// The first queue with a failure that the program has not heard of. The caller holds the lock.
static bool take_failure(struct gpsh_kernel_lane *lane, uint32_t *number,
                         struct gpsh_failed_request *failed)
{
    for (uint32_t i = 0; i < lane->n_used; i++) {
        *number = lane->used[i];
        if (!is_heard(lane, *number) && !read_queue(lane, *number, lane->copy) &&
            reach(lane, *number, lane->copy, UINT64_MAX, failed) < 0) {
            lane->known[*number].heard = true;
            return true;
        }
    }
    return false;
}

// Kernels say that some queue has failed, not which: more than one may have.
int gpsh_kernel_requests_take_error(struct gpsh_kernel_lane *lane)
{
    struct gpsh_handle_host *host = lane->host;
    struct gpsh_failed_request failed;
    uint32_t number;
    if (!__atomic_exchange_n(host->nic_failure, 0, __ATOMIC_ACQUIRE))
        return 0;
    pthread_mutex_lock(&lane->lock);
    bool found = take_failure(lane, &number, &failed);
    if (found) // another one is the next call's
        __atomic_store_n(host->nic_failure, 1, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&lane->lock);
    return found ? say_failure(lane, number, &failed) : 0;
}

// ---- Quiet ----

// Where queues stood when a wait began.
struct ends {
    uint32_t n;
    struct end {
        uint32_t number;
        uint64_t position;
    } * of; // [n]
};

// `context`: as of gpsh_kernel_requests_quiet.
static int read_ends(struct gpsh_kernel_lane *lane, struct ends *ends, int context)
{
    int status = 0;
    for (uint32_t i = 0; !status && i < lane->n_used; i++) {
        uint32_t number = lane->used[i];
        if (context >= 0 && gpsh_lane_table_of(number) != context)
            continue;
        status = read_queue(lane, number, lane->copy);
        ends->of[ends->n++] = (struct end){number, lane->copy->head};
    }
    return status;
}

// 1 when all are there, 0 not yet, or a negative status: of a queue that has failed, the others are
// there then.
static int all_reached(struct gpsh_kernel_lane *lane, const struct ends *ends)
{
    int first = 1;
    for (uint32_t i = 0; i < ends->n; i++) {
        int status = read_queue(lane, ends->of[i].number, lane->copy);
        if (!status)
            status = look(lane, ends->of[i].number, lane->copy, ends->of[i].position);
        if (!status)
            return 0;
        first = first < 0 ? first : status;
    }
    return first;
}

int gpsh_kernel_requests_quiet(struct gpsh_kernel_lane *lane, int context)
{
    GPSH_WAIT(waiter, "completion of what kernels posted to NICs");
    int status = 0, reached = 0;
    struct ends ends = {0, NULL};
    pthread_mutex_lock(&lane->lock);
    if (lane->n_used)
        ends.of = calloc(lane->n_used, sizeof *ends.of);
    if (lane->n_used && !ends.of)
        status = gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory to wait for kernels' queues");
    if (!status)
        status = read_ends(lane, &ends, context);
    while (!status && !(reached = all_reached(lane, &ends))) {
        pthread_mutex_unlock(&lane->lock);
        status = gpsh_waiter_step(&waiter);
        pthread_mutex_lock(&lane->lock);
    }
    pthread_mutex_unlock(&lane->lock);
    free(ends.of);
    return status ? status : reached < 0 ? reached : 0;
}
