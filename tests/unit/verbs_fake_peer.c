// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE
#include "verbs_fake_peer.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "core/error.h"

struct fake_pair pair;
struct fake_peer peer;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // of what PE 0 has sent
static struct ibv_qp *datagrams;                         // by which it has sent

void reply(const struct gpsh_verbs_message *to, uint8_t kind, uint32_t own)
{
    unsigned char bytes[GPSH_VERBS_MESSAGE_BYTES];
    struct gpsh_verbs_message message = *to;
    message.kind = kind;
    message.from = 1;
    message.to = 0;
    message.own = own;
    message.yours = to->own;
    message.reason = peer.refuses ? (uint32_t)peer.refuses : to->reason;
    gpsh_verbs_message_write(&message, bytes);
    for (int i = 0; i <= peer.repeats; i++)
        fake_datagram(datagrams, bytes, sizeof bytes);
}

// As an end of its own would. False: there is nothing to say. The peer's attempt has the number of
// PE 0's and 6 more, which is higher than all before, too.
static bool answer(const struct gpsh_verbs_message *message)
{
    static const uint8_t answers[] = {[GPSH_VERBS_GREETS] = GPSH_VERBS_READY,
                                      [GPSH_VERBS_READY] = GPSH_VERBS_UP,
                                      [GPSH_VERBS_CLOSES] = GPSH_VERBS_CLOSED};
    uint8_t kind = message->kind < sizeof answers ? answers[message->kind] : 0;
    if (kind == GPSH_VERBS_CLOSED && peer.keeps)
        kind = GPSH_VERBS_KEEPS;
    if (kind)
        reply(message, kind, 6 + message->own);
    return kind;
}

static void play(struct ibv_qp *from, const void *bytes, size_t n)
{
    struct gpsh_verbs_message message;
    cr_assert(gpsh_verbs_message_parse(bytes, n, &message));
    pthread_mutex_lock(&lock);
    datagrams = from;
    peer.sent[peer.n_sent++ % MOST_SENT] = message;
    bool answered = !peer.mute && peer.loses-- <= 0;
    pthread_mutex_unlock(&lock);
    if (!answered)
        return;
    if (peer.refuses)
        reply(&message, GPSH_VERBS_REFUSES, 6 + message.own);
    else
        answer(&message);
}

// ---- Opening and closing ----

static void open_with(int rails, int channels, const char *setting)
{
    fake_reset();
    memset(&pair, 0, sizeof pair);
    memset(&peer, 0, sizeof peer);
    datagrams = NULL;
    fake.n_devices = rails;
    fake.datagram = play;
    pair.lazy = true;
    pair.n_channels = channels;
    pair.settings[0] = setting;
    cr_assert(fake_pair_open(&pair) == 0, "%s", gpsh_last_error());
}

void open_lazy(void)
{
    open_with(1, 1, NULL);
}

void close_all(void)
{
    fake_pair_close(&pair);
    cr_assert_eq(fake.live_objects, 0, "%d verbs objects were not destroyed", fake.live_objects);
}

void reopen_with(int channels, const char *setting)
{
    close_all();
    open_with(1, channels, setting);
}

void reopen_with_two_rails(void)
{
    close_all();
    open_with(2, 1, "GPUSHMEM_VERBS_RAILS=2");
}

// ---- What PE 0 sends ----

int count(int kind)
{
    int n = 0;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < peer.n_sent && i < MOST_SENT; i++)
        n += peer.sent[i].kind == kind;
    pthread_mutex_unlock(&lock);
    return n;
}

// Returns how many were sent by then.
static int sent_by_now(struct gpsh_verbs_message *last)
{
    pthread_mutex_lock(&lock);
    int n = peer.n_sent;
    *last = peer.sent[(n + MOST_SENT - 1) % MOST_SENT];
    pthread_mutex_unlock(&lock);
    return n;
}

struct gpsh_verbs_message last_sent(void)
{
    struct gpsh_verbs_message last;
    (void)sent_by_now(&last);
    return last;
}

void wait_until_sent(int kind, int n)
{
    while (count(kind) < n)
        nap();
}

// ---- What the peer says ----

struct gpsh_verbs_message greeting(void)
{
    const struct gpsh_verbs *verbs = (struct gpsh_verbs *)pair.transport;
    return (struct gpsh_verbs_message){.kind = GPSH_VERBS_GREETS,
                                       .n_rails = 1,
                                       .from = 1,
                                       .secret = verbs->secret,
                                       .own = 3,
                                       .qpns = {77}};
}

void hear(const struct gpsh_verbs_message *message)
{
    unsigned char bytes[GPSH_VERBS_MESSAGE_BYTES];
    gpsh_verbs_message_write(message, bytes);
    fake_datagram(gpsh_verbs_datagrams_qp(first_rail()), bytes, sizeof bytes);
}

int round_trips(struct gpsh_channel *channel)
{
    const int posts = fake.n_posts;
    int rounds = 0, answered = peer.n_sent;
    uint64_t last = 0;
    while (fake.n_posts == posts) {
        gpsh_verbs_ops.progress(channel);
        struct gpsh_verbs_message message;
        int said = sent_by_now(&message);
        uint64_t what = (uint64_t)message.own << 8 | message.kind;
        if (said > answered && answer(&message)) {
            rounds += what != last;
            last = what;
        }
        answered = said;
        nap();
    }
    return rounds;
}

// ---- What PE 0 does ----

void put(struct gpsh_channel *channel, uint64_t value, uint64_t to)
{
    struct gpsh_op op = fake_put((char *)&value, to, 8);
    op.flags = GPSH_OP_CAPTURE;
    cr_assert_geq(gpsh_verbs_ops.post(channel, &op), 0);
}

uint64_t there(uint64_t at)
{
    return *(uint64_t *)(void *)(pair.there + at);
}

void nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
}

void progress_for(int naps)
{
    for (int i = 0; i < naps; i++, nap())
        gpsh_verbs_ops.progress(pair.channel);
}

void finish(int pe)
{
    while (pair.channel->flows[pe].completed != pair.channel->flows[pe].posted) {
        fake_settle(&pair);
        nap();
    }
}

struct verbs_flow *flow_to(int pe)
{
    return verbs_flow_at((struct verbs_channel *)pair.channel, pe);
}

struct verbs_rail *first_rail(void)
{
    return ((struct gpsh_verbs *)pair.transport)->rails;
}
