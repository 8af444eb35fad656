// SPDX-License-Identifier: BSD-3-Clause
// A PE is killed at a random moment while all PEs put, get, add and signal to each other. What goes
// to a living PE succeeds, arrives, and happens once; finalize among survivors returns 0 or names
// the dead. Run under GPUSHMEM_ON_PE_FAILURE=notify.
//   survivors SEED [ROUNDS]    the victim and its moment are drawn from SEED; in one of eight runs
//                              the moment is counted from before init, else from after it
// Prints one line for each PE that lives on.
#define _GNU_SOURCE // usleep
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "../pes/check.h"

enum { PIECE = 20000, MOST_PES = 16, ROUNDS = 60, PATIENCE = 100 };

enum { WENT_ROUND = 1, GOT_NO_MEMORY };
static uint64_t ended[MOST_PES]; // how each PE did. Static: also for who got no memory
static struct {
    uint64_t sum, flag;
    uint32_t narrow[2];
    char pieces[MOST_PES][PIECE];
} * shared;
static char source[PIECE], back[PIECE];
static int me, n_pes, victim;
static bool lost; // this PE was told that the victim is

static uint64_t draw(uint64_t seed, uint64_t what)
{
    uint64_t z = seed * 0x9e3779b97f4a7c15u + what * 0xd1342543de82ef95u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static void *kill_later(void *us)
{
    usleep((useconds_t)(uintptr_t)us);
    kill(getpid(), SIGKILL);
    return NULL;
}

static void begin_dying(uint64_t us)
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, kill_later, (void *)(uintptr_t)us) == 0);
    pthread_detach(thread);
}

static bool names_victim(void)
{
    char name[16];
    snprintf(name, sizeof name, "PE %d", victim);
    return gpushmem_last_error_code() == GPUSHMEM_ERR_PE_FAILED &&
           strstr(gpushmem_last_error(), name) != NULL;
}

// `pe`: whom the call was for, -1 everybody.
static void expect(int status, int pe, const char *call)
{
    if (status == 0)
        return;
    lost = true;
    CHECK_THAT((pe < 0 || pe == victim) && names_victim(), "%s towards PE %d: %d: %s", call, pe,
               status, gpushmem_last_error());
}
#define EXPECT(pe, call) expect((call), (pe), #call)

static void one_round(int pe, unsigned round)
{
    uint64_t value;
    fill(source, PIECE, round * MOST_PES + (unsigned)me);
    EXPECT(pe, gpushmem_putmem(shared->pieces[me], source, PIECE, pe));
    EXPECT(pe, gpushmem_uint64_atomic_add(&shared->sum, 1, pe));
    EXPECT(pe, gpushmem_uint32_atomic_add(&shared->narrow[round & 1], 1, pe));
    EXPECT(pe, gpushmem_putmem_signal_nbi(shared->pieces[me], source, 100, &shared->flag, 1,
                                          GPUSHMEM_SIGNAL_ADD, pe));
    EXPECT(pe, gpushmem_uint64_atomic_fetch_nbi(&value, &shared->sum, pe));
    EXPECT(-1, gpushmem_quiet());
    memset(back, 0, PIECE);
    int status = gpushmem_getmem(back, shared->pieces[me], PIECE, pe);
    expect(status, pe, "gpushmem_getmem");
    CHECK_THAT(status || memcmp(source, back, PIECE) == 0, "from PE %d in round %u", pe, round);
}

// The others, from the right neighbour on, without one that this PE knows to be dead.
static int next_pe(int pe)
{
    do
        pe = (pe + 1) % n_pes;
    while (pe == victim && lost && pe != me);
    return pe;
}

// Until each PE has told how it ended, or is lost.
static void meet(uint64_t how)
{
    for (int pe = next_pe(me); pe != me; pe = next_pe(pe))
        EXPECT(pe, gpushmem_uint64_p(&ended[me], how, pe));
    EXPECT(-1, gpushmem_quiet());
    for (int pe = next_pe(me); pe != me; pe = next_pe(pe)) {
        int status = 1;
        for (int i = 0; status && i < PATIENCE && !(pe == victim && lost); i++) {
            status = gpushmem_uint64_wait_until(&ended[pe], GPUSHMEM_CMP_NE, 0);
            expect(status, -1, "gpushmem_uint64_wait_until");
        }
        CHECK_THAT(!status || pe == victim, "no word of PE %d", pe);
    }
}

static void check_sums(int rounds)
{
    int absent = me != victim;
    for (int pe = 0; pe < n_pes; pe++)
        absent += ended[pe] == GOT_NO_MEMORY;
    uint64_t least = (uint64_t)rounds * (uint64_t)(n_pes - 1 - absent),
             most = (uint64_t)rounds * (uint64_t)(n_pes - 1),
             narrow = (uint64_t)shared->narrow[0] + shared->narrow[1];
    CHECK_THAT(shared->sum >= least && shared->sum <= most, "%" PRIu64 ", not %" PRIu64 " adds",
               shared->sum, most);
    CHECK_THAT(narrow >= least && narrow <= most, "%" PRIu64 " narrow adds", narrow);
    CHECK_THAT(shared->flag >= least && shared->flag <= most, "%" PRIu64 " signals", shared->flag);
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

int main(int argc, char **argv)
{
    const char *rank = getenv("PMIX_RANK") ? getenv("PMIX_RANK") : getenv("GPUSHMEM_RUN_PE"),
               *size = getenv("GPUSHMEM_RUN_SIZE");
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    int rounds = argc > 2 ? atoi(argv[2]) : ROUNDS;
    CHECK(rank && size && atoi(size) >= 2 && atoi(size) <= MOST_PES);
    me = atoi(rank);
    n_pes = atoi(size);
    victim = (int)(draw(seed, 1) % (uint64_t)n_pes);
    bool early = draw(seed, 2) % 8 == 0;
    if (me == victim && early)
        begin_dying(draw(seed, 3) % 60000);
    if (gpushmem_init()) {
        CHECK_THAT(early && names_victim(), "init: %s", gpushmem_last_error());
        printf("PE %d survives: init: %s\n", me, gpushmem_last_error());
        return 0;
    }
    shared = gpushmem_calloc(1, sizeof *shared);
    if (!shared) {
        lost = true;
        CHECK_THAT(names_victim(), "%s", gpushmem_last_error());
        meet(GOT_NO_MEMORY); // others may have got theirs
        gpushmem_finalize();
        printf("PE %d survives: no memory\n", me);
        return 0;
    }
    if (me == victim && !early)
        begin_dying(draw(seed, 3) % 40000);
    for (int round = 0; round < rounds; round++)
        for (int pe = next_pe(me); pe != me; pe = next_pe(pe))
            one_round(pe, (unsigned)round);
    meet(WENT_ROUND);
    check_sums(rounds);
    printf("PE %d: %d rounds%s\n", me, rounds, lost ? ", after which the victim was known" : "");
    double start = seconds();
    expect(gpushmem_finalize(), -1, "gpushmem_finalize");
    printf("PE %d survives: finalized after %.0f ms\n", me, (seconds() - start) * 1e3);
    return 0;
}
