// SPDX-License-Identifier: BSD-3-Clause
#include "comm/context.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/argument.h"
#include "comm/sync.h"
#include "memory/word.h"
#include "observe/question.h"
#include "progress/waiter.h"

struct gpsh_context gpsh_default_context;

// Contexts that programs created, and the channels for them: a transport has a fixed number of
// channels, so those of destroyed contexts are kept open for the next ones.
struct spare {
    struct gpsh_channel *channels[GPSH_MAX_TRANSPORTS];
    struct spare *next;
};
// Where a call fetches what belongs in its own frame. A wait that is given up leaves the operation
// under way, and who carries it out may write long after the call has returned: the place then
// stays until the next init.
struct place {
    struct place *next;
    char bytes[];
};
static struct {
    pthread_mutex_t lock;
    struct gpsh_context *_Atomic created;
    struct spare *spares;
    struct place *left; // by waits that were given up
    int next_index;     // first channel index never opened
    bool mixed;         // some PE is reached by more than one path
    bool told;          // that contexts share
} contexts = {.lock = PTHREAD_MUTEX_INITIALIZER};

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

// Stores and atomics take different ways to the PE: nothing orders them but completion.
static bool mixed_paths(int pe)
{
    return gpsh.direct[pe] != NULL ? !gpsh.cpu_atomics : gpsh.peers[pe].amo != gpsh.peers[pe].data;
}

static void survey_peers(void)
{
    gpsh_default_context.remote = false;
    contexts.mixed = false;
    for (int pe = 0; pe < gpsh.n_pes; ++pe) {
        gpsh_default_context.remote |=
            gpsh.direct[pe] == NULL || !gpsh.cpu_atomics || gpsh.mapped[GPSH_CONTROL][pe] == NULL;
        contexts.mixed |= mixed_paths(pe);
    }
}

static void close_channels(struct gpsh_channel **channels)
{
    for (int i = 0; i < gpsh.n_transports; ++i) {
        if (channels[i] != NULL)
            channels[i]->ops->channel_close(channels[i]);
        channels[i] = NULL;
    }
}

static int open_channels(int index, struct gpsh_channel **channels)
{
    for (int i = 0; i < gpsh.n_transports; ++i) {
        struct gpsh_transport *transport = gpsh.transports[i];
        int status = transport->ops->channel_open(transport, index, &channels[i]);
        if (status < 0) {
            close_channels(channels);
            return status;
        }
    }
    return 0;
}

static void free_reports(struct gpsh_context *ctx)
{
    for (int i = 0; i < GPSH_MAX_TRANSPORTS; ++i) {
        free(ctx->reported[i]);
        ctx->reported[i] = NULL;
    }
}

static int allocate_reports(struct gpsh_context *ctx)
{
    for (int i = 0; i < gpsh.n_transports; ++i) {
        ctx->reported[i] = calloc((size_t)gpsh.n_pes, 1);
        if (ctx->reported[i] == NULL) {
            free_reports(ctx);
            return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no host memory for a context of %d PEs",
                             gpsh.n_pes);
        }
    }
    return 0;
}

static void free_places(void)
{
    while (contexts.left != NULL) {
        struct place *place = contexts.left;
        contexts.left = place->next;
        free(place);
    }
}

int gpsh_context_init(void)
{
    struct gpsh_context *ctx = &gpsh_default_context;
    free_places(); // the transports that knew them are closed
    *ctx = (struct gpsh_context){.locked = gpsh.thread_level == GPUSHMEM_THREAD_MULTIPLE};
    contexts.created = NULL;
    contexts.spares = NULL;
    contexts.next_index = gpsh_channel_first_context(&gpsh.settings);
    contexts.told = false;
    gpsh_sync_init();
    gpsh_questions_open();
    gpsh_waiter_init();
    gpsh_waiter_drive(gpsh_context_progress);
    survey_peers();
    int status = allocate_reports(ctx);
    if (status < 0)
        return status;
    status = open_channels(GPSH_CHANNEL_DEFAULT, ctx->channels);
    if (status < 0) {
        free_reports(ctx);
        return status;
    }
    pthread_mutex_init(&ctx->lock, NULL);
    return 0;
}

