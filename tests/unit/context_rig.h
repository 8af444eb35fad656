// SPDX-License-Identifier: BSD-3-Clause
// Contexts over a fake transport that does nothing until it is told to, and writes down what it was
// asked for. Each test program has one of its own.
#ifndef CONTEXT_RIG_H
#define CONTEXT_RIG_H

#include <criterion/criterion.h>
#include <stdbool.h>
#include <string.h>

#include "api/argument.h"
#include "comm/contexts.h"
#include "connect/net.h"
#include "core/config.h"
#include "job/failure.h"
#include "job/job.h"
#include "memory/heap.h"

enum { PES = 3, CHANNELS = 4 };

struct fake_channel {
    struct gpsh_channel channel;
    struct gpsh_flow flows[PES];
    int index;
    bool open;
};

static struct {
    int full;   // so many posts find no room
    int answer; // what post returns when there is room
    int complete_per_progress;
    int fail_pe, fail_code; // progress fails this PE's flow
    int flushes_after;      // so many calls later what it had under way is complete
    struct gpsh_op last;
    uint64_t others; // under way, of all channels, when that was posted
    int posts, flushes, fences, progresses, opened;
} fake;
static struct gpsh_transport transport, second;
static struct fake_channel channels[2 * CHANNELS]; // the latter half of `second`

static int fake_open(struct gpsh_transport *self, int index, struct gpsh_channel **out)
{
    cr_assert(index >= 0 && index < CHANNELS);
    index += self == &second ? CHANNELS : 0;
    cr_assert(!channels[index].open, "channel %d is opened twice", index);
    struct fake_channel *c = &channels[index];
    *c = (struct fake_channel){.index = index, .open = true};
    c->channel = (struct gpsh_channel){.ops = self->ops, .transport = self, .flows = c->flows};
    *out = &c->channel;
    ++fake.opened;
    return 0;
}

static void fake_close(struct gpsh_channel *channel)
{
    ((struct fake_channel *)channel)->open = false;
}

static int fake_post(struct gpsh_channel *channel, const struct gpsh_op *op)
{
    if (fake.full > 0) {
        --fake.full;
        return GPSH_POST_AGAIN;
    }
    ++fake.posts;
    fake.last = *op;
    fake.others = 0;
    for (size_t i = 0; i < sizeof channels / sizeof *channels; ++i)
        fake.others += channels[i].channel.pending;
    ++channel->flows[op->pe].posted;
    ++channel->pending;
    return fake.answer;
}

static int fake_flush(struct gpsh_channel *channel)
{
    ++fake.flushes;
    return 0;
}

static void fake_fence(struct gpsh_channel *channel, int pe)
{
    ++fake.fences;
}

static int fake_progress(struct gpsh_channel *channel)
{
    ++fake.progresses;
    if (fake.fail_code != 0) {
        struct gpsh_flow *failed = &channel->flows[fake.fail_pe];
        failed->safe = failed->error ? failed->safe : failed->completed;
        failed->error = fake.fail_code;
        for (; fake.flushes_after == 0 && failed->completed < failed->posted; ++failed->completed)
            --channel->pending;
        fake.flushes_after -= fake.flushes_after > 0;
    }
    int done = 0;
    for (int pe = 0; pe < PES; ++pe) {
        struct gpsh_flow *flow = &channel->flows[pe];
        while (flow->error == 0 && flow->completed < flow->posted &&
               done < fake.complete_per_progress) {
            ++flow->completed;
            --channel->pending;
            ++done;
        }
    }
    return done;
}

static const struct gpsh_transport_ops fake_ops = {
    .name = "fake",
    .caps = GPSH_CAP_NIC_ATOMICS,
    .channel_open = fake_open,
    .channel_close = fake_close,
    .post = fake_post,
    .flush = fake_flush,
    .fence = fake_fence,
    .progress = fake_progress,
};

static struct gpsh_transport transport = {.ops = &fake_ops}, second = {.ops = &fake_ops};
static struct gpsh_peer peers[PES];
static char *direct[PES], *control_map[PES], *heap_map[PES];
static char heap[4096] __attribute__((aligned(64)));

static void begin_with(int transports, bool mixed)
{
    memset(&fake, 0, sizeof fake);
    fake.answer = GPSH_POST_IN_FLIGHT;
    fake.complete_per_progress = 1;
    memset(channels, 0, sizeof channels);
    for (int pe = 0; pe < PES; ++pe)
        peers[pe] = (struct gpsh_peer){.data = 0, .amo = 0, .reason = ""};
    direct[2] = mixed ? heap : NULL;
    gpsh_job_state.peers = peers;
    gpsh_heap_state.direct = direct;
    gpsh_heap_state.mapped[GPSH_HEAP] = heap_map;
    gpsh_heap_state.mapped[GPSH_CONTROL] = control_map;
    gpsh_heap_state.base = heap;
    gpsh_heap_state.bytes = sizeof heap;
    gpsh_heap_state.user_bytes = gpsh_heap_state.first_bytes = sizeof heap;
    gpsh_net_state.cpu_atomics = false;
    gpsh_net_state.transports[0] = &transport;
    gpsh_net_state.transports[1] = &second;
    for (int i = 0; i < 2; ++i)
        gpsh_net_state.envs[i] = (struct gpsh_transport_env){.channels = CHANNELS, .n_pes = PES};
    gpsh_net_state.n_transports = transports;
    gpsh_settings_state.proxy_threads = 1;
    gpsh_job_state.n_pes = PES;
    cr_assert_eq(gpsh_contexts_init(), 0);
    gpsh_contexts_survey();
}

// PE 0 of three. PE 2 is reached by stores if `mixed`, its atomics by the transport all the same.
static void begin(bool mixed)
{
    begin_with(1, mixed);
}

static void end(void)
{
    gpsh_contexts_finalize();
    for (int i = 0; i < 2 * CHANNELS; ++i)
        cr_assert(!channels[i].open, "channel %d was left open", i);
}

static struct gpsh_op put_op(size_t bytes)
{
    return (struct gpsh_op){.kind = GPSH_OP_PUT, .pe = 1, .local = heap, .bytes = bytes};
}

#endif
