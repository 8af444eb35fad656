// SPDX-License-Identifier: BSD-3-Clause
// All handshakes of this PE: what the thread that connects flows (verbs_connector.c) has, to do
// with a flow what the peer says (verbs_handshake.c), and to make room for queue pairs
// (verbs_room.c). It is that thread's alone, but for the wishes.
#ifndef GPSH_VERBS_HANDSHAKES_H
#define GPSH_VERBS_HANDSHAKES_H

#include <pthread.h>

#include "core/thread.h"
#include "transports/verbs/setup/verbs_message.h"
#include "transports/verbs/setup/verbs_setup.h"

struct verbs_handshakes {
    struct gpsh_verbs *verbs;
    struct gpsh_thread thread;
    int wake; // eventfd
    atomic_bool stop;
    pthread_mutex_t lock;         // of the wishes
    struct verbs_flow *wishes;    // flows that channels have asked for,
    struct verbs_flow *under_way; // whose handshake goes on,
    struct verbs_flow *ups;       // that are connected,
    struct verbs_flow *waiting;   // that wait for room
    struct verbs_awake awake;
    uint32_t attempts;             // the number of the last one of this end
    uint32_t queue_pairs, closing; // there are, and of these about to go
    uint32_t in_vain;              // queue pairs closed since the last one was made
    uint64_t vain_ns;              // when the last of these was
    uint32_t dice;                 // the last random number
    struct verbs_turnover turnover;
    bool may_shut; // this kernel lets flows be closed
};

// The flow is under way from now on: what it has to say is repeated until the peer answers.
static inline void verbs_list(struct verbs_handshakes *all, struct verbs_flow *flow)
{
    struct verbs_link *link = &flow->link;
    link->tries = 0;
    gpsh_verbs_patience_begin(flow, all->awake.ns);
    link->retry_ns = 0;
    if (link->listed)
        return;
    link->listed = true;
    link->next = all->under_way;
    all->under_way = flow;
}

// verbs_handshake.c
// Operations of this PE want the flow, which may be up.
void gpsh_verbs_handshake_call(struct verbs_handshakes *all, struct verbs_flow *flow);
// The peer begins.
void gpsh_verbs_handshake_greeted(struct verbs_handshakes *all, struct verbs_flow *flow,
                                  const struct gpsh_verbs_message *message);
// A flow that was to be closed is up as before.
void gpsh_verbs_handshake_keep(struct verbs_handshakes *all, struct verbs_flow *flow);
// What there is of it goes, and operations that wait for it fail with code and sentence.
void gpsh_verbs_handshake_fail(struct verbs_flow *flow, int code, const char *why);
// A datagram has come by a rail; `all`: the handshakes. Strangers' are dropped without a word.
void gpsh_verbs_handshake_hear(void *all, int rail, const void *bytes, size_t n);

// verbs_room.c
// Whether the budget (GPUSHMEM_VERBS_QUEUE_PAIRS) leaves no room for the flow yet. Closes others
// for it.
bool gpsh_verbs_room_lacks(struct verbs_handshakes *all, struct verbs_flow *flow);
// A NIC has made no queue pair, with that errno: whether it may do so soon. Closes others for it.
bool gpsh_verbs_room_may_come(struct verbs_handshakes *all, struct verbs_flow *flow, int error);
// The flow is tried again in each turn of the thread, until there is room.
void gpsh_verbs_room_await(struct verbs_handshakes *all, struct verbs_flow *flow);
// It was to be closed, and is in use: others are for a while.
void gpsh_verbs_room_kept(struct verbs_flow *flow);

#endif
