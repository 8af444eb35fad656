// SPDX-License-Identifier: BSD-3-Clause
// Teams of this PE: a table of slots. docs/design/teams.md.
#ifndef GPSH_TEAM_H
#define GPSH_TEAM_H

#include "comm/team_nodes.h"
#include "comm/team_place.h"
#include "gpushmem/team.h"
#include "job/job.h"
#include "memory/team_scratch.h"
#include "proxy/device_teams.h"

// Parts of a team's private memory, each as large as its room.
enum gpsh_team_work {
    GPSH_WORK_PIECES, // of an alltoall by messages,
    GPSH_WORK_PACKED, // and what it sends next
    GPSH_WORK_IN,     // what an operation hands over,
    GPSH_WORK_OUT,    // and its result, where the program's memory will not do
    GPSH_TEAM_WORK,
};

struct gpsh_team {
    gpushmem_team_t handle;
    struct gpsh_team_place place;
    int my_rank, n;
    int *pes; // [n]
    // [n] where the members' words are mapped into this process; NULL: only a transport reaches
    // them
    struct gpsh_team_words **words;
    struct gpsh_team_words *mine;
    // from a member's words to what it shows in even epochs, and from there to that of odd ones
    ptrdiff_t shown, side;
    size_t room; // bytes of data in each
    // [n] where the members' data of the operation under way lies (comm/team_exchange.h)
    const char **views;
    char *work;     // private memory, GPSH_TEAM_WORK times its room
    uint64_t epoch; // number of the last operation of the host
    // epochs of the broadcasts whose data is in this PE's sent[]; 0: of none of this team's
    uint64_t sent[GPSH_TEAM_RING];
    bool flat; // all members see each other's words, and they are few, or share cores
    struct gpsh_team_nodes *groups;  // in which members exchange messages; NULL: it is flat
    struct gpsh_team_nodes *nodes;   // the same if they are nodes, some with several, else NULL
    struct gpsh_bell *bell;          // of a flat team that shares cores; else NULL
    bool direct;                     // all members load and store each other's heaps
    bool kernels_direct;             // kernels do
    struct gpsh_team_nodes *kernels; // whose members' kernels map each other's heaps; or NULL
    bool checked; // each collective call is compared with the others' before it begins
    // 0, or why it can only be destroyed; failed_pe: the member that was lost, or -1
    int broken;
    int failed_pe;
    unsigned failures; // value of gpsh_job()->failures when the members were last looked at
    uint32_t polls;    // how often the members have looked for those that are left
    struct gpushmem_team_config config;
};

static inline char *gpsh_team_work(const struct gpsh_team *team, enum gpsh_team_work part)
{
    return team->work + (size_t)part * team->room;
}

// Bits beside those of enum gpsh_common: gpsh_teams_reach, for gpsh_agree.
enum gpsh_team_reach {
    GPSH_TEAM_WORLD_DIRECT = GPSH_COMMON_TEAMS << 0, // the host loads and stores all heaps
    GPSH_TEAM_NODE_DIRECT = GPSH_COMMON_TEAMS << 1,  // those of its node
    GPSH_TEAM_WORLD_KERNELS = GPSH_COMMON_TEAMS << 2,
    GPSH_TEAM_NODE_KERNELS = GPSH_COMMON_TEAMS << 3,
    GPSH_TEAM_CHECKED = GPSH_COMMON_TEAMS << 4,
    GPSH_TEAM_NODE_WORDS = GPSH_COMMON_TEAMS
                           << 5, // the PEs of a node see each other's words, and those of no other
    GPSH_TEAM_KERNELS_MAP_NODE = GPSH_COMMON_TEAMS
                                 << 6, // kernels the heaps of their node, and no other
    GPSH_TEAM_KERNELS_MAP_ALONE = GPSH_COMMON_TEAMS << 7, // kernels no other heap
};
uint32_t gpsh_teams_reach(void);
// Makes the predefined teams; `reach`: what all PEs have agreed on.
int gpsh_teams_init(uint32_t reach);
void gpsh_teams_finalize(void);

// The team of a handle, or NULL: none of this PE's.
struct gpsh_team *gpsh_team_of(gpushmem_team_t handle);

// ---- New teams: what their members agree on, whichever way they ask each other ----

// The error of a team of n for which no slot is free.
int gpsh_team_no_slot(const char *what, int n);

// What a team in the slot has to begin above, and do without: the highest that members have
// counted, and what any of them lacks. Or why there is no team.
struct gpsh_team_terms {
    uint64_t epoch;
    uint32_t generation;
    uint32_t lacks; // of enum gpsh_team_reach, GPSH_TEAM_WORLD_DIRECT and _WORLD_KERNELS
    int32_t status; // 0, or why `pe` cannot take part: the lowest that cannot
    int32_t pe;
};
// Of one that is no member of the new team only the status is joined.
void gpsh_team_terms_join(struct gpsh_team_terms *all, const struct gpsh_team_terms *one,
                          bool member);
// Their status, with a sentence.
int gpsh_team_cannot(const char *what, const struct gpsh_team_terms *terms);
// A team that nobody sees yet, and this PE's terms, with status 0; it takes over neither `pes` nor
// the place, but what kernels find there is zero.
int gpsh_team_propose(const struct gpsh_team_place *place, const int *pes, int n,
                      struct gpsh_team **out, struct gpsh_team_terms *mine);
void gpsh_team_delete(struct gpsh_team *team);
// Puts it into the table, when the terms of all members are joined: it has the place now.
int gpsh_team_enter(struct gpsh_team *team, const struct gpsh_team_terms *all);
// Takes it out of the table and deletes it.
void gpsh_team_leave(struct gpsh_team *team);

#endif
