// SPDX-License-Identifier: BSD-3-Clause
// PEs of a job of three by unique id: what becomes of the calls of PE 2, which has lost its parent.
#define _GNU_SOURCE // SOCK_CLOEXEC
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bootstrap/tcp_connect.h"
#include "bootstrap/tcp_tree.h"
#include "core/clock.h"

enum { CALLER = 2, N_PES = 3 };

static struct gpsh_uniqueid id = {.job = {1}, .secret = {2}, .n_addresses = 1};
static struct gpsh_tcp_address listens;

static struct gpsh_tcp_tree *start_tree(void)
{
    cr_assert_eq(gpsh_tcp_address_choose("lo", &listens, 1), 1);
    struct gpsh_tcp_tree *tree = gpsh_tcp_tree_create(&id, 0, N_PES, &listens);
    cr_assert(tree && gpsh_tcp_tree_start(tree) == 0);
    return tree;
}

static uint64_t in_a_minute(void)
{
    return gpsh_clock_ns() + 60 * (uint64_t)1000000000;
}

static struct gpsh_hello hello_of_caller(void)
{
    return (struct gpsh_hello){.purpose = GPSH_PURPOSE_ORPHAN, .pe = CALLER, .n_pes = N_PES};
}

static int call(void)
{
    struct gpsh_hello hello = hello_of_caller();
    int fd = gpsh_tcp_dial(&id, &listens, 1, &hello, NULL, NULL, "PE 0", in_a_minute());
    cr_assert_geq(fd, 0);
    return fd;
}

// How far the connections of the tree are: it is the only one that looks at them.
static void await_links(struct gpsh_tcp_tree *tree, bool linked)
{
    for (bool is = !linked; is != linked; usleep(1000)) {
        pthread_mutex_lock(&tree->lock);
        is = gpsh_tree_link_to(tree, CALLER) != NULL;
        pthread_mutex_unlock(&tree->lock);
    }
}

