// SPDX-License-Identifier: BSD-3-Clause
// Collectives by whoever begins them: the same bits from the host, streams, threads, warps and
// blocks for all types and operators; scopes, channels, teams and streams side by side, out of
// step; the memory that teams have one after another; how many messages they take where members
// are behind a NIC; scans of very many pieces. With
// the argument `rounds` all but the first. With GPUSHMEM_CHECK=1 and `differ`: calls that differ
// between members are refused in kernels; and `at_once`: a team that two streams use.
#include <complex>
#include <string.h>

#include "kernel_check.cuh"

enum { N = 37, ROOM = 64 << 10 };

static int me, n_pes;
static char *from, *to; // symmetric
static int *statuses;   // symmetric
static struct gpushmem_dev dev;

__global__ void run(struct gpushmem_dev d, struct gpushmem_coll_op op, int scope, int *status)
{
    struct gpsh_dev_group groups[] = {gpsh_dev_group_of<gpsh_scope_thread>(),
                                      gpsh_dev_group_of<gpsh_scope_warp>(),
                                      gpsh_dev_group_of<gpsh_scope_block>()};
    int result = gpsh_dev_coll_run(d, groups[scope], op);
    if (result)
        *status = result;
}

static int run_now(const struct gpushmem_coll_op &op, int scope)
{
    static const int threads[] = {1, 32, 40};
    check_clear(statuses, sizeof *statuses);
    CHECK_OK(GPUSHMEM_LAUNCH(run, 1, threads[scope], NULL, dev, op, scope, statuses));
    int status = gpushmem_launch_wait(NULL), returned = check_read(statuses);
    CHECK(status == returned);
    return returned;
}

// ---- Bits ----

struct row {
    const char *name;
    int kind, type, fold;
    size_t width;
    int (*host)(void *dest, const void *source);
    int (*stream)(void *dest, const void *source);
};

#define ROW(CALL, KIND, FOLD, NAME, TYPE, NUMBER)                                                  \
    {#NAME "_" #CALL,                                                                              \
     GPUSHMEM_COLL_##KIND,                                                                         \
     NUMBER,                                                                                       \
     GPUSHMEM_COLL_##FOLD,                                                                         \
     sizeof(TYPE),                                                                                 \
     [](void *d, const void *s) {                                                                  \
         return gpushmem_##NAME##_##CALL(0, (TYPE *)d, (const TYPE *)s, N);                        \
     },                                                                                            \
     [](void *d, const void *s) {                                                                  \
         return gpushmem_##NAME##_##CALL##_on_stream(0, (TYPE *)d, (const TYPE *)s, N, NULL);      \
     }},
#define COMPLEX(NAME, TYPE, NUMBER) GPSH_COLLS_OF_SUMS(ROW, NAME, TYPE, NUMBER)
#define REAL(NAME, TYPE, NUMBER)                                                                   \
    GPSH_COLLS_OF_ORDER(ROW, NAME, TYPE, NUMBER)                                                   \
    COMPLEX(NAME, TYPE, NUMBER)
#define INTEGER(NAME, TYPE)                                                                        \
    REAL(NAME, TYPE, GPSH_COLL_INTEGER(TYPE))                                                      \
    GPSH_COLLS_OF_BITS(ROW, NAME, TYPE, GPSH_COLL_INTEGER(TYPE))

static const struct row rows[] = {
    INTEGER(int8, int8_t) INTEGER(int16, int16_t) INTEGER(int32, int32_t) INTEGER(int64, int64_t)
        INTEGER(uint8, uint8_t) INTEGER(uint16, uint16_t) INTEGER(uint32, uint32_t)
            INTEGER(uint64, uint64_t) REAL(half, gpushmem_half, GPUSHMEM_COLL_HALF)
                REAL(bfloat16, gpushmem_bfloat16, GPUSHMEM_COLL_BFLOAT16)
                    REAL(float, float, GPUSHMEM_COLL_FLOAT)
                        REAL(double, double, GPUSHMEM_COLL_DOUBLE) GPUSHMEM_COLL_COMPLEX(COMPLEX)};
#undef ROW
#undef INTEGER // the sources of all device tests are compiled in one, too

static uint64_t random_state;
static uint64_t random_bits(void)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return random_state >> 20;
}

