// SPDX-License-Identifier: BSD-3-Clause
#include "comm/team.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm/context.h"
#include "core/config.h"
#include "job/job.h"
#include "memory/heap.h"
#include "progress/waiter.h"
#include "proxy/device_side.h"
#include "proxy/device_teams.h"
#include "stream/coll_choice.h"

// Above so many members a PE does not look at each one's word itself: comm/team_exchange.c. Where
// PEs share cores it does: each round of messages would need all of them scheduled once more.
enum { FLAT_MOST = 32 };

static struct {
    struct gpsh_team *teams[GPUSHMEM_TEAM_SLOTS];
    // of the last team in each slot
    uint64_t epochs[GPUSHMEM_TEAM_SLOTS];
    uint32_t generations[GPUSHMEM_TEAM_SLOTS];
    // Slots of teams that broke: messages may still come for them.
    struct gpsh_team_slots retired;
    bool checked;
    bool by_nodes; // teams meet node by node where that saves messages
    enum gpsh_kernels_map kernels_map;
} table;

static struct gpsh_team_words *words_of(int pe, int slot)
{
    char *control = gpsh_heap()->mapped[GPSH_CONTROL][pe];
    return control ? (struct gpsh_team_words *)(void *)(control +
                                                        gpsh_control_team(gpsh_job()->n_pes, slot))
                   : NULL;
}

struct gpsh_team *gpsh_team_of(gpushmem_team_t handle)
{
    struct gpsh_team *team = table.teams[(uint32_t)handle & GPUSHMEM_TEAM_SLOT_MASK];
    return team && team->handle == handle ? team : NULL;
}

// ---- Slots ----

static bool is_set(const struct gpsh_team_slots *slots, int slot)
{
    return slots->bits[slot / 64] >> slot % 64 & 1;
}

static void set_slot(struct gpsh_team_slots *slots, int slot)
{
    slots->bits[slot / 64] |= (uint64_t)1 << slot % 64;
}

struct gpsh_team_slots gpsh_team_free_slots(void)
{
    struct gpsh_team_slots slots = {{0}};
    for (int slot = GPUSHMEM_TEAM_PREDEFINED; slot < (int)gpsh_settings()->teams; slot++)
        if (!table.teams[slot] && !is_set(&table.retired, slot))
            set_slot(&slots, slot);
    return slots;
}

void gpsh_team_slots_join(struct gpsh_team_slots *all, const struct gpsh_team_slots *one)
{
    for (int i = 0; i < GPUSHMEM_TEAM_SLOTS / 64; i++)
        all->bits[i] &= one->bits[i];
}

int gpsh_team_slots_lowest(const struct gpsh_team_slots *slots)
{
    for (int i = 0; i < GPUSHMEM_TEAM_SLOTS / 64; i++)
        if (slots->bits[i])
            return i * 64 + __builtin_ctzll(slots->bits[i]);
    return -1;
}

int gpsh_team_no_slot(const char *what, int n)
{
    char given[80];
    if (gpsh_settings()->teams >= GPUSHMEM_TEAM_SLOTS)
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY,
                         "%s: no slot is free on all %d members of the new team: destroy a team: "
                         "%d at a time are the most there can be",
                         what, n, GPUSHMEM_TEAM_SLOTS);
    return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY,
                     "%s: no slot is free on all %d members of the new team: destroy a team, or "
                     "raise %s",
                     what, n, gpsh_setting_as_given("GPUSHMEM_TEAMS", given, sizeof given));
}

// ---- Teams ----

void gpsh_team_delete(struct gpsh_team *team)
{
    if (!team)
        return;
    free(team->groups);
    free(team->pes);
    free(team->words);
    free(team->views);
    free(team->kernels_nodes.starts);
    if (team->broken) // an operation that failed may still be read from there, or written to it
        gpsh_context_keep(team->work);
    else
        free(team->work);
    free(team);
}

