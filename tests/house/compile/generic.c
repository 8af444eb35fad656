// SPDX-License-Identifier: BSD-3-Clause
// The type-generic names of C and the overloads of C++ (generic.cpp includes this file), with and
// without a context, over every distinct type, on one PE. A function of the wrong type would move
// too few bytes or too many.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpushmem/gpushmem.h"

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            printf("%s:%d: not true: %s (%s)\n", __FILE__, __LINE__, #condition,                   \
                   gpushmem_last_error());                                                         \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)
#define OK(call)         CHECK((call) == 0)
#define SAME(a, b, size) CHECK(memcmp(a, b, size) == 0)

enum { N = 4 };
static char *area;
static uint64_t *sig;
static gpushmem_ctx_t ctx;

static void fill(void *bytes, size_t n, int seed)
{
    for (size_t i = 0; i < n; ++i)
        ((unsigned char *)bytes)[i] = (unsigned char)(seed * 31 + (int)i * 7 + 1);
}

// The distinct types. Spelled out: the generic names are made from types.h's own lists, which
// cannot expand within themselves.
#define BITWISE_TYPES(X)                                                                           \
    X(int32, int32_t)                                                                              \
    X(int64, int64_t) X(uint, unsigned) X(ulong, unsigned long) X(ulonglong, unsigned long long)
#define AMO_TYPES(X)                                                                               \
    X(int, int)                                                                                    \
    X(long, long)                                                                                  \
    X(longlong, long long)                                                                         \
    X(uint, unsigned) X(ulong, unsigned long) X(ulonglong, unsigned long long)
#define EXTENDED_TYPES(X) X(float, float) X(double, double) AMO_TYPES(X)
#define SYNC_TYPES(X)     X(short, short) X(ushort, unsigned short) AMO_TYPES(X)
#define RMA_TYPES(X)                                                                               \
    X(bfloat16, gpushmem_bfloat16)                                                                 \
    X(half, gpushmem_half)                                                                         \
    X(char, char)                                                                                  \
    X(schar, signed char)                                                                          \
    X(uchar, unsigned char) X(short, short) X(ushort, unsigned short) EXTENDED_TYPES(X)

// Each CALL(F, ...) is gpushmem_F(...) or gpushmem_F(ctx, ...).
#define PLAIN(F, ...) gpushmem_##F(__VA_ARGS__)
#define CTX(F, ...)   gpushmem_##F(ctx, __VA_ARGS__)

#define DEFINE_RMA(NAME, TYPE, CALL, SEED)                                                         \
    static void rma_##NAME##_##CALL(void)                                                          \
    {                                                                                              \
        TYPE *there = (TYPE *)(void *)area, here[N], back[N], one;                                 \
        const TYPE *source = there;                                                                \
        int seed = SEED;                                                                           \
        fill(here, sizeof here, seed++);                                                           \
        OK(CALL(put, there, here, N, 0));                                                          \
        OK(CALL(get, back, source, N, 0));                                                         \
        SAME(back, here, sizeof here);                                                             \
        fill(here, sizeof here, seed++);                                                           \
        OK(CALL(put_nbi, there, here, N, 0));                                                      \
        OK(CALL(get_nbi, back, source, N, 0));                                                     \
        SAME(back, here, sizeof here);                                                             \
        fill(&one, sizeof one, seed++);                                                            \
        OK(CALL(p, there + 1, one, 0));                                                            \
        back[2] = CALL(g, source + 1, 0);                                                          \
        here[1] = one;                                                                             \
        SAME(&back[2], &one, sizeof one);                                                          \
        SAME(there, here, sizeof here);                                                            \
        OK(CALL(iput, there, here + 1, 2, 1, 2, 0));                                               \
        SAME(there + 2, here + 2, sizeof one);                                                     \
        OK(CALL(iget, back, source, 1, 2, 2, 0));                                                  \
        SAME(back, here + 1, 2 * sizeof one);                                                      \
        fill(here, sizeof here, seed++);                                                           \
        OK(CALL(put_signal, there, here, N, sig, 3, GPUSHMEM_SIGNAL_SET, 0));                      \
        SAME(there, here, sizeof here);                                                            \
        OK(CALL(put_signal_nbi, there, here, N, sig, 4, GPUSHMEM_SIGNAL_ADD, 0));                  \
        CHECK(gpushmem_signal_fetch(sig) == 7);                                                    \
        fill(here, sizeof here, seed++);                                                           \
        OK(gpushmem_put_on_stream(there, here, N, 0, NULL));                                       \
        OK(gpushmem_get_on_stream(back, source, N, 0, NULL));                                      \
        SAME(back, here, sizeof here);                                                             \
        OK(gpushmem_p_on_stream(there + 1, one, 0, NULL));                                         \
        OK(gpushmem_g_on_stream(back, source + 1, 0, NULL));                                       \
        SAME(back, &one, sizeof one);                                                              \
        OK(gpushmem_iput_on_stream(there, here + 1, 2, 1, 2, 0, NULL));                            \
        SAME(there + 2, here + 2, sizeof one);                                                     \
        OK(gpushmem_iget_on_stream(back, source, 1, 2, 2, 0, NULL));                               \
        SAME(back, here + 1, 2 * sizeof one);                                                      \
        fill(here, sizeof here, seed++);                                                           \
        OK(gpushmem_put_signal_on_stream(there, here, N, sig, 7, GPUSHMEM_SIGNAL_SET, 0, NULL));   \
        SAME(there, here, sizeof here);                                                            \
    }
