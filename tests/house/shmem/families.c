// SPDX-License-Identifier: BSD-3-Clause
// Every family of OpenSHMEM 1.6 for every type, with data that is looked at: on static objects, by
// the typed names and by the generic ones.
#include "shmem_check.h"

enum { N = 6, MOST = 8 };

static int me, n, next, before;
static shmem_ctx_t ctx;
static uint64_t sig;

static void meet(void)
{
    shmem_barrier_all();
}

// ---- RMA ----

#define RMA_OF(NAME, TYPE)                                                                         \
    static void NAME##_forms(int with_ctx)                                                         \
    {                                                                                              \
        static TYPE dest[5 * N], source[5 * N];                                                    \
        TYPE here[5 * N];                                                                          \
        for (int i = 0; i < 5 * N; i++) {                                                          \
            source[i] = (TYPE)(me * 20 + i);                                                       \
            here[i] = dest[i] = 0;                                                                 \
        }                                                                                          \
        meet();                                                                                    \
        if (with_ctx) {                                                                            \
            shmem_ctx_##NAME##_put(ctx, dest, source, N, next);                                    \
            shmem_ctx_##NAME##_put_nbi(ctx, dest + N, source + N, 1, next);                        \
            shmem_ctx_##NAME##_p(ctx, dest + N + 1, source[N + 1], next);                          \
            shmem_ctx_##NAME##_iput(ctx, dest + 2 * N, source, 2, 3, 2, next);                     \
            shmem_ctx_##NAME##_ibput(ctx, dest + 4 * N, source, 3, 4, 2, 2, next);                 \
            shmem_ctx_##NAME##_put_signal(ctx, dest + 3 * N, source, 1, &sig, 1, SHMEM_SIGNAL_ADD, \
                                          next);                                                   \
            shmem_ctx_##NAME##_put_signal_nbi(ctx, dest + 3 * N + 1, source + 1, 1, &sig, 1,       \
                                              SHMEM_SIGNAL_ADD, next);                             \
            shmem_ctx_fence(ctx);                                                                  \
            shmem_ctx_quiet(ctx);                                                                  \
        } else {                                                                                   \
            shmem_##NAME##_put(dest, source, N, next);                                             \
            shmem_##NAME##_put_nbi(dest + N, source + N, 1, next);                                 \
            shmem_##NAME##_p(dest + N + 1, source[N + 1], next);                                   \
            shmem_##NAME##_iput(dest + 2 * N, source, 2, 3, 2, next);                              \
            shmem_##NAME##_ibput(dest + 4 * N, source, 3, 4, 2, 2, next);                          \
            shmem_##NAME##_put_signal(dest + 3 * N, source, 1, &sig, 1, SHMEM_SIGNAL_ADD, next);   \
            shmem_##NAME##_put_signal_nbi(dest + 3 * N + 1, source + 1, 1, &sig, 1,                \
                                          SHMEM_SIGNAL_ADD, next);                                 \
            shmem_fence();                                                                         \
        }                                                                                          \
        meet();                                                                                    \
        for (int i = 0; i < N + 2; i++)                                                            \
            CHECK(dest[i] == (TYPE)(before * 20 + i));                                             \
        CHECK(dest[2 * N] == (TYPE)(before * 20) && dest[2 * N + 1] == 0);                         \
        CHECK(dest[2 * N + 2] == (TYPE)(before * 20 + 3));                                         \
        for (int i = 0; i < 2; i++) {                                                              \
            CHECK(dest[4 * N + i] == (TYPE)(before * 20 + i));                                     \
            CHECK(dest[4 * N + 3 + i] == (TYPE)(before * 20 + 4 + i));                             \
        }                                                                                          \
        CHECK(dest[4 * N + 2] == 0 && dest[4 * N + 5] == 0);                                       \
        CHECK(dest[3 * N] == (TYPE)(before * 20) && dest[3 * N + 1] == (TYPE)(before * 20 + 1));   \
        CHECK(shmem_signal_fetch(&sig) == 2);                                                      \
        sig = 0;                                                                                   \
        if (with_ctx) {                                                                            \
            shmem_ctx_##NAME##_get(ctx, here, source, N, next);                                    \
            shmem_ctx_##NAME##_get_nbi(ctx, here + N, source + N, 2, next);                        \
            shmem_ctx_##NAME##_iget(ctx, here + 2 * N, source, 3, 2, 2, next);                     \
            shmem_ctx_##NAME##_ibget(ctx, here + 4 * N, source, 4, 3, 2, 2, next);                 \
            here[3 * N] = shmem_ctx_##NAME##_g(ctx, source + 3, next);                             \
            shmem_ctx_quiet(ctx);                                                                  \
        } else {                                                                                   \
            shmem_##NAME##_get(here, source, N, next);                                             \
            shmem_##NAME##_get_nbi(here + N, source + N, 2, next);                                 \
            shmem_##NAME##_iget(here + 2 * N, source, 3, 2, 2, next);                              \
            shmem_##NAME##_ibget(here + 4 * N, source, 4, 3, 2, 2, next);                          \
            here[3 * N] = shmem_##NAME##_g(source + 3, next);                                      \
            shmem_quiet();                                                                         \
        }                                                                                          \
        for (int i = 0; i < N + 2; i++)                                                            \
            CHECK(here[i] == (TYPE)(next * 20 + i));                                               \
        CHECK(here[2 * N] == (TYPE)(next * 20) && here[2 * N + 3] == (TYPE)(next * 20 + 2));       \
        for (int i = 0; i < 2; i++) {                                                              \
            CHECK(here[4 * N + i] == (TYPE)(next * 20 + i));                                       \
            CHECK(here[4 * N + 4 + i] == (TYPE)(next * 20 + 3 + i));                               \
        }                                                                                          \
        CHECK(here[4 * N + 2] == 0 && here[4 * N + 3] == 0);                                       \
        CHECK(here[3 * N] == (TYPE)(next * 20 + 3));                                               \
        meet();                                                                                    \
    }
