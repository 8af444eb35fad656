// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // accept4
#include "bootstrap/tcp_hold.h"

#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

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

void gpsh_tcp_hold_open(struct gpsh_tcp_hold *hold, int listener,
                        const struct gpsh_tcp_address *address)
{
    hold->called = -1;
    hold->caller = hold_call(address);
    if (hold->caller >= 0)
        hold->called = hold_accept(listener, hold->caller);
    if (hold->called < 0 || shutdown(hold->called, SHUT_WR))
        gpsh_tcp_hold_close(hold);
}

// A connection that is reset leaves nothing behind.
void gpsh_tcp_hold_close(struct gpsh_tcp_hold *hold)
{
    const struct linger reset = {.l_onoff = 1, .l_linger = 0};
    if (hold->caller >= 0) {
        (void)setsockopt(hold->caller, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
        close(hold->caller);
    }
    if (hold->called >= 0)
        close(hold->called);
    hold->caller = hold->called = -1;
}
