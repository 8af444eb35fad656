// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // epoll, eventfd, TCP_USER_TIMEOUT
#include "bootstrap/tcp_link.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/clock.h"

enum {
    CONNECT_MS = 2000, // a packet may be lost
    HELLO_MS = 10000,  // for a hello, which is short
};

// ------------------------------------------------------------------------------------------
// one thread that waits for many descriptors

// Descriptors of all loops. A forked child closes them: else its copies would keep the connections
// of a PE that died, and nobody would notice. (A child that calls exec loses them anyway.) As many
// as Linux lets a process open unless it is told otherwise (fs.nr_open).
enum { MOST_FILES = 1 << 20 };
static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;
static uint8_t open_bits[MOST_FILES / 8];
static int open_end; // all lower than this

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
    for (int fd = 0; fd < open_end; fd++)
        if (open_bits[fd / 8] & 1 << fd % 8)
            close(fd);
    memset(open_bits, 0, (size_t)(open_end + 7) / 8);
    pthread_mutex_unlock(&open_lock);
}

static void forks_watch(void)
{
    pthread_atfork(forks_begin, forks_parent, forks_child); // without memory: as before
}

static void open_note(int fd)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, forks_watch);
    pthread_mutex_lock(&open_lock);
    if (fd < MOST_FILES) {
        open_bits[fd / 8] |= (uint8_t)(1 << fd % 8);
        open_end = fd >= open_end ? fd + 1 : open_end;
    }
    pthread_mutex_unlock(&open_lock);
}

static void open_close(int fd)
{
    pthread_mutex_lock(&open_lock);
    if (fd < MOST_FILES)
        open_bits[fd / 8] &= (uint8_t) ~(1 << fd % 8);
    close(fd);
    pthread_mutex_unlock(&open_lock);
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
    open_note(watch->fd);
    return epoll_ctl(loop->epoll, EPOLL_CTL_ADD, watch->fd, &event) ? errno : 0;
}

static void loop_change(struct gpsh_tcp_loop *loop, struct gpsh_tcp_watch *watch, uint32_t events)
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

int gpsh_tcp_loop_open(struct gpsh_tcp_loop *loop)
{
    *loop = (struct gpsh_tcp_loop){.epoll = epoll_create1(EPOLL_CLOEXEC)};
    loop->wake =
        (struct gpsh_tcp_watch){.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), .ready = woken};
    int error = loop->epoll < 0 || loop->wake.fd < 0 ? errno : 0;
    if (!error) {
        open_note(loop->epoll);
        error = gpsh_tcp_loop_add(loop, &loop->wake, EPOLLIN);
    }
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

void gpsh_tcp_loop_wake(struct gpsh_tcp_loop *loop)
{
    const uint64_t one = 1;
    if (write(loop->wake.fd, &one, sizeof one) < 0)
        return; // the counter is full: the thread is being woken anyway
}

// ------------------------------------------------------------------------------------------
// the beginning and the end of a connection

static void link_ready(struct gpsh_tcp_watch *watch, uint32_t events);

static void pending_add(struct gpsh_tcp_link *link)
{
    struct gpsh_tcp_loop *loop = link->loop;
    link->older = loop->newest;
    *(link->older ? &link->older->newer : &loop->oldest) = link;
    loop->newest = link;
}

static void pending_remove(struct gpsh_tcp_link *link)
{
    struct gpsh_tcp_loop *loop = link->loop;
    *(link->older ? &link->older->newer : &loop->oldest) = link->newer;
    *(link->newer ? &link->newer->older : &loop->newest) = link->older;
    link->older = link->newer = NULL;
}

static bool is_pending(const struct gpsh_tcp_link *link)
{
    return link->state < GPSH_TCP_OPEN;
}

bool gpsh_tcp_is_full(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS;
}

