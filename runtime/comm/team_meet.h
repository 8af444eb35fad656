// SPDX-License-Identifier: BSD-3-Clause
// The members of a team meet in an operation, and hand each other small pieces of data. Each call
// is one epoch; all members make the same calls, with the same sizes. `what` is the public
// function, for sentences. A failure leaves the team broken.
//
// Three ways: if the team is flat, each PE shows its data in its own words and looks at
// everybody's. If several members share a node, one of each node speaks for it (comm/team_nodes.h).
// Else messages of about log2(n) rounds, by stores where a member's words are mapped and by
// put_signal where they are not.
#ifndef GPSH_TEAM_MEET_H
#define GPSH_TEAM_MEET_H

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
int gpsh_team_meet(struct gpsh_team *team, const char *what);
// The same, and views[r] is the data of rank r, `bytes` of each, until this PE's next call with
// this team. `mine` is not to change meanwhile. At most gpsh_team_gather_most bytes.
int gpsh_team_gather(struct gpsh_team *team, const void *mine, size_t bytes, const char *what);
size_t gpsh_team_gather_most(const struct gpsh_team *team);
// views[root] is what root has; the others' `mine` is not read.
int gpsh_team_cast(struct gpsh_team *team, int root, const void *mine, size_t bytes,
                   const char *what);
size_t gpsh_team_cast_most(const struct gpsh_team *team);
// `mine` has n pieces of `bytes`, one for each rank; views[r] is the piece from rank r for this PE.
int gpsh_team_transpose(struct gpsh_team *team, const void *mine, size_t bytes, const char *what);
size_t gpsh_team_transpose_most(const struct gpsh_team *team);

// gather in as many epochs as it takes, with a result that stays: all[r * bytes ...] is rank r's.
int gpsh_team_gather_all(struct gpsh_team *team, const void *mine, size_t bytes, void *all,
                         const char *what);

#endif
