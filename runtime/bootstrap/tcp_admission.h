// SPDX-License-Identifier: BSD-3-Clause
#ifndef GPSH_TCP_ADMISSION_H
#define GPSH_TCP_ADMISSION_H

#include "bootstrap/tcp_address.h"
#include "bootstrap/tcp_connection.h"
#include "bootstrap/tcp_wire.h"

// Sockets that listen, and the recognition of those that call. Whoever says nothing, or nonsense,
// is put off, and holds up nobody.

struct gpsh_tcp_gate;

// Somebody knows the secret; `fd`, on which the confirmation was sent, is the receiver's.
typedef void gpsh_tcp_admit_fn(struct gpsh_tcp_gate *gate, int fd, const struct gpsh_hello *hello,
                               const struct gpsh_tcp_address *from);

struct gpsh_tcp_listener {
    struct gpsh_tcp_watch watch; // first
    struct gpsh_tcp_gate *gate;
};

struct gpsh_tcp_visitor;

struct gpsh_tcp_gate {
    struct gpsh_tcp_loop *loop;
    struct gpsh_uniqueid id; // its addresses are where the gate listens
    struct gpsh_tcp_listener listener[GPSH_ID_ADDRESSES];
    gpsh_tcp_admit_fn *admit;
    void *owner;
    struct gpsh_tcp_visitor *oldest, *newest; // those that are not recognised yet
    int visitors, most_visitors;
    unsigned strangers; // that were put off
    int accept_error;   // errno: the process may open no more files; 0: fine
    int caller, called; // of the connection that holds the port, -1: none
};

// Listens at each of id->address, whose ports it fills in (0: any port). Those that cannot be had
// are left out; GPUSHMEM_ERR_SYSTEM if none can. `loop` is open, and `gate` stays where it is.
int gpsh_tcp_gate_open(struct gpsh_tcp_gate *gate, struct gpsh_tcp_loop *loop,
                       const struct gpsh_uniqueid *id, gpsh_tcp_admit_fn *admit, void *owner);
void gpsh_tcp_gate_close(struct gpsh_tcp_gate *gate);
// Nobody else gets the port when this process dies: it keeps a connection with itself there, of
// which the listening side has said that it sends no more. However the process ends, the kernel
// keeps that side for a minute (TIME_WAIT), and with it the port, where nobody listens then. Of a
// gate with one address that was told to nobody yet; where the connection cannot be made the port
// is as any other.
void gpsh_tcp_gate_hold(struct gpsh_tcp_gate *gate);
// Puts off those whose time is over. Returns in how many ms to call it again, -1: never.
int gpsh_tcp_gate_tick(struct gpsh_tcp_gate *gate);

#endif
