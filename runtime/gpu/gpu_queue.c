// SPDX-License-Identifier: BSD-3-Clause
// Operations on GPU memory that the host issues: one CUDA stream per queue, so everything is in
// order.
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "gpu/gpu.h"
#include "gpu/gpu_kernels.h"

struct gpu_queue {
    struct gpsh_queue queue;
    gpsh_cu_stream stream;
    uint64_t *pinned; // [0]: last mark reached; then the results
};

static void queue_close(struct gpsh_queue *self)
{
    struct gpu_queue *q = (struct gpu_queue *)self;
    if (!q)
        return;
    bool entered = gpsh_gpu_enter();
    if (q->stream) {
        gpsh_cu.stream_sync(q->stream);
        gpsh_cu.stream_destroy(q->stream);
    }
    if (q->pinned)
        gpsh_cu.host_free(q->pinned);
    gpsh_gpu_leave(entered);
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
    bool entered = gpsh_gpu_enter();
    int mode = gpsh_gpu_relax();
    gpsh_cu_result code = gpsh_cu.stream_create(&q->stream, GPSH_CU_STREAM_NON_BLOCKING);
    if (!code)
        code = gpsh_cu.host_alloc(&pinned, bytes, GPSH_CU_HOST_PORTABLE | GPSH_CU_HOST_DEVICEMAP);
    gpsh_gpu_restore(mode);
    gpsh_gpu_leave(entered);
    q->pinned = pinned;
    if (code) {
        int status = gpsh_gpu_fail(code, "a queue of GPU operations");
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
    bool entered = gpsh_gpu_enter();
    gpsh_cu_result code = put((struct gpu_queue *)self, to, from, bytes, capture, &status);
    gpsh_gpu_leave(entered);
    return code ? gpsh_gpu_fail(code, "put of %zu bytes from %p to %p", bytes, from, to) : status;
}

static int queue_get(struct gpsh_queue *self, void *to, const void *from, size_t bytes)
{
    int status;
    bool entered = gpsh_gpu_enter();
    gpsh_cu_result code = get((struct gpu_queue *)self, to, from, bytes, &status);
    gpsh_gpu_leave(entered);
    return code ? gpsh_gpu_fail(code, "get of %zu bytes from %p to %p", bytes, from, to) : status;
}

static int queue_amo(struct gpsh_queue *self, void *word, const struct gpsh_op *op, unsigned result)
{
    struct gpu_queue *q = (struct gpu_queue *)self;
    bool entered = gpsh_gpu_enter();
    gpsh_cu_ptr at = (gpsh_cu_ptr)(uintptr_t)word;
    int status = 0;
    // A store needs no kernel: the stream's front end does it, in an instant and with nothing to
    // schedule.
    if (op->amo == GPSH_AMO_SET && op->width == 8) {
        gpsh_cu_result code = gpsh_cu.stream_write64(q->stream, at, op->operand, 0);
        status = code ? gpsh_gpu_fail(code, "a store of 8 bytes at %p", word) : 0;
    } else {
        uint64_t *to = op->result ? &q->queue.results[result] : NULL;
        status = gpsh_gpu_launch_amo(q->stream, word, op, to);
    }
    gpsh_gpu_leave(entered);
    return status;
}

static int queue_mark(struct gpsh_queue *self, uint64_t number)
{
    struct gpu_queue *q = (struct gpu_queue *)self;
    bool entered = gpsh_gpu_enter();
    gpsh_cu_result code =
        gpsh_cu.stream_write64(q->stream, (gpsh_cu_ptr)(uintptr_t)q->pinned, number, 0);
    gpsh_gpu_leave(entered);
    return code ? gpsh_gpu_fail(code, "a mark in a queue of GPU operations") : 0;
}

static int queue_check(struct gpsh_queue *self)
{
    struct gpu_queue *q = (struct gpu_queue *)self;
    bool entered = gpsh_gpu_enter();
    int mode = gpsh_gpu_relax();
    gpsh_cu_result code = gpsh_cu.stream_query(q->stream);
    gpsh_gpu_restore(mode);
    gpsh_gpu_leave(entered);
    return code && code != GPSH_CU_NOT_READY
               ? gpsh_gpu_fail(code, "operations on GPU memory were lost")
               : 0;
}

static int queue_pin(void *memory, size_t bytes)
{
    if (!gpsh_cu.host_register)
        return gpsh_fail(GPUSHMEM_ERR_UNSUPPORTED,
                         "this CUDA driver cannot pin memory that is there already");
    bool entered = gpsh_gpu_enter();
    gpsh_cu_result code = gpsh_cu.host_register(memory, bytes, GPSH_CU_HOST_PORTABLE);
    gpsh_gpu_leave(entered);
    return code ? gpsh_gpu_fail(code, "pinning %zu bytes at %p", bytes, memory) : 0;
}

static void queue_unpin(void *memory)
{
    bool entered = gpsh_gpu_enter();
    if (gpsh_cu.host_unregister)
        gpsh_cu.host_unregister(memory);
    gpsh_gpu_leave(entered);
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