static int connect_plainly(void)
{
    struct sockaddr_storage where;
    socklen_t bytes = gpsh_tcp_address_to(&listens, &where);
    int fd = socket(where.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    cr_assert_eq(connect(fd, (struct sockaddr *)&where, bytes), 0);
    return fd;
}

static int first_death(struct gpsh_tcp_tree *tree)
{
    pthread_mutex_lock(&tree->lock);
    int pe = tree->first_dead;
    pthread_mutex_unlock(&tree->lock);
    return pe;
}

// As one does that has waited for two seconds, while this PE was stopped.
Test(tcp_tree, call__caller_gave_up_before_it_was_answered__no_death)
{
    struct gpsh_tcp_tree *tree = start_tree();
    struct gpsh_greeting greeting;
    struct gpsh_hello hello = hello_of_caller();
    int fd = connect_plainly();
    cr_assert_eq(gpsh_tcp_receive(fd, &greeting, sizeof greeting, in_a_minute()), 0);
    cr_assert_eq(gpsh_hello_make(&id, &greeting, &hello), 0);
    pthread_mutex_lock(&tree->lock);
    cr_assert_eq(send(fd, &hello, sizeof hello, MSG_NOSIGNAL), (ssize_t)sizeof hello);
    close(fd);
    pthread_mutex_unlock(&tree->lock);
    fd = call(); // which is answered after the first one
    await_links(tree, true);
    cr_expect_eq(first_death(tree), -1);
    gpsh_tcp_tree_destroy(tree);
    close(fd);
}

// The PE that it has called still has the connection of which it knows no more.
Test(tcp_tree, call__again__takes_the_place_of_the_first)
{
    struct gpsh_tcp_tree *tree = start_tree();
    int fds[] = {call(), -1};
    await_links(tree, true);
    fds[1] = call();
    struct gpsh_frame frame;
    cr_expect_eq(first_death(tree), -1);
    gpsh_tcp_tree_destroy(tree); // says goodbye to the second
    cr_expect_eq(gpsh_tcp_receive(fds[1], &frame, sizeof frame, in_a_minute()), 0);
    cr_expect_eq(frame.type, GPSH_FRAME_BYE);
    close(fds[0]);
    close(fds[1]);
}

// As it was answered, its two seconds were over.
Test(tcp_tree, call__caller_gave_up_as_it_was_answered__no_death)
{
    struct gpsh_tcp_tree *tree = start_tree();
    int fd = call();
    await_links(tree, true);
    close(fd);
    await_links(tree, false);
    cr_expect_eq(first_death(tree), -1);
    gpsh_tcp_tree_destroy(tree);
}

Test(tcp_tree, call__caller_says_who_died_and_ends__death)
{
    struct gpsh_tcp_tree *tree = start_tree();
    int fd = call();
    await_links(tree, true);
    struct gpsh_parcel *news = gpsh_parcel_text(GPSH_FRAME_DEAD, 1, 0, "");
    const ssize_t bytes = (ssize_t)(sizeof news->frame + news->frame.bytes);
    cr_assert_eq(send(fd, &news->frame, (size_t)bytes, MSG_NOSIGNAL), bytes);
    close(fd);
    await_links(tree, false);
    cr_expect_eq(first_death(tree), 1);
    cr_expect(tree->peer[CALLER].died);
    gpsh_parcel_release(news);
    gpsh_tcp_tree_destroy(tree);
}

// ---- PE 2 ----

static bool one_has_told(int pe)
{
    return pe == 1;
}

static bool none_has_told(int pe)
{
    (void)pe;
    return false;
}

// A port of this host at which nobody listens, and nobody else will. Returns what holds it.
static int closed_port(struct gpsh_tcp_address *address)
{
    struct sockaddr_storage where;
    cr_assert_eq(gpsh_tcp_address_choose("lo", address, 1), 1);
    socklen_t bytes = gpsh_tcp_address_to(address, &where);
    int fd = socket(where.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    cr_assert(!bind(fd, (struct sockaddr *)&where, bytes) &&
              !getsockname(fd, (struct sockaddr *)&where, &bytes) &&
              gpsh_tcp_address_from((struct sockaddr *)&where, address));
    return fd;
}

// The other end of its connection with its parent, PE 0, is *parent.
static struct gpsh_tcp_tree *create_caller(const struct gpsh_tcp_address *one, int *parent)
{
    struct gpsh_tcp_address addresses[N_PES] = {0};
    int ends[2];
    cr_assert(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends));
    cr_assert_eq(gpsh_tcp_address_choose("lo", &listens, 1), 1);
    addresses[1] = *one;
    struct gpsh_tcp_tree *tree = gpsh_tcp_tree_create(&id, CALLER, N_PES, &listens);
    cr_assert(tree);
    gpsh_tcp_tree_set_peers(tree, NULL, addresses, id.secret);
    cr_assert_eq(gpsh_tcp_tree_set_parent(tree, ends[0], 0), 0);
    *parent = ends[1];
    return tree;
}

// PE 0 dies while PEs leave, and PE 1, at which nobody listens any more, is called.
static bool one_died(bool (*has_told)(int pe))
{
    struct gpsh_tcp_address one;
    int parent, held = closed_port(&one);
    struct gpsh_tcp_tree *tree = create_caller(&one, &parent);
    gpsh_tcp_tree_expect_departures(tree, has_told);
    cr_assert_eq(gpsh_tcp_tree_start(tree), 0);
    close(parent);
    for (bool is = false; !is; usleep(1000)) {
        pthread_mutex_lock(&tree->lock);
        is = tree->peer[0].died && !tree->orphan; // it has called everybody
        pthread_mutex_unlock(&tree->lock);
    }
    bool died = tree->peer[1].died;
    gpsh_tcp_tree_destroy(tree);
    close(held);
    return died;
}

Test(tcp_tree, parent_dies_while_pes_leave__who_has_told_is_not_dead)
{
    cr_expect(!one_died(one_has_told));
}

Test(tcp_tree, parent_dies_while_pes_leave__who_has_not_told_is_dead)
{
    cr_expect(one_died(none_has_told));
}
