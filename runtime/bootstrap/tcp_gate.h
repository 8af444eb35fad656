// SPDX-License-Identifier: BSD-3-Clause
// Sockets that listen, and the recognition of those that call. Whoever says nothing, or nonsense,
// is put off, and holds up nobody.
#ifndef GPSH_TCP_GATE_H
#define GPSH_TCP_GATE_H

#include "bootstrap/tcp_hello.h"
#include "bootstrap/tcp_loop.h"

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
};

// Listens at each of id->address, whose ports it fills in (0: any port). Those that cannot be had
// are left out; GPUSHMEM_ERR_SYSTEM if none can. `loop` is open, and `gate` stays where it is.
int gpsh_tcp_gate_open(struct gpsh_tcp_gate *gate, struct gpsh_tcp_loop *loop,
                       const struct gpsh_uniqueid *id, gpsh_tcp_admit_fn *admit, void *owner);
void gpsh_tcp_gate_close(struct gpsh_tcp_gate *gate);
// Puts off those whose time is over. Returns in how many ms to call it again, -1: never.
int gpsh_tcp_gate_tick(struct gpsh_tcp_gate *gate);

#endif
