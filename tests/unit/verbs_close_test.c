// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE
// Connections that are closed: for the budget of queue pairs, for room on a NIC that makes no more,
// and because the peer asks for it.
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "core/clock.h"
#include "verbs_fake_peer.h"

TestSuite(verbs_close, .init = open_lazy, .fini = close_all, .timeout = 60);

#define ONE_QUEUE_PAIR "GPUSHMEM_VERBS_QUEUE_PAIRS=1"

enum { CHANNELS = 4 };
static struct gpsh_channel *all[CHANNELS], *second;
static int n_channels;

static void open_channels(int n, const char *setting)
{
    reopen_with(n, setting);
    n_channels = n;
    all[0] = pair.channel;
    for (int i = 1; i < n; i++)
        cr_assert_eq(gpsh_verbs_ops.channel_open(pair.transport, i, &all[i]), 0);
    second = all[1];
}

static bool is_pending(void)
{
    for (int i = 0; i < n_channels; i++)
        if (all[i]->pending)
            return true;
    return false;
}

static void settle(void)
{
    while (is_pending()) {
        fake_run(FAKE_JOURNAL, IBV_WC_SUCCESS);
        for (int i = 0; i < n_channels; i++)
            gpsh_verbs_ops.progress(all[i]);
        nap();
    }
}

// What the first channel has put to 0, and the second one to 8.
static void both_arrive(uint64_t of_first, uint64_t of_second)
{
    settle();
    cr_assert(there(0) == of_first && there(8) == of_second, "%d and %d instead of %d and %d",
              (int)there(0), (int)there(8), (int)of_first, (int)of_second);
}

static void wait_until_posted(struct gpsh_channel *channel, int n)
{
    while (fake.n_posts < n) {
        gpsh_verbs_ops.progress(channel);
        nap();
    }
}

// Of two channels the first is connected with the peer, and rests.
static void connect_first(const char *setting)
{
    open_channels(2, setting);
    put(pair.channel, 1, 0);
    settle();
}

// The second channel has something to put, and for that the first one's connection has to go. The
// peer has been asked to close it, and says nothing while it is mute.
static void ask_to_close_first(void)
{
    connect_first(ONE_QUEUE_PAIR);
    peer.mute = true;
    put(second, 2, 8);
    wait_until_sent(GPSH_VERBS_CLOSES, 1);
}

static void put_with_signal(uint64_t to, uint64_t bytes, uint64_t signal)
{
    memset(pair.heap, 5, bytes);
    struct gpsh_op op = fake_put(pair.heap, to, bytes);
    op.kind = GPSH_OP_PUT_SIGNAL;
    op.operand = 7;
    op.signal = signal;
    cr_assert_geq(fake_post_op(&pair, &op), 0);
}

// ---- For the budget of queue pairs ----

Test(verbs_close, budget__spent__the_other_is_closed_and_comes_back)
{
    open_channels(2, ONE_QUEUE_PAIR);
    int before = fake.qps;
    for (uint64_t round = 1; round <= 20; round++) {
        put(pair.channel, 2 * round, 0);
        settle();
        put(second, 2 * round + 1, 8);
        both_arrive(2 * round, 2 * round + 1);
        cr_assert_leq(fake.qps - before, 1, "round %d", (int)round);
    }
    cr_assert_geq(count(GPSH_VERBS_CLOSES), 1);
    cr_assert_eq(pair.channel->flows[1].completed, 20);
    cr_assert(pair.channel->flows[1].reconnects == 19 && second->flows[1].reconnects == 19);
}

// Who is used least recently is always the next: some have to stay all the same.
Test(verbs_close, budget__more_are_used_in_turn__not_each_is_made_again_each_time)
{
    enum { ROUNDS = 40, USED = 3 };
    uint64_t again = 0;
    open_channels(USED, "GPUSHMEM_VERBS_QUEUE_PAIRS=2");
    for (uint64_t turn = 0; turn < ROUNDS * USED; turn++) {
        put(all[turn % USED], turn, 0);
        settle();
        cr_assert_eq(there(0), turn);
    }
    for (int i = 0; i < USED; i++)
        again += all[i]->flows[1].reconnects;
    cr_assert(again > ROUNDS && again < ROUNDS * USED * 9 / 10, "%d", (int)again);
}

