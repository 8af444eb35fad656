// SPDX-License-Identifier: BSD-3-Clause
// Where the memory of a team is: its slot, with words of the host, and its part of team memory, for
// kernels and streams. docs/design/teams.md.
#ifndef GPSH_TEAM_PLACE_H
#define GPSH_TEAM_PLACE_H

#include <stdbool.h>

#include "gpushmem/types.h"
#include "memory/team_scratch.h"

// Where a team's memory is, the same on all its members.
struct gpsh_team_place {
    int32_t slot;  // -1: none is free
    int32_t slots; // from there on: its data takes their room
    int32_t first; // unit of the heap's reserve
    int32_t units; // 0: collectives of the host only
    int32_t has;   // enum gpsh_team_has
};
enum gpsh_team_has { GPSH_TEAM_KERNELS = 1, GPSH_TEAM_STREAMS = 2 };

// In every init. `checked`: calls in kernels are compared, for which teams need memory.
void gpsh_team_places_init(bool checked);

// What is free, a bit each: slots, and units of the heap's reserve. The members take the lowest
// that are free on all.
struct gpsh_team_free {
    uint64_t slots[GPUSHMEM_TEAM_SLOTS / 64];
    uint64_t units[GPSH_SCRATCH_UNITS / 64];
};
struct gpsh_team_free gpsh_team_free(void);
void gpsh_team_free_join(struct gpsh_team_free *all, const struct gpsh_team_free *one);
// Of a team of n.
struct gpsh_team_place gpsh_team_place(const struct gpsh_team_free *free, int n);
bool gpsh_team_is_free(const struct gpsh_team_place *place);
// Of a predefined team, with room for so many members on all PEs.
struct gpsh_team_place gpsh_team_place_of(gpushmem_team_t predefined, int room);

void gpsh_team_place_take(const struct gpsh_team_place *place);
void gpsh_team_place_give_back(const struct gpsh_team_place *place);
// Between the two rounds in which its members agree: all teams before have left it, and none of the
// new one's members is in it yet.
int gpsh_team_place_clear(const struct gpsh_team_place *place);
// What it has for kernels, with room for so many members.
struct gpsh_scratch gpsh_team_scratch(const struct gpsh_team_place *place, int room);
// An operation of the team in a kernel was given up: others' words may still be on their way.
bool gpsh_team_gave_up(const struct gpsh_team_place *place, gpushmem_team_t team);

#endif
