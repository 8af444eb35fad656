// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE
// Connections on first use: what a PE makes, says and answers, against a peer that the test plays.
#include <criterion/criterion.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "core/error.h"
#include "tests/fakes/fake_pair.h"
#include "transports/verbs/setup/verbs_message.h"
#include "transports/verbs/setup/verbs_setup.h"

enum { MOST = 64 };

static struct fake_pair pair;

// What PE 0 has sent, and by which queue pair.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct gpsh_verbs_message sent[MOST];
static struct ibv_qp *datagrams;
static int n_sent, lose, repeat;
static bool mute, keeps;
static int refuse, n_rails = 1; // of both

// The peer's attempt has the number of this end's, and a higher one than all before.
static void reply(const struct gpsh_verbs_message *to, uint8_t kind, uint32_t own)
{
    unsigned char bytes[GPSH_VERBS_MESSAGE_BYTES];
    struct gpsh_verbs_message message = *to;
    message.kind = kind;
    message.from = 1;
    message.to = 0;
    message.own = own;
    message.yours = to->own;
    message.reason = refuse ? (uint32_t)refuse : to->reason;
    gpsh_verbs_message_write(&message, bytes);
    for (int i = 0; i <= repeat; i++)
        fake_datagram(datagrams, bytes, sizeof bytes);
}

// What the peer's end says to that. False: nothing.
static bool answer(const struct gpsh_verbs_message *message)
{
    static const uint8_t answers[] = {[GPSH_VERBS_GREETS] = GPSH_VERBS_READY,
                                      [GPSH_VERBS_READY] = GPSH_VERBS_UP,
                                      [GPSH_VERBS_CLOSES] = GPSH_VERBS_CLOSED};
    uint8_t kind = message->kind < sizeof answers ? answers[message->kind] : 0;
    if (kind)
        reply(message, kind == GPSH_VERBS_CLOSED && keeps ? GPSH_VERBS_KEEPS : kind,
              6 + message->own);
    return kind;
}

static void play(struct ibv_qp *from, const void *bytes, size_t n)
{
    struct gpsh_verbs_message message;
    cr_assert(gpsh_verbs_message_parse(bytes, n, &message));
    pthread_mutex_lock(&lock);
    datagrams = from;
    sent[n_sent++ % MOST] = message;
    bool answered = !mute && lose-- <= 0;
    pthread_mutex_unlock(&lock);
    if (!answered)
        return;
    if (refuse)
        reply(&message, GPSH_VERBS_REFUSES, 6 + message.own);
    else
        answer(&message);
}

static void open_with(int channels, const char *setting)
{
    fake_reset();
    fake.n_devices = n_rails;
    memset(&pair, 0, sizeof pair);
    n_sent = lose = repeat = refuse = 0;
    mute = keeps = false;
    datagrams = NULL;
    fake.datagram = play;
    pair.lazy = true;
    pair.n_channels = channels;
    pair.settings[0] = setting;
    cr_assert(fake_pair_open(&pair) == 0, "%s", gpsh_last_error());
}

static void open_lazy(void)
{
    open_with(1, NULL);
}

static void close_all(void)
{
    fake_pair_close(&pair);
    cr_assert_eq(fake.live_objects, 0, "%d verbs objects were not destroyed", fake.live_objects);
}

TestSuite(verbs_connect, .init = open_lazy, .fini = close_all, .timeout = 60);

static int count(int kind)
{
    int n = 0;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < n_sent && i < MOST; i++)
        n += sent[i].kind == kind;
    pthread_mutex_unlock(&lock);
    return n;
}

static void nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
}

static void finish(int pe)
{
    while (pair.channel->flows[pe].completed != pair.channel->flows[pe].posted) {
        fake_settle(&pair);
        nap();
    }
}

static struct verbs_flow *flow_to(int pe)
{
    return verbs_flow_at((struct verbs_channel *)pair.channel, pe);
}

static void wait_until_sent(int kind, int n)
{
    while (count(kind) < n)
        nap();
}

Test(verbs_connect, open__nothing_is_made_for_a_peer)
{
    cr_assert_null(flow_to(0));
    cr_assert_null(flow_to(1));
    cr_assert_eq(fake.datagrams, 0);
}

