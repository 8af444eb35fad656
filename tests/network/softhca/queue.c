// SPDX-License-Identifier: BSD-3-Clause
// Completion queues and completion channels.
#define _GNU_SOURCE // pipe2
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "softhca.h"

SHCA_EXPORT struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
    struct shca_channel *channel = calloc(1, sizeof *channel);
    int fds[2];
    if (!channel)
        return NULL;
    if (pipe2(fds, O_CLOEXEC)) {
        free(channel);
        return NULL;
    }
    channel->ibv.context = context;
    channel->ibv.fd = fds[0];
    channel->writer = fds[1];
    shca_context_use(context, 1);
    return &channel->ibv;
}

SHCA_EXPORT int ibv_destroy_comp_channel(struct ibv_comp_channel *ibv)
{
    if (ibv->refcnt)
        return EBUSY;
    close(((struct shca_channel *)ibv)->writer);
    close(ibv->fd);
    shca_context_use(ibv->context, -1);
    free(ibv);
    return 0;
}

SHCA_EXPORT struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
                                         struct ibv_comp_channel *channel, int vector)
{
    if (cqe < 1 || cqe > shca_settings.max_cqe || vector) {
        errno = EINVAL;
        return NULL;
    }
    struct shca_cq *cq = shca_lines(sizeof *cq);
    if (!cq)
        return NULL;
    cq->ring = calloc((size_t)cqe, sizeof *cq->ring);
    if (!cq->ring) {
        free(cq);
        return NULL;
    }
    cq->depth = (uint32_t)cqe;
    pthread_mutex_init(&cq->lock, NULL);
    cq->ibv.context = context;
    cq->ibv.channel = channel;
    cq->ibv.cq_context = cq_context;
    cq->ibv.cqe = cqe;
    pthread_mutex_init(&cq->ibv.mutex, NULL);
    pthread_cond_init(&cq->ibv.cond, NULL);
    if (channel)
        channel->refcnt++;
    shca_context_use(context, 1);
    return &cq->ibv;
}

SHCA_EXPORT int ibv_resize_cq(struct ibv_cq *cq, int cqe)
{
    return EOPNOTSUPP;
}

// Like the real one it waits until every event that was taken has been acknowledged.
SHCA_EXPORT int ibv_destroy_cq(struct ibv_cq *ibv)
{
    struct shca_cq *cq = (struct shca_cq *)ibv;
    if (atomic_load(&cq->users))
        return EBUSY;
    if (ibv->channel)
        shca_pipe_forget(ibv->channel->fd, ((struct shca_channel *)ibv->channel)->writer,
                         sizeof ibv, ibv);
    shca_context_forget(ibv->context, ibv);
    pthread_mutex_lock(&ibv->mutex);
    while (ibv->comp_events_completed != cq->events_sent)
        pthread_cond_wait(&ibv->cond, &ibv->mutex);
    pthread_mutex_unlock(&ibv->mutex);
    if (ibv->channel)
        ibv->channel->refcnt--;
    shca_context_use(ibv->context, -1);
    pthread_mutex_destroy(&cq->lock);
    pthread_mutex_destroy(&ibv->mutex);
    pthread_cond_destroy(&ibv->cond);
    shca_mlx5_cq_free(cq);
    free(cq->ring);
    free(cq);
    return 0;
}

SHCA_EXPORT int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq,
                                 void **cq_context)
{
    if (read(channel->fd, cq, sizeof *cq) != sizeof *cq)
        return -1;
    *cq_context = (*cq)->cq_context;
    struct shca_cq *own = (struct shca_cq *)*cq;
    pthread_mutex_lock(&own->ibv.mutex);
    own->events_sent++;
    pthread_mutex_unlock(&own->ibv.mutex);
    return 0;
}

SHCA_EXPORT void ibv_ack_cq_events(struct ibv_cq *cq, unsigned n)
{
    pthread_mutex_lock(&cq->mutex);
    cq->comp_events_completed += n;
    pthread_cond_signal(&cq->cond);
    pthread_mutex_unlock(&cq->mutex);
}

static void notify(struct shca_cq *cq, const struct shca_cqe *cqe)
{
    bool wanted =
        cq->armed == 1 || (cq->armed == 2 && (cqe->solicited || cqe->wc.status != IBV_WC_SUCCESS));
    if (!wanted || !cq->ibv.channel)
        return;
    cq->armed = 0;
    struct ibv_cq *ibv = &cq->ibv;
    if (write(((struct shca_channel *)ibv->channel)->writer, &ibv, sizeof ibv) != sizeof ibv)
        shca_say("%s: a completion event is lost", ibv->context->device->name);
}

