// SPDX-License-Identifier: BSD-3-Clause
// Collective operations drawn from a seed: any of them, on teams of any members in any order, of
// sizes around every switch, in place and apart, one after another without anything in between.
// Results are compared bit by bit with the fold from the left, over values whose sums show the
// order.
//   coll_random [SEED [ROUNDS [THREADS [TYPE]]]]    of all types, or of one
#define _GNU_SOURCE // usleep
#include <float.h>
#include <math.h>
#include <pthread.h>
#include <unistd.h>

#include "check.h"

enum { MOST_PES = 16, PART_BYTES = 150000, MOST_THREADS = 4, GUARD = 64 };

static uint32_t hash(uint32_t x)
{
    x = (x ^ x >> 16) * 0x7feb352du;
    x = (x ^ x >> 15) * 0x846ca68bu;
    return x ^ x >> 16;
}

// ---- Types ----

enum { SUM, PROD, MIN, MAX, OPERATORS };

// A partial result, wide enough for all types.
union wide {
    int64_t i;
    uint64_t u;
    float f;
    double d;
    long double l;
    float cf[2];
    double cd[2];
};

static uint16_t half_bits(float value)
{
    uint32_t bits, sign;
    memcpy(&bits, &value, sizeof bits);
    sign = bits >> 16 & 0x8000u;
    value = fabsf(value);
    if (value >= 65520.0f)
        return (uint16_t)(sign | 0x7c00u);
    if (value < 0x1p-14f) // in units of 2^-24
        return (uint16_t)(sign | (uint32_t)rintf(value * 0x1p24f));
    bits &= 0x7fffffffu;
    bits += 0xfffu + (bits >> 13 & 1u);
    return (uint16_t)(sign | ((bits >> 13) - (112u << 10)));
}

static float half_value(uint16_t bits)
{
    uint32_t exponent = bits >> 10 & 31, wide = (bits & 0x7fffu) << 13;
    float value = (float)(bits & 0x3ff) * 0x1p-24f;
    wide += exponent == 31 ? 0x70000000u : 112u << 23;
    if (exponent)
        memcpy(&value, &wide, sizeof value);
    return bits & 0x8000 ? -value : value;
}

static uint16_t bfloat_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

static float bfloat_value(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return value;
}

// Of both signs and of sizes that differ: half's sums leave its range on the way now and then.
static double number(uint32_t bits)
{
    double value = 1.0 + (double)(bits & 0xffff) / 65536.0;
    value *= bits >> 16 & 64 ? 20000.0 : 1.0;
    return bits >> 31 ? -value : value;
}

static double factor(uint32_t bits)
{
    double value = 0.75 + (double)(bits & 0xffff) / 131072.0;
    return bits >> 31 ? -value : value;
}

#define CHOICE(a, b, op) (((op) == MIN ? (b) < (a) : (b) > (a)) ? (b) : (a))

#define INTEGER(NAME, TYPE)                                                                        \
    static void NAME##_make(void *to, uint32_t bits, int op)                                       \
    {                                                                                              \
        (void)op;                                                                                  \
        TYPE value = (TYPE)(bits * UINT64_C(0x9E3779B97F4A7C15) >> 7);                             \
        memcpy(to, &value, sizeof value);                                                          \
    }                                                                                              \
    static void NAME##_load(union wide *to, const void *from)                                      \
    {                                                                                              \
        TYPE value;                                                                                \
        memcpy(&value, from, sizeof value);                                                        \
        to->i = (int64_t)value;                                                                    \
    }                                                                                              \
    static void NAME##_step(union wide *acc, const union wide *with, int op)                       \
    {                                                                                              \
        TYPE a = (TYPE)acc->i, b = (TYPE)with->i;                                                  \
        uint64_t wrapped = op == SUM ? acc->u + with->u : acc->u * with->u;                        \
        acc->i = (int64_t)(op == SUM || op == PROD ? (TYPE)wrapped : CHOICE(a, b, op));            \
    }                                                                                              \
    static void NAME##_store(void *to, const union wide *from)                                     \
    {                                                                                              \
        TYPE value = (TYPE)from->i;                                                                \
        memcpy(to, &value, sizeof value);                                                          \
    }

