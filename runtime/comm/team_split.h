// SPDX-License-Identifier: BSD-3-Clause
// New teams: out of a parent's members, of those that live, or of any PEs.
// docs/design/teams.md.
#ifndef GPSH_TEAM_SPLIT_H
#define GPSH_TEAM_SPLIT_H

#include "comm/collective.h"
#include "comm/team.h"

// What this PE's call says: its new team, and what has to be alike on all members of the parent.
struct gpsh_team_plan {
    const char *what; // the public function
    const int *ranks; // [size] ranks of the parent in the order of the new team
    int size;         // 0: this PE is in no new team
    // With the reason if this PE cannot take part: the others are told.
    struct gpsh_team_call call;
    const char *const *names; // of the call's arguments
    // The call's first three arguments are start, stride and size, which may differ as long as the
    // members of each new team pass the same.
    bool apart;
    struct gpushmem_team_config config;
};

// Which ranks of n: start, start + stride, ..., `size` of them. GPUSHMEM_ERR_INVALID with a
// sentence if they are not ranks.
int gpsh_team_check_strided(const char *what, int n, int start, int stride, int size);
// The same for a list; each once.
int gpsh_team_check_list(const char *what, int n, const int *ranks, int size);

// Collective over `parent`. *out is GPUSHMEM_TEAM_INVALID on failure, and where the plan is empty.
int gpsh_team_split(struct gpsh_team *parent, const struct gpsh_team_plan *plan,
                    gpushmem_team_t *out);
// The same over the members that live, of whom the new team is: the plan says nothing of ranks.
// docs/design/teams.md.
int gpsh_team_survivors(struct gpsh_team *parent, const struct gpsh_team_plan *plan,
                        gpushmem_team_t *out);

// How those that make a team join words of theirs, in any order; the result is in `words` on each.
// `member`: of the new team, whose word is joined. 0 or a code, with a sentence.
enum { GPSH_TEAM_ALLREDUCE_WORDS = 12 }; // most
typedef void gpsh_team_join(void *all, const void *one, bool member);
struct gpsh_team_allreduce {
    int (*run)(void *self, void *words, size_t bytes, gpsh_team_join *join);
    void *self;
};
// The team of pes[0 .. n-1], for which all of them call; and others that can take part in
// `members`, with n == 0. docs/design/teams.md.
int gpsh_team_make(const char *what, const int *pes, int n,
                   const struct gpsh_team_allreduce *members,
                   const struct gpushmem_team_config *config, gpushmem_team_t *out);
// Collective over the team, unless it is broken.
int gpsh_team_destroy(struct gpsh_team *team, const char *what);

#endif
