// SPDX-License-Identifier: BSD-3-Clause
// One thread that waits for many descriptors.
#ifndef GPSH_TCP_LOOP_H
#define GPSH_TCP_LOOP_H

#include <stdint.h>

// A descriptor, and what is called when it is ready (events of epoll). Part of whatever owns it.
struct gpsh_tcp_watch {
    int fd;
    void (*ready)(struct gpsh_tcp_watch *watch, uint32_t events);
};

struct gpsh_tcp_loop {
    int epoll;
    struct gpsh_tcp_watch wake;
};

int gpsh_tcp_loop_open(struct gpsh_tcp_loop *loop); // 0 or an errno value
void gpsh_tcp_loop_close(struct gpsh_tcp_loop *loop);
int gpsh_tcp_loop_add(struct gpsh_tcp_loop *loop, struct gpsh_tcp_watch *watch, uint32_t events);
void gpsh_tcp_loop_change(struct gpsh_tcp_loop *loop, struct gpsh_tcp_watch *watch,
                          uint32_t events);
// Also closes the descriptor.
void gpsh_tcp_loop_remove(struct gpsh_tcp_loop *loop, struct gpsh_tcp_watch *watch);
// The same, but the descriptor stays open, and is returned: it is the caller's.
int gpsh_tcp_loop_release(struct gpsh_tcp_loop *loop, struct gpsh_tcp_watch *watch);
// Waits for the next event, `ms` at most (-1: for ever), and returns what is ready, or NULL. One at
// a time, so that handling it may remove any other.
struct gpsh_tcp_watch *gpsh_tcp_loop_wait(struct gpsh_tcp_loop *loop, int ms, uint32_t *events);
// From any thread: the wait returns.
void gpsh_tcp_loop_wake(struct gpsh_tcp_loop *loop);

#endif