// A value whose exponent is that of 2^-7 to 2^8, so that each addition rounds and nothing
// overflows: `mantissa` bits, and as many as are left but the sign for the exponent.
static uint64_t random_float(unsigned width, unsigned mantissa)
{
    uint64_t bias = ((uint64_t)1 << (8 * width - 2 - mantissa)) - 1;
    uint64_t exponent = bias - 7 + random_bits() % 16, sign = random_bits() & 1;
    uint64_t fraction = (random_bits() << 40 ^ random_bits()) & (((uint64_t)1 << mantissa) - 1);
    return sign << (8 * width - 1) | exponent << mantissa | fraction;
}

// Bits of the mantissa; 0: integers.
static unsigned mantissa_of(const struct row &row)
{
    switch (row.type) {
    case GPUSHMEM_COLL_HALF: return 10;
    case GPUSHMEM_COLL_BFLOAT16: return 7;
    case GPUSHMEM_COLL_FLOAT:
    case GPUSHMEM_COLL_COMPLEXF: return 23;
    case GPUSHMEM_COLL_DOUBLE:
    case GPUSHMEM_COLL_COMPLEXD: return 52;
    }
    return 0;
}

// Bytes of a number; a complex one is two.
static unsigned part_width(const struct row &row)
{
    unsigned mantissa = mantissa_of(row);
    return mantissa == 52 ? 8 : mantissa == 23 ? 4 : mantissa ? 2 : (unsigned)row.width;
}

// All bits of the exponent, and some of the mantissa.
static bool is_nan(uint64_t bits, unsigned width, unsigned mantissa)
{
    uint64_t infinity = (((uint64_t)1 << (8 * width - 1 - mantissa)) - 1) << mantissa;
    return mantissa && (bits & (infinity | (((uint64_t)1 << mantissa) - 1))) > infinity;
}

// A NaN of any sign and payload, quiet or signalling.
static uint64_t random_nan(unsigned width, unsigned mantissa)
{
    uint64_t infinity = (((uint64_t)1 << (8 * width - 1 - mantissa)) - 1) << mantissa;
    return random_float(width, mantissa) | infinity | 1;
}

// One of 20 floating-point numbers is a NaN.
static void fill_source(const struct row &row, size_t bytes)
{
    static char buffer[ROOM];
    unsigned mantissa = mantissa_of(row), width = part_width(row);
    for (size_t at = 0; at < bytes; at += width) {
        uint64_t value =
            mantissa ? random_float(width, mantissa) : random_bits() << 40 ^ random_bits();
        if (mantissa && random_bits() % 20 == 0)
            value = random_nan(width, mantissa);
        memcpy(buffer + at, &value, width);
    }
    CHECK_OK(gpushmem_putmem(from, buffer, bytes, me));
    CHECK_OK(gpushmem_quiet());
}

// The same bits, but of a NaN only that it is one.
static bool same_numbers(const struct row &row, const char *got, const char *wanted)
{
    unsigned mantissa = mantissa_of(row), width = part_width(row);
    for (size_t at = 0; at < N * row.width; at += width) {
        uint64_t a = 0, b = 0;
        memcpy(&a, got + at, width);
        memcpy(&b, wanted + at, width);
        if (a != b && !(is_nan(a, width, mantissa) && is_nan(b, width, mantissa)))
            return false;
    }
    return true;
}

static void compare_bits(const struct row &row, const char *issuer, const char *wanted)
{
    char got[N * 16];
    CHECK_OK(gpushmem_getmem(got, to, N * row.width, me));
    if (!same_numbers(row, got, wanted) && check_failures++ < 20)
        fprintf(stderr, "PE %d: %s of %s has other bits than the host's\n", me, row.name, issuer);
    check_clear(to, N * row.width);
}

static void test_bits(void)
{
    static const char *const scopes[] = {"a thread", "a warp", "a block"};
    int turn = 0;
    for (const struct row &row : rows) {
        char wanted[N * 16];
        struct gpushmem_coll_op op = {};
        op.kind = (uint8_t)row.kind;
        op.type = (uint8_t)row.type;
        op.fold = (uint8_t)row.fold;
        op.width = (uint32_t)row.width;
        op.n = N;
        op.dest = to;
        op.source = from;
        fill_source(row, N * row.width * (row.kind == GPUSHMEM_COLL_REDUCESCATTER ? n_pes : 1));
        CHECK_OK(row.host(to, from));
        CHECK_OK(gpushmem_getmem(wanted, to, N * row.width, me));
        check_clear(to, N * row.width);
        CHECK_OK(row.stream(to, from));
        CHECK_OK(gpushmem_launch_wait(NULL));
        compare_bits(row, "a stream", wanted);
        // pairwise: each type and each operator meets each scope
        int scope = turn++ % 4 == 3 ? turn / 4 % 2 + 1 : 0;
        CHECK(!run_now(op, scope));
        compare_bits(row, scopes[scope], wanted);
    }
}

