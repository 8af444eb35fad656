// SPDX-License-Identifier: BSD-3-Clause
// How long single operations of kernels take.
#define GPUSHMEM_THREAD_LOADS 16 // lone threads here are in small blocks
#include "kernels.cuh"

// ---- Ping-pongs ----

template <int SCOPE> static __device__ void await_flag(const struct job &j, uint64_t sequence)
{
    if (threadIdx.x == 0)
        gpushmem_dev_signal_wait_until(j.flag, GPUSHMEM_CMP_EQ, sequence);
    join<SCOPE>();
}

// PE 0 sends and waits, the other waits and sends.
template <typename Ball, int SCOPE> struct ping_pong : scoped<SCOPE> {
    static __device__ void initiate(const struct job &j, uint64_t sequence)
    {
        Ball::send(j, sequence);
        await_flag<SCOPE>(j, sequence);
    }
    static __device__ void respond(const struct job &j, uint64_t sequence)
    {
        await_flag<SCOPE>(j, sequence);
        Ball::send(j, sequence);
    }
};

// Eight bytes that are their own flag.
struct word {
    static __device__ void send(const struct job &j, uint64_t sequence)
    {
        gpushmem_dev_uint64_p(j.flag, sequence, j.peer);
    }
};

struct signal {
    static __device__ void send(const struct job &j, uint64_t sequence)
    {
        gpushmem_dev_signal_op(j.flag, sequence, GPUSHMEM_SIGNAL_SET, j.peer);
    }
};

template <int SCOPE> struct put_signal {
    static __device__ void send(const struct job &j, uint64_t sequence)
    {
        if (SCOPE == THREAD)
            gpushmem_dev_putmem_signal(j.target, j.source, j.size, j.flag, sequence,
                                       GPUSHMEM_SIGNAL_SET, j.peer);
        else if (SCOPE == WARP)
            gpushmem_dev_putmem_signal_warp(j.target, j.source, j.size, j.flag, sequence,
                                            GPUSHMEM_SIGNAL_SET, j.peer);
        else
            gpushmem_dev_putmem_signal_block(j.target, j.source, j.size, j.flag, sequence,
                                             GPUSHMEM_SIGNAL_SET, j.peer);
    }
};

struct put_fence_flag {
    static __device__ void send(const struct job &j, uint64_t sequence)
    {
        gpushmem_dev_putmem(j.target, j.source, j.size, j.peer);
        gpushmem_dev_fence();
        gpushmem_dev_uint64_p(j.flag, sequence, j.peer);
    }
};

// The floor of `word`: no library in between.
struct raw_flag : scoped<THREAD> {
    static __device__ void initiate(const struct job &j, uint64_t sequence)
    {
        gpsh_dev_store64_sys(gpushmem_dev_ptr(j.flag, j.peer), sequence);
        while (gpsh_dev_load64_acquire_sys(j.flag) != sequence)
            gpsh_dev_relax(0);
    }
    static __device__ void respond(const struct job &j, uint64_t sequence)
    {
        while (gpsh_dev_load64_acquire_sys(j.flag) != sequence)
            gpsh_dev_relax(0);
        gpsh_dev_store64_sys(gpushmem_dev_ptr(j.flag, j.peer), sequence);
    }
};

// ---- One side ----

template <int SCOPE> struct put_quiet : passive<SCOPE> {
    static __device__ void initiate(const struct job &j, uint64_t)
    {
        put<SCOPE>(j);
        quiet<SCOPE>();
    }
};

#if defined(__CUDACC__)
// By a thread that lends shared memory for bulk copies.
struct put_bulk : passive<THREAD> {
    static __device__ void initiate(const struct job &j, uint64_t)
    {
        enum { LENT = 32 << 10 };
        __shared__ __align__(128) char lent[LENT];
        gpushmem_dev_putmem_bulk(j.target, j.source, j.size, j.peer, lent, LENT);
        gpushmem_dev_quiet();
    }
};
#endif

struct p_quiet : passive<THREAD> {
    static __device__ void initiate(const struct job &j, uint64_t sequence)
    {
        gpushmem_dev_uint64_p(j.word, sequence, j.peer);
        gpushmem_dev_quiet();
    }
};