GPSHM_ORDERED_TYPES(RMA_OF)
#define CALL_RMA(NAME, TYPE) NAME##_forms(0), NAME##_forms(1);

#define UNTYPED_OF(FORM, SIZE)                                                                     \
    static void form_##FORM(void)                                                                  \
    {                                                                                              \
        static char dest[4 * SIZE], source[4 * SIZE];                                              \
        char here[4 * SIZE];                                                                       \
        memset(source, 'a' + me, sizeof source);                                                   \
        memset(dest, 0, sizeof dest);                                                              \
        meet();                                                                                    \
        shmem_put##FORM(dest, source, 1, next);                                                    \
        shmem_ctx_put##FORM##_nbi(ctx, dest + SIZE, source, 1, next);                              \
        shmem_put##FORM##_signal(dest + 2 * SIZE, source, 1, &sig, 7, SHMEM_SIGNAL_SET, next);     \
        shmem_ctx_put##FORM##_signal_nbi(ctx, dest + 3 * SIZE, source, 1, &sig, 7,                 \
                                         SHMEM_SIGNAL_SET, next);                                  \
        shmem_ctx_quiet(ctx);                                                                      \
        meet();                                                                                    \
        CHECK(sig == 7);                                                                           \
        sig = 0;                                                                                   \
        memset(here, 'a' + before, sizeof here);                                                   \
        CHECK(memcmp(here, dest, 3 * SIZE + 1) == 0);                                              \
        shmem_get##FORM(here, source, 1, next);                                                    \
        shmem_ctx_get##FORM##_nbi(ctx, here + SIZE, source, 1, next);                              \
        shmem_ctx_quiet(ctx);                                                                      \
        CHECK(here[0] == 'a' + next && here[SIZE] == 'a' + next &&                                 \
              here[2 * SIZE] == 'a' + before);                                                     \
        meet();                                                                                    \
    }
UNTYPED_OF(8, 1)
UNTYPED_OF(16, 2)
UNTYPED_OF(32, 4)
UNTYPED_OF(64, 8)
UNTYPED_OF(128, 16)
UNTYPED_OF(mem, 1)

static void strided_sizes(void)
{
    static uint16_t dest[8], source[8];
    uint16_t here[8] = {0};
    for (int i = 0; i < 8; i++)
        source[i] = (uint16_t)(me * 100 + i);
    meet();
    shmem_iput16(dest, source, 2, 1, 4, next);
    shmem_ctx_iget16(ctx, here, source, 1, 2, 4, next);
    meet();
    CHECK(dest[6] == before * 100 + 3 && here[3] == next * 100 + 6);
    meet();
}