// The functions with names of types.
__global__ void complex_names(gpushmem_complexf *d, const gpushmem_complexf *s,
                              gpushmem_complexd *x, const gpushmem_complexd *y, int *counts)
{
    EXPECT(counts, !gpushmem_dev_complexf_prod_reduce(0, d, s, 3));
    EXPECT(counts, !gpushmem_dev_complexd_sum_reduce_block(0, x, y, 3));
    EXPECT(counts, !gpushmem_dev_complexd_sum_inscan_warp(0, x, y, 3));
}

// ---- Side by side ----

// Members are out of step by up to 20 us, scopes are mixed, and block b works in team b.
__global__ void crowd(struct gpushmem_dev d, gpushmem_team_t first, gpushmem_team_t second,
                      int *out, int *in, int pe, int pes, int *counts)
{
    const int b = (int)blockIdx.x, rounds = b ? 14 : 9;
    const gpushmem_team_t team = b ? second : first;
    int *source = in + 64 * b, *dest = out + 64 * 16 * b;
    uint64_t seed = (uint64_t)(pe * 977 + b * 31 + 5);
    for (int round = 0; round < rounds; round++) {
        const int scope = (round + pe) % 3, threads[] = {1, 32, 40};
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        for (uint64_t begin = gpsh_dev_now_ns(); gpsh_dev_now_ns() - begin < (seed >> 33 & 0x3fff);)
            ;
        for (int i = (int)threadIdx.x; i < 40; i += (int)blockDim.x)
            source[i] = pe * 1000 + round * 50 + i;
        __syncthreads();
        if ((int)threadIdx.x < threads[scope]) {
            int status = scope == 0   ? gpushmem_dev_int_fcollect(team, dest, source, 40)
                         : scope == 1 ? gpushmem_dev_int_fcollect_warp(team, dest, source, 40)
                                      : gpushmem_dev_int_fcollect_block(team, dest, source, 40);
            EXPECT(counts, !status);
        }
        __syncthreads();
        for (int i = (int)threadIdx.x; i < 40 * pes; i += (int)blockDim.x)
            EXPECT(counts, dest[i] == i / 40 * 1000 + round * 50 + i % 40);
        __syncthreads();
        if (threadIdx.x == 0)
            EXPECT(counts, !gpushmem_dev_int_sum_reduce(team, source, source, 40));
        __syncthreads();
        EXPECT(counts, source[3] == pes * (pes - 1) / 2 * 1000 + pes * (round * 50 + 3));
        if (round % 3 == 0)
            EXPECT(counts, !gpushmem_dev_barrier_block(team));
        __syncthreads();
    }
}

static void test_crowd(int *errors)
{
    gpushmem_team_t first, second;
    CHECK_OK(gpushmem_team_split_strided(GPUSHMEM_TEAM_WORLD, 0, 1, n_pes, NULL, 0, &first));
    CHECK_OK(gpushmem_team_split_strided(GPUSHMEM_TEAM_WORLD, 0, 1, n_pes, NULL, 0, &second));
    RUN(crowd, 2, 40, dev, first, second, (int *)to, (int *)from, me, n_pes, errors);
    CHECK_OK(gpushmem_team_destroy(second));
    CHECK_OK(gpushmem_team_destroy(first));
}

