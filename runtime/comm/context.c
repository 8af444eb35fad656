// SPDX-License-Identifier: BSD-3-Clause
#include "comm/context.h"

#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm/pending.h"
#include "connect/net.h"
#include "core/clock.h"
#include "core/config.h"
#include "core/cpu.h"
#include "job/job.h"
#include "memory/heap.h"
#include "observe/call.h"
#include "progress/waiter.h"

struct gpsh_context gpsh_default_context;

enum { FIRST_NS = 1000000 }; // so long a first operation is given, beside its source's capture
#define NO_END UINT64_MAX

// Where a call fetches what belongs in its own frame. A wait that is given up leaves the operation
// under way, and what carries it out may write long after the call has returned: the place then
// stays until the next init.
struct place {
    struct place *next;
    void *memory; // that other operations use
    struct gpsh_completion completion;
    int status; // of the operation alone
    char bytes[];
};
static struct {
    pthread_mutex_t lock;
    struct place *left; // by waits that were given up
} places = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void lock(struct gpsh_context *owner)
{
    if (owner->locked)
        pthread_mutex_lock(&owner->lock);
}

static void unlock(struct gpsh_context *owner)
{
    if (owner->locked)
        pthread_mutex_unlock(&owner->lock);
}

static struct gpsh_context *channel_owner(struct gpsh_context *ctx)
{
    return ctx->base != NULL ? ctx->base : ctx;
}

// ------------------------------------------------------------------------------------------
// posting

// How far a flow has come, for the answer to "what is waited for".
struct backlog {
    const struct gpsh_channel *channel;
    int pe;
};

static void about_backlog(const void *subject, char *text, size_t bytes)
{
    const struct backlog *backlog = subject;
    const struct gpsh_flow *flow = &backlog->channel->flows[backlog->pe];
    snprintf(text, bytes, " for PE %d by %s: %" PRIu64 " of %" PRIu64 " are complete", backlog->pe,
             backlog->channel->ops->name, flow->completed, flow->posted);
}

// With the owner's lock held; it is released while waiting, so that other threads get on.
static int post(struct gpsh_context *owner, struct gpsh_channel *channel, const struct gpsh_op *op)
{
    GPSH_WAIT(waiter, "room in the send queue");
    waiter.flows_tell = true;
    waiter.about = about_backlog;
    waiter.subject = &(struct backlog){channel, op->pe};
    waiter.awaited = GPSH_AWAITED_PE;
    waiter.awaited_pe = op->pe;
    for (;;) {
        int status = channel->ops->post(channel, op);
        if (GPSH_LIKELY(status >= 0))
            gpsh_flow_count(&channel->flows[op->pe], op, status);
        if (status != GPSH_POST_AGAIN)
            return status;
        channel->ops->flush(channel);
        channel->ops->progress(channel);
        unlock(owner);
        status = gpsh_waiter_step(&waiter);
        lock(owner);
        if (status < 0)
            return status;
    }
}

static int flow_error(const struct gpsh_channel *channel, int pe)
{
    int error = channel->flows[pe].error;
    if (error == 0)
        return 0;
    const struct gpsh_peer *peer = &gpsh_job()->peers[pe];
    if (atomic_load(&peer->error) == GPUSHMEM_ERR_PE_FAILED)
        error = GPUSHMEM_ERR_PE_FAILED; // also of one that had been cut off before
    const char *reason = peer->reason;
    return gpsh_fail(error, "operations towards PE %d were lost: %s", pe,
                     reason[0] != '\0' ? reason : gpushmem_strerror(error));
}

// With the owner's lock held (as in post). Operation `number` of the flow is complete, perhaps with
// the flow's error; or it is later than `until_ns`. One that has failed is complete no sooner than
// its memory is left alone. `what` is waited for, as a sentence about the wait says it.
static int drain(struct gpsh_context *owner, struct gpsh_channel *channel, int pe, uint64_t number,
                 uint64_t until_ns, const char *what)
{
    const struct gpsh_flow *flow = &channel->flows[pe];
    if (flow->completed >= number)
        return 0;
    GPSH_WAIT(waiter, what);
    waiter.flows_tell = true;
    waiter.about = about_backlog;
    waiter.subject = &(struct backlog){channel, pe};
    waiter.awaited = GPSH_AWAITED_PE;
    waiter.awaited_pe = pe;
    channel->ops->flush(channel);
    for (;;) {
        channel->ops->progress(channel);
        if (flow->completed >= number || (until_ns != NO_END && gpsh_clock_ns() > until_ns))
            return 0;
        unlock(owner);
        int status = gpsh_waiter_step(&waiter);
        lock(owner);
        if (status < 0)
            return status;
    }
}

