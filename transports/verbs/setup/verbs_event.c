// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE
// Asynchronous events of the NICs, polled at a low rate from progress() on non-blocking
// descriptors: logged, and where requests would otherwise never complete, passed on to the channels
// concerned.
#include "transports/verbs/setup/verbs_setup.h"

enum { LOGGED_MOST = 64 }; // a flapping port must not fill the log

static bool may_log(struct gpsh_verbs *verbs)
{
    return ++verbs->events_logged <= LOGGED_MOST;
}

static void lane_fatal(struct verbs_lane *lane)
{
    atomic_store(&lane->fatal, true);
    atomic_store(&lane->flow->channel->fatal, true);
}

static void rail_fatal(struct gpsh_verbs *verbs, int rail)
{
    for (int c = 0; c < verbs->env.channels; c++)
        for (int pe = 0; pe < verbs->env.n_pes; pe++) {
            struct verbs_flow *flow = verbs_flow_at(&verbs->channels[c], pe);
            if (flow && rail < flow->n_rails)
                lane_fatal(&flow->lanes[rail]);
        }
}

void gpsh_verbs_peer_lost(struct gpsh_transport *self, int pe)
{
    struct gpsh_verbs *verbs = (struct gpsh_verbs *)self;
    atomic_store(&verbs->lost[pe], 1);
    for (int c = 0; c < verbs->env.channels; c++)
        atomic_store(&verbs->channels[c].fatal, true);
    gpsh_verbs_kernel_lost(verbs, pe);
}

static void handle(struct gpsh_verbs *verbs, int rail, const struct ibv_async_event *event)
{
    const char *name = verbs->rails[rail].name, *what = ibv_event_type_str(event->event_type);
    struct verbs_lane *lane;
    switch (event->event_type) {
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
        lane = event->element.qp->qp_context;
        if (!lane) { // that of the datagrams
            gpsh_verbs_datagrams_broken(&verbs->rails[rail]);
            gpsh_verbs_handshakes_wake(verbs);
            break;
        }
        GPSH_LOG(WARN, "verbs", "%s: %s on the queue pair with PE %d; it is given up", name, what,
                 lane->flow->pe);
        lane_fatal(lane);
        break;
    case IBV_EVENT_DEVICE_FATAL:
        GPSH_LOG(ERROR, "verbs", "%s: %s; every peer reached over it fails (see dmesg)", name,
                 what);
        rail_fatal(verbs, rail);
        break;
    case IBV_EVENT_CQ_ERR:
        GPSH_LOG(ERROR, "verbs", "%s: %s; every peer reached over it fails", name, what);
        rail_fatal(verbs, rail);
        break;
    case IBV_EVENT_PORT_ERR:
        if (may_log(verbs))
            GPSH_LOG(
                WARN, "verbs",
                "%s went down: when their retries run out, transfers fail or go over other rails",
                name);
        break;
    case IBV_EVENT_PORT_ACTIVE:
        if (may_log(verbs))
            GPSH_LOG(WARN, "verbs", "%s is up again", name);
        break;
    default:
        if (may_log(verbs))
            GPSH_LOG(INFO, "verbs", "%s: %s", name, what);
    }
}

void gpsh_verbs_events_poll(struct gpsh_verbs *verbs)
{
    if (atomic_flag_test_and_set(&verbs->events_busy))
        return;
    for (int rail = 0; rail < verbs->n_rails; rail++) {
        struct ibv_async_event event;
        while (ibv_get_async_event(verbs->rails[rail].context, &event) == 0) {
            handle(verbs, rail, &event);
            ibv_ack_async_event(&event);
        }
    }
    atomic_flag_clear(&verbs->events_busy);
}
