// SPDX-License-Identifier: BSD-3-Clause
// Collectives by all blocks of a grid: their data, from sizes that are packets to those that are
// not, interleaved with operations of streams; statuses that are one for all threads; calls that
// are refused.
//   device_coll_grid [differ|lost]; differ, with GPUSHMEM_CHECK=1: members call differently; lost,
//   with --on-failure continue: the last PE dies, and the survivors end and go on
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "gpushmem/coll_grid.cuh"
#include "kernel_check.cuh"

enum { THREADS = 40, MOST = 40000 };

static int my_pe, n_pes;
static int *source, *dest; // symmetric: MOST elements for each PE
static int *returned;      // one for each thread of a grid

// Element i of what `pe` brings.
static __host__ __device__ int element(int pe, int i)
{
    return (pe + 1) * 1000003 + i * 7;
}

struct what {
    int kind;
    size_t n;
    gpushmem_team_t team;
};

static __device__ int call(const struct what &w, int *to, const int *from)
{
    switch (w.kind) {
    case GPUSHMEM_COLL_SYNC: return gpushmem_dev_team_sync_grid(w.team);
    case GPUSHMEM_COLL_BARRIER: return gpushmem_dev_barrier_grid(w.team);
    case GPUSHMEM_COLL_BROADCAST:
        return gpushmem_dev_int_broadcast_grid(w.team, to, from, w.n,
                                               gpushmem_dev_team_n_pes(w.team) - 1);
    case GPUSHMEM_COLL_COLLECT: return gpushmem_dev_int_collect_grid(w.team, to, from, w.n);
    case GPUSHMEM_COLL_FCOLLECT: return gpushmem_dev_int_fcollect_grid(w.team, to, from, w.n);
    case GPUSHMEM_COLL_ALLTOALL: return gpushmem_dev_int_alltoall_grid(w.team, to, from, w.n);
    case GPUSHMEM_COLL_ALLTOALLS:
        return gpushmem_dev_int_alltoalls_grid(w.team, to, from, 1, 1, w.n);
    case GPUSHMEM_COLL_REDUCE: return gpushmem_dev_int_sum_reduce_grid(w.team, to, from, w.n);
    case GPUSHMEM_COLL_REDUCESCATTER:
        return gpushmem_dev_int_sum_reducescatter_grid(w.team, to, from, w.n);
    case GPUSHMEM_COLL_INSCAN: return gpushmem_dev_int_sum_inscan_grid(w.team, to, from, w.n);
    default: return gpushmem_dev_int_sum_exscan_grid(w.team, to, from, w.n);
    }
}

// Element i of the result of PE `me`. Elements of all blocks are numbered in a row.
static __device__ int wanted(const struct what &w, int me, int n, int i)
{
    int count = (int)w.n, sum = 0, first = 0, last = n;
    switch (w.kind) {
    case GPUSHMEM_COLL_BROADCAST: return element(n - 1, i);
    case GPUSHMEM_COLL_COLLECT:
    case GPUSHMEM_COLL_FCOLLECT: return element(i / count, i % count);
    case GPUSHMEM_COLL_ALLTOALL:
    case GPUSHMEM_COLL_ALLTOALLS: return element(i / count, me * count + i % count);
    case GPUSHMEM_COLL_REDUCESCATTER: i += me * count; break;
    case GPUSHMEM_COLL_INSCAN: last = me + 1; break;
    case GPUSHMEM_COLL_EXSCAN: last = me; break;
    default: break;
    }
    for (int pe = first; pe < last; pe++)
        sum += element(pe, i);
    return sum;
}

// All blocks write source, and look at all of dest, without a barrier of their own.
__global__ void run(struct what w, int *to, int *from, int me, int n, int *statuses, int *errors)
{
    const int thread = (int)(gpsh_dev_block_number() * blockDim.x + threadIdx.x);
    const int threads = (int)(gpsh_dev_grid_blocks() * blockDim.x), count = (int)w.n;
    bool many = w.kind == GPUSHMEM_COLL_ALLTOALL || w.kind == GPUSHMEM_COLL_ALLTOALLS ||
                w.kind == GPUSHMEM_COLL_REDUCESCATTER;
    bool gathers = w.kind == GPUSHMEM_COLL_FCOLLECT || w.kind == GPUSHMEM_COLL_COLLECT ||
                   (many && w.kind != GPUSHMEM_COLL_REDUCESCATTER);
    for (int i = thread; i < (many ? n : 1) * count; i += threads)
        from[i] = element(me, i);
    const int mark = w.kind * 1000 + thread; // calls without elements are meetings too
    if (!count)
        to[thread] = mark;
    statuses[thread] = call(w, to, from);
    const int other = (thread + THREADS) % threads;
    EXPECT(errors, count || statuses[thread] || to[other] == mark - thread + other);
    if (statuses[thread] || w.kind <= GPUSHMEM_COLL_BARRIER)
        return;
    for (int i = (thread + 17) % threads; i < (gathers ? n : 1) * count; i += threads)
        EXPECT(errors, to[i] == wanted(w, me, n, i));
}

