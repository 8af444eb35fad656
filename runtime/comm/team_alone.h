// SPDX-License-Identifier: BSD-3-Clause
// Teams that are made without a parent, by their own members alone. docs/adr/0034-openshmem.md.
#ifndef GPSH_TEAM_ALONE_H
#define GPSH_TEAM_ALONE_H

#include "comm/team.h"

enum { GPSH_TEAM_ASK_WORDS = 8 };
// How the members of a team to be ask each other: `words` of all are folded, in any order, and the
// result is in `words` on all of them. 0 or a code, with a sentence.
struct gpsh_team_asking {
    int (*ask)(void *self, uint64_t *words, void (*fold)(uint64_t *words, const uint64_t *other));
    void *self;
};
// The team of pes[0 .. n-1], which all of them call for, and nobody else.
int gpsh_team_of_pes(const char *what, const int *pes, int n, const struct gpsh_team_asking *asking,
                     gpushmem_team_t *out);

#endif
