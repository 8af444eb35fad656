// SPDX-License-Identifier: BSD-3-Clause
// What the sources of `coll` share.
#ifndef GPUSHMEM_TESTS_COLL_H
#define GPUSHMEM_TESTS_COLL_H

#include "check.h"

enum { MOST_PES = 16 };
extern int me, n_pes;
extern char *dest, *source, *expected; // [MOST_PES * MOST_BYTES] the first two symmetric

void skew(void);
// What this PE has to have before it calls: it comes late, and its dest is dirty until then.
void prepare(size_t dest_bytes);

// Reductions and scans of each type, apart and in place, by the teams in turn.
void check_types(const gpushmem_team_t *teams, int n_teams);
// Elements of each type keep their places, by the teams in turn.
void check_moves(const gpushmem_team_t *teams, int n_teams);

// Each fills source, calls, and compares dest with what it has to be; `seed` varies the data.
void check_broadcast(gpushmem_team_t team, size_t bytes, unsigned seed);
void check_fcollect(gpushmem_team_t team, size_t bytes, unsigned seed);
void check_collect(gpushmem_team_t team, size_t bytes, unsigned seed);
void check_sums(gpushmem_team_t team, size_t n, unsigned seed);
void check_products(gpushmem_team_t team, size_t n, unsigned seed);
void check_in_place(gpushmem_team_t team, size_t n);
// All operations on blocks of so many bytes.
void check_bytes(gpushmem_team_t team, size_t bytes, unsigned seed);

// `coll messages`, `coll counts`, `coll late` and `coll doubling`.
void run_messages(void);
void run_counts(void);
void run_late(void);
void run_doubling(void);

#endif
