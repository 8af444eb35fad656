// SPDX-License-Identifier: BSD-3-Clause
#include "comm/contexts.h"

#include <pthread.h>
#include <stdlib.h>

#include "connect/net.h"
#include "core/config.h"
#include "core/cpu.h"
#include "job/job.h"
#include "memory/heap.h"
#include "observe/trace.h"
#include "progress/waiter.h"
#include "proxy/device_side.h"
#include "proxy/kernel_watch.h"

// Contexts that programs created, and the channels for them: a transport has a fixed number of
// channels, so those of destroyed contexts are kept open for the next ones.
struct spare {
    struct gpsh_channel *channels[GPSH_MAX_TRANSPORTS];
    struct spare *next;
};
enum { REMEMBERED = 64 };
static struct {
    pthread_mutex_t lock;
    struct gpsh_context *_Atomic created;
    pthread_mutex_t pool_lock; // of what follows; nobody waits while holding it
    struct spare *spares;
    int next_index; // first channel index never opened
    bool told;      // that contexts share
    // Destroyed ones, the latest REMEMBERED, with `lock`: what uses a handle after its end is
    // refused and reads no foreign memory.
    struct gpsh_context *gone[REMEMBERED];
    unsigned n_gone;
} contexts = {.lock = PTHREAD_MUTEX_INITIALIZER, .pool_lock = PTHREAD_MUTEX_INITIALIZER};

static bool any_direct(void)
{
    bool any = false;
    for (int pe = 0; pe < gpsh_job()->n_pes; ++pe)
        any |= gpsh_heap()->direct[pe] != NULL;
    return any;
}

void gpsh_contexts_survey(void)
{
    gpsh_default_context.remote = false;
    gpsh_default_context.mixed = false;
    for (int pe = 0; pe < gpsh_job()->n_pes; ++pe) {
        gpsh_default_context.remote |= gpsh_heap()->direct[pe] == NULL ||
                                       !gpsh_net()->cpu_atomics ||
                                       gpsh_heap()->mapped[GPSH_CONTROL][pe] == NULL;
        gpsh_default_context.mixed |= gpsh_mixed_paths(pe);
    }
}

static void close_channels(struct gpsh_channel **channels)
{
    for (int i = 0; i < gpsh_net()->n_transports; ++i) {
        if (channels[i] != NULL)
            channels[i]->ops->channel_close(channels[i]);
        channels[i] = NULL;
    }
}

static int open_channels(int index, struct gpsh_channel **channels)
{
    for (int i = 0; i < gpsh_net()->n_transports; ++i) {
        struct gpsh_transport *transport = gpsh_net()->transports[i];
        int status = transport->ops->channel_open(transport, index, &channels[i]);
        if (status < 0) {
            close_channels(channels);
            return status;
        }
        gpsh_trace_channel(channels[i], index, i);
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
    for (int i = 0; i < gpsh_net()->n_transports; ++i) {
        ctx->reported[i] = calloc((size_t)gpsh_job()->n_pes, 1);
        if (ctx->reported[i] == NULL) {
            free_reports(ctx);
            return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no host memory for a context of %d PEs",
                             gpsh_job()->n_pes);
        }
    }
    return 0;
}

// Forgets failures of channels that another context used before, or uses as well: they are reported
// there.
static void skip_old_errors(struct gpsh_context *ctx)
{
    struct gpsh_channel *const *channels = ctx->base ? ctx->base->channels : ctx->channels;
    for (int i = 0; i < gpsh_net()->n_transports; ++i)
        for (int pe = 0; channels[i] != NULL && pe < gpsh_job()->n_pes; ++pe)
            ctx->reported[i][pe] = channels[i]->flows[pe].error != 0;
}

// With the pool's lock: a set of channels that a destroyed context left, or the next one. False if
// there is none.
static bool take_from_pool(struct gpsh_channel **channels)
{
    struct spare *spare = contexts.spares;
    if (spare != NULL) {
        contexts.spares = spare->next;
        for (int i = 0; i < GPSH_MAX_TRANSPORTS; ++i)
            channels[i] = spare->channels[i];
        free(spare);
        return true;
    }
    for (int i = 0; i < gpsh_net()->n_transports; ++i) {
        const struct gpsh_transport_env *env = &gpsh_net()->envs[i];
        if (contexts.next_index >= env->channels - env->kernel_channels)
            return false;
    }
    // An index is used up even if opening it fails: a transport opens each one once at most.
    return open_channels(contexts.next_index++, channels) == 0;
}

static bool take_channels(struct gpsh_channel **channels)
{
    pthread_mutex_lock(&contexts.pool_lock);
    bool taken = take_from_pool(channels);
    pthread_mutex_unlock(&contexts.pool_lock);
    return taken;
}

static void leave_channels(struct gpsh_channel **channels)
{
    struct spare *spare = calloc(1, sizeof *spare);
    if (spare == NULL) {
        close_channels(channels);
        return;
    }
    for (int i = 0; i < GPSH_MAX_TRANSPORTS; ++i)
        spare->channels[i] = channels[i];
    pthread_mutex_lock(&contexts.pool_lock);
    spare->next = contexts.spares;
    contexts.spares = spare;
    pthread_mutex_unlock(&contexts.pool_lock);
}

