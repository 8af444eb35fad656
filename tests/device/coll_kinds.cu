// SPDX-License-Identifier: BSD-3-Clause
// Collectives in kernels and on streams: every type and operator, strided and uneven blocks, two
// channels at once, graphs on GPUs, bits that do not depend on who calls, and calls that are
// refused.
#include <string.h>

#include "kernel_check.cuh"

enum { ROOM = 64 << 10 };

static int my_pe, n_pes;
static int *errors;
static char *outbox, *inbox; // symmetric

// ---- Every type and operator ----

template <typename T> static __device__ T small(int pe, int i)
{
    return (T)(pe % 2 ? i % 3 + 1 : 2);
}

// What OpenSHMEM says of integers, by C's own operators.
#define INTEGER(NAME, TYPE)                                                                        \
    static __device__ void check_##NAME(char *to, char *from, int me, int n, int *counts)          \
    {                                                                                              \
        TYPE *source = (TYPE *)from, *dest = (TYPE *)to, sum, prod, low, high, all, any, odd;      \
        for (int i = 0; i < 5; i++)                                                                \
            source[i] = small<TYPE>(me, i);                                                        \
        for (int fold = 0; fold < 7; fold++) {                                                     \
            int status = fold == 0   ? gpushmem_dev_##NAME##_sum_reduce(0, dest, source, 5)        \
                         : fold == 1 ? gpushmem_dev_##NAME##_prod_reduce(0, dest, source, 5)       \
                         : fold == 2 ? gpushmem_dev_##NAME##_min_reduce(0, dest, source, 5)        \
                         : fold == 3 ? gpushmem_dev_##NAME##_max_reduce(0, dest, source, 5)        \
                         : fold == 4 ? gpushmem_dev_##NAME##_and_reduce(0, dest, source, 5)        \
                         : fold == 5 ? gpushmem_dev_##NAME##_or_reduce(0, dest, source, 5)         \
                                     : gpushmem_dev_##NAME##_xor_reduce(0, dest, source, 5);       \
            EXPECT(counts, !status);                                                               \
            for (int i = 0; i < 5; i++) {                                                          \
                sum = prod = low = high = all = any = odd = small<TYPE>(0, i);                     \
                for (int pe = 1; pe < n; pe++) {                                                   \
                    TYPE v = small<TYPE>(pe, i);                                                   \
                    sum = (TYPE)(sum + v);                                                         \
                    prod = (TYPE)(prod * v);                                                       \
                    low = v < low ? v : low;                                                       \
                    high = v > high ? v : high;                                                    \
                    all = (TYPE)(all & v);                                                         \
                    any = (TYPE)(any | v);                                                         \
                    odd = (TYPE)(odd ^ v);                                                         \
                }                                                                                  \
                const TYPE wanted[] = {sum, prod, low, high, all, any, odd};                       \
                EXPECT(counts, dest[i] == wanted[fold]);                                           \
            }                                                                                      \
        }                                                                                          \
    }
INTEGER(schar, signed char)
INTEGER(uint8, uint8_t)
INTEGER(short, short)
INTEGER(ushort, unsigned short)
INTEGER(int, int)
INTEGER(uint, unsigned int)
INTEGER(long, long)
INTEGER(size, size_t)
#undef INTEGER // the sources of all device tests are compiled in one, too

__global__ void integers(char *to, char *from, int me, int n, int *counts)
{
    check_schar(to, from, me, n, counts);
    check_uint8(to, from, me, n, counts);
    check_short(to, from, me, n, counts);
    check_ushort(to, from, me, n, counts);
    check_int(to, from, me, n, counts);
    check_uint(to, from, me, n, counts);
    check_long(to, from, me, n, counts);
    check_size(to, from, me, n, counts);
}