#define BLOCKS_OF(BITS, SIZE)                                                                      \
    static void blocks_of_##BITS(void)                                                             \
    {                                                                                              \
        static char dest[6 * SIZE], source[6 * SIZE];                                              \
        char here[6 * SIZE];                                                                       \
        for (int i = 0; i < 6; i++)                                                                \
            memset(source + i * SIZE, 'a' + me + 4 * i, SIZE);                                     \
        memset(dest, 0, sizeof dest);                                                              \
        memset(here, 0, sizeof here);                                                              \
        meet();                                                                                    \
        shmem_ibput##BITS(dest, source, 3, 2, 1, 2, next);                                         \
        shmem_ctx_ibput##BITS(ctx, dest + 4 * SIZE, source + 4 * SIZE, 2, 2, 2, 1, next);          \
        shmem_ibget##BITS(here, source, 2, 3, 1, 2, next);                                         \
        shmem_ctx_ibget##BITS(ctx, here + 4 * SIZE, source + 4 * SIZE, 2, 2, 2, 1, next);          \
        shmem_ctx_quiet(ctx);                                                                      \
        meet();                                                                                    \
        const char at[6] = {'a', 0, 0, 'a' + 8, 'a' + 16, 'a' + 20};                               \
        const char got[6] = {'a', 0, 'a' + 12, 0, 'a' + 16, 'a' + 20};                             \
        for (int i = 0; i < 6; i++) {                                                              \
            CHECK(dest[i * SIZE] == (at[i] ? at[i] + before : 0));                                 \
            CHECK(dest[i * SIZE + SIZE - 1] == dest[i * SIZE]);                                    \
            CHECK(here[i * SIZE + SIZE - 1] == (got[i] ? got[i] + next : 0));                      \
        }                                                                                          \
        meet();                                                                                    \
    }
BLOCKS_OF(8, 1)
BLOCKS_OF(16, 2)
BLOCKS_OF(32, 4)
BLOCKS_OF(64, 8)
BLOCKS_OF(128, 16)

// Signals alone, with a context and without, by the typed and the generic names.
static void signals(void)
{
    static uint64_t set, added;
    meet();
    shmem_signal_set(&set, 7, next);
    (shmem_signal_add)(&added, 2, next);
    shmem_signal_add(ctx, &added, 3, next);
    CHECK(shmem_signal_wait_until(&set, SHMEM_CMP_NE, 0) == 7);
    CHECK(shmem_signal_wait_until(&added, SHMEM_CMP_GE, 5) == 5);
    shmem_ctx_quiet(ctx);
    meet();
    shmem_ctx_signal_set(ctx, &set, 9 + (uint64_t)me, next);
    shmem_ctx_signal_add(ctx, &added, 1, next);
    shmem_ctx_quiet(ctx);
    meet();
    CHECK(shmem_signal_fetch(&set) == 9 + (uint64_t)before && shmem_signal_fetch(&added) == 6);
    meet();
}

// ---- Atomics ----

