// SPDX-License-Identifier: BSD-3-Clause
// New teams: out of a parent's members, of those that live, or of any PEs.
// docs/design/teams.md.
#ifndef GPSH_TEAM_SPLIT_H
#define GPSH_TEAM_SPLIT_H

#include "comm/team.h"

enum gpsh_team_split_kind {
    GPSH_SPLIT_STRIDED, // values: start, stride, size
    GPSH_SPLIT_LIST,    // size, and a digest of the list in two halves
    GPSH_SPLIT_ROWS,    // xrange; of a 2D split, which is these two
    GPSH_SPLIT_COLUMNS,
};

// What a call was given. All members compare them.
struct gpsh_team_arguments {
    int32_t kind; // enum gpsh_team_split_kind
    int32_t values[3];
};

// What this PE's call says: its new team, and what has to be alike on all members of the parent.
struct gpsh_team_plan {
    const char *what; // the public function
    const int *ranks; // [size] ranks of the parent in the order of the new team
    int size;         // 0: this PE is in no new team
    struct gpsh_team_arguments arguments;
    // 0, or why this PE cannot take part, with the last error's sentence: the others are told
    int status;
    struct gpushmem_team_config config;
};

// Which ranks of n: start, start + stride, ..., `size` of them. GPUSHMEM_ERR_INVALID with a
// sentence if they are not ranks.
int gpsh_team_check_strided(const char *what, int n, int start, int stride, int size);
// The same for a list; each once.
int gpsh_team_check_list(const char *what, int n, const int *ranks, int size);

// FNV-1a, to be continued with its own result; begin with 0.
uint64_t gpsh_team_digest(uint64_t digest, const void *bytes, size_t n);

// "PE 0 passes size 2, PE 3 size 3": the first difference between two members' calls.
void gpsh_team_tell_difference(const struct gpsh_team_arguments *a, int pe_a,
                               const struct gpsh_team_arguments *b, int pe_b, char *text,
                               size_t bytes);

// Collective over `parent`. *out is GPUSHMEM_TEAM_INVALID on failure, and where the plan is empty.
int gpsh_team_split(struct gpsh_team *parent, const struct gpsh_team_plan *plan,
                    gpushmem_team_t *out);
// The same over the members that live, of whom the new team is: the plan says nothing of ranks.
// docs/design/teams.md.
int gpsh_team_survivors(struct gpsh_team *parent, const struct gpsh_team_plan *plan,
                        gpushmem_team_t *out);
enum { GPSH_TEAM_ALLREDUCE_WORDS = 8 };
// How the members of a team to be reduce: `words` of all are joined, in any order, and the
// result is in `words` on all of them. `bytes`: whole words. 0 or a code, with a sentence.
struct gpsh_team_allreduce {
    int (*run)(void *self, void *words, size_t bytes, void (*join)(void *all, const void *one));
    void *self;
};
// The team of pes[0 .. n-1], which all of them call for, and nobody else.
// docs/design/compatibility.md.
int gpsh_team_of_pes(const char *what, const int *pes, int n,
                     const struct gpsh_team_allreduce *members, gpushmem_team_t *out);
// Collective over the team, unless it is broken.
int gpsh_team_destroy(struct gpsh_team *team, const char *what);

#endif