// Sign and width: the largest unsigned value is -1, and sums wrap.
__global__ void signs(char *to, char *from, int me, int *counts)
{
    int *source = (int *)from, *dest = (int *)to;
    *source = me ? 1 : -1;
    EXPECT(counts, !gpushmem_dev_int_max_reduce(0, dest, source, 1) && *dest == 1);
    EXPECT(counts, !gpushmem_dev_uint_max_reduce(0, (unsigned *)dest, (unsigned *)source, 1));
    EXPECT(counts, *dest == -1);
    signed char *narrow = (signed char *)from;
    *narrow = 127;
    EXPECT(counts, !gpushmem_dev_schar_sum_reduce(0, (signed char *)to, narrow, 1));
    EXPECT(counts, *(signed char *)to == (signed char)(127 * gpushmem_dev_n_pes()));
}

static const uint16_t halves[] = {0x6800, 0x3c00, 0x3c00};    // 2048, 1, 1
static const uint16_t bfloats[] = {0x4380, 0x3f80, 0x3f80};   // 256, 1, 1
static const uint16_t half_sums[] = {0x6800, 0x6800, 0x6801}; // of the first 1, 2, 3: rounded once
static const uint16_t bfloat_sums[] = {0x4380, 0x4380, 0x4381};

// The bits of one 16-bit float and the sum, by way of putmem and getmem: the host cannot add them.
static void test_short_floats(void)
{
    if (n_pes > 3)
        return;
    uint16_t *from = (uint16_t *)outbox, *to = (uint16_t *)inbox, sum;
    CHECK_OK(gpushmem_putmem(from, &halves[my_pe], 2, my_pe));
    CHECK_OK(gpushmem_quiet());
    CHECK_OK(
        gpushmem_half_sum_reduce_on_stream(0, (gpushmem_half *)to, (gpushmem_half *)from, 1, NULL));
    CHECK_OK(gpushmem_launch_wait(NULL));
    sum = check_read(to);
    CHECK(sum == half_sums[n_pes - 1]);
    CHECK_OK(gpushmem_putmem(from, &bfloats[my_pe], 2, my_pe));
    CHECK_OK(gpushmem_quiet());
    CHECK_OK(gpushmem_bfloat16_sum_reduce_on_stream(0, (gpushmem_bfloat16 *)to,
                                                    (gpushmem_bfloat16 *)from, 1, NULL));
    CHECK_OK(gpushmem_launch_wait(NULL));
    sum = check_read(to);
    CHECK(sum == bfloat_sums[n_pes - 1]);
}

// NaN wins, and -0 is less than +0.
__global__ void special_floats(float *to, float *from, int me, int last, int *counts)
{
    from[0] = me == last ? 0.0f / (from[2] = 0) : 1.0f;
    from[1] = me == last ? -0.0f : 0.0f;
    EXPECT(counts, !gpushmem_dev_float_min_reduce(0, to, from, 2));
    EXPECT(counts, to[0] != to[0]);
    EXPECT(counts, to[1] == 0 && 1 / to[1] < 0);
    EXPECT(counts, !gpushmem_dev_float_max_reduce(0, to, from, 2));
    EXPECT(counts, to[0] != to[0]);
    EXPECT(counts, to[1] == 0 && (last == 0) == (1 / to[1] < 0));
}

// ---- Lone threads ----

static __device__ bool folds(int type, int fold)
{
    return type < GPUSHMEM_COLL_HALF       ? true
           : type < GPUSHMEM_COLL_COMPLEXF ? fold > GPUSHMEM_COLL_XOR
                                           : fold > GPUSHMEM_COLL_MAX;
}

// No NaN, whose bits depend on which operand a processor prefers.
static __device__ void fill(gpsh_dev_unit<4> *units, int n, int type, uint64_t *state)
{
    for (int i = 0; i < 4 * n; i++) {
        *state = *state * 6364136223846793005u + 1442695040888963407u;
        uint32_t mask = type < GPUSHMEM_COLL_HALF ? 0xffffffff : 0xbfffbfff;
        units[i / 4].w[i % 4] = (uint32_t)(*state >> 32) & mask;
    }
}