#define FLOATING(NAME, TYPE, ACC, FIELD, TO, FROM)                                                 \
    static void NAME##_make(void *to, uint32_t bits, int op)                                       \
    {                                                                                              \
        TYPE value = FROM((ACC)(op == PROD ? factor(bits) : number(bits)));                        \
        memcpy(to, &value, sizeof value);                                                          \
    }                                                                                              \
    static void NAME##_load(union wide *to, const void *from)                                      \
    {                                                                                              \
        TYPE value;                                                                                \
        memcpy(&value, from, sizeof value);                                                        \
        to->FIELD = TO(value);                                                                     \
    }                                                                                              \
    static void NAME##_step(union wide *acc, const union wide *with, int op)                       \
    {                                                                                              \
        const ACC a = acc->FIELD, b = with->FIELD;                                                 \
        acc->FIELD = op == SUM ? a + b : op == PROD ? a * b : CHOICE(a, b, op);                    \
    }                                                                                              \
    static void NAME##_store(void *to, const union wide *from)                                     \
    {                                                                                              \
        TYPE value = FROM(from->FIELD);                                                            \
        memcpy(to, &value, sizeof value);                                                          \
    }

// Each product and sum is rounded by itself.
#define COMPLEX(NAME, PART, FIELD)                                                                 \
    static void NAME##_make(void *to, uint32_t bits, int op)                                       \
    {                                                                                              \
        PART value[2] = {(PART)(op == PROD ? factor(bits) : number(bits)),                         \
                         (PART)(op == PROD ? factor(hash(bits)) : number(hash(bits)))};            \
        memcpy(to, value, sizeof value);                                                           \
    }                                                                                              \
    static void NAME##_load(union wide *to, const void *from)                                      \
    {                                                                                              \
        memcpy(to->FIELD, from, sizeof to->FIELD);                                                 \
    }                                                                                              \
    static void NAME##_step(union wide *acc, const union wide *with, int op)                       \
    {                                                                                              \
        const PART a = acc->FIELD[0], b = acc->FIELD[1], c = with->FIELD[0], d = with->FIELD[1];   \
        volatile PART ac = a * c, bd = b * d, ad = a * d, bc = b * c;                              \
        acc->FIELD[0] = op == SUM ? a + c : ac - bd;                                               \
        acc->FIELD[1] = op == SUM ? b + d : ad + bc;                                               \
    }                                                                                              \
    static void NAME##_store(void *to, const union wide *from)                                     \
    {                                                                                              \
        memcpy(to, from->FIELD, sizeof from->FIELD);                                               \
    }

INTEGER(int8, int8_t)
INTEGER(uint16, uint16_t)
INTEGER(int32, int32_t)
INTEGER(uint64, uint64_t)
FLOATING(half, uint16_t, float, f, half_value, half_bits)
FLOATING(bfloat16, uint16_t, float, f, bfloat_value, bfloat_bits)
FLOATING(float, float, float, f, , )
FLOATING(double, double, double, d, , )
FLOATING(longdouble, long double, long double, l, , )
COMPLEX(complexf, float, cf)
COMPLEX(complexd, double, cd)

typedef int fold_fn(gpushmem_team_t team, void *to, const void *from, size_t n);
enum { REDUCE, SCATTER, FOLDS };

struct type {
    const char *name;
    size_t size, value_bytes; // without what a long double has to fill it up
    int operators;
    void (*make)(void *to, uint32_t bits, int op);
    void (*load)(union wide *to, const void *from);
    void (*step)(union wide *acc, const union wide *with, int op);
    void (*store)(void *to, const union wide *from);
    fold_fn *folds[FOLDS][OPERATORS], *scans[2];
};

#define FOLD(NAME, TYPE, FUNCTION)                                                                 \
    static int NAME##_##FUNCTION(gpushmem_team_t team, void *to, const void *from, size_t n)       \
    {                                                                                              \
        return gpushmem_##NAME##_##FUNCTION(team, (TYPE *)to, (const TYPE *)from, n);              \
    }
