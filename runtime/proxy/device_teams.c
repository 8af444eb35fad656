// SPDX-License-Identifier: BSD-3-Clause
#include "proxy/device_teams.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/config.h"
#include "job/job.h"
#include "memory/heap.h"
#include "memory/team_scratch.h"

// Device memory for a slot's longer lists. A shorter one stays: to free memory would wait for
// kernels.
struct list {
    struct list *shorter;
    char *memory;
    size_t bytes;
};

static struct {
    pthread_mutex_t lock;
    struct gpsh_device_team teams[GPUSHMEM_TEAM_SLOTS]; // n == 0: the slot is free
    const struct gpsh_device_memory *memory;            // NULL: not made
    // [teams] struct gpushmem_dev_team, [teams][GPUSHMEM_TEAM_EPOCHS] epochs, [teams] struct
    // gpushmem_dev_nodes, [teams][list_room()] lists: of PEs, then where nodes start
    char *device;
    struct list *lists[GPUSHMEM_TEAM_SLOTS]; // the longest; NULL: the table has room for all so far
    // [GPUSHMEM_COLL_KEPT] of slots that have had a team with nodes and scratch for streams: to
    // free memory would wait for kernels
    char *kept[GPUSHMEM_TEAM_SLOTS];
    uint64_t *words; // host memory for copies, [GPUSHMEM_TEAM_EPOCHS]
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

enum { WORDS_BYTES = GPUSHMEM_TEAM_EPOCHS * sizeof(uint64_t) };

static struct gpushmem_dev_team *entry_of(int slot)
{
    return (struct gpushmem_dev_team *)(void *)table.device + slot;
}

static uint64_t *epochs_of(int slot)
{
    return (uint64_t *)(void *)entry_of((int)gpsh_settings()->teams) +
           (size_t)slot * GPUSHMEM_TEAM_EPOCHS;
}

static struct gpushmem_dev_nodes *nodes_of(int slot)
{
    return (struct gpushmem_dev_nodes *)(void *)epochs_of((int)gpsh_settings()->teams) + slot;
}

// Numbers that a slot has room for in the table: small, whatever the number of PEs.
static size_t list_room(void)
{
    enum { MOST = 64 };
    return 2 * (size_t)(gpsh_job()->n_pes < MOST ? gpsh_job()->n_pes : MOST) + 1;
}

static size_t list_length(const struct gpsh_device_team *team)
{
    return (size_t)team->n + (team->nodes.n ? (size_t)team->nodes.n + 1 : 0);
}

// NULL: there was no memory for it.
static int32_t *pes_of(int slot)
{
    if (list_length(&table.teams[slot]) > list_room())
        return table.lists[slot] ? (int32_t *)(void *)table.lists[slot]->memory : NULL;
    return (int32_t *)(void *)nodes_of((int)gpsh_settings()->teams) + (size_t)slot * list_room();
}

static int32_t *starts_of(int slot)
{
    return pes_of(slot) + table.teams[slot].n;
}

static size_t table_bytes(void)
{
    return (size_t)gpsh_settings()->teams *
           (sizeof(struct gpushmem_dev_team) + WORDS_BYTES + sizeof(struct gpushmem_dev_nodes) +
            list_room() * sizeof(int32_t));
}

// Lists double, so that all of a slot take twice the longest.
static int make_list(int slot)
{
    size_t length = list_length(&table.teams[slot]), bytes = list_room() * sizeof(int32_t);
    if (length <= list_room() ||
        (table.lists[slot] && length * sizeof(int32_t) <= table.lists[slot]->bytes))
        return 0;
    while (bytes < length * sizeof(int32_t))
        bytes *= 2;
    struct list *list = malloc(sizeof *list);
    char *memory = list ? table.memory->device_alloc(bytes) : NULL;
    if (!memory) {
        free(list);
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY,
                         "no memory for the kernels' list of a team's %d members, %zu bytes",
                         table.teams[slot].n, bytes);
    }
    *list = (struct list){table.lists[slot], memory, bytes};
    table.lists[slot] = list;
    return 0;
}

static void free_lists(int slot)
{
    while (table.lists[slot]) {
        struct list *list = table.lists[slot];
        table.lists[slot] = list->shorter;
        table.memory->device_free(list->memory, list->bytes);
        free(list);
    }
}

// 0: the PEs are not equally far apart.
static int32_t stride_of(const struct gpsh_device_team *team)
{
    if (team->n == 1)
        return 1;
    int32_t stride = team->pes[1] - team->pes[0];
    for (int r = 2; r < team->n; r++)
        if (team->pes[r] - team->pes[r - 1] != stride)
            return 0;
    return stride;
}