// Two streams with a team each and sizes of all ways, and the host's operations meanwhile.
static void test_streams(void)
{
    static const int sizes[] = {3, 2000, 40, 600, 5000, 1};
    gpushmem_team_t teams[2];
    gpushmem_stream_t streams[2];
    for (int s = 0; s < 2; s++) {
        CHECK_OK(gpushmem_team_split_strided(GPUSHMEM_TEAM_WORLD, 0, 1, n_pes, NULL, 0, &teams[s]));
        CHECK_OK(gpushmem_stream_create(&streams[s]));
    }
    int *source = (int *)from, *dest = (int *)to, ones[5000];
    for (int &one : ones)
        one = me + 1;
    CHECK_OK(gpushmem_int_put(source, ones, 5000, me));
    CHECK_OK(gpushmem_quiet());
    for (int i = 0; i < 12; i++)
        for (int s = 0; s < 2; s++) {
            CHECK_OK(gpushmem_int_sum_reduce_on_stream(teams[s], dest + 5000 * s, source,
                                                       (size_t)sizes[(i + s) % 6], streams[s]));
            CHECK_OK(gpushmem_int_sum_reduce(teams[s], dest + 10000, source, 9));
        }
    for (int s = 0; s < 2; s++) {
        CHECK_OK(gpushmem_launch_wait(streams[s]));
        CHECK(check_read(&dest[5000 * s + 4999]) == n_pes * (n_pes + 1) / 2);
        CHECK(check_read(&dest[5000 * s]) == n_pes * (n_pes + 1) / 2);
        CHECK_OK(gpushmem_stream_destroy(streams[s]));
        CHECK_OK(gpushmem_team_destroy(teams[s]));
    }
    check_clear(to, 15000 * sizeof(int));
}

// ---- The memory of teams ----

__global__ void sum_in(gpushmem_team_t team, int *dest, int *source, int nelems, int sum,
                       int expected, int *counts)
{
    dest[nelems - 1] = 0;
    EXPECT(counts, gpushmem_dev_int_sum_reduce(team, dest, source, (size_t)nelems) == expected);
    EXPECT(counts, expected || dest[nelems - 1] == sum);
}

// The sum of the members' numbers, by a kernel and by a stream, in packets and without.
static void use_team(gpushmem_team_t team, int sum, int *errors)
{
    int *source = (int *)from, *dest = (int *)to;
    for (int nelems : {3, 500, 3000}) {
        RUN(sum_in, 1, 1, team, dest, source, nelems, sum, 0, errors);
        CHECK_OK(gpushmem_int_sum_reduce_on_stream(team, dest, source, (size_t)nelems, NULL));
        CHECK_OK(gpushmem_launch_wait(NULL));
        CHECK(check_read(&dest[nelems - 1]) == sum);
    }
}

// Teams of other sizes have what teams before had: nothing of those is left there.
static void reuse(int *errors)
{
    gpushmem_team_t kept = GPUSHMEM_TEAM_INVALID;
    for (int i = 0; i < 12; i++) {
        int size = 1 + (i * 5 + i / 3) % n_pes, start = i % (n_pes - size + 1);
        int sum = size * (2 * start + size + 1) / 2;
        gpushmem_team_t team;
        CHECK_OK(gpushmem_team_split_strided(GPUSHMEM_TEAM_WORLD, start, 1, size, NULL, 0, &team));
        for (int times = 0; team != GPUSHMEM_TEAM_INVALID && times <= i % 3; times++)
            use_team(team, sum, errors);
        CHECK_OK(gpushmem_team_destroy(i % 2 ? team : kept));
        kept = i % 2 ? kept : team;
    }
    CHECK_OK(gpushmem_team_destroy(kept));
}

// Teams for which too little is left have no operations of streams, later ones none in kernels: an
// error says so. The host's work, and once others are gone there is memory again.
static void use_up(int *errors)
{
    enum { MOST = 120 };
    int n = 0, status = 0, *source = (int *)from, *dest = (int *)to;
    gpushmem_team_t teams[MOST];
    for (; n < MOST; n++) {
        CHECK_OK(gpushmem_team_split_strided(GPUSHMEM_TEAM_WORLD, 0, 1, n_pes, NULL, 0, &teams[n]));
        int last = gpushmem_int_sum_reduce_on_stream(teams[n], dest, source, 3, NULL);
        CHECK(last == 0 || last == GPUSHMEM_ERR_UNSUPPORTED);
        CHECK(!last || strstr(gpushmem_last_error(), "GPUSHMEM_TEAM_MEMORY=64M"));
        CHECK(!status || last == status); // the others had no more
        if (!status && last)
            RUN(sum_in, 1, 1, teams[n], dest, source, 3, n_pes * (n_pes + 1) / 2, 0, errors);
        status = last;
        CHECK_OK(gpushmem_int_sum_reduce(teams[n], dest, source, 3));
    }
    CHECK_OK(gpushmem_launch_wait(NULL));
    CHECK(status);
    CHECK_OK(GPUSHMEM_LAUNCH(sum_in, 1, 1, NULL, teams[MOST - 1], dest, source, 3, 0,
                             GPUSHMEM_ERR_INVALID, errors));
    CHECK(gpushmem_launch_wait(NULL) == GPUSHMEM_ERR_INVALID);
    CHECK(strstr(gpushmem_last_error(), "GPUSHMEM_TEAM_MEMORY"));
    for (int i = 0; i < MOST; i++)
        CHECK_OK(gpushmem_team_destroy(teams[i]));
    CHECK_OK(gpushmem_team_split_strided(GPUSHMEM_TEAM_WORLD, 0, 1, n_pes, NULL, 0, &teams[0]));
    use_team(teams[0], n_pes * (n_pes + 1) / 2, errors);
    CHECK_OK(gpushmem_team_destroy(teams[0]));
}

