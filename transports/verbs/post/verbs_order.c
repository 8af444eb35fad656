// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE
// Order at the target where the queues alone do not make it (docs/design/ordering.md). The tool is
// a read of what a lane wrote last: it is executed when every earlier write has arrived, and its
// answer comes after those writes have reached memory, since a read pushes them on their way there.
//   one lane     whose writes may be placed out of order: the read, then a fence flag, by which the
//                NIC itself holds the next write until the answer is here. One chain, one doorbell
//   one lane     to a peer that is reached by several ways (rails, data-direct): an acknowledgement
//                says that one NIC has the data, and what comes by another may be faster than its
//                way to memory, so each chain ends with the read
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