Test(verbs_connect, post__first__waits_for_the_connection_with_its_source_captured)
{
    uint64_t value = 42;
    struct gpsh_op op = fake_put((char *)&value, 64, 8);
    op.flags = GPSH_OP_CAPTURE;
    mute = true;
    cr_assert_eq(fake_post_op(&pair, &op), GPSH_POST_CAPTURED);
    value = 43;
    wait_until_sent(GPSH_VERBS_GREETS, 2); // it is repeated
    cr_assert_eq(fake.n_posts, 0);
    mute = false;
    finish(1);
    cr_assert_eq(*(uint64_t *)(pair.there + 64), 42);
    cr_assert_eq(count(GPSH_VERBS_READY), 0, "who has an answer that is ready is up");
    cr_assert_geq(count(GPSH_VERBS_UP), 1);
}

Test(verbs_connect, post__to_oneself__needs_no_datagram)
{
    struct gpsh_op op = fake_put(pair.heap, 64, 8);
    op.pe = 0;
    fake_post_op(&pair, &op);
    finish(0);
    cr_assert_eq(fake.datagrams, 0);
}

Test(verbs_connect, post__until_no_slot_is_left__refused_for_now)
{
    mute = true;
    struct gpsh_op op = fake_put(pair.heap, 0, 8);
    int n = 0;
    while (fake_post_op(&pair, &op) != GPSH_POST_AGAIN)
        cr_assert_lt(n++, 10000);
    cr_assert_eq(pair.channel->flows[1].error, 0);
    mute = false;
    finish(1);
    cr_assert_eq(pair.channel->flows[1].completed, (uint64_t)n);
}

Test(verbs_connect, datagrams__lost_and_repeated__one_connection)
{
    lose = 3;
    repeat = 2;
    struct gpsh_op op = fake_put(pair.heap, 0, 8);
    fake_post_op(&pair, &op);
    int before = fake.live_objects;
    finish(1);
    cr_assert_geq(count(GPSH_VERBS_GREETS), 4);
    cr_assert_leq(fake.live_objects - before, 2, "a queue pair and a path");
}

Test(verbs_connect, refused__operations_fail_with_the_reason)
{
    refuse = ENOMEM;
    struct gpsh_op op = fake_put(pair.heap, 0, 8);
    cr_assert_geq(fake_post_op(&pair, &op), 0);
    finish(1);
    cr_assert_eq(pair.channel->flows[1].error, GPUSHMEM_ERR_TRANSPORT);
    cr_expect(strstr(flow_to(1)->link.why, "PE 1 refuses a connection: its NIC makes no queue pair "
                                           "for it (Cannot allocate memory)"),
              "%s", flow_to(1)->link.why);
    cr_assert_eq(pair.failed_pe, 1);
    cr_assert_eq(fake_post_op(&pair, &op), GPUSHMEM_ERR_TRANSPORT);
    struct gpsh_op own = op;
    own.pe = 0;
    cr_assert_geq(fake_post_op(&pair, &own), 0, "others are reached");
    finish(0);
    cr_assert_eq(pair.channel->flows[0].error, 0);
}

Test(verbs_connect, no_queue_pair_any_more__that_flow_fails_alone)
{
    struct gpsh_op own = fake_put(pair.heap, 0, 8), op = own;
    own.pe = 0;
    fake_post_op(&pair, &own);
    finish(0);
    fake.qp_error = EMFILE;
    cr_assert_geq(fake_post_op(&pair, &op), 0);
    finish(1);
    cr_assert_eq(pair.channel->flows[1].error, GPUSHMEM_ERR_TRANSPORT);
    cr_expect(strstr(flow_to(1)->link.why, "cannot create a queue pair") &&
                  strstr(flow_to(1)->link.why, "(Too many open files): raise `ulimit -n`"),
              "%s", flow_to(1)->link.why);
    fake_post_op(&pair, &own);
    finish(0);
    cr_assert_eq(pair.channel->flows[0].error, 0);
}