static struct gpushmem_dev_team entry_for(int slot)
{
    const struct gpsh_device_team *team = &table.teams[slot];
    char *reserved = gpsh_heap()->base + gpsh_heap()->user_bytes;
    const struct gpsh_scratch *scratch = &team->scratch;
    struct gpushmem_dev_team entry = {.team = GPUSHMEM_TEAM_INVALID};
    if (!team->n)
        return entry;
    entry = (struct gpushmem_dev_team){
        .team = team->team,
        .my_rank = team->my_rank,
        .n = team->n,
        .flags = (team->direct ? GPUSHMEM_DEV_TEAM_DIRECT : 0u) |
                 (scratch->streams ? GPUSHMEM_DEV_TEAM_STREAM : 0u) |
                 (team->lost ? GPUSHMEM_DEV_TEAM_LOST : 0u) |
                 (team->checked ? GPUSHMEM_DEV_TEAM_CHECKED : 0u) |
                 (uint32_t)scratch->room << GPUSHMEM_DEV_TEAM_ROOM_SHIFT,
        .start = team->pes[0],
        .stride = stride_of(team),
        .pes = pes_of(slot),
        .scratch = scratch->kernels ? reserved + scratch->kernels : NULL,
        .stream_scratch = scratch->streams ? reserved + scratch->streams : NULL,
        .epochs = epochs_of(slot),
        .nodes = team->nodes.n ? nodes_of(slot) : NULL,
    };
    return entry;
}

static bool is_number(int word)
{
    return word < GPUSHMEM_TEAM_GRID_FAILED || word > GPUSHMEM_TEAM_GRID_LEAVE;
}

static int write_nodes(int slot)
{
    const struct gpsh_device_nodes *team = &table.teams[slot].nodes;
    if (!team->n)
        return 0;
    if (table.teams[slot].scratch.streams && !table.kept[slot])
        table.kept[slot] = table.memory->device_alloc(GPUSHMEM_COLL_KEPT);
    if (table.teams[slot].scratch.streams && !table.kept[slot])
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory for a team's reduce in place, %d bytes",
                         GPUSHMEM_COLL_KEPT);
    const struct gpushmem_dev_nodes nodes = {
        .n = team->n,
        .mine = team->mine,
        .starts = starts_of(slot),
        .kept = table.kept[slot],
    };
    int status = table.memory->device_write(starts_of(slot), team->starts,
                                            (size_t)(team->n + 1) * sizeof(int32_t));
    return status ? status : table.memory->device_write(nodes_of(slot), &nodes, sizeof nodes);
}

// With the lock held. The entry comes last, for kernels that look at it while this is under way.
static int write_slot(int slot)
{
    const struct gpsh_device_team *team = &table.teams[slot];
    int status = 0;
    if (team->n) {
        for (int i = 0; i < GPUSHMEM_TEAM_EPOCHS; i++)
            table.words[i] = is_number(i) ? team->first_epoch : 0;
        status = make_list(slot);
        if (!status)
            status = table.memory->device_write(epochs_of(slot), table.words, WORDS_BYTES);
        if (!status)
            status = table.memory->device_write(pes_of(slot), team->pes,
                                                (size_t)team->n * sizeof(int32_t));
        if (!status)
            status = write_nodes(slot);
    }
    const struct gpushmem_dev_team entry = entry_for(slot);
    return status ? status : table.memory->device_write(entry_of(slot), &entry, sizeof entry);
}

static int write_free_slots(void)
{
    struct gpushmem_dev_team entries[GPUSHMEM_TEAM_SLOTS];
    for (int slot = 0; slot < GPUSHMEM_TEAM_SLOTS; slot++)
        entries[slot] = (struct gpushmem_dev_team){.team = GPUSHMEM_TEAM_INVALID};
    return table.memory->device_write(entry_of(0), entries,
                                      (size_t)gpsh_settings()->teams * sizeof *entries);
}

int gpsh_device_teams_set(int slot, const struct gpsh_device_team *team)
{
    pthread_mutex_lock(&table.lock);
    table.teams[slot] = team ? *team : (struct gpsh_device_team){0};
    int status = table.memory ? write_slot(slot) : 0;
    pthread_mutex_unlock(&table.lock);
    return status;
}

bool gpsh_device_teams_view(int32_t team, struct gpsh_device_team_view *view)
{
    int slot = team & GPUSHMEM_TEAM_SLOT_MASK;
    bool known = team >= 0 && slot < gpsh_settings()->teams;
    pthread_mutex_lock(&table.lock);
    known = known && table.teams[slot].n && table.teams[slot].team == team && table.memory;
    if (known)
        *view = (struct gpsh_device_team_view){entry_for(slot), table.teams[slot].pes,
                                               table.teams[slot].nodes};
    pthread_mutex_unlock(&table.lock);
    return known;
}

