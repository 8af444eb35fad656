// SPDX-License-Identifier: BSD-3-Clause
#include "transports/p2p/p2p_gpu.h"

#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "transport/direct.h"

enum { ENTRIES = 1024, CHECK_EVERY = 1 << 16 };

// An operation in the queue, from post to completion.
struct entry {
    struct gpsh_completion *completion;
    void *result; // where the previous value of an atomic goes
    int32_t pe;
    uint8_t width;
};

struct gpu_channel {
    struct gpsh_channel channel;
    const struct gpsh_queue_ops *ops;
    const struct gpsh_transport_env *env;
    struct gpsh_queue *queue;
    uint64_t posted;    // operations in the queue since the start
    uint64_t completed; // of them
    uint64_t marked;    // of them, covered by a mark
    unsigned idle;      // progress calls that found nothing
    struct entry entries[ENTRIES];
};

int gpsh_p2p_gpu_open(struct gpsh_transport *transport, const struct gpsh_transport_env *env,
                      int index, struct gpsh_channel **out)
{
    struct gpu_channel *self = calloc(1, sizeof *self);
    if (!self || !gpsh_flows_open(&self->channel, env, index)) {
        free(self);
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "p2p: no memory for a channel to %d PEs",
                         env->n_pes);
    }
    int status = env->queues->open(ENTRIES, &self->queue);
    if (status) {
        gpsh_flows_close(&self->channel);
        free(self);
        return status;
    }
    self->channel.ops = transport->ops;
    self->channel.transport = transport;
    self->ops = env->queues;
    self->env = env;
    *out = &self->channel;
    return 0;
}

void gpsh_p2p_gpu_close(struct gpsh_channel *channel)
{
    struct gpu_channel *self = (struct gpu_channel *)channel;
    self->ops->close(self->queue);
    gpsh_flows_close(&self->channel);
    free(self);
}

static int fail(struct gpu_channel *self, int32_t pe, int status)
{
    gpsh_flow_fail(&self->channel.flows[pe], status);
    self->channel.failed = true;
    return status;
}

static void complete(struct gpu_channel *self, int status)
{
    unsigned slot = (unsigned)(self->completed % ENTRIES);
    struct entry *entry = &self->entries[slot];
    if (entry->result && !status)
        memcpy(entry->result, &self->queue->results[slot], entry->width);
    if (status)
        fail(self, entry->pe, status); // before it counts as complete
    self->completed++;
    self->channel.pending--;
    gpsh_count_add(&self->channel.flows[entry->pe].completed, 1);
    if (entry->completion)
        entry->completion->done(entry->completion, status);
}

// The processor accesses the other regions, which are host memory, but not this PE's heap.
static int post_beside(struct gpu_channel *self, const struct gpsh_op *op, char *base)
{
    struct gpsh_op rest = *op;
    bool on_gpu = op->bytes && gpsh_env_in_heap(self->env, op->local, op->bytes);
    if (op->kind == GPSH_OP_AMO || !on_gpu)
        return gpsh_direct_post(&self->channel, op, base);
    bool get = op->kind == GPSH_OP_GET;
    char *there = base + op->remote;
    int status =
        self->env->copy(get ? op->local : there, get ? there : op->local, (size_t)op->bytes);
    rest.bytes = 0;
    return status < 0 ? fail(self, op->pe, status) : gpsh_direct_post(&self->channel, &rest, base);
}

int gpsh_p2p_gpu_post(struct gpsh_channel *channel, const struct gpsh_op *op, char *base)
{
    struct gpu_channel *self = (struct gpu_channel *)channel;
    // After everything that is in the queue.
    if (op->region != GPSH_HEAP)
        return self->posted == self->completed ? post_beside(self, op, base) : GPSH_POST_AGAIN;
    if (self->posted - self->completed == ENTRIES)
        return GPSH_POST_AGAIN;
    int status =
        gpsh_queue_do(self->ops, self->queue, op, base, (unsigned)(self->posted % ENTRIES));
    if (status < 0)
        return fail(self, op->pe, status);
    self->entries[self->posted % ENTRIES] =
        (struct entry){.completion = op->completion,
                       .pe = op->pe,
                       .width = op->width,
                       .result = op->kind == GPSH_OP_AMO ? op->result : NULL};
    self->posted++;
    gpsh_count_add(&channel->flows[op->pe].posted, 1);
    channel->pending++;
    while (status == GPSH_POST_DONE && self->completed < self->posted)
        complete(self, 0); // the queue is empty
    return status;
}

int gpsh_p2p_gpu_flush(struct gpsh_channel *channel)
{
    struct gpu_channel *self = (struct gpu_channel *)channel;
    if (self->marked == self->posted)
        return 0;
    int status = self->ops->mark(self->queue, self->posted);
    if (!status)
        self->marked = self->posted;
    return status;
}

// A CUDA context that broke (a kernel of the program faulted) never reaches its marks: everything
// fails then.
static int check(struct gpu_channel *self)
{
    int status = self->ops->check(self->queue), failed = 0;
    while (status < 0 && self->completed < self->posted) {
        complete(self, status);
        failed++;
    }
    return failed;
}

int gpsh_p2p_gpu_progress(struct gpsh_channel *channel)
{
    struct gpu_channel *self = (struct gpu_channel *)channel;
    if (self->completed == self->posted)
        return 0;
    // Posts alone ring nothing: a mark costs as much as a small copy, and many operations share
    // one.
    if (self->marked <= *self->queue->done)
        gpsh_p2p_gpu_flush(channel);
    int count = 0;
    uint64_t done = *self->queue->done;
    __atomic_thread_fence(__ATOMIC_ACQUIRE); // after it, results and fetched data are visible
    while (self->completed < done) {
        complete(self, 0);
        count++;
    }
    self->idle = count ? 0 : self->idle + 1;
    return self->idle % CHECK_EVERY == CHECK_EVERY - 1 ? check(self) : count;
}
