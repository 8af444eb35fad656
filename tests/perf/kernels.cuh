// SPDX-License-Identifier: BSD-3-Clause
// What the tests of device-issued operations share: scopes, the two sides of a row as kernels, and
// their launch. Time is taken inside the kernel: launching does not count.
#ifndef PERF_KERNELS_CUH
#define PERF_KERNELS_CUH

#define GPUSHMEM_DEVICE_CHECKS 0 // as on a GPU
#include "bench.h"
#include "gpushmem/coll_grid.cuh"
#include "gpushmem/device.cuh"
#include "tests.h"

// Who calls an operation. GRID: blocks that share the bytes.
enum scope { THREAD, WARP, BLOCK, GRID };

struct shape {
    int blocks, threads;
};

// On CPU threads, each of which is one of the operating system's, a scope of one thread has to do.
static inline struct shape shape_of(int scope)
{
#if defined(__CUDACC__)
    static const struct shape shapes[] = {{1, 1}, {1, 32}, {1, 1024}, {32, 1024}};
#else
    static const struct shape shapes[] = {{1, 1}, {1, 1}, {1, 1}, {2, 1}};
#endif
    return shapes[scope];
}

static inline const char *name_of(int scope)
{
#if defined(__CUDACC__)
    static const char *const names[] = {"thread", "warp", "block", "32 blocks"};
#else
    static const char *const names[] = {"thread", "thread", "thread", "2 threads"};
#endif
    return names[scope];
}

// The widest of those that are worth a row each.
#if defined(__CUDACC__)
static const int last_scope = BLOCK;
#else
static const int last_scope = THREAD;
#endif

// What a kernel needs. `lead` operations go before the clock starts: threads wake up, caches fill.
struct job {
    uint64_t n, lead, size, window, sequence;
    char *source, *target;
    uint64_t *flag, *word, *ns;
    int peer;
};

// An operation is a type with what PE 0 does, and what the others do to let it go on; each thread
// of the scope calls them. MOST: threads of a block, for the compiler's choice of registers. MEETS:
// all blocks of a grid wait for each other.
template <int SCOPE> struct scoped {
    enum { MOST = SCOPE == THREAD || SCOPE == WARP ? 32 : 1024, MEETS = false };
};
template <int SCOPE> struct passive : scoped<SCOPE> {
    static __device__ void respond(const struct job &, uint64_t)
    {
    }
};

template <int SCOPE> static __device__ void join(void)
{
    if (SCOPE == WARP)
        gpsh_scope_warp::sync();
    else if (SCOPE != THREAD)
        __syncthreads();
}

template <int SCOPE> static __device__ void put(const struct job &j)
{
    if (SCOPE == THREAD)
        gpushmem_dev_putmem(j.target, j.source, j.size, j.peer);
    else if (SCOPE == WARP)
        gpushmem_dev_putmem_warp(j.target, j.source, j.size, j.peer);
    else
        gpushmem_dev_putmem_block(j.target, j.source, j.size, j.peer);
}

template <int SCOPE> static __device__ void get(const struct job &j)
{
    if (SCOPE == THREAD)
        gpushmem_dev_getmem(j.source, j.target, j.size, j.peer);
    else if (SCOPE == WARP)
        gpushmem_dev_getmem_warp(j.source, j.target, j.size, j.peer);
    else
        gpushmem_dev_getmem_block(j.source, j.target, j.size, j.peer);
}

template <int SCOPE> static __device__ void quiet(void)
{
    join<SCOPE>();
    if (threadIdx.x == 0)
        gpushmem_dev_quiet();
    join<SCOPE>();
}

template <typename Operation>
__global__ __launch_bounds__(Operation::MOST) void initiate(struct job j)
{
    uint64_t begin = 0;
    for (uint64_t i = 0; i < j.lead + j.n; i++) {
        if (i == j.lead)
            begin = gpsh_dev_now_ns();
        Operation::initiate(j, ++j.sequence);
    }
    if (threadIdx.x == 0 && blockIdx.x == 0)
        *j.ns = gpsh_dev_now_ns() - begin;
}

template <typename Operation>
__global__ __launch_bounds__(Operation::MOST) void respond(struct job j)
{
    for (uint64_t i = 0; i < j.n; i++)
        Operation::respond(j, ++j.sequence);
}

static inline struct job make_job(struct perf_bench *b, const struct perf_case *c, uint64_t n)
{
    struct job j = {};
    j.n = n;
    j.lead = c->lead;
    j.size = c->size;
    j.window = c->window;
    j.sequence = b->sequence;
    j.source = b->source;
    j.target = b->target;
    j.flag = b->flag;
    j.word = b->word;
    j.ns = b->kernel_ns;
    j.peer = b->peer;
    return j;
}

template <typename Operation>
static int launch(void (*kernel)(struct job), const struct perf_case *c, const struct job &j)
{
    if (Operation::MEETS)
        return GPUSHMEM_LAUNCH_COLLECTIVE(kernel, c->blocks, c->threads, 0, NULL, j);
    return GPUSHMEM_LAUNCH(kernel, c->blocks, c->threads, NULL, j);
}

template <typename Operation>
static int run(struct perf_bench *b, const struct perf_case *c, uint64_t n)
{
    uint64_t ns = 0;
    int status = launch<Operation>(initiate<Operation>, c, make_job(b, c, n));
    b->sequence += c->lead + n;
    if (!status)
        status = gpushmem_launch_wait(NULL);
    if (!status)
        status = gpushmem_getmem(&ns, b->kernel_ns, sizeof ns, b->my_pe);
    b->kernel_us = (double)ns / 1e3;
    return status;
}

template <typename Operation>
static int serve(struct perf_bench *b, const struct perf_case *c, uint64_t n)
{
    int status = launch<Operation>(respond<Operation>, c, make_job(b, c, n));
    b->sequence += n;
    return status ? status : gpushmem_launch_wait(NULL);
}

template <typename Operation>
static struct perf_case device_case(const char *test, int scope, uint64_t size)
{
    struct perf_case c = {};
    c.test = test;
    c.issuer = name_of(scope);
    c.size = size;
    c.run = run<Operation>;
    c.serve = serve<Operation>;
    c.in_kernel = true;
    c.blocks = shape_of(scope).blocks;
    c.threads = shape_of(scope).threads;
    c.warm = 16;
    c.lead = 4;
    return c;
}

template <typename Operation>
static int measure(struct perf_bench *b, const char *test, int scope, uint64_t size)
{
    struct perf_case c = device_case<Operation>(test, scope, size);
    return perf_measure(b, &c);
}

// Ping-pongs count half of a round trip.
template <typename Operation>
static int measure_half(struct perf_bench *b, const char *test, int scope, uint64_t size)
{
    struct perf_case c = device_case<Operation>(test, scope, size);
    c.share = 0.5;
    c.paired = true;
    return perf_measure(b, &c);
}

template <typename Operation>
static int measure_window(struct perf_bench *b, const char *test, int scope, uint64_t size,
                          uint64_t window)
{
    struct perf_case c = device_case<Operation>(test, scope, size);
    c.window = window;
    c.bandwidth = true;
    c.warm = 2;
    c.lead = 1;
    return perf_measure(b, &c);
}

#endif