// Whether the caller means it to arrive soon: it blocks, or is what others wait for.
static bool is_awaited(const struct gpsh_op *op, enum gpsh_wait wait)
{
    return wait == GPSH_WAIT_SOURCE || op->kind == GPSH_OP_AMO ||
           (op->kind == GPSH_OP_PUT_SIGNAL && op->bytes == 0);
}

// A word of the runtime's own, without which another PE stays in a collective call that this one is
// about to leave: the program may then wait for that PE by other means. (One that ends the job is
// seen off by finalize.)
static bool is_word(const struct gpsh_op *op)
{
    return op->region == GPSH_CONTROL && !(op->flags & GPSH_OP_LAST);
}

// The connection is made by this operation, or may have been closed to make room for others.
static bool may_connect(const struct gpsh_flow *flow, const struct gpsh_op *op)
{
    bool closes = gpsh_settings()->verbs_queue_pairs != 0 ||
                  __atomic_load_n(&flow->reconnects, __ATOMIC_RELAXED) != 0;
    return flow->posted == 0 || (is_word(op) && closes);
}

static int submit(struct gpsh_context *ctx, const struct gpsh_op *op, enum gpsh_wait wait)
{
    struct gpsh_context *owner = channel_owner(ctx);
    const struct gpsh_peer *peer = &gpsh_job()->peers[op->pe];
    int index = op->kind == GPSH_OP_AMO ? peer->amo : peer->data;
    if (index < 0 || owner->channels[index] == NULL)
        return gpsh_fail(GPUSHMEM_ERR_UNREACHABLE, "no transport reaches PE %d: %s", op->pe,
                         peer->reason);
    struct gpsh_channel *channel = owner->channels[index];
    struct gpsh_op posted = *op;
    if (wait == GPSH_WAIT_SOURCE && op->bytes <= GPSH_CAPTURE_BYTES)
        posted.flags |= GPSH_OP_CAPTURE;
    if (wait != GPSH_WAIT_SOURCE)
        posted.flags |= GPSH_OP_KEPT;
    lock(owner);
    // A transport may connect to the PE only now, and nobody goes on with what waits for that while
    // the program computes.
    bool connects = is_awaited(op, wait) && may_connect(&channel->flows[op->pe], op);
    int status = post(owner, channel, &posted);
    if (status >= 0 && status != GPSH_POST_DONE)
        gpsh_pending_add(channel, op->pe);
    bool until_complete = wait == GPSH_WAIT_COMPLETE || status == GPSH_POST_URGENT ||
                          (wait == GPSH_WAIT_SOURCE && status == GPSH_POST_IN_FLIGHT);
    if (status >= 0 && status != GPSH_POST_DONE && (until_complete || connects)) {
        bool no_end = until_complete || is_word(op);
        uint64_t until_ns = no_end ? NO_END : gpsh_clock_ns() + FIRST_NS;
        status = drain(owner, channel, op->pe, channel->flows[op->pe].posted, until_ns,
                       "completion of an operation");
        if (status == 0)
            status = flow_error(channel, op->pe);
    }
    unlock(owner);
    if (until_complete && op->kind == GPSH_OP_GET)
        gpsh_acquire_remote();
    return status < 0 ? status : 0;
}

void gpsh_context_free_places(void)
{
    while (places.left != NULL) {
        struct place *place = places.left;
        places.left = place->next;
        free(place->memory);
        free(place);
    }
}

static void leave_place(struct place *place)
{
    pthread_mutex_lock(&places.lock);
    place->next = places.left;
    places.left = place;
    pthread_mutex_unlock(&places.lock);
}

void gpsh_context_keep(void *memory)
{
    struct place *place = memory ? calloc(1, sizeof *place) : NULL;
    if (place == NULL)
        return; // without memory for the list it stays for good
    place->memory = memory;
    leave_place(place);
}

static void place_done(struct gpsh_completion *self, int status)
{
    struct place *place =
        (struct place *)(void *)((char *)self - offsetof(struct place, completion));
    place->status = status;
}

// The flow goes on, but this one operation has failed.
static int failed_alone(const struct gpsh_op *op, int status)
{
    if (status == GPUSHMEM_ERR_TIMEOUT)
        return gpsh_fail(status,
                         "a 4-byte atomic on PE %d was not executed: a PE that lives keeps the "
                         "lock for it (a warning named it), and has lost its connection to PE %d, "
                         "or does not drive the context by which it took it",
                         op->pe, op->pe);
    return gpsh_fail(status,
                     "an atomic on PE %d was executed, but the connection was lost before the "
                     "answer came: the value that it found is not known",
                     op->pe);
}

