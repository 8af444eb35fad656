// SPDX-License-Identifier: BSD-3-Clause
// Streams: a queue and a thread each; copies, fills and stores.
#define _GNU_SOURCE // usleep
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "internal.h"

struct CUstream_st {
    struct CUstream_st *next; // of the context; fake.lock
    gpsh_cu_context context;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct fake_operation *first, **last;
    unsigned long submitted, finished;
    bool is_default, closing;
};

struct fake_operation *fake_operation_new(gpsh_cu_result (*run)(struct fake_operation *),
                                          size_t staged_bytes)
{
    struct fake_operation *operation = calloc(1, sizeof *operation + staged_bytes);
    operation->run = run;
    return operation;
}

// ---- Running ----

static void execute(gpsh_cu_context context, struct fake_operation *operation)
{
    if (fake.settings.delay_us)
        usleep(fake.settings.delay_us);
    pthread_mutex_lock(&fake.lock);
    if (!context->broken)
        context->broken = operation->run(operation);
    if (!--context->pending)
        pthread_cond_broadcast(&fake.idle);
    pthread_mutex_unlock(&fake.lock);
    free(operation);
}

static void *serve(void *arg)
{
    struct CUstream_st *stream = arg;
    pthread_mutex_lock(&stream->lock);
    while (stream->first || !stream->closing) {
        struct fake_operation *operation = stream->first;
        if (!operation) {
            pthread_cond_wait(&stream->changed, &stream->lock);
            continue;
        }
        stream->first = operation->next;
        if (!stream->first)
            stream->last = &stream->first;
        pthread_mutex_unlock(&stream->lock);
        execute(stream->context, operation);
        pthread_mutex_lock(&stream->lock);
        stream->finished++;
        pthread_cond_broadcast(&stream->changed);
    }
    pthread_mutex_unlock(&stream->lock);
    free(stream); // destroyed, and its work is done
    return NULL;
}

static gpsh_cu_stream stream_new(gpsh_cu_context context, bool is_default)
{
    gpsh_cu_stream stream = calloc(1, sizeof *stream);
    stream->context = context;
    stream->is_default = is_default;
    stream->last = &stream->first;
    pthread_mutex_init(&stream->lock, NULL);
    pthread_cond_init(&stream->changed, NULL);
    pthread_mutex_lock(&fake.lock);
    stream->next = context->first_stream;
    context->first_stream = stream;
    pthread_mutex_unlock(&fake.lock);
    pthread_create(&stream->thread, NULL, serve, stream);
    pthread_detach(stream->thread);
    return stream;
}

// A stream of any context, or the default one of the current context. Ends the process if it is no
// stream.
static gpsh_cu_stream resolve(gpsh_cu_stream stream)
{
    gpsh_cu_context context = fake_current();
    gpsh_cu_stream found = NULL;
    pthread_mutex_lock(&fake.lock);
    for (int i = 0; stream && !found && i < FAKE_DEVICES; i++)
        for (found = fake.contexts[i].first_stream; found && found != stream;)
            found = found->next;
    for (gpsh_cu_stream other = context->first_stream; !stream && !found && other;
         other = other->next)
        found = other->is_default ? other : NULL;
    pthread_mutex_unlock(&fake.lock);
    if (!found && stream)
        fake_misuse("%p is no stream, or destroyed already", (void *)stream);
    return found ? found : stream_new(context, true);
}

bool fake_stream_is_current(gpsh_cu_stream stream)
{
    return resolve(stream)->context == fake_current();
}

gpsh_cu_result fake_submit(gpsh_cu_stream handle, struct fake_operation *operation)
{
    gpsh_cu_stream stream = resolve(handle);
    pthread_mutex_lock(&fake.lock);
    stream->context->pending++;
    pthread_mutex_unlock(&fake.lock);
    pthread_mutex_lock(&stream->lock);
    *stream->last = operation;
    stream->last = &operation->next;
    stream->submitted++;
    pthread_cond_broadcast(&stream->changed);
    pthread_mutex_unlock(&stream->lock);
    return 0;
}

