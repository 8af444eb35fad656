// SPDX-License-Identifier: BSD-3-Clause
// Large collectives of streams of a team whose kernels reach some members through rings: each type,
// in place and apart, at odd addresses, beside small ones, in one sequence.
#include <string.h>

#include "kernel_check.cuh"

enum { BYTES = 6 << 20 };

static int my_pe, n_pes;
static char *from, *to; // symmetric, BYTES and room for all blocks

// ---- Values ----

// Sums of these depend on their order.
static __host__ __device__ float part_of(int pe, size_t i)
{
    return (float)((pe * 37 + i * 11) % 101) / 7;
}

template <typename T> static __host__ __device__ T value_of(int pe, size_t i)
{
    return (T)part_of(pe, i);
}
template <> __host__ __device__ int64_t value_of<int64_t>(int pe, size_t i)
{
    return (int64_t)((unsigned)pe * 2654435761u ^ (unsigned)i * 40503u) - 1000000000;
}

template <typename T> __global__ void fill(T *vector, size_t n, int pe, T last)
{
    const size_t lanes = (size_t)gpsh_dev_grid_blocks() * blockDim.x;
    for (size_t i = gpsh_dev_block_number() * blockDim.x + threadIdx.x; i < n; i += lanes)
        vector[i] = value_of<T>(pe, i);
    if (threadIdx.x == 0 && gpsh_dev_block_number() == 0)
        vector[n] = last; // nobody writes behind the end
}

// The fold from the left of the PEs that are first, first + 1, ..., or stay below `end` so.
template <typename T>
__global__ void check_sum(const T *vector, size_t n, int first, int end, int *errors)
{
    const size_t lanes = (size_t)gpsh_dev_grid_blocks() * blockDim.x;
    for (size_t i = gpsh_dev_block_number() * blockDim.x + threadIdx.x; i < n; i += lanes) {
        T sum = value_of<T>(first, i);
        for (int pe = first + 1; pe < end; pe++)
            sum = (T)(sum + value_of<T>(pe, i));
        EXPECT(errors, vector[i] == sum);
    }
}

template <typename T> __global__ void check_value(const T *vector, size_t n, int pe, int *errors)
{
    const size_t lanes = (size_t)gpsh_dev_grid_blocks() * blockDim.x;
    for (size_t i = gpsh_dev_block_number() * blockDim.x + threadIdx.x; i < n; i += lanes)
        EXPECT(errors, vector[i] == value_of<T>(pe, i));
}

template <typename T> __global__ void check_behind(const T *vector, T last, int *errors)
{
    EXPECT(errors, *vector == last);
}

// ---- Operations, between kernels of the same stream ----

template <typename T>
using reduce_fn = int(gpushmem_team_t, T *, const T *, size_t, gpushmem_stream_t);

// At addresses that are `odd` elements beyond an aligned one.
template <typename T>
static void reduce(reduce_fn<T> *run, gpushmem_team_t team, int first, size_t n, bool in_place,
                   size_t odd, int *errors)
{
    T *source = (T *)from + odd, *dest = in_place ? source : (T *)to + odd;
    GPUSHMEM_LAUNCH(fill<T>, 2, 8, NULL, source, n, my_pe, (T)3);
    if (!in_place)
        GPUSHMEM_LAUNCH(fill<T>, 2, 8, NULL, dest, n, 99, (T)3);
    CHECK_OK(run(team, dest, source, n, NULL));
    GPUSHMEM_LAUNCH(check_sum<T>, 2, 8, NULL, dest, n, first, n_pes, errors);
    GPUSHMEM_LAUNCH(check_behind<T>, 1, 1, NULL, dest + n, (T)3, errors);
    if (!in_place) {
        GPUSHMEM_LAUNCH(check_value<T>, 2, 8, NULL, source, n, my_pe, errors);
        GPUSHMEM_LAUNCH(check_behind<T>, 1, 1, NULL, source + n, (T)3, errors);
    }
}

// Sums of these are exact in 8 bits, however often they are rounded.
static __device__ uint16_t small_of(int pe, size_t i)
{
    const float value = (float)((pe + i) % 8);
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (uint16_t)(bits >> 16);
}