#define RMA(NAME, TYPE)                                                                            \
    DEFINE_RMA(NAME, TYPE, PLAIN, sizeof(TYPE))                                                    \
    DEFINE_RMA(NAME, TYPE, CTX, sizeof(TYPE) + 100)
RMA_TYPES(RMA)

// Teams of one: a collective operation copies, in the width of its type.
#define DEFINE_COLL(NAME, TYPE)                                                                    \
    static void coll_##NAME(void)                                                                  \
    {                                                                                              \
        TYPE *to = (TYPE *)(void *)area, *from = to + N;                                           \
        const gpushmem_team_t world = GPUSHMEM_TEAM_WORLD;                                         \
        fill(area, 2 * N * sizeof *to, 5);                                                         \
        OK(gpushmem_broadcast(world, to, from, N, 0));                                             \
        SAME(to, from, N * sizeof *to);                                                            \
        fill(from, N * sizeof *to, 6);                                                             \
        OK(gpushmem_fcollect(world, to, from, N));                                                 \
        SAME(to, from, N * sizeof *to);                                                            \
        fill(from, N * sizeof *to, 7);                                                             \
        OK(gpushmem_collect(world, to, from, N));                                                  \
        SAME(to, from, N * sizeof *to);                                                            \
        fill(from, N * sizeof *to, 8);                                                             \
        OK(gpushmem_alltoall(world, to, from, N));                                                 \
        SAME(to, from, N * sizeof *to);                                                            \
        fill(from, N * sizeof *to, 9);                                                             \
        OK(gpushmem_alltoalls(world, to, from, 1, 1, N));                                          \
        SAME(to, from, N * sizeof *to);                                                            \
    }
RMA_TYPES(DEFINE_COLL)

#define DEFINE_FOLD(NAME, TYPE)                                                                    \
    static void fold_##NAME(void)                                                                  \
    {                                                                                              \
        TYPE *to = (TYPE *)(void *)area, *from = to + N;                                           \
        const gpushmem_team_t world = GPUSHMEM_TEAM_WORLD;                                         \
        for (int i = 0; i < N; ++i)                                                                \
            from[i] = (TYPE)(i + 1);                                                               \
        memset(to, 0, N * sizeof *to);                                                             \
        OK(gpushmem_sum_reduce(world, to, from, N));                                               \
        SAME(to, from, N * sizeof *to);                                                            \
        OK(gpushmem_prod_reducescatter(world, to, from, N));                                       \
        OK(gpushmem_min_reduce(world, to, from, N));                                               \
        OK(gpushmem_max_reducescatter(world, to, from, N));                                        \
        OK(gpushmem_sum_inscan(world, to, from, N));                                               \
        SAME(to, from, N * sizeof *to);                                                            \
        OK(gpushmem_sum_exscan(world, to, from, N));                                               \
        CHECK(to[N - 1] == 0);                                                                     \
    }
