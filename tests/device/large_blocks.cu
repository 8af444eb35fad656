// SPDX-License-Identifier: BSD-3-Clause
// Barriers and collectives by blocks of 1,024 threads, of which each has 64 registers: linked,
// where calls take no more by themselves, by kernels without bounds; compiled in one piece, by
// kernels that say so. On CPU threads blocks are smaller.
#include "kernel_check.cuh"

#if defined(__CUDACC_RDC__)
#define BOUNDS
#else
#define BOUNDS __launch_bounds__(1024)
#endif
#if defined(__CUDACC__)
enum { THREADS = 1024 };
#else
enum { THREADS = 40 };
#endif
enum { ROUNDS = 20, SIZES = 4 };

// By packets, with several units for each thread, by way of staging memory, and in place.
static const size_t sizes[SIZES] = {8, 3001, 40000, 400000}; // elements of a PE
static const size_t most = sizes[SIZES - 1];

struct data {
    int *errors;
    float *source, *dest; // `most` elements for each PE
    long *words;          // THREADS for each PE
    int me, n_pes;
};

static __device__ float value(int from, int to, size_t i)
{
    return (float)(from * 100 + to * 10 + (int)(i % 7));
}

__global__ void BOUNDS meet(struct data d)
{
    const int t = (int)threadIdx.x;
    for (int round = 1; round <= ROUNDS; round++) {
        for (int pe = 0; pe < d.n_pes; pe++)
            gpushmem_dev_long_p(&d.words[d.me * THREADS + t], round * 10000 + t, pe);
        EXPECT(d.errors, gpushmem_dev_barrier_block(GPUSHMEM_TEAM_WORLD) == 0);
        for (int pe = 0; pe < d.n_pes; pe++)
            EXPECT(d.errors,
                   d.words[pe * THREADS + THREADS - 1 - t] == round * 10000 + THREADS - 1 - t);
        EXPECT(d.errors, gpushmem_dev_team_sync_block(GPUSHMEM_TEAM_WORLD) == 0);
    }
}

// What this PE sends to each of the others, and nothing where results will be. All PEs are ready
// then.
static __device__ void fill(const struct data &d, size_t n)
{
    for (int pe = 0; pe < d.n_pes; pe++)
        for (size_t i = threadIdx.x; i < n; i += THREADS) {
            d.source[(size_t)pe * n + i] = value(d.me, pe, i);
            d.dest[(size_t)pe * n + i] = -1;
        }
    EXPECT(d.errors, gpushmem_dev_barrier_block(GPUSHMEM_TEAM_WORLD) == 0);
}

__global__ void BOUNDS reduce(struct data d, size_t n)
{
    fill(d, n);
    EXPECT(d.errors,
           gpushmem_dev_float_sum_reduce_block(GPUSHMEM_TEAM_WORLD, d.dest, d.source, n) == 0);
    for (size_t i = threadIdx.x; i < n; i += THREADS) {
        float sum = 0;
        for (int pe = 0; pe < d.n_pes; pe++)
            sum += value(pe, 0, i);
        EXPECT(d.errors, d.dest[i] == sum);
    }
}

__global__ void BOUNDS fcollect(struct data d, size_t n)
{
    fill(d, n);
    EXPECT(d.errors,
           gpushmem_dev_float_fcollect_block(GPUSHMEM_TEAM_WORLD, d.dest, d.source, n) == 0);
    for (int pe = 0; pe < d.n_pes; pe++)
        for (size_t i = threadIdx.x; i < n; i += THREADS)
            EXPECT(d.errors, d.dest[(size_t)pe * n + i] == value(pe, 0, i));
}

__global__ void BOUNDS alltoall(struct data d, size_t n)
{
    fill(d, n);
    EXPECT(d.errors,
           gpushmem_dev_float_alltoall_block(GPUSHMEM_TEAM_WORLD, d.dest, d.source, n) == 0);
    for (int pe = 0; pe < d.n_pes; pe++)
        for (size_t i = threadIdx.x; i < n; i += THREADS)
            EXPECT(d.errors, d.dest[(size_t)pe * n + i] == value(pe, d.me, i));
}

__global__ void BOUNDS broadcast(struct data d, size_t n)
{
    const int root = d.n_pes - 1;
    fill(d, n);
    EXPECT(d.errors,
           gpushmem_dev_float_broadcast_block(GPUSHMEM_TEAM_WORLD, d.dest, d.source, n, root) == 0);
    for (size_t i = threadIdx.x; i < n; i += THREADS)
        EXPECT(d.errors, d.dest[i] == value(root, 0, i));
}

int main(void)
{
    struct data d = {};
    d.me = check_begin();
    d.n_pes = gpushmem_n_pes();
    d.errors = check_errors_begin();
    d.source = (float *)gpushmem_malloc((size_t)d.n_pes * most * sizeof(float));
    d.dest = (float *)gpushmem_malloc((size_t)d.n_pes * most * sizeof(float));
    d.words = (long *)gpushmem_calloc((size_t)d.n_pes * THREADS, sizeof(long));
    CHECK(d.source && d.dest && d.words);
    RUN(meet, 1, THREADS, d);
    for (size_t n : sizes) {
        RUN(reduce, 1, THREADS, d, n);
        RUN(fcollect, 1, THREADS, d, n);
        RUN(alltoall, 1, THREADS, d, n);
        RUN(broadcast, 1, THREADS, d, n);
    }
    CHECK_OK(gpushmem_barrier_all());
    gpushmem_free(d.words);
    gpushmem_free(d.dest);
    gpushmem_free(d.source);
    check_errors_end(__FILE__, d.errors);
    return check_end("large_blocks");
}