static void test_memory(int *errors)
{
    int ones[3000];
    for (int &one : ones)
        one = me + 1;
    CHECK_OK(gpushmem_int_put((int *)from, ones, 3000, me));
    CHECK_OK(gpushmem_quiet());
    reuse(errors);
    use_up(errors);
    check_clear(to, sizeof ones);
    check_clear(from, sizeof ones);
    gpushmem_barrier_all();
}

// ---- Teams that are none here, and counts that no heap has ----

__global__ void strangers(gpushmem_team_t gone, gpushmem_team_t other, int *dest, int *source,
                          int *counts)
{
    EXPECT(counts, gpushmem_dev_team_sync(gone) == GPUSHMEM_ERR_INVALID);
    EXPECT(counts, gpushmem_dev_int_sum_reduce(gone, dest, source, 1) == GPUSHMEM_ERR_INVALID);
    if (other != GPUSHMEM_TEAM_INVALID)
        EXPECT(counts, gpushmem_dev_int_fcollect(other, dest, source, 1) == GPUSHMEM_ERR_INVALID);
#if GPSH_DEV_CHECKS
    for (size_t nelems : {SIZE_MAX, SIZE_MAX / 2, SIZE_MAX / 4 + 1, (size_t)1 << 40}) {
        EXPECT(counts, gpushmem_dev_int_fcollect(0, dest, source, nelems) == GPUSHMEM_ERR_ADDRESS);
        EXPECT(counts, gpushmem_dev_int_alltoalls(0, dest, source, 2, (ptrdiff_t)(nelems / 8), 4) ==
                           GPUSHMEM_ERR_ADDRESS);
    }
    for (ptrdiff_t stride : {(ptrdiff_t)0, (ptrdiff_t)-1, PTRDIFF_MIN})
        EXPECT(counts,
               gpushmem_dev_int_alltoalls(0, dest, source, 1, stride, 4) == GPUSHMEM_ERR_INVALID);
#endif
}

static void expect_stranger(gpushmem_team_t team)
{
    CHECK(gpushmem_int_sum_reduce_on_stream(team, (int *)to, (int *)from, 1, NULL) ==
          GPUSHMEM_ERR_INVALID);
    CHECK(strstr(gpushmem_last_error(), "is no team of this PE"));
}

// A team that was destroyed, and one of PE 0 alone, whose number the others pass.
static void test_strangers(int *errors)
{
    gpushmem_team_t gone, alone;
    CHECK_OK(gpushmem_team_split_strided(GPUSHMEM_TEAM_WORLD, 0, 1, n_pes, NULL, 0, &gone));
    CHECK_OK(gpushmem_team_destroy(gone));
    CHECK_OK(gpushmem_team_split_strided(GPUSHMEM_TEAM_WORLD, 0, 1, 1, NULL, 0, &alone));
    CHECK_OK(gpushmem_putmem(from, &alone, sizeof alone, me));
    CHECK_OK(gpushmem_quiet());
    CHECK_OK(gpushmem_broadcastmem(GPUSHMEM_TEAM_WORLD, to, from, sizeof alone, 0));
    gpushmem_team_t other = me ? check_read((gpushmem_team_t *)to) : GPUSHMEM_TEAM_INVALID;
    expect_stranger(gone);
    expect_stranger(GPUSHMEM_TEAM_CHANNEL(GPUSHMEM_TEAM_WORLD, 1)); // streams take none
    if (me)
        expect_stranger(other);
    CHECK(gpushmem_int_alltoall_on_stream(0, (int *)to, (int *)from, SIZE_MAX / 2, NULL) ==
          GPUSHMEM_ERR_ADDRESS);
    CHECK_OK(GPUSHMEM_LAUNCH(strangers, 1, 1, NULL, gone, other, (int *)to, (int *)from, errors));
    CHECK(gpushmem_launch_wait(NULL) == GPUSHMEM_ERR_INVALID); // the first of them
    CHECK(strstr(gpushmem_last_error(), "is no team of this PE: it was destroyed"));
    CHECK_OK(gpushmem_team_destroy(alone));
    check_clear(to, sizeof alone);
}

