// SPDX-License-Identifier: BSD-3-Clause
// Which flows of a channel may have something pending, so that quiet and fence need not look at
// every PE of a large job. Links are in the flows, as PE + 1 or END: nothing is allocated, and a
// channel that the next context takes over keeps its list. The caller holds the lock of the
// channel's owner.
#ifndef GPSH_PENDING_H
#define GPSH_PENDING_H

#include "transport/transport.h"

// Notes that something was posted to `pe`.
static inline void gpsh_pending_add(struct gpsh_channel *channel, int pe)
{
    enum { END = -1 };
    struct gpsh_flow *flow = &channel->flows[pe];
    if (__builtin_expect(flow->listed != 0, 1))
        return;
    flow->listed = channel->first_listed != 0 ? channel->first_listed : END;
    channel->first_listed = pe + 1;
}

// First PE of the list, and the one after `pe`; negative at the end. PEs that are added while one
// goes through it come before those that are left. Whoever may release the lock on the way begins
// with _enter and ends with _leave: meanwhile nothing is taken from the list.
static inline int gpsh_pending_first(const struct gpsh_channel *channel)
{
    return channel->first_listed - 1;
}

static inline int gpsh_pending_next(const struct gpsh_channel *channel, int pe)
{
    return channel->flows[pe].listed - 1;
}

static inline void gpsh_pending_enter(struct gpsh_channel *channel)
{
    ++channel->list_readers;
}

// The last one to leave takes out what is complete. A flow that failed stays: several contexts may
// have to tell.
static inline void gpsh_pending_leave(struct gpsh_channel *channel)
{
    if (--channel->list_readers != 0)
        return;
    int pe = gpsh_pending_first(channel);
    channel->first_listed = 0;
    while (pe >= 0) {
        struct gpsh_flow *flow = &channel->flows[pe];
        int next = gpsh_pending_next(channel, pe);
        flow->listed = 0;
        if (flow->completed != flow->posted || flow->error != 0)
            gpsh_pending_add(channel, pe);
        pe = next;
    }
}

#endif