// A CQ that overflows is dead, as on a real device.
static void overrun(struct shca_cq *cq)
{
    if (cq->overrun)
        return;
    cq->overrun = true;
    shca_say("%s: a completion queue of %u entries overflowed", cq->ibv.context->device->name,
             cq->depth);
    struct ibv_async_event event = {.event_type = IBV_EVENT_CQ_ERR, .element.cq = &cq->ibv};
    shca_context_event(cq->ibv.context, &event);
}

enum ibv_wc_opcode shca_wc_opcode(uint32_t opcode)
{
    switch (opcode) {
    case IBV_WR_RDMA_READ: return IBV_WC_RDMA_READ;
    case IBV_WR_ATOMIC_FETCH_AND_ADD: return IBV_WC_FETCH_ADD;
    case IBV_WR_ATOMIC_CMP_AND_SWP: return IBV_WC_COMP_SWAP;
    case IBV_WR_SEND:
    case IBV_WR_SEND_WITH_IMM: return IBV_WC_SEND;
    default: return IBV_WC_RDMA_WRITE;
    }
}

void shca_cq_push(struct ibv_cq *ibv, const struct shca_cqe *cqe)
{
    struct shca_cq *cq = (struct shca_cq *)ibv;
    pthread_mutex_lock(&cq->lock);
    uint32_t count = atomic_load_explicit(&cq->count, memory_order_relaxed);
    bool fits = !cq->overrun && (cq->mlx5 ? shca_mlx5_cqe_push(cq, cqe) : count < cq->depth);
    if (!fits) {
        overrun(cq);
    } else if (cq->mlx5) {
        notify(cq, cqe);
    } else {
        uint32_t at = cq->head + count;
        cq->ring[at < cq->depth ? at : at - cq->depth] = *cqe;
        atomic_store_explicit(&cq->count, count + 1, memory_order_release);
        notify(cq, cqe);
    }
    pthread_mutex_unlock(&cq->lock);
}

// Takes out the completions of a queue pair that is reset or destroyed.
void shca_cq_forget(struct ibv_cq *ibv, const struct shca_qp *qp)
{
    struct shca_cq *cq = (struct shca_cq *)ibv;
    pthread_mutex_lock(&cq->lock);
    uint32_t count = atomic_load(&cq->count), kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct shca_cqe *from = &cq->ring[(cq->head + i) % cq->depth];
        if (from->qp != qp)
            cq->ring[(cq->head + kept++) % cq->depth] = *from;
    }
    atomic_store(&cq->count, kept);
    pthread_mutex_unlock(&cq->lock);
}

static int take(struct shca_cq *cq, int n, struct ibv_wc *wc)
{
    if (!atomic_load_explicit(&cq->count, memory_order_acquire))
        return 0;
    pthread_mutex_lock(&cq->lock);
    uint32_t count = atomic_load_explicit(&cq->count, memory_order_relaxed);
    int taken = 0;
    for (; taken < n && count; taken++, count--) {
        const struct shca_cqe *cqe = &cq->ring[cq->head];
        wc[taken] = cqe->wc;
        if (cqe->send)
            atomic_store_explicit(&cqe->qp->tail, cqe->retires, memory_order_release);
        cq->head = cq->head + 1 < cq->depth ? cq->head + 1 : 0;
    }
    atomic_store_explicit(&cq->count, count, memory_order_release);
    pthread_mutex_unlock(&cq->lock);
    return taken;
}

int shca_poll_cq(struct ibv_cq *ibv, int n, struct ibv_wc *wc)
{
    struct shca_cq *cq = (struct shca_cq *)ibv;
    if (cq->mlx5) {
        shca_misuse(SHCA_MISUSE_VERBS, 0, "ibv_poll_cq, but the ring is the program's");
        return -1;
    }
    int taken = take(cq, n, wc);
    if (taken || n < 1)
        return taken;
    if (cq->overrun)
        return -1;
    if (shca_settings.null)
        return 0; // what was posted is complete already; the engine's thread has the datagrams
    shca_engine_help(shca_device_of(ibv->context));
    return take(cq, n, wc);
}

int shca_req_notify_cq(struct ibv_cq *ibv, int solicited_only)
{
    struct shca_cq *cq = (struct shca_cq *)ibv;
    if (!ibv->channel)
        return EINVAL;
    pthread_mutex_lock(&cq->lock);
    cq->armed = solicited_only && cq->armed != 1 ? 2 : 1;
    pthread_mutex_unlock(&cq->lock);
    return 0;
}