static int allocate(struct gpsh_team *team)
{
    size_t n = (size_t)team->n;
    team->pes = calloc(n, sizeof *team->pes);
    team->words = calloc(n, sizeof *team->words);
    team->views = calloc(n, sizeof *team->views);
    team->kernels_nodes.starts = calloc(n + 1, sizeof *team->kernels_nodes.starts);
    team->work = malloc(GPSH_TEAM_WORK * gpsh_team_room(gpsh_job()->n_pes));
    return team->pes && team->words && team->views && team->work && team->kernels_nodes.starts ? 0
                                                                                               : -1;
}

static int team_new(int slot, const int *pes, int n, struct gpsh_team **out)
{
    struct gpsh_team *team = calloc(1, sizeof *team);
    bool failed = !team;
    if (team) {
        *team = (struct gpsh_team){.handle = GPUSHMEM_TEAM_INVALID,
                                   .slot = slot,
                                   .n = n,
                                   .flat = n <= FLAT_MOST || gpsh_waiter_shares(),
                                   .checked = table.checked,
                                   .failed_pe = -1};
        failed = allocate(team) < 0;
    }
    for (int rank = 0; !failed && rank < n; rank++) {
        team->pes[rank] = pes[rank];
        team->words[rank] = words_of(pes[rank], slot);
        team->flat = team->flat && team->words[rank];
        if (pes[rank] == gpsh_job()->my_pe)
            team->my_rank = rank;
    }
    if (!failed && !team->flat) {
        team->groups = gpsh_team_nodes_new(pes, n, team->my_rank, table.by_nodes);
        team->nodes = team->groups && team->groups->shared ? team->groups : NULL;
        failed = !team->groups;
    }
    if (failed) {
        gpsh_team_delete(team);
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no host memory for a team of %d PEs", n);
    }
    team->mine = words_of(gpsh_job()->my_pe, slot);
    if (team->flat && gpsh_waiter_shares())
        team->bell = &team->words[0]->bell;
    *out = team;
    return 0;
}

// It counts from `first` on.
static int enter(struct gpsh_team *team, const struct gpsh_team_terms *first)
{
    int slot = team->slot;
    team->handle =
        (gpushmem_team_t)((uint32_t)slot | first->generation << GPUSHMEM_TEAM_GENERATION_SHIFT);
    team->epoch = first->epoch;
    table.generations[slot] = first->generation;
    if (!team->kernels_direct)
        gpsh_device_nodes_find(&team->kernels_nodes, team->pes, team->n, team->my_rank,
                               table.kernels_map);
    const struct gpsh_device_team device = {.team = team->handle,
                                            .my_rank = team->my_rank,
                                            .n = team->n,
                                            .direct = team->kernels_direct,
                                            .checked = team->checked,
                                            .pes = team->pes,
                                            .nodes = team->kernels_nodes,
                                            .first_epoch = first->kernels_epoch};
    int status = gpsh_device_teams_set(slot, &device);
    if (status)
        return status;
    table.teams[slot] = team;
    return 0;
}

static uint32_t lacks_of(const int *pes, int n)
{
    uint32_t lacks = 0;
    for (int rank = 0; rank < n; rank++) {
        if (!gpsh_heap()->direct[pes[rank]] && pes[rank] != gpsh_job()->my_pe)
            lacks |= GPSH_TEAM_WORLD_DIRECT;
        if (!gpsh_device_side_direct(pes[rank]))
            lacks |= GPSH_TEAM_WORLD_KERNELS;
    }
    return lacks;
}

int gpsh_team_propose(int slot, const int *pes, int n, struct gpsh_team **out,
                      struct gpsh_team_terms *mine)
{
    *mine = (struct gpsh_team_terms){.epoch = table.epochs[slot],
                                     .generation = table.generations[slot],
                                     .lacks = lacks_of(pes, n)};
    int status = team_new(slot, pes, n, out);
    return status ? status : gpsh_device_teams_epoch(slot, &mine->kernels_epoch);
}