// It may be that other files are closed soon.
Test(verbs_connect, no_queue_pair_for_a_while__nothing_is_lost)
{
    static const int errors[] = {EMFILE, ENOMEM, EAGAIN};
    for (int i = 0; i < 3; i++) {
        fake_pair_close(&pair);
        open_lazy();
        struct gpsh_op op = fake_put(pair.heap, 0, 8);
        fake.qp_error = errors[i];
        cr_assert_geq(fake_post_op(&pair, &op), 0);
        for (int naps = 0; naps < 300; naps++, nap())
            gpsh_verbs_ops.progress(pair.channel);
        cr_assert_eq(count(GPSH_VERBS_GREETS), 0);
        fake.qp_error = 0;
        finish(1);
        cr_assert_eq(pair.channel->flows[1].error, 0);
    }
}

Test(verbs_connect, peer_lost_in_the_handshake__operations_fail)
{
    mute = true;
    struct gpsh_op op = fake_put(pair.heap, 0, 8);
    fake_post_op(&pair, &op);
    wait_until_sent(GPSH_VERBS_GREETS, 1);
    gpsh_verbs_ops.peer_lost(pair.transport, 1);
    finish(1);
    cr_assert_eq(pair.channel->flows[1].error, GPUSHMEM_ERR_PE_FAILED);
    cr_assert_eq(fake_post_op(&pair, &op), GPUSHMEM_ERR_PE_FAILED);
}

static struct gpsh_verbs_message greeting(void)
{
    const struct gpsh_verbs *verbs = (struct gpsh_verbs *)pair.transport;
    return (struct gpsh_verbs_message){.kind = GPSH_VERBS_GREETS,
                                       .n_rails = 1,
                                       .from = 1,
                                       .secret = verbs->secret,
                                       .own = 3,
                                       .qpns = {77}};
}

static void hear(const struct gpsh_verbs_message *message)
{
    unsigned char bytes[GPSH_VERBS_MESSAGE_BYTES];
    const struct gpsh_verbs *verbs = (struct gpsh_verbs *)pair.transport;
    gpsh_verbs_message_write(message, bytes);
    struct ibv_qp *qp = gpsh_verbs_datagrams_qp(&verbs->rails[0]);
    fake_datagram(qp, bytes, sizeof bytes);
}

Test(verbs_connect, peer_greets__answered_though_the_program_does_nothing)
{
    struct gpsh_verbs_message message = greeting();
    mute = true;
    hear(&message);
    wait_until_sent(GPSH_VERBS_READY, 1);
    cr_assert(sent[0].yours == 3 && sent[0].own && sent[0].to == 1);
    cr_assert_null(flow_to(1)->slots, "books are for who posts");
    cr_assert_not(verbs_is_up(flow_to(1)), "the peer has not said that it is connected");
    struct gpsh_op op = fake_put(pair.heap, 64, 8); // both want it now
    fake_post_op(&pair, &op);
    message.kind = GPSH_VERBS_UP;
    message.yours = sent[0].own;
    hear(&message);
    finish(1);
    cr_assert_eq(count(GPSH_VERBS_GREETS), 0);
}

Test(verbs_connect, both_greet__one_connection)
{
    mute = true;
    struct gpsh_op op = fake_put(pair.heap, 64, 8);
    fake_post_op(&pair, &op);
    wait_until_sent(GPSH_VERBS_GREETS, 1);
    struct gpsh_verbs_message message = greeting();
    hear(&message);
    wait_until_sent(GPSH_VERBS_READY, 1);
    message.kind = GPSH_VERBS_READY;
    message.yours = sent[0].own;
    hear(&message);
    finish(1);
    cr_assert_eq(sent[0].own, sent[n_sent - 1].own);
}

// Each differs in one field from a message that would be answered.
Test(verbs_connect, strangers__get_no_answer_and_no_queue_pair)
{
    int before = fake.live_objects;
    struct gpsh_verbs_message wrong[6];
    for (int i = 0; i < 6; i++)
        wrong[i] = greeting();
    wrong[0].secret ^= 1;
    wrong[1].to = 1;
    wrong[2].from = 2;
    wrong[3].from = 0;
    wrong[4].channel = 1;
    wrong[5].n_rails = 2;
    wrong[5].qpns[1] = 78;
    for (int i = 0; i < 6; i++)
        for (int n = 0; n < 20; n++)
            hear(&wrong[i]);
    struct gpsh_verbs_message right = greeting();
    hear(&right); // is behind all of them
    wait_until_sent(GPSH_VERBS_READY, 1);
    cr_assert_leq(fake.live_objects - before, 2);
    cr_assert_eq(count(GPSH_VERBS_GREETS), 0);
}

