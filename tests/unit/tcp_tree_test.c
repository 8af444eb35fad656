// SPDX-License-Identifier: BSD-3-Clause
// PEs of a job of three by unique id: what becomes of the calls of PE 2, which has lost its parent.
#define _GNU_SOURCE // SOCK_CLOEXEC
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bootstrap/tcp_dial.h"
#include "bootstrap/tcp_tree.h"
#include "core/error.h"

enum { CALLER = 2, N_PES = 3 };

static struct gpsh_uniqueid id = {.job = {1}, .secret = {2}, .n_addresses = 1};
static struct gpsh_tcp_address listens;
static struct gpsh_deaths deaths[2] = {GPSH_DEATHS_INITIALIZER, GPSH_DEATHS_INITIALIZER};

static struct gpsh_tcp_tree *start_tree(void)
{
    cr_assert_eq(gpsh_tcp_address_choose("lo", &listens, 1), 1);
    struct gpsh_tcp_tree *tree = gpsh_tcp_tree_create(&id, 0, N_PES, &listens, &deaths[0]);
    cr_assert(tree && !gpsh_deaths_open(&deaths[0], N_PES) && gpsh_tcp_tree_start(tree) == 0);
    return tree;
}

static struct gpsh_hello hello_of_caller(void)
{
    return (struct gpsh_hello){.purpose = GPSH_PURPOSE_NEIGHBOUR, .pe = CALLER, .n_pes = N_PES};
}