// The first time that a context has no queues of its own.
static void tell_sharing(void)
{
    pthread_mutex_lock(&contexts.pool_lock);
    bool told = contexts.told;
    contexts.told = true;
    pthread_mutex_unlock(&contexts.pool_lock);
    if (told)
        return;
    GPSH_LOG(
        WARN, "context",
        "a new context shares the queues of the default context, so that the two wait for each "
        "other: GPUSHMEM_CONTEXTS=%lld allows no more contexts with queues of their own; raise it",
        (long long)gpsh_settings()->contexts);
}

static void share_channels(struct gpsh_context *ctx)
{
    ctx->base = &gpsh_default_context;
    if (ctx->remote)
        tell_sharing();
}

static bool is_locked(unsigned options)
{
    bool one_thread = (options & (GPUSHMEM_CTX_SERIALIZED | GPUSHMEM_CTX_PRIVATE)) != 0;
    return gpsh_job()->thread_level == GPUSHMEM_THREAD_MULTIPLE && !one_thread;
}

void gpsh_contexts_share_threads(void)
{
    gpsh_default_context.locked = is_locked(GPUSHMEM_CTX_SHARED);
    for (struct gpsh_context *ctx = contexts.created; ctx != NULL; ctx = ctx->next)
        ctx->locked = is_locked(ctx->options);
}

int gpsh_contexts_create(long options, struct gpsh_context **out)
{
    struct gpsh_context *ctx = calloc(1, sizeof *ctx);
    if (ctx == NULL)
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "out of host memory");
    ctx->options = (unsigned)options;
    ctx->creator = pthread_self();
    ctx->remote = gpsh_default_context.remote;
    // where a PE is mapped, the context's own puts are stores
    ctx->stores = !(options & GPUSHMEM_CTX_NOSTORE) || any_direct();
    ctx->locked = is_locked(ctx->options);
    int status = allocate_reports(ctx);
    if (status < 0) {
        free(ctx);
        return status;
    }
    pthread_mutex_init(&ctx->lock, NULL);
    pthread_mutex_lock(&contexts.lock);
    // Without remote peers the channels would never be used: all contexts may share the default
    // one's.
    if (!ctx->remote || !take_channels(ctx->channels))
        share_channels(ctx);
    skip_old_errors(ctx);
    ctx->next = contexts.created;
    contexts.created = ctx;
    pthread_mutex_unlock(&contexts.lock);
    *out = ctx;
    return 0;
}

// Compares addresses alone: what was destroyed is not looked at. With the lock.
static bool is_among_created(const struct gpsh_context *ctx)
{
    const struct gpsh_context *found = contexts.created;
    while (found != NULL && found != ctx)
        found = found->next;
    return found != NULL;
}

static bool is_created(const struct gpsh_context *ctx)
{
    pthread_mutex_lock(&contexts.lock);
    bool created = is_among_created(ctx);
    pthread_mutex_unlock(&contexts.lock);
    return created;
}

