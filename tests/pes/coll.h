// SPDX-License-Identifier: BSD-3-Clause
// What the sources of `coll` share.
#ifndef GPUSHMEM_TESTS_COLL_H
#define GPUSHMEM_TESTS_COLL_H

#include "check.h"

extern char *dest, *source, *expected; // [MOST_PES * MOST_BYTES] the first two symmetric

void skew(void);
// What this PE has to have before it calls: it comes late, and its dest is dirty until then.
void prepare(size_t dest_bytes);

// Reductions and scans of each type, apart and in place, by the teams in turn.
void check_types(const gpushmem_team_t *teams, int n_teams);
// Elements of each type keep their places, by the teams in turn.
void check_moves(const gpushmem_team_t *teams, int n_teams);

#endif