static int launch(const struct what &w, dim3 grid, int *errors)
{
    unsigned threads = grid.x * grid.y * THREADS;
    check_clear(returned, threads * sizeof *returned);
    CHECK_OK(GPUSHMEM_LAUNCH_COLLECTIVE(run, grid, THREADS, 0, NULL, w, dest, source, my_pe, n_pes,
                                        returned, errors));
    int status = gpushmem_launch_wait(NULL), first = check_read(returned);
    for (unsigned i = 0; i < threads; i++)
        CHECK(check_read(&returned[i]) == first);
    CHECK(status == first);
    return first;
}

static void test_kinds(int *errors)
{
    static const size_t counts[] = {1, 3, 0, 129, 5000};
    int turn = 0;
    for (int kind = GPUSHMEM_COLL_SYNC; kind < GPUSHMEM_COLL_KINDS; kind++)
        for (size_t n : counts) {
            dim3 grid = turn % 3 ? dim3(turn % 3 + 1) : dim3(2, 2);
            CHECK_OK(launch({kind, n, GPUSHMEM_TEAM_WORLD}, grid, errors));
            if (turn++ % 4 == 0) // of the same sequence
                CHECK_OK(
                    gpushmem_int_sum_reduce_on_stream(GPUSHMEM_TEAM_WORLD, dest, source, 3, NULL));
        }
    for (int kind : {GPUSHMEM_COLL_REDUCE, GPUSHMEM_COLL_FCOLLECT, GPUSHMEM_COLL_REDUCESCATTER})
        CHECK_OK(launch({kind, MOST - 1, GPUSHMEM_TEAM_WORLD}, 3, errors));
}

// Dest is source; of a team of all PEs but the first, which is refused and goes on.
__global__ void in_place(gpushmem_team_t team, float *vector, int first, int n, int count,
                         int expected, int *errors)
{
    const int thread = (int)(gpsh_dev_block_number() * blockDim.x + threadIdx.x);
    const int threads = (int)(gpsh_dev_grid_blocks() * blockDim.x);
    for (int i = thread; i < count; i += threads)
        vector[i] = (float)element(gpushmem_dev_my_pe(), i) / 3;
    EXPECT(errors, gpushmem_dev_float_sum_reduce_grid(team, vector, vector, count) == expected);
    for (int i = thread; i < count; i += threads) {
        float sum = (float)element(first, i) / 3;
        for (int pe = first + 1; pe < n; pe++)
            sum += (float)element(pe, i) / 3;
        EXPECT(errors, expected || vector[i] == sum);
    }
}

static void test_team(int *errors)
{
    gpushmem_team_t team;
    CHECK_OK(gpushmem_team_split_strided(GPUSHMEM_TEAM_WORLD, 1, 1, n_pes - 1, NULL, 0, &team));
    int refused = my_pe ? 0 : (int)GPUSHMEM_ERR_INVALID;
    for (int count : {1, 77, 20000})
        for (int blocks = 1; blocks <= 3; blocks++) {
            CHECK_OK(GPUSHMEM_LAUNCH_COLLECTIVE(in_place, blocks, THREADS, 0, NULL,
                                                GPUSHMEM_TEAM_WORLD, (float *)dest, 0, n_pes, count,
                                                0, errors));
            CHECK_OK(GPUSHMEM_LAUNCH_COLLECTIVE(in_place, blocks, THREADS, 0, NULL, team,
                                                (float *)dest, 1, n_pes, count, refused, errors));
            CHECK(gpushmem_launch_wait(NULL) == refused);
        }
    CHECK_OK(gpushmem_team_destroy(team));
}

// Grids of changing sizes: each block has a number of its own, and all are advanced.
static void test_many(int *errors)
{
    for (int i = 0; i < 12; i++)
        CHECK_OK(launch({i % 2 ? GPUSHMEM_COLL_REDUCE : GPUSHMEM_COLL_FCOLLECT,
                         (size_t)(i * 11 + 1), GPUSHMEM_TEAM_WORLD},
                        1 + i % 4, errors));
}

