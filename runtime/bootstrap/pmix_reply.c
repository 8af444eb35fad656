// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // what pmix.h needs
#include "bootstrap/pmix_reply.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

struct gpsh_pmix_reply {
    pthread_mutex_t mutex;
    pthread_cond_t arrived_cond;
    bool arrived;
    bool abandoned;
    pmix_status_t status;
    size_t number;
};

struct gpsh_pmix_reply *gpsh_pmix_reply_create(void)
{
    pthread_condattr_t monotonic;
    struct gpsh_pmix_reply *r = calloc(1, sizeof(*r));
    if (!r)
        return NULL;
    pthread_mutex_init(&r->mutex, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&r->arrived_cond, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return r;
}

void gpsh_pmix_reply_destroy(struct gpsh_pmix_reply *r)
{
    if (!r)
        return;
    pthread_cond_destroy(&r->arrived_cond);
    pthread_mutex_destroy(&r->mutex);
    free(r);
}

void gpsh_pmix_reply_number(pmix_status_t status, size_t number, void *arg)
{
    struct gpsh_pmix_reply *r = arg;
    pthread_mutex_lock(&r->mutex);
    r->status = status;
    r->number = number;
    r->arrived = true;
    bool abandoned = r->abandoned;
    pthread_cond_signal(&r->arrived_cond);
    pthread_mutex_unlock(&r->mutex);
    if (abandoned)
        gpsh_pmix_reply_destroy(r);
}

void gpsh_pmix_reply_status(pmix_status_t status, void *arg)
{
    gpsh_pmix_reply_number(status, 0, arg);
}

static struct timespec in_ms(long ms)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_sec += ms / 1000;
    t.tv_nsec += ms % 1000 * 1000000;
    if (t.tv_nsec >= 1000000000) {
        t.tv_sec++;
        t.tv_nsec -= 1000000000;
    }
    return t;
}

bool gpsh_pmix_reply_wait(struct gpsh_pmix_reply *r, long ms)
{
    struct timespec until = in_ms(ms < 0 ? 0 : ms);
    int error = 0;
    pthread_mutex_lock(&r->mutex);
    while (!r->arrived && error == 0)
        error = ms < 0 ? pthread_cond_wait(&r->arrived_cond, &r->mutex)
                       : pthread_cond_timedwait(&r->arrived_cond, &r->mutex, &until);
    bool arrived = r->arrived;
    pthread_mutex_unlock(&r->mutex);
    return arrived;
}

bool gpsh_pmix_reply_abandon(struct gpsh_pmix_reply *r)
{
    pthread_mutex_lock(&r->mutex);
    bool arrived = r->arrived;
    r->abandoned = true;
    pthread_mutex_unlock(&r->mutex);
    return arrived;
}

pmix_status_t gpsh_pmix_reply_get(const struct gpsh_pmix_reply *r, size_t *number)
{
    if (number)
        *number = r->number;
    return r->status;
}