__global__ void fill_small(uint16_t *vector, size_t n, int pe)
{
    for (size_t i = threadIdx.x; i < n; i += blockDim.x)
        vector[i] = small_of(pe, i);
}

__global__ void check_small(const uint16_t *vector, size_t n, int first, int end, int *errors)
{
    for (size_t i = threadIdx.x; i < n; i += blockDim.x) {
        int sum = 0;
        for (int pe = first; pe < end; pe++)
            sum += (int)((pe + i) % 8);
        const uint32_t bits = (uint32_t)vector[i] << 16;
        float value;
        memcpy(&value, &bits, sizeof value);
        EXPECT(errors, value == (float)sum);
    }
}

static void reduce_small(gpushmem_team_t team, int first, size_t n, bool in_place, int *errors)
{
    uint16_t *source = (uint16_t *)from + 1, *dest = in_place ? source : (uint16_t *)to + 3;
    GPUSHMEM_LAUNCH(fill_small, 1, 8, NULL, source, n, my_pe);
    CHECK_OK(gpushmem_bfloat16_sum_reduce_on_stream(team, (gpushmem_bfloat16 *)dest,
                                                    (const gpushmem_bfloat16 *)source, n, NULL));
    GPUSHMEM_LAUNCH(check_small, 1, 8, NULL, dest, n, first, n_pes, errors);
}

static void reduces(gpushmem_team_t team, int first, int *errors)
{
    static const size_t sizes[] = {70003, 8193, 300001};
    for (size_t n : sizes)
        for (int in_place = 0; in_place < 2; in_place++) {
            reduce<float>(gpushmem_float_sum_reduce_on_stream, team, first, n, in_place, 0, errors);
            reduce<double>(gpushmem_double_sum_reduce_on_stream, team, first, n / 2, in_place, 1,
                           errors);
            reduce<int64_t>(gpushmem_int64_sum_reduce_on_stream, team, first, n / 2, in_place, 3,
                            errors);
            reduce_small(team, first, n / 2, in_place, errors);
        }
    // more than a PE can keep
    reduce<float>(gpushmem_float_sum_reduce_on_stream, team, first, BYTES / sizeof(float) - 100,
                  true, 5, errors);
}

// The blocks of a team of the PEs from `first` on.
static void fcollect(gpushmem_team_t team, int first, size_t n, bool in_place, int *errors)
{
    int32_t *dest = (int32_t *)to;
    size_t members = (size_t)(n_pes - first);
    int32_t *source = in_place ? dest + (size_t)(my_pe - first) * n : (int32_t *)from + 1;
    GPUSHMEM_LAUNCH(fill<int32_t>, 2, 8, NULL, dest, members * n, 99, 5);
    GPUSHMEM_LAUNCH(fill<int32_t>, 2, 8, NULL, source, n - 1, my_pe,
                    value_of<int32_t>(my_pe, n - 1));
    CHECK_OK(gpushmem_int32_fcollect_on_stream(team, dest, source, n, NULL));
    for (size_t r = 0; r < members; r++)
        GPUSHMEM_LAUNCH(check_value<int32_t>, 2, 8, NULL, dest + r * n, n, first + (int)r, errors);
    GPUSHMEM_LAUNCH(check_behind<int32_t>, 1, 1, NULL, dest + members * n, 5, errors);
}

static void broadcast(gpushmem_team_t team, int first, size_t n, int root, int *errors)
{
    int64_t *dest = (int64_t *)to + 1, *source = n % 2 ? dest : (int64_t *)from;
    GPUSHMEM_LAUNCH(fill<int64_t>, 2, 8, NULL, dest, n, 99, (int64_t)5);
    if (my_pe == first + root)
        GPUSHMEM_LAUNCH(fill<int64_t>, 2, 8, NULL, source, n, my_pe, (int64_t)5);
    CHECK_OK(gpushmem_int64_broadcast_on_stream(team, dest, source, n, root, NULL));
    GPUSHMEM_LAUNCH(check_value<int64_t>, 2, 8, NULL, dest, n, first + root, errors);
    GPUSHMEM_LAUNCH(check_behind<int64_t>, 1, 1, NULL, dest + n, (int64_t)5, errors);
}

