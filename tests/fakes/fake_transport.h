// SPDX-License-Identifier: BSD-3-Clause
// A transport that keeps a journal of what is posted and completes it when the test says so.
#ifndef TESTS_FAKE_TRANSPORT_H
#define TESTS_FAKE_TRANSPORT_H

#include <string.h>

#include "core/error.h"
#include "transport/transport.h"

enum { FAKE_PES = 4, FAKE_JOURNAL = 4096 };

struct fake {
    struct gpsh_channel channel;
    struct gpsh_transport transport;
    struct gpsh_flow flows[FAKE_PES];
    struct gpsh_op ops[FAKE_JOURNAL];              // in posting order
    struct gpsh_completion *waiting[FAKE_JOURNAL]; // of ops not complete yet
    bool complete[FAKE_JOURNAL];
    int n_ops;
    int again;             // the next posts say AGAIN
    bool full;             // posts say AGAIN until progress
    int refuse;            // the next post fails with this status
    enum gpsh_post result; // what post returns: IN_FLIGHT, CAPTURED or DONE
    int flushes, fences, fence_pe;
    int ops_at_flush; // posted when flush was first called
    uint64_t fetch;   // value of fetches
    bool dry;         // move no data: addresses may be anything
};

static inline int fake_post(struct gpsh_channel *channel, const struct gpsh_op *op)
{
    struct fake *f = (struct fake *)channel;
    if (f->again > 0 || f->full) {
        f->again -= f->again > 0;
        return GPSH_POST_AGAIN;
    }
    if (f->refuse) {
        int status = f->refuse;
        f->refuse = 0;
        return gpsh_fail(status, "fake: refused");
    }
    int i = f->n_ops++ % FAKE_JOURNAL;
    f->ops[i] = *op;
    f->waiting[i] = op->completion;
    f->complete[i] = f->result == GPSH_POST_DONE;
    f->flows[op->pe].posted++;
    if (!f->dry && op->kind == GPSH_OP_GET && op->bytes <= 8 && f->result == GPSH_POST_DONE)
        memcpy(op->local, &f->fetch, op->bytes);
    if (f->result == GPSH_POST_DONE) {
        f->flows[op->pe].completed++;
        if (op->result)
            memcpy(op->result, &f->fetch, op->width);
        if (op->completion)
            op->completion->done(op->completion, 0);
    } else {
        f->channel.pending++;
    }
    return f->result;
}

// Completes the oldest `count` operations to `pe`, in order.
static inline void fake_complete(struct fake *f, int pe, int count)
{
    for (int i = 0; i < f->n_ops && i < FAKE_JOURNAL && count > 0; i++) {
        if (f->complete[i] || f->ops[i].pe != pe)
            continue;
        f->complete[i] = true;
        f->flows[pe].completed++;
        f->channel.pending--;
        count--;
        if (f->ops[i].kind == GPSH_OP_GET && f->ops[i].bytes <= 8)
            memcpy(f->ops[i].local, &f->fetch, f->ops[i].bytes);
        if (f->ops[i].result)
            memcpy(f->ops[i].result, &f->fetch, f->ops[i].width);
        if (f->waiting[i])
            f->waiting[i]->done(f->waiting[i], 0);
    }
}

// The peer is lost: everything pending to it fails, and counts as completed, as with every
// transport.
static inline void fake_fail(struct fake *f, int pe, int status)
{
    f->flows[pe].error = status;
    for (int i = 0; i < f->n_ops && i < FAKE_JOURNAL; i++) {
        if (f->complete[i] || f->ops[i].pe != pe)
            continue;
        f->complete[i] = true;
        f->flows[pe].completed++;
        f->channel.pending--;
        if (f->waiting[i])
            f->waiting[i]->done(f->waiting[i], status);
    }
}

static inline int fake_flush(struct gpsh_channel *channel)
{
    struct fake *f = (struct fake *)channel;
    if (!f->flushes++)
        f->ops_at_flush = f->n_ops;
    return 0;
}

static inline void fake_fence(struct gpsh_channel *channel, int pe)
{
    struct fake *f = (struct fake *)channel;
    f->fences++;
    f->fence_pe = pe;
}

static inline int fake_progress(struct gpsh_channel *channel)
{
    ((struct fake *)channel)->full = false;
    return 0;
}

static const struct gpsh_transport_ops fake_ops = {.name = "fake",
                                                   .post = fake_post,
                                                   .flush = fake_flush,
                                                   .fence = fake_fence,
                                                   .progress = fake_progress};

static inline void fake_init(struct fake *f)
{
    memset(f, 0, sizeof *f);
    f->channel =
        (struct gpsh_channel){.ops = &fake_ops, .transport = &f->transport, .flows = f->flows};
    f->transport.ops = &fake_ops;
}

#endif
