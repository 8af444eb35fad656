// SPDX-License-Identifier: BSD-3-Clause
// A port that nobody else gets when its process dies: the process keeps a connection with itself
// there, of which the listening side has said that it sends no more. However the process ends, the
// kernel keeps that side for a minute (TIME_WAIT), and with it the port, where nobody listens then.
#ifndef GPSH_TCP_HOLD_H
#define GPSH_TCP_HOLD_H

#include "bootstrap/tcp_address.h"

struct gpsh_tcp_hold {
    int caller, called; // descriptors, -1: none
};

// `listener` listens at `address`, does not block, and was told to nobody yet. Where the connection
// cannot be made the port is as any other.
void gpsh_tcp_hold_open(struct gpsh_tcp_hold *hold, int listener,
                        const struct gpsh_tcp_address *address);
void gpsh_tcp_hold_close(struct gpsh_tcp_hold *hold); // in order: the port is free at once

#endif
