// SPDX-License-Identifier: BSD-3-Clause
// Teams that PEs make by an id that one of them has handed out. The PEs know how many they are, and
// not who: they meet in symmetric memory of the PE that made the id, over which the team is agreed
// on (comm/team_split.h).
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>

#include "api/compat.h"
#include "comm/team_split.h"
#include "core/error.h"
#include "gpushmem/compat/impl/nvshmem_calls.h"
#include "gpushmem/gpushmem.h"
#include "job/job.h"
#include "progress/waiter.h"

// Ids of a PE that are not yet a team.
enum { MEETINGS = 8, WORDS = GPSH_TEAM_ALLREDUCE_WORDS };

// One of the MEETINGS in each PE's block, which goes on with words of each member: two rounds of
// WORDS each, so that one is written while the last one is still read.
struct meeting {
    uint64_t id; // 0: free
    uint64_t come, left;
};

static struct {
    pthread_mutex_t lock;
    char *block; // symmetric
    int generation;
    uint32_t made;
} home = {.lock = PTHREAD_MUTEX_INITIALIZER};

static size_t meeting_bytes(void)
{
    return sizeof(struct meeting) + (size_t)gpsh_job()->n_pes * 2 * WORDS * sizeof(uint64_t);
}

int gpsh_nvshmem_meetings_begin(void)
{
    home.block = gpushmem_malloc_with_hints(MEETINGS * meeting_bytes(), GPUSHMEM_MALLOC_HOST);
    home.generation = gpsh_job()->generation;
    if (!home.block)
        return gpsh_last_error_code();
    for (int i = 0; i < MEETINGS; i++)
        *(struct meeting *)(void *)(home.block + (size_t)i * meeting_bytes()) =
            (struct meeting){.id = 0};
    return gpushmem_barrier_all();
}

static struct meeting *meeting_at(unsigned slot)
{
    return (struct meeting *)(void *)(home.block + slot * meeting_bytes());
}

static int check_ready(const char *function)
{
    int status = gpsh_check_initialised(function);
    if (!status && (!home.block || home.generation != gpsh_job()->generation))
        status = gpsh_fail(GPUSHMEM_ERR_NO_MEMORY,
                           "%s: there was no symmetric host memory for it at init", function);
    return status;
}

// An id: the PE that made it, its meeting, and a number that tells it from earlier ones.
int gpushmem_nvshmem_team_uniqueid(nvshmemx_team_uniqueid_t *id)
{
    static const char function[] = "nvshmemx_team_get_uniqueid";
    int status = id ? check_ready(function)
                    : gpsh_fail(GPUSHMEM_ERR_INVALID, "%s: no place for it (NULL)", function);
    if (status)
        return status;
    uint64_t made = 0;
    pthread_mutex_lock(&home.lock);
    for (unsigned slot = 0; slot < MEETINGS && !made; slot++)
        if (__atomic_load_n(&meeting_at(slot)->id, __ATOMIC_ACQUIRE) == 0) {
            made = (uint64_t)(gpsh_job()->my_pe + 1) << 32 |
                   (uint64_t)(++home.made & 0xffffff) << 8 | slot;
            __atomic_store_n(&meeting_at(slot)->id, made, __ATOMIC_RELEASE);
        }
    pthread_mutex_unlock(&home.lock);
    if (!made)
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY,
                         "%s: %d ids of this PE have not become teams yet; no more may wait at a "
                         "time",
                         function, MEETINGS);
    *id = made;
    return 0;
}

// ---- Members ----

struct members {
    struct meeting *at; // of PE `pe`
    int pe, n, my_rank;
    uint64_t round;
    uint64_t *all; // [n * WORDS]
};

// Until all have come to this round: the other PE's word is asked for again and again.
static bool have_come(void *arg)
{
    const struct members *m = arg;
    uint64_t come = 0;
    return gpushmem_uint64_atomic_fetch_status(&m->at->come, m->pe, &come) ||
           come >= m->round * (uint64_t)m->n;
}

// m->all: the words of each member.
static int gather(struct members *m, const void *words, size_t bytes)
{
    uint64_t *area =
        (uint64_t *)(void *)(m->at + 1) + (m->round & 1) * (size_t)gpsh_job()->n_pes * WORDS;
    int status = gpushmem_putmem(area + (size_t)m->my_rank * WORDS, words, bytes, m->pe);
    if (!status)
        status = gpushmem_quiet();
    if (!status)
        status = gpushmem_uint64_atomic_inc(&m->at->come, m->pe);
    m->round++;
    GPSH_WAIT(waiter, "nvshmemx_team_init: for the others with this id");
    while (!status && !have_come(m))
        status = gpsh_waiter_step(&waiter);
    return status ? status : gpushmem_getmem(m->all, area, (size_t)m->n * WORDS * 8, m->pe);
}