Test(verbs_close, budget__all_in_use__exceeded_after_a_while)
{
    open_channels(2, ONE_QUEUE_PAIR);
    put(pair.channel, 1, 0);
    wait_until_posted(pair.channel, 1);
    put(second, 2, 8); // the first one's request is under way all the time
    wait_until_posted(second, 2);
    cr_assert_eq(count(GPSH_VERBS_CLOSES), 0);
    both_arrive(1, 2);
}

Test(verbs_close, budget__peer_keeps__so_does_this_end)
{
    connect_first(ONE_QUEUE_PAIR);
    peer.keeps = true;
    put(second, 2, 8);
    settle();
    cr_assert_geq(count(GPSH_VERBS_CLOSES), 1);
    int greeted = count(GPSH_VERBS_GREETS);
    put(pair.channel, 3, 0);
    both_arrive(3, 2);
    cr_assert_eq(count(GPSH_VERBS_GREETS), greeted, "it was not closed");
}

Test(verbs_close, first_put__which_takes_the_place_of_another_connection__two_round_trips_more)
{
    connect_first(ONE_QUEUE_PAIR);
    peer.mute = true;
    put(second, 2, 8);
    cr_assert_eq(round_trips(second), 2);
    peer.mute = false;
    both_arrive(1, 2);
}

Test(verbs_close, posted_while_it_closes__goes_by_the_next_connection)
{
    ask_to_close_first();
    put(pair.channel, 3, 0);
    gpsh_verbs_ops.progress(pair.channel);
    cr_assert_eq(fake_waiting(), 0, "nothing goes to what is about to be gone");
    peer.mute = false;
    both_arrive(3, 2);
}

Test(verbs_close, signal__posted_while_it_closes__goes_with_its_data_by_the_next_connection)
{
    enum { DATA = 4096, BYTES = 4096, SIGNAL = 16384 };
    ask_to_close_first();
    put_with_signal(DATA, BYTES, SIGNAL);
    gpsh_verbs_ops.progress(pair.channel);
    cr_assert_eq(fake_waiting(), 0);
    peer.mute = false;
    while (!there(SIGNAL)) {
        fake_run(1, IBV_WC_SUCCESS);
        gpsh_verbs_ops.progress(pair.channel);
        gpsh_verbs_ops.progress(second);
    }
    cr_assert(!memcmp(pair.there + DATA, pair.heap, BYTES));
    both_arrive(1, 2);
    cr_assert_eq(there(SIGNAL), 7);
    cr_assert_eq(pair.failures, 0);
}

// A refusal to close that comes late is not taken for one of the next time.
Test(verbs_close, kept__told_late__not_believed)
{
    ask_to_close_first();
    struct gpsh_verbs_message late = last_sent();
    late.reason--;
    reply(&late, GPSH_VERBS_KEEPS, 6 + late.own);
    put(pair.channel, 3, 0);
    progress_for(200);
    cr_assert_eq(fake_waiting(), 0, "it is not up");
    peer.mute = false;
    both_arrive(3, 2);
}

// ---- For room on a NIC that makes no more ----

Test(verbs_close, nic_makes_no_more__one_that_rests_is_closed)
{
    connect_first(NULL);
    fake.most_qps = fake.qps;
    put(second, 2, 8);
    settle();
    put(pair.channel, 3, 0);
    both_arrive(3, 2);
    cr_assert_eq(pair.failures, 0);
}