static void test_refused(int *errors)
{
    struct what w = {GPUSHMEM_COLL_REDUCE, 4, 77};
    CHECK(launch(w, 2, errors) == GPUSHMEM_ERR_INVALID);
    CHECK(strstr(gpushmem_last_error(), "team 77 is no team of this PE"));
    w.team = GPUSHMEM_TEAM_CHANNEL(GPUSHMEM_TEAM_WORLD, 1);
    CHECK(launch(w, 2, errors) == GPUSHMEM_ERR_INVALID);
    CHECK(strstr(gpushmem_last_error(), "a team, and not channel 1 of GPUSHMEM_TEAM_WORLD"));
    w.team = GPUSHMEM_TEAM_WORLD;
#if !defined(__CUDACC__) // CUDA 13 lets blocks of every launch meet, and cannot tell
    CHECK_OK(GPUSHMEM_LAUNCH(run, 2, 1, NULL, w, dest, source, my_pe, n_pes, returned, errors));
    CHECK(gpushmem_launch_wait(NULL) == GPUSHMEM_ERR_STATE);
    CHECK(strstr(gpushmem_last_error(), "was not launched by GPUSHMEM_LAUNCH_COLLECTIVE"));
#endif
    CHECK_OK(launch(w, 2, errors));
}

// A grid of one block, which may be launched in any way, or the block for itself.
__global__ void by_block(bool grid, int *to, const int *from, int *errors)
{
    int status = grid ? gpushmem_dev_int_sum_reduce_grid(GPUSHMEM_TEAM_WORLD, to, from, 40)
                      : gpushmem_dev_int_sum_reduce_block(GPUSHMEM_TEAM_WORLD, to, from, 40);
    EXPECT(errors, status == GPUSHMEM_ERR_ASYMMETRY);
}

// The own block of dest as source, or of source as dest: another place on each PE, and legal.
__global__ void own_blocks(int *to, int *from, int me, int n, int *errors)
{
    const int thread = (int)(gpsh_dev_block_number() * blockDim.x + threadIdx.x), count = 40;
    if (thread < count)
        to[me * count + thread] = element(me, thread);
    EXPECT(errors,
           !gpushmem_dev_int_fcollect_grid(GPUSHMEM_TEAM_WORLD, to, to + me * count, count));
    for (int i = thread; i < n * count; i += 2 * THREADS) {
        EXPECT(errors, to[i] == element(i / count, i % count));
        from[i] = 2;
    }
    EXPECT(errors, !gpushmem_dev_int_sum_reducescatter_grid(GPUSHMEM_TEAM_WORLD, from + me * count,
                                                            from, count));
    EXPECT(errors, from[me * count + thread % count] == 2 * n);
    if (gpsh_dev_block_number() == 0)
        EXPECT(errors,
               !gpushmem_dev_int_fcollect_block(GPUSHMEM_TEAM_WORLD, to, to + me * count, count));
}

static void test_own_blocks(int *errors)
{
    CHECK_OK(GPUSHMEM_LAUNCH_COLLECTIVE(own_blocks, 2, THREADS, 0, NULL, dest, source, my_pe, n_pes,
                                        errors));
    CHECK_OK(gpushmem_launch_wait(NULL));
    CHECK_OK(
        gpushmem_int_fcollect_on_stream(GPUSHMEM_TEAM_WORLD, dest, dest + my_pe * 40, 40, NULL));
    CHECK_OK(gpushmem_int_sum_reducescatter_on_stream(GPUSHMEM_TEAM_WORLD, source + my_pe * 40,
                                                      source, 40, NULL));
    CHECK_OK(gpushmem_launch_wait(NULL));
}

// Calls of a grid and of a block, in kernels that run at the same time: a sequence each. Neither
// kernel ends before the other one runs. `block`: the block's team. Where members compare their
// calls, those of the grid are compared with channel 0.
__global__ void beside(bool grid, gpushmem_team_t block, int *to, const int *from, int *here,
                       int *errors)
{
    atomicAdd(here, 1);
    while (gpushmem_dev_int_atomic_fetch(here, gpushmem_dev_my_pe()) < 3 * THREADS)
        ;
    for (int i = 0; i < 12; i++)
        EXPECT(errors, !(grid ? gpushmem_dev_int_sum_reduce_grid(GPUSHMEM_TEAM_WORLD, to, from, 40)
                              : gpushmem_dev_int_max_reduce_block(block, to, from, 77)));
}