// Whole runs that a lone thread folds in registers.
static __device__ uint64_t whole_bytes(int type, int fold, uint64_t bytes)
{
    bool is_short = type == GPUSHMEM_COLL_HALF || type == GPUSHMEM_COLL_BFLOAT16;
    bool is_summed = is_short || type == GPUSHMEM_COLL_INT32 || type == GPUSHMEM_COLL_INT64 ||
                     (type >= GPUSHMEM_COLL_UINT32 && type <= GPUSHMEM_COLL_DOUBLE);
    uint64_t run = is_short ? 64 : 128;
    if (fold == GPUSHMEM_COLL_MAX ? type == GPUSHMEM_COLL_FLOAT
                                  : fold == GPUSHMEM_COLL_SUM && is_summed)
        return bytes / run * run;
    return 0;
}

// What a lone thread folds of three members' blocks, its own and those in slots, is what comes of
// single units: whole runs, what is left of them, and blocks that are not aligned.
__global__ void alone(char *room, int *counts)
{
    enum { UNITS = 21, BLOCK = 16 * UNITS, MEMBERS = 3, ME = 1 };
    const int places[MEMBERS] = {1, 0, 2}; // of the ranks' blocks: slot 0, its own, slot 1
    struct gpsh_dev_coll c = gpsh_dev_coll_of(gpsh_dev_implicit, {});
    c.me = ME, c.n = MEMBERS;
    uint64_t state = 1;
    for (int i = 0; i < 2 * GPUSHMEM_COLL_TYPES * GPUSHMEM_COLL_FOLDS; i++) {
        int type = i / 2 / GPUSHMEM_COLL_FOLDS, fold = i / 2 % GPUSHMEM_COLL_FOLDS;
        char *base = room + (i % 2 ? 8 : 0), *dest = base + 3 * BLOCK;
        uint64_t bytes = BLOCK - 16 * (unsigned)(i % 15);
        struct gpushmem_coll_op op = {};
        op.kind = GPUSHMEM_COLL_REDUCE, op.type = (uint8_t)type, op.fold = (uint8_t)fold;
        struct gpsh_dev_fold_job job = {base,  dest,  bytes,   base + BLOCK,
                                        BLOCK, false, job.own, MEMBERS};
        if (!folds(type, fold))
            continue;
        fill((gpsh_dev_unit<4> *)base, 3 * UNITS, type, &state);
        gpsh_dev_coll_fold(c, op, job, 0, 1);
        EXPECT(counts, gpsh_dev_fold_whole_runs(c, op, job) ==
                           (i % 2 ? 0 : whole_bytes(type, fold, bytes)));
        for (uint64_t at = 0; at < bytes; at += 16) {
            gpsh_dev_acc<4> acc = {};
            for (int rank = 0; rank < MEMBERS; rank++) {
                const char *block = base + places[rank] * BLOCK;
                acc = gpsh_dev_fold_step<4>(acc, gpsh_dev_load_unit<4>(block + at, 16), type, fold,
                                            rank == 0);
            }
            gpsh_dev_unit<4> want = gpsh_dev_fold_result(acc, type),
                             got = gpsh_dev_load_unit<4>(dest + at, 16);
            for (int w = 0; w < 4; w++)
                EXPECT(counts, got.w[w] == want.w[w]);
        }
    }
}

// ---- Blocks that are apart, or of different sizes ----

static __host__ __device__ int tag(int from, int to, int i)
{
    return from * 10000 + to * 100 + i % 97;
}