bool gpsh_contexts_lack(const struct gpsh_context *ctx)
{
    if (ctx == &gpsh_default_context || (gpsh_job()->n_pes != 0 && !gpsh_settings()->check))
        return false;
    pthread_mutex_lock(&contexts.lock);
    bool known = is_among_created(ctx);
    for (int i = 0; i < REMEMBERED && !known; ++i)
        known = contexts.gone[i] == ctx;
    pthread_mutex_unlock(&contexts.lock);
    return !known;
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

// It is one of a team without ranks from now on, so that every PE number is wrong.
static void bury(struct gpsh_context *ctx)
{
    static int nobody;
    free_reports(ctx);
    free(ctx->team_pes);
    *ctx = (struct gpsh_context){.team = GPUSHMEM_TEAM_INVALID, .team_pes = &nobody};
    pthread_mutex_lock(&contexts.lock);
    struct gpsh_context **place = &contexts.gone[contexts.n_gone++ % REMEMBERED], *oldest = *place;
    *place = ctx;
    pthread_mutex_unlock(&contexts.lock);
    free(oldest);
}

int gpsh_contexts_destroy(struct gpsh_context *ctx)
{
    if (!is_created(ctx))
        return gpsh_fail(GPUSHMEM_ERR_INVALID,
                         "gpushmem_ctx_destroy: %p is no context of this PE; was it destroyed "
                         "already?",
                         (void *)ctx);
    int status = gpsh_context_quiet(ctx, GPSH_ALL_PES);
    if (ctx->on_device) {
        int device = gpsh_device_side_quiet((int)ctx->device.number);
        gpsh_device_side_context_free(&ctx->device);
        status = status < 0 ? status : device;
    }
    pthread_mutex_lock(&contexts.lock);
    remove_created(ctx);
    pthread_mutex_unlock(&contexts.lock);
    if (ctx->base == NULL)
        leave_channels(ctx->channels);
    pthread_mutex_destroy(&ctx->lock);
    bury(ctx);
    return status;
}

int gpsh_contexts_device(struct gpsh_context *ctx, struct gpushmem_dev_ctx *out)
{
    int status = 0;
    if (!ctx->on_device && ctx->base == NULL) {
        status = gpsh_context_quiet(ctx, GPSH_ALL_PES);
        if (status < 0)
            return status;
        pthread_mutex_lock(&contexts.lock); // nobody drives it
        struct gpsh_channel *channels[GPSH_MAX_TRANSPORTS];
        for (int i = 0; i < GPSH_MAX_TRANSPORTS; ++i) {
            channels[i] = ctx->channels[i];
            ctx->channels[i] = NULL;
        }
        ctx->base = &gpsh_default_context;
        skip_old_errors(ctx);
        pthread_mutex_unlock(&contexts.lock);
        leave_channels(channels);
    }
    if (!ctx->on_device)
        status = gpsh_device_side_context((long)ctx->options, &ctx->device);
    if (status < 0)
        return status;
    ctx->on_device = true;
    *out = ctx->device;
    return 0;
}

// What a kernel waits for, another PE may do only when it has what this one has posted.
static void send_off(void)
{
    if (gpsh_job()->n_pes != 0)
        gpsh_context_send_off(&gpsh_default_context);
}

int gpsh_contexts_init(void)
{
    struct gpsh_context *ctx = &gpsh_default_context;
    gpsh_context_free_places(); // the transports that knew them are closed
    *ctx = (struct gpsh_context){.locked = is_locked(GPUSHMEM_CTX_SHARED), .stores = true};
    contexts.created = NULL;
    contexts.spares = NULL;
    contexts.next_index = gpsh_channel_first_context(gpsh_settings());
    contexts.told = false;
    gpsh_waiter_drive(gpsh_contexts_progress);
    gpsh_kernel_watch_before_wait(send_off);
    gpsh_device_side_borrow(
        &(struct gpsh_channel_lender){take_channels, leave_channels, tell_sharing});
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

void gpsh_contexts_finalize(void)
{
    while (contexts.created != NULL) {
        struct gpsh_context *ctx = contexts.created;
        contexts.created = ctx->next;
        if (ctx->base == NULL)
            close_channels(ctx->channels);
        pthread_mutex_destroy(&ctx->lock);
        free_reports(ctx);
        free(ctx->team_pes);
        free(ctx);
    }
    for (int i = 0; i < REMEMBERED; ++i) {
        free(contexts.gone[i]);
        contexts.gone[i] = NULL;
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

int gpsh_contexts_quiet(void)
{
    int result = gpsh_context_quiet(&gpsh_default_context, GPSH_ALL_PES);
    pthread_mutex_lock(&contexts.lock);
    for (struct gpsh_context *ctx = contexts.created; ctx != NULL; ctx = ctx->next) {
        int status = gpsh_context_quiet(ctx, GPSH_ALL_PES);
        if (result == 0)
            result = status;
    }
    pthread_mutex_unlock(&contexts.lock);
    int device = gpsh_device_side_quiet(GPSH_CONTEXT_ALL);
    return result < 0 ? result : device;
}

// Whether this thread may drive the context even if other threads use it. For a serialized context
// only the program knows.
static bool may_drive(const struct gpsh_context *ctx)
{
    if (ctx->base != NULL)
        return false; // it has no channels
    bool mine =
        (ctx->options & GPUSHMEM_CTX_PRIVATE) != 0 && pthread_equal(ctx->creator, pthread_self());
    return ctx->locked || gpsh_job()->thread_level != GPUSHMEM_THREAD_MULTIPLE || mine;
}

bool gpsh_contexts_serve(void)
{
    bool any = false;
    for (int i = 0; i < gpsh_net()->n_transports; i++)
        any |= gpsh_net()->transports[i]->ops->serve != NULL;
    return any;
}

static bool serve_peers(void)
{
    bool busy = false;
    for (int i = 0; i < gpsh_net()->n_transports; i++) {
        struct gpsh_transport *transport = gpsh_net()->transports[i];
        if (transport->ops->serve)
            busy |= transport->ops->serve(transport);
    }
    return busy;
}

bool gpsh_contexts_progress(void)
{
    if (GPSH_LIKELY(!gpsh_default_context.remote))
        return false;
    bool pending = gpsh_context_drive(&gpsh_default_context);
    pending |= serve_peers();
    if (GPSH_LIKELY(atomic_load_explicit(&contexts.created, memory_order_relaxed) == NULL) ||
        pthread_mutex_trylock(&contexts.lock) != 0)
        return pending;
    for (struct gpsh_context *ctx = contexts.created; ctx != NULL; ctx = ctx->next) {
        if (may_drive(ctx))
            pending |= gpsh_context_drive(ctx);
    }
    pthread_mutex_unlock(&contexts.lock);
    return pending;
}
