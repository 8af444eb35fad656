// SPDX-License-Identifier: BSD-3-Clause
// Every family of NVSHMEM's host side for every type, with data that is looked at: the host's own
// calls, and those of streams, which do their work at once where a program has no kernels.
// For up to 4 PEs, whose products every type holds exactly.
#include "nvshmem_check.h"

enum { N = 6 };

static int me, n, next, before;
static uint64_t *sig;
static char *heap; // all that the functions below need, one after the other

static void meet(void)
{
    nvshmem_barrier_all();
}

// 16-bit floating point values are bits in C: small numbers of their own kind.
static uint16_t half_of(int number)
{
    uint32_t bits;
    float value = (float)number;
    memcpy(&bits, &value, sizeof bits);
    return (uint16_t)(number ? (bits >> 13 & 0x3ff) | ((bits >> 23) - 112) << 10 : 0);
}

static uint16_t bfloat16_of(int number)
{
    uint32_t bits;
    float value = (float)number;
    memcpy(&bits, &value, sizeof bits);
    return (uint16_t)(bits >> 16);
}

#define VALUE_OF(NAME, TYPE, AS, CTYPE)                                                            \
    static TYPE value_##NAME(int number)                                                           \
    {                                                                                              \
        return (TYPE)number;                                                                       \
    }                                                                                              \
    static int is_##NAME(TYPE value, int number)                                                   \
    {                                                                                              \
        return value == (TYPE)number;                                                              \
    }