static gpsh_cu_result broken(gpsh_cu_context context)
{
    pthread_mutex_lock(&fake.lock);
    gpsh_cu_result code = context->broken;
    pthread_mutex_unlock(&fake.lock);
    return code;
}

static gpsh_cu_result wait_stream(gpsh_cu_stream stream)
{
    pthread_mutex_lock(&stream->lock);
    unsigned long until = stream->submitted;
    while (stream->finished < until)
        pthread_cond_wait(&stream->changed, &stream->lock);
    pthread_mutex_unlock(&stream->lock);
    return broken(stream->context);
}

void fake_wait_context(gpsh_cu_context context)
{
    pthread_mutex_lock(&fake.lock);
    while (context->pending)
        pthread_cond_wait(&fake.idle, &fake.lock);
    pthread_mutex_unlock(&fake.lock);
}

// ---- The calls ----

gpsh_cu_result cuStreamCreate(gpsh_cu_stream *stream, unsigned flags)
{
    ENTER(NEEDS_CONTEXT);
    if (flags & ~(unsigned)GPSH_CU_STREAM_NON_BLOCKING)
        return GPSH_CU_INVALID_VALUE;
    *stream = stream_new(fake_current(), false);
    return 0;
}

// As with a driver, what is in the stream goes on.
gpsh_cu_result cuStreamDestroy_v2(gpsh_cu_stream handle)
{
    ENTER(NEEDS_CONTEXT);
    gpsh_cu_stream stream = resolve(handle);
    pthread_mutex_lock(&fake.lock);
    gpsh_cu_stream *link = &stream->context->first_stream;
    while (*link != stream)
        link = &(*link)->next;
    *link = stream->next;
    pthread_mutex_unlock(&fake.lock);
    pthread_mutex_lock(&stream->lock);
    stream->closing = true;
    pthread_cond_broadcast(&stream->changed);
    pthread_mutex_unlock(&stream->lock);
    return 0;
}

gpsh_cu_result cuStreamSynchronize(gpsh_cu_stream stream)
{
    ENTER(NEEDS_CONTEXT);
    return wait_stream(resolve(stream));
}

gpsh_cu_result cuStreamQuery(gpsh_cu_stream handle)
{
    ENTER(NEEDS_CONTEXT);
    gpsh_cu_stream stream = resolve(handle);
    gpsh_cu_result code = broken(stream->context);
    pthread_mutex_lock(&stream->lock);
    bool ready = stream->finished == stream->submitted;
    pthread_mutex_unlock(&stream->lock);
    return code || ready ? code : GPSH_CU_NOT_READY;
}

// There are no graphs here.
gpsh_cu_result cuStreamIsCapturing(gpsh_cu_stream stream, int *status)
{
    ENTER(NEEDS_CONTEXT);
    resolve(stream);
    *status = GPSH_CU_CAPTURE_NONE;
    return 0;
}

gpsh_cu_result cuThreadExchangeStreamCaptureMode(int *mode)
{
    static _Thread_local int current;
    ENTER(NEEDS_INIT);
    int before = current;
    current = *mode;
    *mode = before;
    return 0;
}

static gpsh_cu_result illegal(const char *what, uintptr_t at, size_t bytes)
{
    fprintf(stderr,
            "fake cuda: %s of %zu bytes at %#lx, which is no GPU memory or not mapped as a whole\n",
            what, bytes, (unsigned long)at);
    return FAKE_ILLEGAL_ADDRESS;
}

#ifndef FAKE_CUDA_OLD // came with CUDA 11.7
static gpsh_cu_result run_store(struct fake_operation *self)
{
    char *to;
    enum fake_place place = fake_place(self->to, 8, &to);
    if (place != PLACE_DEVICE && place != PLACE_PINNED)
        return illegal("a store", self->to, 8);
    __atomic_store_n((uint64_t *)(void *)to, self->value, __ATOMIC_SEQ_CST);
    return 0;
}