// As of a peer that begins anew again and again. Each would be answered, if it came alone.
Test(verbs_connect, flood__of_greetings__no_more_is_made_than_for_one_and_the_last_connects)
{
    enum { FLOOD = 3000 };
    int before = fake.live_objects;
    struct gpsh_verbs_message message = greeting();
    mute = true;
    for (int i = 0; i < FLOOD; i++, message.own++)
        hear(&message);
    while (!n_sent || sent[(n_sent - 1) % MOST].yours != message.own) {
        hear(&message); // datagrams for which there is no room are lost
        nap();
    }
    cr_expect_leq(fake.live_objects - before, 2);
    struct gpsh_op op = fake_put(pair.heap, 64, 8);
    fake_post_op(&pair, &op);
    message.kind = GPSH_VERBS_UP;
    message.yours = sent[(n_sent - 1) % MOST].own;
    hear(&message);
    finish(1);
}

Test(verbs_connect, attempts__an_older_one_comes_late__not_taken)
{
    struct gpsh_verbs_message message = greeting(), late = message;
    mute = true;
    hear(&message);
    wait_until_sent(GPSH_VERBS_READY, 1);
    late.own = 2;
    late.qpns[0] = 66;
    hear(&late);
    message.own = 4; // the peer has begun anew
    message.qpns[0] = 88;
    hear(&message);
    while (sent[(n_sent - 1) % MOST].yours != 4)
        nap();
    cr_assert_eq(fake.rtr.dest_qp_num, 88);
}

Test(verbs_connect, parse__any_other_bytes__are_no_message)
{
    struct gpsh_verbs_message message = greeting(), out;
    unsigned char bytes[GPSH_VERBS_MESSAGE_BYTES], changed[GPSH_VERBS_MESSAGE_BYTES];
    gpsh_verbs_message_write(&message, bytes);
    cr_assert(gpsh_verbs_message_parse(bytes, sizeof bytes, &out));
    cr_assert(out.secret == message.secret && out.own == 3 && out.qpns[0] == 77);
    for (size_t n = 0; n < sizeof bytes; n++)
        cr_assert_not(gpsh_verbs_message_parse(bytes, n, &out));
    static const struct {
        int at;
        unsigned char value;
    } wrong[] = {{0, 0}, {4, 9}, {6, 0}, {6, 9}, {7, 0}, {7, 9}, {28, 0}, {40, 1}, {43, 1}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        memcpy(changed, bytes, sizeof bytes);
        changed[wrong[i].at] = wrong[i].value;
        cr_assert_not(gpsh_verbs_message_parse(changed, sizeof changed, &out), "byte %d",
                      wrong[i].at);
    }
}

// ---- Closing ----

static struct gpsh_channel *second;

static void reopen(const char *setting)
{
    fake_pair_close(&pair);
    open_with(2, setting);
    cr_assert_eq(gpsh_verbs_ops.channel_open(pair.transport, 1, &second), 0);
}

static void settle(void)
{
    while (pair.channel->pending || second->pending) {
        fake_run(FAKE_JOURNAL, IBV_WC_SUCCESS);
        gpsh_verbs_ops.progress(pair.channel);
        gpsh_verbs_ops.progress(second);
        nap();
    }
}

static void put(struct gpsh_channel *channel, uint64_t value, uint64_t to)
{
    struct gpsh_op op = fake_put((char *)&value, to, 8);
    op.flags = GPSH_OP_CAPTURE;
    cr_assert_geq(gpsh_verbs_ops.post(channel, &op), 0);
}

static uint64_t there(uint64_t at)
{
    return *(uint64_t *)(void *)(pair.there + at);
}

