// SPDX-License-Identifier: BSD-3-Clause
// PEs are killed one after another, among collectives of a team and while the others make a team of
// those that are left. All that live make the same teams, whose collectives are right. Run under
// GPUSHMEM_ON_PE_FAILURE=notify.
//   team_survivors SEED    who dies, and when, is drawn from SEED
//   team_survivors 0       a PE comes after the others' time is up; wrong arguments of one PE
// Prints one line for each PE that lives on.
#define _GNU_SOURCE // usleep
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "../pes/check.h"

enum { MOST_PES = 16, NELEMS = 2000, PATIENCE = 2000000 };
static int me, n_pes, n_victims, victims[MOST_PES];
static long *dest, *source;
static uint64_t seed;

static unsigned draw(unsigned what, unsigned below)
{
    uint64_t z = seed * 0x9e3779b97f4a7c15u + what * 0xd1342543de82ef95u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (unsigned)((z ^ (z >> 31)) >> 33) % below;
}

static void *kill_later(void *us)
{
    usleep((useconds_t)(uintptr_t)us);
    kill(getpid(), SIGKILL);
    return NULL;
}

static void begin_dying(unsigned us)
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, kill_later, (void *)(uintptr_t)us) == 0);
    pthread_detach(thread);
}

// The next to die, once `lost` are dead, is this PE.
static bool is_next(int lost)
{
    return lost < n_victims && victims[lost] == me;
}

static void draw_victims(void)
{
    int order[MOST_PES];
    for (int pe = 0; pe < n_pes; ++pe)
        order[pe] = pe;
    n_victims = 1 + (int)draw(1, (unsigned)n_pes - 1);
    for (int i = 0; i < n_victims; ++i) {
        int k = i + (int)draw(10 + (unsigned)i, (unsigned)(n_pes - i));
        victims[i] = order[k];
        order[k] = order[i];
    }
}

// Each member brings its PE's number plus i: the sum tells who took part.
static int reduce(gpushmem_team_t team, unsigned i)
{
    size_t nelems = i % 3 ? 3 : NELEMS;
    long sum = 0;
    for (int rank = 0; rank < gpushmem_team_n_pes(team); ++rank)
        sum += 1000 * gpushmem_team_translate_pe(team, rank, GPUSHMEM_TEAM_WORLD) + (long)i;
    for (size_t k = 0; k < nelems; ++k)
        source[k] = 1000 * me + (long)i;
    int status = gpushmem_long_sum_reduce(team, dest, source, nelems);
    CHECK(status != 0 || (dest[0] == sum && dest[nelems - 1] == sum));
    return status;
}

static int exchange(gpushmem_team_t team, unsigned i)
{
    int n = gpushmem_team_n_pes(team);
    for (int rank = 0; rank < n; ++rank)
        source[rank] = 100 * me + rank + (long)i;
    int status = gpushmem_long_alltoall(team, dest, source, 1);
    for (int rank = 0; status == 0 && rank < n; ++rank)
        CHECK(dest[rank] == 100 * gpushmem_team_translate_pe(team, rank, GPUSHMEM_TEAM_WORLD) +
                                gpushmem_team_my_pe(team) + (long)i);
    return status;
}

static int operation(gpushmem_team_t team, unsigned i)
{
    switch (i % 3) {
    case 0: return reduce(team, i / 3);
    case 1: return exchange(team, i / 3);
    default: return gpushmem_team_sync(team);
    }
}

// Ranks keep their order; whoever is in none of the teams is dead.
static void check_members(gpushmem_team_t team, gpushmem_team_t parent)
{
    int n = gpushmem_team_n_pes(team), before = -1, failed[MOST_PES];
    CHECK(n >= n_pes - n_victims && n <= gpushmem_team_n_pes(parent));
    CHECK(gpushmem_failed_pes(failed, MOST_PES) >= n_pes - n);
    for (int rank = 0; rank < n; ++rank) {
        int there = gpushmem_team_translate_pe(team, rank, parent);
        CHECK(there > before);
        before = there;
    }
}

// Until a member is found lost. False: nobody is left that will die.
static bool work(gpushmem_team_t team)
{
    int status = 0, n = gpushmem_team_n_pes(team);
    for (unsigned i = 0; status == 0 && i < (n > n_pes - n_victims ? PATIENCE : 30); ++i)
        status = operation(team, i);
    CHECK_THAT(status == 0 || status == GPUSHMEM_ERR_PE_FAILED, "%d: %s", status,
               gpushmem_last_error());
    CHECK(status == 0 || operation(team, 1) == GPUSHMEM_ERR_PE_FAILED);
    return status != 0;
}

// All PEs have left the call before: nobody that dies now is missed there.
static void await_all(void)
{
    volatile uint64_t *left = (void *)source;
    for (int i = 0; i < n_pes; ++i)
        gpushmem_uint64_p((uint64_t *)source + me, 1, (me + i) % n_pes);
    (void)gpushmem_quiet(); // one that has heard of all may be dead already
    for (int pe = 0; pe < n_pes; ++pe)
        while (!left[pe])
            usleep(100);
}

