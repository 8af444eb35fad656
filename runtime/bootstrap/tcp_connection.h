// SPDX-License-Identifier: BSD-3-Clause
// Connections between PEs that recognised each other, served by one thread.
#ifndef GPSH_TCP_CONNECTION_H
#define GPSH_TCP_CONNECTION_H

#include <stdbool.h>
#include <stdint.h>

#include "bootstrap/tcp_wire.h"

// One thread that waits for many descriptors.

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

// A connection to a PE that was recognised: frames in and out, without ever blocking. Everything
// that touches a link holds the lock of its owner.

struct gpsh_tcp_link;

struct gpsh_tcp_link_ops {
    // A frame has come. The parcel is the receiver's to release.
    void (*frame)(struct gpsh_tcp_link *link, struct gpsh_parcel *parcel);
    // The connection ended, for `why`; the link may be destroyed now.
    void (*lost)(struct gpsh_tcp_link *link, const char *why);
};

struct gpsh_tcp_link {
    struct gpsh_tcp_watch watch; // first
    struct gpsh_tcp_loop *loop;
    const struct gpsh_tcp_link_ops *ops;
    void *owner;
    int pe;               // at the other end
    bool left;            // it said that it leaves in order
    bool unheard;         // the owner's: it has called, and has said nothing yet
    int error;            // errno of what ended it, 0: the other end closed it
    bool ended;           // nothing comes any more, and nothing can be sent
    struct gpsh_frame in; // being read
    struct gpsh_parcel *parcel;
    size_t in_bytes;            // of `in` and the parcel's payload that have come
    struct gpsh_parcel **out;   // to be sent
    size_t n_out, room, sent;   // how many, room for how many; bytes of the first that are sent
    struct gpsh_parcel *kept;   // the owner's: released with the link
    struct gpsh_tcp_link *next; // the owner's
};

// Takes the descriptor, which is made non-blocking; closes it on failure. NULL: no memory.
struct gpsh_tcp_link *gpsh_tcp_link_create(struct gpsh_tcp_loop *loop, int fd, int pe,
                                           const struct gpsh_tcp_link_ops *ops, void *owner);
void gpsh_tcp_link_destroy(struct gpsh_tcp_link *link); // NULL is legal
// Takes a reference of its own. What cannot be sent at once is sent when the loop runs. A link that
// has ended ignores it.
void gpsh_tcp_link_send(struct gpsh_tcp_link *link, struct gpsh_parcel *parcel);

// Whether everything that was sent is with the other host.
bool gpsh_tcp_link_has_arrived(const struct gpsh_tcp_link *link);

// Options of every connection: small frames at once, and a host that vanished is noticed after some
// 35 s, as NICs notice it.
void gpsh_tcp_link_options(int fd);

// A connection between nodes of a launcher's job: see docs/design/failures.md.
enum { GPSH_TCP_NODE_PATIENCE_S = 90 };
void gpsh_tcp_link_be_patient(struct gpsh_tcp_link *link);

// Whether that errno says that this process, or its system, has no room for another connection.
bool gpsh_tcp_is_full(int error);

#endif