// ---- Messages ----

#if !defined(__CUDACC__)
static uint64_t commands(void)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < dev.n_rings; i++)
        count += *dev.rings[i].head;
    return count;
}

// How many commands one operation of a thread wrote into rings.
static int commands_of(int kind, uint64_t bytes)
{
    struct gpushmem_coll_op op = {};
    op.kind = (uint8_t)kind;
    op.fold = GPUSHMEM_COLL_SUM;
    op.width = 1;
    op.n = bytes;
    op.dest = to;
    op.source = from;
    uint64_t before = commands();
    CHECK(!run_now(op, 0));
    return (int)(commands() - before);
}

static void test_messages(void)
{
    int rounds = 0, others = n_pes - 1;
    while (1 << rounds < n_pes)
        rounds++;
    const uint64_t most = gpushmem_coll_half_stage(false), part = most / (unsigned)n_pes & ~15u;
    // Calls that are compared are told to each other member first.
    const int told = dev.teams[0].flags & GPUSHMEM_DEV_TEAM_CHECKED ? others : 0;
    for (uint64_t bytes : {(uint64_t)8, part}) {
        CHECK(commands_of(GPUSHMEM_COLL_REDUCE, bytes) == told + rounds);
        CHECK(commands_of(GPUSHMEM_COLL_FCOLLECT, bytes) == told + rounds);
        CHECK(commands_of(GPUSHMEM_COLL_EXSCAN, bytes) == told + rounds);
    }
    CHECK(commands_of(GPUSHMEM_COLL_BROADCAST, most) == told + rounds);
    // Large ones are linear: an entry flag is a fence and a put, then gets and puts with signals.
    CHECK(commands_of(GPUSHMEM_COLL_FCOLLECT, part + 16) == told + 3 * others);
    CHECK(commands_of(GPUSHMEM_COLL_REDUCE, most) == told + 4 * others);
}

// ---- Pieces of a scan ----

enum { PIECES = 5 };

// The pieces around the 2^20th, at which members wait for each other. The last member is late.
__global__ void many_pieces(struct gpushmem_dev d, int *shown, int pe, int pes, int *counts)
{
    struct gpsh_dev_coll c = gpsh_dev_coll_of(d, gpsh_dev_group_of<gpsh_scope_thread>());
    EXPECT(counts, gpsh_dev_coll_begin(&c, gpsh_dev_teams_of(d), 0));
    gpsh_dev_coll_exchange(&c, GPUSHMEM_COLL_ENTRY);
    for (int i = 1; i <= PIECES; i++) {
        for (uint64_t begin = gpsh_dev_now_ns(); pe == pes - 1 && gpsh_dev_now_ns() - begin < 5e6;)
            ;
        for (int r = 0; r < pes; r++)
            gpushmem_dev_int_p(&shown[pe], i, r);
        gpushmem_dev_quiet();
        gpsh_dev_fold_handshake(&c, ((uint64_t)1 << 20) - 3 + (uint64_t)i);
        for (int r = 0; r < pes; r++)
            EXPECT(counts, *(volatile int *)&shown[r] >= i);
    }
    EXPECT(counts, !gpsh_dev_coll_end(&c));
    EXPECT(counts, !gpushmem_dev_team_sync(0));
}

static void test_many_pieces(int *errors)
{
    check_clear(to, (size_t)n_pes * sizeof(int));
    gpushmem_barrier_all();
    RUN(many_pieces, 1, 1, dev, (int *)to, me, n_pes, errors);
    check_clear(to, (size_t)n_pes * sizeof(int));
}
#endif

// ---- Calls that differ ----

static bool odd;

static struct gpushmem_coll_op call_of(int kind, int how, uint64_t count)
{
    struct gpushmem_coll_op op = {};
    op.kind = (uint8_t)kind;
    op.type = GPUSHMEM_COLL_INT32;
    op.fold = (uint8_t)how;
    op.width = sizeof(int);
    op.n = count;
    op.dest = to;
    op.source = from;
    op.dest_stride = op.source_stride = 1;
    return op;
}