bool gpsh_device_teams_at(int slot, struct gpushmem_dev_team *entry)
{
    bool known = slot >= 0 && slot < gpsh_settings()->teams;
    pthread_mutex_lock(&table.lock);
    known = known && table.teams[slot].n && table.memory;
    if (known)
        *entry = entry_for(slot);
    pthread_mutex_unlock(&table.lock);
    return known;
}

int gpsh_device_teams_pe(int slot, int rank)
{
    bool known = slot >= 0 && slot < gpsh_settings()->teams && rank >= 0;
    pthread_mutex_lock(&table.lock);
    int pe = known && rank < table.teams[slot].n ? table.teams[slot].pes[rank] : -1;
    pthread_mutex_unlock(&table.lock);
    return pe;
}

// Kernels may look at the word right now.
static void poison_channel(char *scratch, uint64_t word)
{
    if (table.memory->device_read)
        table.memory->device_write(scratch, &word, sizeof word);
    else
        __atomic_store_n((uint64_t *)(void *)scratch, word, __ATOMIC_RELEASE);
}

// For kernels that have seen the entry as it was, which graphs keep: they would wait for the lost
// PE once the program has taken the loss, and other kernels may wait again.
static void poison(const struct gpushmem_dev_team *entry)
{
    const uint64_t word = gpushmem_team_poison(entry->team, GPUSHMEM_ERR_PE_FAILED);
    const int room = (int)(entry->flags >> GPUSHMEM_DEV_TEAM_ROOM_SHIFT);
    const bool checked = entry->flags & GPUSHMEM_DEV_TEAM_CHECKED;
    if (entry->scratch)
        poison_channel(entry->scratch, word);
    if (!entry->stream_scratch)
        return;
    poison_channel(entry->stream_scratch, word);
    for (int k = 1; k < GPUSHMEM_TEAM_CHANNELS; k++)
        poison_channel(entry->stream_scratch + gpushmem_coll_channel_at(room, k, checked), word);
}

// That the table could not be written is no news: the GPU is gone then.
void gpsh_device_teams_lose(int pe)
{
    pthread_mutex_lock(&table.lock);
    for (int slot = 0; slot < (int)gpsh_settings()->teams; slot++) {
        struct gpsh_device_team *team = &table.teams[slot];
        bool member = false;
        for (int r = 0; r < team->n; r++)
            member = member || team->pes[r] == pe;
        if (!member)
            continue;
        team->lost = true;
        const struct gpushmem_dev_team entry = entry_for(slot);
        if (!table.memory)
            continue;
        table.memory->device_write(entry_of(slot), &entry, sizeof entry);
        poison(&entry);
    }
    pthread_mutex_unlock(&table.lock);
}

void gpsh_device_teams_init(void)
{
    memset(table.teams, 0, sizeof table.teams);
}

int gpsh_device_teams_make(const struct gpsh_device_memory *memory)
{
    int status = 0;
    pthread_mutex_lock(&table.lock);
    table.memory = memory;
    table.device = memory->device_alloc(table_bytes());
    table.words = memory->host_alloc(WORDS_BYTES);
    if (!table.device || !table.words)
        status = gpsh_fail(GPUSHMEM_ERR_NO_MEMORY,
                           "no memory for the kernels' table of %lld teams, %zu bytes",
                           (long long)gpsh_settings()->teams, table_bytes());
    if (!status)
        status = write_free_slots();
    for (int slot = 0; slot < (int)gpsh_settings()->teams && !status; slot++)
        if (table.teams[slot].n)
            status = write_slot(slot);
    pthread_mutex_unlock(&table.lock);
    return status;
}

void gpsh_device_teams_unmake(void)
{
    pthread_mutex_lock(&table.lock);
    if (table.device)
        table.memory->device_free(table.device, table_bytes());
    if (table.words)
        table.memory->host_free(table.words, WORDS_BYTES);
    for (int slot = 0; slot < GPUSHMEM_TEAM_SLOTS; slot++) {
        if (table.kept[slot])
            table.memory->device_free(table.kept[slot], GPUSHMEM_COLL_KEPT);
        table.kept[slot] = NULL;
        free_lists(slot);
    }
    table.device = NULL;
    table.words = NULL;
    table.memory = NULL;
    pthread_mutex_unlock(&table.lock);
}

const struct gpushmem_dev_team *gpsh_device_teams_table(void)
{
    return (const struct gpushmem_dev_team *)(const void *)table.device;
}
