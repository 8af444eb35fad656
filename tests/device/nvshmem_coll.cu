// SPDX-License-Identifier: BSD-3-Clause
// NVSHMEM's collectives and barriers in kernels: each function of int32 and int64 in every scope,
// of the other types in one of them, the forms for bytes, warpgroups, and tiles. Every element is
// compared.
#include <type_traits>
#include <vector>

#include "nvshmem_check.cuh"

enum { N = 3, COPIES = 3, FOLDS = 4, BIT_FOLDS = 3, SLOTS = COPIES + 2 * FOLDS + 2 * BIT_FOLDS };
enum { ROUNDS = 25 + 4 + 3 };

// ---- Data: element i of a PE's source is (PE + i) % 3 + 1 ----

static int value_of(int pe, int i)
{
    return (pe + i) % 3 + 1;
}

template <typename T> static void encode(int value, void *out)
{
    T typed = (T)value;
    memcpy(out, &typed, sizeof typed);
}
// A small number's upper half as float, and as half.
static void encode_bfloat16(int value, void *out)
{
    float wide = (float)value;
    memcpy(out, (char *)&wide + 2, 2);
}
static void encode_half(int value, void *out)
{
    int exponent = 0;
    while (value >> (exponent + 1))
        exponent++;
    uint16_t bits =
        (uint16_t)(value ? (exponent + 15) << 10 | ((value << 10 >> exponent) & 1023) : 0);
    memcpy(out, &bits, sizeof bits);
}

// ---- Kernels ----

// A round: what one type's functions of one scope wrote, SLOTS places one after the other.
struct place {
    char *dest;
    const char *source; // N elements for each PE
    int *errors;
    size_t slot_bytes;
    template <typename T> __device__ T *at(int slot) const
    {
        return (T *)(dest + slot * slot_bytes);
    }
};

