// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE
// What a PE answers to a peer that wants a connection, and to what only looks like one.
#include <criterion/criterion.h>
#include <string.h>

#include "verbs_fake_peer.h"

TestSuite(verbs_answer, .init = open_lazy, .fini = close_all, .timeout = 60);

Test(verbs_answer, peer_greets__answered_though_the_program_does_nothing)
{
    struct gpsh_verbs_message message = greeting();
    peer.mute = true;
    hear(&message);
    wait_until_sent(GPSH_VERBS_READY, 1);
    cr_assert(peer.sent[0].yours == 3 && peer.sent[0].own && peer.sent[0].to == 1);
    cr_assert_null(flow_to(1)->slots, "books are for who posts");
    cr_assert_not(verbs_is_up(flow_to(1)), "the peer has not said that it is connected");
    struct gpsh_op op = fake_put(pair.heap, 64, 8); // both want it now
    fake_post_op(&pair, &op);
    message.kind = GPSH_VERBS_UP;
    message.yours = peer.sent[0].own;
    hear(&message);
    finish(1);
    cr_assert_eq(count(GPSH_VERBS_GREETS), 0);
}

Test(verbs_answer, both_greet__one_connection)
{
    peer.mute = true;
    struct gpsh_op op = fake_put(pair.heap, 64, 8);
    fake_post_op(&pair, &op);
    wait_until_sent(GPSH_VERBS_GREETS, 1);
    struct gpsh_verbs_message message = greeting();
    hear(&message);
    wait_until_sent(GPSH_VERBS_READY, 1);
    message.kind = GPSH_VERBS_READY;
    message.yours = peer.sent[0].own;
    hear(&message);
    finish(1);
    cr_assert_eq(peer.sent[0].own, last_sent().own);
}

// Each differs in one field from a message that would be answered.
Test(verbs_answer, strangers__get_no_answer_and_no_queue_pair)
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
Test(verbs_answer, flood__of_greetings__no_more_is_made_than_for_one_and_the_last_connects)
{
    enum { FLOOD = 3000 };
    int before = fake.live_objects;
    struct gpsh_verbs_message message = greeting();
    peer.mute = true;
    for (int i = 0; i < FLOOD; i++, message.own++)
        hear(&message);
    while (!peer.n_sent || last_sent().yours != message.own) {
        hear(&message); // datagrams for which there is no room are lost
        nap();
    }
    cr_expect_leq(fake.live_objects - before, 2);
    struct gpsh_op op = fake_put(pair.heap, 64, 8);
    fake_post_op(&pair, &op);
    message.kind = GPSH_VERBS_UP;
    message.yours = last_sent().own;
    hear(&message);
    finish(1);
}

Test(verbs_answer, attempts__an_older_one_comes_late__not_taken)
{
    struct gpsh_verbs_message message = greeting(), late = message;
    peer.mute = true;
    hear(&message);
    wait_until_sent(GPSH_VERBS_READY, 1);
    late.own = 2;
    late.qpns[0] = 66;
    hear(&late);
    message.own = 4; // the peer has begun anew
    message.qpns[0] = 88;
    hear(&message);
    while (last_sent().yours != 4)
        nap();
    cr_assert_eq(fake.rtr.dest_qp_num, 88);
}

Test(verbs_answer, parse__any_other_bytes__are_no_message)
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
