// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // what pmix.h needs
#include "bootstrap/pmix_reply.h"

#include <pthread.h>
#include <stdlib.h>

#include "core/clock.h"
#include "core/thread.h"

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
    struct gpsh_pmix_reply *r = calloc(1, sizeof(*r));
    if (!r)
        return NULL;
    pthread_mutex_init(&r->mutex, NULL);
    gpsh_cond_init(&r->arrived_cond);
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

bool gpsh_pmix_reply_wait(struct gpsh_pmix_reply *r, long ms)
{
    const uint64_t until_ns = gpsh_clock_in(ms);
    int error = 0;
    pthread_mutex_lock(&r->mutex);
    while (!r->arrived && error == 0)
        error = ms < 0 ? pthread_cond_wait(&r->arrived_cond, &r->mutex)
                       : gpsh_cond_wait_until(&r->arrived_cond, &r->mutex, until_ns);
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
