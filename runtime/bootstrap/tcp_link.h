// SPDX-License-Identifier: BSD-3-Clause
// Connections of the TCP bootstrap, and the wait of one thread for all of them. A connection is one
// state machine from the call to its end, and nothing here blocks:
//   the side that calls    CONNECTING, AWAITS_GREETING, AWAITS_ANSWER, OPEN, ENDED
//   the side that listens  AWAITS_HELLO, OPEN, ENDED
// OPEN: each side has shown the other that it knows the secret, and frames go both ways. Whatever
// touches a loop or its links holds the lock of their owner.
#ifndef GPSH_TCP_LINK_H
#define GPSH_TCP_LINK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "bootstrap/tcp_wire.h"

// A descriptor, and what is called when it is ready (events of epoll). Part of whatever owns it.
struct gpsh_tcp_watch {
    int fd;
    void (*ready)(struct gpsh_tcp_watch *watch, uint32_t events);
};

struct gpsh_tcp_loop {
    int epoll;
    struct gpsh_tcp_watch wake;
    struct gpsh_tcp_link *oldest, *newest; // those that are not open yet
};

int gpsh_tcp_loop_open(struct gpsh_tcp_loop *loop); // 0 or an errno value
void gpsh_tcp_loop_close(struct gpsh_tcp_loop *loop);
// A child of a fork does not keep the descriptor. 0 or an errno value.
int gpsh_tcp_loop_add(struct gpsh_tcp_loop *loop, struct gpsh_tcp_watch *watch, uint32_t events);
void gpsh_tcp_loop_remove(struct gpsh_tcp_loop *loop, struct gpsh_tcp_watch *watch); // closes it
// Ends links whose time is over, and waits `ms` (-1: for ever) for something that is ready, which
// it serves. `lock` (or NULL) is held by the caller, and not during the wait.
void gpsh_tcp_loop_turn(struct gpsh_tcp_loop *loop, int ms, pthread_mutex_t *lock);
// From any thread: the turn ends.
void gpsh_tcp_loop_wake(struct gpsh_tcp_loop *loop);

enum gpsh_tcp_state {
    GPSH_TCP_CONNECTING,
    GPSH_TCP_AWAITS_GREETING,
    GPSH_TCP_AWAITS_ANSWER,
    GPSH_TCP_AWAITS_HELLO,
    GPSH_TCP_OPEN,
    GPSH_TCP_ENDED,
};

// How a connection ended: what a call has found out about the process that it is for.
enum gpsh_tcp_ending {
    GPSH_TCP_LOST,      // it was open
    GPSH_TCP_REFUSED,   // nobody listens there
    GPSH_TCP_UNREACHED, // the host does not answer
    GPSH_TCP_FULL,      // this process has no room for a connection
    GPSH_TCP_SILENT,    // somebody listens, and did not greet in time
    GPSH_TCP_HUNG_UP,   // the same, and ended it without a greeting
    GPSH_TCP_STRANGER,  // somebody answered as that process does not
    GPSH_TCP_REJECTED,  // it greeted as that process, and hung up: it has too many callers perhaps
    GPSH_TCP_DROPPED,   // the owner did not want to go on
};

struct gpsh_tcp_link;

struct gpsh_tcp_link_ops {
    // Of the side that calls, or NULL: who answered has the right name. May set hello.listens; with
    // a value other than 0 the link ends.
    int (*greeted)(struct gpsh_tcp_link *link);
    void (*open)(struct gpsh_tcp_link *link);
    // The parcel is the receiver's to release.
    void (*frame)(struct gpsh_tcp_link *link, struct gpsh_parcel *parcel);
    // Nothing comes or goes any more; the link may be destroyed, here or later.
    void (*ended)(struct gpsh_tcp_link *link);
};

struct gpsh_tcp_link {
    struct gpsh_tcp_watch watch; // first
    struct gpsh_tcp_loop *loop;
    const struct gpsh_tcp_link_ops *ops;
    void *owner;
    enum gpsh_tcp_state state;
    enum gpsh_tcp_ending ending;
    int error;            // errno of the ending, 0: the other side closed it
    const char *why;      // the same in words, if errno does not say it
    uint64_t deadline_ns; // until it is open; UINT64_MAX: none
    int greeting_ms;      // for the greeting; 0: no limit, its process may be stopped
    struct gpsh_tcp_link *older, *newer; // of the loop, until it is open
    // recognition
    const struct gpsh_uniqueid *id; // `called`, or the listener's, which may change its secret
    struct gpsh_uniqueid called;
    struct gpsh_tcp_address address; // the other end
    struct gpsh_greeting greeting;
    enum gpsh_greeted greeted;
    struct gpsh_hello hello; // of the side that calls: who it is
    struct gpsh_confirmation answer;
    // frames
    int pe;               // the owner's: at the other end
    bool left;            // the owner's: it said that it leaves in order
    bool heard;           // it has said something since it called
    struct gpsh_frame in; // being read
    struct gpsh_parcel *parcel;
    size_t in_bytes;            // of what is being read
    struct gpsh_parcel **out;   // to be sent
    size_t n_out, room, sent;   // how many, room for how many; bytes of the first that are sent
    struct gpsh_parcel *kept;   // the owner's: released with the link
    struct gpsh_tcp_link *next; // the owner's
};

// Calls `to`. `hello`: purpose, pe, n_pes and, if it matters, listens. NULL: no memory; all else
// shows in its ending, which is never told from within this call.
struct gpsh_tcp_link *gpsh_tcp_link_call(struct gpsh_tcp_loop *loop, const struct gpsh_uniqueid *id,
                                         const struct gpsh_tcp_address *to,
                                         const struct gpsh_hello *hello, int greeting_ms,
                                         const struct gpsh_tcp_link_ops *ops, void *owner);
// Greets somebody who called: `fd`, which it takes and closes on failure. NULL: no memory, or they
// are gone.
struct gpsh_tcp_link *gpsh_tcp_link_greet(struct gpsh_tcp_loop *loop, int fd,
                                          const struct gpsh_uniqueid *id,
                                          const struct gpsh_tcp_link_ops *ops, void *owner);
void gpsh_tcp_link_destroy(struct gpsh_tcp_link *link); // tells nobody; NULL is legal
void gpsh_tcp_link_end(struct gpsh_tcp_link *link, const char *why);
// Takes a reference of its own. What cannot be sent at once is sent when the loop runs. A link that
// has ended ignores it.
void gpsh_tcp_link_send(struct gpsh_tcp_link *link, struct gpsh_parcel *parcel);
// Whether everything that was sent is with the other host.
bool gpsh_tcp_link_has_arrived(const struct gpsh_tcp_link *link);
// Why it ended, in words, of a PE that has not said goodbye.
const char *gpsh_tcp_link_why(const struct gpsh_tcp_link *link);

// When a host that does not answer counts as gone: of a job by unique id as NICs notice it, between
// nodes of a launcher's job later (docs/design/failures.md).
enum { GPSH_TCP_PATIENCE_S = 35, GPSH_TCP_NODE_PATIENCE_S = 90 };
void gpsh_tcp_link_be_patient(struct gpsh_tcp_link *link); // the latter

// Whether that errno says that this process, or its system, has no room for another connection.
bool gpsh_tcp_is_full(int error);

#endif
