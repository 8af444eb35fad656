// SPDX-License-Identifier: BSD-3-Clause
// Operations by in-order queues; and such queues of host memory: the processor does each operation
// at once, so a mark is reached when it is made.
#include <stdlib.h>

#include "core/error.h"
#include "transport/direct.h"
#include "transport/transport.h"

struct host_queue {
    struct gpsh_queue queue;
    uint64_t done;
    uint64_t results[];
};

static int host_open(unsigned results, struct gpsh_queue **out)
{
    struct host_queue *q = calloc(1, sizeof *q + results * sizeof *q->results);
    if (!q)
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory for a queue of %u results", results);
    q->queue.done = &q->done;
    q->queue.results = q->results;
    *out = &q->queue;
    return 0;
}

static void host_close(struct gpsh_queue *queue)
{
    free(queue);
}

static int host_put(struct gpsh_queue *queue, void *to, const void *from, size_t bytes,
                    bool capture)
{
    (void)queue;
    (void)capture;
    gpsh_direct_copy(to, from, bytes);
    return GPSH_POST_CAPTURED;
}

static int host_get(struct gpsh_queue *queue, void *to, const void *from, size_t bytes)
{
    (void)queue;
    gpsh_direct_copy(to, from, bytes);
    return GPSH_POST_DONE;
}

static int host_amo(struct gpsh_queue *queue, void *word, const struct gpsh_op *op, unsigned result)
{
    uint64_t old = op->width == 8 ? gpsh_direct_amo64(word, op->amo, op->operand, op->compare)
                                  : gpsh_direct_amo32(word, op->amo, (uint32_t)op->operand,
                                                      (uint32_t)op->compare);
    if (op->result)
        queue->results[result] = old;
    return 0;
}

static int host_mark(struct gpsh_queue *queue, uint64_t number)
{
    *queue->done = number;
    return 0;
}

static int host_check(struct gpsh_queue *queue)
{
    (void)queue;
    return 0;
}

const struct gpsh_queue_ops gpsh_host_queue_ops = {
    .open = host_open,
    .close = host_close,
    .put = host_put,
    .get = host_get,
    .amo = host_amo,
    .mark = host_mark,
    .check = host_check,
};

int gpsh_queue_do(const struct gpsh_queue_ops *ops, struct gpsh_queue *queue,
                  const struct gpsh_op *op, char *base, unsigned slot)
{
    int status = GPSH_POST_CAPTURED;
    if (op->kind == GPSH_OP_AMO) {
        int atomic = ops->amo(queue, base + op->remote, op, slot);
        return atomic < 0 ? atomic : status;
    }
    if (op->bytes)
        status = op->kind == GPSH_OP_GET ? ops->get(queue, op->local, base + op->remote, op->bytes)
                                         : ops->put(queue, base + op->remote, op->local, op->bytes,
                                                    op->flags & GPSH_OP_CAPTURE);
    if (status < 0 || op->kind != GPSH_OP_PUT_SIGNAL)
        return status;
    struct gpsh_op signal = *op;
    signal.kind = GPSH_OP_AMO;
    signal.amo = op->flags & GPSH_OP_SIGNAL_ADD ? GPSH_AMO_ADD : GPSH_AMO_SET;
    signal.width = 8;
    signal.result = NULL;
    int atomic = ops->amo(queue, base + op->signal, &signal, slot);
    return atomic < 0 ? atomic : status;
}