GPSH_NVS_INTEGER_TYPES(VALUE_OF)
GPSH_NVS_FLOAT_TYPES(VALUE_OF)
#define VALUE_OF_BITS(NAME, TYPE)                                                                  \
    static TYPE value_##NAME(int number)                                                           \
    {                                                                                              \
        return (TYPE){NAME##_of(number)};                                                          \
    }                                                                                              \
    static int is_##NAME(TYPE value, int number)                                                   \
    {                                                                                              \
        return value.bits == NAME##_of(number);                                                    \
    }
VALUE_OF_BITS(half, gpushmem_half)
VALUE_OF_BITS(bfloat16, gpushmem_bfloat16)

// ---- Put and get ----

#define RMA_OF(NAME, TYPE, AS, CTYPE)                                                              \
    static void rma_##NAME(void)                                                                   \
    {                                                                                              \
        TYPE *dest = (TYPE *)heap, *source = dest + 4 * N, here[4 * N];                            \
        for (int i = 0; i < 4 * N; i++) {                                                          \
            source[i] = value_##NAME(me * 20 + i);                                                 \
            here[i] = dest[i] = value_##NAME(0);                                                   \
        }                                                                                          \
        meet();                                                                                    \
        nvshmem_##NAME##_put(dest, source, 2, next);                                               \
        nvshmemx_##NAME##_put_on_stream(dest + 2, source + 2, 2, next, 0);                         \
        nvshmemx_##NAME##_put_nbi_on_stream(dest + 4, source + 4, 1, next, 0);                     \
        nvshmem_##NAME##_p(dest + 5, source[5], next);                                             \
        nvshmem_##NAME##_put_nbi(dest + N, source + N, 1, next);                                   \
        nvshmem_##NAME##_iput(dest + 2 * N, source, 2, 3, 2, next);                                \
        nvshmem_##NAME##_put_signal(dest + 3 * N, source, 1, sig, 1, NVSHMEM_SIGNAL_ADD, next);    \
        nvshmem_##NAME##_put_signal_nbi(dest + 3 * N + 1, source + 1, 1, sig, 1,                   \
                                        NVSHMEM_SIGNAL_ADD, next);                                 \
        nvshmemx_##NAME##_put_signal_on_stream(dest + 3 * N + 2, source + 2, 1, sig, 1,            \
                                               NVSHMEM_SIGNAL_ADD, next, 0);                       \
        nvshmemx_##NAME##_put_signal_nbi_on_stream(dest + 3 * N + 3, source + 3, 1, sig, 1,        \
                                                   NVSHMEM_SIGNAL_ADD, next, 0);                   \
        nvshmemx_##NAME##_p_on_stream(dest + 2 * N + 3, source[4], next, 0);                       \
        nvshmemx_##NAME##_iput_on_stream(dest + 2 * N + 4, source, 1, 3, 2, next, 0);              \
        nvshmemx_quiet_on_stream(0);                                                               \
        meet();                                                                                    \
        CHECK(is_##NAME(dest[2 * N + 3], before * 20 + 4));                                        \
        CHECK(is_##NAME(dest[2 * N + 4], before * 20));                                            \
        CHECK(is_##NAME(dest[2 * N + 5], before * 20 + 3));                                        \
        for (int i = 0; i < N + 1; i++)                                                            \
            CHECK(is_##NAME(dest[i], before * 20 + i));                                            \
        CHECK(is_##NAME(dest[2 * N], before * 20) && is_##NAME(dest[2 * N + 1], 0));               \
        CHECK(is_##NAME(dest[2 * N + 2], before * 20 + 3));                                        \
        for (int i = 0; i < 4; i++)                                                                \
            CHECK(is_##NAME(dest[3 * N + i], before * 20 + i));                                    \
        CHECK(nvshmem_signal_fetch(sig) == 4);                                                     \
        *sig = 0;                                                                                  \
        nvshmem_##NAME##_get(here, source, 2, next);                                               \
        nvshmem_##NAME##_get_nbi(here + 2, source + 2, 2, next);                                   \
        nvshmemx_##NAME##_get_on_stream(here + 4, source + 4, 1, next, 0);                         \
        nvshmemx_##NAME##_get_nbi_on_stream(here + 5, source + 5, 1, next, 0);                     \
        nvshmem_##NAME##_iget(here + 2 * N, source, 3, 2, 2, next);                                \
        here[N] = nvshmem_##NAME##_g(source + N, next);                                            \
        nvshmemx_##NAME##_iget_on_stream(here + 3 * N, source, 3, 2, 2, next, 0);                  \
        here[3 * N + 1] = nvshmemx_##NAME##_g_on_stream(source + N + 1, next, 0);                  \
        nvshmem_quiet();                                                                           \
        CHECK(is_##NAME(here[3 * N], next * 20) && is_##NAME(here[3 * N + 3], next * 20 + 2));     \
        CHECK(is_##NAME(here[3 * N + 1], next * 20 + N + 1));                                      \
        for (int i = 0; i < N + 1; i++)                                                            \
            CHECK(is_##NAME(here[i], next * 20 + i));                                              \
        CHECK(is_##NAME(here[2 * N], next * 20) && is_##NAME(here[2 * N + 3], next * 20 + 2));     \
        meet();                                                                                    \
    }
GPSH_NVS_RMA_TYPES(RMA_OF)

#define UNTYPED_OF(FORM, SIZE)                                                                     \
    static void form_##FORM(void)                                                                  \
    {                                                                                              \
        char *dest = heap, *source = heap + 8 * SIZE, here[8 * SIZE];                              \
        memset(source, 'a' + me, 8 * SIZE);                                                        \
        memset(dest, 0, 8 * SIZE);                                                                 \
        meet();                                                                                    \
        nvshmem_put##FORM(dest, source, 1, next);                                                  \
        nvshmem_put##FORM##_nbi(dest + SIZE, source, 1, next);                                     \
        nvshmem_put##FORM##_signal(dest + 2 * SIZE, source, 1, sig, 7, NVSHMEM_SIGNAL_SET, next);  \
        nvshmem_put##FORM##_signal_nbi(dest + 3 * SIZE, source, 1, sig, 7, NVSHMEM_SIGNAL_SET,     \
                                       next);                                                      \
        nvshmemx_put##FORM##_on_stream(dest + 4 * SIZE, source, 1, next, 0);                       \
        nvshmemx_put##FORM##_nbi_on_stream(dest + 5 * SIZE, source, 1, next, 0);                   \
        nvshmemx_put##FORM##_signal_on_stream(dest + 6 * SIZE, source, 1, sig, 7,                  \
                                              NVSHMEM_SIGNAL_SET, next, 0);                        \
        nvshmemx_put##FORM##_signal_nbi_on_stream(dest + 7 * SIZE, source, 1, sig, 7,              \
                                                  NVSHMEM_SIGNAL_SET, next, 0);                    \
        nvshmemx_quiet_on_stream(0);                                                               \
        meet();                                                                                    \
        CHECK(*sig == 7);                                                                          \
        *sig = 0;                                                                                  \
        memset(here, 'a' + before, sizeof here);                                                   \
        CHECK(memcmp(here, dest, sizeof here) == 0);                                               \
        memset(here, 0, sizeof here);                                                              \
        nvshmem_get##FORM(here, source, 1, next);                                                  \
        nvshmem_get##FORM##_nbi(here + SIZE, source, 1, next);                                     \
        nvshmemx_get##FORM##_on_stream(here + 2 * SIZE, source, 1, next, 0);                       \
        nvshmemx_get##FORM##_nbi_on_stream(here + 3 * SIZE, source, 1, next, 0);                   \
        nvshmem_quiet();                                                                           \
        for (int i = 0; i < 4 * SIZE; i++)                                                         \
            CHECK(here[i] == 'a' + next);                                                          \
        meet();                                                                                    \
    }
UNTYPED_OF(8, 1)
UNTYPED_OF(16, 2)
UNTYPED_OF(32, 4)
UNTYPED_OF(64, 8)
UNTYPED_OF(128, 16)
UNTYPED_OF(mem, 1)

#define STRIDED_OF(BITS)                                                                           \
    static void strided_##BITS(int on_stream)                                                      \
    {                                                                                              \
        enum { SIZE = BITS / 8 };                                                                  \
        char *dest = heap, *source = heap + 4 * SIZE, here[4 * SIZE];                              \
        for (int i = 0; i < 4 * SIZE; i++) {                                                       \
            source[i] = (char)('a' + me * 4 + i / SIZE);                                           \
            dest[i] = here[i] = 0;                                                                 \
        }                                                                                          \
        meet();                                                                                    \
        if (on_stream) {                                                                           \
            nvshmemx_iput##BITS##_on_stream(dest, source, 3, 1, 2, next, 0);                       \
            nvshmemx_iget##BITS##_on_stream(here, source, 1, 2, 2, next, 0);                       \
        } else {                                                                                   \
            nvshmem_iput##BITS(dest, source, 3, 1, 2, next);                                       \
            nvshmem_iget##BITS(here, source, 1, 2, 2, next);                                       \
        }                                                                                          \
        meet();                                                                                    \
        CHECK(dest[0] == 'a' + before * 4 && dest[SIZE] == 0);                                     \
        CHECK(dest[4 * SIZE - 1] == 'b' + before * 4);                                             \
        CHECK(here[0] == 'a' + next * 4 && here[2 * SIZE - 1] == 'c' + next * 4);                  \
        meet();                                                                                    \
    }
GPUSHMEM_RMA_SIZES(STRIDED_OF)

// ---- Atomics: each PE on words of the next one ----

#define EXTENDED_OF(NAME, TYPE, AS, CTYPE)                                                         \
    static void extended_##NAME(void)                                                              \
    {                                                                                              \
        TYPE *word = (TYPE *)heap;                                                                 \
        *word = 0;                                                                                 \
        meet();                                                                                    \
        nvshmem_##NAME##_atomic_set(word, 5, next);                                                \
        CHECK(nvshmem_##NAME##_atomic_swap(word, 6, next) == 5);                                   \
        CHECK(nvshmem_##NAME##_atomic_fetch(word, next) == 6);                                     \
        meet();                                                                                    \
    }
GPSH_NVS_AMO_EXTENDED_TYPES(EXTENDED_OF)

#define ATOMICS_OF(NAME, TYPE, AS, CTYPE)                                                          \
    static void atomics_##NAME(void)                                                               \
    {                                                                                              \
        TYPE *word = (TYPE *)heap;                                                                 \
        *word = 10;                                                                                \
        meet();                                                                                    \
        CHECK(nvshmem_##NAME##_atomic_compare_swap(word, 10, 20, next) == 10);                     \
        CHECK(nvshmem_##NAME##_atomic_compare_swap(word, 10, 30, next) == 20);                     \
        CHECK(nvshmem_##NAME##_atomic_fetch_inc(word, next) == 20);                                \
        nvshmem_##NAME##_atomic_inc(word, next);                                                   \
        CHECK(nvshmem_##NAME##_atomic_fetch_add(word, 3, next) == 22);                             \
        nvshmem_##NAME##_atomic_add(word, 2, next);                                                \
        meet();                                                                                    \
        CHECK(*word == 27);                                                                        \
        meet();                                                                                    \
    }
GPSH_NVS_AMO_TYPES(ATOMICS_OF)

#define BITS_OF(NAME, TYPE, AS, CTYPE)                                                             \
    static void bits_##NAME(void)                                                                  \
    {                                                                                              \
        TYPE *word = (TYPE *)heap;                                                                 \
        *word = 12;                                                                                \
        meet();                                                                                    \
        CHECK(nvshmem_##NAME##_atomic_fetch_and(word, 14, next) == 12);                            \
        CHECK(nvshmem_##NAME##_atomic_fetch_or(word, 3, next) == 12);                              \
        CHECK(nvshmem_##NAME##_atomic_fetch_xor(word, 1, next) == 15);                             \
        nvshmem_##NAME##_atomic_and(word, 10, next);                                               \
        nvshmem_##NAME##_atomic_or(word, 64, next);                                                \
        nvshmem_##NAME##_atomic_xor(word, 2, next);                                                \
        meet();                                                                                    \
        CHECK(*word == 72);                                                                        \
        meet();                                                                                    \
    }
GPSH_NVS_AMO_BITWISE_TYPES(BITS_OF)

// ---- Waiting: the PE before sets three words. Each form is the first to wait in some type ----

static int turn;

#define SYNC_OF(NAME, TYPE, AS, CTYPE)                                                             \
    static void sync_##NAME(void)                                                                  \
    {                                                                                              \
        TYPE *words = (TYPE *)heap, values[3] = {1, 2, 3};                                         \
        const int skip[3] = {0, 0, 1};                                                             \
        size_t which[3];                                                                           \
        memset(words, 0, 3 * sizeof *words);                                                       \
        meet();                                                                                    \
        CHECK(!nvshmem_##NAME##_test(words, NVSHMEM_CMP_NE, 0));                                   \
        CHECK(!nvshmem_##NAME##_test_all(words, 3, NULL, NVSHMEM_CMP_GT, 0));                      \
        CHECK(nvshmem_##NAME##_test_any(words, 3, NULL, NVSHMEM_CMP_GT, 0) == SIZE_MAX);           \
        CHECK(nvshmem_##NAME##_test_some(words, 3, which, NULL, NVSHMEM_CMP_GT, 0) == 0);          \
        CHECK(!nvshmem_##NAME##_test_all_vector(words, 3, NULL, NVSHMEM_CMP_EQ, values));          \
        CHECK(nvshmem_##NAME##_test_any_vector(words, 3, NULL, NVSHMEM_CMP_EQ, values) ==          \
              SIZE_MAX);                                                                           \
        CHECK(!nvshmem_##NAME##_test_some_vector(words, 3, which, NULL, NVSHMEM_CMP_EQ, values));  \
        meet();                                                                                    \
        for (int i = 0; i < 3; i++)                                                                \
            nvshmem_##NAME##_p(words + i, values[i], next);                                        \
        switch (turn++ % 6) {                                                                      \
        case 0:                                                                                    \
            CHECK(nvshmem_##NAME##_wait_until_any(words, 3, NULL, NVSHMEM_CMP_EQ, 3) == 2);        \
            break;                                                                                 \
        case 1:                                                                                    \
            CHECK(nvshmem_##NAME##_wait_until_some(words, 3, which, NULL, NVSHMEM_CMP_GT, 2) > 0); \
            break;                                                                                 \
        case 2:                                                                                    \
            nvshmem_##NAME##_wait_until_all_vector(words, 3, NULL, NVSHMEM_CMP_EQ, values);        \
            break;                                                                                 \
        case 3:                                                                                    \
            CHECK(nvshmem_##NAME##_wait_until_any_vector(words + 2, 1, NULL, NVSHMEM_CMP_EQ,       \
                                                         values + 2) == 0);                        \
            break;                                                                                 \
        case 4:                                                                                    \
            CHECK(nvshmem_##NAME##_wait_until_some_vector(words, 3, which, NULL, NVSHMEM_CMP_EQ,   \
                                                          values) > 0);                            \
            break;                                                                                 \
        default: break;                                                                            \
        }                                                                                          \
        nvshmem_##NAME##_wait_until(words + 2, NVSHMEM_CMP_EQ, 3);                                 \
        nvshmem_##NAME##_wait_until_all(words, 3, NULL, NVSHMEM_CMP_GE, 1);                        \
        CHECK(nvshmem_##NAME##_wait_until_any(words, 3, NULL, NVSHMEM_CMP_EQ, 2) == 1);            \
        CHECK(nvshmem_##NAME##_wait_until_some(words, 3, which, skip, NVSHMEM_CMP_LT, 9) == 2);    \
        nvshmem_##NAME##_wait_until_all_vector(words, 3, NULL, NVSHMEM_CMP_EQ, values);            \
        CHECK(nvshmem_##NAME##_wait_until_any_vector(words, 3, skip, NVSHMEM_CMP_EQ, values) < 2); \
        CHECK(nvshmem_##NAME##_wait_until_some_vector(words, 3, which, NULL, NVSHMEM_CMP_LE,       \
                                                      values) == 3);                               \
        CHECK(nvshmem_##NAME##_test(words, NVSHMEM_CMP_NE, 0));                                    \
        CHECK(nvshmem_##NAME##_test_all(words, 3, NULL, NVSHMEM_CMP_GT, 0));                       \
        CHECK(nvshmem_##NAME##_test_any(words, 3, NULL, NVSHMEM_CMP_EQ, 3) == 2);                  \
        CHECK(nvshmem_##NAME##_test_some(words, 3, which, NULL, NVSHMEM_CMP_LE, 2) == 2);          \
        CHECK(nvshmem_##NAME##_test_all_vector(words, 3, NULL, NVSHMEM_CMP_EQ, values));           \
        CHECK(nvshmem_##NAME##_test_any_vector(words, 3, NULL, NVSHMEM_CMP_EQ, values) < 3);       \
        CHECK(nvshmem_##NAME##_test_some_vector(words, 3, which, NULL, NVSHMEM_CMP_EQ, values) ==  \
              3);                                                                                  \
        meet();                                                                                    \
    }
GPSH_NVS_SYNC_TYPES(SYNC_OF)

static void signals(void)
{
    nvshmemx_signal_op(sig, 4, NVSHMEM_SIGNAL_SET, next);
    CHECK(nvshmem_signal_wait_until(sig, NVSHMEM_CMP_NE, 0) == 4);
    meet();
    nvshmemx_signal_op_on_stream(sig, 2, NVSHMEM_SIGNAL_ADD, next, 0);
    nvshmemx_signal_wait_until_on_stream(sig, NVSHMEM_CMP_EQ, 6, 0);
    nvshmemx_uint64_wait_until_on_stream(sig, NVSHMEM_CMP_GE, 6, 0);
    nvshmemx_ulong_wait_until_on_stream((unsigned long *)sig, NVSHMEM_CMP_GE, 6, 0);
    nvshmemx_size_wait_until_on_stream((size_t *)sig, NVSHMEM_CMP_GE, 6, 0);
    CHECK(nvshmem_signal_fetch(sig) == 6);
    meet();
    *sig = 0;
    meet();
}

// ---- Collectives, by the host's name and by the stream's ----

#define MOVES_OF(NAME, TYPE, AS, CTYPE)                                                            \
    static void moves_##NAME(int on_stream)                                                        \
    {                                                                                              \
        const nvshmem_team_t team = NVSHMEM_TEAM_WORLD;                                            \
        TYPE *source = (TYPE *)heap, *dest = source + 64;                                          \
        for (int i = 0; i < 2 * n; i++)                                                            \
            source[i] = value_##NAME(me * 16 + i);                                                 \
        meet();                                                                                    \
        CHECK(!(on_stream ? nvshmemx_##NAME##_broadcast_on_stream(team, dest, source, 2, n - 1, 0) \
                          : nvshmem_##NAME##_broadcast(team, dest, source, 2, n - 1)));            \
        CHECK(is_##NAME(dest[1], (n - 1) * 16 + 1));                                               \
        CHECK(!(on_stream ? nvshmemx_##NAME##_fcollect_on_stream(team, dest, source, 2, 0)         \
                          : nvshmem_##NAME##_fcollect(team, dest, source, 2)));                    \
        for (int pe = 0; pe < n; pe++)                                                             \
            CHECK(is_##NAME(dest[2 * pe + 1], pe * 16 + 1));                                       \
        CHECK(!(on_stream ? nvshmemx_##NAME##_alltoall_on_stream(team, dest, source, 2, 0)         \
                          : nvshmem_##NAME##_alltoall(team, dest, source, 2)));                    \
        for (int pe = 0; pe < n; pe++)                                                             \
            CHECK(is_##NAME(dest[2 * pe], pe * 16 + 2 * me));                                      \
        meet();                                                                                    \
    }
GPSH_NVS_RMA_TYPES(MOVES_OF)

static void moves_of_bytes(int on_stream)
{
    const nvshmem_team_t team = NVSHMEM_TEAM_WORLD;
    char *source = heap, *dest = heap + 64;
    memset(source, 'a' + me, 64);
    meet();
    CHECK(!(on_stream ? nvshmemx_broadcastmem_on_stream(team, dest, source, 3, 0, 0)
                      : nvshmem_broadcastmem(team, dest, source, 3, 0)));
    CHECK(dest[2] == 'a');
    CHECK(!(on_stream ? nvshmemx_fcollectmem_on_stream(team, dest, source, 3, 0)
                      : nvshmem_fcollectmem(team, dest, source, 3)));
    CHECK(dest[3 * n - 1] == 'a' + n - 1);
    memset(dest, 0, 64);
    meet();
    CHECK(!(on_stream ? nvshmemx_alltoallmem_on_stream(team, dest, source, 3, 0)
                      : nvshmem_alltoallmem(team, dest, source, 3)));
    CHECK(dest[3 * n - 1] == 'a' + n - 1 && dest[0] == 'a');
    meet();
}

// What the fold of from + 1, from + 2 .. from + n is.
enum fold { FOLD_min, FOLD_max, FOLD_sum, FOLD_prod, FOLD_and, FOLD_or, FOLD_xor };
static int folded(enum fold fold, int from)
{
    int result = from + 1;
    for (int i = from + 2; i <= from + n; i++)
        result = fold == FOLD_max    ? i
                 : fold == FOLD_sum  ? result + i
                 : fold == FOLD_prod ? result * i
                 : fold == FOLD_and  ? result & i
                 : fold == FOLD_or   ? result | i
                 : fold == FOLD_xor  ? result ^ i
                                     : result;
    return result;
}

// Part r of what reducescatter folds is not that of part 0.
#define FOLD_OF(NAME, OP)                                                                          \
    CHECK(!(on_stream ? nvshmemx_##NAME##_##OP##_reduce_on_stream(team, dest, source, 2, 0)        \
                      : nvshmem_##NAME##_##OP##_reduce(team, dest, source, 2)));                   \
    CHECK(is_##NAME(dest[0], folded(FOLD_##OP, 0)) && is_##NAME(dest[1], folded(FOLD_##OP, 0)));   \
    CHECK(!(on_stream                                                                              \
                ? nvshmemx_##NAME##_##OP##_reducescatter_on_stream(team, dest, source + 8, 1, 0)   \
                : nvshmem_##NAME##_##OP##_reducescatter(team, dest, source + 8, 1)));              \
    CHECK(is_##NAME(dest[0], folded(FOLD_##OP, me)));
#define FOLDS_BEGIN(TYPE, NAME)                                                                    \
    const nvshmem_team_t team = NVSHMEM_TEAM_WORLD;                                                \
    TYPE *source = (TYPE *)heap, *dest = source + 64;                                              \
    source[0] = source[1] = value_##NAME(me + 1);                                                  \
    for (int r = 0; r < n; r++)                                                                    \
        source[8 + r] = value_##NAME(me + 1 + r);                                                  \
    meet();
#define FOLDS_OF(NAME, TYPE, AS, CTYPE)                                                            \
    static void folds_##NAME(int on_stream)                                                        \
    {                                                                                              \
        FOLDS_BEGIN(TYPE, NAME)                                                                    \
        FOLD_OF(NAME, min) FOLD_OF(NAME, max) FOLD_OF(NAME, sum) FOLD_OF(NAME, prod) meet();       \
    }
GPSH_NVS_REDUCE_TYPES(FOLDS_OF)
#define BIT_FOLDS_OF(NAME, TYPE, AS, CTYPE)                                                        \
    static void bit_folds_##NAME(int on_stream)                                                    \
    {                                                                                              \
        FOLDS_BEGIN(TYPE, NAME)                                                                    \
        FOLD_OF(NAME, and) FOLD_OF(NAME, or) FOLD_OF(NAME, xor) meet();                            \
    }
GPSH_NVS_INTEGER_TYPES(BIT_FOLDS_OF)

// ---- Barriers ----

static void barriers(void)
{
    nvshmem_fence();
    nvshmem_sync_all();
    nvshmemx_sync_all_on_stream(0);
    nvshmemx_barrier_all_on_stream(0);
    CHECK(nvshmem_barrier(NVSHMEM_TEAM_WORLD) == 0 && nvshmem_sync(NVSHMEM_TEAM_WORLD) == 0);
    CHECK(nvshmem_team_sync(NVSHMEM_TEAM_WORLD) == 0);
    CHECK(nvshmemx_barrier_on_stream(NVSHMEM_TEAM_WORLD, 0) == 0);
    CHECK(nvshmemx_sync_on_stream(NVSHMEM_TEAM_WORLD, 0) == 0);
    CHECK(nvshmemx_team_sync_on_stream(NVSHMEM_TEAM_WORLD, 0) == 0);
}

int main(void)
{
    nvshmem_init();
    me = nvshmem_my_pe();
    n = nvshmem_n_pes();
    next = (me + 1) % n;
    before = (me + n - 1) % n;
    heap = nvshmem_malloc(4096);
    sig = nvshmem_calloc(1, sizeof *sig);
    CHECK(me >= 0 && heap && sig);
#define CALL(WHAT, TYPES)                     TYPES(WHAT)
#define CALL_RMA(NAME, TYPE, AS, CTYPE)       rma_##NAME();
#define CALL_STRIDED(BITS)                    strided_##BITS(0), strided_##BITS(1);
#define CALL_EXTENDED(NAME, TYPE, AS, CTYPE)  extended_##NAME();
#define CALL_ATOMICS(NAME, TYPE, AS, CTYPE)   atomics_##NAME();
#define CALL_BITS(NAME, TYPE, AS, CTYPE)      bits_##NAME();
#define CALL_SYNC(NAME, TYPE, AS, CTYPE)      sync_##NAME();
#define CALL_MOVES(NAME, TYPE, AS, CTYPE)     moves_##NAME(0), moves_##NAME(1);
#define CALL_FOLDS(NAME, TYPE, AS, CTYPE)     folds_##NAME(0), folds_##NAME(1);
#define CALL_BIT_FOLDS(NAME, TYPE, AS, CTYPE) bit_folds_##NAME(0), bit_folds_##NAME(1);
    CALL(CALL_RMA, GPSH_NVS_RMA_TYPES)
    form_8(), form_16(), form_32(), form_64(), form_128(), form_mem();
    CALL(CALL_STRIDED, GPUSHMEM_RMA_SIZES)
    CALL(CALL_EXTENDED, GPSH_NVS_AMO_EXTENDED_TYPES)
    CALL(CALL_ATOMICS, GPSH_NVS_AMO_TYPES)
    CALL(CALL_BITS, GPSH_NVS_AMO_BITWISE_TYPES)
    CALL(CALL_SYNC, GPSH_NVS_SYNC_TYPES)
    signals();
    CALL(CALL_MOVES, GPSH_NVS_RMA_TYPES)
    moves_of_bytes(0), moves_of_bytes(1);
    CALL(CALL_FOLDS, GPSH_NVS_REDUCE_TYPES)
    CALL(CALL_BIT_FOLDS, GPSH_NVS_INTEGER_TYPES)
    barriers();
    nvshmem_free(sig);
    nvshmem_free(heap);
    nvshmem_finalize();
    if (me == 0)
        puts("families: ok");
    return 0;
}
