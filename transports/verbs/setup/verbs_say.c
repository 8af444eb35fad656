// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE
// What an end of a flow tells the other in a datagram: where it stands in the handshake, or the
// answer to what it has heard. Nothing is waited for: the handshake repeats what is not answered.
#include <errno.h>
#include <string.h>

#include "transports/verbs/setup/verbs_message.h"
#include "transports/verbs/setup/verbs_setup.h"

struct ibv_ah *gpsh_verbs_path_to(struct verbs_peer *peer, struct gpsh_verbs *verbs, int rail)
{
    struct ibv_ah_attr attr = {0};
    struct verbs_rail *own = &verbs->rails[rail];
    if (peer->paths[rail])
        return peer->paths[rail];
    if (gpsh_verbs_path(verbs, own, &peer->blob.rails[rail], peer->pe, &attr))
        return NULL;
    peer->paths[rail] = ibv_create_ah(own->pd, &attr);
    if (!peer->paths[rail])
        gpsh_fail(GPUSHMEM_ERR_TRANSPORT,
                  "%s cannot reach PE %d (%s): are rail %d of both PEs in one network, and is "
                  "there a route?",
                  own->name, peer->pe, strerror(errno), rail);
    return peer->paths[rail];
}

static void send(struct verbs_flow *flow, struct gpsh_verbs_message *message)
{
    struct gpsh_verbs *verbs = flow->channel->verbs;
    const struct gpsh_verbs_blob *blob = &flow->peer->blob;
    unsigned char bytes[GPSH_VERBS_MESSAGE_BYTES];
    int rail = flow->link.rail;
    struct ibv_ah *path = gpsh_verbs_path_to(flow->peer, verbs, rail);
    message->from = (uint32_t)verbs->env.my_pe;
    message->to = (uint32_t)flow->pe;
    message->secret = blob->secret;
    message->channel = (uint16_t)(flow->channel - verbs->channels);
    message->n_rails = flow->n_rails;
    gpsh_verbs_message_write(message, bytes);
    if (path)
        gpsh_verbs_datagram_send(&verbs->rails[rail], path, blob->rails[rail].datagrams,
                                 verbs_qkey(blob->secret), bytes, sizeof bytes);
}

static uint8_t kind_of(uint8_t level)
{
    static const uint8_t kinds[] = {[VERBS_LEVEL_GREETS] = GPSH_VERBS_GREETS,
                                    [VERBS_LEVEL_READY] = GPSH_VERBS_READY,
                                    [VERBS_LEVEL_UP] = GPSH_VERBS_UP,
                                    [VERBS_LEVEL_CLOSES] = GPSH_VERBS_CLOSES};
    return kinds[level];
}

void gpsh_verbs_say(struct verbs_flow *flow)
{
    struct gpsh_verbs_message message = {
        .kind = kind_of(flow->link.level), .own = flow->link.own, .yours = flow->link.theirs};
    message.reason = flow->link.level == VERBS_LEVEL_CLOSES ? flow->link.asks : 0;
    for (int i = 0; i < flow->n_rails; i++)
        message.qpns[i] = flow->lanes[i].qpn;
    send(flow, &message);
}

void gpsh_verbs_reply(struct verbs_flow *flow, enum gpsh_verbs_message_kind kind, uint32_t theirs,
                      uint32_t reason)
{
    struct gpsh_verbs_message message = {.kind = (uint8_t)kind, .yours = theirs, .reason = reason};
    send(flow, &message);
}
