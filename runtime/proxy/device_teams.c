// SPDX-License-Identifier: BSD-3-Clause
#include "proxy/device_teams.h"

#include <limits.h>
#include <pthread.h>
#include <string.h>

#include "core/config.h"
#include "job/job.h"
#include "memory/heap.h"
#include "memory/team_scratch.h"

static struct {
    pthread_mutex_t lock;
    struct gpsh_device_team teams[GPUSHMEM_TEAM_SLOTS]; // n == 0: the slot is free
    // of teams that had the slot before: kernels have used no larger one
    uint64_t epochs[GPUSHMEM_TEAM_SLOTS];
    const struct gpsh_device_memory *memory; // NULL: not made
    // [teams] struct gpushmem_dev_team, [teams][GPUSHMEM_TEAM_EPOCHS] epochs, [teams] struct
    // gpushmem_dev_nodes, [teams][n_pes] PEs, [teams][n_pes + 1] starts of nodes
    char *device;
    bool by_nodes;   // teams may have nodes
    char *kept;      // [stream teams][GPUSHMEM_COLL_KEPT], or NULL: kernels map all PEs
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

static int32_t *pes_of(int slot)
{
    return (int32_t *)(void *)nodes_of((int)gpsh_settings()->teams) +
           (size_t)slot * (size_t)gpsh_job()->n_pes;
}

static int32_t *starts_of(int slot)
{
    return pes_of((int)gpsh_settings()->teams) + (size_t)slot * (size_t)(gpsh_job()->n_pes + 1);
}

static size_t table_bytes(void)
{
    return (size_t)gpsh_settings()->teams *
           (sizeof(struct gpushmem_dev_team) + WORDS_BYTES + sizeof(struct gpushmem_dev_nodes) +
            (size_t)(2 * gpsh_job()->n_pes + 1) * sizeof(int32_t));
}

static size_t kept_bytes(void)
{
    return (size_t)gpsh_stream_teams(gpsh_settings()) * GPUSHMEM_COLL_KEPT;
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
    const struct gpsh_settings *settings = gpsh_settings();
    char *scratch = gpsh_heap()->base + gpsh_heap()->user_bytes;
    bool stream = (uint64_t)slot < gpsh_stream_teams(settings);
    struct gpushmem_dev_team entry = {.team = GPUSHMEM_TEAM_INVALID};
    if (!team->n)
        return entry;
    entry = (struct gpushmem_dev_team){
        .team = team->team,
        .my_rank = team->my_rank,
        .n = team->n,
        .flags = (team->direct ? GPUSHMEM_DEV_TEAM_DIRECT : 0u) |
                 (stream ? GPUSHMEM_DEV_TEAM_STREAM : 0u) |
                 (team->lost ? GPUSHMEM_DEV_TEAM_LOST : 0u) |
                 (team->checked ? GPUSHMEM_DEV_TEAM_CHECKED : 0u),
        .start = team->pes[0],
        .stride = stride_of(team),
        .pes = pes_of(slot),
        .scratch = scratch + gpsh_kernel_scratch(settings, slot),
        .stream_scratch = stream ? scratch + gpsh_stream_scratch(slot) : NULL,
        .epochs = epochs_of(slot),
        .nodes = team->nodes.n ? nodes_of(slot) : NULL,
    };
    return entry;
}

static bool is_number(int word)
{
    return word != GPUSHMEM_TEAM_GRID_FAILED && word != GPUSHMEM_TEAM_GRID_REFUSED;
}

static int write_nodes(int slot)
{
    const struct gpsh_device_nodes *team = &table.teams[slot].nodes;
    if (!team->n)
        return 0;
    const struct gpushmem_dev_nodes nodes = {
        .n = team->n,
        .mine = team->mine,
        .starts = starts_of(slot),
        .kept = (uint64_t)slot < gpsh_stream_teams(gpsh_settings())
                    ? table.kept + (size_t)slot * GPUSHMEM_COLL_KEPT
                    : NULL,
    };
    int status = table.memory->device_write(starts_of(slot), team->starts,
                                            (size_t)(team->n + 1) * sizeof(int32_t));
    return status ? status : table.memory->device_write(nodes_of(slot), &nodes, sizeof nodes);
}

// With the lock held. The entry comes last, for kernels that look at it while this is under way.
static int write_slot(int slot)
{
    const struct gpsh_device_team *team = &table.teams[slot];
    const struct gpushmem_dev_team entry = entry_for(slot);
    int status = 0;
    if (team->n) {
        for (int i = 0; i < GPUSHMEM_TEAM_EPOCHS; i++)
            table.words[i] = is_number(i) ? team->first_epoch : 0;
        status = table.memory->device_write(epochs_of(slot), table.words, WORDS_BYTES);
        if (!status)
            status = table.memory->device_write(pes_of(slot), team->pes,
                                                (size_t)team->n * sizeof(int32_t));
        if (!status)
            status = write_nodes(slot);
    }
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

// With the lock held.
static int read_epoch(int slot, uint64_t *epoch)
{
    const uint64_t *words = epochs_of(slot);
    *epoch = table.epochs[slot];
    if (table.memory->device_read) {
        int status = table.memory->device_read(table.words, words, WORDS_BYTES);
        if (status)
            return status;
        words = table.words;
    }
    for (int i = 0; i < GPUSHMEM_TEAM_EPOCHS; i++) {
        if (!is_number(i))
            continue;
        // without the bit that says that an operation is under way (device/team.cuh)
        uint64_t word = __atomic_load_n(&words[i], __ATOMIC_RELAXED) & ~((uint64_t)1 << 63);
        if (word > *epoch)
            *epoch = word;
    }
    return 0;
}

int gpsh_device_teams_set(int slot, const struct gpsh_device_team *team)
{
    int status = 0;
    pthread_mutex_lock(&table.lock);
    if (!team && table.memory)
        status = read_epoch(slot, &table.epochs[slot]);
    else if (team && team->first_epoch > table.epochs[slot])
        table.epochs[slot] = team->first_epoch;
    table.teams[slot] = team ? *team : (struct gpsh_device_team){0};
    int written = table.memory ? write_slot(slot) : 0;
    pthread_mutex_unlock(&table.lock);
    return status ? status : written;
}

int gpsh_device_teams_epoch(int slot, uint64_t *epoch)
{
    int status = 0;
    pthread_mutex_lock(&table.lock);
    *epoch = table.epochs[slot];
    if (table.memory)
        status = read_epoch(slot, epoch);
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
    poison_channel(entry->scratch, word);
    if (!entry->stream_scratch)
        return;
    poison_channel(entry->stream_scratch, word);
    for (int k = 1; k < GPUSHMEM_TEAM_CHANNELS; k++)
        poison_channel(entry->stream_scratch + gpushmem_coll_channel_at(gpsh_job()->n_pes, k),
                       word);
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

void gpsh_device_teams_init(bool by_nodes)
{
    table.by_nodes = by_nodes;
    memset(table.teams, 0, sizeof table.teams);
    memset(table.epochs, 0, sizeof table.epochs);
}

int gpsh_device_teams_make(const struct gpsh_device_memory *memory)
{
    int status = 0;
    pthread_mutex_lock(&table.lock);
    table.memory = memory;
    table.device = memory->device_alloc(table_bytes());
    table.words = memory->host_alloc(WORDS_BYTES);
    bool keeps = table.by_nodes && !table.teams[GPUSHMEM_TEAM_WORLD].direct;
    table.kept = keeps ? memory->device_alloc(kept_bytes()) : NULL;
    if (!table.device || !table.words || (keeps && !table.kept))
        status = gpsh_fail(
            GPUSHMEM_ERR_NO_MEMORY, "no memory for the kernels' table of %lld teams, %zu bytes",
            (long long)gpsh_settings()->teams, table_bytes() + (keeps ? kept_bytes() : 0));
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
    if (table.kept)
        table.memory->device_free(table.kept, kept_bytes());
    table.device = NULL;
    table.kept = NULL;
    table.words = NULL;
    table.memory = NULL;
    pthread_mutex_unlock(&table.lock);
}

const struct gpushmem_dev_team *gpsh_device_teams_table(void)
{
    return (const struct gpushmem_dev_team *)(const void *)table.device;
}

// ---- Nodes ----

static bool share_node(const int *pes, int a, int b, enum gpsh_kernels_map map)
{
    return map == GPSH_KERNELS_MAP_NODE &&
           gpsh_job()->peers[pes[a]].node == gpsh_job()->peers[pes[b]].node;
}

// Whether ranks of one node come before and after those of another.
static bool is_torn(const struct gpsh_device_nodes *nodes, const int *pes,
                    enum gpsh_kernels_map map)
{
    for (int a = 0; a < nodes->n && map == GPSH_KERNELS_MAP_NODE; a++)
        for (int b = a + 2; b < nodes->n; b++)
            if (share_node(pes, nodes->starts[a], nodes->starts[b], map))
                return true;
    return false;
}

static int size_of(const struct gpsh_device_nodes *nodes, int node)
{
    return nodes->starts[node + 1] - nodes->starts[node];
}

// The first member of the smallest node is the holder of the most shares.
static int most_held(const struct gpsh_device_nodes *nodes)
{
    int least = INT_MAX, held = 0;
    for (int node = 0; node < nodes->n; node++)
        least = size_of(nodes, node) < least ? size_of(nodes, node) : least;
    for (int node = 0; node < nodes->n; node++)
        held += (size_of(nodes, node) + least - 1) / least;
    return held;
}

void gpsh_device_nodes_find(struct gpsh_device_nodes *nodes, const int *pes, int n, int my_rank,
                            enum gpsh_kernels_map map)
{
    nodes->n = 0;
    if (map == GPSH_KERNELS_MAP_SOME)
        return;
    for (int rank = 0; rank < n; rank++) {
        if (!rank || !share_node(pes, rank - 1, rank, map))
            nodes->starts[nodes->n++] = rank;
        if (rank == my_rank)
            nodes->mine = nodes->n - 1;
    }
    nodes->starts[nodes->n] = n;
    if (nodes->n == 1 || is_torn(nodes, pes, map))
        nodes->n = 0;
    nodes->held = most_held(nodes);
}
