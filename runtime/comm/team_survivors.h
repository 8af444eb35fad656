// SPDX-License-Identifier: BSD-3-Clause
// A team of those members of another one that live. docs/adr/0029-the-team-of-the-survivors.md.
#ifndef GPSH_TEAM_SURVIVORS_H
#define GPSH_TEAM_SURVIVORS_H

#include "comm/team.h"

// Collective over the members of `parent` that live. `status`: why this PE cannot take part, of
// which the others are told. *out is GPUSHMEM_TEAM_INVALID on failure.
int gpsh_team_survivors(struct gpsh_team *parent, const struct gpushmem_team_config *config,
                        int status, const char *what, gpushmem_team_t *out);

#endif
