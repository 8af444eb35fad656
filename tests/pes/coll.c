// SPDX-License-Identifier: BSD-3-Clause
// Collective operations over several teams: every size around a switch of algorithms, every
// operator and type, in place, with PEs that come at random times and prepare their dest only then.
// Results are compared bit by bit with a fold from the left.
//   coll [ROUNDS]
//   coll smoke               three sizes of each, for slow networks
//   coll threads [ROUNDS]    several threads, each with a team of its own
//   coll messages            what goes to other nodes
//   coll counts              how much that is for all PEs, and nothing else
//   coll doubling            sums of integers in rounds between nodes
//   coll late                large ones by nodes, whose data comes after its acknowledgement
#define _GNU_SOURCE // usleep
#include "coll.h"

#include <math.h>
#include <pthread.h>
#include <unistd.h>

enum { MOST_BYTES = 200000 };
static int rounds;
int me, n_pes;
char *dest, *source, *expected;

static uint32_t random_next(void)
{
    static uint32_t state;
    if (state == 0)
        state = 177u + (uint32_t)me;
    state = state * 1664525u + 1013904223u;
    return state >> 8;
}

void skew(void)
{
    uint32_t draw = random_next() % 128;
    if (draw == 0)
        usleep(random_next() % 300);
    else if (draw < 16)
        for (volatile uint32_t i = 0; i < draw * 300; ++i) {
        }
}

void prepare(size_t dest_bytes)
{
    skew();
    memset(dest, 0xa5, dest_bytes);
}

static void compare(const char *what, size_t bytes, size_t n)
{
    for (size_t i = 0; i < bytes; ++i)
        CHECK_THAT(dest[i] == expected[i], "%s, %zu elements: byte %zu of %zu is %02x, not %02x",
                   what, n, i, bytes, dest[i] & 255, expected[i] & 255);
    CHECK_THAT((dest[bytes] & 255) == 0xa5, "%s, %zu elements: wrote beyond its dest", what, n);
}

// ---- Data that moves ----

// Bytes of part `part` that rank has.
static void fill_part(char *to, size_t bytes, int rank, int part, unsigned seed)
{
    fill(to, bytes, seed * 31u + (unsigned)rank * 7u + (unsigned)part);
}

void check_broadcast(gpushmem_team_t team, size_t bytes, unsigned seed)
{
    int n = gpushmem_team_n_pes(team), rank = gpushmem_team_my_pe(team), root = (int)seed % n;
    fill_part(source, bytes, rank, 0, seed);
    fill_part(expected, bytes, root, 0, seed);
    prepare(bytes + 1);
    CHECK_OK(gpushmem_broadcastmem(team, dest, source, bytes, root));
    compare("broadcast", bytes, bytes);
    memcpy(dest, source, bytes); // in place
    skew();
    CHECK_OK(gpushmem_uchar_broadcast(team, (unsigned char *)dest, (unsigned char *)dest, bytes,
                                      n - 1 - root));
    fill_part(expected, bytes, n - 1 - root, 0, seed);
    compare("broadcast in place", bytes, bytes);
}

void check_fcollect(gpushmem_team_t team, size_t bytes, unsigned seed)
{
    int n = gpushmem_team_n_pes(team), rank = gpushmem_team_my_pe(team);
    size_t all = (size_t)n * bytes;
    fill_part(source, bytes, rank, 0, seed);
    for (int r = 0; r < n; ++r)
        fill_part(expected + (size_t)r * bytes, bytes, r, 0, seed);
    prepare(all + 1);
    CHECK_OK(gpushmem_fcollectmem(team, dest, source, bytes));
    compare("fcollect", all, bytes);
    prepare(all + 1);
    memcpy(dest + (size_t)rank * bytes, source, bytes); // its own part
    CHECK_OK(gpushmem_fcollectmem(team, dest, dest + (size_t)rank * bytes, bytes));
    compare("fcollect in place", all, bytes);
}

