// SPDX-License-Identifier: BSD-3-Clause
// What PEs send each other in datagrams to connect a flow (verbs_handshake.c). A datagram may be
// lost, come twice, late, or from a stranger: gpsh_verbs_message_parse checks every field, and says
// no more than whether it is one.
#ifndef GPSH_VERBS_MESSAGE_H
#define GPSH_VERBS_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transports/verbs/setup/verbs_blob.h"

enum {
    GPSH_VERBS_MESSAGE_MAGIC = 0x68767067, // "gpvh"
    GPSH_VERBS_MESSAGE_VERSION = 2,
    GPSH_VERBS_MESSAGE_BYTES = 72,
};

enum gpsh_verbs_message_kind {
    // The first three are what the sender has: queue pairs; ones that are connected to the
    // receiver's; and it knows that the receiver's are, too.
    GPSH_VERBS_GREETS = 1,
    GPSH_VERBS_READY,
    GPSH_VERBS_UP,
    GPSH_VERBS_REFUSES, // it cannot: `reason`
    GPSH_VERBS_OVER,    // it has nothing of the receiver's attempt any more
    GPSH_VERBS_CLOSES,  // it wants to close what is up, and has nothing under way,
    GPSH_VERBS_KEEPS,   // but the other end has; or
    GPSH_VERBS_CLOSED,  // that has not, and has closed its end
};

// As it is sent.
struct gpsh_verbs_message {
    uint32_t magic; // this and the next are set by gpsh_verbs_message_write
    uint16_t version;
    uint8_t kind; // enum gpsh_verbs_message_kind
    uint8_t n_rails;
    uint32_t from, to; // PEs
    uint64_t secret;   // the receiver's
    uint16_t channel, zero;
    uint32_t own, yours; // the sender's attempt, counted by it; the receiver's, as far as it knows
    // REFUSES: an errno. CLOSES: counts how often the sender has asked that of the attempt; and
    // which of these is answered.
    uint32_t reason;
    uint32_t qpns[GPSH_VERBS_MAX_RAILS]; // of the sender's queue pairs, [n_rails]
};
_Static_assert(sizeof(struct gpsh_verbs_message) == GPSH_VERBS_MESSAGE_BYTES, "no padding is sent");

void gpsh_verbs_message_write(const struct gpsh_verbs_message *message,
                              unsigned char to[GPSH_VERBS_MESSAGE_BYTES]);
bool gpsh_verbs_message_parse(const void *bytes, size_t size, struct gpsh_verbs_message *out);

struct verbs_flow;
struct verbs_peer;
struct gpsh_verbs;

// Of the handshake's thread alone. The way to a peer by one rail, made at the first call; NULL and
// a sentence if there is none.
struct ibv_ah *gpsh_verbs_path_to(struct verbs_peer *peer, struct gpsh_verbs *verbs, int rail);
// Where this end stands.
void gpsh_verbs_say(struct verbs_flow *flow);
// About the peer's attempt `theirs`. A message that cannot be sent now is dropped.
void gpsh_verbs_reply(struct verbs_flow *flow, enum gpsh_verbs_message_kind kind, uint32_t theirs,
                      uint32_t reason);

#endif