#define EXTENDED_OF(NAME, TYPE)                                                                    \
    static void NAME##_moves(void)                                                                 \
    {                                                                                              \
        static TYPE word;                                                                          \
        static TYPE got;                                                                           \
        word = (TYPE)me;                                                                           \
        meet();                                                                                    \
        CHECK(shmem_##NAME##_atomic_fetch(&word, next) == (TYPE)next);                             \
        shmem_ctx_##NAME##_atomic_fetch_nbi(ctx, &got, &word, next);                               \
        shmem_ctx_quiet(ctx);                                                                      \
        CHECK(got == (TYPE)next);                                                                  \
        meet();                                                                                    \
        shmem_##NAME##_atomic_set(&word, (TYPE)(me + 10), next);                                   \
        shmem_quiet();                                                                             \
        CHECK(shmem_##NAME##_atomic_swap(&word, (TYPE)5, next) == (TYPE)(me + 10));                \
        shmem_##NAME##_atomic_swap_nbi(&got, &word, (TYPE)6, next);                                \
        shmem_quiet();                                                                             \
        CHECK(got == (TYPE)5 && shmem_ctx_##NAME##_atomic_fetch(ctx, &word, next) == (TYPE)6);     \
        meet();                                                                                    \
    }
GPUSHMEM_AMO_EXTENDED_TYPES(EXTENDED_OF)
#define CALL_EXTENDED(NAME, TYPE) NAME##_moves();

#define AMO_OF(NAME, TYPE)                                                                         \
    static void NAME##_sums(void)                                                                  \
    {                                                                                              \
        static TYPE word, mine;                                                                    \
        static TYPE got[3];                                                                        \
        word = mine = 0;                                                                           \
        meet();                                                                                    \
        shmem_##NAME##_atomic_inc(&word, 0);                                                       \
        shmem_ctx_##NAME##_atomic_add(ctx, &word, 2, 0);                                           \
        (void)shmem_##NAME##_atomic_fetch_inc(&word, 0);                                           \
        (void)shmem_ctx_##NAME##_atomic_fetch_add(ctx, &word, 3, 0);                               \
        shmem_ctx_quiet(ctx);                                                                      \
        CHECK(shmem_##NAME##_atomic_compare_swap(&mine, 0, 4, next) == 0);                         \
        CHECK(shmem_##NAME##_atomic_compare_swap(&mine, 9, 5, next) == 4);                         \
        shmem_##NAME##_atomic_compare_swap_nbi(&got[0], &mine, 4, 6, next);                        \
        shmem_quiet();                                                                             \
        shmem_##NAME##_atomic_fetch_inc_nbi(&got[1], &mine, next);                                 \
        shmem_quiet();                                                                             \
        shmem_##NAME##_atomic_fetch_add_nbi(&got[2], &mine, 3, next);                              \
        shmem_quiet();                                                                             \
        CHECK(got[0] == 4 && got[1] == 6 && got[2] == 7);                                          \
        meet();                                                                                    \
        CHECK(mine == 10 && (me || word == (TYPE)(7 * n)));                                        \
        meet();                                                                                    \
    }
GPUSHMEM_AMO_TYPES(AMO_OF)
#define CALL_AMO(NAME, TYPE) NAME##_sums();

#define BITS_OF(NAME, TYPE)                                                                        \
    static void NAME##_bitwise(void)                                                               \
    {                                                                                              \
        static TYPE word, got;                                                                     \
        word = 0xf0;                                                                               \
        meet();                                                                                    \
        CHECK(shmem_##NAME##_atomic_fetch_and(&word, 0x70, next) == 0xf0);                         \
        CHECK(shmem_ctx_##NAME##_atomic_fetch_or(ctx, &word, 0x01, next) == 0x70);                 \
        CHECK(shmem_##NAME##_atomic_fetch_xor(&word, 0x03, next) == 0x71);                         \
        shmem_##NAME##_atomic_and(&word, 0x32, next);                                              \
        shmem_##NAME##_atomic_or(&word, 0x04, next);                                               \
        shmem_##NAME##_atomic_xor(&word, 0x80, next);                                              \
        shmem_quiet();                                                                             \
        shmem_##NAME##_atomic_fetch_and_nbi(&got, &word, 0xff, next);                              \
        shmem_quiet();                                                                             \
        CHECK(got == 0xb6);                                                                        \
        shmem_##NAME##_atomic_fetch_or_nbi(&got, &word, 0x08, next);                               \
        shmem_quiet();                                                                             \
        shmem_##NAME##_atomic_fetch_xor_nbi(&got, &word, 0x08, next);                              \
        shmem_quiet();                                                                             \
        CHECK(got == 0xbe);                                                                        \
        meet();                                                                                    \
        CHECK(word == 0xb6);                                                                       \
    }
GPUSHMEM_AMO_BITWISE_TYPES(BITS_OF)
#define CALL_BITS(NAME, TYPE) NAME##_bitwise();

// ---- Waiting ----

#define WAIT_OF(NAME, TYPE)                                                                        \
    static void NAME##_waits(void)                                                                 \
    {                                                                                              \
        static TYPE words[3];                                                                      \
        const int none[3] = {0, 1, 0};                                                             \
        TYPE values[3] = {5, 6, 7};                                                                \
        size_t found[3];                                                                           \
        memset(words, 0, sizeof words);                                                            \
        meet();                                                                                    \
        CHECK(!shmem_##NAME##_test(words, SHMEM_CMP_NE, 0));                                       \
        CHECK(!shmem_##NAME##_test_all(words, 3, none, SHMEM_CMP_GE, 5));                          \
        CHECK(shmem_##NAME##_test_any(words, 3, NULL, SHMEM_CMP_GT, 9) == SIZE_MAX);               \
        CHECK(shmem_##NAME##_test_some(words, 3, found, NULL, SHMEM_CMP_LT, 0) == 0);              \
        meet();                                                                                    \
        for (int i = 0; i < 3; i++)                                                                \
            shmem_putmem(&words[i], &values[i], sizeof(TYPE), next);                               \
        shmem_##NAME##_wait_until(words, SHMEM_CMP_EQ, 5);                                         \
        shmem_##NAME##_wait_until_all(words, 3, none, SHMEM_CMP_GE, 5);                            \
        shmem_##NAME##_wait_until_all_vector(words, 3, NULL, SHMEM_CMP_EQ, values);                \
        CHECK(shmem_##NAME##_wait_until_any(words, 3, NULL, SHMEM_CMP_EQ, 7) == 2);                \
        CHECK(shmem_##NAME##_wait_until_some(words, 3, found, none, SHMEM_CMP_LE, 7) == 2);        \
        CHECK(found[0] == 0 && found[1] == 2);                                                     \
        values[0] = 1;                                                                             \
        CHECK(shmem_##NAME##_wait_until_any_vector(words, 2, NULL, SHMEM_CMP_EQ, values) == 1);    \
        CHECK(shmem_##NAME##_wait_until_some_vector(words, 3, found, NULL, SHMEM_CMP_EQ,           \
                                                    values) == 2);                                 \
        CHECK(shmem_##NAME##_test_all_vector(words, 3, NULL, SHMEM_CMP_GE, values) == 1);          \
        CHECK(shmem_##NAME##_test_any_vector(words, 2, NULL, SHMEM_CMP_EQ, values) == 1);          \
        CHECK(shmem_##NAME##_test_some_vector(words, 3, found, NULL, SHMEM_CMP_EQ, values) == 2);  \
        meet();                                                                                    \
    }
GPUSHMEM_SYNC_TYPES(WAIT_OF)
#define CALL_WAIT(NAME, TYPE) NAME##_waits();

// ---- Collectives of teams ----

#define MOVE_OF(NAME, TYPE)                                                                        \
    static void NAME##_collectives(shmem_team_t team)                                              \
    {                                                                                              \
        static TYPE dest[2 * MOST], source[2 * MOST];                                              \
        int all = shmem_team_n_pes(team), rank = shmem_team_my_pe(team);                           \
        for (int i = 0; i < 2 * MOST; i++) {                                                       \
            source[i] = (TYPE)(rank * 10 + i);                                                     \
            dest[i] = 0;                                                                           \
        }                                                                                          \
        CHECK(shmem_##NAME##_broadcast(team, dest, source, 2, all - 1) == 0);                      \
        CHECK(dest[0] == (TYPE)((all - 1) * 10) && dest[1] == (TYPE)((all - 1) * 10 + 1));         \
        CHECK(shmem_##NAME##_collect(team, dest, source, rank == 0 ? 2 : 1) == 0);                 \
        CHECK(dest[0] == 0 && dest[1] == 1 && dest[all] == (TYPE)((all - 1) * 10 + (all == 1)));   \
        CHECK(shmem_##NAME##_fcollect(team, dest, source, 1) == 0);                                \
        CHECK(dest[all - 1] == (TYPE)((all - 1) * 10));                                            \
        CHECK(shmem_##NAME##_alltoall(team, dest, source, 1) == 0);                                \
        CHECK(dest[all - 1] == (TYPE)((all - 1) * 10 + rank));                                     \
        CHECK(shmem_##NAME##_alltoalls(team, dest, source, 1, 2, 1) == 0);                         \
        CHECK(dest[all - 1] == (TYPE)((all - 1) * 10 + 2 * rank));                                 \
        CHECK(shmem_team_sync(team) == 0);                                                         \
    }
GPSHM_ORDERED_TYPES(MOVE_OF)
#define CALL_MOVE(NAME, TYPE) NAME##_collectives(SHMEM_TEAM_WORLD);

static void moves_of_bytes(shmem_team_t team)
{
    static char dest[4 * MOST], source[4 * MOST];
    for (int i = 0; i < 4 * MOST; i++)
        source[i] = (char)('a' + me);
    CHECK(shmem_broadcastmem(team, dest, source, 3, n - 1) == 0 && dest[2] == 'a' + n - 1);
    CHECK(shmem_collectmem(team, dest, source, 1) == 0 && dest[n - 1] == 'a' + n - 1);
    CHECK(shmem_fcollectmem(team, dest, source, 2) == 0 && dest[2 * n - 1] == 'a' + n - 1);
    CHECK(shmem_alltoallmem(team, dest, source, 2) == 0 && dest[0] == 'a');
    CHECK(shmem_alltoallsmem(team, dest, source, 2, 1, 1) == 0 && dest[2 * n - 2] == 'a' + n - 1);
    CHECK(shmem_sync(team) == 0);
}

#define REDUCE_OF(NAME, TYPE, OP, EXPECTED)                                                        \
    {                                                                                              \
        static TYPE dest[2], source[2];                                                            \
        source[0] = source[1] = (TYPE)(me + 1);                                                    \
        CHECK(shmem_##NAME##_##OP##_reduce(SHMEM_TEAM_WORLD, dest, source, 2) == 0);               \
        CHECK(dest[0] == (TYPE)(EXPECTED) && dest[1] == (TYPE)(EXPECTED));                         \
    }
#define SCAN_OF(NAME, TYPE)                                                                        \
    {                                                                                              \
        static TYPE in[2], ex[2], source[2];                                                       \
        source[0] = (TYPE)(me + 1), source[1] = (TYPE)1;                                           \
        CHECK(shmem_##NAME##_sum_inscan(SHMEM_TEAM_WORLD, in, source, 2) == 0);                    \
        CHECK(shmem_##NAME##_sum_exscan(SHMEM_TEAM_WORLD, ex, source, 2) == 0);                    \
        CHECK(in[0] == (TYPE)((me + 1) * (me + 2) / 2) && in[1] == (TYPE)(me + 1));                \
        CHECK(ex[0] == (TYPE)(me * (me + 1) / 2) && ex[1] == (TYPE)me);                            \
    }
static int sum, product, and_of_all, or_of_all, xor_of_all;
#define CALL_FOLD_BITS(NAME, TYPE)                                                                 \
    REDUCE_OF(NAME, TYPE, and, and_of_all)                                                         \
    REDUCE_OF(NAME, TYPE, or, or_of_all)                                                           \
    REDUCE_OF(NAME, TYPE, xor, xor_of_all)
#define CALL_FOLD_ORDER(NAME, TYPE)                                                                \
    REDUCE_OF(NAME, TYPE, min, 1)                                                                  \
    REDUCE_OF(NAME, TYPE, max, n)
#define CALL_FOLD(NAME, TYPE)                                                                      \
    REDUCE_OF(NAME, TYPE, sum, sum)                                                                \
    REDUCE_OF(NAME, TYPE, prod, product)

static void reductions(void)
{
    product = 1, and_of_all = -1;
    for (int i = 1; i <= n; i++) {
        sum += i;
        product *= i;
        and_of_all &= i;
        or_of_all |= i;
        xor_of_all ^= i;
    }
    GPUSHMEM_INTEGER_TYPES(CALL_FOLD_BITS)
    GPSHM_ORDERED_TYPES(CALL_FOLD_ORDER)
    GPSHM_ARITHMETIC_TYPES(CALL_FOLD)
    GPSHM_ARITHMETIC_TYPES(SCAN_OF)
}

// ---- Generic names ----

static void generics(void)
{
    static double numbers[2], ours[2] = {1.5, 2.5};
    static long double wide;
    static unsigned counter;
    static long flag, sums;
    numbers[0] = numbers[1] = 0;
    flag = 0;
    counter = 0;
    meet();
    shmem_put(numbers, ours, 1, next);
    shmem_put(ctx, numbers + 1, ours + 1, 1, next);
    shmem_p(&wide, 2.25L, next);
    shmem_ctx_quiet(ctx);
    shmem_atomic_add(&counter, 2u, 0);
    shmem_atomic_inc(ctx, &counter, 0);
    shmem_ctx_quiet(ctx);
    meet();
    CHECK(numbers[0] == 1.5 && numbers[1] == 2.5 && wide == 2.25L && shmem_g(&wide, next) == 2.25L);
    CHECK(me || counter == 3u * (unsigned)n);
    CHECK(shmem_atomic_fetch(ctx, &counter, 0) == 3u * (unsigned)n);
    shmem_p(&flag, 1L + me, next);
    shmem_wait_until(&flag, SHMEM_CMP_EQ, 1L + before);
    CHECK(shmem_test(&flag, SHMEM_CMP_GT, 0L) == 1);
    CHECK(shmem_sum_reduce(SHMEM_TEAM_WORLD, &sums, &flag, 1) == 0 && sums == sum);
    CHECK(shmem_broadcast(SHMEM_TEAM_WORLD, numbers, ours, 2, 0) == 0);
    CHECK(shmem_sum_inscan(SHMEM_TEAM_WORLD, &sums, &flag, 1) == 0);
    CHECK(sums == (me == 0 ? 1L + before : (long)n + me * (me + 1L) / 2));
    CHECK(shmem_sum_exscan(SHMEM_TEAM_WORLD, numbers, ours, 1) == 0 && numbers[0] == 1.5 * me);
    meet();
    shmem_ibput(&wide, (long double[]){4.5L}, 1, 1, 1, 1, next);
    shmem_ibget(ctx, ours, numbers, 2, 2, 2, 1, next);
    meet();
    CHECK(wide == 4.5L && ours[0] == 1.5 * next && ours[1] == 2.5);
    meet();
}

// ---- Everything else ----

static void lifecycle(void)
{
    int major, minor, level, joined = 0;
    shmem_query_initialized(&joined);
    CHECK(joined != 0);
    char name[SHMEM_MAX_NAME_LEN];
    shmem_info_get_version(&major, &minor);
    CHECK(major == SHMEM_MAJOR_VERSION && minor == SHMEM_MINOR_VERSION);
    shmem_info_get_name(name);
    CHECK(strcmp(name, SHMEM_VENDOR_STRING) == 0);
    shmem_query_thread(&level);
    CHECK(level == SHMEM_THREAD_MULTIPLE);
    CHECK(shmem_pe_accessible(next) && !shmem_pe_accessible(n));
    CHECK(shmem_addr_accessible(&sig, next) && !shmem_addr_accessible(&major, next));
}

// One finalize for each init: the first one of two ends nothing.
static void counted(void)
{
    int joined = 0;
    shmem_init();
    shmem_finalize();
    shmem_query_initialized(&joined);
    CHECK(joined != 0 && shmem_my_pe() == me);
}

// Hints: what is not known has no effect, nor has a context that is none.
static void sessions(void)
{
    static long words[4];
    const shmem_ctx_session_config_t config = {.total_ops = 4};
    meet();
    shmem_ctx_session_start(ctx, SHMEM_CTX_SESSION_BATCH, &config, SHMEM_CTX_SESSION_TOTAL_OPS);
    shmem_ctx_session_start(ctx, -1L, NULL, -1L);
    for (int i = 0; i < 4; i++)
        shmem_ctx_long_p(ctx, &words[i], me + i, next);
    shmem_ctx_session_stop(ctx);
    shmem_ctx_session_stop(ctx);
    shmem_ctx_session_start(SHMEM_CTX_INVALID, 0, NULL, 0);
    shmem_ctx_session_stop(SHMEM_CTX_INVALID);
    shmem_ctx_pe_quiet(ctx, &next, 1);
    shmem_pe_quiet(NULL, 0);
    shmem_long_p(&words[0], me + 10, next);
    shmem_pe_quiet(&next, 1);
    CHECK(shmem_long_g(&words[3], next) == me + 3 && shmem_long_g(&words[0], next) == me + 10);
    meet();
}

static void memory(void)
{
    long *a = shmem_malloc(3 * sizeof *a), *b = shmem_calloc(4, sizeof *b);
    char *c = shmem_align(4096, 10), *d = shmem_malloc_with_hints(8, SHMEM_MALLOC_SIGNAL_REMOTE);
    CHECK(a && b && c && d && b[3] == 0 && (uintptr_t)c % 4096 == 0);
    CHECK(shmem_ptr(a, me) == a && shmem_malloc(0) == NULL);
    shmem_long_p(&a[1], me + 1L, next);
    meet();
    a = shmem_realloc(a, 1000 * sizeof *a);
    CHECK(a && a[1] == before + 1L);
    char *hinted = shmem_malloc_with_hints(8, -1L); // hints of another version
    CHECK(hinted);
    shmem_free(hinted);
    shmem_free(a);
    shmem_free(b);
    shmem_free(c);
    shmem_free(d);
}

static void teams_and_contexts(void)
{
    shmem_team_t odd, of_ctx, x, y;
    shmem_team_config_t config = {.num_contexts = 1};
    shmem_ctx_t c;
    static int word;
    CHECK(shmem_team_my_pe(SHMEM_TEAM_WORLD) == me && shmem_team_n_pes(SHMEM_TEAM_SHARED) >= 1);
    CHECK(shmem_team_my_pe(SHMEM_TEAM_INVALID) == -1);
    CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, n - 1, -1, n, &config, SHMEM_TEAM_NUM_CONTEXTS,
                                   &odd) == 0);
    CHECK(shmem_team_my_pe(odd) == n - 1 - me);
    CHECK(shmem_team_ptr(odd, &word, n - 1 - me) == &word);
    CHECK(shmem_team_ptr(SHMEM_TEAM_INVALID, &word, 0) == NULL);
    CHECK(shmem_team_translate_pe(odd, 0, SHMEM_TEAM_WORLD) == n - 1);
    config.num_contexts = 0;
    CHECK(shmem_team_get_config(odd, SHMEM_TEAM_NUM_CONTEXTS, &config) == 0);
    CHECK(config.num_contexts == 1);
    CHECK(shmem_team_create_ctx(odd, SHMEM_CTX_SERIALIZED, &c) == 0);
    CHECK(shmem_ctx_get_team(c, &of_ctx) == 0 && of_ctx == odd);
    CHECK(shmem_ctx_get_team(SHMEM_CTX_INVALID, &of_ctx) != 0 && of_ctx == SHMEM_TEAM_INVALID);
    shmem_ctx_int_p(c, &word, me + 1, n - 1 - next); // rank of `next`
    shmem_ctx_quiet(c);
    meet();
    CHECK(word == before + 1);
    shmem_ctx_destroy(c);
    CHECK(shmem_team_split_2d(odd, 2, NULL, 0, &x, NULL, 0, &y) == 0);
    CHECK(shmem_team_n_pes(x) <= 2 && shmem_team_n_pes(y) >= 1);
    long_collectives(odd);
    shmem_team_destroy(x);
    shmem_team_destroy(y);
    shmem_team_destroy(odd);
}

static void locks(void)
{
    static long lock, total;
    for (int i = 0; i < 20; i++) {
        shmem_set_lock(&lock);
        shmem_long_p(&total, shmem_long_g(&total, 0) + 1, 0);
        shmem_clear_lock(&lock);
    }
    meet();
    CHECK(shmem_long_g(&total, 0) == 20L * n);
    meet();
    if (me == 0)
        CHECK(shmem_test_lock(&lock) == 0);
    meet();
    CHECK(me == 0 || shmem_test_lock(&lock) == 1);
    meet();
    if (me == 0)
        shmem_clear_lock(&lock);
}

int main(void)
{
    int level;
    CHECK(shmem_init_thread(SHMEM_THREAD_MULTIPLE, &level) == 0);
    me = shmem_my_pe();
    n = shmem_n_pes();
    next = (me + 1) % n;
    before = (me + n - 1) % n;
    lifecycle();
    counted();
    CHECK(shmem_ctx_create(0, &ctx) == 0);
    GPSHM_ORDERED_TYPES(CALL_RMA)
    form_8(), form_16(), form_32(), form_64(), form_128(), form_mem();
    strided_sizes();
    blocks_of_8(), blocks_of_16(), blocks_of_32(), blocks_of_64(), blocks_of_128();
    signals();
    GPUSHMEM_AMO_EXTENDED_TYPES(CALL_EXTENDED)
    GPUSHMEM_AMO_TYPES(CALL_AMO)
    GPUSHMEM_AMO_BITWISE_TYPES(CALL_BITS)
    GPUSHMEM_SYNC_TYPES(CALL_WAIT)
    GPSHM_ORDERED_TYPES(CALL_MOVE)
    moves_of_bytes(SHMEM_TEAM_WORLD);
    reductions();
    generics();
    sessions();
    memory();
    teams_and_contexts();
    locks();
    shmem_ctx_destroy(ctx);
    shmem_sync_all();
    shmem_finalize();
    int joined = 1;
    shmem_query_initialized(&joined);
    CHECK(joined == 0);
    if (me == 0)
        puts("families: ok");
    return 0;
}