// What failed in channels that another context left was told there.
static void skip_old_errors(struct gpsh_context *ctx)
{
    for (int i = 0; i < gpsh.n_transports; ++i)
        for (int pe = 0; ctx->channels[i] != NULL && pe < gpsh.n_pes; ++pe)
            ctx->reported[i][pe] = ctx->channels[i]->flows[pe].error != 0;
}

// Takes a set of channels that a destroyed context left, or opens the next one. False if there is
// none.
static bool take_channels(struct gpsh_context *ctx)
{
    struct spare *spare = contexts.spares;
    if (spare != NULL) {
        contexts.spares = spare->next;
        for (int i = 0; i < GPSH_MAX_TRANSPORTS; ++i)
            ctx->channels[i] = spare->channels[i];
        free(spare);
        skip_old_errors(ctx);
        return true;
    }
    for (int i = 0; i < gpsh.n_transports; ++i) {
        if (contexts.next_index >= gpsh.transport_envs[i].channels)
            return false;
    }
    // An index is used up even if opening it fails: a transport opens each one once at most.
    return open_channels(contexts.next_index++, ctx->channels) == 0;
}

static void leave_channels(struct gpsh_context *ctx)
{
    struct spare *spare = calloc(1, sizeof *spare);
    if (spare == NULL) {
        close_channels(ctx->channels);
        return;
    }
    for (int i = 0; i < GPSH_MAX_TRANSPORTS; ++i)
        spare->channels[i] = ctx->channels[i];
    spare->next = contexts.spares;
    contexts.spares = spare;
}

static void share_channels(struct gpsh_context *ctx)
{
    ctx->base = &gpsh_default_context;
    if (!ctx->remote || contexts.told)
        return;
    contexts.told = true;
    GPSH_LOG(
        WARN, "context",
        "a new context shares the queues of the default one, so that they wait for each other: "
        "only GPUSHMEM_CONTEXTS=%lld have queues of their own at a time; raise it",
        (long long)gpsh.settings.contexts);
}

int gpushmem_ctx_create(long options, gpushmem_ctx_t *out)
{
    const long known = GPUSHMEM_CTX_SERIALIZED | GPUSHMEM_CTX_PRIVATE | GPUSHMEM_CTX_NOSTORE;
    int status = gpsh_check_ready(__func__);
    if (status < 0)
        return status;
    if (out == NULL || (options & ~known) != 0)
        return gpsh_fail(
            GPUSHMEM_ERR_INVALID,
            out == NULL ? "%s: no place for the context (NULL, options %#lx)"
                        : "%s: unknown option bits in %#lx; or together enum gpushmem_ctx_option",
            __func__, options);
    struct gpsh_context *ctx = calloc(1, sizeof *ctx);
    if (ctx == NULL)
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "%s: out of host memory", __func__);
    ctx->options = (unsigned)options;
    ctx->creator = pthread_self();
    ctx->remote = gpsh_default_context.remote;
    bool one_thread = (options & (GPUSHMEM_CTX_SERIALIZED | GPUSHMEM_CTX_PRIVATE)) != 0;
    ctx->locked = gpsh.thread_level == GPUSHMEM_THREAD_MULTIPLE && !one_thread;
    status = allocate_reports(ctx);
    if (status < 0) {
        free(ctx);
        return status;
    }
    pthread_mutex_init(&ctx->lock, NULL);
    pthread_mutex_lock(&contexts.lock);
    // Without remote peers the channels would never be used: all contexts may share the default
    // one's.
    if (!ctx->remote || !take_channels(ctx))
        share_channels(ctx);
    ctx->next = contexts.created;
    contexts.created = ctx;
    pthread_mutex_unlock(&contexts.lock);
    *out = (gpushmem_ctx_t)(void *)ctx;
    return 0;
}

