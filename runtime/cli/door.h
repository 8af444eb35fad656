// SPDX-License-Identifier: BSD-3-Clause
// The door of the PMIx server. libpmix listens on a loopback port that every user of the machine
// can connect to, believes what a client says about its user, and reads a new client's first bytes
// with its only thread, however long they take. It calls listen() and accept(); this file defines
// both for the whole program, as the dynamic linker lets an executable do:
//  - a TCP connection is accepted once its first bytes are there (TCP_DEFER_ACCEPT), so that a
//    silent one holds up nobody;
//  - a connection from a process of another user is closed before libpmix reads a byte of it. The
//    kernel says whose it is; if it does not, the connection is closed as well, and a sentence says
//    why.
#ifndef GPSH_DOOR_H
#define GPSH_DOOR_H

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>

enum { GPSH_SECRET_BYTES = 16 };

// The user that has the other end of an accepted loopback connection. False: the kernel does not
// tell, because it lacks both sock_diag and /proc/net/tcp.
bool gpsh_door_peer_user(int connection, uid_t *user);

// Writes 2 * GPSH_SECRET_BYTES hexadecimal digits and a NUL, from the kernel's random numbers. 0 or
// an errno.
int gpsh_door_secret(char text[2 * GPSH_SECRET_BYTES + 1]);

#endif
