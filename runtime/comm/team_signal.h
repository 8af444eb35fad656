// SPDX-License-Identifier: BSD-3-Clause
// Counters by which the members of a team tell each other, within one large operation, that data is
// there. They lie where small operations have their data, so an operation has them between two
// meetings that carry none: the first follows gpsh_team_signals_clear.
#ifndef GPSH_TEAM_SIGNAL_H
#define GPSH_TEAM_SIGNAL_H

#include "comm/team_meet.h"
#include "job/job.h"

// How many counters a member has.
static inline size_t gpsh_team_signals(void)
{
    return gpsh_team_room(gpsh_job()->n_pes) / sizeof(uint64_t);
}

// Before this PE's next meeting: its counters will be 0 when it begins. Others are still in the
// operation before that at the latest, and its data is not here.
void gpsh_team_signals_clear(struct gpsh_team *team);

// Sets one of the rank's counters when what this PE has sent to it before is there. Only one member
// sets it, and it grows.
int gpsh_team_signal(struct gpsh_team *team, int rank, size_t index, uint64_t value);

// Waits until one of this PE's counters, which the rank sets, is `least`.
int gpsh_team_signal_wait(struct gpsh_team *team, int rank, size_t index, uint64_t least,
                          const char *what);

// The same of a counter of rank `at`, whose node is this PE's.
int gpsh_team_signal_wait_at(struct gpsh_team *team, int at, int rank, size_t index, uint64_t least,
                             const char *what);

#endif
