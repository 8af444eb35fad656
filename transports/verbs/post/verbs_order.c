// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE
// Order at the target where the queues alone do not make it (docs/adr/0017). The tool is a read of
// what a lane wrote last: it is executed when every earlier write has arrived, and its answer comes
// after those writes have reached memory, since a read pushes them on their way there.
//   one lane     whose writes may be placed out of order: the read, then a fence flag, by which the
//                NIC itself holds the next write until the answer is here. One chain, one doorbell
//   one lane     whose data goes another way to memory than what follows it (data-direct): each
//                chain ends with the read
//   several      an acknowledgement says that a NIC has the data, and another NIC's write may be
//                faster than its way to memory: a striped put is complete when the last bytes that
//                each lane wrote have been read
#include "transports/verbs/post/verbs_posting.h"

bool gpsh_verbs_order_writes(struct verbs_lane *lane, struct verbs_slot *slot)
{
    if (!lane->loose)
        return true;
    slot->fenced = true;
    if (!lane->unread || lane->head == lane->tail) // read, or acknowledged: in this NIC's order
        return true;
    if (!gpsh_verbs_lane_reserve(lane, 2))
        return false;
    gpsh_verbs_read_back(lane, slot);
    return true;
}

// Only what was ordered before this put must have arrived: there was a fence, or everything was
// complete, as after a quiet.
bool gpsh_verbs_order_rail0(struct verbs_flow *flow, struct verbs_slot *slot)
{
    struct verbs_lane *lane = verbs_home(flow);
    bool ordered = slot->after || lane->head == lane->tail;
    bool unseen = lane->wrote_bytes && (lane->unread || lane->reads); // no answer came since
    if (!slot->rail0_confirmed && ordered && unseen) {
        if (!gpsh_verbs_lane_reserve(lane, 1))
            return false;
        gpsh_verbs_read_back(lane, slot);
    }
    slot->rail0_confirmed = true;
    return slot->pieces || !slot->parts;
}

bool gpsh_verbs_order_rails(struct verbs_flow *flow, struct verbs_slot *slot)
{
    uint32_t rails = slot->pieces < flow->n_rails ? slot->pieces : flow->n_rails;
    for (; slot->confirmed + 1u < rails; slot->confirmed++) {
        struct verbs_lane *lane = &flow->lanes[slot->confirmed + 1];
        if (!lane->unread || lane->failed)
            continue;
        if (!gpsh_verbs_lane_reserve(lane, 1))
            return false;
        gpsh_verbs_read_back(lane, slot);
    }
    return true;
}
