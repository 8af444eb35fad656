// SPDX-License-Identifier: BSD-3-Clause
// Operations of streams in a program without kernels: of the only stream there is, NULL, done at
// once; of every type and size. Collectives, too.
#include "check.h"

enum { N = 5 };

static char *inbox, *outbox; // symmetric
static uint64_t *sig;
static int me, n_pes, right, left;

// Every PE sends to its right neighbour by put_signal and put, and fetches from its left one.
#define ROUND(LABEL, TYPE, BYTES)                                                                  \
    static void round_##LABEL(unsigned seed)                                                       \
    {                                                                                              \
        char expected[N * 16];                                                                     \
        TYPE *there = (TYPE *)(void *)inbox, *here = (TYPE *)(void *)outbox;                       \
        fill(outbox, N *(BYTES), seed + (unsigned)me);                                             \
        fill(expected, N *(BYTES), seed + (unsigned)left);                                         \
        CHECK_OK(gpushmem_barrier_all_on_stream(NULL));                                            \
        CHECK_OK(gpushmem_##LABEL##_signal_on_stream(there, here, N, sig, seed,                    \
                                                     GPUSHMEM_SIGNAL_SET, right, NULL));           \
        CHECK_OK(gpushmem_signal_wait_until_on_stream(sig, GPUSHMEM_CMP_EQ, seed, NULL));          \
        CHECK(!memcmp(inbox, expected, N * (BYTES)));                                              \
        CHECK_OK(gpushmem_sync_all_on_stream(NULL));                                               \
        memset(inbox, 0, N *(BYTES));                                                              \
        CHECK_OK(gpushmem_barrier_all_on_stream(NULL));                                            \
        CHECK_OK(gpushmem_##LABEL##_on_stream(there, here, N, right, NULL));                       \
        CHECK_OK(gpushmem_quiet_on_stream(NULL));                                                  \
        CHECK_OK(gpushmem_barrier_all_on_stream(NULL));                                            \
        CHECK(!memcmp(inbox, expected, N * (BYTES)));                                              \
    }
#define FETCH(LABEL, TYPE, BYTES)                                                                  \
    static void fetch_##LABEL(unsigned seed)                                                       \
    {                                                                                              \
        char expected[N * 16], got[N * 16] = {0};                                                  \
        fill(expected, N *(BYTES), seed + (unsigned)left);                                         \
        CHECK_OK(gpushmem_##LABEL##_on_stream((TYPE *)(void *)got, (TYPE *)(void *)outbox, N,      \
                                              left, NULL));                                        \
        CHECK(!memcmp(got, expected, N * (BYTES)));                                                \
        CHECK_OK(gpushmem_barrier_all_on_stream(NULL));                                            \
    }
