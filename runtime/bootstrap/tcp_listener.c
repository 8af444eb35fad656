// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // accept4
#include "bootstrap/tcp_listener.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/error.h"
#include "core/log.h"

enum {
    BACKLOG = 4096,
    MOST_CALLERS = 512,
    LEAST_CALLERS = 16,
};

// Without a reason it wanted to know whether somebody listens here, as PEs do.
static void caller_ended(struct gpsh_tcp_link *link)
{
    struct gpsh_tcp_listener *l = link->owner;
    char from[GPSH_TCP_TEXT_BYTES];
    if (link->why && l->strangers++ == 0)
        GPSH_LOG(INFO, "bootstrap", "a connection from %s was closed: %s (said once)",
                 gpsh_tcp_address_text(&link->address, from), link->why);
    l->callers--;
    gpsh_tcp_link_destroy(link);
}

static void caller_is_recognised(struct gpsh_tcp_link *link)
{
    struct gpsh_tcp_listener *l = link->owner;
    l->callers--;
    l->admit(l, link);
}

static const struct gpsh_tcp_link_ops caller_ops = {.open = caller_is_recognised,
                                                    .ended = caller_ended};

// A PE says who it is at once, so the oldest caller is hardly one; if it is, it calls again.
static bool put_off_oldest(const struct gpsh_tcp_listener *l)
{
    for (struct gpsh_tcp_link *link = l->loop->oldest; link; link = link->newer)
        if (link->owner == l && link->state == GPSH_TCP_AWAITS_HELLO) {
            gpsh_tcp_link_end(link, "others came after it, and it said nothing");
            return true;
        }
    return false;
}

static void socket_ready(struct gpsh_tcp_watch *watch, uint32_t events)
{
    struct gpsh_tcp_listener *l = ((struct gpsh_tcp_socket *)(void *)watch)->listener;
    (void)events;
    int fd = accept4(watch->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) { // full, and no caller in the way: the descriptors are with PEs, or the program
        if (gpsh_tcp_is_full(errno) && !put_off_oldest(l))
            l->accept_error = errno;
    } else if (gpsh_tcp_link_greet(l->loop, fd, &l->id, &caller_ops, l)) {
        if (++l->callers > l->most_callers)
            put_off_oldest(l);
    }
}

// 0 or an errno value. *address gets the port.
static int socket_open(struct gpsh_tcp_listener *l, struct gpsh_tcp_socket *s,
                       struct gpsh_tcp_address *address)
{
    struct sockaddr_storage where;
    socklen_t bytes = gpsh_tcp_address_to(address, &where);
    int on = 1,
        fd = socket(where.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP);
    *s = (struct gpsh_tcp_socket){.watch = {.fd = fd, .ready = socket_ready}, .listener = l};
    if (fd < 0)
        return errno;
    int error = 0;
    // An IPv6 socket shall not take the IPv4 port of the same number from another listener.
    if ((address->version == 6 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on)) ||
        bind(fd, (struct sockaddr *)&where, bytes) || listen(fd, BACKLOG) ||
        getsockname(fd, (struct sockaddr *)&where, &bytes))
        error = errno;
    if (!error)
        error = gpsh_tcp_loop_add(l->loop, &s->watch, EPOLLIN);
    if (error)
        close(fd);
    else
        gpsh_tcp_address_from((struct sockaddr *)&where, address);
    return error;
}

// Strangers must not take the program's descriptors: they get a quarter of them.
static int choose_most_callers(void)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) || files.rlim_cur / 4 > MOST_CALLERS)
        return MOST_CALLERS;
    int quarter = (int)(files.rlim_cur / 4);
    return quarter > LEAST_CALLERS ? quarter : LEAST_CALLERS;
}

