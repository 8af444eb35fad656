// SPDX-License-Identifier: BSD-3-Clause
// What kernels know of teams: a table in device memory, made with the rest of the device side. What
// is told before that is kept until then. Any thread, but one slot by one thread at a time.
#ifndef GPSH_DEVICE_TEAMS_H
#define GPSH_DEVICE_TEAMS_H

#include "gpu/device_memory.h"
#include "gpushmem/device_abi.h"
#include "memory/team_scratch.h"

// ---- Nodes, by which a team's operations of streams go (docs/design/collectives.md) ----

// Groups of PEs whose kernels load and store each other's heaps and no other's.
struct gpsh_device_nodes {
    // how many. 0: only one, or the ranks of some node do not follow each other; the rest says
    // nothing then
    int n;
    int mine;        // the number of this PE's
    int held;        // for how many ranks' shares one member is the holder, at most
    int32_t *starts; // [n + 1] the first rank of each, and how many members the team has
};

// ---- Teams ----

struct gpsh_device_team {
    int32_t team; // its handle
    int32_t my_rank, n;
    bool direct;        // on every member kernels load and store the heaps of all members
    const int32_t *pes; // [n]; stays where it is until the slot is free again, as nodes.starts
    struct gpsh_device_nodes nodes;
    bool lost;            // a member was lost
    bool checked;         // members compare their calls
    uint64_t first_epoch; // what kernels' operations are counted from
    struct gpsh_scratch scratch;
};

// A team now has this slot; NULL: none has. A negative status: device memory could not be written.
int gpsh_device_teams_set(int slot, const struct gpsh_device_team *team);
// A team as kernels know it, and as the host does.
struct gpsh_device_team_view {
    struct gpushmem_dev_team entry;
    const int32_t *pes;
    struct gpsh_device_nodes nodes;
};
// Of the team that has this handle now; false: none has.
bool gpsh_device_teams_view(int32_t team, struct gpsh_device_team_view *view);
// The team that has this slot now, as kernels know it; false: none has. And a member of it; -1: it
// has no such rank.
bool gpsh_device_teams_at(int slot, struct gpushmem_dev_team *entry);
int gpsh_device_teams_pe(int slot, int rank);
// A PE was lost: operations of its teams fail from now on, as those under way do.
void gpsh_device_teams_lose(int pe);
// Forgets all teams. In every init, before teams are told.
void gpsh_device_teams_init(void);

// For the device side.
int gpsh_device_teams_make(const struct gpsh_device_memory *memory);
void gpsh_device_teams_unmake(void);
const struct gpushmem_dev_team *gpsh_device_teams_table(void); // device memory; NULL: not made

#endif
