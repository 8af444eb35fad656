// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE
// Connections on first use: what a PE that wants one sends and waits for, and what fails meanwhile.
#include <criterion/criterion.h>
#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <string.h>

#include "verbs_fake_peer.h"

TestSuite(verbs_connect, .init = open_lazy, .fini = close_all, .timeout = 60);

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
    peer.mute = true;
    cr_assert_eq(fake_post_op(&pair, &op), GPSH_POST_CAPTURED);
    value = 43;
    wait_until_sent(GPSH_VERBS_GREETS, 2); // it is repeated
    cr_assert_eq(fake.n_posts, 0);
    peer.mute = false;
    finish(1);
    cr_assert_eq(there(64), 42);
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
    peer.mute = true;
    struct gpsh_op op = fake_put(pair.heap, 0, 8);
    int n = 0;
    while (fake_post_op(&pair, &op) != GPSH_POST_AGAIN)
        cr_assert_lt(n++, 10000);
    cr_assert_eq(pair.channel->flows[1].error, 0);
    peer.mute = false;
    finish(1);
    cr_assert_eq(pair.channel->flows[1].completed, (uint64_t)n);
}

Test(verbs_connect, datagrams__lost_and_repeated__one_connection)
{
    peer.loses = 3;
    peer.repeats = 2;
    struct gpsh_op op = fake_put(pair.heap, 0, 8);
    fake_post_op(&pair, &op);
    int before = fake.live_objects;
    finish(1);
    cr_assert_geq(count(GPSH_VERBS_GREETS), 4);
    cr_assert_leq(fake.live_objects - before, 2, "a queue pair and a path");
}

Test(verbs_connect, refused__operations_fail_with_the_reason)
{
    peer.refuses = ENOMEM;
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
        reopen_with(1, NULL);
        struct gpsh_op op = fake_put(pair.heap, 0, 8);
        fake.qp_error = errors[i];
        cr_assert_geq(fake_post_op(&pair, &op), 0);
        progress_for(300);
        cr_assert_eq(count(GPSH_VERBS_GREETS), 0);
        fake.qp_error = 0;
        finish(1);
        cr_assert_eq(pair.channel->flows[1].error, 0);
    }
}

Test(verbs_connect, peer_lost_in_the_handshake__operations_fail)
{
    peer.mute = true;
    struct gpsh_op op = fake_put(pair.heap, 0, 8);
    fake_post_op(&pair, &op);
    wait_until_sent(GPSH_VERBS_GREETS, 1);
    gpsh_verbs_ops.peer_lost(pair.transport, 1);
    finish(1);
    cr_assert_eq(pair.channel->flows[1].error, GPUSHMEM_ERR_PE_FAILED);
    cr_assert_eq(fake_post_op(&pair, &op), GPUSHMEM_ERR_PE_FAILED);
}

// Counted, and not timed: what a first put waits for beside its own way there.
Test(verbs_connect, first_put__to_a_new_peer__one_round_trip_more)
{
    peer.mute = true;
    put(pair.channel, 42, 64);
    cr_assert_eq(round_trips(pair.channel), 1);
    finish(1);
    cr_assert_eq(there(64), 42);
    int said = peer.n_sent;
    put(pair.channel, 43, 64);
    cr_assert_eq(fake_waiting(), 1, "the next one waits for nothing");
    finish(1);
    cr_assert_eq(peer.n_sent, said);
}

// ---- What fails meanwhile ----

Test(verbs_connect, nic_fatal_in_the_handshake__goes_on_over_the_other_when_it_is_up)
{
    reopen_with_two_rails();
    peer.mute = true;
    put(pair.channel, 42, 64);
    wait_until_sent(GPSH_VERBS_GREETS, 1);
    fake.event = 1 + IBV_EVENT_DEVICE_FATAL;
    while (fake.event || atomic_load(&((struct verbs_channel *)pair.channel)->fatal))
        gpsh_verbs_ops.progress(pair.channel);
    progress_for(100);
    cr_assert_eq(fake.n_posts, 0, "posted to a queue pair that is not connected");
    peer.mute = false;
    finish(1);
    cr_assert_eq(there(64), 42);
    cr_assert_eq(pair.failures, 0);
}

Test(verbs_connect, datagram__not_sent__its_queue_pair_comes_back_under_its_number)
{
    uint32_t number = gpsh_verbs_datagrams_qp(first_rail())->qp_num;
    fake.datagram_failures = 2;
    fake.datagram_status = IBV_WC_LOC_QP_OP_ERR;
    put(pair.channel, 42, 64);
    finish(1);
    cr_assert_eq(there(64), 42);
    cr_assert_eq(gpsh_verbs_datagrams_qp(first_rail())->qp_num, number);
    cr_assert_null(gpsh_verbs_datagrams_trouble(first_rail()));
    cr_assert_eq(pair.failures, 0);
}

Test(verbs_connect, datagrams__never_sent__this_nic_is_blamed_and_not_the_peer)
{
    reopen_with(1, "GPUSHMEM_VERBS_TIMEOUT=1"); // gives up sooner
    fake.datagram_failures = INT_MAX;
    fake.datagram_status = IBV_WC_LOC_QP_OP_ERR;
    put(pair.channel, 42, 64);
    finish(1);
    cr_assert_eq(pair.channel->flows[1].error, GPUSHMEM_ERR_TRANSPORT);
    cr_assert_not_null(strstr(flow_to(1)->link.why, "own NIC"), "%s", flow_to(1)->link.why);
}

Test(verbs_connect, event__of_the_datagrams__they_begin_anew)
{
    struct ibv_qp *qp = gpsh_verbs_datagrams_qp(first_rail());
    qp->state = IBV_QPS_ERR;
    fake.event_qp = qp;
    fake.event = 1 + IBV_EVENT_QP_FATAL;
    while (fake.event)
        gpsh_verbs_ops.progress(pair.channel);
    put(pair.channel, 42, 64);
    finish(1);
    cr_assert_eq(there(64), 42);
}