Test(verbs_connect, budget__spent__the_other_is_closed_and_comes_back)
{
    reopen("GPUSHMEM_VERBS_QUEUE_PAIRS=1");
    int before = fake.qps;
    for (uint64_t round = 1; round <= 20; round++) {
        put(pair.channel, 2 * round, 0);
        settle();
        put(second, 2 * round + 1, 8);
        settle();
        cr_assert(there(0) == 2 * round && there(8) == 2 * round + 1);
        cr_assert_leq(fake.qps - before, 1, "round %d", (int)round);
    }
    cr_assert_geq(count(GPSH_VERBS_CLOSES), 1);
    cr_assert_eq(pair.channel->flows[1].completed, 20);
    cr_assert(pair.channel->flows[1].reconnects == 19 && second->flows[1].reconnects == 19);
}

// Who is used least recently is always the next: some have to stay all the same.
Test(verbs_connect, budget__more_are_used_in_turn__not_each_is_made_again_each_time)
{
    enum { ROUNDS = 40, CHANNELS = 3 };
    struct gpsh_channel *all[CHANNELS];
    uint64_t again = 0;
    fake_pair_close(&pair);
    open_with(CHANNELS, "GPUSHMEM_VERBS_QUEUE_PAIRS=2");
    all[0] = pair.channel;
    for (int i = 1; i < CHANNELS; i++)
        cr_assert_eq(gpsh_verbs_ops.channel_open(pair.transport, i, &all[i]), 0);
    for (uint64_t turn = 0; turn < ROUNDS * CHANNELS; turn++) {
        second = all[turn % CHANNELS];
        put(second, turn, 0);
        settle();
        cr_assert_eq(there(0), turn);
    }
    for (int i = 0; i < CHANNELS; i++)
        again += all[i]->flows[1].reconnects;
    cr_assert(again > ROUNDS && again < ROUNDS * CHANNELS * 9 / 10, "%d", (int)again);
}

Test(verbs_connect, budget__all_in_use__exceeded_after_a_while)
{
    reopen("GPUSHMEM_VERBS_QUEUE_PAIRS=1");
    put(pair.channel, 1, 0);
    while (!fake.n_posts) {
        gpsh_verbs_ops.progress(pair.channel);
        nap();
    }
    put(second, 2, 8); // the first one's request is under way all the time
    while (fake.n_posts < 2) {
        gpsh_verbs_ops.progress(second);
        nap();
    }
    cr_assert_eq(count(GPSH_VERBS_CLOSES), 0);
    settle();
    cr_assert(there(0) == 1 && there(8) == 2);
}

Test(verbs_connect, budget__peer_keeps__so_does_this_end)
{
    reopen("GPUSHMEM_VERBS_QUEUE_PAIRS=1");
    keeps = true;
    put(pair.channel, 1, 0);
    settle();
    put(second, 2, 8);
    settle();
    cr_assert_geq(count(GPSH_VERBS_CLOSES), 1);
    int greeted = count(GPSH_VERBS_GREETS);
    put(pair.channel, 3, 0);
    settle();
    cr_assert(there(0) == 3 && there(8) == 2);
    cr_assert_eq(count(GPSH_VERBS_GREETS), greeted, "it was not closed");
}

Test(verbs_connect, posted_while_it_closes__goes_by_the_next_connection)
{
    reopen("GPUSHMEM_VERBS_QUEUE_PAIRS=1");
    put(pair.channel, 1, 0);
    settle();
    mute = true;
    put(second, 2, 8);
    wait_until_sent(GPSH_VERBS_CLOSES, 1);
    put(pair.channel, 3, 0);
    gpsh_verbs_ops.progress(pair.channel);
    cr_assert_eq(fake_waiting(), 0, "nothing goes to what is about to be gone");
    mute = false;
    settle();
    cr_assert(there(0) == 3 && there(8) == 2);
}

Test(verbs_connect, nic_makes_no_more__one_that_rests_is_closed)
{
    reopen(NULL);
    put(pair.channel, 1, 0);
    settle();
    fake.most_qps = fake.qps;
    put(second, 2, 8);
    settle();
    put(pair.channel, 3, 0);
    settle();
    cr_assert(there(0) == 3 && there(8) == 2);
    cr_assert_eq(pair.failures, 0);
}