#define LEAD        if (gpsh_dev_thread_number() == 0)
#define RIGHT(call) EXPECT(p.errors, (call) == 0)
#define COPY(P, S, NAME, MEM, T, COUNT)                                                            \
    RIGHT(nvshmem##P##NAME##broadcast##MEM##S(NVSHMEM_TEAM_WORLD, p.at<T>(0), from, COUNT,         \
                                              nvshmem_n_pes() - 1));                               \
    RIGHT(nvshmem##P##NAME##fcollect##MEM##S(NVSHMEM_TEAM_WORLD, p.at<T>(1), from, COUNT));        \
    RIGHT(nvshmem##P##NAME##alltoall##MEM##S(NVSHMEM_TEAM_WORLD, p.at<T>(2), from, COUNT));
#define FOLD(P, S, NAME, OP, SLOT, T)                                                              \
    RIGHT(nvshmem##P##NAME##_##OP##_reduce##S(NVSHMEM_TEAM_WORLD, p.at<T>(SLOT), from, N));        \
    RIGHT(nvshmem##P##NAME##_##OP##_reducescatter##S(NVSHMEM_TEAM_WORLD, p.at<T>(SLOT + 1), from,  \
                                                     N));
#define NUMBERS(P, S, NAME, T)                                                                     \
    const T *from = (const T *)p.source;                                                           \
    COPY(P, S, NAME##_, , T, N)                                                                    \
    FOLD(P, S, NAME, min, 3, T)                                                                    \
    FOLD(P, S, NAME, max, 5, T)                                                                    \
    FOLD(P, S, NAME, sum, 7, T)                                                                    \
    FOLD(P, S, NAME, prod, 9, T)
#define INTEGERS(P, S, NAME, T)                                                                    \
    NUMBERS(P, S, NAME, T)                                                                         \
    FOLD(P, S, NAME, and, 11, T)                                                                   \
    FOLD(P, S, NAME, or, 13, T)                                                                    \
    FOLD(P, S, NAME, xor, 15, T)

// X(encode, TYPE, SCOPE, what of it, NAME), in the order of the rounds. Scopes: t, w, b.
#define ROUNDS_OF_ALL(X)                                                                           \
    X(encode_half, gpsh_nvshmem_half, t, NUMBERS, half)                                            \
    X(encode_bfloat16, gpsh_nvshmem_bfloat16, w, NUMBERS, bfloat16)                                \
    X(encode<float>, float, b, NUMBERS, float)                                                     \
    X(encode<double>, double, t, NUMBERS, double)                                                  \
    X(encode<char>, char, w, INTEGERS, char)                                                       \
    X(encode<signed char>, signed char, b, INTEGERS, schar)                                        \
    X(encode<short>, short, t, INTEGERS, short)                                                    \
    X(encode<unsigned char>, unsigned char, w, INTEGERS, uchar)                                    \
    X(encode<unsigned short>, unsigned short, b, INTEGERS, ushort)                                 \
    X(encode<int8_t>, int8_t, t, INTEGERS, int8)                                                   \
    X(encode<int16_t>, int16_t, w, INTEGERS, int16)                                                \
    X(encode<uint8_t>, uint8_t, b, INTEGERS, uint8)                                                \
    X(encode<uint16_t>, uint16_t, t, INTEGERS, uint16)                                             \
    X(encode<int>, int, w, INTEGERS, int)                                                          \
    X(encode<long>, long, b, INTEGERS, long)                                                       \
    X(encode<long long>, long long, t, INTEGERS, longlong)                                         \
    X(encode<unsigned>, unsigned, w, INTEGERS, uint)                                               \
    X(encode<unsigned long>, unsigned long, b, INTEGERS, ulong)                                    \
    X(encode<unsigned long long>, unsigned long long, t, INTEGERS, ulonglong)                      \
    X(encode<int32_t>, int32_t, t, INTEGERS, int32)                                                \
    X(encode<int32_t>, int32_t, w, INTEGERS, int32)                                                \
    X(encode<int32_t>, int32_t, b, INTEGERS, int32)                                                \
    X(encode<int64_t>, int64_t, t, INTEGERS, int64)                                                \
    X(encode<int64_t>, int64_t, w, INTEGERS, int64)                                                \
    X(encode<int64_t>, int64_t, b, INTEGERS, int64)                                                \
    X(encode<uint32_t>, uint32_t, w, INTEGERS, uint32)                                             \
    X(encode<uint64_t>, uint64_t, b, INTEGERS, uint64)                                             \
    X(encode<size_t>, size_t, t, INTEGERS, size)                                                   \
    X(encode<ptrdiff_t>, ptrdiff_t, w, INTEGERS, ptrdiff)                                          \
    X(encode<char>, char, t, BYTES, mem)                                                           \
    X(encode<char>, char, w, BYTES, mem)                                                           \
    X(encode<char>, char, b, BYTES, mem)

#define BYTES(P, S, NAME, T)                                                                       \
    const T *from = (const T *)p.source;                                                           \
    COPY(P, S, , mem, T, N)
#define SCOPE_t(WHAT, NAME, T)                                                                     \
    LEAD                                                                                           \
    {                                                                                              \
        WHAT(_, , NAME, T)                                                                         \
    }
#define SCOPE_w(WHAT, NAME, T) WHAT(x_, _warp, NAME, T)
#define SCOPE_b(WHAT, NAME, T) WHAT(x_, _block, NAME, T)
#define FUNCTION(ENCODE, TYPE, SCOPE, WHAT, NAME)                                                  \
    static __device__ void round_##NAME##_##SCOPE(place p)                                         \
    {                                                                                              \
        SCOPE_##SCOPE(WHAT, NAME, TYPE)                                                            \
    }
ROUNDS_OF_ALL(FUNCTION)

__global__ void all_rounds(place p, size_t source_bytes)
{
#define CALL(ENCODE, TYPE, SCOPE, WHAT, NAME)                                                      \
    round_##NAME##_##SCOPE(p);                                                                     \
    p.dest += SLOTS * p.slot_bytes;                                                                \
    p.source += source_bytes;                                                                      \
    __syncthreads();
    ROUNDS_OF_ALL(CALL)
}

// ---- What is expected ----

static int folded(int op, int pes, int i)
{
    int all = value_of(0, i);
    for (int pe = 1; pe < pes; pe++) {
        int one = value_of(pe, i);
        all = op == 0   ? (one < all ? one : all)
              : op == 1 ? (all < one ? one : all)
              : op == 2 ? all + one
              : op == 3 ? all * one
              : op == 4 ? all & one
              : op == 5 ? all | one
                        : all ^ one;
    }
    return all;
}

// Element i of a slot, or -1: it has no such element.
static int expected(int slot, int me, int pes, int i)
{
    if (slot == 0)
        return i < N ? value_of(pes - 1, i) : -1;
    if (slot == 1)
        return value_of(i / N, i % N);
    if (slot == 2)
        return value_of(i / N, me * N + i % N);
    int op = (slot - COPIES) / 2, scattered = (slot - COPIES) % 2;
    return i < N ? folded(op, pes, scattered ? me * N + i : i) : -1;
}

static void check_round(const char *what, const char *have, size_t slot_bytes, size_t size,
                        void (*into)(int, void *), int slots)
{
    int me = nvshmem_my_pe(), pes = nvshmem_n_pes();
    for (int slot = 0; slot < slots; slot++)
        for (int i = 0; i < N * pes; i++) {
            int want = expected(slot, me, pes, i);
            char bytes[8] = {};
            if (want >= 0)
                into(want, bytes);
            if (memcmp(bytes, have + slot * slot_bytes + i * size, size) && check_failures++ < 20)
                fprintf(stderr, "PE %d: %s: slot %d, element %d is wrong\n", me, what, slot, i);
        }
}

static void test_collectives(int *errors)
{
    int me = nvshmem_my_pe(), pes = nvshmem_n_pes();
    const size_t slot_bytes = N * pes * 8, source_bytes = slot_bytes,
                 bytes = ROUNDS * SLOTS * slot_bytes;
    char *dest = (char *)nvshmem_calloc(1, bytes),
         *source = (char *)nvshmem_malloc(ROUNDS * source_bytes);
    std::vector<char> data(ROUNDS * source_bytes), have(bytes);
    char *fill = data.data(), *look = have.data();
#define FILL(ENCODE, TYPE, SCOPE, WHAT, NAME)                                                      \
    for (int i = 0; i < N * pes; i++)                                                              \
        ENCODE(value_of(me, i), fill + i * sizeof(TYPE));                                          \
    fill += source_bytes;
    ROUNDS_OF_ALL(FILL)
    CHECK(fill == data.data() + data.size());
    nvshmem_putmem(source, data.data(), data.size(), me);
    nvshmem_barrier_all();
    NV_RUN(all_rounds, 1, 3, place{dest, source, errors, slot_bytes}, source_bytes);
    nvshmem_getmem(have.data(), dest, bytes, me);
    enum { SLOTS_NUMBERS = COPIES + 2 * FOLDS, SLOTS_INTEGERS = SLOTS, SLOTS_BYTES = COPIES };
#define LOOK(ENCODE, TYPE, SCOPE, WHAT, NAME)                                                      \
    check_round(#NAME " " #SCOPE, look, slot_bytes, sizeof(TYPE), ENCODE, SLOTS_##WHAT);           \
    look += SLOTS * slot_bytes;
    ROUNDS_OF_ALL(LOOK)
    nvshmem_free(dest);
    nvshmem_free(source);
}

// ---- Barriers ----

// After each way to meet, a neighbour's word is there; the second one keeps PEs from the next.
#define MEET(COMPLETE, CALL, AGAIN)                                                                \
    LEAD nvshmem_int_p(word, ++k, right);                                                          \
    COMPLETE;                                                                                      \
    CALL;                                                                                          \
    LEAD EXPECT(errors, *(volatile int *)word == k);                                               \
    AGAIN;
#define MEETS(P, S, WHO)                                                                           \
    MEET(, WHO nvshmem##P##barrier_all##S(), WHO nvshmem##P##sync_all##S())                        \
    MEET(, WHO EXPECT(errors, nvshmem##P##barrier##S(team) == 0),                                  \
         WHO EXPECT(errors, nvshmem##P##sync##S(team) == 0))                                       \
    MEET(LEAD nvshmem_quiet(), WHO EXPECT(errors, nvshmem##P##team_sync##S(team) == 0),            \
         WHO EXPECT(errors, nvshmem##P##barrier##S(team) == 0))                                    \
    MEET(LEAD nvshmem_quiet(), WHO nvshmem##P##sync_all##S(), WHO nvshmem##P##barrier_all##S())
__global__ void meetings(int *word, nvshmem_team_t team, int *errors)
{
    int k = 0, right = (nvshmem_my_pe() + 1) % nvshmem_n_pes();
    MEETS(_, , LEAD)
    MEETS(x_, _warp, )
    MEETS(x_, _block, )
    MEET(, EXPECT(errors, nvshmemx_barrier_warpgroup(team) == 0), nvshmemx_barrier_all_warpgroup())
}

// Two warpgroups at a time, each with a team of its own.
__global__ void warpgroups(int *words, nvshmem_team_t one, nvshmem_team_t other, int *errors)
{
    int group = (int)(threadIdx.x / 128), right = (nvshmem_my_pe() + 1) % nvshmem_n_pes();
    for (int k = 1; k < 3; k++) {
        if (threadIdx.x % 128 == 127)
            nvshmem_int_p(words + group, k, right);
        EXPECT(errors, nvshmemx_barrier_warpgroup(group ? other : one) == 0);
        EXPECT(errors, *(volatile int *)(words + group) == k);
        EXPECT(errors, nvshmemx_barrier_warpgroup(group ? other : one) == 0);
    }
}

// ---- Tiles: rows x columns of float, rows `apart` elements apart ----

enum { ROWS = 3, COLUMNS = 5, APART = 8 }; // at most: 8 lets rows move in units of 16 bytes

__global__ void tiles(float *source, float *sum, float *cut, float *rooted, float *gathered,
                      float *told, int apart, nvshmem_team_t team, int *errors)
{
    using namespace nvshmemx;
    typedef ConstInt<1> one;
    constexpr auto algo = tile_coll_algo_t::NVLS_ONE_SHOT_PULL_NBI;
    struct empty {
    };
    auto all =
        make_layout(make_shape<int, int>(COLUMNS, ROWS), make_stride<one, int>(one{}, apart));
    auto wide = make_layout(make_shape(COLUMNS, ROWS * nvshmem_n_pes()), make_stride(1, apart));
    auto from = Tensor<float, decltype(all)>(source, all);
    auto to = Tensor(sum, all), to_cut = Tensor(cut, all), to_root = Tensor(rooted, all),
         to_told = Tensor(told, all);
    auto to_all = Tensor(gathered, wide);
    auto none = make_shape();
    auto start = make_shape(2, 1), end = make_shape(5, 3);
    auto [columns, rows] = make_shape((int64_t)COLUMNS, ROWS);
    EXPECT(errors, columns == COLUMNS && rows == ROWS);
    EXPECT(errors, (tile_sum_reduce_block<decltype(from), decltype(to), empty, algo>(
                       team, from, to, empty{}, empty{}, 0, 0)) == 0);
    EXPECT(errors, (tile_max_allreduce_warp<decltype(from), decltype(to), decltype(start), algo>(
                       team, from, to_cut, start, end, 0, 0)) == 0);
    EXPECT(errors,
           (tile_min_rooted_reduce_warpgroup<decltype(from), decltype(to), decltype(none), algo>(
               team, from, to_root, none, none, nvshmem_n_pes() - 1, 0)) == 0);
    EXPECT(errors, (tile_allgather_block<decltype(from), decltype(to_all), decltype(none), algo>(
                       team, from, to_all, none, none, 0)) == 0);
    if (nvshmem_my_pe() == 0)
        EXPECT(errors, (tile_broadcast_block<decltype(from), decltype(to), decltype(none), algo>(
                           team, from, to_told, none, none, 0)) == 0);
    EXPECT(errors, tile_collective_wait<algo>(team, 0) == 0);
    nvshmemx_barrier_all_block();
}

static void test_tiles(int apart, nvshmem_team_t team, int *errors)
{
    int me = nvshmem_my_pe(), n = nvshmem_n_pes();
    enum { TILE = ROWS * APART };
    float *tile[6], have[6][TILE], source[TILE];
    std::vector<float> gathered(TILE * n);
    for (int i = 0; i < 6; i++)
        tile[i] = (float *)nvshmem_calloc(i == 4 ? TILE * n : TILE, sizeof(float));
    for (int i = 0; i < TILE; i++)
        source[i] = (float)(100 * me + i);
    nvshmem_putmem(tile[0], source, sizeof source, me);
    nvshmem_barrier_all();
    NV_RUN(tiles, 1, 7, tile[0], tile[1], tile[2], tile[3], tile[4], tile[5], apart, team, errors);
    for (int i = 1; i < 6; i++)
        nvshmem_getmem(have[i], tile[i], sizeof have[i], me);
    nvshmem_getmem(gathered.data(), tile[4], TILE * n * sizeof(float), me);
    for (int i = 0; i < ROWS * apart; i++) {
        bool inside = i % apart < COLUMNS, in_cut = i % apart < 3 && i / apart < 2;
        CHECK(have[1][i] == (inside ? (float)(n * i + 100 * (n * (n - 1) / 2)) : 0));
        CHECK(have[2][i] == (in_cut ? (float)(100 * (n - 1) + i) : 0));
        CHECK(have[3][i] == (inside && me == n - 1 ? (float)i : 0));
        CHECK(have[5][i] == (inside ? (float)i : 0));
        for (int pe = 0; pe < n; pe++)
            CHECK(gathered[pe * ROWS * apart + i] == (inside ? (float)(100 * pe + i) : 0));
    }
    for (int i = 0; i < 6; i++)
        nvshmem_free(tile[i]);
}

// Rows of int16_t, of which one unit of 16 bytes and three elements are the tile's, described as
// PyTorch does: the second dimension is the one whose elements lie side by side.
enum { SHORTS = 11, SHORTS_APART = 16 };

static_assert(std::is_same<gpsh_nvshmem_folds_as<int16_t>::type, int16_t>::value &&
                  std::is_same<gpsh_nvshmem_folds_as<uint16_t>::type, uint16_t>::value,
              "integers are folded as integers: a float that is too large does not wrap around");

__global__ void short_tiles(int16_t *source, int16_t *sum, int16_t *most, int16_t *none, int apart,
                            nvshmem_team_t team, int *errors)
{
    using namespace nvshmemx;
    constexpr auto algo = tile_coll_algo_t::NVLS_ONE_SHOT_PULL_NBI;
    auto all = make_layout(make_shape((int64_t)ROWS, (int64_t)SHORTS),
                           make_stride((int64_t)apart, (int64_t)1));
    auto from = Tensor(source, all), to = Tensor(sum, all), to_most = Tensor(most, all),
         to_none = Tensor(none, all);
    auto unbounded = make_shape();
    EXPECT(errors, (tile_sum_reduce_block<decltype(from), decltype(to), decltype(unbounded), algo>(
                       team, from, to, unbounded, unbounded, 0, 0)) == 0);
    EXPECT(errors,
           (tile_max_allreduce_block<decltype(from), decltype(to), decltype(unbounded), algo>(
               team, from, to_most, unbounded, unbounded, 0, 0)) == 0);
    // A root that is no member: the caller takes part, and gets nothing.
    EXPECT(errors, (tile_sum_reduce_block<decltype(from), decltype(to), decltype(unbounded), algo>(
                       team, from, to_none, unbounded, unbounded, nvshmem_n_pes(), 0)) == 0);
}

static void test_short_tiles(int apart, nvshmem_team_t team, int *errors)
{
    int me = nvshmem_my_pe(), n = nvshmem_n_pes();
    enum { TILE = ROWS * SHORTS_APART };
    int16_t *tile[4], have[4][TILE], source[TILE];
    for (int i = 0; i < 4; i++)
        tile[i] = (int16_t *)nvshmem_calloc(TILE, sizeof(int16_t));
    for (int i = 0; i < TILE; i++)
        source[i] = (int16_t)(20000 + 1000 * me + i);
    nvshmem_putmem(tile[0], source, sizeof source, me);
    nvshmem_barrier_all();
    NV_RUN(short_tiles, 1, 5, tile[0], tile[1], tile[2], tile[3], apart, team, errors);
    for (int i = 1; i < 4; i++)
        nvshmem_getmem(have[i], tile[i], sizeof have[i], me);
    for (int i = 0; i < ROWS * apart; i++) {
        bool inside = i % apart < SHORTS;
        int sum = n * (20000 + i) + 1000 * (n * (n - 1) / 2);
        CHECK(have[1][i] == (inside ? (int16_t)(uint16_t)sum : 0));
        CHECK(have[2][i] == (inside ? 20000 + 1000 * (n - 1) + i : 0));
        CHECK(have[3][i] == 0);
    }
    for (int i = 0; i < 4; i++)
        nvshmem_free(tile[i]);
}

// Where the largest of all is; equal ones by the smallest place.
enum { PLACES = 37 };
__global__ void places_of_largest(nvshmem_team_t team, double2 *dest, double2 *source, int *errors)
{
    EXPECT(errors, nvshmemx_double2_maxloc_reduce_block(team, dest, source, PLACES) == 0);
    EXPECT(errors, nvshmemx_double2_maxloc_reduce_block(team, source, source, PLACES) == 0);
}

static void test_maxloc(nvshmem_team_t team, int *errors)
{
    double2 *memory = (double2 *)nvshmem_calloc(2 * PLACES, sizeof *memory), mine[2 * PLACES];
    for (int i = 0; i < PLACES; i++)
        mine[i] = double2{(double)((nvshmem_my_pe() * 3 + i) % 5), (double)(nvshmem_my_pe() + 10)};
    nvshmem_putmem(memory, mine, PLACES * sizeof *mine, nvshmem_my_pe());
    nvshmem_barrier_all();
    NV_RUN(places_of_largest, 1, 40, team, memory + PLACES, memory, errors);
    nvshmem_getmem(mine, memory, sizeof mine, nvshmem_my_pe());
    for (int i = 0; i < PLACES; i++) {
        double2 best = {-1, 0};
        for (int pe = 0; pe < nvshmem_n_pes(); pe++)
            if ((pe * 3 + i) % 5 > best.x)
                best = double2{(double)((pe * 3 + i) % 5), (double)(pe + 10)};
        CHECK(mine[i].x == best.x && mine[i].y == best.y);
        CHECK(mine[PLACES + i].x == best.x && mine[PLACES + i].y == best.y);
    }
    nvshmem_free(memory);
}

int main(void)
{
    nv_begin();
    int *errors = check_errors_begin();
    int *words = (int *)nvshmem_calloc(4, sizeof(int));
    nvshmem_team_t team, other;
    CHECK(nvshmem_team_split_strided(NVSHMEM_TEAM_WORLD, 0, 1, nvshmem_n_pes(), NULL, 0, &team) ==
          0);
    CHECK(nvshmem_team_split_strided(NVSHMEM_TEAM_WORLD, 0, 1, nvshmem_n_pes(), NULL, 0, &other) ==
          0);
    test_collectives(errors);
    NV_RUN(meetings, 1, 3, words, team, errors);
    NV_RUN(warpgroups, 1, 256, words + 2, team, other, errors);
    test_tiles(APART, team, errors);
    test_tiles(APART - 1, team, errors);
    test_short_tiles(SHORTS_APART, team, errors);
    test_short_tiles(SHORTS_APART - 1, team, errors);
    test_maxloc(team, errors);
    check_errors_end(__FILE__, errors);
    nvshmem_team_destroy(team);
    nvshmem_team_destroy(other);
    return nv_end("nvshmem_coll");
}