static gpushmem_team_t first_parent(void)
{
    gpushmem_team_t reversed = GPUSHMEM_TEAM_WORLD;
    if (draw(2, 2) == 0) {
        CHECK_OK(gpushmem_team_split_strided(GPUSHMEM_TEAM_WORLD, n_pes - 1, -1, n_pes, NULL, 0,
                                             &reversed));
        await_all();
    }
    return reversed;
}

// From the last team, or from the first one over and over.
static void play(void)
{
    gpushmem_team_t first = first_parent(), parent = first, team;
    bool chain = draw(3, 2) == 0, lost = true;
    for (int dead = 0; lost; ++dead) {
        if (is_next(dead) && draw(100 + (unsigned)dead, 2))
            begin_dying(draw(200 + (unsigned)dead, 300)); // in the call, or soon after it
        CHECK_OK(gpushmem_team_survivors(parent, NULL, 0, &team));
        check_members(team, parent);
        dead = n_pes - gpushmem_team_n_pes(team);
        if (is_next(dead))
            begin_dying(draw(300 + (unsigned)dead, 8000));
        lost = work(team);
        if (chain && parent != first)
            CHECK_OK(gpushmem_team_destroy(parent));
        if (!chain && lost)
            CHECK_OK(gpushmem_team_destroy(team));
        parent = chain ? team : first;
    }
    CHECK(gpushmem_team_n_pes(team) == n_pes - n_victims);
    CHECK_OK(gpushmem_team_destroy(team));
}

// Who has not come is named; the call is repeated, and the late one joins it.
static void come_late(gpushmem_team_t *team)
{
    int status, timeouts = 0;
    uint64_t *told = (uint64_t *)dest;
    if (me == 0)
        while (*(volatile uint64_t *)told < (uint64_t)n_pes - 1)
            usleep(1000);
    while ((status = gpushmem_team_survivors(GPUSHMEM_TEAM_WORLD, NULL, 0, team)) ==
           GPUSHMEM_ERR_TIMEOUT) {
        CHECK(me == 0 || timeouts || strstr(gpushmem_last_error(), "PE 0, rank 0"));
        if (timeouts++ == 0 && me != 0)
            CHECK_OK(gpushmem_uint64_atomic_inc(told, 0));
    }
    CHECK_THAT(status == 0, "%s", gpushmem_last_error());
    CHECK(me == 0 || timeouts > 0);
}

// A PE that comes late because the machine stood still is waited for once more.
static int refused_survivors(const struct gpushmem_team_config *config, long mask,
                             gpushmem_team_t *team)
{
    int status = GPUSHMEM_ERR_TIMEOUT;
    while (status == GPUSHMEM_ERR_TIMEOUT)
        status = gpushmem_team_survivors(GPUSHMEM_TEAM_WORLD, config, mask, team);
    return status;
}

// All are told of what one PE got wrong.
static void err(void)
{
    gpushmem_team_t team = 0;
    const struct gpushmem_team_config config = {.num_contexts = me == 1 ? -1 : 1};
    CHECK(refused_survivors(&config, GPUSHMEM_TEAM_NUM_CONTEXTS, &team) == GPUSHMEM_ERR_INVALID);
    CHECK(team == GPUSHMEM_TEAM_INVALID);
    CHECK(strstr(gpushmem_last_error(), me == 1 ? "num_contexts" : "PE 1 cannot take part"));
    CHECK(refused_survivors(NULL, 0, me ? &team : NULL) == GPUSHMEM_ERR_INVALID);
    CHECK(gpushmem_team_survivors(77, NULL, 0, &team) == GPUSHMEM_ERR_INVALID);
}

int main(int argc, char **argv)
{
    CHECK_OK(gpushmem_init());
    me = gpushmem_my_pe();
    n_pes = gpushmem_n_pes();
    CHECK(n_pes >= 2 && n_pes <= MOST_PES && argc == 2);
    dest = gpushmem_calloc((size_t)n_pes * NELEMS, sizeof *dest);
    source = gpushmem_calloc((size_t)n_pes * NELEMS, sizeof *source);
    CHECK(dest && source);
    seed = strtoull(argv[1], NULL, 10);
    if (seed == 0) {
        gpushmem_team_t team;
        err();
        come_late(&team);
        CHECK(gpushmem_team_n_pes(team) == n_pes);
        CHECK_OK(operation(team, 0));
        CHECK_OK(gpushmem_team_destroy(team));
    } else {
        draw_victims();
        play();
    }
    printf("PE %d survives, %d lost\n", me, n_victims);
    int status = gpushmem_finalize();
    CHECK_THAT(status == 0 || status == GPUSHMEM_ERR_PE_FAILED, "%d: %s", status,
               gpushmem_last_error());
    return 0;
}