#define SUMS(NAME, TYPE)                                                                           \
    FOLD(NAME, TYPE, sum_reduce)                                                                   \
    FOLD(NAME, TYPE, prod_reduce)                                                                  \
    FOLD(NAME, TYPE, sum_reducescatter)                                                            \
    FOLD(NAME, TYPE, prod_reducescatter)                                                           \
    FOLD(NAME, TYPE, sum_inscan)                                                                   \
    FOLD(NAME, TYPE, sum_exscan)
#define CHOICES(NAME, TYPE)                                                                        \
    SUMS(NAME, TYPE)                                                                               \
    FOLD(NAME, TYPE, min_reduce)                                                                   \
    FOLD(NAME, TYPE, max_reduce)                                                                   \
    FOLD(NAME, TYPE, min_reducescatter)                                                            \
    FOLD(NAME, TYPE, max_reducescatter)
CHOICES(int8, int8_t)
CHOICES(uint16, uint16_t)
CHOICES(int32, int32_t)
CHOICES(uint64, uint64_t)
CHOICES(half, gpushmem_half)
CHOICES(bfloat16, gpushmem_bfloat16)
CHOICES(float, float)
CHOICES(double, double)
CHOICES(longdouble, long double)
SUMS(complexf, gpushmem_complexf)
SUMS(complexd, gpushmem_complexd)

#define ROW(NAME, SIZE, VALUE, OPS, ...)                                                           \
    {                                                                                              \
#NAME, SIZE, VALUE, OPS, NAME##_make, NAME##_load, NAME##_step, NAME##_store, __VA_ARGS__, \
        {                                                                                          \
            NAME##_sum_inscan, NAME##_sum_exscan                                                   \
        }                                                                                          \
    }
