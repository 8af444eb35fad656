// SPDX-License-Identifier: BSD-3-Clause
// PE 0 or 1 of 40 by unique id, in a time of its own: 1 to 16 are children of 0, 17 to 32 of 1, 33
// to 39 of 2.
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bootstrap/tcp_tree.h"
#include "core/error.h"

enum { N_PES = 40 };

static uint64_t fake_ns = 1;
static enum gpsh_tcp_ending found[N_PES]; // by a call; GPSH_TCP_LOST: it is not answered
static int called[N_PES];
static struct gpsh_deaths deaths = GPSH_DEATHS_INITIALIZER;

uint64_t __wrap_gpsh_clock_ns(void);
uint64_t __wrap_gpsh_clock_ns(void)
{
    return fake_ns;
}

struct gpsh_tcp_link *__wrap_gpsh_tcp_link_call(struct gpsh_tcp_loop *,
                                                const struct gpsh_uniqueid *,
                                                const struct gpsh_tcp_address *,
                                                const struct gpsh_hello *, int,
                                                const struct gpsh_tcp_link_ops *, void *);
struct gpsh_tcp_link *__wrap_gpsh_tcp_link_call(struct gpsh_tcp_loop *loop,
                                                const struct gpsh_uniqueid *id,
                                                const struct gpsh_tcp_address *to,
                                                const struct gpsh_hello *hello, int greeting_ms,
                                                const struct gpsh_tcp_link_ops *ops, void *owner)
{
    struct gpsh_tcp_link *link = calloc(1, sizeof *link);
    cr_assert(link && id && hello && !greeting_ms);
    *link = (struct gpsh_tcp_link){
        .watch = {.fd = -1}, .loop = loop, .ops = ops, .owner = owner, .state = GPSH_TCP_ENDED};
    called[to->port]++;
    return link;
}

// Nobody is at its other end.
static struct gpsh_tcp_link *connection(struct gpsh_tcp_tree *t)
{
    struct gpsh_tcp_link *link = calloc(1, sizeof *link);
    *link = (struct gpsh_tcp_link){
        .watch = {.fd = -1}, .loop = &t->loop, .state = GPSH_TCP_ENDED, .heard = true};
    return link;
}

static struct gpsh_tcp_tree *job(int my_pe)
{
    const struct gpsh_uniqueid id = {.n_addresses = 1};
    const uint8_t secret[GPSH_SECRET_BYTES] = {1};
    struct gpsh_tcp_address here = {.version = 4, .bytes = {127, 0, 0, 1}};
    struct gpsh_tcp_address addresses[N_PES];
    struct gpsh_tcp_tree *t = gpsh_tcp_tree_create(&id, my_pe, N_PES, &here, &deaths);
    gpsh_deaths_close(&deaths);
    cr_assert_eq(gpsh_deaths_open(&deaths, N_PES), 0);
    cr_assert(t, "%s", gpsh_last_error());
    for (int pe = 0; pe < N_PES; pe++)
        addresses[pe] = (struct gpsh_tcp_address){.version = 4, .port = (uint16_t)pe};
    for (int pe = 16 * my_pe + 1; pe <= 16 * my_pe + 16; pe++)
        gpsh_tcp_tree_add_link(t, connection(t), pe);
    if (my_pe)
        gpsh_tcp_tree_add_link(t, connection(t), 0);
    gpsh_tcp_tree_set_peers(t, NULL, addresses, secret);
    return t;
}

static void die(struct gpsh_tcp_tree *t, int pe)
{
    pthread_mutex_lock(&t->lock);
    struct gpsh_tcp_link *link = t->peer[pe].link;
    if (link)
        link->ops->ended(link);
    else
        gpsh_tree_note_death(t, pe, "", NULL);
    pthread_mutex_unlock(&t->lock);
}