EXTENDED_TYPES(DEFINE_FOLD)
#define DEFINE_BITS(NAME, TYPE)                                                                    \
    static void bits_##NAME(void)                                                                  \
    {                                                                                              \
        TYPE *to = (TYPE *)(void *)area, *from = to + N;                                           \
        const gpushmem_team_t world = GPUSHMEM_TEAM_WORLD;                                         \
        fill(area, 2 * N * sizeof *to, 3);                                                         \
        OK(gpushmem_and_reduce(world, to, from, N));                                               \
        OK(gpushmem_or_reducescatter(world, to, from, N));                                         \
        OK(gpushmem_xor_reduce(world, to, from, N));                                               \
        SAME(to, from, N * sizeof *to);                                                            \
    }
AMO_TYPES(DEFINE_BITS)

#define DEFINE_EXTENDED(NAME, TYPE, CALL)                                                          \
    static void extended_##NAME##_##CALL(void)                                                     \
    {                                                                                              \
        TYPE *word = (TYPE *)(void *)area, got = 0;                                                \
        const TYPE *source = word;                                                                 \
        OK(CALL(atomic_set, word, (TYPE)1000000, 0));                                              \
        CHECK(CALL(atomic_fetch, source, 0) == (TYPE)1000000);                                     \
        CHECK(CALL(atomic_swap, word, (TYPE)7, 0) == (TYPE)1000000);                               \
        OK(CALL(atomic_swap_nbi, &got, word, (TYPE)8, 0));                                         \
        CHECK(got == (TYPE)7);                                                                     \
        OK(CALL(atomic_fetch_nbi, &got, source, 0));                                               \
        CHECK(got == (TYPE)8);                                                                     \
        OK(CALL(atomic_swap_status, word, (TYPE)9, 0, &got));                                      \
        CHECK(got == (TYPE)8);                                                                     \
        OK(CALL(atomic_fetch_status, source, 0, &got));                                            \
        CHECK(got == (TYPE)9);                                                                     \
        CHECK(CALL(atomic_fetch_status, source, 1, &got) == GPUSHMEM_ERR_PE && got == (TYPE)9);    \
    }
#define EXTENDED(NAME, TYPE)                                                                       \
    DEFINE_EXTENDED(NAME, TYPE, PLAIN)                                                             \
    DEFINE_EXTENDED(NAME, TYPE, CTX)
EXTENDED_TYPES(EXTENDED)

// The largest value wraps at the type's own width, nowhere else.
#define DEFINE_AMO(NAME, TYPE, CALL)                                                               \
    static void amo_##NAME##_##CALL(void)                                                          \
    {                                                                                              \
        TYPE *word = (TYPE *)(void *)area, got = 0, all = (TYPE) ~(TYPE)0;                         \
        memset(area, 0, 64);                                                                       \
        *word = all;                                                                               \
        CHECK(CALL(atomic_fetch_inc, word, 0) == all);                                             \
        CHECK(CALL(atomic_fetch_add, word, (TYPE)5, 0) == 0);                                      \
        OK(CALL(atomic_inc, word, 0));                                                             \
        OK(CALL(atomic_add, word, (TYPE)4, 0));                                                    \
        CHECK(CALL(atomic_compare_swap, word, (TYPE)10, all, 0) == 10);                            \
        OK(CALL(atomic_fetch_inc_nbi, &got, word, 0));                                             \
        CHECK(got == all);                                                                         \
        OK(CALL(atomic_fetch_add_nbi, &got, word, (TYPE)3, 0));                                    \
        CHECK(got == 0);                                                                           \
        OK(CALL(atomic_compare_swap_nbi, &got, word, (TYPE)3, (TYPE)4, 0));                        \
        CHECK(got == 3 && *word == 4 && word[1] == 0);                                             \
        OK(CALL(atomic_fetch_inc_status, word, 0, &got));                                          \
        CHECK(got == 4);                                                                           \
        OK(CALL(atomic_fetch_add_status, word, all, 0, &got));                                     \
        CHECK(got == 5);                                                                           \
        OK(CALL(atomic_compare_swap_status, word, (TYPE)4, all, 0, &got));                         \
        CHECK(got == 4 && *word == all && word[1] == 0);                                           \
    }
