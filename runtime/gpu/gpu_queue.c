// SPDX-License-Identifier: BSD-3-Clause
// Operations on GPU memory that the host issues: one CUDA stream per queue, so everything is in
// order.
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/log.h"
#include "gpu/gpu.h"
#include "gpu/gpu_kernels.h"

struct gpu_queue {
    struct gpsh_queue queue;
    gpsh_cu_stream stream;
    uint64_t *pinned; // [0]: last mark reached; then the results
    // when the oldest kernel that may not have run yet was launched; 0: none
    uint64_t launched_ns;
    bool warned;
};

static void queue_close(struct gpsh_queue *self)
{
    struct gpu_queue *q = (struct gpu_queue *)self;
    if (!q)
        return;
    GPSH_IN_GPU;
    if (q->stream) {
        gpsh_cu.stream_sync(q->stream);
        gpsh_cu.stream_destroy(q->stream);
    }
    if (q->pinned)
        gpsh_cu.host_free(q->pinned);
    free(q);
}

static int queue_open(unsigned results, struct gpsh_queue **out)
{
    int loaded = gpsh_gpu_kernels_load();
    if (loaded)
        return loaded;
    struct gpu_queue *q = calloc(1, sizeof *q);
    if (!q)
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no host memory for a queue of GPU operations");
    void *pinned = NULL;
    size_t bytes = (results + 16) * sizeof(uint64_t);
    GPSH_IN_GPU;
    gpsh_cu_result code = gpsh_cu.stream_create(&q->stream, GPSH_CU_STREAM_NON_BLOCKING);
    if (!code)
        code = gpsh_cu.host_alloc(&pinned, bytes, GPSH_CU_HOST_PORTABLE | GPSH_CU_HOST_DEVICEMAP);
    q->pinned = pinned;
    if (code) {
        int status = gpsh_gpu_fail(code, "creating a queue of GPU operations");
        queue_close(&q->queue);
        return status;
    }
    memset(pinned, 0, bytes);
    q->queue.done = &q->pinned[0];
    q->queue.results = q->pinned + 16; // on cache lines of their own
    *out = &q->queue;
    return 0;
}

// Is it memory that CUDA does not know, which the driver therefore copies through buffers of its
// own?
static bool is_pageable(const void *memory, unsigned *type)
{
    *type = 0;
    return gpsh_cu.pointer_attribute(type, GPSH_CU_POINTER_MEMORY_TYPE,
                                     (gpsh_cu_ptr)(uintptr_t)memory) != 0;
}

// "API synchronization behavior" of the driver: pageable sources have been read when the call
// returns, and copies to pageable memory are complete then.
static gpsh_cu_result put(struct gpu_queue *q, void *to, const void *from, size_t bytes,
                          bool capture, int *status)
{
    gpsh_cu_ptr target = (gpsh_cu_ptr)(uintptr_t)to;
    unsigned type;
    *status = GPSH_POST_CAPTURED;
    if (is_pageable(from, &type))
        return gpsh_cu.copy_from_host(target, from, bytes, q->stream);
    if (capture && type != GPSH_CU_MEMORY_DEVICE && bytes <= 4096) {
        char pageable[4096];
        memcpy(pageable, from, bytes);
        return gpsh_cu.copy_from_host(target, pageable, bytes, q->stream);
    }
    *status = GPSH_POST_IN_FLIGHT;
    return gpsh_cu.copy_any(target, (gpsh_cu_ptr)(uintptr_t)from, bytes, q->stream);
}

static gpsh_cu_result get(struct gpu_queue *q, void *to, const void *from, size_t bytes,
                          int *status)
{
    gpsh_cu_ptr source = (gpsh_cu_ptr)(uintptr_t)from;
    unsigned type;
    *status = GPSH_POST_DONE;
    if (is_pageable(to, &type))
        return gpsh_cu.copy_to_host(to, source, bytes, q->stream);
    *status = GPSH_POST_IN_FLIGHT;
    return gpsh_cu.copy_any((gpsh_cu_ptr)(uintptr_t)to, source, bytes, q->stream);
}

static int queue_put(struct gpsh_queue *self, void *to, const void *from, size_t bytes,
                     bool capture)
{
    int status;
    GPSH_IN_GPU;
    gpsh_cu_result code = put((struct gpu_queue *)self, to, from, bytes, capture, &status);
    return code ? gpsh_gpu_fail(code, "put of %zu bytes from %p to %p", bytes, from, to) : status;
}

static int queue_get(struct gpsh_queue *self, void *to, const void *from, size_t bytes)
{
    int status;
    GPSH_IN_GPU;
    gpsh_cu_result code = get((struct gpu_queue *)self, to, from, bytes, &status);
    return code ? gpsh_gpu_fail(code, "get of %zu bytes from %p to %p", bytes, from, to) : status;
}

// Of the words of this GPU's own heap only: of others' it is not known that a driver does it.
static bool can_reduce(const void *word, const struct gpsh_op *op)
{
    return gpsh_gpu.reduction && !op->result &&
           (uint64_t)((const char *)word - gpsh_gpu.heap) <
               __atomic_load_n(&gpsh_gpu.heap_bytes, __ATOMIC_RELAXED) &&
           (op->amo == GPSH_AMO_ADD || op->amo == GPSH_AMO_AND || op->amo == GPSH_AMO_OR);
}