static void answer_calls(struct gpsh_tcp_tree *t)
{
    for (int pe = 0; pe < N_PES; pe++) {
        struct gpsh_tcp_link *call = t->peer[pe].call;
        if (!call || found[pe] == GPSH_TCP_LOST)
            continue;
        call->ending = found[pe];
        call->error = found[pe] == GPSH_TCP_FULL ? EMFILE : 0;
        call->ops->ended(call);
    }
}

// As the tree's thread does.
static void pass(struct gpsh_tcp_tree *t, int ms)
{
    pthread_mutex_lock(&t->lock);
    for (; ms > 0; ms--) {
        while (gpsh_tree_due(t) == 0)
            gpsh_tree_step(t);
        answer_calls(t);
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
        found[pe] = pe < 17 || pe > 32 ? GPSH_TCP_REFUSED : GPSH_TCP_LOST;
    die(t, 1);
    pass(t, 60000);
    for (int pe = 17; pe <= 32; pe++)
        cr_expect_eq(called[pe], 1, "PE %d, which does not call: %d", pe, called[pe]);
    cr_expect_eq(calls(0, 16) + calls(33, N_PES - 1), 0);
    cr_expect_eq(t->n_died, 1);
    gpsh_tcp_tree_destroy(t);
}

Test(tcp_sweep, parent_and_children_died__all_are_named_in_one_round)
{
    struct gpsh_tcp_tree *t = job(1);
    found[2] = found[16] = found[35] = GPSH_TCP_REFUSED;
    found[3] = GPSH_TCP_STRANGER;
    found[39] = GPSH_TCP_HUNG_UP;
    found[4] = GPSH_TCP_FULL;
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
    found[7] = GPSH_TCP_HUNG_UP; // the kernel closes what waited for it
    pass(t, 1);
    found[7] = GPSH_TCP_REFUSED;
    pass(t, 1000);
    cr_expect(t->peer[7].died);
    gpsh_tcp_tree_destroy(t);
}

Test(tcp_sweep, death_heard_of_later__all_are_looked_at_soon)
{
    struct gpsh_tcp_tree *t = job(0);
    die(t, 2);
    pass(t, 100000);
    for (int pe = 3; pe < N_PES; pe++)
        found[pe] = GPSH_TCP_REFUSED;
    die(t, 1);
    pass(t, 1000);
    for (int pe = 17; pe < N_PES; pe++)
        cr_expect(t->peer[pe].died, "PE %d", pe);
    gpsh_tcp_tree_destroy(t);
}

Test(tcp_sweep, pes_that_say_nothing__all_are_called_at_once)
{
    struct gpsh_tcp_tree *t = job(0);
    die(t, 1);
    pass(t, 310);
    cr_expect_eq(calls(17, 32), 16);
    pass(t, 100000);
    cr_expect_eq(calls(17, 32), 16);
    gpsh_tcp_tree_destroy(t);
}

Test(tcp_sweep, host_does_not_answer_for_long__has_vanished)
{
    struct gpsh_tcp_tree *t = job(1);
    found[2] = GPSH_TCP_UNREACHED;
    die(t, 0);
    pass(t, 35000);
    cr_expect_eq(t->n_died, 1);
    pass(t, 35000);
    cr_expect_eq(t->n_died, 2);
    cr_expect_str_eq(gpsh_deaths_reason(&deaths, 2), "its host has not answered for 35 s");
    gpsh_tcp_tree_destroy(t);
}

Test(tcp_sweep, host_answers_now_and_then__has_not_vanished)
{
    struct gpsh_tcp_tree *t = job(1);
    die(t, 0);
    for (int i = 0; i < 10; i++) {
        found[2] = i % 2 ? GPSH_TCP_REJECTED : GPSH_TCP_UNREACHED;
        pass(t, 30000);
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
    found[5] = found[6] = GPSH_TCP_REFUSED;
    die(t, 0);
    gpsh_tcp_tree_expect_departures(t, has_told);
    pass(t, 2000);
    cr_expect(t->peer[6].died && !t->peer[5].died);
    gpsh_tcp_tree_destroy(t);
}