void gpsh_team_terms_join(struct gpsh_team_terms *all, const struct gpsh_team_terms *one)
{
    if (one->epoch > all->epoch)
        all->epoch = one->epoch;
    if (one->kernels_epoch > all->kernels_epoch)
        all->kernels_epoch = one->kernels_epoch;
    if (one->generation > all->generation)
        all->generation = one->generation;
    all->lacks |= one->lacks;
}

// Packets say only the low half of their operation's number (device/team.cuh). A channel that had
// few operations may still hold packets of low numbers when another channel of the slot has counted
// beyond 32 bits. So in each channel the next team's first operation has the number that clears
// them. Flags carry numbers shifted by 20 bits, so this ends at 2^43: after some 2000 such teams.
static uint64_t kernels_epoch_above(uint64_t highest)
{
    const uint64_t low_half = UINT32_MAX, limit = (uint64_t)1 << 43;
    uint64_t next = highest + 1;
    return next > low_half && next < limit ? next | low_half : next;
}

int gpsh_team_enter(struct gpsh_team *team, const struct gpsh_team_terms *all)
{
    // the bits above are for channels
    enum { GENERATIONS = 1 << (GPUSHMEM_TEAM_CHANNEL_SHIFT - GPUSHMEM_TEAM_GENERATION_SHIFT) };
    const struct gpsh_team_terms first = {
        .epoch = all->epoch + 1,
        .kernels_epoch = kernels_epoch_above(all->kernels_epoch),
        // 0 is that of the predefined teams
        .generation = all->generation + 1 < GENERATIONS ? all->generation + 1 : 1};
    team->direct = !(all->lacks & GPSH_TEAM_WORLD_DIRECT);
    team->kernels_direct = !(all->lacks & GPSH_TEAM_WORLD_KERNELS);
    return enter(team, &first);
}

void gpsh_team_leave(struct gpsh_team *team)
{
    int slot = team->slot;
    table.teams[slot] = NULL;
    table.epochs[slot] = team->epoch;
    if (team->broken)
        set_slot(&table.retired, slot);
    if (gpsh_device_teams_set(slot, NULL)) // a GPU that died has been, or will be, reported
        gpsh_clear_error();
    gpsh_team_delete(team);
}

// ---- Predefined teams ----

uint32_t gpsh_teams_reach(void)
{
    uint32_t reach = GPSH_TEAM_WORLD_DIRECT | GPSH_TEAM_NODE_DIRECT | GPSH_TEAM_WORLD_KERNELS |
                     GPSH_TEAM_NODE_KERNELS | GPSH_TEAM_NODE_WORDS | GPSH_TEAM_KERNELS_MAP_NODE |
                     GPSH_TEAM_KERNELS_MAP_ALONE;
    for (int pe = 0; pe < gpsh_job()->n_pes; pe++) {
        uint32_t lacks = 0;
        if (!gpsh_heap()->direct[pe] && pe != gpsh_job()->my_pe)
            lacks |= GPSH_TEAM_WORLD_DIRECT | GPSH_TEAM_NODE_DIRECT;
        if (!gpsh_device_side_direct(pe))
            lacks |= GPSH_TEAM_WORLD_KERNELS | GPSH_TEAM_NODE_KERNELS;
        if (gpsh_job()->peers[pe].node != gpsh_job()->peers[gpsh_job()->my_pe].node)
            lacks &= GPSH_TEAM_WORLD_DIRECT | GPSH_TEAM_WORLD_KERNELS;
        reach &= ~lacks;
        bool same_node = gpsh_job()->peers[pe].node == gpsh_job()->peers[gpsh_job()->my_pe].node;
        if (same_node != (gpsh_heap()->mapped[GPSH_CONTROL][pe] != NULL))
            reach &= ~(uint32_t)GPSH_TEAM_NODE_WORDS;
        if (pe == gpsh_job()->my_pe)
            continue;
        bool mapped = gpsh_device_side_direct(pe) != NULL;
        reach &= ~(mapped ? (uint32_t)GPSH_TEAM_KERNELS_MAP_ALONE : 0u);
        reach &= ~(mapped != same_node ? (uint32_t)GPSH_TEAM_KERNELS_MAP_NODE : 0u);
    }
    return reach | (gpsh_settings()->check ? GPSH_TEAM_CHECKED : 0u);
}