#define SUM_ROW(NAME, SIZE)                                                                        \
    ROW(NAME, SIZE, SIZE, 2,                                                                       \
        {{NAME##_sum_reduce, NAME##_prod_reduce},                                                  \
         {NAME##_sum_reducescatter, NAME##_prod_reducescatter}})
#define CHOICE_ROW(NAME, SIZE, VALUE)                                                              \
    ROW(NAME, SIZE, VALUE, 4,                                                                      \
        {{NAME##_sum_reduce, NAME##_prod_reduce, NAME##_min_reduce, NAME##_max_reduce},            \
         {NAME##_sum_reducescatter, NAME##_prod_reducescatter, NAME##_min_reducescatter,           \
          NAME##_max_reducescatter}})
static const struct type types[] = {
    CHOICE_ROW(int8, 1, 1),
    CHOICE_ROW(uint16, 2, 2),
    CHOICE_ROW(int32, 4, 4),
    CHOICE_ROW(uint64, 8, 8),
    CHOICE_ROW(half, 2, 2),
    CHOICE_ROW(bfloat16, 2, 2),
    CHOICE_ROW(float, 4, 4),
    CHOICE_ROW(double, 8, 8),
    CHOICE_ROW(longdouble, sizeof(long double), LDBL_MANT_DIG == 64 ? 10 : sizeof(long double)),
    SUM_ROW(complexf, 8),
    SUM_ROW(complexd, 16),
};
enum { TYPES = sizeof types / sizeof *types, TEAMS = 4 };
static const struct type *only; // NULL: all of them

// ---- One thread's operations ----

static int me, n_pes;

struct worker {
    pthread_t id;
    gpushmem_team_t teams[TEAMS];
    int members[TEAMS][MOST_PES], sizes[TEAMS], ranks[TEAMS]; // ranks: -1 where this PE is none
    char *dest, *source, *expected;
    uint32_t drawn; // the same on all PEs
    uint32_t mine;  // this PE's own
    int rounds;
};

// One operation, drawn.
struct draw {
    const char *what;
    int round, n, rank, op;
    gpushmem_team_t team;
    const struct type *type;
    uint32_t seed;
    size_t nelems;
    bool in_place;
};

static uint32_t draw(struct worker *w, uint32_t below)
{
    w->drawn = w->drawn * 1664525u + 1013904223u;
    return hash(w->drawn) % below;
}

static void skew(struct worker *w)
{
    w->mine = w->mine * 1664525u + 1013904223u;
    if (w->mine >> 28 == 0)
        usleep(w->mine >> 8 & 511);
}

static void make_elements(char *to, const struct draw *d, int rank, size_t first, size_t count)
{
    size_t size = d->type->size, value = d->type->value_bytes;
    for (size_t i = 0; i < count; i++) {
        d->type->make(to + i * size,
                      hash(d->seed + (uint32_t)rank * 77777u + (uint32_t)(first + i)), d->op);
        memset(to + i * size + value, 0, size - value);
    }
}

// The ranks first .. last - 1, folded from the left; without any, zeros.
static void fold_elements(char *to, const struct draw *d, int last, size_t first, size_t count)
{
    const struct type *type = d->type;
    char element[sizeof(union wide)];
    memset(to, 0, count * type->size);
    for (size_t i = 0; i < count && last; i++) {
        union wide acc, with;
        make_elements(element, d, 0, first + i, 1);
        type->load(&acc, element);
        for (int rank = 1; rank < last; rank++) {
            make_elements(element, d, rank, first + i, 1);
            type->load(&with, element);
            type->step(&acc, &with, d->op);
        }
        type->store(to + i * type->size, &acc);
    }
}

static void compare(const struct worker *w, const struct draw *d, const char *dest, size_t count)
{
    size_t size = d->type->size;
    for (size_t i = 0; i < count; i++)
        CHECK_THAT(memcmp(dest + i * size, w->expected + i * size, d->type->value_bytes) == 0,
                   "round %d: %s of %zu %s, operator %d, rank %d of %d%s: element %zu", d->round,
                   d->what, d->nelems, d->type->name, d->op, d->rank, d->n,
                   d->in_place ? " in place" : "", i);
    for (size_t i = count * size; i < count * size + GUARD && !d->in_place; i++)
        CHECK_THAT((dest[i] & 255) == 0xa5, "round %d: %s of %zu %s: wrote beyond dest", d->round,
                   d->what, d->nelems, d->type->name);
}

// The source is as it was.
static void compare_source(const struct worker *w, const struct draw *d, size_t count)
{
    make_elements(w->expected, d, d->rank, 0, count);
    CHECK_THAT(d->in_place || memcmp(w->source, w->expected, count * d->type->size) == 0,
               "round %d: %s of %zu %s: source changed", d->round, d->what, d->nelems,
               d->type->name);
}

static void run_fold(struct worker *w, struct draw *d, int kind)
{
    size_t parts = kind == SCATTER ? (size_t)d->n : 1, all = parts * d->nelems;
    size_t first = kind == SCATTER ? (size_t)d->rank * d->nelems : 0;
    char *from = d->in_place ? w->dest : w->source;
    char *to = d->in_place ? w->dest + first * d->type->size : w->dest;
    d->what = kind == SCATTER ? "reducescatter" : "reduce";
    skew(w);
    memset(w->dest, 0xa5, all * d->type->size + GUARD);
    make_elements(from, d, d->rank, 0, all);
    CHECK_OK(d->type->folds[kind][d->op](d->team, to, from, d->nelems));
    fold_elements(w->expected, d, d->n, first, d->nelems);
    compare(w, d, to, d->nelems);
    compare_source(w, d, all);
}

static void run_scan(struct worker *w, struct draw *d, bool inclusive)
{
    char *from = d->in_place ? w->dest : w->source;
    d->what = inclusive ? "inscan" : "exscan";
    d->op = SUM;
    skew(w);
    memset(w->dest, 0xa5, d->nelems * d->type->size + GUARD);
    make_elements(from, d, d->rank, 0, d->nelems);
    CHECK_OK(d->type->scans[!inclusive](d->team, w->dest, from, d->nelems));
    fold_elements(w->expected, d, d->rank + inclusive, 0, d->nelems);
    compare(w, d, w->dest, d->nelems);
    compare_source(w, d, d->nelems);
}

static void run_broadcast(struct worker *w, struct draw *d)
{
    int root = (int)(d->seed % (uint32_t)d->n);
    size_t bytes = d->nelems * d->type->size;
    char *from = d->in_place ? w->dest : w->source;
    d->what = "broadcast";
    skew(w);
    memset(w->dest, 0xa5, bytes + GUARD);
    make_elements(from, d, d->rank, 0, d->nelems);
    CHECK_OK(gpushmem_broadcastmem(d->team, w->dest, from, bytes, root));
    make_elements(w->expected, d, root, 0, d->nelems);
    compare(w, d, w->dest, d->nelems);
    compare_source(w, d, d->nelems);
}

static size_t count_of(const struct draw *d, int rank)
{
    uint32_t choice = hash(d->seed + (uint32_t)rank);
    return choice % 3 == 0 ? 0 : choice % 3 == 1 ? d->nelems : choice / 3 % (d->nelems + 1);
}

static void run_collect(struct worker *w, struct draw *d, bool equal)
{
    size_t all = 0, size = d->type->size, mine = equal ? d->nelems : count_of(d, d->rank), at = 0;
    d->in_place = d->in_place && equal;
    d->what = equal ? "fcollect" : "collect";
    for (int rank = 0; rank < d->n; rank++) {
        at = rank == d->rank ? all : at;
        all += equal ? d->nelems : count_of(d, rank);
    }
    char *from = d->in_place ? w->dest + at * size : w->source;
    skew(w);
    memset(w->dest, 0xa5, all * size + GUARD);
    make_elements(from, d, d->rank, 0, mine);
    CHECK_OK(equal ? gpushmem_fcollectmem(d->team, w->dest, from, mine * size)
                   : gpushmem_collectmem(d->team, w->dest, from, mine * size));
    all = 0;
    for (int rank = 0; rank < d->n; rank++) {
        size_t count = equal ? d->nelems : count_of(d, rank);
        make_elements(w->expected + all * size, d, rank, 0, count);
        all += count;
    }
    compare(w, d, w->dest, all);
    compare_source(w, d, mine);
}

static void run_alltoall(struct worker *w, struct draw *d)
{
    size_t size = d->type->size, all = (size_t)d->n * d->nelems;
    d->what = "alltoall";
    d->in_place = false;
    skew(w);
    memset(w->dest, 0xa5, all * size + GUARD);
    make_elements(w->source, d, d->rank, 0, all);
    CHECK_OK(gpushmem_alltoallmem(d->team, w->dest, w->source, d->nelems * size));
    for (int rank = 0; rank < d->n; rank++)
        make_elements(w->expected + (size_t)rank * d->nelems * size, d, rank,
                      (size_t)d->rank * d->nelems, d->nelems);
    compare(w, d, w->dest, all);
    compare_source(w, d, all);
}

// Around where an operation of `n` members takes another way, and anything else.
static size_t draw_nelems(struct worker *w, size_t size, size_t n)
{
    enum { ROOM = 4032, CHAIN_PIECE = 32768, PIECE = 65536, PER_NODE = 16384 };
    const size_t around[] = {ROOM,     ROOM / n,     ROOM / (2 * n), CHAIN_PIECE,    PIECE,
                             PER_NODE, 2 * PER_NODE, 64 * n,         CHAIN_PIECE * n};
    uint32_t choice = draw(w, 4);
    size_t bytes = choice == 0   ? draw(w, 200)
                   : choice == 1 ? draw(w, PART_BYTES)
                                 : around[draw(w, sizeof around / sizeof *around)];
    size_t nelems = bytes / size, off = draw(w, 5);
    nelems = choice > 1 && nelems + off >= 2 ? nelems + off - 2 : nelems;
    return nelems * size <= PART_BYTES ? nelems : PART_BYTES / size;
}

static void run_round(struct worker *w, int round)
{
    uint32_t team = draw(w, TEAMS), kind = draw(w, 12);
    struct draw d = {.round = round,
                     .team = w->teams[team],
                     .n = w->sizes[team],
                     .rank = w->ranks[team],
                     .type = &types[draw(w, TYPES)],
                     .seed = draw(w, UINT32_MAX),
                     .in_place = draw(w, 2)};
    d.type = only ? only : d.type;
    d.op = (int)draw(w, (uint32_t)d.type->operators);
    d.nelems = draw_nelems(w, d.type->size, (size_t)d.n);
    if (d.rank < 0)
        return;
    switch (kind) {
    case 0:
    case 1: run_broadcast(w, &d); break;
    case 2: run_collect(w, &d, true); break;
    case 3: run_collect(w, &d, false); break;
    case 4: run_alltoall(w, &d); break;
    case 5: run_scan(w, &d, true); break;
    case 6: run_scan(w, &d, false); break;
    case 7:
    case 8: run_fold(w, &d, SCATTER); break;
    default: run_fold(w, &d, REDUCE);
    }
}

static void *run(void *argument)
{
    struct worker *w = argument;
    for (int round = 0; round < w->rounds; round++)
        run_round(w, round);
    return NULL;
}

// ---- Teams ----

// All PEs, those in reverse, some in any order, every other one.
static void draw_members(struct worker *w, int team)
{
    int *members = w->members[team], n = 0;
    for (int pe = 0; pe < n_pes; pe += team == 3 ? 2 : 1)
        members[n++] = team == 1 ? n_pes - 1 - pe : pe;
    for (int i = n - 1; i > 0 && team == 2; i--) {
        int other = (int)draw(w, (uint32_t)i + 1), kept = members[i];
        members[i] = members[other];
        members[other] = kept;
    }
    w->sizes[team] = team == 2 && n > 2 ? n - (int)draw(w, 2) : n;
    w->ranks[team] = -1;
    for (int i = 0; i < w->sizes[team]; i++)
        w->ranks[team] = members[i] == me ? i : w->ranks[team];
}

static void worker_begin(struct worker *w, uint32_t seed, int number, int rounds)
{
    const size_t bytes = (size_t)n_pes * PART_BYTES + GUARD;
    w->drawn = hash(seed * 16 + (uint32_t)number);
    w->mine = w->drawn + (uint32_t)me;
    w->rounds = rounds;
    w->dest = gpushmem_malloc(bytes);
    w->source = gpushmem_malloc(bytes);
    w->expected = malloc(bytes);
    CHECK(w->dest && w->source && w->expected);
    for (int team = 0; team < TEAMS; team++) {
        draw_members(w, team);
        CHECK_OK(gpushmem_team_split_list(GPUSHMEM_TEAM_WORLD, w->members[team], w->sizes[team],
                                          NULL, 0, &w->teams[team]));
    }
}

static void worker_end(struct worker *w)
{
    for (int team = 0; team < TEAMS; team++)
        if (w->ranks[team] >= 0)
            CHECK_OK(gpushmem_team_destroy(w->teams[team]));
    CHECK_OK(gpushmem_free(w->source));
    CHECK_OK(gpushmem_free(w->dest));
    free(w->expected);
}

int main(int argc, char **argv)
{
    static struct worker workers[MOST_THREADS];
    uint32_t seed = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 0) : 1;
    int rounds = argc > 2 ? atoi(argv[2]) : 100, threads = argc > 3 ? atoi(argv[3]) : 1;
    CHECK(threads > 0 && threads <= MOST_THREADS);
    for (int i = 0; argc > 4 && i < TYPES; i++)
        only = strcmp(types[i].name, argv[4]) == 0 ? &types[i] : only;
    CHECK(argc <= 4 || only);
    CHECK_OK(threads > 1 ? gpushmem_init_thread(GPUSHMEM_THREAD_MULTIPLE, NULL) : gpushmem_init());
    me = gpushmem_my_pe();
    n_pes = gpushmem_n_pes();
    CHECK(n_pes <= MOST_PES);
    for (int i = 0; i < threads; i++)
        worker_begin(&workers[i], seed, i, rounds);
    for (int i = 1; i < threads; i++)
        CHECK(pthread_create(&workers[i].id, NULL, run, &workers[i]) == 0);
    run(&workers[0]);
    for (int i = 1; i < threads; i++)
        CHECK(pthread_join(workers[i].id, NULL) == 0);
    for (int i = 0; i < threads; i++)
        worker_end(&workers[i]);
    CHECK_OK(gpushmem_finalize());
    return 0;
}
