// SPDX-License-Identifier: BSD-3-Clause
// Small exchanges of the members of a team in their control words: each is a sync that carries
// data, and one epoch. All members make the same calls, with the same sizes. `what` is the public
// function, for sentences. A failure leaves the team broken.
//
// Two ways: if the team is flat, each PE shows its data in its own words and looks at everybody's.
// Else members are in groups (comm/team_nodes.h), of which the first exchange messages of about
// log2(n) rounds, by stores where a member's words are mapped and by put_signal where they are not.
#ifndef GPSH_TEAM_EXCHANGE_H
#define GPSH_TEAM_EXCHANGE_H

#include "comm/team.h"

// 0, or why the team can only be destroyed, with a sentence. Looks for lost members.
int gpsh_team_usable(struct gpsh_team *team, const char *what);

// Nobody can say any more how far the members are. Returns `status`.
int gpsh_team_break(struct gpsh_team *team, int status);

// Waits until a word that the rank writes, or shows, is `least` or more. What was written before
// that word is there then.
int gpsh_team_await(struct gpsh_team *team, int rank, const _Atomic uint64_t *word, uint64_t least,
                    const char *what);

// All members have come.
int gpsh_team_sync(struct gpsh_team *team, const char *what);
// The same, and views[r] is the data of rank r, `bytes` of each, until this PE's next call with
// this team. `mine` is not to change meanwhile. At most gpsh_team_allgather_most bytes.
int gpsh_team_allgather(struct gpsh_team *team, const void *mine, size_t bytes, const char *what);
size_t gpsh_team_allgather_most(const struct gpsh_team *team);
// views[root] is what root has; the others' `mine` is not read. No sync: the root may return before
// others have come.
int gpsh_team_broadcast(struct gpsh_team *team, int root, const void *mine, size_t bytes,
                        const char *what);
size_t gpsh_team_broadcast_most(const struct gpsh_team *team);
// views[0] is the sum of all members' data, `bytes` of each, however that is bracketed: if groups
// are in order, what is left is of lower ranks than what is right, and else of any. At most
// gpsh_team_allreduce_most bytes: 0 of a flat team, where everybody sees all data anyhow.
struct gpsh_team_fold {
    // to = left + right; `to` is one of them.
    void (*add)(const void *self, void *to, const void *left, const void *right);
    const void *self;
};
int gpsh_team_allreduce(struct gpsh_team *team, const void *mine, size_t bytes,
                        const struct gpsh_team_fold *fold, const char *what);
size_t gpsh_team_allreduce_most(const struct gpsh_team *team);
// `mine` has n pieces of `bytes`, one for each rank; views[r] is the piece from rank r for this PE.
int gpsh_team_alltoall(struct gpsh_team *team, const void *mine, size_t bytes, const char *what);
size_t gpsh_team_alltoall_most(const struct gpsh_team *team);

// allgather in as many epochs as it takes, with a result that stays: all[r * bytes ...] is rank
// r's.
int gpsh_team_allgather_any(struct gpsh_team *team, const void *mine, size_t bytes, void *all,
                            const char *what);

// ---- Counters ----

// By these members tell each other, within one large operation, that data is there. They lie where
// small exchanges have their data, so an operation has them between two that carry none: the first
// follows gpsh_team_signals_clear.

// How many counters a member has.
static inline size_t gpsh_team_signals(const struct gpsh_team *team)
{
    return team->room / sizeof(uint64_t);
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
