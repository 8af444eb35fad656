// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // accept4
#include "bootstrap/tcp_admission.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bootstrap/tcp_connection.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/log.h"

enum {
    BACKLOG = 4096,
    VISIT_MS = 10000, // for a hello, which is short
    MOST_VISITORS = 512,
    LEAST_VISITORS = 16,
};

// In the order in which they came, so the oldest is the first whose time is over.
struct gpsh_tcp_visitor {
    struct gpsh_tcp_watch watch; // first
    struct gpsh_tcp_gate *gate;
    struct gpsh_tcp_visitor *older, *newer;
    uint64_t deadline_ns;
    struct gpsh_tcp_address from;
    struct gpsh_greeting greeting;
    struct gpsh_hello hello;
    size_t bytes; // of the hello that have come
};

static void visitor_unlink(struct gpsh_tcp_visitor *v)
{
    struct gpsh_tcp_gate *gate = v->gate;
    *(v->older ? &v->older->newer : &gate->oldest) = v->newer;
    *(v->newer ? &v->newer->older : &gate->newest) = v->older;
    gate->visitors--;
}

// NULL: it wanted to know whether somebody listens here, as PEs do.
static void visitor_put_off(struct gpsh_tcp_visitor *v, const char *why)
{
    char from[GPSH_TCP_TEXT_BYTES];
    if (why && v->gate->strangers++ == 0)
        GPSH_LOG(INFO, "bootstrap", "a connection from %s was closed: %s (said once)",
                 gpsh_tcp_address_text(&v->from, from), why);
    visitor_unlink(v);
    gpsh_tcp_loop_remove(v->gate->loop, &v->watch);
    free(v);
}

// A PE says who it is at once, so the oldest visitor is hardly one; if it is, it calls again.
// Without visitors the descriptors are with PEs, or with the program.
static void gate_is_full(struct gpsh_tcp_gate *gate, int error)
{
    if (gate->oldest)
        visitor_put_off(gate->oldest, "others came, and it said nothing");
    else
        gate->accept_error = error;
}

static void visitor_admit(struct gpsh_tcp_visitor *v)
{
    struct gpsh_tcp_gate *gate = v->gate;
    struct gpsh_confirmation answer;
    gpsh_confirmation_make(&gate->id, &v->greeting, &v->hello, &answer);
    // The socket is new and its buffer empty, so this never blocks.
    if (send(v->watch.fd, &answer, sizeof answer, MSG_NOSIGNAL | MSG_DONTWAIT) !=
        (ssize_t)sizeof answer) {
        visitor_put_off(v, "it went away");
        return;
    }
    visitor_unlink(v);
    // From here on it counts on the connection: that this one can open no more files must not end
    // it.
    int fd = gpsh_tcp_loop_release(gate->loop, &v->watch);
    gate->admit(gate, fd, &v->hello, &v->from);
    free(v);
}

// It had no patience while this process was stopped, or busy. Its end would look like its death.
static bool visitor_has_gone(const struct gpsh_tcp_visitor *v)
{
    char next;
    return recv(v->watch.fd, &next, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

static void visitor_ready(struct gpsh_tcp_watch *watch, uint32_t events)
{
    struct gpsh_tcp_visitor *v = (struct gpsh_tcp_visitor *)(void *)watch;
    (void)events;
    ssize_t n =
        recv(watch->fd, (uint8_t *)&v->hello + v->bytes, sizeof v->hello - v->bytes, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        visitor_put_off(v, v->bytes ? "it ended before it said who it is" : NULL);
        return;
    }
    v->bytes += (size_t)n;
    // Nonsense is known by its first bytes; a hello is looked at when it is whole.
    if (v->bytes < sizeof v->hello)
        return;
    if (!gpsh_hello_check(&v->gate->id, &v->greeting, &v->hello))
        visitor_put_off(v, "it does not know the secret of the unique id");
    else if (visitor_has_gone(v))
        visitor_put_off(v, "it went away");
    else
        visitor_admit(v);
}

static void visitor_create(struct gpsh_tcp_gate *gate, int fd, const struct sockaddr *from)
{
    struct gpsh_tcp_visitor *v = calloc(1, sizeof *v);
    if (!v || gpsh_greeting_make(&gate->id, &v->greeting)) {
        close(fd);
        free(v);
        return;
    }
    v->watch = (struct gpsh_tcp_watch){.fd = fd, .ready = visitor_ready};
    v->gate = gate;
    v->deadline_ns = gpsh_clock_ns() + VISIT_MS * (uint64_t)1000000;
    gpsh_tcp_address_from(from, &v->from);
    v->older = gate->newest;
    *(v->older ? &v->older->newer : &gate->oldest) = v;
    gate->newest = v;
    gate->visitors++;
    bool greeted = send(fd, &v->greeting, sizeof v->greeting, MSG_NOSIGNAL | MSG_DONTWAIT) ==
                   (ssize_t)sizeof v->greeting;
    if (!greeted || gpsh_tcp_loop_add(gate->loop, &v->watch, EPOLLIN))
        visitor_put_off(v, "it went away");
    else if (gate->visitors > gate->most_visitors)
        visitor_put_off(gate->oldest, "too many others came after it, and it said nothing");
}

static void listener_ready(struct gpsh_tcp_watch *watch, uint32_t events)
{
    struct gpsh_tcp_gate *gate = ((struct gpsh_tcp_listener *)(void *)watch)->gate;
    struct sockaddr_storage from = {0};
    socklen_t bytes = sizeof from;
    (void)events;
    int fd = accept4(watch->fd, (struct sockaddr *)&from, &bytes, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0)
        visitor_create(gate, fd, (struct sockaddr *)&from);
    else if (gpsh_tcp_is_full(errno))
        gate_is_full(gate, errno);
}

// 0 or an errno value. *address gets the port.
static int listener_open(struct gpsh_tcp_gate *gate, struct gpsh_tcp_listener *listener,
                         struct gpsh_tcp_address *address)
{
    struct sockaddr_storage where;
    socklen_t bytes = gpsh_tcp_address_to(address, &where);
    int on = 1,
        fd = socket(where.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP);
    listener->gate = gate;
    listener->watch = (struct gpsh_tcp_watch){.fd = fd, .ready = listener_ready};
    if (fd < 0)
        return errno;
    int error = 0;
    // An IPv6 socket shall not take the IPv4 port of the same number from another listener.
    if ((address->version == 6 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on)) ||
        bind(fd, (struct sockaddr *)&where, bytes) || listen(fd, BACKLOG) ||
        getsockname(fd, (struct sockaddr *)&where, &bytes))
        error = errno;
    if (!error)
        error = gpsh_tcp_loop_add(gate->loop, &listener->watch, EPOLLIN);
    if (error) {
        close(fd);
        return error;
    }
    gpsh_tcp_address_from((struct sockaddr *)&where, address);
    return 0;
}

// Strangers must not take the program's descriptors: they get a quarter of them.
static int choose_most_visitors(void)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) || files.rlim_cur / 4 > MOST_VISITORS)
        return MOST_VISITORS;
    int quarter = (int)(files.rlim_cur / 4);
    return quarter > LEAST_VISITORS ? quarter : LEAST_VISITORS;
}

