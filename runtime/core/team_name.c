// SPDX-License-Identifier: BSD-3-Clause
#include "core/team_name.h"

#include <stdio.h>

#include "gpushmem/impl/team_layout.h"

struct gpsh_team_name gpsh_team_name(gpushmem_team_t team)
{
    static const char *const predefined[] = {
        [GPUSHMEM_TEAM_WORLD] = "WORLD",       [GPUSHMEM_TEAM_SHARED] = "SHARED",
        [GPUSHMEM_TEAM_NODE] = "NODE",         [GPUSHMEM_TEAM_SAME_RANK] = "SAME_RANK",
        [GPUSHMEM_TEAM_SAME_GPU] = "SAME_GPU", [GPUSHMEM_TEAM_GPU_LEADERS] = "GPU_LEADERS"};
    struct gpsh_team_name name;
    if (team >= 0 && (size_t)team < sizeof predefined / sizeof predefined[0])
        snprintf(name.text, sizeof name.text, "GPUSHMEM_TEAM_%s", predefined[team]);
    else
        snprintf(name.text, sizeof name.text, "team %d", (int)team);
    return name;
}

const char *gpsh_coll_kind_name(int kind)
{
    static const char *const names[GPUSHMEM_COLL_KINDS] = {
        "nothing",  "sync",      "barrier", "broadcast",     "collect", "fcollect",
        "alltoall", "alltoalls", "reduce",  "reducescatter", "inscan",  "exscan"};
    return names[kind];
}
