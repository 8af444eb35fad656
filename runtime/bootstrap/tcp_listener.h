// SPDX-License-Identifier: BSD-3-Clause
// Sockets that listen, and who calls there. Whoever says nothing, or nonsense, is put off, and
// holds up nobody.
#ifndef GPSH_TCP_LISTENER_H
#define GPSH_TCP_LISTENER_H

#include "bootstrap/tcp_link.h"

struct gpsh_tcp_listener;

// Somebody knows the secret: the link is open, its hello says who it is, and it is the receiver's.
typedef void gpsh_tcp_admit_fn(struct gpsh_tcp_listener *listener, struct gpsh_tcp_link *link);

struct gpsh_tcp_listener {
    struct gpsh_tcp_loop *loop;
    struct gpsh_uniqueid id; // its addresses are where it listens
    struct gpsh_tcp_socket {
        struct gpsh_tcp_watch watch; // first
        struct gpsh_tcp_listener *listener;
    } socket[GPSH_ID_ADDRESSES];
    gpsh_tcp_admit_fn *admit;
    void *owner;
    int callers, most_callers; // that are not recognised yet
    unsigned strangers;        // that were put off
    int accept_error;          // errno: the process may open no more files; 0: fine
    int caller, called;        // of the connection that holds the port, -1: none
};

// Listens at each of id->address, whose ports it fills in (0: any port). Those that cannot be had
// are left out; GPUSHMEM_ERR_SYSTEM if none can. `loop` is open, and `l` stays where it is.
int gpsh_tcp_listener_open(struct gpsh_tcp_listener *l, struct gpsh_tcp_loop *loop,
                           const struct gpsh_uniqueid *id, gpsh_tcp_admit_fn *admit, void *owner);
void gpsh_tcp_listener_close(struct gpsh_tcp_listener *l);
// Nobody else gets the port when this process dies: it keeps a connection with itself there, of
// which the listening side has said that it sends no more. However the process ends, the kernel
// keeps that side for a minute (TIME_WAIT), and with it the port, where nobody listens then. Of one
// address that was told to nobody yet; where the connection cannot be made the port is as any
// other.
void gpsh_tcp_listener_hold(struct gpsh_tcp_listener *l);

#endif