__global__ void strided(int *to, int *from, int me, int n, int count, int dst, int sst, int *counts)
{
    for (int i = 0; i < n * count * dst; i++)
        to[i] = -1;
    for (int pe = 0; pe < n; pe++)
        for (int i = 0; i < count; i++)
            from[(pe * count + i) * sst] = tag(me, pe, i);
    EXPECT(counts, !gpushmem_dev_int_alltoalls(0, to, from, dst, sst, (size_t)count));
    for (int k = 0; k < (n * count - 1) * dst + 1; k++)
        EXPECT(counts, to[k] == (k % dst ? -1 : tag(k / dst / count, me, k / dst % count)));
}

static __host__ __device__ int share(int pe, int count)
{
    return pe % 3 == 1 ? 0 : count + pe;
}

__global__ void uneven(int *to, int *from, int me, int n, int count, int *counts)
{
    for (int i = 0; i < share(me, count); i++)
        from[i] = tag(me, 0, i);
    EXPECT(counts, !gpushmem_dev_int_collect(0, to, from, (size_t)share(me, count)));
    for (int pe = 0, at = 0; pe < n; pe++)
        for (int i = 0; i < share(pe, count); i++, at++)
            EXPECT(counts, to[at] == tag(pe, 0, i));
}

static void test_uneven_stream(int count)
{
    int *to = (int *)inbox, *from = (int *)outbox;
    int mine = share(my_pe, count), at = 0;
    for (int i = 0; i < mine; i++) {
        int value = tag(my_pe, 7, i);
        CHECK_OK(gpushmem_int_put(from + i, &value, 1, my_pe));
    }
    CHECK_OK(gpushmem_quiet()); // the stream is not ordered after puts of the host
    CHECK_OK(gpushmem_int_collect_on_stream(0, to, from, (size_t)mine, NULL));
    CHECK_OK(gpushmem_launch_wait(NULL));
    for (int pe = 0; pe < n_pes; pe++)
        for (int i = 0; i < share(pe, count); i++)
            CHECK(check_read(&to[at++]) == tag(pe, 7, i));
}

// ---- Three channels at once ----

// Each block works in a channel of its own, as often as it likes.
__global__ void channels(int *to, int *from, int me, int n, int *counts)
{
    int b = (int)blockIdx.x, channel = GPUSHMEM_TEAM_CHANNEL(GPUSHMEM_TEAM_WORLD, b);
    int rounds = 12 + 9 * b, *mine = from + 64 * b, *out = to + 64 * n * b;
    for (int round = 0; round < rounds; round++) {
        *mine = me * 1000 + round * 10 + b;
        EXPECT(counts, !gpushmem_dev_int_fcollect(channel, out, mine, 1));
        for (int pe = 0; pe < n; pe++)
            EXPECT(counts, out[pe] == pe * 1000 + round * 10 + b);
        EXPECT(counts, !gpushmem_dev_team_sync(channel));
    }
}

// ---- Calls that are refused, and calls for nothing ----

__global__ void refused(int *to, int *from, int *counts)
{
    EXPECT(counts, gpushmem_dev_team_sync(77) == GPUSHMEM_ERR_INVALID);
    EXPECT(counts, gpushmem_dev_team_sync(GPUSHMEM_TEAM_INVALID) == GPUSHMEM_ERR_INVALID);
    EXPECT(counts, gpushmem_dev_team_sync(GPUSHMEM_TEAM_CHANNEL(0, 8)) == GPUSHMEM_ERR_INVALID);
    EXPECT(counts, gpushmem_dev_team_my_pe(77) == -1 && gpushmem_dev_team_n_pes(77) == -1);
    EXPECT(counts, gpushmem_dev_team_world_pe(0, -1) == -1);
#if GPSH_DEV_CHECKS
    EXPECT(counts, gpushmem_dev_int_broadcast(0, to, from, 1, 99) == GPUSHMEM_ERR_INVALID);
    EXPECT(counts, gpushmem_dev_int_sum_reduce(0, to, to + 1, 9) == GPUSHMEM_ERR_INVALID);
    EXPECT(counts, gpushmem_dev_int_sum_reduce(0, (int *)counts + ((size_t)1 << 40), from, 9) ==
                       GPUSHMEM_ERR_ADDRESS);
#endif
}

