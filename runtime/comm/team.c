// SPDX-License-Identifier: BSD-3-Clause
#include "comm/team.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm/context.h"
#include "core/config.h"
#include "gpushmem/gpushmem.h"
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
    bool checked;
    bool by_nodes; // teams meet node by node where that saves messages
    // what the kernels of each PE of the job map
    enum { MAP_SOME, MAP_NODE, MAP_ALONE } kernels_map;
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
    free(team->kernels);
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
    team->work = malloc(GPSH_TEAM_WORK * team->room);
    return team->pes && team->words && team->views && team->work ? 0 : -1;
}

static void find_pages(struct gpsh_team *team)
{
    const struct gpsh_team_place *place = &team->place;
    int n_pes = gpsh_job()->n_pes;
    size_t pages = place->slot < GPUSHMEM_TEAM_PREDEFINED
                       ? gpsh_team_pages(n_pes)
                       : (size_t)place->slots * gpsh_slot_pages(n_pes);
    team->shown = (ptrdiff_t)(gpsh_control_shown(n_pes, gpsh_settings(), place->slot) -
                              gpsh_control_team(n_pes, place->slot));
    team->side = (ptrdiff_t)pages;
    team->room = pages - sizeof(struct gpsh_team_shown);
}

// By nodes where that separates some members and leaves others together.
static int find_groups(struct gpsh_team *team)
{
    if (table.kernels_map != MAP_SOME)
        team->kernels =
            gpsh_team_nodes_new(team->pes, team->n, team->my_rank, table.kernels_map == MAP_ALONE);
    if (table.kernels_map != MAP_SOME && !team->kernels)
        return -1;
    if (!team->flat && table.by_nodes)
        team->groups = gpsh_team_nodes_new(team->pes, team->n, team->my_rank, false);
    if (team->groups && team->groups->n > 1 && team->groups->n < team->n)
        team->nodes = team->groups;
    if (team->flat || team->nodes)
        return 0;
    free(team->groups);
    team->groups = gpsh_team_nodes_new(team->pes, team->n, team->my_rank, true);
    return team->groups ? 0 : -1;
}

static int team_new(const struct gpsh_team_place *place, const int *pes, int n,
                    struct gpsh_team **out)
{
    struct gpsh_team *team = calloc(1, sizeof *team);
    bool failed = !team;
    if (team) {
        *team = (struct gpsh_team){.handle = GPUSHMEM_TEAM_INVALID,
                                   .place = *place,
                                   .n = n,
                                   .flat = n <= FLAT_MOST || gpsh_waiter_shares(),
                                   .checked = table.checked,
                                   .failed_pe = -1};
        find_pages(team);
        failed = allocate(team) < 0;
    }
    for (int rank = 0; !failed && rank < n; rank++) {
        team->pes[rank] = pes[rank];
        team->words[rank] = words_of(pes[rank], place->slot);
        team->flat = team->flat && team->words[rank];
        if (pes[rank] == gpsh_job()->my_pe)
            team->my_rank = rank;
    }
    failed = failed || find_groups(team) < 0;
    if (failed) {
        gpsh_team_delete(team);
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no host memory for a team of %d PEs", n);
    }
    team->mine = words_of(gpsh_job()->my_pe, place->slot);
    if (team->flat && gpsh_waiter_shares())
        team->bell = &team->words[0]->bell;
    *out = team;
    return 0;
}

// Its meetings count from `first` on. `room`: of how many members its scratch has room.
static int enter(struct gpsh_team *team, const struct gpsh_team_terms *first, int room)
{
    int slot = team->place.slot;
    team->handle =
        (gpushmem_team_t)((uint32_t)slot | first->generation << GPUSHMEM_TEAM_GENERATION_SHIFT);
    team->epoch = first->epoch;
    table.generations[slot] = first->generation;
    struct gpsh_device_nodes nodes = {0};
    if (!team->kernels_direct && team->kernels)
        nodes = gpsh_team_nodes_of_kernels(team->kernels);
    const struct gpsh_device_team device = {.team = team->handle,
                                            .my_rank = team->my_rank,
                                            .n = team->n,
                                            .direct = team->kernels_direct,
                                            .checked = team->checked,
                                            .pes = team->pes,
                                            .nodes = nodes,
                                            .first_epoch = (uint64_t)gpsh_settings()->team_epoch,
                                            .scratch = gpsh_team_scratch(&team->place, room)};
    int status = gpsh_device_teams_set(slot, &device);
    if (status)
        return status;
    gpsh_team_place_take(&team->place);
    table.teams[slot] = team;
    return 0;
}

static uint32_t lacks_of(const int *pes, int n)
{
    uint32_t lacks = 0;
    for (int rank = 0; rank < n; rank++) {
        if (!gpsh_direct_base(pes[rank]) && pes[rank] != gpsh_job()->my_pe)
            lacks |= GPSH_TEAM_WORLD_DIRECT;
        if (!gpsh_device_side_direct(pes[rank]))
            lacks |= GPSH_TEAM_WORLD_KERNELS;
    }
    return lacks;
}

int gpsh_team_propose(const struct gpsh_team_place *place, const int *pes, int n,
                      struct gpsh_team **out, struct gpsh_team_terms *mine)
{
    *mine = (struct gpsh_team_terms){.epoch = table.epochs[place->slot],
                                     .generation = table.generations[place->slot],
                                     .lacks = lacks_of(pes, n),
                                     .pe = gpsh_job()->my_pe};
    int status = gpsh_team_place_clear(place);
    return status ? status : team_new(place, pes, n, out);
}

