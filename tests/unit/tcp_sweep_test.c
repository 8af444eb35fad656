// SPDX-License-Identifier: BSD-3-Clause
// PE 0 or 1 of 40 by unique id, in a time of its own: 1 to 16 are children of 0, 17 to 32 of 1, 33
// to 39 of 2.
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "bootstrap/tcp_connect.h"
#include "bootstrap/tcp_tree.h"
#include "core/error.h"

enum { N_PES = 40 };

static uint64_t fake_ns = 1;
static enum gpsh_tcp_presence presence[N_PES];
static int called[N_PES];

uint64_t __wrap_gpsh_clock_ns(void);
uint64_t __wrap_gpsh_clock_ns(void)
{
    return fake_ns;
}

enum gpsh_tcp_presence __wrap_gpsh_tcp_probe(const struct gpsh_uniqueid *,
                                             const struct gpsh_tcp_address *, struct gpsh_hello *,
                                             uint64_t);
enum gpsh_tcp_presence __wrap_gpsh_tcp_probe(const struct gpsh_uniqueid *id,
                                             const struct gpsh_tcp_address *address,
                                             struct gpsh_hello *hello, uint64_t ns)
{
    (void)id;
    (void)hello;
    (void)ns;
    called[address->port]++;
    return presence[address->port];
}

static struct gpsh_tcp_tree *job(int my_pe)
{
    const struct gpsh_uniqueid id = {.n_addresses = 1};
    const uint8_t secret[GPSH_SECRET_BYTES] = {1};
    struct gpsh_tcp_address here = {.version = 4, .bytes = {127, 0, 0, 1}};
    struct gpsh_tcp_address addresses[N_PES];
    struct gpsh_tcp_tree *t = gpsh_tcp_tree_create(&id, my_pe, N_PES, &here);
    cr_assert(t, "%s", gpsh_last_error());
    for (int pe = 0; pe < N_PES; pe++)
        addresses[pe] = (struct gpsh_tcp_address){.version = 4, .port = (uint16_t)pe};
    for (int pe = 16 * my_pe + 1; pe <= 16 * my_pe + 16; pe++) {
        int ends[2]; // the other is left open
        cr_assert(!socketpair(AF_UNIX, SOCK_STREAM, 0, ends) && gpsh_tree_add_link(t, ends[0], pe));
    }
    gpsh_tcp_tree_set_peers(t, NULL, addresses, secret);
    return t;
}

static void die(struct gpsh_tcp_tree *t, int pe)
{
    pthread_mutex_lock(&t->lock);
    gpsh_tree_note_death(t, pe, "", NULL);
    struct gpsh_tcp_link **at = &t->links;
    while (*at && (*at)->pe != pe)
        at = &(*at)->next;
    struct gpsh_tcp_link *link = *at;
    if (link) {
        *at = link->next;
        gpsh_tcp_link_destroy(link);
    }
    pthread_mutex_unlock(&t->lock);
}

// As the tree's thread does.
static void pass(struct gpsh_tcp_tree *t, int ms)
{
    pthread_mutex_lock(&t->lock);
    for (; ms > 0; ms--) {
        while (gpsh_tree_due(t) == 0)
            gpsh_tree_step(t);
        fake_ns += 1000000;
    }
    pthread_mutex_unlock(&t->lock);
}

static int calls(int first, int last)
{
    int n = 0;
    for (int pe = first; pe <= last; pe++)
        n += called[pe];
    return n;
}

Test(tcp_sweep, nobody_died__nobody_is_called)
{
    struct gpsh_tcp_tree *t = job(0);
    pass(t, 10000);
    cr_expect_eq(calls(0, N_PES - 1), 0);
    gpsh_tcp_tree_destroy(t);
}

// PE 20 has lost its parent. A firewall may refuse calls to the others, which nobody made before.
Test(tcp_sweep, pe_whose_parent_lives__is_not_called)
{
    struct gpsh_tcp_tree *t = job(0);
    for (int pe = 0; pe < N_PES; pe++)
        presence[pe] = pe < 17 || pe > 32 ? GPSH_TCP_ABSENT : GPSH_TCP_PRESENT;
    die(t, 1);
    pass(t, 60000);
    for (int pe = 17; pe <= 32; pe++)
        cr_expect_geq(called[pe], 2, "PE %d, which does not call: %d", pe, called[pe]);
    cr_expect_eq(calls(0, 16) + calls(33, N_PES - 1), 0);
    cr_expect_eq(t->n_died, 1);
    gpsh_tcp_tree_destroy(t);
}

