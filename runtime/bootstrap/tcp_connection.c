// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // epoll, eventfd, TCP_USER_TIMEOUT
#include "bootstrap/tcp_connection.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

// ------------------------------------------------------------------------------------------
// one thread that waits for many descriptors

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

// ------------------------------------------------------------------------------------------
// a connection to a PE

enum { IDLE_S = 10, INTERVAL_S = 5, PROBES = 5, PATIENCE_MS = 35000 };

void gpsh_tcp_link_options(int fd)
{
    const struct {
        int level, name, value;
    } options[] = {
        {SOL_SOCKET, SO_KEEPALIVE, 1},       {IPPROTO_TCP, TCP_NODELAY, 1},
        {IPPROTO_TCP, TCP_KEEPIDLE, IDLE_S}, {IPPROTO_TCP, TCP_KEEPINTVL, INTERVAL_S},
        {IPPROTO_TCP, TCP_KEEPCNT, PROBES},  {IPPROTO_TCP, TCP_USER_TIMEOUT, PATIENCE_MS}};
    // Each is an improvement only: a system without one of them works, too.
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
        (void)setsockopt(fd, options[i].level, options[i].name, &options[i].value,
                         sizeof options[i].value);
}

// The last two count together: the kernel gives up when both are over.
void gpsh_tcp_link_be_patient(struct gpsh_tcp_link *link)
{
    const int ms = GPSH_TCP_NODE_PATIENCE_S * 1000;
    const int probes = (GPSH_TCP_NODE_PATIENCE_S - IDLE_S) / INTERVAL_S;
    (void)setsockopt(link->watch.fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
    (void)setsockopt(link->watch.fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof ms);
}

bool gpsh_tcp_link_has_arrived(const struct gpsh_tcp_link *link)
{
    int unacknowledged = 0;
    return link->ended ||
           (!link->n_out && (ioctl(link->watch.fd, SIOCOUTQ, &unacknowledged) || !unacknowledged));
}

bool gpsh_tcp_is_full(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS;
}

// Nothing more goes in or out; the owner is told, once.
static void link_end(struct gpsh_tcp_link *link, const char *why)
{
    if (link->ended)
        return;
    link->ended = true;
    gpsh_tcp_loop_remove(link->loop, &link->watch);
    link->ops->lost(link, why);
}

// Of the PE at the other end, which has not said goodbye.
static const char *link_ending(int error)
{
    switch (error) {
    case ETIMEDOUT:
    case EHOSTUNREACH:
    case ENETUNREACH: return "its host does not answer any more";
    case 0:
    case EPIPE:
    case ECONNRESET: return "its process ended without gpushmem_finalize";
    default: return strerror(error);
    }
}

// True: all of it is gone; else *why is why the connection ended, or NULL.
static bool link_flush(struct gpsh_tcp_link *link, const char **why)
{
    *why = NULL;
    while (link->n_out) {
        struct gpsh_parcel *first = link->out[0];
        size_t bytes = sizeof first->frame + first->frame.bytes;
        const uint8_t *from = (const uint8_t *)&first->frame + link->sent;
        ssize_t n = send(link->watch.fd, from, bytes - link->sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno != EAGAIN) {
            link->error = errno;
            *why = link_ending(link->error);
        }
        if (n < 0)
            return false;
        link->sent += (size_t)n;
        if (link->sent < bytes)
            continue;
        gpsh_parcel_release(first);
        link->sent = 0;
        memmove(link->out, link->out + 1, --link->n_out * sizeof *link->out);
    }
    return true;
}

// A frame is complete.
static void link_deliver(struct gpsh_tcp_link *link)
{
    struct gpsh_parcel *parcel = link->parcel;
    link->parcel = NULL;
    link->in_bytes = 0;
    link->ops->frame(link, parcel);
}

static const char *link_begin_parcel(struct gpsh_tcp_link *link)
{
    if (!gpsh_frame_check(&link->in))
        return "it sent what is no message of this library";
    link->parcel = gpsh_parcel_create(link->in.type, link->in.pe, link->in.round, link->in.bytes);
    return link->parcel ? NULL : "there is no memory for what it sent";
}

// Reads what is there, up to the end of a frame. NULL: go on when there is more.
static const char *link_read(struct gpsh_tcp_link *link)
{
    enum { HEADER = sizeof link->in };
    size_t payload = link->parcel ? link->in.bytes : 0;
    bool in_header = !link->parcel;
    uint8_t *to = in_header ? (uint8_t *)&link->in + link->in_bytes
                            : link->parcel->payload + (link->in_bytes - HEADER);
    size_t want = (in_header ? HEADER : HEADER + payload) - link->in_bytes;
    ssize_t n = recv(link->watch.fd, to, want, MSG_DONTWAIT);
    if (n == 0)
        return link->left ? "it left" : link_ending(link->error);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return NULL;
    if (n < 0) {
        link->error = errno;
        return link_ending(link->error);
    }
    link->in_bytes += (size_t)n;
    if (in_header && link->in_bytes == HEADER) {
        const char *why = link_begin_parcel(link);
        if (why)
            return why;
    }
    if (link->parcel && link->in_bytes == HEADER + link->in.bytes)
        link_deliver(link);
    return NULL;
}

static void link_ready(struct gpsh_tcp_watch *watch, uint32_t events)
{
    struct gpsh_tcp_link *link = (struct gpsh_tcp_link *)(void *)watch;
    const char *why = NULL;
    if (events & EPOLLOUT && link_flush(link, &why))
        gpsh_tcp_loop_change(link->loop, watch, EPOLLIN);
    // What the other end said before it went away is still to be read.
    if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
        why = link_read(link);
    if (why)
        link_end(link, why);
}

struct gpsh_tcp_link *gpsh_tcp_link_create(struct gpsh_tcp_loop *loop, int fd, int pe,
                                           const struct gpsh_tcp_link_ops *ops, void *owner)
{
    struct gpsh_tcp_link *link = calloc(1, sizeof *link);
    int flags = fcntl(fd, F_GETFL);
    if (link && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0) {
        *link = (struct gpsh_tcp_link){.watch = {.fd = fd, .ready = link_ready},
                                       .loop = loop,
                                       .ops = ops,
                                       .owner = owner,
                                       .pe = pe};
        gpsh_tcp_link_options(fd);
        if (gpsh_tcp_loop_add(loop, &link->watch, EPOLLIN) == 0)
            return link;
    }
    close(fd);
    free(link);
    return NULL;
}

void gpsh_tcp_link_destroy(struct gpsh_tcp_link *link)
{
    if (!link)
        return;
    gpsh_tcp_loop_remove(link->loop, &link->watch);
    for (size_t i = 0; i < link->n_out; i++)
        gpsh_parcel_release(link->out[i]);
    gpsh_parcel_release(link->parcel);
    gpsh_parcel_release(link->kept);
    free(link->out);
    free(link);
}

void gpsh_tcp_link_send(struct gpsh_tcp_link *link, struct gpsh_parcel *parcel)
{
    if (link->ended)
        return;
    if (link->n_out == link->room) {
        size_t room = link->room ? 2 * link->room : 4;
        struct gpsh_parcel **out = realloc(link->out, room * sizeof *out);
        if (!out) {
            // Without this message the two would wait for each other: rather end.
            shutdown(link->watch.fd, SHUT_RDWR);
            return;
        }
        link->out = out;
        link->room = room;
    }
    atomic_fetch_add(&parcel->references, 1);
    link->out[link->n_out++] = parcel;
    const char *why;
    // An error shows when the loop reads from the connection, after what came before it.
    if (!link_flush(link, &why))
        gpsh_tcp_loop_change(link->loop, &link->watch, why ? EPOLLIN : EPOLLIN | EPOLLOUT);
}
