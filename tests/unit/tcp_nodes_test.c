// SPDX-License-Identifier: BSD-3-Clause
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "bootstrap/node_watch.h"
#include "bootstrap/tcp_tree.h"
#include "core/error.h"

enum { MOST = 700 };

static int node[MOST], order[MOST];
static struct gpsh_deaths deaths = GPSH_DEATHS_INITIALIZER; // of nobody

static void spread(int n_pes, int n_nodes, bool in_turn)
{
    int per_node = n_pes / n_nodes;
    for (int pe = 0; pe < n_pes; pe++)
        node[pe] = in_turn ? pe % n_nodes : pe / per_node * per_node;
}

static struct gpsh_tcp_tree *tree_of(int n_pes, int me)
{
    static struct gpsh_tcp_address addresses[MOST];
    const struct gpsh_uniqueid id = {.n_addresses = 1};
    const uint8_t secret[GPSH_SECRET_BYTES] = {1};
    struct gpsh_tcp_address here = {.version = 4, .bytes = {127, 0, 0, 1}};
    struct gpsh_tcp_tree *t = gpsh_tcp_tree_create(&id, me, n_pes, &here, &deaths);
    cr_assert_not_null(t, "%s", gpsh_last_error());
    for (int pe = 0; pe < n_pes; pe++)
        addresses[pe] = here;
    gpsh_tcp_tree_set_peers(t, node, addresses, secret);
    return t;
}

// Whom it calls, in this order, if nobody answers.
static int order_of(struct gpsh_tcp_tree *t)
{
    int n = 0;
    for (int pe; (pe = gpsh_tree_above(t, t->my_pe, true)) >= 0; n++) {
        cr_assert(n < MOST && !t->peer[pe].mute, "%d calls %d again", t->my_pe, pe);
        t->peer[pe].mute = true;
        order[n] = pe;
    }
    return n;
}

static int rank(int pe) // in the order of all
{
    return node[pe] * MOST + pe;
}

// Whom it calls is everybody that comes before it, once.
static void check_all(int n_pes)
{
    for (int me = 0; me < n_pes; me++) {
        struct gpsh_tcp_tree *t = tree_of(n_pes, me);
        int n = order_of(t), before = 0;
        for (int i = 0; i < n; i++)
            cr_assert_lt(rank(order[i]), rank(me), "%d calls %d", me, order[i]);
        for (int pe = 0; pe < n_pes; pe++) {
            before += rank(pe) < rank(me);
            cr_assert_eq(gpsh_tree_comes_after(t, pe), rank(pe) > rank(me), "%d, %d", me, pe);
        }
        cr_assert_eq(n, before, "%d calls %d of %d", me, n, before);
        gpsh_tcp_tree_destroy(t);
    }
}

Test(tcp_nodes, order__any_nodes__all_that_come_before)
{
    spread(12, 1, false);
    check_all(12);
    spread(12, 12, false);
    check_all(12);
    spread(60, 20, true);
    check_all(60);
    spread(120, 60, false);
    check_all(120);
}

static void check_first(int me, const int *first, int n)
{
    struct gpsh_tcp_tree *t = tree_of(MOST, me);
    cr_assert_geq(order_of(t), n);
    for (int i = 0; i < n; i++)
        cr_expect_eq(order[i], first[i], "%d calls %d, not %d", me, order[i], first[i]);
    gpsh_tcp_tree_destroy(t);
}

Test(tcp_nodes, order__own_node_then_those_above__then_the_others)
{
    spread(700, 350, false); // node i has PEs 2 i and 2 i + 1
    check_first(605, (const int[]){604, 36, 37, 2, 3, 0, 1, 4, 5}, 9); // nodes 302, 18, 1, 0, 2
    check_first(34, (const int[]){2, 3, 0, 1, 4, 5}, 6);
    check_first(1, (const int[]){0}, 1);
    spread(700, 350, true); // node i has PEs i and i + 350
    check_first(652, (const int[]){302, 18, 368, 1, 351, 0, 350, 2, 352}, 9);
}

// Who looks after a PE that has lost its parent is whom the PE calls.
Test(tcp_nodes, above__same_for_all_that_know_the_same)
{
    spread(60, 20, true);
    struct gpsh_tcp_tree *t = tree_of(60, 5);
    for (int pe = 0; pe < 60; pe += 1 + pe % 3)
        t->peer[pe].died = pe != 5;
    for (int pe = 0; pe < 60; pe++) {
        struct gpsh_tcp_tree *other = tree_of(60, pe);
        for (int dead = 0; dead < 60; dead++)
            other->peer[dead].died = t->peer[dead].died;
        if (!t->peer[pe].died)
            cr_expect_eq(gpsh_tree_above(t, pe, false), gpsh_tree_above(other, pe, true));
        gpsh_tcp_tree_destroy(other);
    }
    gpsh_tcp_tree_destroy(t);
}

Test(node_watch, open__no_such_interface__sentence)
{
    struct gpsh_bootstrap b = {.n_pes = 2, .node_pes = (int[]){0}};
    cr_assert_null(gpsh_node_watch_open(&b, "nosuch0", &deaths));
    cr_expect_eq(gpsh_last_error_code(), GPUSHMEM_ERR_SETTING);
    cr_expect(strstr(gpsh_last_error(), "'nosuch0' is neither an interface"));
}

