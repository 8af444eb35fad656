// SPDX-License-Identifier: BSD-3-Clause
// How sentences name a team: "GPUSHMEM_TEAM_WORLD" and its like, others "team 7" by their handle;
// and how a collective of kernels and streams.
#ifndef GPSH_TEAM_NAME_H
#define GPSH_TEAM_NAME_H

#include "gpushmem/types.h"

struct gpsh_team_name {
    char text[32];
};

// Of a handle, valid or not: gpsh_team_name(team).text.
struct gpsh_team_name gpsh_team_name(gpushmem_team_t team);
// Of a GPUSHMEM_COLL_ kind.
const char *gpsh_coll_kind_name(int kind);

#endif
