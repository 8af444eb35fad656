// SPDX-License-Identifier: BSD-3-Clause
// A PE ends at an operation drawn from a seed, among operations of all kinds on two contexts. Those
// towards others succeed, and none fails but by that loss; a wait that cannot end otherwise ends by
// it; and the others, in a team of their own, meet, reduce and put. Run under
// GPUSHMEM_ON_PE_FAILURE=notify.
//   op_survivors SEED [OPERATIONS]
// Prints one line for each PE that lives on.
#define _GNU_SOURCE // usleep
#include <signal.h>
#include <unistd.h>

#include "../pes/check.h"

enum { ELEMENTS = 100000, MOST_PES = 16, PATIENCE = 2000 };
enum { FETCHED, COUNTED, SIGNAL, NEVER, MINE, SUM, WORDS };

static uint64_t seed, state;
static int me, n_pes, victim, n_lost;
static long *area, *words;
static long source[ELEMENTS], singles[1000]; // singles: static data as a destination
static gpushmem_ctx_t second, untold;        // untold: all that it has goes to the PE that ends
static gpushmem_team_t same_as_world;

static uint64_t draw(uint64_t *of)
{
    *of ^= *of << 13;
    *of ^= *of >> 7;
    *of ^= *of << 17;
    return *of * UINT64_C(0x2545F4914F6CDD1D) >> 11;
}

static size_t below(size_t n)
{
    return draw(&state) % n;
}

static void end_somehow(uint64_t how)
{
    if (how == 0)
        kill(getpid(), SIGKILL);
    if (how == 1)
        abort();
    _exit(3);
}

// ---- The operations ----

struct target {
    gpushmem_ctx_t ctx;
    size_t n;
    int pe;
};

static int put(struct target t)
{
    return gpushmem_ctx_long_put(t.ctx, area, source, t.n, t.pe);
}

static int put_nbi(struct target t)
{
    return gpushmem_ctx_long_put_nbi(t.ctx, area, source, t.n, t.pe);
}

static int get(struct target t)
{
    return gpushmem_ctx_long_get(t.ctx, source, area, t.n, t.pe);
}

static int get_nbi(struct target t)
{
    return gpushmem_ctx_long_get_nbi(t.ctx, source, area, t.n, t.pe);
}

static int fetch_add(struct target t)
{
    long old;
    return gpushmem_ctx_long_atomic_fetch_add_status(t.ctx, &words[FETCHED], 1, t.pe, &old);
}

static int inc(struct target t)
{
    return gpushmem_ctx_long_atomic_inc(t.ctx, &words[COUNTED], t.pe);
}

static int put_signal(struct target t)
{
    return gpushmem_ctx_long_put_signal(t.ctx, area, source, t.n, (uint64_t *)&words[SIGNAL], 1,
                                        GPUSHMEM_SIGNAL_ADD, t.pe);
}

static int p(struct target t)
{
    return gpushmem_ctx_long_p(t.ctx, &singles[t.n % 1000], 5, t.pe);
}

static int iput(struct target t)
{
    return gpushmem_ctx_long_iput(t.ctx, area, source, 2, 3, 1 + t.n % 100, t.pe);
}

static int fence(struct target t)
{
    return gpushmem_ctx_fence(t.ctx);
}

static int pe_quiet(struct target t)
{
    return gpushmem_ctx_pe_quiet(t.ctx, &t.pe, 1);
}

static int quiet(struct target t)
{
    return gpushmem_ctx_quiet(t.ctx);
}

static const struct {
    const char *name;
    int (*call)(struct target);
    bool of_all; // it may tell of the loss whichever PE was drawn
} operations[] = {
    {"put", put, false},
    {"put_nbi", put_nbi, false},
    {"get", get, false},
    {"get_nbi", get_nbi, false},
    {"fetch_add", fetch_add, false},
    {"inc", inc, false},
    {"put_signal", put_signal, false},
    {"p", p, false},
    {"iput", iput, false},
    {"fence", fence, true},
    {"pe_quiet", pe_quiet, false},
    {"quiet", quiet, true},
};

static void any_operation(int number)
{
    size_t which = below(sizeof operations / sizeof *operations);
    struct target t = {.ctx = below(2) ? second : GPUSHMEM_CTX_DEFAULT,
                       .n = 1 + below(below(8) ? 50 : ELEMENTS),
                       .pe = (int)below((size_t)n_pes)};
    int status = operations[which].call(t);
    if (status == 0)
        return;
    n_lost++;
    CHECK_THAT(status == GPUSHMEM_ERR_PE_FAILED && (t.pe == victim || operations[which].of_all),
               "seed %" PRIu64 ", operation %d: %s towards PE %d, where PE %d ends: %d: %s", seed,
               number, operations[which].name, t.pe, victim, status, gpushmem_last_error());
}

// ---- Afterwards ----