static void remove_created(struct gpsh_context *ctx)
{
    struct gpsh_context *before = contexts.created;
    if (before == ctx)
        contexts.created = ctx->next;
    while (before != NULL && before->next != ctx)
        before = before->next;
    if (before != NULL)
        before->next = ctx->next;
}

int gpushmem_ctx_destroy(gpushmem_ctx_t handle)
{
    int status = gpsh_check_ready(__func__);
    if (status < 0 || handle == GPUSHMEM_CTX_INVALID)
        return status;
    if (handle == GPUSHMEM_CTX_DEFAULT)
        return gpsh_fail(GPUSHMEM_ERR_INVALID,
                         "%s: the default context lives until gpushmem_finalize", __func__);
    struct gpsh_context *ctx = gpsh_context_of(handle);
    status = gpsh_context_quiet(ctx, GPSH_ALL_PES);
    pthread_mutex_lock(&contexts.lock);
    remove_created(ctx);
    if (ctx->base == NULL)
        leave_channels(ctx);
    pthread_mutex_unlock(&contexts.lock);
    pthread_mutex_destroy(&ctx->lock);
    free_reports(ctx);
    free(ctx);
    return status;
}

int gpushmem_ctx_get_options(gpushmem_ctx_t handle, long *options)
{
    struct gpsh_context *ctx;
    int status = gpsh_check_ready(__func__);
    if (status == 0)
        status = gpsh_check_context(__func__, handle, &ctx);
    if (status < 0)
        return status;
    if (options == NULL)
        return gpsh_fail(GPUSHMEM_ERR_INVALID, "%s: no place for the options (NULL)", __func__);
    *options = (long)ctx->options;
    return 0;
}

void gpsh_context_finalize(void)
{
    gpsh_questions_close();
    while (contexts.created != NULL) {
        struct gpsh_context *ctx = contexts.created;
        contexts.created = ctx->next;
        if (ctx->base == NULL)
            close_channels(ctx->channels);
        pthread_mutex_destroy(&ctx->lock);
        free_reports(ctx);
        free(ctx);
    }
    while (contexts.spares != NULL) {
        struct spare *spare = contexts.spares;
        contexts.spares = spare->next;
        close_channels(spare->channels);
        free(spare);
    }
    close_channels(gpsh_default_context.channels);
    free_reports(&gpsh_default_context);
    pthread_mutex_destroy(&gpsh_default_context.lock);
}

// ------------------------------------------------------------------------------------------
// posting

// How far a flow has come, for who asks what is waited for.
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
    struct gpsh_waiter waiter = GPSH_WAITER("room in the send queue");
    waiter.flows_tell = true;
    waiter.about = about_backlog;
    waiter.subject = &(struct backlog){channel, op->pe};
    for (;;) {
        int status = channel->ops->post(channel, op);
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
    const char *reason = gpsh.peers[pe].reason;
    return gpsh_fail(error, "operations towards PE %d were lost: %s", pe,
                     reason[0] != '\0' ? reason : gpushmem_strerror(error));
}

// With the owner's lock held (as in post). Operation `number` of the flow is complete, or the flow
// has failed.
static int drain(struct gpsh_context *owner, struct gpsh_channel *channel, int pe, uint64_t number)
{
    const struct gpsh_flow *flow = &channel->flows[pe];
    if (flow->completed >= number || flow->error != 0)
        return 0;
    struct gpsh_waiter waiter = GPSH_WAITER("completion of operations");
    waiter.flows_tell = true;
    waiter.about = about_backlog;
    waiter.subject = &(struct backlog){channel, pe};
    channel->ops->flush(channel);
    for (;;) {
        channel->ops->progress(channel);
        if (flow->completed >= number || flow->error != 0)
            return 0;
        unlock(owner);
        int status = gpsh_waiter_step(&waiter);
        lock(owner);
        if (status < 0)
            return status;
    }
}