static bool is_unreached(int error)
{
    return error == ETIMEDOUT || error == EHOSTUNREACH || error == ENETUNREACH ||
           error == EHOSTDOWN || error == ENETDOWN;
}

// What the end of a connection in this state says.
static enum gpsh_tcp_ending ending_of(enum gpsh_tcp_state state, int error)
{
    if (state == GPSH_TCP_OPEN)
        return GPSH_TCP_LOST;
    if (is_unreached(error))
        return GPSH_TCP_UNREACHED;
    if (state == GPSH_TCP_AWAITS_ANSWER)
        return GPSH_TCP_REJECTED;
    if (state == GPSH_TCP_CONNECTING && error != ECONNRESET) // else it is this process's trouble
        return error == ECONNREFUSED ? GPSH_TCP_REFUSED : GPSH_TCP_FULL;
    return GPSH_TCP_HUNG_UP;
}

// Once, and nothing may touch the link afterwards: its owner is told, who may have destroyed it.
static void link_end(struct gpsh_tcp_link *link, enum gpsh_tcp_ending ending, int error)
{
    if (link->state == GPSH_TCP_ENDED)
        return;
    if (is_pending(link))
        pending_remove(link);
    link->state = GPSH_TCP_ENDED;
    link->ending = ending;
    link->error = error;
    gpsh_tcp_loop_remove(link->loop, &link->watch);
    link->ops->ended(link);
}

void gpsh_tcp_link_end(struct gpsh_tcp_link *link, const char *why)
{
    link->why = why;
    link_end(link, link->state == GPSH_TCP_OPEN ? GPSH_TCP_LOST : GPSH_TCP_DROPPED, 0);
}

const char *gpsh_tcp_link_why(const struct gpsh_tcp_link *link)
{
    if (link->why)
        return link->why;
    if (is_unreached(link->error))
        return "its host does not answer any more";
    if (!link->error || link->error == EPIPE || link->error == ECONNRESET)
        return "its process ended without gpushmem_finalize";
    return strerror(link->error);
}

void gpsh_tcp_link_destroy(struct gpsh_tcp_link *link)
{
    if (!link)
        return;
    if (is_pending(link))
        pending_remove(link);
    gpsh_tcp_loop_remove(link->loop, &link->watch);
    for (size_t i = 0; i < link->n_out; i++)
        gpsh_parcel_release(link->out[i]);
    gpsh_parcel_release(link->parcel);
    gpsh_parcel_release(link->kept);
    free(link->out);
    free(link);
}

// Nobody may wait for ever for the one that is late. It is not, if only this process was.
static void link_is_late(struct gpsh_tcp_link *link)
{
    const int error = link->error ? link->error : ETIMEDOUT; // it has ended before it began
    struct pollfd ready = {.fd = link->watch.fd,
                           .events = link->state == GPSH_TCP_CONNECTING ? POLLOUT : POLLIN};
    if (!link->error && poll(&ready, 1, 0) == 1)
        link_ready(&link->watch, link->state == GPSH_TCP_CONNECTING ? EPOLLOUT : EPOLLIN);
    else if (link->state == GPSH_TCP_CONNECTING)
        link_end(link, ending_of(link->state, error), error);
    else if (link->state == GPSH_TCP_AWAITS_HELLO)
        gpsh_tcp_link_end(link, "it said nothing for too long");
    else
        link_end(link, GPSH_TCP_SILENT, ETIMEDOUT);
}

// Returns in how many ms the next one is late, -1: never.
static int loop_end_late(struct gpsh_tcp_loop *loop)
{
    uint64_t now = gpsh_clock_ns(), first = UINT64_MAX;
    for (struct gpsh_tcp_link *link = loop->oldest, *newer; link; link = newer) {
        newer = link->newer;
        if (link->deadline_ns <= now) {
            link_is_late(link);
            return 0; // its owner may have ended others
        }
        first = link->deadline_ns < first ? link->deadline_ns : first;
    }
    return gpsh_clock_left_ms(first);
}

