// SPDX-License-Identifier: BSD-3-Clause
// How much kernels move: windows of non-blocking operations by a block, and by the blocks of a grid
// which share the bytes.
#include "kernels.cuh"

template <bool GET> static __device__ void issue(const struct job &j, size_t at, size_t bytes)
{
    if (GET)
        gpushmem_dev_getmem_nbi_block(j.source + at, j.target + at, bytes, j.peer);
    else
        gpushmem_dev_putmem_nbi_block(j.target + at, j.source + at, bytes, j.peer);
}

template <bool GET> struct window : passive<BLOCK> {
    static __device__ void initiate(const struct job &j, uint64_t)
    {
        for (uint64_t i = 0; i < j.window; i++)
            issue<GET>(j, 0, j.size);
        quiet<BLOCK>();
    }
};

// All blocks of a grid meet; they are resident. `counter` only grows.
static __device__ void meet(uint64_t *counter, uint64_t round)
{
    __syncthreads();
    if (threadIdx.x == 0) {
        gpsh_dev_fence_gpu();
        gpsh_dev_add64_relaxed_gpu(counter, 1);
        for (uint32_t spins = 0; gpsh_dev_load64_relaxed_gpu(counter) < round * gridDim.x; spins++)
            gpsh_dev_relax(spins);
    }
    __syncthreads();
}

// Each round ends when every block has issued its part; the window ends with a quiet.
template <bool GET> struct shared_window : passive<BLOCK> {
    static __device__ void initiate(const struct job &j, uint64_t sequence)
    {
        size_t part = j.size / gridDim.x, at = part * blockIdx.x;
        uint64_t rounds = j.window + 1;
        for (uint64_t i = 0; i < j.window; i++) {
            issue<GET>(j, at, blockIdx.x + 1 == gridDim.x ? j.size - at : part);
            meet(&j.ns[1], (sequence - 1) * rounds + i + 1);
        }
        quiet<BLOCK>();
        meet(&j.ns[1], sequence * rounds);
    }
};

static const uint64_t block_sizes[] = {8, 64, 512, 4096, 65536, 1 << 20};
#if defined(__CUDACC__)
static const uint64_t grid_sizes[] = {1024, 4096, 65536, 1 << 20, 16 << 20};
#else
static const uint64_t grid_sizes[] = {65536, 1 << 20};
#endif

// The counter of meet() starts at 0 with the first sequence number of the row.
static int clear_counter(struct perf_bench *b)
{
    const uint64_t zero = 0;
    b->sequence = 0;
    int status = gpushmem_putmem(b->kernel_ns + 1, &zero, sizeof zero, b->my_pe);
    return status ? status : gpushmem_quiet();
}

template <bool GET> static int grid_rows(struct perf_bench *b, const char *test)
{
    const uint64_t *sizes;
    int n = perf_bench_sizes(b, grid_sizes, sizeof grid_sizes / sizeof grid_sizes[0], &sizes),
        status = 0;
    uint64_t sequence = b->sequence;
    for (int i = 0; i < n && !status; i++) {
        status = clear_counter(b);
        if (!status && sizes[i] <= b->max_bytes)
            status = measure_window<shared_window<GET>>(b, test, GRID, sizes[i], 8);
    }
    b->sequence = sequence; // the flag of the ping-pongs still holds it
    return status;
}

template <bool GET> static int bandwidth(struct perf_bench *b, const char *test)
{
    const uint64_t *sizes;
    int n = perf_bench_sizes(b, block_sizes, sizeof block_sizes / sizeof block_sizes[0], &sizes),
        status = 0;
    for (int i = 0; i < n && !status; i++)
        status = measure_window<window<GET>>(b, test, last_scope, sizes[i], perf_window(sizes[i]));
    return status ? status : grid_rows<GET>(b, test);
}

int perf_device_put_bandwidth(struct perf_bench *b)
{
    return bandwidth<false>(b, "put-bw");
}

int perf_device_get_bandwidth(struct perf_bench *b)
{
    return bandwidth<true>(b, "get-bw");
}

// ---- Rate of atomics ----

struct add_window : passive<THREAD> {
    static __device__ void initiate(const struct job &j, uint64_t)
    {
        for (uint64_t i = 0; i < j.window; i++)
            gpushmem_dev_uint64_atomic_add(j.word, 1, j.peer);
        quiet<THREAD>();
    }
};

int perf_device_atomics(struct perf_bench *b)
{
    int status = perf_device_atomics_latency(b);
    return status ? status : measure_window<add_window>(b, "add-rate", THREAD, 8, 512);
}