static int fetch(struct gpsh_context *ctx, const struct gpsh_op *op)
{
    bool amo = op->kind == GPSH_OP_AMO;
    size_t bytes = amo ? op->width : op->bytes;
    struct place *place = malloc(sizeof *place + bytes);
    if (place == NULL)
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no host memory for %zu bytes from PE %d", bytes,
                         op->pe);
    struct gpsh_op placed = *op;
    placed.flags |= GPSH_OP_LOCAL_HOST;
    placed.completion = &place->completion;
    place->completion.done = place_done;
    place->memory = NULL;
    place->status = 0;
    if (amo)
        placed.result = place->bytes;
    else
        placed.local = place->bytes;
    int status = submit(ctx, &placed, GPSH_WAIT_COMPLETE);
    if (status < 0) {
        leave_place(place);
        return status;
    }
    status = place->status;
    if (status < 0) {
        free(place);
        return failed_alone(op, status);
    }
    memcpy(amo ? op->result : op->local, place->bytes, bytes);
    free(place);
    return 0;
}

static const char *const op_names[] = {[GPSH_OP_PUT] = "put",
                                       [GPSH_OP_GET] = "get",
                                       [GPSH_OP_AMO] = "atomic",
                                       [GPSH_OP_PUT_SIGNAL] = "put with signal"};

int gpsh_context_submit(struct gpsh_context *ctx, const struct gpsh_op *op, enum gpsh_wait wait)
{
    // The trace has what does not wait in the queue's track.
    bool waits =
        wait > GPSH_WAIT_SOURCE || (wait == GPSH_WAIT_SOURCE && op->bytes > GPSH_CAPTURE_BYTES);
    GPSH_CALL_FOR(waits ? GPSH_CALL_ALL : GPSH_CALL_NVTX, op_names[op->kind], op->pe, op->bytes);
    return wait == GPSH_WAIT_FETCH ? fetch(ctx, op) : submit(ctx, op, wait);
}

int gpsh_control_read(int pe, uint64_t at, void *to, size_t bytes)
{
    const struct gpsh_op op = {.kind = GPSH_OP_GET,
                               .region = GPSH_CONTROL,
                               .pe = pe,
                               .local = to,
                               .bytes = bytes,
                               .remote = at};
    return gpsh_context_submit(&gpsh_default_context, &op, GPSH_WAIT_FETCH);
}

// ------------------------------------------------------------------------ ordering and completion

// What quiet and fence do with one flow of channel `index`.
typedef int (*settle_fn)(struct gpsh_context *ctx, struct gpsh_context *owner, int index, int pe);

// With the owner's lock held, which `settle` releases while it waits: all flows that may have
// something pending. Returns the first failure; a wait that ran out is not followed by another.
static int settle_listed(struct gpsh_context *ctx, struct gpsh_context *owner, int index,
                         settle_fn settle)
{
    struct gpsh_channel *channel = owner->channels[index];
    int result = 0;
    gpsh_pending_enter(channel);
    for (int pe = gpsh_pending_first(channel); pe >= 0; pe = gpsh_pending_next(channel, pe)) {
        int status = settle(ctx, owner, index, pe);
        if (result == 0 || status == GPUSHMEM_ERR_TIMEOUT)
            result = status;
        if (status == GPUSHMEM_ERR_TIMEOUT)
            break;
    }
    gpsh_pending_leave(channel);
    return result;
}

// Row "fence, mixed": what went through the NIC is complete before later stores, and the other way
// round. Fails if the wait for that is given up: then nothing is ordered. (Flows that failed are
// quiet's to report.)
static int fence_flow(struct gpsh_context *ctx, struct gpsh_context *owner, int index, int pe)
{
    struct gpsh_channel *channel = owner->channels[index];
    return gpsh_mixed_paths(pe)
               ? drain(owner, channel, pe, channel->flows[pe].posted, NO_END, "gpushmem_fence")
               : 0;
}

static int fence_channels(struct gpsh_context *owner, int pe)
{
    for (int i = 0; i < gpsh_net()->n_transports; ++i) {
        struct gpsh_channel *channel = owner->channels[i];
        if (channel != NULL && channel->pending != 0)
            channel->ops->fence(channel, pe);
    }
    int status = 0;
    for (int i = 0; i < gpsh_net()->n_transports && gpsh_default_context.mixed && status == 0;
         ++i) {
        const struct gpsh_channel *channel = owner->channels[i];
        if (channel != NULL && channel->pending != 0)
            status = pe == GPSH_ALL_PES ? settle_listed(owner, owner, i, fence_flow)
                                        : fence_flow(owner, owner, i, pe);
    }
    return status;
}