static int submit(struct gpsh_context *ctx, const struct gpsh_op *op, enum gpsh_wait wait)
{
    struct gpsh_context *owner = channel_owner(ctx);
    const struct gpsh_peer *peer = &gpsh.peers[op->pe];
    int index = op->kind == GPSH_OP_AMO ? peer->amo : peer->data;
    if (index < 0 || owner->channels[index] == NULL)
        return gpsh_fail(GPUSHMEM_ERR_UNREACHABLE, "no transport reaches PE %d: %s", op->pe,
                         peer->reason);
    struct gpsh_channel *channel = owner->channels[index];
    struct gpsh_op posted = *op;
    if (wait == GPSH_WAIT_SOURCE && op->bytes <= GPSH_CAPTURE_BYTES)
        posted.flags |= GPSH_OP_CAPTURE;
    lock(owner);
    int status = post(owner, channel, &posted);
    bool until_complete = wait == GPSH_WAIT_COMPLETE || status == GPSH_POST_URGENT ||
                          (wait == GPSH_WAIT_SOURCE && status == GPSH_POST_IN_FLIGHT);
    if (status >= 0 && status != GPSH_POST_DONE && until_complete) {
        status = drain(owner, channel, op->pe, channel->flows[op->pe].posted);
        if (status == 0)
            status = flow_error(channel, op->pe);
    }
    unlock(owner);
    if (until_complete && op->kind == GPSH_OP_GET)
        gpsh_acquire_remote();
    return status < 0 ? status : 0;
}

static void leave_place(struct place *place)
{
    pthread_mutex_lock(&contexts.lock);
    place->next = contexts.left;
    contexts.left = place;
    pthread_mutex_unlock(&contexts.lock);
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
    if (amo)
        placed.result = place->bytes;
    else
        placed.local = place->bytes;
    int status = submit(ctx, &placed, GPSH_WAIT_COMPLETE);
    if (status < 0) {
        leave_place(place);
        return status;
    }
    memcpy(amo ? op->result : op->local, place->bytes, bytes);
    free(place);
    return 0;
}

int gpsh_context_submit(struct gpsh_context *ctx, const struct gpsh_op *op, enum gpsh_wait wait)
{
    return wait == GPSH_WAIT_FETCH ? fetch(ctx, op) : submit(ctx, op, wait);
}

// ------------------------------------------------------------------------ ordering and completion

// Row "fence, mixed": what went through the NIC is complete before later stores, and the other way
// round. Fails if the wait for that is given up: then nothing is ordered. (Flows that failed are
// quiet's to report.)
static int fence_mixed(struct gpsh_context *owner, int pe)
{
    int status = 0;
    for (int i = 0; i < gpsh.n_transports && status == 0; ++i) {
        struct gpsh_channel *channel = owner->channels[i];
        if (channel != NULL && channel->pending != 0)
            status = drain(owner, channel, pe, channel->flows[pe].posted);
    }
    return status;
}

static int fence_channels(struct gpsh_context *owner, int pe)
{
    for (int i = 0; i < gpsh.n_transports; ++i) {
        struct gpsh_channel *channel = owner->channels[i];
        if (channel != NULL && channel->pending != 0)
            channel->ops->fence(channel, pe);
    }
    if (!contexts.mixed)
        return 0;
    int first = pe == GPSH_ALL_PES ? 0 : pe;
    int last = pe == GPSH_ALL_PES ? gpsh.n_pes - 1 : pe;
    int status = 0;
    for (int target = first; target <= last && status == 0; ++target) {
        if (mixed_paths(target))
            status = fence_mixed(owner, target);
    }
    return status;
}

int gpsh_context_fence(struct gpsh_context *ctx, int pe)
{
    gpsh_store_fence();
    if (GPSH_LIKELY(!ctx->remote))
        return 0;
    struct gpsh_context *owner = channel_owner(ctx);
    lock(owner);
    int status = fence_channels(owner, pe);
    unlock(owner);
    return status;
}