static int allreduce(void *self, void *words, size_t bytes, gpsh_team_join *join)
{
    struct members *m = self;
    int status = gather(m, words, bytes);
    for (int i = 0; i < m->n && !status; i++)
        if (i != m->my_rank)
            join(words, &m->all[(size_t)i * WORDS], true);
    return status;
}

static int refuse_list(const struct members *m)
{
    return gpsh_fail(GPUSHMEM_ERR_ASYMMETRY,
                     "nvshmemx_team_init: two of the %d PEs came with one pe_idx_in_team, or one "
                     "came twice; each index from 0 on belongs to one PE",
                     m->n);
}

// Who the members are, in the order of their numbers.
static int list(struct members *m, int *pes)
{
    const uint64_t mine = (uint64_t)gpsh_job()->my_pe;
    int status = gather(m, &mine, sizeof mine);
    for (int i = 0; i < m->n && !status; i++) {
        pes[i] = (int)m->all[(size_t)i * WORDS];
        for (int k = 0; k < i && !status; k++)
            status = pes[k] == pes[i] ? refuse_list(m) : 0;
    }
    return status ? status : pes[m->my_rank] == gpsh_job()->my_pe ? 0 : refuse_list(m);
}

// The last one gives the meeting back.
static void leave(const struct members *m)
{
    uint64_t left = 0, none = 0;
    if (gpushmem_uint64_atomic_fetch_inc_status(&m->at->left, m->pe, &left) ||
        left + 1 < (uint64_t)m->n)
        return;
    gpushmem_putmem(&m->at->come, &none, sizeof none, m->pe);
    gpushmem_putmem(&m->at->left, &none, sizeof none, m->pe);
    gpushmem_quiet();
    gpushmem_uint64_atomic_set(&m->at->id, 0, m->pe);
    gpushmem_quiet();
}

static int meet(struct members *m, const struct gpushmem_team_config *config, nvshmem_team_t *team)
{
    int *pes = calloc((size_t)m->n, sizeof *pes);
    m->all = calloc((size_t)m->n * WORDS, sizeof *m->all);
    int status = pes && m->all ? list(m, pes)
                               : gpsh_fail(GPUSHMEM_ERR_NO_MEMORY,
                                           "nvshmemx_team_init: no host memory for %d PEs", m->n);
    if (!status) {
        const struct gpsh_team_allreduce all = {allreduce, m};
        status = gpsh_team_make("nvshmemx_team_init", pes, m->n, &all, config, team);
    }
    leave(m);
    free(m->all);
    free(pes);
    return status;
}

static int check_id(uint64_t id, struct members *m)
{
    const unsigned slot = id & 0xff;
    const uint64_t pe = (id >> 32) - 1;
    uint64_t known = 0;
    bool sound = slot < MEETINGS && pe < (uint64_t)gpsh_job()->n_pes;
    if (sound) {
        m->pe = (int)pe;
        m->at = meeting_at(slot);
        int status = gpushmem_uint64_atomic_fetch_status(&m->at->id, m->pe, &known);
        if (status)
            return status;
    }
    return sound && known == id
               ? 0
               : gpsh_fail(GPUSHMEM_ERR_INVALID,
                           "nvshmemx_team_init: %#" PRIx64 " is no id that waits for its team; "
                           "config.uniqueid is what nvshmemx_team_get_uniqueid gave to one PE, and "
                           "makes one team",
                           id);
}

int gpushmem_nvshmem_team_init(nvshmem_team_t *team, const nvshmem_team_config_t *config,
                               long config_mask, int n, int my_rank)
{
    struct members m = {.n = n, .my_rank = my_rank};
    int status = check_ready("nvshmemx_team_init");
    if (status)
        return status;
    if (!team || !config || !(config_mask & NVSHMEM_TEAM_CONFIG_MASK_UNIQUEID) || n < 1 ||
        n > gpsh_job()->n_pes || my_rank < 0 || my_rank >= n)
        return gpsh_fail(GPUSHMEM_ERR_INVALID,
                         "nvshmemx_team_init: team %p, config %p, mask %ld, %d PEs, index %d; it "
                         "takes a place for the team, a config with its id and "
                         "NVSHMEM_TEAM_CONFIG_MASK_UNIQUEID in the mask, 1 to %d PEs, and this "
                         "one's index among them",
                         (void *)team, (const void *)config, config_mask, n, my_rank,
                         gpsh_job()->n_pes);
    *team = NVSHMEM_TEAM_INVALID;
    struct gpushmem_team_config ours = {.num_contexts = 0};
    if (config_mask & NVSHMEM_TEAM_CONFIG_MASK_NUM_CONTEXTS)
        ours.num_contexts = config->num_contexts;
    status = check_id(config->uniqueid, &m);
    return status ? status : meet(&m, &ours, team);
}