int gpsh_context_fence(struct gpsh_context *ctx, int pe)
{
    if (GPSH_LIKELY(!ctx->remote)) {
        gpsh_store_fence();
        return 0;
    }
    if (ctx->stores)
        gpsh_store_fence();
    struct gpsh_context *owner = channel_owner(ctx);
    lock(owner);
    int status = fence_channels(owner, pe);
    unlock(owner);
    return status;
}

// A flow's error is told once per context, if something was under way: everything posted later
// fails at once, by itself.
static int settle_flow(struct gpsh_context *ctx, struct gpsh_context *owner, int index, int pe)
{
    struct gpsh_channel *channel = owner->channels[index];
    int status = drain(owner, channel, pe, channel->flows[pe].posted, NO_END,
                       ctx == &gpsh_default_context ? "gpushmem_quiet" : "gpushmem_ctx_quiet");
    if (status == 0 && channel->flows[pe].error != 0 &&
        channel->flows[pe].posted != channel->flows[pe].safe && !ctx->reported[index][pe]) {
        ctx->reported[index][pe] = 1;
        status = flow_error(channel, pe);
    }
    return status;
}

// After a failure: an error may be in a flow that has nothing pending.
static int settle_all(struct gpsh_context *ctx, struct gpsh_context *owner, int index)
{
    int result = 0;
    for (int target = 0; target < gpsh_job()->n_pes; ++target) {
        int status = settle_flow(ctx, owner, index, target);
        if (status == GPUSHMEM_ERR_TIMEOUT)
            return status;
        if (result == 0)
            result = status;
    }
    return result;
}

int gpsh_context_quiet(struct gpsh_context *ctx, int pe)
{
    if (GPSH_LIKELY(!ctx->remote)) {
        gpsh_full_fence();
        return 0;
    }
    if (ctx->stores)
        gpsh_full_fence();
    GPSH_CALL("quiet", pe, 0);
    struct gpsh_context *owner = channel_owner(ctx);
    int result = 0;
    lock(owner);
    bool failures = atomic_load_explicit(&gpsh_job()->failed_pe, memory_order_relaxed) >= 0;
    for (int i = 0; i < gpsh_net()->n_transports; ++i) {
        const struct gpsh_channel *channel = owner->channels[i];
        if (channel == NULL || (channel->pending == 0 && !channel->failed && !failures))
            continue;
        int status = pe != GPSH_ALL_PES            ? settle_flow(ctx, owner, i, pe)
                     : channel->failed || failures ? settle_all(ctx, owner, i)
                                                   : settle_listed(ctx, owner, i, settle_flow);
        if (result == 0)
            result = status;
    }
    unlock(owner);
    gpsh_full_fence();
    gpsh_acquire_remote();
    return result;
}

// A flow's error stays for quiet to report.
static int send_off_flow(struct gpsh_context *ctx, struct gpsh_context *owner, int index, int pe)
{
    (void)ctx;
    struct gpsh_channel *channel = owner->channels[index];
    return drain(owner, channel, pe, channel->flows[pe].posted, NO_END, "gpushmem_launch_wait");
}

void gpsh_context_send_off(struct gpsh_context *ctx)
{
    struct gpsh_context *owner = channel_owner(ctx);
    struct gpsh_error before;
    if (GPSH_LIKELY(!ctx->remote))
        return;
    gpsh_error_keep(&before);
    lock(owner);
    int status = 0;
    for (int i = 0; i < gpsh_net()->n_transports && status == 0; ++i)
        if (owner->channels[i] != NULL && owner->channels[i]->pending != 0)
            status = settle_listed(owner, owner, i, send_off_flow);
    unlock(owner);
    gpsh_error_put_back(&before);
}

bool gpsh_context_drive(struct gpsh_context *owner)
{
    bool pending = false;
    if (owner->locked && pthread_mutex_trylock(&owner->lock) != 0)
        return true; // its owner drives it
    for (int i = 0; i < gpsh_net()->n_transports; ++i) {
        struct gpsh_channel *channel = owner->channels[i];
        if (channel != NULL && channel->pending != 0)
            channel->ops->progress(channel);
        pending |= channel != NULL && channel->pending != 0;
    }
    unlock(owner);
    return pending;
}

void gpsh_context_drive_until(struct gpsh_context *owner, uint64_t until_ns)
{
    if (GPSH_LIKELY(!owner->remote) || (owner->locked && pthread_mutex_trylock(&owner->lock) != 0))
        return; // its owner goes on
    for (int i = 0; i < gpsh_net()->n_transports; ++i)
        if (owner->channels[i] != NULL && owner->channels[i]->pending != 0)
            owner->channels[i]->ops->flush(owner->channels[i]);
    unlock(owner);
    while (gpsh_context_drive(owner) && gpsh_clock_ns() < until_ns)
        sched_yield();
}