gpsh_cu_result cuStreamWriteValue64_v2(gpsh_cu_stream stream, gpsh_cu_ptr to, uint64_t value,
                                       unsigned flags)
{
    ENTER(NEEDS_CONTEXT);
    if (to % 8 || flags)
        return GPSH_CU_INVALID_VALUE;
    struct fake_operation *operation = fake_operation_new(run_store, 0);
    operation->to = (uintptr_t)to;
    operation->value = value;
    return fake_submit(stream, operation);
}

static gpsh_cu_result run_store32(struct fake_operation *self)
{
    char *to;
    enum fake_place place = fake_place(self->to, 4, &to);
    if (place != PLACE_DEVICE && place != PLACE_PINNED)
        return illegal("a store", self->to, 4);
    __atomic_store_n((uint32_t *)(void *)to, (uint32_t)self->value, __ATOMIC_SEQ_CST);
    return 0;
}

static bool good_store(const union gpsh_cu_memory_op *op)
{
    bool wide = op->store.kind == GPSH_CU_MEMORY_STORE_64;
    return (wide || op->store.kind == GPSH_CU_MEMORY_STORE_32) && !op->store.flags &&
           op->store.to % (wide ? 8 : 4) == 0;
}

static gpsh_cu_result submit_memory_op(gpsh_cu_stream stream, const union gpsh_cu_memory_op *op)
{
    bool reduces = op->store.kind == GPSH_CU_MEMORY_REDUCE;
    if (!reduces && !good_store(op))
        return GPSH_CU_INVALID_VALUE;
    struct fake_operation *operation =
        fake_operation_new(op->store.kind == GPSH_CU_MEMORY_STORE_64 ? run_store : run_store32, 0);
    operation->to = (uintptr_t)op->store.to;
    operation->value = op->store.value;
    if (!reduces || fake_reduction(operation, op))
        return fake_submit(stream, operation);
    free(operation);
    return GPSH_CU_INVALID_VALUE;
}

gpsh_cu_result cuStreamBatchMemOp_v2(gpsh_cu_stream stream, unsigned n,
                                     union gpsh_cu_memory_op *operations, unsigned flags)
{
    ENTER(NEEDS_CONTEXT);
    gpsh_cu_result code = !n || n > 256 || flags ? GPSH_CU_INVALID_VALUE : 0;
    for (unsigned i = 0; i < n && !code; i++)
        code = submit_memory_op(stream, &operations[i]);
    return code;
}
#endif

static gpsh_cu_result run_fill(struct fake_operation *self)
{
    char *to;
    if (fake_place(self->to, self->bytes, &to) != PLACE_DEVICE)
        return illegal("a fill", self->to, self->bytes);
    memset(to, (int)self->value, self->bytes);
    return 0;
}

gpsh_cu_result cuMemsetD8Async(gpsh_cu_ptr to, unsigned char value, size_t bytes,
                               gpsh_cu_stream stream)
{
    ENTER(NEEDS_CONTEXT);
    struct fake_operation *operation = fake_operation_new(run_fill, 0);
    operation->to = (uintptr_t)to;
    operation->value = value;
    operation->bytes = bytes;
    return fake_submit(stream, operation);
}

// Fills of GPU memory, and copies to it from pageable memory or within it, may return before they
// are complete, though they are called synchronous; unless the context says otherwise.
static gpsh_cu_result complete(gpsh_cu_result code)
{
    bool waits = !code && fake_current()->flags & GPSH_CU_CONTEXT_SYNC_MEMOPS;
    return waits ? cuStreamSynchronize(NULL) : code;
}

gpsh_cu_result cuMemsetD8_v2(gpsh_cu_ptr to, unsigned char value, size_t bytes)
{
    return complete(cuMemsetD8Async(to, value, bytes, NULL));
}

