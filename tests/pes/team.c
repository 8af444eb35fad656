// SPDX-License-Identifier: BSD-3-Clause
// Teams: who is in them, handles that are destroyed and slots that are used again, syncs of several
// teams at once, and what is refused.
//   team [ROUNDS]
#define _GNU_SOURCE // usleep
#include <unistd.h>

#include "check.h"
#include "gpushmem/impl/team_layout.h"

static int me, n_pes;
enum { MOST_PES = 64 };
static uint64_t *arrived; // [n_pes] on each PE: how many syncs with it each other PE has entered
static uint64_t together[MOST_PES];

static uint32_t random_next(void)
{
    static uint32_t state;
    if (state == 0)
        state = 77u + (uint32_t)me;
    state = state * 1664525u + 1013904223u;
    return state >> 8;
}

static void skew(void)
{
    uint32_t draw = random_next() % 64;
    if (draw == 0)
        usleep(random_next() % 200);
    else if (draw < 8)
        for (volatile uint32_t i = 0; i < draw * 500; ++i) {
        }
}

// All members have entered a sync when one returns.
static void check_sync(gpushmem_team_t team, int rounds)
{
    int n = gpushmem_team_n_pes(team);
    for (int i = 0; i < rounds; ++i) {
        for (int rank = 0; rank < n; ++rank) {
            int pe = gpushmem_team_translate_pe(team, rank, GPUSHMEM_TEAM_WORLD);
            CHECK_OK(gpushmem_uint64_p(&arrived[me], ++together[pe], pe));
        }
        CHECK_OK(gpushmem_quiet());
        skew();
        CHECK_OK(gpushmem_team_sync(team));
        for (int rank = 0; rank < n; ++rank) {
            int pe = gpushmem_team_translate_pe(team, rank, GPUSHMEM_TEAM_WORLD);
            uint64_t count = gpushmem_signal_fetch(&arrived[pe]);
            CHECK_THAT(count >= together[pe], "PE %d: %" PRIu64 " of %" PRIu64, pe, count,
                       together[pe]);
        }
    }
}

static void predefined(void)
{
    CHECK(gpushmem_team_my_pe(GPUSHMEM_TEAM_WORLD) == me);
    CHECK(gpushmem_team_n_pes(GPUSHMEM_TEAM_WORLD) == n_pes);
    CHECK(gpushmem_team_my_pe(GPUSHMEM_TEAM_NODE) == gpushmem_node_my_pe());
    CHECK(gpushmem_team_n_pes(GPUSHMEM_TEAM_NODE) == gpushmem_node_n_pes());
    long *word = gpushmem_malloc(sizeof *word);
    CHECK(word != NULL);
    int shared = 0;
    for (int pe = 0; pe < n_pes; ++pe)
        shared += gpushmem_ptr(word, pe) != NULL;
    CHECK_THAT(gpushmem_team_n_pes(GPUSHMEM_TEAM_SHARED) == shared, "%d, %d reached",
               gpushmem_team_n_pes(GPUSHMEM_TEAM_SHARED), shared);
    for (int rank = 0; rank < shared; ++rank)
        CHECK(gpushmem_team_ptr(GPUSHMEM_TEAM_SHARED, word, rank) != NULL);
    int nodes = gpushmem_team_n_pes(GPUSHMEM_TEAM_SAME_RANK);
    CHECK(nodes >= 1 && nodes <= n_pes);
    CHECK(gpushmem_team_translate_pe(GPUSHMEM_TEAM_SAME_RANK,
                                     gpushmem_team_my_pe(GPUSHMEM_TEAM_SAME_RANK),
                                     GPUSHMEM_TEAM_WORLD) == me);
    CHECK_OK(gpushmem_free(word));
    CHECK(gpushmem_team_destroy(GPUSHMEM_TEAM_NODE) == GPUSHMEM_ERR_INVALID);
}

// The ranks start, start + stride, ... of the world.
static void check_strided(int start, int stride, int size, int rounds)
{
    gpushmem_team_t team;
    CHECK_OK(gpushmem_team_split_strided(GPUSHMEM_TEAM_WORLD, start, stride, size, NULL, 0, &team));
    int mine = -1;
    for (int i = 0; i < size; ++i)
        if (start + i * stride == me)
            mine = i;
    CHECK_THAT((team == GPUSHMEM_TEAM_INVALID) == (mine < 0), "%d %d %d", start, stride, size);
    CHECK(gpushmem_team_my_pe(team) == mine);
    CHECK(gpushmem_team_n_pes(team) == (mine < 0 ? -1 : size));
    CHECK(gpushmem_team_translate_pe(team, 0, GPUSHMEM_TEAM_WORLD) == (mine < 0 ? -1 : start));
    CHECK(mine < 0 || gpushmem_team_translate_pe(GPUSHMEM_TEAM_WORLD, me, team) == mine);
    if (mine >= 0)
        check_sync(team, rounds);
    CHECK_OK(gpushmem_team_destroy(team));
    if (mine < 0)
        return;
    CHECK(gpushmem_team_sync(team) == GPUSHMEM_ERR_INVALID);
    CHECK(gpushmem_team_n_pes(team) == -1);
}

