// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // epoll, eventfd
#include "bootstrap/tcp_loop.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

// Descriptors of all loops. A forked child closes them: else its copies would keep the connections
// of a PE that died, and nobody would notice. (A child that calls exec loses them anyway.)
static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;
static uint8_t *open_bits;
static int open_room; // descriptors that open_bits has a bit for

static void forks_begin(void)
{
    pthread_mutex_lock(&open_lock);
}

static void forks_parent(void)
{
    pthread_mutex_unlock(&open_lock);
}

static void forks_child(void)
{
    for (int fd = 0; fd < open_room; fd++)
        if (open_bits[fd / 8] & 1 << fd % 8)
            close(fd);
    memset(open_bits, 0, (size_t)open_room / 8);
    pthread_mutex_unlock(&open_lock);
}

static void forks_watch(void)
{
    pthread_atfork(forks_begin, forks_parent, forks_child); // without memory: as before
}

static int open_grow(int fd)
{
    int room = open_room ? open_room : 1024;
    while (room <= fd)
        room *= 2;
    uint8_t *bits = realloc(open_bits, (size_t)room / 8);
    if (!bits)
        return ENOMEM;
    memset(bits + open_room / 8, 0, (size_t)(room - open_room) / 8);
    open_bits = bits;
    open_room = room;
    return 0;
}

static int open_note(int fd)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, forks_watch);
    pthread_mutex_lock(&open_lock);
    int error = fd < open_room ? 0 : open_grow(fd);
    if (!error)
        open_bits[fd / 8] |= (uint8_t)(1 << fd % 8);
    pthread_mutex_unlock(&open_lock);
    return error;
}

static void open_forget(int fd, bool close_it)
{
    pthread_mutex_lock(&open_lock);
    if (fd < open_room)
        open_bits[fd / 8] &= (uint8_t) ~(1 << fd % 8);
    if (close_it)
        close(fd);
    pthread_mutex_unlock(&open_lock);
}

static void open_close(int fd)
{
    open_forget(fd, true);
}

static void woken(struct gpsh_tcp_watch *watch, uint32_t events)
{
    uint64_t count;
    (void)events;
    if (read(watch->fd, &count, sizeof count) < 0)
        return; // nothing is there: somebody else's wake was read along with an earlier one
}

int gpsh_tcp_loop_add(struct gpsh_tcp_loop *loop, struct gpsh_tcp_watch *watch, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = watch};
    int error = open_note(watch->fd);
    return error ? error : epoll_ctl(loop->epoll, EPOLL_CTL_ADD, watch->fd, &event) ? errno : 0;
}

void gpsh_tcp_loop_change(struct gpsh_tcp_loop *loop, struct gpsh_tcp_watch *watch, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = watch};
    epoll_ctl(loop->epoll, EPOLL_CTL_MOD, watch->fd, &event);
}

void gpsh_tcp_loop_remove(struct gpsh_tcp_loop *loop, struct gpsh_tcp_watch *watch)
{
    if (watch->fd < 0)
        return;
    // Closing alone is not enough: a child that was forked meanwhile keeps the socket open.
    epoll_ctl(loop->epoll, EPOLL_CTL_DEL, watch->fd, NULL);
    open_close(watch->fd);
    watch->fd = -1;
}

int gpsh_tcp_loop_release(struct gpsh_tcp_loop *loop, struct gpsh_tcp_watch *watch)
{
    int fd = watch->fd;
    epoll_ctl(loop->epoll, EPOLL_CTL_DEL, fd, NULL);
    open_forget(fd, false);
    watch->fd = -1;
    return fd;
}

int gpsh_tcp_loop_open(struct gpsh_tcp_loop *loop)
{
    loop->epoll = epoll_create1(EPOLL_CLOEXEC);
    loop->wake =
        (struct gpsh_tcp_watch){.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), .ready = woken};
    int error = loop->epoll < 0 || loop->wake.fd < 0 ? errno : open_note(loop->epoll);
    if (!error)
        error = gpsh_tcp_loop_add(loop, &loop->wake, EPOLLIN);
    if (error)
        gpsh_tcp_loop_close(loop);
    return error;
}

void gpsh_tcp_loop_close(struct gpsh_tcp_loop *loop)
{
    if (loop->wake.fd >= 0)
        open_close(loop->wake.fd);
    if (loop->epoll >= 0)
        open_close(loop->epoll);
    loop->wake.fd = loop->epoll = -1;
}

struct gpsh_tcp_watch *gpsh_tcp_loop_wait(struct gpsh_tcp_loop *loop, int ms, uint32_t *events)
{
    struct epoll_event event;
    if (epoll_wait(loop->epoll, &event, 1, ms) != 1)
        return NULL;
    *events = event.events;
    return event.data.ptr;
}

void gpsh_tcp_loop_wake(struct gpsh_tcp_loop *loop)
{
    const uint64_t one = 1;
    if (write(loop->wake.fd, &one, sizeof one) < 0)
        return; // the counter is full: the thread is being woken anyway
}