// `from` is read when the stream gets there, unless it was pageable and is here already.
static gpsh_cu_result run_copy(struct fake_operation *self)
{
    char *to, *from = self->staged;
    if (fake_place(self->to, self->bytes, &to) == PLACE_BAD)
        return illegal("a copy", self->to, self->bytes);
    if (self->from && fake_place(self->from, self->bytes, &from) == PLACE_BAD)
        return illegal("a copy", self->from, self->bytes);
    memmove(to, from, self->bytes);
    return 0;
}

static enum fake_place place_of(uintptr_t at, size_t bytes)
{
    char *host;
    pthread_mutex_lock(&fake.lock);
    enum fake_place place = fake_place(at, bytes, &host);
    pthread_mutex_unlock(&fake.lock);
    return place;
}

// "API synchronization behavior": pageable sources are read before the call returns, copies to
// pageable memory are complete then.
static gpsh_cu_result copy(uintptr_t to, uintptr_t from, size_t bytes, gpsh_cu_stream stream)
{
    enum fake_place target = place_of(to, bytes), source = place_of(from, bytes);
    if (target == PLACE_BAD || source == PLACE_BAD)
        return GPSH_CU_INVALID_VALUE;
    bool staged = source == PLACE_PAGEABLE;
    struct fake_operation *operation = fake_operation_new(run_copy, staged ? bytes : 0);
    operation->to = to;
    operation->from = staged ? 0 : from;
    operation->bytes = bytes;
    if (staged)
        memcpy(operation->staged, (const void *)from, bytes);
    gpsh_cu_result code = fake_submit(stream, operation);
    return code || target != PLACE_PAGEABLE ? code : wait_stream(resolve(stream));
}

gpsh_cu_result cuMemcpyAsync(gpsh_cu_ptr to, gpsh_cu_ptr from, size_t bytes, gpsh_cu_stream stream)
{
    ENTER(NEEDS_CONTEXT);
    return copy((uintptr_t)to, (uintptr_t)from, bytes, stream);
}

gpsh_cu_result cuMemcpyHtoDAsync_v2(gpsh_cu_ptr to, const void *from, size_t bytes,
                                    gpsh_cu_stream stream)
{
    ENTER(NEEDS_CONTEXT);
    if (place_of((uintptr_t)to, bytes) != PLACE_DEVICE ||
        place_of((uintptr_t)from, bytes) == PLACE_DEVICE)
        return GPSH_CU_INVALID_VALUE;
    return copy((uintptr_t)to, (uintptr_t)from, bytes, stream);
}

gpsh_cu_result cuMemcpyDtoHAsync_v2(void *to, gpsh_cu_ptr from, size_t bytes, gpsh_cu_stream stream)
{
    ENTER(NEEDS_CONTEXT);
    if (place_of((uintptr_t)from, bytes) != PLACE_DEVICE ||
        place_of((uintptr_t)to, bytes) == PLACE_DEVICE)
        return GPSH_CU_INVALID_VALUE;
    return copy((uintptr_t)to, (uintptr_t)from, bytes, stream);
}

gpsh_cu_result cuMemcpy(gpsh_cu_ptr to, gpsh_cu_ptr from, size_t bytes)
{
    gpsh_cu_result code = cuMemcpyAsync(to, from, bytes, NULL);
    bool early = place_of((uintptr_t)to, bytes) == PLACE_DEVICE &&
                 (place_of((uintptr_t)from, bytes) == PLACE_PAGEABLE ||
                  place_of((uintptr_t)from, bytes) == PLACE_DEVICE);
    if (early)
        return complete(code);
    return code ? code : cuStreamSynchronize(NULL);
}

void fake_stream_report(int *leaks)
{
    pthread_mutex_lock(&fake.lock);
    for (int i = 0; i < FAKE_DEVICES; i++)
        for (const struct CUstream_st *s = fake.contexts[i].first_stream; s; s = s->next)
            if (!s->is_default)
                fake_leak(leaks, "a stream of GPU %d", i);
    pthread_mutex_unlock(&fake.lock);
}