static void check_2d(int xrange, int rounds)
{
    gpushmem_team_t x, y;
    const struct gpushmem_team_config config = {.num_contexts = 3};
    CHECK_OK(gpushmem_team_split_2d(GPUSHMEM_TEAM_WORLD, xrange, &config,
                                    GPUSHMEM_TEAM_NUM_CONTEXTS, &x, NULL, 0, &y));
    int row = xrange < n_pes ? xrange : n_pes;
    CHECK(gpushmem_team_my_pe(x) == me % row && gpushmem_team_my_pe(y) == me / row);
    CHECK(gpushmem_team_translate_pe(x, 0, GPUSHMEM_TEAM_WORLD) == me / row * row);
    CHECK(gpushmem_team_translate_pe(y, 0, GPUSHMEM_TEAM_WORLD) == me % row);
    struct gpushmem_team_config seen = {.num_contexts = -1};
    CHECK_OK(gpushmem_team_get_config(x, GPUSHMEM_TEAM_NUM_CONTEXTS, &seen));
    CHECK(seen.num_contexts == 3);
    CHECK_OK(gpushmem_team_get_config(y, GPUSHMEM_TEAM_NUM_CONTEXTS, &seen));
    CHECK(seen.num_contexts == 0);
    // Two teams that overlap, in one order.
    for (int i = 0; i < rounds; ++i) {
        check_sync(x, 2);
        check_sync(y, 1);
    }
    CHECK_OK(gpushmem_team_destroy(y));
    CHECK_OK(gpushmem_team_destroy(x));
}

// All PEs, in another order; and teams of teams.
static void check_lists(int rounds)
{
    int ranks[MOST_PES];
    for (int i = 0; i < n_pes; ++i)
        ranks[i] = n_pes - 1 - i;
    gpushmem_team_t reversed, half;
    CHECK_OK(gpushmem_team_split_list(GPUSHMEM_TEAM_WORLD, ranks, n_pes, NULL, 0, &reversed));
    CHECK(gpushmem_team_my_pe(reversed) == n_pes - 1 - me);
    check_sync(reversed, rounds);
    CHECK_OK(gpushmem_team_split_strided(reversed, 0, 1, (n_pes + 1) / 2, NULL, 0, &half));
    CHECK((half == GPUSHMEM_TEAM_INVALID) == (n_pes - 1 - me >= (n_pes + 1) / 2));
    if (half != GPUSHMEM_TEAM_INVALID) {
        CHECK(gpushmem_team_translate_pe(half, 0, GPUSHMEM_TEAM_WORLD) == n_pes - 1);
        check_sync(half, rounds);
    }
    CHECK_OK(gpushmem_team_destroy(reversed));
    CHECK_OK(gpushmem_team_destroy(half));
}

// Slots are used again by other members, and no old handle is taken for a new one.
static void reuse(int rounds)
{
    gpushmem_team_t before = GPUSHMEM_TEAM_INVALID;
    for (int i = 0; i < rounds; ++i) {
        gpushmem_team_t team;
        int size = 1 + i % n_pes, start = i % (n_pes - size + 1);
        CHECK_OK(gpushmem_team_split_strided(GPUSHMEM_TEAM_WORLD, start, 1, size, NULL, 0, &team));
        if (team != GPUSHMEM_TEAM_INVALID) {
            CHECK(team != before);
            CHECK_OK(gpushmem_team_sync(team));
            check_sync(team, 2);
            before = team;
        }
        CHECK_OK(gpushmem_team_destroy(team));
    }
}