void gpsh_tcp_loop_turn(struct gpsh_tcp_loop *loop, int ms, pthread_mutex_t *lock)
{
    int late = loop_end_late(loop);
    struct epoll_event event; // one at a time, so that serving it may remove any other
    if (late >= 0 && (ms < 0 || late < ms))
        ms = late;
    if (lock)
        pthread_mutex_unlock(lock);
    int n = epoll_wait(loop->epoll, &event, 1, ms);
    if (lock)
        pthread_mutex_lock(lock);
    struct gpsh_tcp_watch *watch = n == 1 ? event.data.ptr : NULL;
    if (watch)
        watch->ready(watch, event.events);
}

// ------------------------------------------------------------------------------------------
// frames

// True: all of it is gone, or the other side is, which shows when the loop reads from it.
static bool link_flush(struct gpsh_tcp_link *link)
{
    while (link->n_out) {
        struct gpsh_parcel *first = link->out[0];
        size_t bytes = sizeof first->frame + first->frame.bytes;
        const uint8_t *from = (const uint8_t *)&first->frame + link->sent;
        ssize_t n = send(link->watch.fd, from, bytes - link->sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno != EAGAIN;
        link->sent += (size_t)n;
        if (link->sent < bytes)
            continue;
        gpsh_parcel_release(first);
        link->sent = 0;
        memmove(link->out, link->out + 1, --link->n_out * sizeof *link->out);
    }
    return true;
}

void gpsh_tcp_link_send(struct gpsh_tcp_link *link, struct gpsh_parcel *parcel)
{
    if (link->state != GPSH_TCP_OPEN)
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
    if (!link_flush(link))
        loop_change(link->loop, &link->watch, EPOLLIN | EPOLLOUT);
}

bool gpsh_tcp_link_has_arrived(const struct gpsh_tcp_link *link)
{
    int unacknowledged = 0;
    return link->state != GPSH_TCP_OPEN ||
           (!link->n_out && (ioctl(link->watch.fd, SIOCOUTQ, &unacknowledged) || !unacknowledged));
}

// Reads what is there of the next `bytes`. True: all have come; false: not yet, or the link ended.
static bool link_fill(struct gpsh_tcp_link *link, void *to, size_t bytes)
{
    ssize_t n =
        recv(link->watch.fd, (uint8_t *)to + link->in_bytes, bytes - link->in_bytes, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (n <= 0) {
        int error = n < 0 ? errno : 0;
        if (link->state == GPSH_TCP_AWAITS_HELLO && link->in_bytes)
            link->why = "it ended before it said who it is";
        link_end(link, ending_of(link->state, error), error);
        return false;
    }
    link->in_bytes += (size_t)n;
    if (link->in_bytes < bytes)
        return false;
    link->in_bytes = 0;
    return true;
}

static void link_read_frame(struct gpsh_tcp_link *link)
{
    if (!link->parcel) {
        if (!link_fill(link, &link->in, sizeof link->in))
            return;
        bool good = gpsh_frame_check(&link->in);
        if (good)
            link->parcel =
                gpsh_parcel_create(link->in.type, link->in.pe, link->in.round, link->in.bytes);
        if (!link->parcel)
            gpsh_tcp_link_end(link, good ? "there is no memory for what it sent"
                                         : "it sent what is no message of this library");
        if (!good || !link->parcel || link->in.bytes)
            return;
    } else if (!link_fill(link, link->parcel->payload, link->in.bytes)) {
        return;
    }
    struct gpsh_parcel *parcel = link->parcel;
    link->parcel = NULL;
    link->heard = true;
    link->ops->frame(link, parcel);
}

// ------------------------------------------------------------------------------------------
// recognition

static void link_open(struct gpsh_tcp_link *link)
{
    pending_remove(link);
    link->state = GPSH_TCP_OPEN;
    link->ops->open(link);
}

// The socket is new and its buffer empty, so this never blocks.
static bool say(const struct gpsh_tcp_link *link, const void *data, size_t bytes)
{
    return send(link->watch.fd, data, bytes, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)bytes;
}

static void link_is_connected(struct gpsh_tcp_link *link)
{
    int error = 0;
    socklen_t size = sizeof error;
    if (getsockopt(link->watch.fd, SOL_SOCKET, SO_ERROR, &error, &size))
        error = errno;
    if (error) {
        link_end(link, ending_of(link->state, error), error);
        return;
    }
    link->state = GPSH_TCP_AWAITS_GREETING;
    link->deadline_ns = link->greeting_ms ? gpsh_clock_in(link->greeting_ms) : UINT64_MAX;
    loop_change(link->loop, &link->watch, EPOLLIN);
}

static void link_is_greeted(struct gpsh_tcp_link *link)
{
    link->greeted = gpsh_greeting_check(link->id, &link->greeting);
    if (link->greeted != GPSH_GREETED_OK)
        link_end(link, GPSH_TCP_STRANGER, 0);
    else if (link->ops->greeted && link->ops->greeted(link))
        link_end(link, GPSH_TCP_DROPPED, 0);
    else if (gpsh_hello_make(link->id, &link->greeting, &link->hello) ||
             !say(link, &link->hello, sizeof link->hello))
        link_end(link, GPSH_TCP_REJECTED, ECONNRESET);
    else
        link->state = GPSH_TCP_AWAITS_ANSWER;
}

static void link_is_answered(struct gpsh_tcp_link *link)
{
    link->heard = true;
    if (gpsh_confirmation_check(link->id, &link->greeting, &link->hello, &link->answer))
        link_open(link);
    else
        link_end(link, GPSH_TCP_STRANGER, 0);
}

// One that had no patience while this process was stopped, or busy: its end would look like its
// death.
static bool has_gone(const struct gpsh_tcp_link *link)
{
    char next;
    return recv(link->watch.fd, &next, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

static void link_has_said_hello(struct gpsh_tcp_link *link)
{
    if (!gpsh_hello_check(link->id, &link->greeting, &link->hello)) {
        gpsh_tcp_link_end(link, "it does not know the secret of the unique id");
        return;
    }
    gpsh_confirmation_make(link->id, &link->greeting, &link->hello, &link->answer);
    if (has_gone(link) || !say(link, &link->answer, sizeof link->answer))
        gpsh_tcp_link_end(link, "it went away");
    else
        link_open(link);
}

static void link_ready(struct gpsh_tcp_watch *watch, uint32_t events)
{
    struct gpsh_tcp_link *link = (struct gpsh_tcp_link *)(void *)watch;
    switch (link->state) {
    case GPSH_TCP_CONNECTING: link_is_connected(link); break;
    case GPSH_TCP_AWAITS_GREETING:
        if (link_fill(link, &link->greeting, sizeof link->greeting))
            link_is_greeted(link);
        break;
    case GPSH_TCP_AWAITS_ANSWER:
        if (link_fill(link, &link->answer, sizeof link->answer))
            link_is_answered(link);
        break;
    case GPSH_TCP_AWAITS_HELLO:
        if (link_fill(link, &link->hello, sizeof link->hello))
            link_has_said_hello(link);
        break;
    default:
        if (events & EPOLLOUT && link_flush(link))
            loop_change(link->loop, watch, EPOLLIN);
        // What the other end said before it went away is still to be read.
        if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
            link_read_frame(link);
    }
}

// ------------------------------------------------------------------------------------------
// calling, and being called

enum { IDLE_S = 10, INTERVAL_S = 5 };

// Small frames at once, and a host that vanished is noticed. The last two count together: the
// kernel gives up when both are over. Each is an improvement only: a system without one of them
// works, too.
static void set_options(int fd, int patience_s)
{
    const struct {
        int level, name, value;
    } options[] = {{SOL_SOCKET, SO_KEEPALIVE, 1},
                   {IPPROTO_TCP, TCP_NODELAY, 1},
                   {IPPROTO_TCP, TCP_KEEPIDLE, IDLE_S},
                   {IPPROTO_TCP, TCP_KEEPINTVL, INTERVAL_S},
                   {IPPROTO_TCP, TCP_KEEPCNT, (patience_s - IDLE_S) / INTERVAL_S},
                   {IPPROTO_TCP, TCP_USER_TIMEOUT, patience_s * 1000}};
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
        (void)setsockopt(fd, options[i].level, options[i].name, &options[i].value,
                         sizeof options[i].value);
}

void gpsh_tcp_link_be_patient(struct gpsh_tcp_link *link)
{
    set_options(link->watch.fd, GPSH_TCP_NODE_PATIENCE_S);
}

// Without a descriptor, if that is negative: then it ends in the next turn, with `error`.
static struct gpsh_tcp_link *link_create(struct gpsh_tcp_loop *loop, int fd, uint32_t events,
                                         const struct gpsh_tcp_link_ops *ops, void *owner)
{
    struct gpsh_tcp_link *link = calloc(1, sizeof *link);
    if (!link) {
        if (fd >= 0)
            close(fd);
        return NULL;
    }
    *link = (struct gpsh_tcp_link){
        .watch = {.fd = fd, .ready = link_ready}, .loop = loop, .ops = ops, .owner = owner};
    if (fd >= 0) {
        set_options(fd, GPSH_TCP_PATIENCE_S);
        link->error = gpsh_tcp_loop_add(loop, &link->watch, events);
    }
    pending_add(link);
    return link;
}

struct gpsh_tcp_link *gpsh_tcp_link_call(struct gpsh_tcp_loop *loop, const struct gpsh_uniqueid *id,
                                         const struct gpsh_tcp_address *to,
                                         const struct gpsh_hello *hello, int greeting_ms,
                                         const struct gpsh_tcp_link_ops *ops, void *owner)
{
    struct sockaddr_storage where;
    socklen_t bytes = gpsh_tcp_address_to(to, &where);
    int fd = socket(where.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP);
    int error = fd < 0 || connect(fd, (struct sockaddr *)&where, bytes) ? errno : 0;
    struct gpsh_tcp_link *link = link_create(loop, fd, EPOLLOUT, ops, owner);
    if (!link)
        return NULL;
    link->state = GPSH_TCP_CONNECTING;
    link->called = *id;
    link->id = &link->called;
    link->address = *to;
    link->hello = *hello;
    link->greeting_ms = greeting_ms;
    if (error && error != EINPROGRESS && error != EINTR)
        link->error = error;
    link->deadline_ns = link->error ? 0 : gpsh_clock_in(CONNECT_MS);
    return link;
}

struct gpsh_tcp_link *gpsh_tcp_link_greet(struct gpsh_tcp_loop *loop, int fd,
                                          const struct gpsh_uniqueid *id,
                                          const struct gpsh_tcp_link_ops *ops, void *owner)
{
    struct gpsh_tcp_link *link = link_create(loop, fd, EPOLLIN, ops, owner);
    struct sockaddr_storage from = {0};
    socklen_t bytes = sizeof from;
    if (!link)
        return NULL;
    link->state = GPSH_TCP_AWAITS_HELLO;
    link->id = id;
    link->deadline_ns = gpsh_clock_in(HELLO_MS);
    if (!getpeername(fd, (struct sockaddr *)&from, &bytes))
        gpsh_tcp_address_from((struct sockaddr *)&from, &link->address);
    if (!link->error && !gpsh_greeting_make(id, &link->greeting) &&
        say(link, &link->greeting, sizeof link->greeting))
        return link;
    gpsh_tcp_link_destroy(link);
    return NULL;
}