#define AMO(NAME, TYPE)                                                                            \
    DEFINE_AMO(NAME, TYPE, PLAIN)                                                                  \
    DEFINE_AMO(NAME, TYPE, CTX)
AMO_TYPES(AMO)

#define DEFINE_BITWISE(NAME, TYPE, CALL)                                                           \
    static void bitwise_##NAME##_##CALL(void)                                                      \
    {                                                                                              \
        TYPE *word = (TYPE *)(void *)area, got = 0, all = (TYPE) ~(TYPE)0;                         \
        *word = all;                                                                               \
        CHECK(CALL(atomic_fetch_and, word, (TYPE)0xf0, 0) == all);                                 \
        CHECK(CALL(atomic_fetch_or, word, (TYPE)0x0f, 0) == 0xf0);                                 \
        CHECK(CALL(atomic_fetch_xor, word, all, 0) == 0xff);                                       \
        OK(CALL(atomic_xor, word, all, 0));                                                        \
        OK(CALL(atomic_and, word, (TYPE)0x1f, 0));                                                 \
        OK(CALL(atomic_or, word, (TYPE)0x100, 0));                                                 \
        OK(CALL(atomic_fetch_and_nbi, &got, word, (TYPE)0x101, 0));                                \
        CHECK(got == 0x11f);                                                                       \
        OK(CALL(atomic_fetch_or_nbi, &got, word, (TYPE)2, 0));                                     \
        CHECK(got == 0x101);                                                                       \
        OK(CALL(atomic_fetch_xor_nbi, &got, word, (TYPE)1, 0));                                    \
        CHECK(got == 0x103 && *word == 0x102);                                                     \
        OK(CALL(atomic_fetch_or_status, word, (TYPE)1, 0, &got));                                  \
        CHECK(got == 0x102);                                                                       \
        OK(CALL(atomic_fetch_xor_status, word, (TYPE)2, 0, &got));                                 \
        CHECK(got == 0x103);                                                                       \
        OK(CALL(atomic_fetch_and_status, word, (TYPE)0x100, 0, &got));                             \
        CHECK(got == 0x101 && *word == 0x100);                                                     \
    }
#define BITWISE(NAME, TYPE)                                                                        \
    DEFINE_BITWISE(NAME, TYPE, PLAIN)                                                              \
    DEFINE_BITWISE(NAME, TYPE, CTX)
BITWISE_TYPES(BITWISE)