static int connect_plainly(void)
{
    struct sockaddr_storage where;
    socklen_t bytes = gpsh_tcp_address_to(&listens, &where);
    int fd = socket(where.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    cr_assert_eq(connect(fd, (struct sockaddr *)&where, bytes), 0);
    return fd;
}

static void receive(int fd, void *to, size_t bytes)
{
    cr_assert_eq(recv(fd, to, bytes, MSG_WAITALL), (ssize_t)bytes);
}

// To who has greeted it.
static struct gpsh_hello hello_for(int fd)
{
    struct gpsh_greeting greeting;
    struct gpsh_hello hello = hello_of_caller();
    receive(fd, &greeting, sizeof greeting);
    cr_assert_eq(gpsh_hello_make(&id, &greeting, &hello), 0);
    return hello;
}

static int call(void)
{
    struct gpsh_confirmation answer;
    int fd = connect_plainly();
    struct gpsh_hello hello = hello_for(fd);
    cr_assert_eq(send(fd, &hello, sizeof hello, MSG_NOSIGNAL), (ssize_t)sizeof hello);
    receive(fd, &answer, sizeof answer);
    return fd;
}

// How far the connections of the tree are: it is the only one that looks at them.
static void await_links(struct gpsh_tcp_tree *tree, bool linked)
{
    for (bool is = !linked; is != linked; usleep(1000)) {
        pthread_mutex_lock(&tree->lock);
        is = tree->peer[CALLER].link != NULL;
        pthread_mutex_unlock(&tree->lock);
    }
}

static int first_death(struct gpsh_tcp_tree *tree)
{
    pthread_mutex_lock(&tree->lock);
    int pe = atomic_load(&deaths[0].first) - 1;
    pthread_mutex_unlock(&tree->lock);
    return pe;
}

// As one does that has waited for two seconds, while this PE was stopped.
Test(tcp_tree, call__caller_gave_up_before_it_was_answered__no_death)
{
    struct gpsh_tcp_tree *tree = start_tree();
    int fd = connect_plainly();
    struct gpsh_hello hello = hello_for(fd);
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
    receive(fds[1], &frame, sizeof frame);
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

// Its parent is PE 0, which listens where start_tree says.
static struct gpsh_tcp_tree *create_caller(const struct gpsh_tcp_address *one)
{
    struct gpsh_tcp_address addresses[N_PES] = {0}, here = listens;
    const struct gpsh_tcp_dial dial = {
        .id = &id,
        .addresses = &listens,
        .n = 1,
        .hello = {.purpose = GPSH_PURPOSE_CHILD, .pe = CALLER, .n_pes = N_PES},
        .whom = "PE 0",
        .deadline_ns = UINT64_MAX};
    addresses[1] = *one;
    struct gpsh_tcp_tree *tree = gpsh_tcp_tree_create(&id, CALLER, N_PES, &here, &deaths[1]);
    cr_assert(tree);
    struct gpsh_tcp_link *link = gpsh_tcp_dial(&tree->loop, &dial);
    cr_assert(link, "%s", gpsh_last_error());
    gpsh_tcp_tree_add_link(tree, link, 0);
    gpsh_tcp_tree_set_peers(tree, NULL, addresses, id.secret);
    return tree;
}

// PE 0 dies while PEs leave, and PE 1, at which nobody listens any more, is called.
static bool one_died(bool (*has_told)(int pe))
{
    struct gpsh_tcp_address one;
    int held = closed_port(&one);
    struct gpsh_tcp_tree *parent = start_tree(), *tree = create_caller(&one);
    gpsh_tcp_tree_expect_departures(tree, has_told);
    shutdown(tree->peer[0].link->watch.fd, SHUT_RDWR);
    cr_assert_eq(gpsh_tcp_tree_start(tree), 0);
    for (bool is = false; !is; usleep(1000)) {
        pthread_mutex_lock(&tree->lock);
        is = tree->peer[0].died && (tree->peer[1].died || tree->peer[1].left);
        pthread_mutex_unlock(&tree->lock);
    }
    bool died = tree->peer[1].died;
    gpsh_tcp_tree_destroy(tree);
    gpsh_tcp_tree_destroy(parent);
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

// ---- Who runs ----

static void send_frame(int fd, enum gpsh_frame_type type, int pe, uint32_t number)
{
    struct gpsh_parcel *parcel = gpsh_parcel_create(type, pe, number, 0);
    cr_assert_eq(send(fd, &parcel->frame, sizeof parcel->frame, MSG_NOSIGNAL),
                 (ssize_t)sizeof parcel->frame);
    gpsh_parcel_release(parcel);
}

static struct gpsh_frame next_frame(int fd)
{
    struct gpsh_frame frame;
    receive(fd, &frame, sizeof frame);
    return frame;
}

static struct gpsh_tcp_tree *tree_with_caller(int *fd)
{
    struct gpsh_tcp_address addresses[N_PES] = {{0}};
    struct gpsh_tcp_tree *tree = start_tree();
    *fd = call();
    await_links(tree, true);
    gpsh_tcp_tree_set_peers(tree, NULL, addresses, id.secret);
    return tree;
}

Test(tcp_tree, is_mute__asked_and_silent__until_it_answers, .timeout = 60)
{
    int fd;
    struct gpsh_tcp_tree *tree = tree_with_caller(&fd);
    cr_expect_not(gpsh_tcp_tree_is_mute(tree, CALLER), "it has not been asked before");
    struct gpsh_frame asked = next_frame(fd);
    cr_expect_eq(asked.type, GPSH_FRAME_ASK);
    cr_expect_eq(asked.pe, CALLER);
    while (!gpsh_tcp_tree_is_mute(tree, CALLER))
        usleep(10000);
    send_frame(fd, GPSH_FRAME_RUNS, CALLER, asked.round);
    while (gpsh_tcp_tree_is_mute(tree, CALLER))
        usleep(10000);
    cr_expect_eq(first_death(tree), -1);
    gpsh_tcp_tree_destroy(tree);
    close(fd);
}

// The caller asks about this PE, again, about one that nobody is, and about this PE once more.
Test(tcp_tree, question__about_this_pe__answered_once)
{
    int fd;
    struct gpsh_tcp_tree *tree = tree_with_caller(&fd);
    send_frame(fd, GPSH_FRAME_ASK, 0, 7);
    send_frame(fd, GPSH_FRAME_ASK, 0, 7);
    send_frame(fd, GPSH_FRAME_ASK, 0, 6);
    send_frame(fd, GPSH_FRAME_ASK, N_PES, 8);
    send_frame(fd, GPSH_FRAME_ASK, -1, 8);
    send_frame(fd, GPSH_FRAME_ASK, 0, 8);
    for (uint32_t number = 7; number < 9; number++) {
        struct gpsh_frame answer = next_frame(fd);
        cr_expect_eq(answer.type, GPSH_FRAME_RUNS);
        cr_expect_eq(answer.pe, 0);
        cr_expect_eq(answer.round, number);
    }
    gpsh_tcp_tree_destroy(tree);
    close(fd);
}