__global__ void nothing(int *to, int *from, int *counts)
{
    EXPECT(counts, !gpushmem_dev_int_sum_reduce(0, to, from, 0));
    EXPECT(counts, !gpushmem_dev_int_alltoalls(0, NULL, NULL, 1, 1, 0));
    EXPECT(counts, !gpushmem_dev_int_collect(0, to, from, 0));
    EXPECT(counts, !gpushmem_dev_barrier(0));
}

static void expect_refusal(int status, int wanted, const char *words)
{
    CHECK(status == wanted);
    if (!strstr(gpushmem_last_error(), words)) {
        fprintf(stderr, "'%s' is not in '%s'\n", words, gpushmem_last_error());
        check_failures++;
    }
}

static void test_stream_refusals(void)
{
    int *to = (int *)inbox, *from = (int *)outbox;
    expect_refusal(gpushmem_team_sync_on_stream(77, NULL), GPUSHMEM_ERR_INVALID, "no team");
    expect_refusal(gpushmem_int_broadcast_on_stream(0, to, from, 1, n_pes, NULL),
                   GPUSHMEM_ERR_INVALID, "no member");
    expect_refusal(gpushmem_int_alltoalls_on_stream(0, to, from, 0, 1, 1, NULL),
                   GPUSHMEM_ERR_INVALID, "strides");
    expect_refusal(gpushmem_int_sum_reduce_on_stream(0, to, to + 1, 9, NULL), GPUSHMEM_ERR_INVALID,
                   "overlaps");
    expect_refusal(gpushmem_int_sum_reduce_on_stream(0, to, from, SIZE_MAX / 2, NULL),
                   GPUSHMEM_ERR_ADDRESS, "reduce_on_stream");
    CHECK_OK(gpushmem_int_sum_reduce_on_stream(0, to, from, 0, NULL));
}

#if defined(__CUDACC__)
#include "coll_graphs.cuh"
#else
static void test_graphs(void)
{
}
#endif

int main(void)
{
    my_pe = check_begin();
    n_pes = gpushmem_n_pes();
    outbox = (char *)gpushmem_calloc(ROOM, 1);
    inbox = (char *)gpushmem_calloc(ROOM, 1);
    errors = check_errors_begin();
    gpushmem_barrier_all();
    int *to = (int *)inbox, *from = (int *)outbox;
    RUN(integers, 1, 1, inbox, outbox, my_pe, n_pes, errors);
    if (n_pes > 1)
        RUN(signs, 1, 1, inbox, outbox, my_pe == n_pes - 1, errors);
    test_short_floats();
    RUN(special_floats, 1, 1, (float *)inbox, (float *)outbox, my_pe, n_pes - 1, errors);
    RUN(alone, 1, 1, inbox, errors);
    for (int count = 1; count < 200; count += 66) {
        RUN(strided, 1, 1, to, from, my_pe, n_pes, count, 3, 2, errors);
        RUN(strided, 1, 1, to, from, my_pe, n_pes, count, 1, 1, errors);
        RUN(uneven, 1, 1, to, from, my_pe, n_pes, count, errors);
    }
    test_uneven_stream(40);
    test_graphs();
    RUN(channels, 3, 1, to, from, my_pe, n_pes, errors);
    RUN(nothing, 1, 1, to, from, errors);
    test_stream_refusals();
    CHECK_OK(GPUSHMEM_LAUNCH(refused, 1, 1, NULL, to, from, errors));
    CHECK(gpushmem_launch_wait(NULL) == GPUSHMEM_ERR_INVALID); // the first of them
    RUN(nothing, 1, 1, to, from, errors);
    gpushmem_barrier_all();
    check_errors_end(__FILE__, errors);
    gpushmem_free(inbox);
    gpushmem_free(outbox);
    return check_end("coll_kinds");
}