static void expect_refusal(struct gpushmem_coll_op op, int scope, int wanted, const char *words)
{
    static const int threads[] = {1, 32, 40};
    check_clear(statuses, sizeof *statuses);
    CHECK_OK(GPUSHMEM_LAUNCH(run, 1, threads[scope], NULL, dev, op, scope, statuses));
    int status = gpushmem_launch_wait(NULL);
    if ((status != wanted || !strstr(gpushmem_last_error(), words)) && check_failures++ < 20)
        fprintf(stderr, "PE %d: %d and no '%s' in '%s'\n", me, status, words,
                gpushmem_last_error());
    CHECK(check_read(statuses) == wanted);
    CHECK(!run_now(call_of(GPUSHMEM_COLL_REDUCE, GPUSHMEM_COLL_SUM, 3), scope)); // all go on
}

__global__ void sync_or_reduce(struct gpushmem_dev d, int *dest, const int *source, int syncs,
                               int *counts)
{
    int status =
        syncs ? gpushmem_dev_team_sync(0) : gpushmem_dev_int_sum_reduce(0, dest, source, 2);
    EXPECT(counts, status == GPUSHMEM_ERR_ASYMMETRY);
    EXPECT(counts, !gpushmem_dev_barrier(0));
}

#if !defined(__CUDACC__)
__global__ void reduce_by_some(int *dest, const int *source, size_t n, int caller)
{
    if (caller < 0 || (int)threadIdx.x == caller)
        gpushmem_dev_int_sum_reduce_block(GPUSHMEM_TEAM_WORLD, dest, source, n);
}

// One thread makes a call of the block, on the last PE or on all: each is told, and the team's next
// operations go on.
static void test_some_of_a_block(void)
{
    char text[96];
    snprintf(text, sizeof text, "PE %d passes a bad argument, or calls it by some", n_pes - 1);
    for (int threads : {2, 40, 96})
        for (int caller : {0, threads - 1})
            for (int all = 0; all < 2; all++) {
                const bool alone = all || odd;
                CHECK_OK(GPUSHMEM_LAUNCH(reduce_by_some, 1, threads, NULL, (int *)to, (int *)from,
                                         caller ? 500 : 1, alone ? caller : -1));
                CHECK(gpushmem_launch_wait(NULL) == GPUSHMEM_ERR_INVALID);
                CHECK(
                    strstr(gpushmem_last_error(), alone ? "threads of a block made a call" : text));
                CHECK_OK(gpushmem_barrier_all());
            }
    CHECK(!run_now(call_of(GPUSHMEM_COLL_REDUCE, GPUSHMEM_COLL_SUM, 3), 2));
}
#endif

static void test_differ(int *errors)
{
    const int differs = GPUSHMEM_ERR_ASYMMETRY;
    const int sum = GPUSHMEM_COLL_SUM, last = n_pes - 1;
    char text[96];
    odd = me == last;
    expect_refusal(call_of(GPUSHMEM_COLL_REDUCE, sum, odd ? 2 : 3), 0, differs,
                   "in a collective, sum_reduce of int32 (int): PE");
    struct gpushmem_coll_op op = call_of(GPUSHMEM_COLL_REDUCE, odd ? +GPUSHMEM_COLL_MAX : sum, 3);
    snprintf(text, sizeof text,
             "PE %d calls max_reduce of int32 (int), PE 0 calls sum_reduce of int32 (int)", last);
    expect_refusal(op, 1, differs, text);
    op = call_of(GPUSHMEM_COLL_BROADCAST, sum, 3);
    op.root = odd;
    snprintf(text, sizeof text, "PE %d passes root 1, PE 0 passes 0", last);
    expect_refusal(op, 2, differs, text);
    op = call_of(GPUSHMEM_COLL_FCOLLECT, sum, 3);
    op.dest = to + odd * 64;
    expect_refusal(op, 1, differs, "passes dest at heap offset");
    op = call_of(GPUSHMEM_COLL_ALLTOALLS, sum, 3);
    op.source_stride = 1 + odd;
    expect_refusal(op, 0, differs, "passes sst 2");
    expect_refusal(call_of(GPUSHMEM_COLL_ALLTOALL, sum, odd ? 0 : 3), 0, differs,
                   "passes nelems 0");
    op = call_of(GPUSHMEM_COLL_BROADCAST, sum, 3);
    op.root = last;
    op.source = odd ? to + 4 : from; // looked at by the root alone
    snprintf(text, sizeof text, "PE %d passes a bad argument", last);
    expect_refusal(op, 0, GPUSHMEM_ERR_INVALID, odd ? "dest overlaps source" : text);
    CHECK_OK(GPUSHMEM_LAUNCH(sync_or_reduce, 1, 1, NULL, dev, (int *)to, (int *)from, odd, errors));
    CHECK(gpushmem_launch_wait(NULL) == differs);
    CHECK(strstr(gpushmem_last_error(), "calls sync"));
    // in place members name places of their own, on all of them or on none
    op = call_of(GPUSHMEM_COLL_FCOLLECT, sum, 3);
    op.source = to + me * 12;
    CHECK(!run_now(op, 2));
    CHECK_OK(gpushmem_int_fcollect_on_stream(0, (int *)to, (int *)to + me * 3, 3, NULL));
    op.source = odd ? to + me * 12 : from;
    expect_refusal(op, 0, differs, "passes source at heap offset");
    op = call_of(GPUSHMEM_COLL_REDUCESCATTER, sum, 3);
    op.dest = from + me * 12;
    CHECK(!run_now(op, 1));
    CHECK_OK(
        gpushmem_int_sum_reducescatter_on_stream(0, (int *)from + me * 3, (int *)from, 3, NULL));
    CHECK_OK(gpushmem_launch_wait(NULL));
    CHECK(!run_now(call_of(GPUSHMEM_COLL_COLLECT, sum, odd ? 3 : 0), 0)); // may differ
    CHECK(!run_now(call_of(GPUSHMEM_COLL_REDUCE, sum, 0), 0));
#if !defined(__CUDACC__)
    test_some_of_a_block();
#endif
}

