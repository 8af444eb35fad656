// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // syscall
// Flows that are closed while the program runs. The channel's thread marks a flow as busy and then
// looks at its state; the handshake's thread changes the state and then looks at the mark. One of
// them sees the other, if each does its two steps in this order. For the first, who posts all the
// time, the order costs nothing: the second has the kernel make it, by a barrier on every processor
// that runs a thread of this process (membarrier(2)).
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "transports/verbs/setup/verbs_setup.h"

bool gpsh_verbs_shut_prepare(void)
{
    return !syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0);
}

bool gpsh_verbs_shut(struct verbs_flow *flow)
{
    int up = VERBS_UP;
    if (verbs_is_kernels(flow->channel))
        return false; // a kernel may post at any time
    if (!atomic_compare_exchange_strong(&flow->state, &up, VERBS_SHUT))
        return false;
    bool ordered = !syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
    // Acquire: what the channel's thread did before it took the mark off has been done.
    if (ordered && !atomic_load_explicit(&flow->busy, memory_order_acquire))
        return true;
    atomic_store_explicit(&flow->state, VERBS_UP, memory_order_release);
    return false;
}

void gpsh_verbs_lanes_renew(struct verbs_flow *flow)
{
    for (int i = 0; i < flow->n_rails; i++) {
        struct verbs_lane *lane = &flow->lanes[i];
        lane->head = lane->tail = lane->more = lane->reads = 0;
        lane->first = lane->count = 0;
        lane->unread = false;
        lane->wrote_to = 0;
        lane->wrote_bytes = lane->wrote_key = 0;
        lane->still_ns = 0;
        lane->still_tail = lane->kicks = 0;
        atomic_store(&lane->fatal, false);
        atomic_store(&lane->expected, 0);
    }
}