// A flow's error is told once per context: everything posted later fails at once, by itself.
static int settle_flow(struct gpsh_context *ctx, struct gpsh_context *owner, int index, int pe)
{
    struct gpsh_channel *channel = owner->channels[index];
    int status = drain(owner, channel, pe, channel->flows[pe].posted);
    if (status == 0 && channel->flows[pe].error != 0 && channel->flows[pe].posted != 0 &&
        !ctx->reported[index][pe]) {
        ctx->reported[index][pe] = 1;
        status = flow_error(channel, pe);
    }
    return status;
}

static int settle_channel(struct gpsh_context *ctx, struct gpsh_context *owner, int index, int pe)
{
    if (pe != GPSH_ALL_PES)
        return settle_flow(ctx, owner, index, pe);
    int result = 0;
    for (int target = 0; target < gpsh.n_pes; ++target) {
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
    gpsh_full_fence();
    if (GPSH_LIKELY(!ctx->remote))
        return 0;
    struct gpsh_context *owner = channel_owner(ctx);
    int result = 0;
    lock(owner);
    bool failures = atomic_load_explicit(&gpsh.failed_pe, memory_order_relaxed) >= 0;
    for (int i = 0; i < gpsh.n_transports; ++i) {
        const struct gpsh_channel *channel = owner->channels[i];
        if (channel == NULL || (channel->pending == 0 && !channel->failed && !failures))
            continue;
        int status = settle_channel(ctx, owner, i, pe);
        if (result == 0)
            result = status;
    }
    unlock(owner);
    gpsh_full_fence();
    gpsh_acquire_remote();
    return result;
}

int gpsh_context_quiet_all(void)
{
    int result = gpsh_context_quiet(&gpsh_default_context, GPSH_ALL_PES);
    pthread_mutex_lock(&contexts.lock);
    for (struct gpsh_context *ctx = contexts.created; ctx != NULL; ctx = ctx->next) {
        int status = gpsh_context_quiet(ctx, GPSH_ALL_PES);
        if (result == 0)
            result = status;
    }
    pthread_mutex_unlock(&contexts.lock);
    return result;
}

static bool progress(struct gpsh_context *owner)
{
    bool pending = false;
    if (owner->locked && pthread_mutex_trylock(&owner->lock) != 0)
        return true; // its owner drives it
    for (int i = 0; i < gpsh.n_transports; ++i) {
        struct gpsh_channel *channel = owner->channels[i];
        if (channel != NULL && channel->pending != 0)
            channel->ops->progress(channel);
        pending |= channel != NULL && channel->pending != 0;
    }
    unlock(owner);
    return pending;
}

// Whether this thread may drive the context, whoever else uses it. Of a serialized one only the
// program knows.
static bool may_drive(const struct gpsh_context *ctx)
{
    if (ctx->base != NULL)
        return false; // it has no channels
    bool mine =
        (ctx->options & GPUSHMEM_CTX_PRIVATE) != 0 && pthread_equal(ctx->creator, pthread_self());
    return ctx->locked || gpsh.thread_level != GPUSHMEM_THREAD_MULTIPLE || mine;
}

bool gpsh_context_progress(void)
{
    if (GPSH_LIKELY(!gpsh_default_context.remote))
        return false;
    bool pending = progress(&gpsh_default_context);
    if (GPSH_LIKELY(atomic_load_explicit(&contexts.created, memory_order_relaxed) == NULL) ||
        pthread_mutex_trylock(&contexts.lock) != 0)
        return pending;
    for (struct gpsh_context *ctx = contexts.created; ctx != NULL; ctx = ctx->next) {
        if (may_drive(ctx))
            pending |= progress(ctx);
    }
    pthread_mutex_unlock(&contexts.lock);
    return pending;
}