static gpsh_cu_result memory_op(struct gpu_queue *q, const void *word, const struct gpsh_op *op)
{
    union gpsh_cu_memory_op one = {.all = {0}};
    if (op->amo == GPSH_AMO_SET) {
        one.store.kind = GPSH_CU_MEMORY_STORE_32;
        one.store.to = (gpsh_cu_ptr)(uintptr_t)word;
        one.store.value = (uint32_t)op->operand;
    } else {
        one.reduce.kind = GPSH_CU_MEMORY_REDUCE;
        one.reduce.how = op->amo == GPSH_AMO_ADD   ? GPSH_CU_REDUCE_ADD
                         : op->amo == GPSH_AMO_AND ? GPSH_CU_REDUCE_AND
                                                   : GPSH_CU_REDUCE_OR;
        one.reduce.type = op->width == 8 ? GPSH_CU_REDUCE_U64 : GPSH_CU_REDUCE_U32;
        one.reduce.to = (gpsh_cu_ptr)(uintptr_t)word;
        one.reduce.value = op->operand;
    }
    return gpsh_cu.memory_ops(q->stream, 1, &one, 0);
}

// Stores, fetches and, with newer drivers, sums need no kernel, which would wait for a free
// multiprocessor: the stream's front end or a copy engine does them beside whatever kernels run, in
// an instant. True: it did; *code says how it went.
static bool amo_without_kernel(struct gpu_queue *q, void *word, const struct gpsh_op *op,
                               uint64_t *result, gpsh_cu_result *code)
{
    gpsh_cu_ptr at = (gpsh_cu_ptr)(uintptr_t)word;
    if (op->amo == GPSH_AMO_SET && op->width == 8)
        *code = gpsh_cu.stream_write64(q->stream, at, op->operand, 0);
    else if (op->amo == GPSH_AMO_FETCH && result)
        *code = gpsh_cu.copy_any((gpsh_cu_ptr)(uintptr_t)result, at, op->width, q->stream);
    else if ((op->amo == GPSH_AMO_SET && gpsh_cu.memory_ops) || can_reduce(word, op))
        *code = memory_op(q, word, op);
    else
        return false;
    return true;
}

static int queue_amo(struct gpsh_queue *self, void *word, const struct gpsh_op *op, unsigned result)
{
    struct gpu_queue *q = (struct gpu_queue *)self;
    uint64_t *to = op->result ? &q->queue.results[result] : NULL;
    gpsh_cu_result code = 0;
    int status = 0;
    GPSH_IN_GPU;
    if (amo_without_kernel(q, word, op, to, &code)) {
        status = code ? gpsh_gpu_fail(code, "an atomic on %d bytes at %p", op->width, word) : 0;
    } else {
        status = gpsh_gpu_launch_amo(q->stream, word, op, to);
        if (!q->launched_ns)
            q->launched_ns = gpsh_clock_ns();
    }
    return status;
}

static int queue_mark(struct gpsh_queue *self, uint64_t number)
{
    struct gpu_queue *q = (struct gpu_queue *)self;
    GPSH_IN_GPU;
    gpsh_cu_result code =
        gpsh_cu.stream_write64(q->stream, (gpsh_cu_ptr)(uintptr_t)q->pinned, number, 0);
    return code ? gpsh_gpu_fail(code, "recording an event in a queue of GPU operations") : 0;
}

// A program that knows nothing of it looks for its mistake for long.
static void tell_of_late_kernel(struct gpu_queue *q, bool busy)
{
    const uint64_t patience_ns = 3000000000u;
    if (!busy)
        q->launched_ns = 0;
    if (!q->launched_ns || q->warned || gpsh_clock_ns() - q->launched_ns < patience_ns)
        return;
    q->warned = true;
    GPSH_LOG(
        WARN, "gpu",
        "an atomic of the host on GPU memory has waited for 3 s to run on %s: it takes a kernel "
        "of one thread, and so a multiprocessor that is not full. If a kernel of the program "
        "waits for it, leave room for it, or send a signal by SET or p (docs/gpu.md)",
        gpsh_gpu.name);
}

static int queue_check(struct gpsh_queue *self)
{
    struct gpu_queue *q = (struct gpu_queue *)self;
    GPSH_IN_GPU;
    gpsh_cu_result code = gpsh_cu.stream_query(q->stream);
    tell_of_late_kernel(q, code == GPSH_CU_NOT_READY);
    return code && code != GPSH_CU_NOT_READY
               ? gpsh_gpu_fail(code, "operations on GPU memory were lost")
               : 0;
}

static int queue_pin(void *memory, size_t bytes)
{
    if (!gpsh_cu.host_register)
        return gpsh_fail(GPUSHMEM_ERR_UNSUPPORTED,
                         "this CUDA driver cannot pin memory that is there already");
    GPSH_IN_GPU;
    gpsh_cu_result code = gpsh_cu.host_register(memory, bytes, GPSH_CU_HOST_PORTABLE);
    return code ? gpsh_gpu_fail(code, "pinning %zu bytes at %p", bytes, memory) : 0;
}

static void queue_unpin(void *memory)
{
    GPSH_IN_GPU;
    if (gpsh_cu.host_unregister)
        gpsh_cu.host_unregister(memory);
}

const struct gpsh_queue_ops gpsh_gpu_queue_ops = {
    .open = queue_open,
    .close = queue_close,
    .put = queue_put,
    .get = queue_get,
    .amo = queue_amo,
    .mark = queue_mark,
    .check = queue_check,
    .pin = queue_pin,
    .unpin = queue_unpin,
};
