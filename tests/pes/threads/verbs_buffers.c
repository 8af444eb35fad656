// SPDX-License-Identifier: BSD-3-Clause
// Two threads put on channels of their own, from registered and other memory, while a third
// registers and unregisters buffers all the time. Over a fake libibverbs; ThreadSanitizer is what
// checks it.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "tests/fakes/fake_pair.h"

enum { PUTS = 1500, BYTES = 600, BUFFERS = 8, BUFFER_BYTES = 8192, REGISTRATIONS = 400 };

struct worker {
    pthread_t thread;
    struct gpsh_channel *channel;
    char *steady; // a buffer that stays registered
    uint64_t where;
    int failed;
};

static struct fake_pair pair;

static void fail(struct worker *worker, const char *what)
{
    fprintf(stderr, "%s: %s\n", what, gpsh_last_error());
    worker->failed = 1;
}

static void settle(struct worker *worker)
{
    while (worker->channel->pending) {
        fake_run(16, IBV_WC_SUCCESS);
        gpsh_verbs_ops.progress(worker->channel);
    }
}

static void *put_all(void *arg)
{
    struct worker *worker = arg;
    char outside[BYTES];
    for (int i = 0; i < PUTS && !worker->failed; i++) {
        char *from = i % 2 ? outside : worker->steady;
        settle(worker);
        memset(from, i, BYTES);
        struct gpsh_op op = fake_put(from, worker->where, BYTES);
        if (gpsh_verbs_ops.post(worker->channel, &op) < 0)
            fail(worker, "put");
    }
    settle(worker);
    for (int k = 0; k < BYTES; k++)
        if (pair.there[worker->where + (uint64_t)k] != (char)(PUTS - 1))
            fail(worker, "the last put is not what arrived");
    return NULL;
}

static void *register_all(void *arg)
{
    struct worker *worker = arg;
    char *memory = malloc((size_t)BUFFERS * BUFFER_BYTES);
    for (int i = 0; i < REGISTRATIONS * BUFFERS && !worker->failed; i++) {
        struct gpsh_region region = {memory + (size_t)(i * 5 % BUFFERS) * BUFFER_BYTES,
                                     BUFFER_BYTES, GPSH_MEMORY_HOST, -1, -1};
        int status = i / BUFFERS % 2 ? gpsh_verbs_ops.buffer_unregister(pair.transport, region.base)
                                     : gpsh_verbs_ops.buffer_register(pair.transport, &region);
        if (status)
            fail(worker, "buffer");
    }
    free(memory);
    return NULL;
}

static int start(struct worker *worker, void *(*body)(void *), int channel)
{
    worker->where = (uint64_t)channel * 65536;
    worker->channel = pair.channel;
    if (channel && gpsh_verbs_ops.channel_open(pair.transport, channel, &worker->channel))
        return 1;
    worker->steady = malloc(BUFFER_BYTES);
    struct gpsh_region region = {worker->steady, BUFFER_BYTES, GPSH_MEMORY_HOST, -1, -1};
    return gpsh_verbs_ops.buffer_register(pair.transport, &region) ||
           pthread_create(&worker->thread, NULL, body, worker) != 0;
}

int main(void)
{
    struct worker workers[3] = {{0}};
    fake_reset();
    pair.n_channels = 3;
    int failed = fake_pair_open(&pair);
    for (int i = 0; i < 3 && !failed; i++)
        failed = start(&workers[i], i < 2 ? put_all : register_all, i);
    if (failed) {
        fprintf(stderr, "cannot start: %s\n", gpsh_last_error());
        return 1;
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(workers[i].thread, NULL);
        failed |= workers[i].failed;
    }
    fake_pair_close(&pair);
    for (int i = 0; i < 3; i++)
        free(workers[i].steady);
    return failed || fake.live_objects != 0;
}