Test(node_watch, without__nothing_happens)
{
    struct gpsh_node_card card, none = {.node = 0};
    gpsh_node_watch_describe(NULL, &card);
    cr_expect_eq(memcmp(&card, &none, sizeof card), 0);
    gpsh_node_watch_hear(NULL, 0, &card);
    gpsh_node_watch_settle(NULL);
    cr_expect_null(gpsh_node_watch_tree(NULL));
    gpsh_node_watch_close(NULL);
}

// ---- The death of a neighbour ----

static uint64_t fake_ns = 1;
static enum gpsh_tcp_ending found; // what a call finds; GPSH_TCP_LOST: it is not answered
static int calls;

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
    cr_assert(link && id && to && hello && !greeting_ms);
    *link = (struct gpsh_tcp_link){
        .watch = {.fd = -1}, .loop = loop, .ops = ops, .owner = owner, .state = GPSH_TCP_ENDED};
    calls++;
    return link;
}

static void steps(struct gpsh_tcp_tree *t, int n)
{
    for (; n; n--) {
        fake_ns += 10000000000;
        pthread_mutex_lock(&t->lock);
        gpsh_tree_step(t);
        struct gpsh_tcp_link *call = t->peer[1].call;
        if (call && found != GPSH_TCP_LOST) {
            call->ending = found;
            call->error = found == GPSH_TCP_FULL ? EMFILE : 0;
            call->ops->ended(call);
        }
        pthread_mutex_unlock(&t->lock);
    }
}

// PE 1 is on another node, and was connected with this one.
static struct gpsh_tcp_tree *tree_that_lost(int error)
{
    const struct gpsh_tcp_link lost = {.pe = 1, .error = error};
    spread(2, 2, false);
    calls = 0;
    struct gpsh_tcp_tree *t = tree_of(2, 0);
    t->probed = true; // so that all calls are for this
    gpsh_tree_look_for(t, &lost);
    return t;
}

static bool is_dead_after(struct gpsh_tcp_tree *t, enum gpsh_tcp_ending ending, int n)
{
    found = ending;
    steps(t, n);
    return t->peer[1].died;
}

Test(tcp_nodes, lost__no_descriptor_for_long__calls_until_it_knows)
{
    struct gpsh_tcp_tree *t = tree_that_lost(0);
    cr_expect_not(is_dead_after(t, GPSH_TCP_FULL, 1000));
    cr_expect_geq(calls, 1000);
    cr_expect(is_dead_after(t, GPSH_TCP_REFUSED, 1));
    gpsh_tcp_tree_destroy(t);
}

// A PE that is stopped; as it ends, its socket ends the call, and then it listens no more.
Test(tcp_nodes, lost__says_nothing_for_long__one_call_waits_and_sees_its_end)
{
    struct gpsh_tcp_tree *t = tree_that_lost(0);
    cr_expect_not(is_dead_after(t, GPSH_TCP_LOST, 1000));
    cr_expect_eq(calls, 1);
    cr_expect_not(is_dead_after(t, GPSH_TCP_HUNG_UP, 1));
    cr_expect(is_dead_after(t, GPSH_TCP_REFUSED, 1));
    gpsh_tcp_tree_destroy(t);
}

// How many calls it takes until a PE is taken for dead that this is found of; 0: never.
static int calls_until_dead(enum gpsh_tcp_ending ending, int error)
{
    struct gpsh_tcp_tree *t = tree_that_lost(error);
    for (int i = 0; i < 100 && !t->peer[1].died; i++)
        is_dead_after(t, ending, 1);
    int n = t->peer[1].died ? calls : 0;
    gpsh_tcp_tree_destroy(t);
    return n;
}

Test(tcp_nodes, lost__stranger_at_its_port__dead)
{
    cr_expect_eq(calls_until_dead(GPSH_TCP_STRANGER, 0), 1, "it spoke as this PE does not speak");
    cr_expect_eq(calls_until_dead(GPSH_TCP_HUNG_UP, 0), 5, "twice may be chance");
    cr_expect_eq(calls_until_dead(GPSH_TCP_REJECTED, 0), 0, "it has too many callers");
}

Test(tcp_nodes, lost__host_does_not_answer__dead)
{
    cr_expect_eq(calls_until_dead(GPSH_TCP_UNREACHED, 0), 5, "it ended before its host did: 35 s");
    cr_expect_eq(calls_until_dead(GPSH_TCP_UNREACHED, ETIMEDOUT), 1, "after the patience");
}

// A firewall, or a host with the same address.
Test(tcp_nodes, never_connected__refuses__not_dead)
{
    spread(2, 2, false);
    struct gpsh_tcp_tree *t = tree_of(2, 0);
    t->peer[1].due_ns = t->due_ns = 1;
    cr_expect_not(is_dead_after(t, GPSH_TCP_REFUSED, 3));
    cr_expect_not(is_dead_after(t, GPSH_TCP_STRANGER, 3));
    cr_expect_not(is_dead_after(t, GPSH_TCP_UNREACHED, 3));
    t->reached = true;
    cr_expect_not(is_dead_after(t, GPSH_TCP_STRANGER, 3));
    cr_expect(is_dead_after(t, GPSH_TCP_REFUSED, 3), "another node was reached");
    gpsh_tcp_tree_destroy(t);
}