template <int SCOPE> struct get_once : passive<SCOPE> {
    static __device__ void initiate(const struct job &j, uint64_t)
    {
        get<SCOPE>(j);
    }
};

// Where the next value is read from depends on the last one, so that each waits for the one before.
struct g : passive<THREAD> {
    static __device__ void initiate(const struct job &j, uint64_t)
    {
        uint64_t value = gpushmem_dev_uint64_g(j.word, j.peer);
        *j.ns = value >> 63;
    }
};

// The floor of `g`.
struct raw_load : passive<THREAD> {
    static __device__ void initiate(const struct job &j, uint64_t)
    {
        *j.ns = gpsh_dev_load64_value_sys(gpushmem_dev_ptr(j.word, j.peer)) >> 63;
    }
};

struct fetch_add : passive<THREAD> {
    static __device__ void initiate(const struct job &j, uint64_t)
    {
        *j.ns = gpushmem_dev_uint64_atomic_fetch_add(j.word, 1, j.peer) >> 63;
    }
};

struct add_quiet : passive<THREAD> {
    static __device__ void initiate(const struct job &j, uint64_t)
    {
        gpushmem_dev_uint64_atomic_add(j.word, 1, j.peer);
        gpushmem_dev_quiet();
    }
};

// ---- Rows ----

static const uint64_t standard_sizes[] = {8, 64, 512, 4096, 65536, 1 << 20};
enum { N_STANDARD = sizeof standard_sizes / sizeof standard_sizes[0], MOST_OF_A_THREAD = 65536 };

// One row for each size; a lone thread takes too long for the biggest.
template <typename Operation, bool HALF = false>
static int sizes_of(struct perf_bench *b, const char *test, int scope)
{
    const uint64_t *sizes;
    int n = perf_bench_sizes(b, standard_sizes, N_STANDARD, &sizes), status = 0;
    for (int i = 0; i < n && !status; i++) {
        if (scope == THREAD && last_scope != THREAD && sizes[i] > MOST_OF_A_THREAD)
            break;
        status = HALF ? measure_half<Operation>(b, test, scope, sizes[i])
                      : measure<Operation>(b, test, scope, sizes[i]);
    }
    return status;
}

template <int SCOPE> static int puts_of_scope(struct perf_bench *b)
{
    int status = sizes_of<ping_pong<put_signal<SCOPE>, SCOPE>, true>(b, "put-signal", SCOPE);
    return status ? status : sizes_of<put_quiet<SCOPE>>(b, "put-quiet", SCOPE);
}

int perf_device_put_latency(struct perf_bench *b)
{
    int status = measure_half<ping_pong<word, THREAD>>(b, "put-lat", THREAD, 8);
    if (!status && b->info.device_direct)
        status = measure_half<raw_flag>(b, "raw-flag", THREAD, 8);
    if (!status)
        status = measure_half<ping_pong<struct signal, THREAD>>(b, "signal", THREAD, 8);
    if (!status)
        status = sizes_of<ping_pong<put_fence_flag, THREAD>, true>(b, "put-fence-flag", THREAD);
    if (!status)
        status = puts_of_scope<THREAD>(b);
#if defined(__CUDACC__)
    if (!status)
        status = puts_of_scope<WARP>(b);
    if (!status)
        status = puts_of_scope<BLOCK>(b);
    if (!status && b->info.device_direct)
        status = sizes_of<put_bulk>(b, "put-bulk-quiet", THREAD);
#endif
    return status ? status : measure<p_quiet>(b, "p-quiet", THREAD, 8);
}

int perf_device_get_latency(struct perf_bench *b)
{
    int status = sizes_of<get_once<THREAD>>(b, "get-lat", THREAD);
#if defined(__CUDACC__)
    if (!status)
        status = sizes_of<get_once<WARP>>(b, "get-lat", WARP);
    if (!status)
        status = sizes_of<get_once<BLOCK>>(b, "get-lat", BLOCK);
#endif
    if (!status)
        status = measure<g>(b, "g", THREAD, 8);
    return !status && b->info.device_direct ? measure<raw_load>(b, "raw-load", THREAD, 8) : status;
}

int perf_device_atomics_latency(struct perf_bench *b)
{
    int status = measure<fetch_add>(b, "fetch-add", THREAD, 8);
    return status ? status : measure<add_quiet>(b, "add-quiet", THREAD, 8);
}