void gpsh_team_terms_join(struct gpsh_team_terms *all, const struct gpsh_team_terms *one,
                          bool member)
{
    if (one->status && (!all->status || one->pe < all->pe)) {
        all->status = one->status;
        all->pe = one->pe;
    }
    if (!member)
        return;
    if (one->epoch > all->epoch)
        all->epoch = one->epoch;
    if (one->generation > all->generation)
        all->generation = one->generation;
    all->lacks |= one->lacks;
}

int gpsh_team_cannot(const char *what, const struct gpsh_team_terms *terms)
{
    return gpsh_fail(terms->status, "%s: PE %d cannot take part: %s", what, terms->pe,
                     gpushmem_strerror(terms->status));
}

int gpsh_team_enter(struct gpsh_team *team, const struct gpsh_team_terms *all)
{
    // the bits above are for channels
    enum { GENERATIONS = 1 << (GPUSHMEM_TEAM_CHANNEL_SHIFT - GPUSHMEM_TEAM_GENERATION_SHIFT) };
    const struct gpsh_team_terms first = {
        .epoch = all->epoch + 1,
        // 0 is that of the predefined teams
        .generation = all->generation + 1 < GENERATIONS ? all->generation + 1 : 1};
    team->direct = !(all->lacks & GPSH_TEAM_WORLD_DIRECT);
    team->kernels_direct = !(all->lacks & GPSH_TEAM_WORLD_KERNELS);
    return enter(team, &first, team->n);
}

void gpsh_team_leave(struct gpsh_team *team)
{
    int slot = team->place.slot;
    table.teams[slot] = NULL;
    table.epochs[slot] = team->epoch;
    if (gpsh_device_teams_set(slot, NULL)) // a GPU that died has been, or will be, reported
        gpsh_clear_error();
    if (!team->broken && !gpsh_team_gave_up(&team->place, team->handle))
        gpsh_team_place_give_back(&team->place);
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
        if (!gpsh_direct_base(pe) && pe != gpsh_job()->my_pe)
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
    case GPUSHMEM_TEAM_SAME_GPU: return peer->gpu_pe == me->gpu_pe;
    case GPUSHMEM_TEAM_GPU_LEADERS: return peer->gpu_pe == pe;
    default: return peer->node_pe == me->node_pe;
    }
}

// How many members a predefined team has at most, on any PE.
static int most_members(gpushmem_team_t team)
{
    int nodes = 0, node_pes = 0, gpus = 0;
    for (int pe = 0; pe < gpsh_job()->n_pes; pe++) {
        const struct gpsh_peer *peer = &gpsh_job()->peers[pe];
        nodes += peer->node_pe == 0;
        node_pes = peer->node_pe < node_pes ? node_pes : peer->node_pe + 1;
        gpus += peer->gpu_pe == pe;
    }
    const int share = gpsh_job()->n_pes - gpus + 1; // of one GPU, or fewer
    switch (team) {
    case GPUSHMEM_TEAM_WORLD: return gpsh_job()->n_pes;
    case GPUSHMEM_TEAM_SAME_RANK: return nodes;
    case GPUSHMEM_TEAM_SAME_GPU: return share < node_pes ? share : node_pes;
    case GPUSHMEM_TEAM_GPU_LEADERS: return gpus;
    default: return node_pes;
    }
}

static int make_predefined(gpushmem_team_t handle, uint32_t reach, int *pes)
{
    bool shared = reach & (gpsh_heap()->device ? GPSH_TEAM_NODE_KERNELS : GPSH_TEAM_NODE_DIRECT);
    int n = 0;
    bool one_node = true;
    if (!is_member(handle, gpsh_job()->my_pe, shared))
        return 0;
    for (int pe = 0; pe < gpsh_job()->n_pes; pe++)
        if (is_member(handle, pe, shared)) {
            pes[n++] = pe;
            one_node =
                one_node && gpsh_job()->peers[pe].node == gpsh_job()->peers[gpsh_job()->my_pe].node;
        }
    struct gpsh_team *team;
    const int room = most_members(handle);
    struct gpsh_team_place place = gpsh_team_place_of(handle, room);
    int status = team_new(&place, pes, n, &team);
    if (status)
        return status;
    uint64_t first = (uint64_t)gpsh_settings()->team_epoch;
    team->direct = n == 1 || reach & (one_node ? GPSH_TEAM_NODE_DIRECT : GPSH_TEAM_WORLD_DIRECT);
    team->kernels_direct =
        n == 1 ? gpsh_device_side_direct(gpsh_job()->my_pe) != NULL
               : (reach & (one_node ? GPSH_TEAM_NODE_KERNELS : GPSH_TEAM_WORLD_KERNELS)) != 0;
    status = enter(team, &(struct gpsh_team_terms){.epoch = first}, room);
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
        table.kernels_map = reach & GPSH_TEAM_KERNELS_MAP_NODE    ? MAP_NODE
                            : reach & GPSH_TEAM_KERNELS_MAP_ALONE ? MAP_ALONE
                                                                  : MAP_SOME;
    gpsh_team_places_init(table.checked);
    gpsh_device_teams_init();
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