// ---- A team that two streams use at once ----

__global__ void until_open(uint64_t *gate)
{
    while (!gpushmem_dev_uint64_test(gate, GPUSHMEM_CMP_NE, 0))
        ;
}

// On PE 0 both operations begin, since the others wait for the gate. Which of the two is the second
// nobody knows; neither can end well.
static void test_at_once(void)
{
    gpushmem_stream_t one, two;
    uint64_t *gate = (uint64_t *)(void *)(to + 4096);
    CHECK_OK(gpushmem_stream_create(&one));
    CHECK_OK(gpushmem_stream_create(&two));
    if (me)
        CHECK_OK(GPUSHMEM_LAUNCH(until_open, 1, 1, one, gate));
    for (gpushmem_stream_t stream : {one, me ? one : two})
        CHECK_OK(gpushmem_int_sum_reduce_on_stream(0, (int *)to, (int *)from, 3, stream));
    CHECK(gpushmem_launch_wait(one) == GPUSHMEM_ERR_STATE);
    CHECK(me || strstr(gpushmem_last_error(), "another one of this team is under way here"));
    (void)gpushmem_launch_wait(two);
    for (int pe = 1; pe < n_pes && !me; pe++)
        gpushmem_uint64_p(gate, 1, pe);
    CHECK_OK(gpushmem_stream_destroy(two));
    CHECK_OK(gpushmem_stream_destroy(one));
}

int main(int argc, char **argv)
{
    me = check_begin();
    n_pes = gpushmem_n_pes();
    random_state = (uint64_t)(me + 1) * 77;
    from = (char *)gpushmem_calloc(ROOM, 1);
    to = (char *)gpushmem_calloc(ROOM, 1);
    statuses = (int *)gpushmem_calloc(1, sizeof(int));
    int *errors = check_errors_begin();
    CHECK_OK(gpushmem_device_handle(&dev));
    gpushmem_barrier_all();
    if (argc > 1 && !strcmp(argv[1], "differ")) {
        test_differ(errors);
    } else if (argc > 1 && !strcmp(argv[1], "at_once")) {
        test_at_once();
    } else {
        if (argc == 1)
            test_bits();
        RUN(complex_names, 1, 1, (gpushmem_complexf *)to, (gpushmem_complexf *)from,
            (gpushmem_complexd *)(to + 64), (gpushmem_complexd *)(from + 64), errors);
        test_crowd(errors);
        test_streams();
        test_memory(errors);
        test_strangers(errors);
#if !defined(__CUDACC__)
        if (dev.flags & GPUSHMEM_DEV_NO_DIRECT && n_pes > 1)
            test_messages();
        test_many_pieces(errors);
#endif
    }
    gpushmem_barrier_all();
    check_errors_end(__FILE__, errors);
    gpushmem_free(statuses);
    gpushmem_free(to);
    gpushmem_free(from);
    return check_end("coll_issuers");
}