// VERB is wait_until or test, YES what all and the scalar form return when true.
#define DEFINE_VERB(NAME, TYPE, VERB, YES)                                                         \
    static void VERB##_##NAME(void)                                                                \
    {                                                                                              \
        TYPE *vars = (TYPE *)(void *)area, values[2] = {(TYPE)-2, 3};                              \
        size_t at[2] = {9, 9};                                                                     \
        int skip[2] = {1, 0};                                                                      \
        vars[0] = (TYPE)-2;                                                                        \
        vars[1] = 3;                                                                               \
        volatile TYPE *changing = vars;                                                            \
        CHECK(gpushmem_##VERB(vars, GPUSHMEM_CMP_EQ, (TYPE)-2) == YES);                            \
        CHECK(gpushmem_##VERB(changing, GPUSHMEM_CMP_EQ, (TYPE)-2) == YES);                        \
        CHECK(gpushmem_##VERB##_all(vars, 2, NULL, GPUSHMEM_CMP_NE, (TYPE)5) == YES);              \
        CHECK(gpushmem_##VERB##_any(vars, 2, skip, GPUSHMEM_CMP_NE, (TYPE)5) == 1);                \
        CHECK(gpushmem_##VERB##_some(vars, 2, at, NULL, GPUSHMEM_CMP_EQ, (TYPE)3) == 1 &&          \
              at[0] == 1);                                                                         \
        CHECK(gpushmem_##VERB##_all_vector(vars, 2, NULL, GPUSHMEM_CMP_EQ, values) == YES);        \
        CHECK(gpushmem_##VERB##_any_vector(vars, 2, skip, GPUSHMEM_CMP_EQ, values) == 1);          \
        CHECK(gpushmem_##VERB##_some_vector(vars, 2, at, skip, GPUSHMEM_CMP_EQ, values) == 1);     \
    }
#define SYNC(NAME, TYPE)                                                                           \
    DEFINE_VERB(NAME, TYPE, wait_until, 0)                                                         \
    DEFINE_VERB(NAME, TYPE, test, 1)
SYNC_TYPES(SYNC)

static void signals(void)
{
    uint64_t seen = 0;
    OK(gpushmem_signal_op(sig, 5, GPUSHMEM_SIGNAL_SET, 0));
    OK(gpushmem_signal_op(ctx, sig, 6, GPUSHMEM_SIGNAL_ADD, 0));
    OK(gpushmem_signal_wait_until_status(sig, GPUSHMEM_CMP_GE, 11, &seen));
    CHECK(seen == 11);
    OK(gpushmem_signal_wait_until_status(sig, GPUSHMEM_CMP_EQ, 11, NULL));
    CHECK(gpushmem_signal_wait_until_status(&seen, GPUSHMEM_CMP_EQ, 11, &seen) ==
          GPUSHMEM_ERR_ADDRESS);
    OK(gpushmem_signal_op(sig, 0, GPUSHMEM_SIGNAL_SET, 0));
    OK(gpushmem_signal_fetch_status(sig, &seen));
    CHECK(seen == 0);
    CHECK(gpushmem_signal_fetch_status(&seen, &seen) == GPUSHMEM_ERR_ADDRESS);
    CHECK(gpushmem_signal_fetch_status(sig, NULL) == GPUSHMEM_ERR_INVALID);
}

int main(void)
{
    OK(gpushmem_init());
    area = (char *)gpushmem_calloc(1, 256);
    sig = (uint64_t *)gpushmem_calloc(1, sizeof *sig);
    CHECK(area != NULL && sig != NULL);
    OK(gpushmem_ctx_create(0, &ctx));
#define RUN(GROUP, NAME)                                                                           \
    GROUP##_##NAME##_PLAIN();                                                                      \
    GROUP##_##NAME##_CTX();
#define RUN_RMA(NAME, TYPE)      RUN(rma, NAME)
#define RUN_EXTENDED(NAME, TYPE) RUN(extended, NAME)
#define RUN_AMO(NAME, TYPE)      RUN(amo, NAME)
#define RUN_BITWISE(NAME, TYPE)  RUN(bitwise, NAME)
#define RUN_SYNC(NAME, TYPE)                                                                       \
    wait_until_##NAME();                                                                           \
    test_##NAME();
    signals();
    RMA_TYPES(RUN_RMA)
    EXTENDED_TYPES(RUN_EXTENDED)
    AMO_TYPES(RUN_AMO)
    BITWISE_TYPES(RUN_BITWISE)
    SYNC_TYPES(RUN_SYNC)
#define RUN_ONE(GROUP, NAME) GROUP##_##NAME();
#define RUN_COLL(NAME, TYPE) RUN_ONE(coll, NAME)
#define RUN_FOLD(NAME, TYPE) RUN_ONE(fold, NAME)
#define RUN_BITS(NAME, TYPE) RUN_ONE(bits, NAME)
    RMA_TYPES(RUN_COLL)
    EXTENDED_TYPES(RUN_FOLD)
    AMO_TYPES(RUN_BITS)
    int status = gpushmem_p(sig, gpushmem_g(sig, 0) + gpushmem_atomic_fetch(ctx, sig, 0),
                            0); // one within another
    CHECK(status == 0 && *sig == 14);
    OK(gpushmem_ctx_destroy(ctx));
    OK(gpushmem_free(sig));
    OK(gpushmem_free(area));
    OK(gpushmem_finalize());
    return 0;
}
