// SPDX-License-Identifier: BSD-3-Clause
#include "transports/verbs/setup/verbs_message.h"

#include <string.h>

enum { MAX_QPN = 0xffffff };

void gpsh_verbs_message_write(const struct gpsh_verbs_message *message,
                              unsigned char to[GPSH_VERBS_MESSAGE_BYTES])
{
    struct gpsh_verbs_message whole = *message;
    whole.magic = GPSH_VERBS_MESSAGE_MAGIC;
    whole.version = GPSH_VERBS_MESSAGE_VERSION;
    memcpy(to, &whole, sizeof whole);
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
    struct gpsh_verbs_message message;
    if (size != sizeof message)
        return false;
    memcpy(&message, bytes, sizeof message);
    if (message.magic != GPSH_VERBS_MESSAGE_MAGIC || message.version != GPSH_VERBS_MESSAGE_VERSION)
        return false;
    if (message.kind < GPSH_VERBS_GREETS || message.kind > GPSH_VERBS_CLOSED ||
        message.n_rails < 1 || message.n_rails > GPSH_VERBS_MAX_RAILS)
        return false;
    if (message.kind <= GPSH_VERBS_UP ? !has_qpns(&message) : !message.yours)
        return false;
    *out = message;
    return true;
}
