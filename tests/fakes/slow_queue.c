// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE
#include "slow_queue.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/error.h"
#include "transport/direct.h"

enum { JOBS = 1024, CAPTURED_MOST = 64 };

enum job_kind { JOB_COPY, JOB_AMO, JOB_MARK };

struct job {
    enum job_kind kind;
    void *to;
    const void *from;
    size_t bytes;
    struct gpsh_op op;
    uint64_t number;
    char captured[CAPTURED_MOST];
};

struct slow_queue {
    struct gpsh_queue queue;
    uint64_t done;
    uint64_t *results;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread;
    uint64_t posted, taken;
    bool closing;
    struct job jobs[JOBS];
};

_Atomic int slow_queue_broken, slow_queue_held;

static void run_job(struct slow_queue *q, struct job *job)
{
    uint64_t old;
    switch (job->kind) {
    case JOB_COPY:
        gpsh_direct_copy(job->to, job->from ? job->from : job->captured, job->bytes);
        break;
    case JOB_AMO:
        old = job->op.width == 8
                  ? gpsh_direct_amo64(job->to, job->op.amo, job->op.operand, job->op.compare)
                  : gpsh_direct_amo32(job->to, job->op.amo, (uint32_t)job->op.operand,
                                      (uint32_t)job->op.compare);
        if (job->op.result)
            q->results[job->number] = old;
        break;
    case JOB_MARK: __atomic_store_n(&q->done, job->number, __ATOMIC_RELEASE); break;
    }
}

static void *work(void *arg)
{
    struct slow_queue *q = arg;
    pthread_mutex_lock(&q->lock);
    for (;;) {
        while (q->taken == q->posted && !q->closing)
            pthread_cond_wait(&q->changed, &q->lock);
        if (q->taken == q->posted)
            break;
        struct job *job = &q->jobs[q->taken % JOBS];
        pthread_mutex_unlock(&q->lock);
        if (q->taken % 7 == 0) // late enough to be noticed
            nanosleep(&(struct timespec){.tv_nsec = 1000}, NULL);
        while (atomic_load(&slow_queue_held))
            nanosleep(&(struct timespec){.tv_nsec = 1000}, NULL);
        if (!atomic_load(&slow_queue_broken))
            run_job(q, job);
        pthread_mutex_lock(&q->lock);
        q->taken++;
        pthread_cond_broadcast(&q->changed);
    }
    pthread_mutex_unlock(&q->lock);
    return NULL;
}

static void push(struct gpsh_queue *self, const struct job *job)
{
    struct slow_queue *q = (struct slow_queue *)self;
    pthread_mutex_lock(&q->lock);
    while (q->posted - q->taken == JOBS)
        pthread_cond_wait(&q->changed, &q->lock);
    q->jobs[q->posted++ % JOBS] = *job;
    pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->lock);
}

static int slow_open(unsigned results, struct gpsh_queue **out)
{
    struct slow_queue *q = calloc(1, sizeof *q);
    if (q)
        q->results = calloc(results, sizeof *q->results);
    if (!q || !q->results)
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory for a slow queue");
    q->queue = (struct gpsh_queue){.done = &q->done, .results = q->results};
    pthread_mutex_init(&q->lock, NULL);
    pthread_cond_init(&q->changed, NULL);
    pthread_create(&q->thread, NULL, work, q);
    *out = &q->queue;
    return 0;
}

static void slow_close(struct gpsh_queue *self)
{
    struct slow_queue *q = (struct slow_queue *)self;
    pthread_mutex_lock(&q->lock);
    q->closing = true;
    pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->lock);
    pthread_join(q->thread, NULL);
    pthread_mutex_destroy(&q->lock);
    pthread_cond_destroy(&q->changed);
    free(q->results);
    free(q);
}

static int slow_put(struct gpsh_queue *queue, void *to, const void *from, size_t bytes,
                    bool capture)
{
    struct job job = {.kind = JOB_COPY, .to = to, .from = from, .bytes = bytes};
    bool captured = capture && bytes <= CAPTURED_MOST;
    if (captured) {
        memcpy(job.captured, from, bytes);
        job.from = NULL;
    }
    push(queue, &job);
    return captured ? GPSH_POST_CAPTURED : GPSH_POST_IN_FLIGHT;
}

static int slow_get(struct gpsh_queue *queue, void *to, const void *from, size_t bytes)
{
    push(queue, &(struct job){.kind = JOB_COPY, .to = to, .from = from, .bytes = bytes});
    return GPSH_POST_IN_FLIGHT;
}

static int slow_amo(struct gpsh_queue *queue, void *word, const struct gpsh_op *op, unsigned result)
{
    push(queue, &(struct job){.kind = JOB_AMO, .to = word, .op = *op, .number = result});
    return 0;
}

static int slow_mark(struct gpsh_queue *queue, uint64_t number)
{
    push(queue, &(struct job){.kind = JOB_MARK, .number = number});
    return 0;
}

static int slow_check(struct gpsh_queue *queue)
{
    (void)queue;
    int broken = atomic_load(&slow_queue_broken);
    return broken ? gpsh_fail(broken, "the slow queue is broken") : 0;
}

const struct gpsh_queue_ops slow_queue_ops = {
    .open = slow_open,
    .close = slow_close,
    .put = slow_put,
    .get = slow_get,
    .amo = slow_amo,
    .mark = slow_mark,
    .check = slow_check,
};
