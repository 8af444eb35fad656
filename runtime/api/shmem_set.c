// SPDX-License-Identifier: BSD-3-Clause
// Active sets of OpenSHMEM's deprecated collectives: every 2^log_stride-th PE from `start` on. Each
// set becomes a team at its first use. Its PEs then have nothing in common but the program's pSync,
// an array of symmetric memory that is SHMEM_SYNC_VALUE before and after: over it they agree.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "comm/team_exchange.h"
#include "comm/team_split.h"
#include "gpushmem/compat/shmem.h"
#include "job/job.h"

static const char function[] = "active set";

struct set {
    int start, log_stride, size;
};

// ---- The sets that this PE has been in ----

static struct {
    pthread_mutex_t lock;
    int generation; // of the library's init
    int n;
    struct set sets[GPUSHMEM_TEAM_SLOTS];
    gpushmem_team_t teams[GPUSHMEM_TEAM_SLOTS];
} known = {.lock = PTHREAD_MUTEX_INITIALIZER};

static gpushmem_team_t known_find(const struct set *set)
{
    gpushmem_team_t team = GPUSHMEM_TEAM_INVALID;
    pthread_mutex_lock(&known.lock);
    if (known.generation != gpsh_job()->generation)
        known.n = 0;
    known.generation = gpsh_job()->generation;
    for (int i = 0; i < known.n && team == GPUSHMEM_TEAM_INVALID; i++)
        if (memcmp(&known.sets[i], set, sizeof *set) == 0)
            team = known.teams[i];
    pthread_mutex_unlock(&known.lock);
    return team;
}

// There is a team for each, so that the table has room.
static void known_add(const struct set *set, gpushmem_team_t team)
{
    pthread_mutex_lock(&known.lock);
    known.sets[known.n] = *set;
    known.teams[known.n++] = team;
    pthread_mutex_unlock(&known.lock);
}

// ---- An allreduce over pSync ----

// Words of pSync. The first PE counts who has come, and the others are told when it has the result.
enum { COME, TOLD, JOINED };
_Static_assert(JOINED + GPSH_TEAM_ALLREDUCE_WORDS <= SHMEM_SYNC_SIZE, "pSync is large enough");
_Static_assert(sizeof(long) == sizeof(uint64_t), "a word of pSync holds any word");

struct members {
    const int *pes;
    int n;
    long *psync;
};

static void psync_reset(long *psync, int first, int end)
{
    for (int i = first; i < end; i++)
        *(volatile long *)&psync[i] = SHMEM_SYNC_VALUE;
}

static int members_fold(const struct members *m, void *words, size_t bytes, gpsh_team_join *join)
{
    uint64_t other[GPSH_TEAM_ALLREDUCE_WORDS];
    int status =
        gpushmem_long_wait_until(&m->psync[COME], GPUSHMEM_CMP_GE, SHMEM_SYNC_VALUE + m->n - 1);
    psync_reset(m->psync, COME, TOLD);
    for (int i = 1; i < m->n && status == 0; i++) {
        status = gpushmem_getmem(other, &m->psync[JOINED], bytes, m->pes[i]);
        if (status == 0)
            join(words, other, true);
    }
    return status;
}

static int members_tell(const struct members *m, const void *words, size_t bytes)
{
    int status = 0;
    for (int i = 1; i < m->n && status == 0; i++)
        status = gpushmem_putmem_signal(&m->psync[JOINED], words, bytes,
                                        (uint64_t *)(void *)&m->psync[TOLD], 1, GPUSHMEM_SIGNAL_SET,
                                        m->pes[i]);
    return status ? status : gpushmem_quiet();
}

static int member_allreduce(const struct members *m, void *words, size_t bytes)
{
    psync_reset(m->psync, TOLD, JOINED);
    memcpy(&m->psync[JOINED], words, bytes);
    // The first PE reads the words once this has arrived there.
    atomic_thread_fence(memory_order_release);
    int status = gpushmem_long_atomic_inc(&m->psync[COME], m->pes[0]);
    if (status == 0)
        status = gpushmem_long_wait_until(&m->psync[TOLD], GPUSHMEM_CMP_NE, SHMEM_SYNC_VALUE);
    memcpy(words, &m->psync[JOINED], bytes);
    psync_reset(m->psync, TOLD, JOINED + GPSH_TEAM_ALLREDUCE_WORDS);
    return status;
}

static int members_allreduce(void *self, void *words, size_t bytes, gpsh_team_join *join)
{
    const struct members *m = self;
    if (m->n == 1)
        return 0;
    if (gpsh_job()->my_pe != m->pes[0])
        return member_allreduce(m, words, bytes);
    int status = members_fold(m, words, bytes, join);
    return status ? status : members_tell(m, words, bytes);
}