int gpsh_tcp_gate_open(struct gpsh_tcp_gate *gate, struct gpsh_tcp_loop *loop,
                       const struct gpsh_uniqueid *id, gpsh_tcp_admit_fn *admit, void *owner)
{
    char text[GPSH_TCP_TEXT_BYTES];
    int n = 0, error = 0;
    *gate = (struct gpsh_tcp_gate){
        .loop = loop, .id = *id, .admit = admit, .owner = owner, .caller = -1, .called = -1};
    gate->most_visitors = choose_most_visitors();
    for (int i = 0; i < id->n_addresses; i++) {
        struct gpsh_tcp_address address = id->address[i];
        int failed = listener_open(gate, &gate->listener[n], &address);
        error = failed ? failed : error;
        if (!failed)
            gate->id.address[n++] = address;
    }
    gate->id.n_addresses = n;
    if (n)
        return 0;
    return gpsh_fail(GPUSHMEM_ERR_SYSTEM,
                     "this process cannot listen at %s: %s; GPUSHMEM_BOOTSTRAP_INTERFACE chooses "
                     "another interface",
                     gpsh_tcp_address_text(&id->address[0], text), strerror(error));
}

int gpsh_tcp_gate_tick(struct gpsh_tcp_gate *gate)
{
    uint64_t now = gpsh_clock_ns();
    while (gate->oldest && gate->oldest->deadline_ns <= now)
        visitor_put_off(gate->oldest, "it said nothing for too long");
    return gate->oldest ? (int)((gate->oldest->deadline_ns - now) / 1000000) + 1 : -1;
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
static void hold_end(struct gpsh_tcp_gate *gate)
{
    const struct linger reset = {.l_onoff = 1, .l_linger = 0};
    if (gate->caller >= 0) {
        (void)setsockopt(gate->caller, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
        close(gate->caller);
    }
    if (gate->called >= 0)
        close(gate->called);
    gate->caller = gate->called = -1;
}

void gpsh_tcp_gate_hold(struct gpsh_tcp_gate *gate)
{
    gate->caller = hold_call(&gate->id.address[0]);
    if (gate->caller >= 0)
        gate->called = hold_accept(gate->listener[0].watch.fd, gate->caller);
    if (gate->called < 0 || shutdown(gate->called, SHUT_WR))
        hold_end(gate);
}

void gpsh_tcp_gate_close(struct gpsh_tcp_gate *gate)
{
    while (gate->oldest) {
        struct gpsh_tcp_visitor *v = gate->oldest;
        visitor_unlink(v);
        gpsh_tcp_loop_remove(gate->loop, &v->watch);
        free(v);
    }
    for (int i = 0; i < gate->id.n_addresses; i++)
        gpsh_tcp_loop_remove(gate->loop, &gate->listener[i].watch);
    if (gate->id.n_addresses)
        hold_end(gate);
    gate->id.n_addresses = 0;
}