static void copies(gpushmem_team_t team, int first, int *errors)
{
    static const size_t sizes[] = {8192, 5001, 70002, 30003};
    for (size_t n : sizes) {
        fcollect(team, first, n, n % 2, errors);
        for (int root = 0; root < n_pes - first; root++)
            broadcast(team, first, n, root, errors);
        reduce<float>(gpushmem_float_sum_reduce_on_stream, team, first, 1 + n % 9, false, 0,
                      errors);
        CHECK_OK(gpushmem_barrier_on_stream(team, NULL));
    }
}

// ---- Who sends how much ----

// Bytes of payload that this PE's proxies have moved to PEs of other nodes.
static uint64_t sent(void)
{
    struct gpushmem_counters row;
    uint64_t bytes = 0;
    for (uint64_t position = 0; gpushmem_counters_next(&position, &row) == 1;)
        if (row.kind == GPUSHMEM_COUNTERS_FLOW && !strcmp(row.transport, "verbs") &&
            !strncmp(row.owner, "proxy", 5))
            bytes += row.bytes;
    return bytes;
}

static double all_sent(uint64_t before, double unit)
{
    CHECK_OK(gpushmem_launch_wait(NULL));
    static uint64_t *mine, *all;
    if (!mine) {
        mine = (uint64_t *)gpushmem_malloc(sizeof *mine);
        all = (uint64_t *)gpushmem_malloc(sizeof *all);
    }
    uint64_t now = sent() - before;
    CHECK_OK(gpushmem_put64(mine, &now, 1, my_pe));
    CHECK_OK(gpushmem_uint64_sum_reduce(GPUSHMEM_TEAM_WORLD, all, mine, 1));
    return (double)gpushmem_uint64_g(all, my_pe) / unit;
}

// Nodes of three and two PEs: each block of an fcollect goes to the other node once, a broadcast
// once, and a reduce there and back. With GPUSHMEM_COLLECTIVES=round=1.
static void count(int *errors)
{
    const size_t n = 60000;
    uint64_t before = sent();
    reduce<float>(gpushmem_float_sum_reduce_on_stream, 0, 0, n, false, 0, errors);
    double reduced = all_sent(before, 4.0 * n);
    before = sent();
    reduce_small(0, 0, n, false, errors);
    double small = all_sent(before, 2.0 * n);
    before = sent();
    fcollect(0, 0, n, false, errors);
    double collected = all_sent(before, 4.0 * n);
    before = sent();
    broadcast(0, 0, n, 1, errors);
    double cast = all_sent(before, 8.0 * n);
    if (my_pe == 0)
        printf("bytes between nodes, of those of the vector: reduce %.3f, of bfloat16 %.3f, "
               "fcollect %.3f, broadcast %.3f\n",
               reduced, small, collected, cast);
    CHECK(reduced > 1.99 && reduced < 2.1);
    CHECK(small > 1.99 && small < 2.1);
    CHECK(collected > 4.99 && collected < 5.1);
    CHECK(cast > 0.99 && cast < 1.1);
}

int main(int argc, char **argv)
{
    my_pe = check_begin();
    n_pes = gpushmem_n_pes();
    from = (char *)gpushmem_malloc(BYTES + 4096);
    to = (char *)gpushmem_malloc(BYTES + 4096);
    int *errors = check_errors_begin();
    gpushmem_team_t rest = GPUSHMEM_TEAM_INVALID;
    if (argc > 1 && !strcmp(argv[1], "count")) {
        count(errors);
    } else {
        reduces(GPUSHMEM_TEAM_WORLD, 0, errors);
        copies(GPUSHMEM_TEAM_WORLD, 0, errors);
        if (n_pes > 2)
            CHECK_OK(
                gpushmem_team_split_strided(GPUSHMEM_TEAM_WORLD, 1, 1, n_pes - 1, NULL, 0, &rest));
        if (rest != GPUSHMEM_TEAM_INVALID) {
            copies(rest, 1, errors);
            reduces(rest, 1, errors);
        }
        CHECK_OK(gpushmem_launch_wait(NULL));
        CHECK_OK(gpushmem_team_destroy(rest));
    }
    CHECK_OK(gpushmem_launch_wait(NULL));
    check_errors_end(__FILE__, errors);
    return check_end("coll_nodes");
}