// Ranks of the reversed team name PEs in calls on its context.
static void contexts(void)
{
    gpushmem_team_t reversed, seen;
    gpushmem_ctx_t ctx;
    CHECK_OK(
        gpushmem_team_split_strided(GPUSHMEM_TEAM_WORLD, n_pes - 1, -1, n_pes, NULL, 0, &reversed));
    CHECK_OK(gpushmem_team_create_ctx(reversed, 0, &ctx));
    CHECK_OK(gpushmem_ctx_get_team(ctx, &seen));
    CHECK(seen == reversed);
    CHECK_OK(gpushmem_ctx_get_team(GPUSHMEM_CTX_DEFAULT, &seen));
    CHECK(seen == GPUSHMEM_TEAM_WORLD);
    CHECK(gpushmem_ctx_get_team(GPUSHMEM_CTX_INVALID, &seen) == GPUSHMEM_ERR_INVALID);
    CHECK(seen == GPUSHMEM_TEAM_INVALID);
    long *words = gpushmem_calloc(3, sizeof *words);
    CHECK(words != NULL);
    int right = (n_pes - 1 - me + 1) % n_pes, from = (me + 1) % n_pes; // a rank, a PE
    const long mine = 100 + me;
    CHECK_OK(gpushmem_ctx_long_put(ctx, words, &mine, 1, right));
    CHECK_OK(gpushmem_ctx_pe_fence(ctx, right));
    CHECK_OK(gpushmem_ctx_long_p(ctx, words + 1, mine, right));
    CHECK_OK(gpushmem_ctx_long_atomic_add(ctx, words + 2, mine, right));
    CHECK_OK(gpushmem_ctx_pe_quiet(ctx, &right, 1));
    CHECK(gpushmem_ctx_long_g(ctx, words, right) == mine);
    CHECK_OK(gpushmem_barrier_all());
    CHECK_THAT(words[0] == 100 + from && words[1] == 100 + from && words[2] == 100 + from,
               "%ld %ld %ld, not from PE %d", words[0], words[1], words[2], from);
    CHECK(gpushmem_ctx_long_p(ctx, words, 1, -1) == GPUSHMEM_ERR_PE);
    char rank[32];
    snprintf(rank, sizeof rank, "has no rank %d;", n_pes);
    CHECK(gpushmem_ctx_long_p(ctx, words, 1, n_pes) == GPUSHMEM_ERR_PE);
    CHECK_THAT(strstr(gpushmem_last_error(), rank) != NULL, "%s", gpushmem_last_error());
    CHECK(gpushmem_ctx_pe_quiet(ctx, &n_pes, 1) == GPUSHMEM_ERR_PE);
    CHECK_THAT(strstr(gpushmem_last_error(), rank) != NULL, "%s", gpushmem_last_error());
    CHECK(gpushmem_team_create_ctx(GPUSHMEM_TEAM_INVALID, 0, &ctx) == GPUSHMEM_ERR_INVALID);
    CHECK(gpushmem_team_create_ctx(reversed, 1 << 20, &ctx) == GPUSHMEM_ERR_INVALID);
    CHECK_OK(gpushmem_ctx_destroy(ctx));
    CHECK_OK(gpushmem_team_destroy(reversed));
    CHECK_OK(gpushmem_free(words));
}

