// SPDX-License-Identifier: BSD-3-Clause
#include "comm/contexts.h"

#include <stdlib.h>

#include "progress/waiter.h"

// Contexts that programs created, and the channels for them: a transport has a fixed number of
// channels, so those of destroyed contexts are kept open for the next ones.
struct spare {
    struct gpsh_channel *channels[GPSH_MAX_TRANSPORTS];
    struct spare *next;
};
static struct {
    pthread_mutex_t lock;
    struct gpsh_context *_Atomic created;
    struct spare *spares;
    int next_index; // first channel index never opened
    bool told;      // that contexts share
} contexts = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void survey_peers(void)
{
    gpsh_default_context.remote = false;
    gpsh_default_context.mixed = false;
    for (int pe = 0; pe < gpsh.n_pes; ++pe) {
        gpsh_default_context.remote |=
            gpsh.direct[pe] == NULL || !gpsh.cpu_atomics || gpsh.mapped[GPSH_CONTROL][pe] == NULL;
        gpsh_default_context.mixed |= gpsh_mixed_paths(pe);
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

// Forgets failures of channels that another context used before: they were reported there.
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

int gpsh_contexts_create(long options, struct gpsh_context **out)
{
    struct gpsh_context *ctx = calloc(1, sizeof *ctx);
    if (ctx == NULL)
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "out of host memory");
    ctx->options = (unsigned)options;
    ctx->creator = pthread_self();
    ctx->remote = gpsh_default_context.remote;
    bool one_thread = (options & (GPUSHMEM_CTX_SERIALIZED | GPUSHMEM_CTX_PRIVATE)) != 0;
    ctx->locked = gpsh.thread_level == GPUSHMEM_THREAD_MULTIPLE && !one_thread;
    int status = allocate_reports(ctx);
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
    *out = ctx;
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

int gpsh_contexts_destroy(struct gpsh_context *ctx)
{
    int status = gpsh_context_quiet(ctx, GPSH_ALL_PES);
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

int gpsh_contexts_init(void)
{
    struct gpsh_context *ctx = &gpsh_default_context;
    gpsh_context_free_places(); // the transports that knew them are closed
    *ctx = (struct gpsh_context){.locked = gpsh.thread_level == GPUSHMEM_THREAD_MULTIPLE};
    contexts.created = NULL;
    contexts.spares = NULL;
    contexts.next_index = gpsh_channel_first_context(&gpsh.settings);
    contexts.told = false;
    gpsh_waiter_drive(gpsh_contexts_progress);
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

void gpsh_contexts_finalize(void)
{
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
    return result;
}

// Whether this thread may drive the context even if other threads use it. For a serialized context
// only the program knows.
static bool may_drive(const struct gpsh_context *ctx)
{
    if (ctx->base != NULL)
        return false; // it has no channels
    bool mine =
        (ctx->options & GPUSHMEM_CTX_PRIVATE) != 0 && pthread_equal(ctx->creator, pthread_self());
    return ctx->locked || gpsh.thread_level != GPUSHMEM_THREAD_MULTIPLE || mine;
}

bool gpsh_contexts_progress(void)
{
    if (GPSH_LIKELY(!gpsh_default_context.remote))
        return false;
    bool pending = gpsh_context_drive(&gpsh_default_context);
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