static size_t count_of(int rank, size_t bytes, unsigned seed)
{
    return (seed + (unsigned)rank) % 3 == 0 ? 0 : bytes / (1 + (seed + (unsigned)rank) % 4);
}

void check_collect(gpushmem_team_t team, size_t bytes, unsigned seed)
{
    int n = gpushmem_team_n_pes(team), rank = gpushmem_team_my_pe(team);
    size_t all = 0, mine = count_of(rank, bytes, seed);
    for (int r = 0; r < n; ++r) {
        fill_part(expected + all, count_of(r, bytes, seed), r, 0, seed);
        all += count_of(r, bytes, seed);
    }
    fill_part(source, mine, rank, 0, seed);
    prepare(all + 1);
    CHECK_OK(gpushmem_collectmem(team, dest, source, mine));
    compare("collect", all, bytes);
}

static void check_alltoall(gpushmem_team_t team, size_t bytes, unsigned seed)
{
    int n = gpushmem_team_n_pes(team), rank = gpushmem_team_my_pe(team);
    for (int r = 0; r < n; ++r) {
        fill_part(source + (size_t)r * bytes, bytes, rank, r, seed);
        fill_part(expected + (size_t)r * bytes, bytes, r, rank, seed);
    }
    prepare((size_t)n * bytes + 1);
    CHECK_OK(gpushmem_alltoallmem(team, dest, source, bytes));
    compare("alltoall", (size_t)n * bytes, bytes);
}

static void check_alltoalls(gpushmem_team_t team, size_t nelems, unsigned seed)
{
    int n = gpushmem_team_n_pes(team), rank = gpushmem_team_my_pe(team);
    ptrdiff_t dst = 1 + seed % 3, sst = 1 + seed / 3 % 3;
    size_t all = (size_t)n * nelems, span = (all - 1) * (size_t)dst + 1;
    if (nelems == 0 || all * 3 * sizeof(short) > (size_t)n * MOST_BYTES)
        return;
    prepare(span * sizeof(short) + 1);
    memset(expected, 0xa5, span * sizeof(short));
    for (size_t i = 0; i < all; ++i) {
        short out = (short)(i * 5 + (size_t)rank + seed),
              in = (short)((i % nelems + (size_t)rank * nelems) * 5 + i / nelems + seed);
        memcpy(source + i * (size_t)sst * sizeof out, &out, sizeof out);
        memcpy(expected + i * (size_t)dst * sizeof in, &in, sizeof in);
    }
    CHECK_OK(gpushmem_short_alltoalls(team, (short *)(void *)dest, (short *)(void *)source, dst,
                                      sst, nelems));
    compare("alltoalls", span * sizeof(short), nelems);
}

// ---- Reductions ----

// Values whose sums and products stay exact for some ranks, and are not the same in another order
// for floating point.
static double value_of(int rank, size_t i, unsigned seed)
{
    return (double)((seed + (unsigned)rank * 3u + (unsigned)i * 5u) % 7u) + 1.0;
}

#define MINIMUM(a, b)    ((b) < (a) ? (b) : (a))
#define MAXIMUM(a, b)    ((b) > (a) ? (b) : (a))
#define SCALE_INTEGER(x) (x)
#define SCALE_FLOAT(x)   ((x) / 3)