// ---- Sets ----

static int set_check(const struct set *set, const long *psync)
{
    int64_t last = set->start;
    if (set->size >= 1 && set->log_stride >= 0 && set->log_stride < 31)
        last += (int64_t)(set->size - 1) << set->log_stride;
    else
        last = -1;
    if (set->start < 0 || last < 0 || last >= gpsh_job()->n_pes)
        return gpsh_fail(GPUSHMEM_ERR_INVALID,
                         "%s: PE_start %d, logPE_stride %d and PE_size %d do not name PEs of this "
                         "job, which are 0 to %d",
                         function, set->start, set->log_stride, set->size, gpsh_job()->n_pes - 1);
    int distance = gpsh_job()->my_pe - set->start, stride = 1 << set->log_stride;
    if (distance < 0 || distance % stride || distance / stride >= set->size)
        return gpsh_fail(GPUSHMEM_ERR_INVALID,
                         "%s: PE %d is not in PE_start %d, logPE_stride %d, PE_size %d; only PEs "
                         "of the set call",
                         function, gpsh_job()->my_pe, set->start, set->log_stride, set->size);
    if (set->size > 1 && !gpushmem_addr_accessible(psync, gpsh_job()->my_pe))
        return gpsh_fail(GPUSHMEM_ERR_ADDRESS,
                         "%s: pSync is at %p, which is not symmetric memory: it is to be a static "
                         "or global array, or from shmem_malloc",
                         function, (const void *)psync);
    // No other PE writes to this word of this PE before this PE has asked, or ever if it is the
    // first one.
    long word = set->size > 1 ? *(volatile long *)&psync[TOLD] : SHMEM_SYNC_VALUE;
    if (word != SHMEM_SYNC_VALUE)
        return gpsh_fail(GPUSHMEM_ERR_INVALID,
                         "%s: pSync[%d] is %ld; before the first call with it all its elements, on "
                         "each PE of the set, are to be SHMEM_SYNC_VALUE (%ld)",
                         function, TOLD, word, SHMEM_SYNC_VALUE);
    return 0;
}

static int set_make(const struct set *set, long *psync, gpushmem_team_t *team)
{
    int *pes = calloc((size_t)set->size, sizeof *pes);
    if (!pes)
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "%s: no host memory for %d PEs", function,
                         set->size);
    for (int i = 0; i < set->size; i++)
        pes[i] = set->start + (i << set->log_stride);
    struct members members = {pes, set->size, psync};
    const struct gpsh_team_allreduce allreduce = {members_allreduce, &members};
    const struct gpushmem_team_config config = {0};
    int status = gpsh_team_make(function, pes, set->size, &allreduce, &config, team);
    free(pes);
    if (status == 0)
        known_add(set, *team);
    return status;
}

gpushmem_team_t gpushmem_shmem_active_set(int start, int log_stride, int size, long *psync)
{
    const struct set set = {start, log_stride, size};
    if (start == 0 && size == gpsh_job()->n_pes && (log_stride == 0 || size == 1) && size > 0)
        return GPUSHMEM_TEAM_WORLD;
    gpushmem_team_t team = known_find(&set);
    if (team != GPUSHMEM_TEAM_INVALID)
        return team;
    int status = gpsh_check_initialised("barrier or collective of an active set");
    if (status == 0)
        status = set_check(&set, psync);
    if (status == 0)
        status = set_make(&set, psync, &team);
    if (status < 0)
        gpushmem_shmem_void_failed();
    return team;
}

// ---- Broadcast ----

// A PE's dest belongs to the call from its own beginning on, as does the root's source.
int gpushmem_shmem_broadcast(gpushmem_team_t handle, void *dest, const void *source, size_t bytes,
                             int root)
{
    struct gpsh_team *team = gpsh_team_of(handle);
    if (team && (root < 0 || root >= team->n))
        return gpsh_fail(GPUSHMEM_ERR_INVALID,
                         "broadcast: the active set has no PE_root %d; it counts from 0 to %d",
                         root, team->n - 1);
    // The root's own copy of a small one goes nowhere: dest is not used by others then.
    if (team && bytes <= gpsh_team_broadcast_most(team))
        return gpushmem_broadcastmem(
            handle, team->my_rank == root ? (void *)(uintptr_t)source : dest, source, bytes, root);
    int status = gpushmem_team_sync(handle), got = 0;
    if (status < 0)
        return status;
    if (team->my_rank != root)
        got = gpushmem_getmem(dest, source, bytes, team->pes[root]);
    status = gpushmem_team_sync(handle);
    return got < 0 ? got : status;
}
