// SPDX-License-Identifier: BSD-3-Clause
#include "transports/verbs/setup/verbs_message.h"

#include <string.h>

#include "transports/verbs/setup/verbs_wire.h"

// On the wire, little-endian.
enum {
    MAGIC = 0,
    VERSION = 4,
    KIND = 6,
    RAILS = 7,
    FROM = 8,
    TO = 12,
    SECRET = 16,
    CHANNEL = 24,
    OWN = 28,
    YOURS = 32,
    REASON = 36,
    QPNS = 40,
    MAX_QPN = 0xffffff,
};
_Static_assert(QPNS + 4 * GPSH_VERBS_MAX_RAILS <= GPSH_VERBS_MESSAGE_BYTES, "they fit");

void gpsh_verbs_message_write(const struct gpsh_verbs_message *message,
                              unsigned char to[GPSH_VERBS_MESSAGE_BYTES])
{
    memset(to, 0, GPSH_VERBS_MESSAGE_BYTES);
    verbs_put(to + MAGIC, GPSH_VERBS_MESSAGE_MAGIC, 4);
    verbs_put(to + VERSION, GPSH_VERBS_MESSAGE_VERSION, 2);
    to[KIND] = message->kind;
    to[RAILS] = message->n_rails;
    verbs_put(to + FROM, message->from, 4);
    verbs_put(to + TO, message->to, 4);
    verbs_put(to + SECRET, message->secret, 8);
    verbs_put(to + CHANNEL, message->channel, 2);
    verbs_put(to + OWN, message->own, 4);
    verbs_put(to + YOURS, message->yours, 4);
    verbs_put(to + REASON, message->reason, 4);
    for (int i = 0; i < message->n_rails && i < GPSH_VERBS_MAX_RAILS; i++)
        verbs_put(to + QPNS + 4 * i, message->qpns[i], 4);
}

static bool has_qpns(const struct gpsh_verbs_message *message)
{
    bool valid = message->own != 0;
    for (int i = 0; i < message->n_rails; i++)
        valid &= message->qpns[i] >= 2 && message->qpns[i] <= MAX_QPN;
    return valid;
}

bool gpsh_verbs_message_parse(const void *bytes, size_t size, struct gpsh_verbs_message *out)
{
    const unsigned char *from = bytes;
    if (size != GPSH_VERBS_MESSAGE_BYTES ||
        verbs_get(from + MAGIC, 4) != GPSH_VERBS_MESSAGE_MAGIC ||
        verbs_get(from + VERSION, 2) != GPSH_VERBS_MESSAGE_VERSION)
        return false;
    struct gpsh_verbs_message message = {
        .kind = from[KIND],
        .n_rails = from[RAILS],
        .channel = (uint16_t)verbs_get(from + CHANNEL, 2),
        .from = (uint32_t)verbs_get(from + FROM, 4),
        .to = (uint32_t)verbs_get(from + TO, 4),
        .secret = verbs_get(from + SECRET, 8),
        .own = (uint32_t)verbs_get(from + OWN, 4),
        .yours = (uint32_t)verbs_get(from + YOURS, 4),
        .reason = (uint32_t)verbs_get(from + REASON, 4),
    };
    if (message.kind < GPSH_VERBS_GREETS || message.kind > GPSH_VERBS_CLOSED ||
        message.n_rails < 1 || message.n_rails > GPSH_VERBS_MAX_RAILS)
        return false;
    for (int i = 0; i < message.n_rails; i++)
        message.qpns[i] = (uint32_t)verbs_get(from + QPNS + 4 * i, 4);
    if (message.kind <= GPSH_VERBS_UP ? !has_qpns(&message) : !message.yours)
        return false;
    *out = message;
    return true;
}