// All are connected with the peer, and rest.
static void connect_all(void)
{
    open_channels(CHANNELS, NULL);
    for (int i = 0; i < CHANNELS; i++) {
        put(all[i], 1, 0);
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
Test(verbs_close, nic_makes_no_more__room_goes_to_others__another_is_closed_later)
{
    connect_all();
    fake.most_qps = fake.qps - 1;
    want_one_more();
    finish(0);
    cr_assert_eq(pair.channel->flows[0].error, 0, "%s", flow_to(0)->link.why);
    cr_assert_eq(count(GPSH_VERBS_CLOSES), 2);
}

// One is closed for room, and that is no help: the others stay.
Test(verbs_close, nic_makes_none__no_more_are_closed_than_are_needed)
{
    connect_all();
    fake.qp_error = ENOMEM;
    want_one_more();
    progress_for(500);
    cr_assert_eq(count(GPSH_VERBS_CLOSES), 1);
    for (uint64_t i = 1; i < CHANNELS; i++) {
        put(all[i], i + 1, 8 * i); // the first is the one that was closed
        while (all[i]->pending) {
            fake_run(FAKE_JOURNAL, IBV_WC_SUCCESS);
            gpsh_verbs_ops.progress(all[i]);
        }
        cr_assert_eq(there(8 * i), i + 1);
    }
    fake.qp_error = 0;
    finish(0);
    cr_assert_eq(pair.channel->flows[0].error, 0);
}

// The last one that rests takes its time to close. Only then does it show that this was no help.
Test(verbs_close, nic_makes_none__the_last_is_closed_late__asked_again_for_a_while)
{
    connect_first(NULL);
    fake.qp_error = ENOMEM;
    peer.mute = true;
    want_one_more();
    wait_until_sent(GPSH_VERBS_CLOSES, 1);
    for (uint64_t end = gpsh_clock_ns() + UINT64_C(1200000000); gpsh_clock_ns() < end; nap())
        gpsh_verbs_ops.progress(pair.channel);
    const int before = fake.qps;
    peer.mute = false; // it closes when it is asked again
    while (fake.qps == before)
        nap();
    progress_for(20);
    fake.qp_error = 0;
    finish(0);
    cr_assert_eq(pair.channel->flows[0].error, 0, "%s", flow_to(0)->link.why);
}

// ---- Because the peer asks ----

// The peer asks to close it, for the first time.
static struct gpsh_verbs_message closing(void)
{
    struct gpsh_verbs_message message = greeting();
    message.kind = GPSH_VERBS_CLOSES;
    message.own = 7;
    message.yours = flow_to(1)->link.own;
    message.reason = 1;
    return message;
}

Test(verbs_close, peer_closes__closed_if_nothing_is_under_way)
{
    put(pair.channel, 1, 0);
    finish(1);
    wait_until_sent(GPSH_VERBS_UP, 1);
    struct gpsh_verbs_message message = closing();
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
    peer.mute = true; // the peer's attempts go on from 7
    put(pair.channel, 3, 0);
    gpsh_verbs_ops.progress(pair.channel);
    wait_until_sent(GPSH_VERBS_GREETS, greeted + 1);
    message = last_sent();
    reply(&message, GPSH_VERBS_READY, 8);
    finish(1);
    cr_assert_eq(there(0), 3);
}

// Over two rails a signal is posted when its data has arrived: until then it has something under
// way, though a rail may have nothing.
Test(verbs_close, peer_closes__while_a_signal_waits_for_its_data__kept)
{
    enum { BYTES = 2 << 20, SIGNAL = 3 << 20 };
    reopen_with_two_rails();
    put(pair.channel, 1, 0);
    finish(1);
    put_with_signal(0, BYTES, SIGNAL);
    gpsh_verbs_ops.flush(pair.channel);
    cr_assert_geq(fake_waiting(), 2, "data by both rails");
    fake_run(1, IBV_WC_SUCCESS);
    struct gpsh_verbs_message message = closing();
    message.n_rails = 2;
    message.qpns[1] = 78;
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
