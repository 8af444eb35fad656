// SPDX-License-Identifier: BSD-3-Clause
// Collective operations of every type, by small whole numbers, which all of them hold.
#include <float.h>

#include "coll.h"

static gpushmem_half half_of(int value)
{
    int exponent = 0;
    while (value >> exponent > 1)
        exponent++;
    return (gpushmem_half){
        value == 0 ? 0 : (uint16_t)((exponent + 15) << 10 | ((value << (10 - exponent)) & 0x3ff))};
}

static gpushmem_bfloat16 bfloat16_of(int value)
{
    float wide = (float)value;
    uint32_t bits;
    memcpy(&bits, &wide, sizeof bits);
    return (gpushmem_bfloat16){(uint16_t)(bits >> 16)};
}

enum { SUM, PROD, SCATTERED_SUM, SCATTERED_PROD, INSCAN, EXSCAN, FOLDS };
typedef int fold_fn(gpushmem_team_t team, void *to, const void *from, size_t n);

struct type_case {
    const char *name;
    size_t size, value_bytes; // without what a long double has to fill it up
    void (*make)(void *to, int value);
    fold_fn *folds[FOLDS];
};

#define MAKE(NAME, TYPE)                                                                           \
    static void make_##NAME(void *to, int value)                                                   \
    {                                                                                              \
        TYPE x = _Generic((TYPE *)0, gpushmem_half *                                               \
                          : half_of(value), gpushmem_bfloat16 *                                    \
                          : bfloat16_of(value), default                                            \
                          : value);                                                                \
        memcpy(to, &x, sizeof x);                                                                  \
    }
#define FOLD(NAME, TYPE, FUNCTION)                                                                 \
    static int NAME##_##FUNCTION(gpushmem_team_t team, void *to, const void *from, size_t n)       \
    {                                                                                              \
        return gpushmem_##NAME##_##FUNCTION(team, (TYPE *)to, (const TYPE *)from, n);              \
    }
#define TYPE_FOLDS(NAME, TYPE)                                                                     \
    MAKE(NAME, TYPE)                                                                               \
    FOLD(NAME, TYPE, sum_reduce)                                                                   \
    FOLD(NAME, TYPE, prod_reduce)                                                                  \
    FOLD(NAME, TYPE, sum_reducescatter)                                                            \
    FOLD(NAME, TYPE, prod_reducescatter)                                                           \
    FOLD(NAME, TYPE, sum_inscan)                                                                   \
    FOLD(NAME, TYPE, sum_exscan)
GPUSHMEM_COLL_TYPES(TYPE_FOLDS)

#define VALUE_BYTES(TYPE)                                                                          \
    _Generic((TYPE *)0, long double *: LDBL_MANT_DIG == 64 ? 10 : sizeof(TYPE),                    \
             default: sizeof(TYPE))
#define TYPE_ROW(NAME, TYPE)                                                                       \
    {#NAME,                                                                                        \
     sizeof(TYPE),                                                                                 \
     VALUE_BYTES(TYPE),                                                                            \
     make_##NAME,                                                                                  \
     {NAME##_sum_reduce, NAME##_prod_reduce, NAME##_sum_reducescatter, NAME##_prod_reducescatter,  \
      NAME##_sum_inscan, NAME##_sum_exscan}},
static const struct type_case types[] = {GPUSHMEM_COLL_TYPES(TYPE_ROW)};

static int term(int rank, size_t i)
{
    return 1 + (int)(((size_t)rank + i) % 2);
}

static int folded(int fold, int rank, int ranks, size_t i)
{
    bool product = fold == PROD || fold == SCATTERED_PROD;
    int value = product ? 1 : 0, last = fold == INSCAN ? rank + 1 : fold == EXSCAN ? rank : ranks;
    for (int r = 0; r < last; ++r)
        value = product ? value * term(r, i) : value + term(r, i);
    return value;
}

static void check_type(gpushmem_team_t team, const struct type_case *t, int fold, size_t n,
                       bool in_place)
{
    int ranks = gpushmem_team_n_pes(team), rank = gpushmem_team_my_pe(team);
    bool scattered = fold == SCATTERED_SUM || fold == SCATTERED_PROD;
    size_t first = scattered ? (size_t)rank * n : 0;
    char *from = in_place ? dest : source,
         *to = in_place && scattered ? dest + first * t->size : dest;
    prepare(n * t->size);
    for (size_t i = 0; i < (scattered ? n * (size_t)ranks : n); ++i)
        t->make(from + i * t->size, term(rank, i));
    skew();
    CHECK_OK(t->folds[fold](team, to, from, n));
    for (size_t i = 0; i < n; ++i) {
        t->make(expected, folded(fold, rank, ranks, first + i));
        CHECK_THAT(memcmp(to + i * t->size, expected, t->value_bytes) == 0,
                   "%s, fold %d of %zu elements, %s: element %zu", t->name, fold, n,
                   in_place ? "in place" : "apart", i);
    }
}

void check_types(const gpushmem_team_t *teams, int n_teams)
{
    for (int t = 0; t < (int)(sizeof types / sizeof *types); ++t)
        for (int fold = 0; fold < FOLDS; ++fold)
            for (int way = 0; way < 4; ++way)
                check_type(teams[(t + fold + way) % n_teams], &types[t], fold, way < 2 ? 5 : 1201,
                           way % 2);
}

// Elements of each type keep their places.
#define TYPE_MOVES(NAME, TYPE)                                                                     \
    static void moves_##NAME(gpushmem_team_t team, size_t n)                                       \
    {                                                                                              \
        TYPE *to = (TYPE *)(void *)dest, *from = (TYPE *)(void *)source, want;                     \
        int ranks = gpushmem_team_n_pes(team), rank = gpushmem_team_my_pe(team);                   \
        for (size_t i = 0; i < n * (size_t)ranks; ++i)                                             \
            make_##NAME(&from[i], (int)(i % 5) + rank);                                            \
        for (int operation = 0; operation < 5; ++operation) {                                      \
            prepare(n *(size_t)ranks * sizeof(TYPE));                                              \
            CHECK_OK(operation == 0   ? gpushmem_##NAME##_broadcast(team, to, from, n, 0)          \
                     : operation == 1 ? gpushmem_##NAME##_fcollect(team, to, from, n)              \
                     : operation == 2 ? gpushmem_##NAME##_collect(team, to, from, n)               \
                     : operation == 3 ? gpushmem_##NAME##_alltoall(team, to, from, n)              \
                                      : gpushmem_##NAME##_alltoalls(team, to, from, 1, 1, n));     \
            for (size_t i = 0; i < (operation ? n * (size_t)ranks : n); ++i) {                     \
                size_t at = operation > 2 ? (size_t)rank * n + i % n : i % n;                      \
                make_##NAME(&want, (int)(at % 5) + (int)(i / n));                                  \
                CHECK_THAT(memcmp(&to[i], &want, sizeof want) == 0, #NAME ", operation %d, %zu",   \
                           operation, i);                                                          \
            }                                                                                      \
        }                                                                                          \
    }
GPUSHMEM_RMA_TYPES(TYPE_MOVES)
#define MOVES_ROW(NAME, TYPE) moves_##NAME,
static void (*const moves[])(gpushmem_team_t team, size_t n) = {GPUSHMEM_RMA_TYPES(MOVES_ROW)};

void check_moves(const gpushmem_team_t *teams, int n_teams)
{
    for (int i = 0; i < (int)(sizeof moves / sizeof *moves); ++i)
        moves[i](teams[i % n_teams], i % 2 ? 3 : 1300);
}