enum { CHANNELS = 4 };
static struct gpsh_channel *all[CHANNELS];

// Each is connected with the peer, and rests.
static void connect_channels(void)
{
    fake_pair_close(&pair);
    open_with(CHANNELS, NULL);
    all[0] = pair.channel;
    for (int i = 1; i < CHANNELS; i++)
        cr_assert_eq(gpsh_verbs_ops.channel_open(pair.transport, i, &all[i]), 0);
    for (int i = 0; i < CHANNELS; i++) {
        second = all[i];
        put(second, 1, 0);
        settle();
    }
}

static void want_one_more(void)
{
    struct gpsh_op own = fake_put(pair.heap, 0, 8);
    own.pe = 0;
    cr_assert_geq(fake_post_op(&pair, &own), 0);
}

// The NIC is also that of other PEs, and one of them gets what was closed here.
Test(verbs_connect, nic_makes_no_more__room_goes_to_others__another_is_closed_later)
{
    connect_channels();
    fake.most_qps = fake.qps - 1;
    want_one_more();
    finish(0);
    cr_assert_eq(pair.channel->flows[0].error, 0, "%s", flow_to(0)->link.why);
    cr_assert_eq(count(GPSH_VERBS_CLOSES), 2);
}

// One is closed for room, and that is no help: the others stay.
Test(verbs_connect, nic_makes_none__no_more_are_closed_than_are_needed)
{
    connect_channels();
    fake.qp_error = ENOMEM;
    want_one_more();
    for (int naps = 0; naps < 500; naps++, nap())
        gpsh_verbs_ops.progress(pair.channel);
    cr_assert_eq(count(GPSH_VERBS_CLOSES), 1);
    for (uint64_t i = 1; i < CHANNELS; i++) {
        second = all[i];
        put(second, i + 1, 8 * i); // the first is the one that was closed
        while (second->pending) {
            fake_run(FAKE_JOURNAL, IBV_WC_SUCCESS);
            gpsh_verbs_ops.progress(second);
        }
        cr_assert_eq(there(8 * i), i + 1);
    }
    fake.qp_error = 0;
    finish(0);
    cr_assert_eq(pair.channel->flows[0].error, 0);
}

Test(verbs_connect, peer_closes__closed_if_nothing_is_under_way)
{
    put(pair.channel, 1, 0);
    finish(1);
    wait_until_sent(GPSH_VERBS_UP, 1);
    struct gpsh_verbs_message message = greeting();
    message.kind = GPSH_VERBS_CLOSES;
    message.own = 7;
    message.yours = flow_to(1)->link.own;
    message.reason = 1;
    put(pair.channel, 2, 0); // under way until it runs
    hear(&message);
    wait_until_sent(GPSH_VERBS_KEEPS, 1);
    cr_assert_eq(count(GPSH_VERBS_CLOSED), 0);
    finish(1);
    hear(&message); // comes again, and late: the peer has been told that it is kept
    wait_until_sent(GPSH_VERBS_KEEPS, 2);
    message.reason = 2;
    hear(&message);
    wait_until_sent(GPSH_VERBS_CLOSED, 1);
    hear(&message); // its answer was lost
    wait_until_sent(GPSH_VERBS_CLOSED, 2);
    int greeted = count(GPSH_VERBS_GREETS);
    mute = true; // the peer's attempts go on from 7
    put(pair.channel, 3, 0);
    gpsh_verbs_ops.progress(pair.channel);
    wait_until_sent(GPSH_VERBS_GREETS, greeted + 1);
    message = sent[(n_sent - 1) % MOST];
    reply(&message, GPSH_VERBS_READY, 8);
    finish(1);
    cr_assert_eq(there(0), 3);
}

