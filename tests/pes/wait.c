// SPDX-License-Identifier: BSD-3-Clause
// wait_until and test over every type: comparisons with their signs, sets, exclusion, empty sets,
// fairness, acquire.
#include "check.h"

enum { N = 5 };

static char *area;
static int me, n_pes;

// What each comparison says of a word below, at and above the value it is compared with.
static const bool truth[6][3] = {
    [GPUSHMEM_CMP_EQ] = {0, 1, 0}, [GPUSHMEM_CMP_NE] = {1, 0, 1}, [GPUSHMEM_CMP_GT] = {0, 0, 1},
    [GPUSHMEM_CMP_GE] = {0, 1, 1}, [GPUSHMEM_CMP_LT] = {1, 0, 0}, [GPUSHMEM_CMP_LE] = {1, 1, 0},
};

#define DEFINE_COMPARISONS(NAME, TYPE)                                                             \
    static void NAME##_comparisons(void)                                                           \
    {                                                                                              \
        const bool is_signed = (TYPE)-1 < (TYPE)1;                                                 \
        const TYPE high = (TYPE)((TYPE)1 << (8 * sizeof(TYPE) - 2));                               \
        /* signed: -high < -1 < high; unsigned: those are the large ones */                        \
        const TYPE low = is_signed ? (TYPE)-high : 1, middle = is_signed ? (TYPE)-1 : high;        \
        const TYPE words[3] = {low, middle, is_signed ? high : (TYPE)-1};                          \
        TYPE *var = (TYPE *)(void *)area;                                                          \
        for (int k = 0; k < 3; ++k) {                                                              \
            CHECK_OK(gpushmem_##NAME##_p(var, words[k], me));                                      \
            CHECK_OK(gpushmem_quiet());                                                            \
            for (int cmp = GPUSHMEM_CMP_EQ; cmp <= GPUSHMEM_CMP_GE; ++cmp) {                       \
                CHECK_THAT(gpushmem_##NAME##_test(var, cmp, middle) == truth[cmp][k],              \
                           "cmp %d, word %d", cmp, k);                                             \
                if (truth[cmp][k])                                                                 \
                    CHECK_OK(gpushmem_##NAME##_wait_until(var, cmp, middle));                      \
            }                                                                                      \
        }                                                                                          \
    }

// On this PE alone: words 0 .. N-1 hold 10, 11 ..; what the set functions find among them.
#define DEFINE_SETS(NAME, TYPE)                                                                    \
    static void NAME##_sets(void)                                                                  \
    {                                                                                              \
        TYPE *vars = (TYPE *)(void *)area, values[N], each[N];                                     \
        const int none[N] = {1, 1, 1, 1, 1}, ends[N] = {1, 0, 0, 0, 1};                            \
        size_t at[N];                                                                              \
        for (int i = 0; i < N; ++i) {                                                              \
            values[i] = (TYPE)(10 + i);                                                            \
            each[i] = (TYPE)(i % 2 ? 10 + i : 0);                                                  \
        }                                                                                          \
        CHECK_OK(gpushmem_##NAME##_put(vars, values, N, me));                                      \
        CHECK_OK(gpushmem_quiet());                                                                \
        CHECK_OK(gpushmem_##NAME##_wait_until_all(vars, N, NULL, GPUSHMEM_CMP_GE, 10));            \
        CHECK_OK(gpushmem_##NAME##_wait_until_all(vars, N, ends, GPUSHMEM_CMP_NE, 14));            \
        CHECK_OK(gpushmem_##NAME##_wait_until_all_vector(vars, N, NULL, GPUSHMEM_CMP_EQ, values)); \
        CHECK(gpushmem_##NAME##_test_all(vars, N, NULL, GPUSHMEM_CMP_GT, 10) == 0);                \
        CHECK(gpushmem_##NAME##_test_all(vars, N, ends, GPUSHMEM_CMP_GT, 10) == 1);                \
        CHECK(gpushmem_##NAME##_test_all_vector(vars, N, NULL, GPUSHMEM_CMP_EQ, values) == 1);     \
        CHECK(gpushmem_##NAME##_test_all_vector(vars, N, NULL, GPUSHMEM_CMP_EQ, each) == 0);       \
        CHECK(gpushmem_##NAME##_wait_until_any(vars, N, NULL, GPUSHMEM_CMP_EQ, 12) == 2);          \
        CHECK(gpushmem_##NAME##_wait_until_any_vector(vars, N, ends, GPUSHMEM_CMP_GT, each) == 2); \
        CHECK(gpushmem_##NAME##_test_any(vars, N, NULL, GPUSHMEM_CMP_EQ, 14) == 4);                \
        CHECK(gpushmem_##NAME##_test_any(vars, N, ends, GPUSHMEM_CMP_EQ, 14) == SIZE_MAX);         \
        CHECK(gpushmem_##NAME##_test_any_vector(vars, N, (const int[N]){0, 0, 0, 1, 0},            \
                                                GPUSHMEM_CMP_EQ, each) == 1);                      \
        CHECK(gpushmem_##NAME##_wait_until_some(vars, N, at, NULL, GPUSHMEM_CMP_LE, 11) == 2);     \
        CHECK(at[0] == 0 && at[1] == 1);                                                           \
        CHECK(gpushmem_##NAME##_wait_until_some_vector(vars, N, at, NULL, GPUSHMEM_CMP_EQ,         \
                                                       each) == 2);                                \
        CHECK(at[0] == 1 && at[1] == 3);                                                           \
        CHECK(gpushmem_##NAME##_test_some(vars, N, at, ends, GPUSHMEM_CMP_GE, 13) == 1 &&          \
              at[0] == 3);                                                                         \
        CHECK(gpushmem_##NAME##_test_some_vector(vars, N, at, ends, GPUSHMEM_CMP_NE, each) == 1 && \
              at[0] == 2);                                                                         \
        size_t index = 0, count = 0;                                                               \
        CHECK_OK(                                                                                  \
            gpushmem_##NAME##_wait_until_any_status(vars, N, ends, GPUSHMEM_CMP_LT, 12, &index));  \
        CHECK(index == 1);                                                                         \
        CHECK_OK(gpushmem_##NAME##_wait_until_any_vector_status(vars, N, ends, GPUSHMEM_CMP_GT,    \
                                                                each, &index));                    \
        CHECK(index == 2);                                                                         \
        CHECK_OK(gpushmem_##NAME##_wait_until_some_status(vars, N, at, ends, GPUSHMEM_CMP_GE, 12,  \
                                                          &count));                                \
        CHECK(count == 2 && at[0] == 2 && at[1] == 3);                                             \
        CHECK_OK(gpushmem_##NAME##_wait_until_some_vector_status(vars, N, at, NULL,                \
                                                                 GPUSHMEM_CMP_EQ, each, &count));  \
        CHECK(count == 2 && at[0] == 1 && at[1] == 3);                                             \
        CHECK_OK(gpushmem_##NAME##_test_any_status(vars, N, ends, GPUSHMEM_CMP_EQ, 14, &index));   \
        CHECK(index == SIZE_MAX);                                                                  \
        CHECK_OK(gpushmem_##NAME##_test_any_vector_status(vars, N, ends, GPUSHMEM_CMP_EQ, each,    \
                                                          &index));                                \
        CHECK(index == 1 || index == 3);                                                           \
        CHECK_OK(                                                                                  \
            gpushmem_##NAME##_test_some_status(vars, N, at, ends, GPUSHMEM_CMP_EQ, 14, &count));   \
        CHECK(count == 0);                                                                         \
        CHECK_OK(gpushmem_##NAME##_test_some_vector_status(vars, N, at, ends, GPUSHMEM_CMP_NE,     \
                                                           each, &count));                         \
        CHECK(count == 1 && at[0] == 2);                                                           \
        CHECK_OK(                                                                                  \
            gpushmem_##NAME##_wait_until_any_status(vars, N, none, GPUSHMEM_CMP_EQ, 99, &index));  \
        CHECK(index == SIZE_MAX);                                                                  \
        CHECK_OK(gpushmem_##NAME##_wait_until_some_status(vars, N, at, none, GPUSHMEM_CMP_EQ, 99,  \
                                                          &count));                                \
        CHECK(count == 0);                                                                         \
        /* empty sets: no elements, or none left */                                                \
        for (int k = 0; k < 2; ++k) {                                                              \
            TYPE *from = k ? vars : NULL;                                                          \
            size_t n = k ? N : 0;                                                                  \
            CHECK_OK(gpushmem_##NAME##_wait_until_all(from, n, none, GPUSHMEM_CMP_EQ, 99));        \
            CHECK_OK(                                                                              \
                gpushmem_##NAME##_wait_until_all_vector(from, n, none, GPUSHMEM_CMP_LT, values));  \
            CHECK(gpushmem_##NAME##_wait_until_any(from, n, none, GPUSHMEM_CMP_EQ, 99) ==          \
                  SIZE_MAX);                                                                       \
            CHECK(gpushmem_##NAME##_wait_until_any_vector(from, n, none, GPUSHMEM_CMP_LT,          \
                                                          values) == SIZE_MAX);                    \
            CHECK(gpushmem_##NAME##_wait_until_some(from, n, at, none, GPUSHMEM_CMP_EQ, 99) == 0); \
            CHECK(gpushmem_##NAME##_wait_until_some_vector(from, n, at, none, GPUSHMEM_CMP_LT,     \
                                                           values) == 0);                          \
            CHECK(gpushmem_##NAME##_test_all(from, n, none, GPUSHMEM_CMP_EQ, 99) == 1);            \
            CHECK(gpushmem_##NAME##_test_all_vector(from, n, none, GPUSHMEM_CMP_LT, values) == 1); \
            CHECK(gpushmem_##NAME##_test_any(from, n, none, GPUSHMEM_CMP_EQ, 99) == SIZE_MAX);     \
            CHECK(gpushmem_##NAME##_test_any_vector(from, n, none, GPUSHMEM_CMP_LT, values) ==     \
                  SIZE_MAX);                                                                       \
            CHECK(gpushmem_##NAME##_test_some(from, n, at, none, GPUSHMEM_CMP_EQ, 99) == 0);       \
            CHECK(gpushmem_##NAME##_test_some_vector(from, n, at, none, GPUSHMEM_CMP_LT,           \
                                                     values) == 0);                                \
        }                                                                                          \
    }
#define DEFINE_TYPE(NAME, TYPE)                                                                    \
    DEFINE_COMPARISONS(NAME, TYPE)                                                                 \
    DEFINE_SETS(NAME, TYPE)
GPUSHMEM_SYNC_TYPES(DEFINE_TYPE)

// The forms with a status tell a failure from nothing found, and write nothing then.
static void failures(void)
{
    int *vars = (int *)(void *)area;
    const enum gpushmem_cmp unknown = (enum gpushmem_cmp)77;
    size_t at[N], index = 5, count = 5;
    CHECK(gpushmem_int_wait_until_any_status(vars, N, NULL, unknown, 1, &index) ==
          GPUSHMEM_ERR_INVALID);
    CHECK(gpushmem_int_wait_until_some_status(vars, N, at, NULL, unknown, 1, &count) ==
          GPUSHMEM_ERR_INVALID);
    CHECK(gpushmem_int_test_any_status(&(int){0}, 1, NULL, GPUSHMEM_CMP_EQ, 1, &index) ==
          GPUSHMEM_ERR_ADDRESS);
    CHECK(gpushmem_int_test_some_status(vars, N, NULL, NULL, GPUSHMEM_CMP_EQ, 1, &count) ==
          GPUSHMEM_ERR_INVALID);
    CHECK(gpushmem_int_wait_until_any_status(vars, N, NULL, GPUSHMEM_CMP_NE, 77, NULL) ==
          GPUSHMEM_ERR_INVALID);
    CHECK(index == 5 && count == 5);
}

// any is fair: with everything satisfied all the time, everything is found equally often.
static void fairness(void)
{
    enum { MANY = 7, TURNS = 700 };
    int *vars = (int *)(void *)area, found[MANY] = {0};
    const int ones[MANY] = {1, 1, 1, 1, 1, 1, 1};
    CHECK_OK(gpushmem_int_put(vars, ones, MANY, me));
    CHECK_OK(gpushmem_quiet());
    for (int i = 0; i < TURNS; ++i)
        ++found[gpushmem_int_wait_until_any(vars, MANY, NULL, GPUSHMEM_CMP_EQ, 1)];
    for (int i = 0; i < MANY; ++i)
        CHECK_THAT(found[i] == TURNS / MANY, "element %d was found %d times", i, found[i]);
}

// Every PE sends every PE numbered words, in an order of its own; receivers take them by the
// function under test. Data goes before the flag, so that whoever sees the flag must see the data.
static void exchange(int rounds)
{
    long *flags = gpushmem_calloc((size_t)n_pes, sizeof *flags);
    long *data = gpushmem_calloc((size_t)n_pes, sizeof *data);
    int *status = calloc((size_t)n_pes, sizeof *status);
    long *expected = calloc((size_t)n_pes, sizeof *expected);
    size_t *at = calloc((size_t)n_pes, sizeof *at);
    CHECK(flags != NULL && data != NULL && status != NULL && expected != NULL && at != NULL);
    for (long round = 1; round <= rounds; ++round) {
        for (int k = 0; k < n_pes; ++k) {
            int pe = (me + k) % n_pes;
            CHECK_OK(gpushmem_long_p(&data[me], round * 1000 + me, pe));
            CHECK_OK(gpushmem_fence());
            CHECK_OK(gpushmem_long_p(&flags[me], round, pe));
        }
        for (int i = 0; i < n_pes; ++i) {
            expected[i] = round;
            status[i] = 0;
        }
        size_t left = (size_t)n_pes;
        while (left != 0 && round % 3 != 0) {
            size_t found = 1;
            if (round % 3 == 1)
                at[0] = gpushmem_long_wait_until_any(flags, (size_t)n_pes, status, GPUSHMEM_CMP_GE,
                                                     round);
            else
                found = gpushmem_long_wait_until_some_vector(flags, (size_t)n_pes, at, status,
                                                             GPUSHMEM_CMP_GE, expected);
            CHECK(found >= 1 && found <= left);
            for (size_t i = 0; i < found; ++i) {
                CHECK(at[i] < (size_t)n_pes && status[at[i]] == 0);
                status[at[i]] = 1;
            }
            left -= found;
        }
        if (round % 3 == 0)
            CHECK_OK(
                gpushmem_long_wait_until_all(flags, (size_t)n_pes, NULL, GPUSHMEM_CMP_EQ, round));
        for (int i = 0; i < n_pes; ++i)
            CHECK_THAT(data[i] == round * 1000 + i, "round %ld, from PE %d: %ld", round, i,
                       data[i]);
        CHECK_OK(gpushmem_barrier_all());
    }
    free(status);
    free(expected);
    free(at);
    CHECK_OK(gpushmem_free(data));
    CHECK_OK(gpushmem_free(flags));
}

// Loops of test alone make progress, also with more PEs than cores.
static void test_loop(int rounds)
{
    uint64_t *turn = gpushmem_calloc(1, sizeof *turn);
    CHECK(turn != NULL);
    for (uint64_t i = 0; i < (uint64_t)rounds; ++i) {
        uint64_t mine = i * (uint64_t)n_pes + (uint64_t)me;
        while (!gpushmem_uint64_test(turn, GPUSHMEM_CMP_EQ, mine))
            ;
        CHECK_OK(gpushmem_uint64_atomic_set(turn, mine + 1, (me + 1) % n_pes));
    }
    CHECK_OK(gpushmem_barrier_all());
    CHECK_OK(gpushmem_free(turn));
}

static int asked_times(void *argument)
{
    int *left = argument;
    return --*left == 0;
}

// The program's hook ends a wait at its third call, and only waits that would go on.
static void test_hook(void)
{
    int left = 3;
    uint64_t *word = gpushmem_calloc(1, sizeof *word);
    CHECK(word != NULL);
    CHECK_OK(gpushmem_set_wait_hook(asked_times, &left));
    CHECK_OK(gpushmem_uint64_wait_until(word, GPUSHMEM_CMP_EQ, 0));
    CHECK(left == 3);
    CHECK(gpushmem_uint64_wait_until(word, GPUSHMEM_CMP_EQ, 1) == GPUSHMEM_ERR_TIMEOUT);
    CHECK(left == 0 && strstr(gpushmem_last_error(), "ended by the program's wait hook"));
    CHECK(strstr(gpushmem_last_error(), "to be == 1"));
    CHECK_OK(gpushmem_set_wait_hook(NULL, NULL));
    CHECK_OK(gpushmem_free(word));
}

int main(int argc, char **argv)
{
    CHECK_OK(gpushmem_init());
    me = gpushmem_my_pe();
    n_pes = gpushmem_n_pes();
    area = gpushmem_calloc(1, 64);
    CHECK(area != NULL);
#define RUN_TYPE(NAME, TYPE)                                                                       \
    NAME##_comparisons();                                                                          \
    NAME##_sets();
    GPUSHMEM_SYNC_TYPES(RUN_TYPE)
    failures();
    test_hook();
    fairness();
    int rounds = check_rounds(argc, argv, 1000);
    exchange(rounds);
    test_loop(rounds);
    CHECK_OK(gpushmem_free(area));
    CHECK_OK(gpushmem_finalize());
    return 0;
}