static bool is_member(gpushmem_team_t team, int pe, bool node_is_shared)
{
    const struct gpsh_peer *peer = &gpsh_job()->peers[pe],
                           *me = &gpsh_job()->peers[gpsh_job()->my_pe];
    switch (team) {
    case GPUSHMEM_TEAM_WORLD: return true;
    case GPUSHMEM_TEAM_SHARED:
        return pe == gpsh_job()->my_pe || (node_is_shared && peer->node == me->node);
    case GPUSHMEM_TEAM_NODE: return peer->node == me->node;
    default: return peer->node_pe == me->node_pe;
    }
}

static int make_predefined(gpushmem_team_t handle, uint32_t reach, int *pes)
{
    bool shared = reach & (gpsh_heap()->device ? GPSH_TEAM_NODE_KERNELS : GPSH_TEAM_NODE_DIRECT);
    int n = 0;
    bool one_node = true;
    for (int pe = 0; pe < gpsh_job()->n_pes; pe++)
        if (is_member(handle, pe, shared)) {
            pes[n++] = pe;
            one_node =
                one_node && gpsh_job()->peers[pe].node == gpsh_job()->peers[gpsh_job()->my_pe].node;
        }
    struct gpsh_team *team;
    int status = team_new(handle, pes, n, &team);
    if (status)
        return status;
    uint64_t first = (uint64_t)gpsh_settings()->team_epoch;
    team->direct = n == 1 || reach & (one_node ? GPSH_TEAM_NODE_DIRECT : GPSH_TEAM_WORLD_DIRECT);
    team->kernels_direct =
        n == 1 ? gpsh_device_side_direct(gpsh_job()->my_pe) != NULL
               : (reach & (one_node ? GPSH_TEAM_NODE_KERNELS : GPSH_TEAM_WORLD_KERNELS)) != 0;
    status = enter(team, &(struct gpsh_team_terms){first, first, 0, 0});
    if (status)
        gpsh_team_delete(team);
    return status;
}

int gpsh_teams_init(uint32_t reach)
{
    memset(&table, 0, sizeof table);
    table.checked = reach & GPSH_TEAM_CHECKED;
    table.by_nodes = reach & GPSH_TEAM_NODE_WORDS && gpsh_coll_limits.nodes;
    if (gpsh_coll_limits.nodes)
        table.kernels_map = reach & GPSH_TEAM_KERNELS_MAP_NODE    ? GPSH_KERNELS_MAP_NODE
                            : reach & GPSH_TEAM_KERNELS_MAP_ALONE ? GPSH_KERNELS_MAP_ALONE
                                                                  : GPSH_KERNELS_MAP_SOME;
    gpsh_device_teams_init(table.kernels_map != GPSH_KERNELS_MAP_SOME);
    for (int slot = 0; slot < GPUSHMEM_TEAM_SLOTS; slot++)
        table.epochs[slot] = (uint64_t)gpsh_settings()->team_epoch;
    int *pes = calloc((size_t)gpsh_job()->n_pes, sizeof *pes);
    int status = pes ? 0
                     : gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no host memory for teams of %d PEs",
                                 gpsh_job()->n_pes);
    for (int team = 0; !status && team < GPUSHMEM_TEAM_PREDEFINED; team++)
        status = make_predefined(team, reach, pes);
    free(pes);
    return status;
}

void gpsh_teams_finalize(void)
{
    for (int slot = 0; slot < GPUSHMEM_TEAM_SLOTS; slot++) {
        gpsh_team_delete(table.teams[slot]);
        table.teams[slot] = NULL;
    }
}