// Over two rails a signal is posted when its data has arrived: until then it has something under
// way, though a rail may have nothing.
Test(verbs_connect, peer_closes__while_a_signal_waits_for_its_data__kept)
{
    enum { BYTES = 2 << 20, SIGNAL = 3 << 20 };
    fake_pair_close(&pair);
    n_rails = 2;
    open_with(1, "GPUSHMEM_VERBS_RAILS=2");
    put(pair.channel, 1, 0);
    finish(1);
    memset(pair.heap, 5, BYTES);
    struct gpsh_op op = fake_put(pair.heap, 0, BYTES);
    op.kind = GPSH_OP_PUT_SIGNAL;
    op.operand = 7;
    op.signal = SIGNAL;
    cr_assert_geq(fake_post_op(&pair, &op), 0);
    gpsh_verbs_ops.flush(pair.channel);
    cr_assert_geq(fake_waiting(), 2, "data by both rails");
    fake_run(1, IBV_WC_SUCCESS);
    struct gpsh_verbs_message message = greeting();
    message.kind = GPSH_VERBS_CLOSES;
    message.n_rails = 2;
    message.qpns[1] = 78;
    message.own = 7;
    message.yours = flow_to(1)->link.own;
    message.reason = 1;
    hear(&message);
    wait_until_sent(GPSH_VERBS_KEEPS, 1);
    cr_assert_eq(there(SIGNAL), 0);
    finish(1);
    cr_assert(there(SIGNAL) == 7 && !memcmp(pair.there, pair.heap, BYTES));
    cr_assert_eq(count(GPSH_VERBS_CLOSED), 0);
    message.reason = 2;
    hear(&message);
    wait_until_sent(GPSH_VERBS_CLOSED, 1);
    cr_assert_eq(pair.failures, 0);
}

// This end has asked for it.
Test(verbs_connect, signal__posted_while_it_closes__goes_with_its_data_by_the_next_connection)
{
    reopen("GPUSHMEM_VERBS_QUEUE_PAIRS=1");
    put(pair.channel, 1, 0);
    settle();
    mute = true;
    put(second, 2, 8);
    wait_until_sent(GPSH_VERBS_CLOSES, 1);
    memset(pair.heap, 5, 4096);
    struct gpsh_op op = fake_put(pair.heap, 4096, 4096);
    op.kind = GPSH_OP_PUT_SIGNAL;
    op.operand = 7;
    op.signal = 16384;
    cr_assert_geq(fake_post_op(&pair, &op), 0);
    gpsh_verbs_ops.progress(pair.channel);
    cr_assert_eq(fake_waiting(), 0);
    mute = false;
    while (!there(16384)) {
        fake_run(1, IBV_WC_SUCCESS);
        gpsh_verbs_ops.progress(pair.channel);
        gpsh_verbs_ops.progress(second);
    }
    cr_assert(!memcmp(pair.there + 4096, pair.heap, 4096));
    settle();
    cr_assert(there(16384) == 7 && there(8) == 2);
    cr_assert_eq(pair.failures, 0);
}

// A refusal to close that comes late is not taken for one of the next time.
Test(verbs_connect, kept__told_late__not_believed)
{
    reopen("GPUSHMEM_VERBS_QUEUE_PAIRS=1");
    put(pair.channel, 1, 0);
    settle();
    mute = true;
    put(second, 2, 8);
    wait_until_sent(GPSH_VERBS_CLOSES, 1);
    struct gpsh_verbs_message late = sent[(n_sent - 1) % MOST];
    late.reason--;
    reply(&late, GPSH_VERBS_KEEPS, 6 + late.own);
    put(pair.channel, 3, 0);
    for (int i = 0; i < 200; i++, nap())
        gpsh_verbs_ops.progress(pair.channel);
    cr_assert_eq(fake_waiting(), 0, "it is not up");
    mute = false;
    settle();
    cr_assert(there(0) == 3 && there(8) == 2);
}

// ---- Round trips ----