static void refusals(void)
{
    gpushmem_team_t team = 5;
    CHECK(gpushmem_team_split_strided(GPUSHMEM_TEAM_WORLD, 0, 1, n_pes + 1, NULL, 0, &team) ==
          GPUSHMEM_ERR_INVALID);
    CHECK(team == GPUSHMEM_TEAM_INVALID);
    CHECK(gpushmem_team_split_strided(GPUSHMEM_TEAM_WORLD, 0, 0, 2, NULL, 0, &team) ==
          GPUSHMEM_ERR_INVALID);
    CHECK(gpushmem_team_split_strided(GPUSHMEM_TEAM_WORLD, 0, 1, 1, NULL, 2, &team) ==
          GPUSHMEM_ERR_INVALID);
    CHECK(gpushmem_team_survivors(GPUSHMEM_TEAM_WORLD, NULL, 0, &team) == GPUSHMEM_ERR_UNSUPPORTED);
    CHECK(strstr(gpushmem_last_error(), "GPUSHMEM_ON_PE_FAILURE") && team == GPUSHMEM_TEAM_INVALID);
    const int twice[] = {0, 0};
    CHECK(gpushmem_team_split_list(GPUSHMEM_TEAM_WORLD, twice, 2, NULL, 0, &team) ==
          GPUSHMEM_ERR_INVALID);
    CHECK(gpushmem_team_split_2d(GPUSHMEM_TEAM_WORLD, 0, NULL, 0, &team, NULL, 0, &team) ==
          GPUSHMEM_ERR_INVALID);
    // One PE is wrong: all are told.
    int start = me == n_pes - 1 ? n_pes : 0;
    CHECK(gpushmem_team_split_strided(GPUSHMEM_TEAM_WORLD, start, 1, 1, NULL, 0, &team) ==
          GPUSHMEM_ERR_INVALID);
    if (n_pes > 1) {
        CHECK(gpushmem_team_split_strided(GPUSHMEM_TEAM_WORLD, me == 1, 1, 1, NULL, 0, &team) ==
              GPUSHMEM_ERR_ASYMMETRY);
        CHECK(strstr(gpushmem_last_error(), "PE 1 passes start 1, PE 0 passes 0") != NULL);
        const int ranks[] = {me == 1, me != 1};
        CHECK(gpushmem_team_split_list(GPUSHMEM_TEAM_WORLD, ranks, 1 + (me == 1), NULL, 0, &team) ==
              GPUSHMEM_ERR_ASYMMETRY);
        CHECK(strstr(gpushmem_last_error(), "PE 1 passes size 2, PE 0 passes 1") != NULL);
        CHECK(gpushmem_team_split_list(GPUSHMEM_TEAM_WORLD, ranks, 2, NULL, 0, &team) ==
              GPUSHMEM_ERR_ASYMMETRY);
        CHECK(strstr(gpushmem_last_error(), "PE 1 passes ranks of digest ") != NULL);
    }
    CHECK(gpushmem_team_split_strided(GPUSHMEM_TEAM_INVALID, 0, 1, 1, NULL, 0, &team) ==
          GPUSHMEM_ERR_INVALID);
    CHECK(gpushmem_team_sync(GPUSHMEM_TEAM_INVALID) == GPUSHMEM_ERR_INVALID);
    CHECK(gpushmem_team_sync(4321) == GPUSHMEM_ERR_INVALID);
    CHECK_OK(gpushmem_team_destroy(GPUSHMEM_TEAM_INVALID));
    CHECK(gpushmem_team_ptr(GPUSHMEM_TEAM_WORLD, arrived, n_pes) == NULL);
}

// As many teams as there are, and one more; each slot is free again afterwards.
static void too_many(int slots)
{
    gpushmem_team_t teams[256], one_more;
    for (int i = GPUSHMEM_TEAM_PREDEFINED; i < slots; ++i)
        CHECK_OK(gpushmem_team_split_strided(GPUSHMEM_TEAM_WORLD, 0, 1, n_pes, NULL, 0, &teams[i]));
    CHECK(gpushmem_team_split_strided(GPUSHMEM_TEAM_WORLD, 0, 1, 1, NULL, 0, &one_more) ==
          GPUSHMEM_ERR_NO_MEMORY);
    CHECK(me != 0 || strstr(gpushmem_last_error(),
                            slots < 256 ? "GPUSHMEM_TEAMS" : "256 at a time are the most") != NULL);
    for (int i = GPUSHMEM_TEAM_PREDEFINED; i < slots; ++i)
        CHECK_OK(gpushmem_team_destroy(teams[i]));
    CHECK_OK(gpushmem_team_split_strided(GPUSHMEM_TEAM_WORLD, 0, 1, n_pes, NULL, 0, &one_more));
    CHECK_OK(gpushmem_team_destroy(one_more));
}

int main(int argc, char **argv)
{
    int rounds = check_rounds(argc, argv, 20);
    CHECK_OK(gpushmem_init());
    me = gpushmem_my_pe();
    n_pes = gpushmem_n_pes();
    CHECK(n_pes <= MOST_PES);
    arrived = gpushmem_calloc((size_t)n_pes, sizeof *arrived);
    CHECK(arrived != NULL);
    predefined();
    for (gpushmem_team_t team = 0; team < 4; ++team)
        check_sync(team, rounds);
    CHECK_OK(gpushmem_barrier_all());
    for (int stride = 1; stride <= 3; ++stride)
        for (int start = 0; start < 2 && start < n_pes; ++start)
            check_strided(start, stride, (n_pes - 1 - start) / stride + 1, rounds);
    check_strided(n_pes - 1, -1, n_pes, rounds);
    check_strided(n_pes / 2, 0, 1, rounds);
    for (int xrange = 1; xrange <= n_pes + 1; ++xrange)
        check_2d(xrange, rounds / 4);
    check_lists(rounds);
    reuse(rounds * 2);
    contexts();
    refusals();
    too_many(getenv("GPUSHMEM_TEAMS") ? atoi(getenv("GPUSHMEM_TEAMS")) : 256);
    CHECK_OK(gpushmem_barrier_all());
    CHECK_OK(gpushmem_free(arrived));
    CHECK_OK(gpushmem_finalize());
    return 0;
}
