// SPDX-License-Identifier: BSD-3-Clause
#ifndef GPSH_API_TEAM_H
#define GPSH_API_TEAM_H

#include "comm/team.h"

// Finds the team that a handle stands for. `function`: the full name of the public function.
int gpsh_check_team(const char *function, gpushmem_team_t handle, struct gpsh_team **out);

#endif