// The peer answers what this end has said, and that is one: until something is posted on `channel`.
// What is said again because nobody has answered yet is not counted again.
static int round_trips(struct gpsh_channel *channel)
{
    const int posts = fake.n_posts;
    int rounds = 0, answered = n_sent;
    uint64_t last = 0;
    while (fake.n_posts == posts) {
        gpsh_verbs_ops.progress(channel);
        pthread_mutex_lock(&lock);
        int said = n_sent;
        struct gpsh_verbs_message message = sent[(said + MOST - 1) % MOST];
        pthread_mutex_unlock(&lock);
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

// Counted, and not timed: what a first put waits for beside its own way there.
Test(verbs_connect, first_put__to_a_new_peer__one_round_trip_more)
{
    mute = true;
    uint64_t value = 42;
    struct gpsh_op op = fake_put((char *)&value, 64, 8);
    op.flags = GPSH_OP_CAPTURE;
    cr_assert_geq(fake_post_op(&pair, &op), 0);
    cr_assert_eq(round_trips(pair.channel), 1);
    finish(1);
    cr_assert_eq(there(64), 42);
    int said = n_sent;
    put(pair.channel, 43, 64);
    cr_assert_eq(fake_waiting(), 1, "the next one waits for nothing");
    finish(1);
    cr_assert_eq(n_sent, said);
}

Test(verbs_connect, first_put__which_takes_the_place_of_another_connection__two_round_trips_more)
{
    reopen("GPUSHMEM_VERBS_QUEUE_PAIRS=1");
    put(pair.channel, 1, 0);
    settle();
    mute = true;
    put(second, 2, 8);
    cr_assert_eq(round_trips(second), 2);
    mute = false;
    settle();
    cr_assert_eq(there(8), 2);
}

// ---- What fails meanwhile ----

static struct verbs_rail *pair_rails(void)
{
    return ((struct gpsh_verbs *)pair.transport)->rails;
}

Test(verbs_connect, nic_fatal_in_the_handshake__goes_on_over_the_other_when_it_is_up)
{
    fake_pair_close(&pair);
    n_rails = 2;
    open_with(1, "GPUSHMEM_VERBS_RAILS=2");
    mute = true;
    put(pair.channel, 42, 64);
    wait_until_sent(GPSH_VERBS_GREETS, 1);
    fake.event = 1 + IBV_EVENT_DEVICE_FATAL;
    while (fake.event || atomic_load(&((struct verbs_channel *)pair.channel)->fatal))
        gpsh_verbs_ops.progress(pair.channel);
    for (int i = 0; i < 100; i++)
        gpsh_verbs_ops.progress(pair.channel);
    cr_assert_eq(fake.n_posts, 0, "posted to a queue pair that is not connected");
    mute = false;
    finish(1);
    cr_assert_eq(there(64), 42);
    cr_assert_eq(pair.failures, 0);
}

Test(verbs_connect, datagram__not_sent__its_queue_pair_comes_back_under_its_number)
{
    uint32_t number = gpsh_verbs_datagrams_qp(&pair_rails()[0])->qp_num;
    fake.datagram_failures = 2;
    fake.datagram_status = IBV_WC_LOC_QP_OP_ERR;
    put(pair.channel, 42, 64);
    finish(1);
    cr_assert_eq(there(64), 42);
    cr_assert_eq(gpsh_verbs_datagrams_qp(&pair_rails()[0])->qp_num, number);
    cr_assert_null(gpsh_verbs_datagrams_trouble(&pair_rails()[0]));
    cr_assert_eq(pair.failures, 0);
}

Test(verbs_connect, datagrams__never_sent__this_nic_is_blamed_and_not_the_peer)
{
    fake_pair_close(&pair);
    open_with(1, "GPUSHMEM_VERBS_TIMEOUT=1"); // gives up sooner
    fake.datagram_failures = INT_MAX;
    fake.datagram_status = IBV_WC_LOC_QP_OP_ERR;
    put(pair.channel, 42, 64);
    finish(1);
    cr_assert_eq(pair.channel->flows[1].error, GPUSHMEM_ERR_TRANSPORT);
    cr_assert_not_null(strstr(flow_to(1)->link.why, "own NIC"), "%s", flow_to(1)->link.why);
}

Test(verbs_connect, event__of_the_datagrams__they_begin_anew)
{
    struct ibv_qp *qp = gpsh_verbs_datagrams_qp(&pair_rails()[0]);
    qp->state = IBV_QPS_ERR;
    fake.event_qp = qp;
    fake.event = 1 + IBV_EVENT_QP_FATAL;
    while (fake.event)
        gpsh_verbs_ops.progress(pair.channel);
    put(pair.channel, 42, 64);
    finish(1);
    cr_assert_eq(there(64), 42);
}