static void await_loss(void)
{
    int failed[MOST_PES], n = 0;
    int status = gpushmem_long_wait_until(&words[NEVER], GPUSHMEM_CMP_NE, 0);
    CHECK_THAT(status == GPUSHMEM_ERR_PE_FAILED, "seed %" PRIu64 ": wait_until: %d: %s", seed,
               status, gpushmem_last_error());
    for (int i = 0; i < PATIENCE && (n = gpushmem_failed_pes(failed, MOST_PES)) == 0; i++)
        usleep(5000);
    CHECK_THAT(n == 1 && failed[0] == victim, "seed %" PRIu64 ": %d PEs are lost", seed, n);
}

// What was lost is not told by a quiet of the others.
static void check_pe_quiet(void)
{
    for (int pe = 0; pe < n_pes; pe++) {
        int status = pe == victim ? 0 : gpushmem_ctx_pe_quiet(untold, &pe, 1);
        CHECK_THAT(status == 0, "seed %" PRIu64 ": pe_quiet towards PE %d: %d: %s", seed, pe,
                   status, gpushmem_last_error());
    }
}

static void check_reduction(gpushmem_team_t team)
{
    words[MINE] = me;
    CHECK_OK(gpushmem_barrier(team));
    CHECK_OK(gpushmem_long_sum_reduce(team, &words[SUM], &words[MINE], 1));
    CHECK_THAT(words[SUM] == n_pes * (n_pes - 1) / 2 - victim, "seed %" PRIu64 ": sum %ld", seed,
               words[SUM]);
}

// To the right neighbour.
static void check_put(gpushmem_team_t team)
{
    gpushmem_ctx_t ctx;
    int n = gpushmem_team_n_pes(team), rank = gpushmem_team_my_pe(team);
    int left = gpushmem_team_translate_pe(team, (rank + n - 1) % n, GPUSHMEM_TEAM_WORLD);
    CHECK_OK(gpushmem_team_create_ctx(team, 0, &ctx));
    for (long i = 0; i < ELEMENTS; i++)
        source[i] = i * 3 + me;
    CHECK_OK(gpushmem_barrier(team));
    CHECK_OK(gpushmem_ctx_long_put(ctx, area, source, ELEMENTS, (rank + 1) % n));
    CHECK_OK(gpushmem_ctx_quiet(ctx));
    CHECK_OK(gpushmem_barrier(team));
    for (long i = 0; i < ELEMENTS; i++)
        CHECK_THAT(area[i] == i * 3 + left, "seed %" PRIu64 ": element %ld", seed, i);
    CHECK_OK(gpushmem_ctx_destroy(ctx));
}

static void live_on(gpushmem_team_t parent)
{
    gpushmem_team_t team;
    CHECK_OK(gpushmem_team_survivors(parent, NULL, 0, &team));
    (void)gpushmem_quiet(); // each may tell of the loss once more
    (void)gpushmem_ctx_quiet(second);
    (void)gpushmem_ctx_quiet(untold);
    check_reduction(team);
    check_put(team);
    CHECK_OK(gpushmem_team_destroy(team));
}

int main(int argc, char **argv)
{
    seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    int n = argc > 2 ? atoi(argv[2]) : 800;
    CHECK_OK(gpushmem_init_thread(GPUSHMEM_THREAD_MULTIPLE, NULL));
    me = gpushmem_my_pe();
    n_pes = gpushmem_n_pes();
    CHECK(n_pes >= 2 && n_pes <= MOST_PES && n >= 2);
    uint64_t common = seed * UINT64_C(0x9E3779B97F4A7C15) + 1;
    state = common + (uint64_t)me * UINT64_C(0xd1342543de82ef95);
    for (int i = 0; i < 8; i++)
        (void)draw(&common), (void)draw(&state);
    victim = (int)(draw(&common) % (uint64_t)n_pes);
    uint64_t last = draw(&common) % (uint64_t)(n / 2), how = draw(&common) % 3;
    area = gpushmem_calloc(ELEMENTS, sizeof *area);
    words = gpushmem_calloc(WORDS, sizeof *words);
    CHECK(area && words);
    CHECK_OK(gpushmem_ctx_create(0, &second));
    CHECK_OK(gpushmem_ctx_create(0, &untold));
    CHECK_OK(
        gpushmem_team_split_strided(GPUSHMEM_TEAM_WORLD, 0, 1, n_pes, NULL, 0, &same_as_world));
    CHECK_OK(gpushmem_barrier_all());
    for (int i = 0; i < n; i++) {
        if (me == victim && (uint64_t)i == last)
            end_somehow(how);
        any_operation(i);
        (void)gpushmem_ctx_long_put_nbi(untold, area, source, 8, victim);
    }
    await_loss();
    check_pe_quiet();
    live_on(draw(&common) % 2 ? same_as_world : GPUSHMEM_TEAM_WORLD);
    int status = gpushmem_finalize();
    CHECK_THAT(status == 0 || status == GPUSHMEM_ERR_PE_FAILED, "finalize: %d", status);
    printf("PE %d survives: %d of %d operations told of the loss\n", me, n_lost, n);
    return 0;
}