#define BY_TYPE(NAME, TYPE)                                                                        \
    ROUND(NAME##_put, TYPE, sizeof(TYPE)) FETCH(NAME##_get, TYPE, sizeof(TYPE))
#define BY_SIZE(BITS) ROUND(put##BITS, void, BITS / 8) FETCH(get##BITS, void, BITS / 8)
GPUSHMEM_RMA_TYPES(BY_TYPE)
GPUSHMEM_RMA_SIZES(BY_SIZE)
ROUND(putmem, void, 1)
FETCH(getmem, void, 1)

static void all_types(void)
{
    unsigned seed = 0;
#define RUN_TYPE(NAME, TYPE) round_##NAME##_put(++seed), fetch_##NAME##_get(seed);
#define RUN_SIZE(BITS)       round_put##BITS(++seed), fetch_get##BITS(seed);
    GPUSHMEM_RMA_TYPES(RUN_TYPE)
    GPUSHMEM_RMA_SIZES(RUN_SIZE)
    round_putmem(++seed), fetch_getmem(seed);
}

// ---- Collectives ----

enum { MOST = 3000 }; // more than members show each other in a meeting

static int *to, *from; // symmetric, a place for each PE

static int value(int pe, int i)
{
    return pe * 10007 + i * 31;
}

static void fill_source(int nelems)
{
    for (int i = 0; i < nelems; i++)
        from[i] = value(me, i);
    memset(to, 0x55, (size_t)n_pes * MOST * sizeof *to);
    CHECK_OK(gpushmem_team_sync_on_stream(GPUSHMEM_TEAM_WORLD, NULL));
}

static void copies(gpushmem_team_t team, int nelems)
{
    const size_t n = (size_t)nelems;
    fill_source(n_pes * nelems);
    CHECK_OK(gpushmem_int_fcollect_on_stream(team, to, from, n, NULL));
    for (int k = 0; k < n_pes * nelems; k++)
        CHECK(to[k] == value(k / nelems, k % nelems));
    CHECK_OK(gpushmem_int_alltoall_on_stream(team, to, from, n, NULL));
    for (int k = 0; k < n_pes * nelems; k++)
        CHECK(to[k] == value(k / nelems, me * nelems + k % nelems));
    CHECK_OK(gpushmem_int_alltoalls_on_stream(team, to, from, 1, 1, n, NULL));
    CHECK(to[0] == value(0, me * nelems));
    CHECK_OK(gpushmem_int_collect_on_stream(team, to, from, me ? n : 0, NULL));
    for (int k = 0; k < (n_pes - 1) * nelems; k++)
        CHECK(to[k] == value(1 + k / nelems, k % nelems));
    const int *source = me == n_pes - 1 ? from : NULL; // looked at nowhere else
    CHECK_OK(gpushmem_int_broadcast_on_stream(team, to, source, n, n_pes - 1, NULL));
    for (int k = 0; k < nelems; k++)
        CHECK(to[k] == value(n_pes - 1, k));
    CHECK_OK(gpushmem_barrier_on_stream(team, NULL));
}

static int sum(int pes, int i)
{
    int result = 0;
    for (int pe = 0; pe < pes; pe++)
        result += value(pe, i);
    return result;
}

static void folds(gpushmem_team_t team, int nelems)
{
    const size_t n = (size_t)nelems;
    fill_source(n_pes * nelems);
    CHECK_OK(gpushmem_int_sum_reduce_on_stream(team, to, from, n, NULL));
    for (int k = 0; k < nelems; k++)
        CHECK(to[k] == sum(n_pes, k));
    CHECK_OK(gpushmem_int_sum_reducescatter_on_stream(team, to, from, n, NULL));
    for (int k = 0; k < nelems; k++)
        CHECK(to[k] == sum(n_pes, me * nelems + k));
    CHECK_OK(gpushmem_int_sum_exscan_on_stream(team, to, from, n, NULL));
    for (int k = 0; k < nelems; k++)
        CHECK(to[k] == sum(me, k));
    CHECK_OK(gpushmem_int_sum_inscan_on_stream(team, from, from, n, NULL));
    for (int k = 0; k < nelems; k++)
        CHECK(from[k] == sum(me + 1, k));
    CHECK_OK(gpushmem_int_max_reduce_on_stream(team, to, from, n, NULL));
    CHECK_OK(gpushmem_barrier_on_stream(team, NULL));
}

static void collectives(void)
{
    gpushmem_team_t all;
    gpushmem_stream_t foreign = (gpushmem_stream_t)(void *)&me;
    to = gpushmem_calloc((size_t)n_pes * MOST, sizeof *to);
    from = gpushmem_calloc((size_t)n_pes * MOST, sizeof *from);
    CHECK_OK(gpushmem_team_split_strided(GPUSHMEM_TEAM_WORLD, 0, 1, n_pes, NULL, 0, &all));
    for (int nelems = 1; nelems <= MOST; nelems += MOST - 1) {
        copies(GPUSHMEM_TEAM_WORLD, nelems);
        folds(all, nelems);
    }
    CHECK_OK(gpushmem_int_sum_reduce_on_stream(all, to, from, 0, NULL));
    CHECK(gpushmem_int_sum_reduce_on_stream(all, to, to + 1, 9, NULL) == GPUSHMEM_ERR_INVALID);
    CHECK(gpushmem_team_sync_on_stream(all, foreign) == GPUSHMEM_ERR_UNSUPPORTED);
    CHECK(strstr(gpushmem_last_error(), "nothing can be enqueued in stream"));
    CHECK_OK(gpushmem_team_destroy(all));
    CHECK(gpushmem_team_sync_on_stream(all, NULL) == GPUSHMEM_ERR_INVALID);
    CHECK(strstr(gpushmem_last_error(), "is no team of this PE"));
    CHECK(gpushmem_team_sync_on_stream(GPUSHMEM_TEAM_INVALID, NULL) == GPUSHMEM_ERR_INVALID);
    CHECK(strstr(gpushmem_last_error(), "the team is GPUSHMEM_TEAM_INVALID"));
    gpushmem_free(from);
    gpushmem_free(to);
}

int main(void)
{
    CHECK(gpushmem_putmem_on_stream(NULL, NULL, 0, 0, NULL) == GPUSHMEM_ERR_STATE);
    CHECK(gpushmem_barrier_all_on_stream(NULL) == GPUSHMEM_ERR_STATE);
    CHECK_OK(gpushmem_init());
    me = gpushmem_my_pe();
    n_pes = gpushmem_n_pes();
    right = (me + 1) % n_pes;
    left = (me + n_pes - 1) % n_pes;
    inbox = gpushmem_calloc(N, 16);
    outbox = gpushmem_calloc(N, 16);
    sig = gpushmem_calloc(1, sizeof *sig);
    all_types();
    gpushmem_stream_t foreign = (gpushmem_stream_t)(void *)&me;
    CHECK(gpushmem_putmem_on_stream(inbox, outbox, 1, me, foreign) == GPUSHMEM_ERR_UNSUPPORTED);
    CHECK(strstr(gpushmem_last_error(),
                 "gpushmem_putmem_on_stream: the symmetric heap is in host memory"));
    collectives();
    gpushmem_free(sig);
    gpushmem_free(outbox);
    gpushmem_free(inbox);
    CHECK_OK(gpushmem_finalize());
    CHECK(gpushmem_quiet_on_stream(NULL) == GPUSHMEM_ERR_STATE);
    return 0;
}
