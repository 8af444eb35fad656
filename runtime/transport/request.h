// SPDX-License-Identifier: BSD-3-Clause
// An operation as it travels to the PE that carries it out itself: to the agents of transports
// whose NICs cannot.
#ifndef GPSH_REQUEST_H
#define GPSH_REQUEST_H

#include "transport/transport.h"

// As it is sent: the PEs of a job run on machines of one byte order.
struct gpsh_request {
    uint64_t remote, signal; // offsets in the region
    uint64_t operand, compare;
    uint32_t bytes;                          // of payload (put), or wanted (get)
    uint32_t slot;                           // the sender's own
    uint8_t kind, amo, width, flags, region; // as in struct gpsh_op: of flags SIGNAL_ADD
    uint8_t fetch;                           // an atomic's previous value is wanted
    uint8_t zero[2];
};
_Static_assert(sizeof(struct gpsh_request) == 48, "no padding is sent");

// Everything in it comes from another process: whether it is an operation, on a region (which
// exists) of so many bytes.
bool gpsh_request_is_valid(const struct gpsh_request *request, uint64_t region_bytes);
// The operation with these addresses: of the payload, of what is got, or of the previous value
// (NULL: not wanted). For gpsh_direct_do and gpsh_queue_do.
struct gpsh_op gpsh_request_op(const struct gpsh_request *request, void *local, void *result);

#endif