// gpushmem_NAME_OP_reduce and _reducescatter of n elements.
#define CHECK_FOLD(NAME, TYPE, OP, SCALE, EXPRESSION)                                              \
    static void check_##NAME##_##OP(gpushmem_team_t team, size_t n, unsigned seed)                 \
    {                                                                                              \
        TYPE *to = (TYPE *)(void *)dest, *from = (TYPE *)(void *)source;                           \
        TYPE *want = (TYPE *)(void *)expected;                                                     \
        int ranks = gpushmem_team_n_pes(team), rank = gpushmem_team_my_pe(team);                   \
        size_t all = n * (size_t)ranks;                                                            \
        for (size_t i = 0; i < all; ++i) {                                                         \
            TYPE a = (TYPE)SCALE((TYPE)value_of(0, i, seed));                                      \
            for (int r = 1; r < ranks; ++r) {                                                      \
                const TYPE b = (TYPE)SCALE((TYPE)value_of(r, i, seed));                            \
                a = (TYPE)(EXPRESSION);                                                            \
            }                                                                                      \
            want[i] = a;                                                                           \
            from[i] = (TYPE)SCALE((TYPE)value_of(rank, i, seed));                                  \
        }                                                                                          \
        prepare(n * sizeof(TYPE) + 1);                                                             \
        CHECK_OK(gpushmem_##NAME##_##OP##_reduce(team, to, from, n));                              \
        compare(#NAME " " #OP "_reduce", n * sizeof(TYPE), n);                                     \
        memmove(expected, want + (size_t)rank * n, n * sizeof(TYPE));                              \
        prepare(n * sizeof(TYPE) + 1);                                                             \
        CHECK_OK(gpushmem_##NAME##_##OP##_reducescatter(team, to, from, n));                       \
        compare(#NAME " " #OP "_reducescatter", n * sizeof(TYPE), n);                              \
    }
#define CHECK_ORDERED(NAME, TYPE, SCALE)                                                           \
    CHECK_FOLD(NAME, TYPE, sum, SCALE, a + b)                                                      \
    CHECK_FOLD(NAME, TYPE, prod, SCALE, a *b)                                                      \
    CHECK_FOLD(NAME, TYPE, min, SCALE, MINIMUM(a, b))                                              \
    CHECK_FOLD(NAME, TYPE, max, SCALE, MAXIMUM(a, b))
#define CHECK_INTEGER(NAME, TYPE)                                                                  \
    CHECK_ORDERED(NAME, TYPE, SCALE_INTEGER)                                                       \
    CHECK_FOLD(NAME, TYPE, and, SCALE_INTEGER, a &b)                                               \
    CHECK_FOLD(NAME, TYPE, or, SCALE_INTEGER, a | b)                                               \
    CHECK_FOLD(NAME, TYPE, xor, SCALE_INTEGER, a ^ b)
GPUSHMEM_INTEGER_TYPES(CHECK_INTEGER)
CHECK_ORDERED(float, float, SCALE_FLOAT)
CHECK_ORDERED(double, double, SCALE_FLOAT)

typedef void check_fn(gpushmem_team_t team, size_t n, unsigned seed);
#define ORDERED_ROW(NAME, TYPE)                                                                    \
    check_##NAME##_sum, check_##NAME##_prod, check_##NAME##_min, check_##NAME##_max,
#define INTEGER_ROW(NAME, TYPE)                                                                    \
    ORDERED_ROW(NAME, TYPE) check_##NAME##_and, check_##NAME##_or, check_##NAME##_xor,
static check_fn *const folds[] = {GPUSHMEM_INTEGER_TYPES(INTEGER_ROW) ORDERED_ROW(float, float)
                                      ORDERED_ROW(double, double)};

static void check_wide(gpushmem_team_t team, size_t n)
{
    gpushmem_complexf *to = (void *)dest, *from = (void *)source;
    int ranks = gpushmem_team_n_pes(team), rank = gpushmem_team_my_pe(team);
    int sum = ranks * (ranks - 1) / 2;
    long double *wide = (void *)dest, *wide_from = (void *)source;
    for (size_t i = 0; i < n; ++i) {
        float value[2] = {(float)rank, (float)i};
        memcpy(&from[i], value, sizeof value);
    }
    skew();
    CHECK_OK(gpushmem_complexf_sum_reduce(team, to, from, n));
    for (size_t i = 0; i < n; ++i) {
        float value[2];
        memcpy(value, &to[i], sizeof value);
        CHECK(value[0] == (float)sum && value[1] == (float)i * (float)ranks);
    }
    for (size_t i = 0; i < n; ++i)
        wide_from[i] = (long double)(rank + 1) + (long double)i;
    skew();
    CHECK_OK(gpushmem_longdouble_max_reduce(team, wide, wide_from, n));
    for (size_t i = 0; i < n; ++i)
        CHECK(wide[i] == (long double)ranks + (long double)i);
}

// Element 0 is no number on rank 1; the others are the same on some ranks.
static double maxloc_value(int rank, size_t i)
{
    return i == 0 && rank == 1 ? NAN : (double)((rank * 3 + (int)(i % 100)) % 5);
}

static void check_maxloc(gpushmem_team_t team, size_t n)
{
    gpushmem_double2 *to = (void *)dest, *from = (void *)source;
    int ranks = gpushmem_team_n_pes(team), rank = gpushmem_team_my_pe(team);
    for (int on_stream = 0; on_stream < 2; ++on_stream) {
        for (size_t i = 0; i < n; ++i)
            from[i] = (gpushmem_double2){maxloc_value(rank, i), -rank};
        skew();
        CHECK_OK(on_stream ? gpushmem_double2_maxloc_reduce_on_stream(team, to, from, n, NULL)
                           : gpushmem_double2_maxloc_reduce(team, to, from, n));
        for (size_t i = 0; i < n; ++i) {
            gpushmem_double2 best = {-1, 0};
            for (int r = 0; r < ranks; ++r)
                if (maxloc_value(r, i) >= best.x)
                    best = (gpushmem_double2){maxloc_value(r, i), -r};
            if (i > 0 || ranks < 2)
                CHECK(to[i].x == best.x && to[i].y == best.y);
            else
                CHECK(isnan(to[0].x) && to[0].y == -1);
        }
        CHECK_OK(gpushmem_barrier(team));
    }
}

static void check_scans(gpushmem_team_t team, size_t n, unsigned seed)
{
    int rank = gpushmem_team_my_pe(team);
    float *to = (void *)dest, *from = (void *)source, *want = (void *)expected;
    for (int inclusive = 0; inclusive < 2; ++inclusive) {
        for (size_t i = 0; i < n; ++i) {
            float sum = 0;
            for (int r = 0; r < rank + inclusive; ++r)
                sum = r == 0 ? (float)value_of(0, i, seed) / 3
                             : sum + (float)value_of(r, i, seed) / 3;
            want[i] = sum;
            from[i] = (float)value_of(rank, i, seed) / 3;
        }
        prepare(n * sizeof(float) + 1);
        CHECK_OK(inclusive ? gpushmem_float_sum_inscan(team, to, from, n)
                           : gpushmem_float_sum_exscan(team, to, from, n));
        compare(inclusive ? "inscan" : "exscan", n * sizeof(float), n);
        memcpy(dest, source, n * sizeof(float)); // in place
        skew();
        CHECK_OK(inclusive ? gpushmem_float_sum_inscan(team, to, to, n)
                           : gpushmem_float_sum_exscan(team, to, to, n));
        compare("scan in place", n * sizeof(float), n);
    }
}

void check_in_place(gpushmem_team_t team, size_t n)
{
    int ranks = gpushmem_team_n_pes(team), rank = gpushmem_team_my_pe(team);
    uint32_t *values = (void *)dest;
    for (size_t i = 0; i < n * (size_t)ranks; ++i)
        values[i] = (uint32_t)(i + (size_t)rank);
    skew();
    uint32_t *part = values + (size_t)rank * n, base = (uint32_t)(ranks * (ranks - 1) / 2);
    CHECK_OK(gpushmem_uint32_sum_reducescatter(team, part, values, n));
    for (size_t i = 0; i < n; ++i)
        CHECK(part[i] == (uint32_t)((size_t)ranks * (i + (size_t)rank * n)) + base);
    for (size_t i = 0; i < n; ++i)
        values[i] = (uint32_t)(i + (size_t)rank);
    skew();
    CHECK_OK(gpushmem_uint32_sum_reduce(team, values, values, n));
    for (size_t i = 0; i < n; ++i)
        CHECK(values[i] == (uint32_t)((size_t)ranks * i) + base);
}

// ---- Objects outside the heap ----

static char static_dest[MOST_PES * 5000], static_source[5000];

static void check_statics(gpushmem_team_t team)
{
    int n = gpushmem_team_n_pes(team), rank = gpushmem_team_my_pe(team);
    if (!gpushmem_addr_accessible(static_dest, me))
        return;
    for (size_t bytes = 40; bytes <= sizeof static_source; bytes *= 5) {
        fill_part(static_source, bytes, rank, 0, 3);
        for (int r = 0; r < n; ++r)
            fill_part(expected + (size_t)r * bytes, bytes, r, 0, 3);
        skew();
        CHECK_OK(gpushmem_fcollectmem(team, static_dest, static_source, bytes));
        CHECK(memcmp(static_dest, expected, (size_t)n * bytes) == 0);
        memset(static_dest, 0, sizeof static_dest);
        memcpy(source, static_source, bytes);
        skew();
        CHECK_OK(gpushmem_fcollectmem(team, static_dest, source, bytes));
        CHECK(memcmp(static_dest, expected, (size_t)n * bytes) == 0);
        skew();
        CHECK_OK(gpushmem_uint8_max_reduce(team, (uint8_t *)dest, (uint8_t *)static_source, bytes));
        for (size_t i = 0; i < bytes; ++i) {
            uint8_t most = 0;
            for (int r = 0; r < n; ++r)
                most = MAXIMUM(most, (uint8_t)expected[(size_t)r * bytes + i]);
            CHECK((uint8_t)dest[i] == most);
        }
    }
}

// ---- Several threads ----

enum { THREADS = 3, MOST_WORDS = 3000 };

struct thread {
    pthread_t id;
    gpushmem_team_t team;
    uint32_t *to, *from; // [n_pes * MOST_WORDS]
    unsigned number;
};

static void *run_thread(void *argument)
{
    const struct thread *t = argument;
    unsigned state = t->number * 77u + (unsigned)me;
    for (unsigned round = 0; round < (unsigned)rounds; ++round) {
        size_t n = round % 4 == 3 ? MOST_WORDS : 1 + round % 40;
        uint32_t seed = round * 10 + t->number;
        for (size_t i = 0; i < n * (size_t)n_pes; ++i)
            t->from[i] = (uint32_t)i + (uint32_t)me + seed;
        if ((state = state * 1664525u + 1013904223u) >> 24 < 8)
            usleep(state >> 8 & 127);
        CHECK_OK(gpushmem_uint32_sum_reduce(t->team, t->to, t->from, n));
        for (size_t i = 0; i < n; ++i)
            CHECK(t->to[i] ==
                  (uint32_t)n_pes * ((uint32_t)i + seed) + (uint32_t)(n_pes * (n_pes - 1) / 2));
        CHECK_OK(gpushmem_uint32_alltoall(t->team, t->to, t->from, n));
        for (size_t i = 0; i < n * (size_t)n_pes; ++i)
            CHECK(t->to[i] == (uint32_t)((size_t)me * n + i % n) + (uint32_t)(i / n) + seed);
        CHECK_OK(gpushmem_uint32_broadcast(t->team, t->to, t->from, n, (int)round % n_pes));
        CHECK(t->to[n - 1] == (uint32_t)n - 1 + (uint32_t)round % (uint32_t)n_pes + seed);
    }
    return NULL;
}

static int run_threads(void)
{
    struct thread threads[THREADS];
    for (unsigned i = 0; i < THREADS; ++i) {
        struct thread *t = &threads[i];
        *t = (struct thread){.number = i};
        t->to = gpushmem_calloc((size_t)n_pes * MOST_WORDS, sizeof *t->to);
        t->from = gpushmem_calloc((size_t)n_pes * MOST_WORDS, sizeof *t->from);
        CHECK(t->to && t->from);
        CHECK_OK(gpushmem_team_split_strided(GPUSHMEM_TEAM_WORLD, 0, 1, n_pes, NULL, 0, &t->team));
    }
    for (unsigned i = 0; i < THREADS; ++i)
        CHECK(pthread_create(&threads[i].id, NULL, run_thread, &threads[i]) == 0);
    for (unsigned i = 0; i < THREADS; ++i)
        CHECK(pthread_join(threads[i].id, NULL) == 0);
    for (unsigned i = 0; i < THREADS; ++i) {
        CHECK_OK(gpushmem_team_destroy(threads[i].team));
        CHECK_OK(gpushmem_free(threads[i].to));
        CHECK_OK(gpushmem_free(threads[i].from));
    }
    CHECK_OK(gpushmem_finalize());
    return 0;
}

// ---- All of them ----

void check_sums(gpushmem_team_t team, size_t n, unsigned seed)
{
    check_double_sum(team, n, seed);
}

void check_products(gpushmem_team_t team, size_t n, unsigned seed)
{
    check_float_prod(team, n, seed);
}

void check_bytes(gpushmem_team_t team, size_t bytes, unsigned seed)
{
    check_broadcast(team, bytes, seed);
    check_fcollect(team, bytes, seed);
    check_collect(team, bytes, seed);
    check_alltoall(team, bytes, seed);
    check_alltoalls(team, bytes / 3, seed);
    if (bytes / 8 != 0) {
        check_int64_sum(team, bytes / 8, seed);
        check_scans(team, bytes / 4, seed);
        check_in_place(team, bytes / 8);
    }
}

static void nothing(gpushmem_team_t team)
{
    prepare(1);
    expected[0] = dest[0];
    if (me % 2 == 0) // waits for nobody
        CHECK_OK(gpushmem_broadcastmem(team, NULL, NULL, 0, 0));
    CHECK_OK(gpushmem_collectmem(team, dest, NULL, 0));
    CHECK_OK(gpushmem_fcollectmem(team, NULL, NULL, 0));
    CHECK_OK(gpushmem_alltoallmem(team, NULL, NULL, 0));
    CHECK_OK(gpushmem_alltoallsmem(team, NULL, NULL, 2, 3, 0));
    CHECK_OK(gpushmem_int_sum_reduce(team, NULL, NULL, 0));
    CHECK_OK(gpushmem_int_sum_reducescatter(team, NULL, NULL, 0));
    CHECK_OK(gpushmem_half_sum_inscan(team, NULL, NULL, 0));
    CHECK_OK(gpushmem_complexd_sum_exscan(team, NULL, NULL, 0));
    CHECK_OK(gpushmem_barrier(team));
    CHECK(dest[0] == expected[0]);
}

static void refusals(void)
{
    int local, *word = (void *)dest;
    CHECK(gpushmem_broadcastmem(GPUSHMEM_TEAM_WORLD, dest, source, 1, n_pes) ==
          GPUSHMEM_ERR_INVALID);
    CHECK(gpushmem_int_sum_reduce(GPUSHMEM_TEAM_WORLD, &local, word, 1) == GPUSHMEM_ERR_ADDRESS);
    CHECK(gpushmem_int_alltoalls(GPUSHMEM_TEAM_WORLD, word, word, 0, 1, 1) == GPUSHMEM_ERR_INVALID);
    CHECK(gpushmem_int_fcollect(GPUSHMEM_TEAM_INVALID, word, word, 1) == GPUSHMEM_ERR_INVALID);
    CHECK(gpushmem_int_fcollect(GPUSHMEM_TEAM_WORLD, word, word, SIZE_MAX) == GPUSHMEM_ERR_ADDRESS);
    CHECK(gpushmem_collectmem(GPUSHMEM_TEAM_WORLD, dest, source, (size_t)1 << 50) ==
          GPUSHMEM_ERR_ADDRESS);
    CHECK_OK(gpushmem_barrier(GPUSHMEM_TEAM_WORLD));
}

int main(int argc, char **argv)
{
    static const size_t sizes[] = {
        1, 8, 40, 57, 500, 1008, 2017, 4032, 4033, 20000, MOST_BYTES - 24};
    enum { ROOM = 4032 }; // what a PE hands over at once, from which the ways' switches follow
    bool threads = argc > 1 && strcmp(argv[1], "threads") == 0;
    bool messages = argc > 1 && strcmp(argv[1], "messages") == 0;
    bool counts = argc > 1 && strcmp(argv[1], "counts") == 0;
    bool late = argc > 1 && strcmp(argv[1], "late") == 0;
    bool doubling = argc > 1 && strcmp(argv[1], "doubling") == 0;
    bool smoke = argc > 1 && strcmp(argv[1], "smoke") == 0;
    rounds = smoke                        ? 0
             : threads                    ? check_rounds(argc - 1, argv + 1, 100)
             : messages || counts || late ? 0
                                          : check_rounds(argc, argv, 1);
    CHECK_OK(threads ? gpushmem_init_thread(GPUSHMEM_THREAD_MULTIPLE, NULL) : gpushmem_init());
    me = gpushmem_my_pe();
    n_pes = gpushmem_n_pes();
    CHECK(n_pes <= MOST_PES);
    if (threads)
        return run_threads();
    dest = gpushmem_malloc((size_t)n_pes * MOST_BYTES);
    source = gpushmem_malloc((size_t)n_pes * MOST_BYTES);
    expected = malloc((size_t)n_pes * MOST_BYTES);
    CHECK(dest && source && expected);
    if (messages || counts || late || doubling) {
        (messages ? run_messages : counts ? run_counts : late ? run_late : run_doubling)();
        CHECK_OK(gpushmem_free(source));
        CHECK_OK(gpushmem_free(dest));
        free(expected);
        CHECK_OK(gpushmem_finalize());
        return 0;
    }
    gpushmem_team_t teams[4] = {GPUSHMEM_TEAM_WORLD, GPUSHMEM_TEAM_NODE};
    CHECK_OK(
        gpushmem_team_split_strided(GPUSHMEM_TEAM_WORLD, n_pes - 1, -1, n_pes, NULL, 0, &teams[2]));
    CHECK_OK(gpushmem_team_split_strided(GPUSHMEM_TEAM_WORLD, 0, 2, (n_pes + 1) / 2, NULL, 0,
                                         &teams[3]));
    for (unsigned i = 0; i < (unsigned)rounds * (unsigned)(sizeof sizes / sizeof *sizes) * 3; ++i) {
        gpushmem_team_t team = teams[i % 4];
        if (team != GPUSHMEM_TEAM_INVALID)
            check_bytes(team, sizes[i % (sizeof sizes / sizeof *sizes)], i);
    }
    for (unsigned i = 0; smoke && i < 3; ++i)
        check_bytes(teams[0], sizes[i * 4], i);
    for (unsigned i = 0; !smoke && i < 6; ++i) {
        gpushmem_team_t team = teams[i % 3];
        size_t n = (size_t)gpushmem_team_n_pes(team), switch_at = i < 3 ? ROOM / n : ROOM / (2 * n);
        check_bytes(team, switch_at, i);
        check_bytes(team, switch_at + 1, i);
    }
    for (unsigned i = 0; !smoke && i < sizeof folds / sizeof *folds; ++i)
        folds[i](teams[i % 3], 1 + i * 37 % 900, i);
    check_wide(teams[2], 3);
    check_maxloc(teams[2], 3);
    check_maxloc(teams[0], 3000);
    check_wide(teams[0], 3000);
    if (!smoke) {
        check_types(teams, 3);
        check_moves(teams, 3);
    }
    check_statics(teams[0]);
    check_statics(teams[2]);
    for (int i = 0; i < 3; ++i)
        nothing(teams[i]);
    refusals();
    CHECK_OK(gpushmem_team_destroy(teams[2]));
    CHECK_OK(gpushmem_team_destroy(teams[3]));
    CHECK_OK(gpushmem_free(source));
    CHECK_OK(gpushmem_free(dest));
    free(expected);
    CHECK_OK(gpushmem_finalize());
    return 0;
}