static void test_beside(int *errors)
{
    gpushmem_stream_t streams[2];
    const gpushmem_team_t block = GPUSHMEM_TEAM_CHANNEL(GPUSHMEM_TEAM_WORLD, check_compares());
    check_clear(returned, sizeof *returned);
    for (gpushmem_stream_t &stream : streams)
        CHECK_OK(gpushmem_stream_create(&stream));
    CHECK_OK(GPUSHMEM_LAUNCH_COLLECTIVE(beside, 2, THREADS, 0, streams[0], true, block, dest,
                                        source, returned, errors));
    CHECK_OK(GPUSHMEM_LAUNCH(beside, 1, THREADS, streams[1], false, block, dest + 100, source,
                             returned, errors));
    for (gpushmem_stream_t stream : streams) {
        CHECK_OK(gpushmem_launch_wait(stream));
        CHECK_OK(gpushmem_stream_destroy(stream));
    }
}

// Nobody begins, all hear of it, and the team goes on.
static void test_differ(int *errors)
{
    struct what w = {GPUSHMEM_COLL_REDUCE, 40, GPUSHMEM_TEAM_WORLD}, other = w;
    other.n = 41;
    for (int i = 0; i < 3; i++) {
        CHECK(launch(my_pe == 1 ? other : w, 2, errors) == GPUSHMEM_ERR_ASYMMETRY);
        CHECK(strstr(gpushmem_last_error(), "PE 1 passes nelems 41, PE 0 passes 40"));
        CHECK_OK(launch(w, 2, errors));
        other.n = 0;
        CHECK(launch(my_pe == 1 ? other : w, 2, errors) == GPUSHMEM_ERR_ASYMMETRY);
        other.n = 41;
    }
    CHECK_OK(launch({GPUSHMEM_COLL_REDUCE, 0, GPUSHMEM_TEAM_WORLD}, 2, errors));
    CHECK_OK(GPUSHMEM_LAUNCH(by_block, 1, THREADS, NULL, my_pe != 1, dest, source, errors));
    CHECK(gpushmem_launch_wait(NULL) == GPUSHMEM_ERR_ASYMMETRY);
    CHECK(strstr(gpushmem_last_error(), "PE 1 calls sum_reduce of int32 (int), PE 0 calls "
                                        "sum_reduce of int32 (int) by a grid of 1 block"));
}

// The loss comes after some rounds; from then on every call fails, in all threads.
static void test_lost(int *errors)
{
    struct what w = {GPUSHMEM_COLL_REDUCE, 5000, GPUSHMEM_TEAM_WORLD};
    bool dies = my_pe == n_pes - 1;
    for (int i = 0; i < 3; i++)
        CHECK_OK(launch(w, 3, errors));
    if (dies)
        kill(getpid(), SIGKILL);
    for (int i = 0; i < 4; i++) {
        w.kind = i % 2 ? GPUSHMEM_COLL_FCOLLECT : GPUSHMEM_COLL_REDUCE;
        CHECK(launch(w, 3 - i % 2, errors) == GPUSHMEM_ERR_PE_FAILED);
    }
    CHECK_OK(gpushmem_team_survivors(GPUSHMEM_TEAM_WORLD, NULL, 0, &w.team));
    n_pes--;
    for (int i = 0; i < 4; i++)
        CHECK_OK(launch(w, 3, errors));
    CHECK_OK(gpushmem_team_destroy(w.team));
    printf("PE %d lives on: %d failures\n", my_pe, check_failures);
    fflush(stdout);
    _exit(check_failures != 0); // finalize is a barrier with the dead
}

int main(int argc, char **argv)
{
    my_pe = check_begin();
    n_pes = gpushmem_n_pes();
    source = (int *)gpushmem_calloc((size_t)(MOST * n_pes), sizeof *source);
    dest = (int *)gpushmem_calloc((size_t)(MOST * n_pes), sizeof *dest);
    returned = (int *)gpushmem_calloc(8 * THREADS, sizeof *returned);
    int *errors = check_errors_begin();
    if (argc > 1 && !strcmp(argv[1], "differ")) {
        test_differ(errors);
        test_own_blocks(errors);
    } else if (argc > 1 && !strcmp(argv[1], "lost")) {
        test_lost(errors);
    } else {
        test_kinds(errors);
        test_many(errors);
        if (n_pes > 1)
            test_team(errors);
        test_refused(errors);
        test_own_blocks(errors);
        test_beside(errors);
    }
    check_errors_end(__FILE__, errors);
    for (int *block : {source, dest, returned})
        gpushmem_free(block);
    return check_end("coll_grid");
}
