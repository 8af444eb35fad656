// SPDX-License-Identifier: BSD-3-Clause
// A device's link that goes down, and perhaps comes up again: settings DOWN_*. Requests between
// this device and others go unanswered meanwhile; those between its own users need no cable.
#include "softhca.h"

static atomic_long passed; // requests of this process on the device that loses its link

static atomic_bool first_is_down;
static atomic_long then_passed; // since then, on the device that is the next

// True for the request at which the link goes down.
static bool is_last(const struct shca_device *device)
{
    if (shca_settings.then_after >= 0 && device->index == shca_settings.then_device &&
        atomic_load(&first_is_down))
        return atomic_fetch_add(&then_passed, 1) == shca_settings.then_after;
    return shca_settings.down_after >= 0 && device->index == shca_settings.down_device &&
           atomic_fetch_add(&passed, 1) == shca_settings.down_after;
}

static bool is_down(const struct shca_segment *segment)
{
    uint64_t until = segment ? atomic_load(&segment->down_until_ns) : 0;
    return until && shca_now_ns() < until;
}

bool shca_link_goes_down(const struct shca_qp *qp)
{
    if (!is_last(qp->device))
        return false;
    atomic_store(&first_is_down, true);
    uint64_t span = (uint64_t)shca_settings.down_ms * 1000000;
    atomic_store(&qp->device->segment->down_until_ns, span ? shca_now_ns() + span : UINT64_MAX);
    return true;
}

bool shca_link_between(const struct shca_device *device, int remote,
                       const struct shca_segment *segment)
{
    return remote == device->index || (!is_down(device->segment) && !is_down(segment));
}

bool shca_link_is_up(const struct shca_qp *qp)
{
    return shca_link_between(qp->device, shca_device_by_address(&qp->attr.ah_attr),
                             qp->peer ? qp->peer->segment : NULL);
}