Test(tcp_sweep, parent_and_children_died__all_are_named_in_one_round)
{
    struct gpsh_tcp_tree *t = job(1);
    presence[2] = presence[16] = presence[35] = GPSH_TCP_ABSENT;
    presence[3] = GPSH_TCP_OTHER;
    presence[39] = GPSH_TCP_HUNG_UP;
    presence[4] = GPSH_TCP_UNSURE;
    die(t, 0);
    pass(t, 1000);
    cr_expect_eq(t->n_died, 6);
    for (int pe = 0; pe < N_PES; pe++)
        cr_expect_eq(t->peer[pe].died,
                     pe == 0 || pe == 2 || pe == 3 || pe == 16 || pe == 35 || pe == 39, "PE %d",
                     pe);
    gpsh_tcp_tree_destroy(t);
}

// It was there when it was called, and has never called itself.
Test(tcp_sweep, stopped_pe_dies_later__is_named)
{
    struct gpsh_tcp_tree *t = job(1);
    die(t, 0);
    pass(t, 60000);
    cr_expect_eq(t->n_died, 1);
    presence[7] = GPSH_TCP_ABSENT;
    pass(t, 31000);
    cr_expect(t->peer[7].died);
    gpsh_tcp_tree_destroy(t);
}

// Its pauses have grown, and some were looked at just now.
Test(tcp_sweep, death_heard_of_later__all_are_looked_at_soon)
{
    struct gpsh_tcp_tree *t = job(0);
    die(t, 2);
    pass(t, 100000);
    for (int pe = 3; pe < N_PES; pe++)
        presence[pe] = GPSH_TCP_ABSENT;
    die(t, 1);
    pass(t, 1000);
    for (int pe = 17; pe < N_PES; pe++)
        cr_expect(t->peer[pe].died, "PE %d", pe);
    gpsh_tcp_tree_destroy(t);
}

Test(tcp_sweep, pes_that_say_nothing__others_are_served_meanwhile)
{
    struct gpsh_tcp_tree *t = job(0);
    die(t, 1);
    pass(t, 310);
    cr_assert_eq(calls(17, 32), 1);
    cr_expect_gt(gpsh_tree_due(t), 0);
    pass(t, 1000);
    cr_expect_geq(calls(17, 32), 16);
    gpsh_tcp_tree_destroy(t);
}

Test(tcp_sweep, host_does_not_answer_for_long__has_vanished)
{
    struct gpsh_tcp_tree *t = job(1);
    presence[2] = GPSH_TCP_UNREACHED;
    die(t, 0);
    pass(t, 35000);
    cr_expect_eq(t->n_died, 1);
    pass(t, 35000);
    cr_expect_eq(t->n_died, 2);
    cr_expect_str_eq(t->peer[2].reason, "its host has not answered for 35 s");
    gpsh_tcp_tree_destroy(t);
}

Test(tcp_sweep, host_answers_now_and_then__has_not_vanished)
{
    struct gpsh_tcp_tree *t = job(1);
    die(t, 0);
    for (int i = 0; i < 10; i++) {
        presence[2] = i % 2 ? GPSH_TCP_PRESENT : GPSH_TCP_UNREACHED;
        pass(t, 30100); // three calls
    }
    cr_expect_eq(t->n_died, 1);
    gpsh_tcp_tree_destroy(t);
}

// PE 0 looks after those whose parent was PE 2, as long as it lives.
Test(tcp_sweep, not_the_next_that_lives__calls_nobody)
{
    struct gpsh_tcp_tree *t = job(1);
    die(t, 2);
    pass(t, 10000);
    cr_expect_eq(calls(0, N_PES - 1), 0);
    die(t, 0);
    pass(t, 200);
    cr_expect_eq(calls(0, N_PES - 1), 0, "orphans have no time to call");
    pass(t, 1000);
    cr_expect_gt(called[33], 0);
    gpsh_tcp_tree_destroy(t);
}

static bool has_told(int pe)
{
    return pe == 5;
}

Test(tcp_sweep, while_pes_leave__who_has_told_is_not_named)
{
    struct gpsh_tcp_tree *t = job(1);
    presence[5] = presence[6] = GPSH_TCP_ABSENT;
    die(t, 0);
    gpsh_tcp_tree_expect_departures(t, has_told);
    pass(t, 2000);
    cr_expect(t->peer[6].died && !t->peer[5].died);
    gpsh_tcp_tree_destroy(t);
}