int gpsh_tcp_listener_open(struct gpsh_tcp_listener *l, struct gpsh_tcp_loop *loop,
                           const struct gpsh_uniqueid *id, gpsh_tcp_admit_fn *admit, void *owner)
{
    char text[GPSH_TCP_TEXT_BYTES];
    int n = 0, error = 0;
    *l = (struct gpsh_tcp_listener){
        .loop = loop, .id = *id, .admit = admit, .owner = owner, .caller = -1, .called = -1};
    l->most_callers = choose_most_callers();
    for (int i = 0; i < id->n_addresses; i++) {
        struct gpsh_tcp_address address = id->address[i];
        int failed = socket_open(l, &l->socket[n], &address);
        error = failed ? failed : error;
        if (!failed)
            l->id.address[n++] = address;
    }
    l->id.n_addresses = n;
    if (n)
        return 0;
    return gpsh_fail(GPUSHMEM_ERR_SYSTEM,
                     "this process cannot listen at %s: %s; GPUSHMEM_BOOTSTRAP_INTERFACE chooses "
                     "another interface",
                     gpsh_tcp_address_text(&id->address[0], text), strerror(error));
}

// ------------------------------------------------------------------------------------------
// a port that is kept

enum { HOLD_MS = 100, MOST_STRANGERS = 16 };

static bool hold_ready(int fd, short events)
{
    struct pollfd ready = {.fd = fd, .events = events};
    return poll(&ready, 1, HOLD_MS) == 1;
}

// To this machine's own address the kernel connects at once, or a firewall forbids it.
static int hold_call(const struct gpsh_tcp_address *address)
{
    struct sockaddr_storage where;
    socklen_t bytes = gpsh_tcp_address_to(address, &where);
    int fd = socket(where.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&where, bytes) && !hold_ready(fd, POLLOUT)) {
        close(fd);
        return -1;
    }
    return fd;
}

static bool hold_is_from(int called, int caller)
{
    struct sockaddr_storage from = {0}, self = {0};
    socklen_t from_bytes = sizeof from, self_bytes = sizeof self;
    return getpeername(called, (struct sockaddr *)&from, &from_bytes) == 0 &&
           getsockname(caller, (struct sockaddr *)&self, &self_bytes) == 0 &&
           from_bytes == self_bytes && memcmp(&from, &self, from_bytes) == 0;
}

// Somebody who tries all ports may have come before.
static int hold_accept(int listener, int caller)
{
    for (int i = 0; i < MOST_STRANGERS && hold_ready(listener, POLLIN); i++) {
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd >= 0 && hold_is_from(fd, caller))
            return fd;
        if (fd >= 0)
            close(fd);
    }
    return -1;
}

// A connection that is reset leaves nothing behind: the port is free at once.
static void hold_end(struct gpsh_tcp_listener *l)
{
    const struct linger reset = {.l_onoff = 1, .l_linger = 0};
    if (l->caller >= 0) {
        (void)setsockopt(l->caller, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
        close(l->caller);
    }
    if (l->called >= 0)
        close(l->called);
    l->caller = l->called = -1;
}

void gpsh_tcp_listener_hold(struct gpsh_tcp_listener *l)
{
    l->caller = hold_call(&l->id.address[0]);
    if (l->caller >= 0)
        l->called = hold_accept(l->socket[0].watch.fd, l->caller);
    if (l->called < 0 || shutdown(l->called, SHUT_WR))
        hold_end(l);
}

// ------------------------------------------------------------------------------------------

void gpsh_tcp_listener_close(struct gpsh_tcp_listener *l)
{
    for (struct gpsh_tcp_link *link = l->loop->oldest, *newer; link; link = newer) {
        newer = link->newer;
        if (link->owner == l)
            gpsh_tcp_link_destroy(link);
    }
    for (int i = 0; i < l->id.n_addresses; i++)
        gpsh_tcp_loop_remove(l->loop, &l->socket[i].watch);
    if (l->id.n_addresses)
        hold_end(l);
    l->id.n_addresses = 0;
}
