// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE
// How long the handshake waits for a peer that says nothing, and what it says then. Silence is a
// sign of death only where both could have spoken: the time that either process was stopped, as by
// a debugger, does not count.
#include <stdio.h>

#include "core/clock.h"
#include "transports/verbs/setup/verbs_setup.h"

enum {
    LEAST_MS = 5000, // for a peer that has no processor now
    TURN_MS = 1000,  // the thread takes longer between two looks only if it could not run
};

uint64_t gpsh_verbs_patience_ns(const struct gpsh_verbs *verbs)
{
    const struct gpsh_settings *settings = verbs->env.settings;
    uint64_t nic = (uint64_t)(settings->verbs_retry_count + 1) * 4096 << settings->verbs_timeout;
    uint64_t least = LEAST_MS * UINT64_C(1000000);
    return nic > least ? nic : least;
}

uint64_t gpsh_verbs_awake(struct verbs_awake *clock)
{
    const uint64_t now_ns = gpsh_clock_ns(), most_ns = TURN_MS * UINT64_C(1000000);
    uint64_t passed_ns = now_ns - clock->looked_ns;
    clock->ns += passed_ns < most_ns ? passed_ns : most_ns;
    clock->looked_ns = now_ns;
    return clock->ns;
}

void gpsh_verbs_patience_begin(struct verbs_flow *flow, uint64_t awake_ns)
{
    struct verbs_link *link = &flow->link;
    link->since_ns = awake_ns;
    link->until_ns = awake_ns + gpsh_verbs_patience_ns(flow->channel->verbs);
    link->told = false;
}

void gpsh_verbs_patience_look(struct verbs_flow *flow, uint64_t awake_ns)
{
    struct verbs_link *link = &flow->link;
    const struct gpsh_verbs *verbs = flow->channel->verbs;
    uint64_t patience_ns = gpsh_verbs_patience_ns(verbs);
    bool soon = link->until_ns < awake_ns + patience_ns / 4 * 3;
    if (!soon || !gpsh_env_peer_stopped(&verbs->env, flow->pe))
        return;
    link->until_ns = awake_ns + patience_ns;
    if (link->told || awake_ns - link->since_ns < patience_ns)
        return;
    link->told = true;
    GPSH_LOG(WARN, "verbs",
             "PE %d has not answered for %u s: its process stands still, as one that a debugger "
             "has stopped, or word of its end is held up; operations on it wait until either",
             flow->pe, (unsigned)((awake_ns - link->since_ns) / 1000000000));
}

// What is wrong with this PE's NICs, if it is with all of them.
static const char *own_trouble(const struct verbs_flow *flow)
{
    const char *trouble = NULL;
    for (int i = flow->n_rails - 1; i >= 0; i--) {
        trouble = gpsh_verbs_datagrams_trouble(&flow->channel->verbs->rails[i]);
        if (!trouble)
            return NULL;
    }
    return trouble;
}

int gpsh_verbs_patience_over(const struct verbs_flow *flow, char *why, size_t bytes)
{
    const struct gpsh_verbs *verbs = flow->channel->verbs;
    const char *own = own_trouble(flow), *name = verbs->rails[0].name;
    if (verbs_is_lost(verbs, flow->pe)) {
        snprintf(why, bytes, "PE %d is lost", flow->pe);
        return GPUSHMEM_ERR_PE_FAILED;
    }
    if (own) {
        snprintf(why, bytes,
                 "PE %d cannot be asked for a connection: this PE's own NIC, %s, fails (%s); see "
                 "dmesg",
                 flow->pe, name, own);
        return GPUSHMEM_ERR_TRANSPORT;
    }
    snprintf(why, bytes,
             "PE %d over %s: it does not answer who asks for a connection: its link is down, or "
             "GPUSHMEM_VERBS_TIMEOUT is too small",
             flow->pe, name);
    return GPUSHMEM_ERR_PE_FAILED;
}
