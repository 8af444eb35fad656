// SPDX-License-Identifier: BSD-3-Clause
// Operations issued by kernels, and the command ring by itself. Time is taken inside the kernel: launching does not count.
#include "gpushmem/device.cuh"

#include "bench.h"
#include "tests.h"

#if defined(__CUDACC__)
enum { BLOCK = 1024 };
#else
enum { BLOCK = 1 }; // an operating system thread
#endif

// What a kernel needs. `lead` operations go before the clock starts: threads wake up, caches fill.
struct job {
    uint64_t n, lead, size, window, sequence;
    char *source, *target;
    uint64_t *flag, *word, *ns;
    int peer;
};

// Each operation: what PE 0 does, and what PE 1 does to let it go on.
struct passive {
    static __device__ void respond(const struct job &, uint64_t) {}
};

struct put_word {
    static __device__ void initiate(const struct job &j, uint64_t sequence)
    {
        gpushmem_dev_uint64_p(j.flag, sequence, j.peer);
        gpushmem_dev_uint64_wait_until(j.flag, GPUSHMEM_CMP_EQ, sequence);
    }
    static __device__ void respond(const struct job &j, uint64_t sequence)
    {
        gpushmem_dev_uint64_wait_until(j.flag, GPUSHMEM_CMP_EQ, sequence);
        gpushmem_dev_uint64_p(j.flag, sequence, j.peer);
    }
};

struct put_signal {
    static __device__ void send(const struct job &j, uint64_t sequence)
    {
        gpushmem_dev_putmem_signal_block(j.target, j.source, j.size, j.flag, sequence, GPUSHMEM_SIGNAL_SET, j.peer);
    }
    static __device__ void wait(const struct job &j, uint64_t sequence)
    {
        if (threadIdx.x == 0)
            gpushmem_dev_signal_wait_until(j.flag, GPUSHMEM_CMP_EQ, sequence);
        __syncthreads();
    }
    static __device__ void initiate(const struct job &j, uint64_t sequence)
    {
        send(j, sequence);
        wait(j, sequence);
    }
    static __device__ void respond(const struct job &j, uint64_t sequence)
    {
        wait(j, sequence);
        send(j, sequence);
    }
};

struct get_block : passive {
    static __device__ void initiate(const struct job &j, uint64_t)
    {
        gpushmem_dev_getmem_block(j.source, j.target, j.size, j.peer);
    }
};

__device__ static void quiet_block(void)
{
    __syncthreads();
    if (threadIdx.x == 0)
        gpushmem_dev_quiet();
    __syncthreads();
}

struct put_window : passive {
    static __device__ void initiate(const struct job &j, uint64_t)
    {
        for (uint64_t i = 0; i < j.window; i++)
            gpushmem_dev_putmem_nbi_block(j.target, j.source, j.size, j.peer);
        quiet_block();
    }
};

struct get_window : passive {
    static __device__ void initiate(const struct job &j, uint64_t)
    {
        for (uint64_t i = 0; i < j.window; i++)
            gpushmem_dev_getmem_nbi_block(j.source, j.target, j.size, j.peer);
        quiet_block();
    }
};

struct fetch_add : passive {
    static __device__ void initiate(const struct job &j, uint64_t)
    {
        gpushmem_dev_uint64_atomic_fetch_add(j.word, 1, j.peer);
    }
};

struct add_window : passive {
    static __device__ void initiate(const struct job &j, uint64_t)
    {
        for (uint64_t i = 0; i < j.window; i++)
            gpushmem_dev_uint64_atomic_add(j.word, 1, j.peer);
        quiet_block();
    }
};

struct barrier {
    static __device__ void initiate(const struct job &, uint64_t)
    {
        gpushmem_dev_barrier_all();
    }
    static __device__ void respond(const struct job &j, uint64_t sequence)
    {
        initiate(j, sequence);
    }
};

// Commands that ask for nothing: the ring and the proxy's parser alone.
__device__ static void push_nop(void)
{
    struct gpushmem_command nop = gpsh_dev_command(GPUSHMEM_CMD_NOP, gpushmem_dev_my_pe(), nullptr, nullptr, 0);
    gpsh_dev_submit(gpsh_dev_implicit, nop, GPSH_DEV_NOTHING);
}

struct nop_window : passive {
    static __device__ void initiate(const struct job &j, uint64_t)
    {
        for (uint64_t i = threadIdx.x; i < j.window; i += blockDim.x)
            push_nop();
        quiet_block();
    }
};

struct nop_trip : passive {
    static __device__ void initiate(const struct job &, uint64_t)
    {
        push_nop();
        gpushmem_dev_quiet();
    }
};

template <typename Operation> __global__ void initiate(struct job j)
{
    uint64_t begin = 0;
    for (uint64_t i = 0; i < j.lead + j.n; i++) {
        if (i == j.lead)
            begin = gpsh_dev_now_ns();
        Operation::initiate(j, ++j.sequence);
    }
    if (threadIdx.x == 0)
        *j.ns = gpsh_dev_now_ns() - begin;
}

template <typename Operation> __global__ void respond(struct job j)
{
    for (uint64_t i = 0; i < j.n; i++)
        Operation::respond(j, ++j.sequence);
}

static struct job make_job(struct perf_bench *b, const struct perf_case *c, uint64_t n)
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

template <typename Operation> static int run(struct perf_bench *b, const struct perf_case *c, uint64_t n)
{
    uint64_t ns = 0;
    int status = GPUSHMEM_LAUNCH(initiate<Operation>, 1, c->threads, NULL, make_job(b, c, n));
    b->sequence += c->lead + n;
    if (!status)
        status = gpushmem_launch_wait(NULL);
    if (!status)
        status = gpushmem_getmem(&ns, b->kernel_ns, sizeof ns, b->my_pe);
    b->kernel_us = (double)ns / 1e3;
    return status;
}

template <typename Operation> static int serve(struct perf_bench *b, const struct perf_case *c, uint64_t n)
{
    int status = GPUSHMEM_LAUNCH(respond<Operation>, 1, c->threads, NULL, make_job(b, c, n));
    b->sequence += n;
    return status ? status : gpushmem_launch_wait(NULL);
}

static struct perf_case device_case(const char *test, uint64_t size, perf_run_fn initiator, perf_run_fn responder)
{
    struct perf_case c = {};
    c.test = test;
    c.issuer = "device";
    c.size = size;
    c.run = initiator;
    c.serve = responder;
    c.in_kernel = true;
    c.threads = 1;
    c.warm = 16;
    c.lead = 4;
    return c;
}

static int measure_window(struct perf_bench *b, const char *test, uint64_t size, uint64_t window, int threads, perf_run_fn fn)
{
    struct perf_case c = device_case(test, size, fn, NULL);
    c.window = window;
    c.threads = threads;
    c.bandwidth = true;
    c.warm = 2;
    c.lead = 1;
    return perf_measure(b, &c);
}

static const uint64_t standard_sizes[] = {8, 64, 512, 4096, 65536, 1 << 20};
enum { N_STANDARD = sizeof standard_sizes / sizeof standard_sizes[0], ATOMICS = 512, NOPS = 1024 };

int perf_device_put_latency(struct perf_bench *b)
{
    const uint64_t *sizes;
    int n = perf_bench_sizes(b, standard_sizes, N_STANDARD, &sizes), status = 0;
    for (int i = 0; i < n && !status; i++) {
        bool word = sizes[i] == 8;
        struct perf_case c = device_case("put-lat", sizes[i], word ? run<put_word> : run<put_signal>,
                                         word ? serve<put_word> : serve<put_signal>);
        c.share = 0.5;
        c.threads = word ? 1 : BLOCK;
        status = perf_measure(b, &c);
    }
    return status;
}

int perf_device_get_latency(struct perf_bench *b)
{
    const uint64_t *sizes;
    int n = perf_bench_sizes(b, standard_sizes, N_STANDARD, &sizes), status = 0;
    for (int i = 0; i < n && !status; i++) {
        struct perf_case c = device_case("get-lat", sizes[i], run<get_block>, NULL);
        c.threads = BLOCK;
        status = perf_measure(b, &c);
    }
    return status;
}

static int bandwidth(struct perf_bench *b, const char *test, perf_run_fn fn)
{
    const uint64_t *sizes;
    int n = perf_bench_sizes(b, standard_sizes, N_STANDARD, &sizes), status = 0;
    for (int i = 0; i < n && !status; i++)
        status = measure_window(b, test, sizes[i], perf_window(sizes[i]), BLOCK, fn);
    return status;
}

int perf_device_put_bandwidth(struct perf_bench *b)
{
    return bandwidth(b, "put-bw", run<put_window>);
}

int perf_device_get_bandwidth(struct perf_bench *b)
{
    return bandwidth(b, "get-bw", run<get_window>);
}

int perf_device_atomics(struct perf_bench *b)
{
    struct perf_case c = device_case("fetch-add", 8, run<fetch_add>, NULL);
    int status = perf_measure(b, &c);
    return status ? status : measure_window(b, "add-rate", 8, ATOMICS, 1, run<add_window>);
}

int perf_device_barrier(struct perf_bench *b)
{
    struct perf_case c = device_case("barrier_all", 0, run<barrier>, serve<barrier>);
    return perf_measure(b, &c);
}

int perf_device_ring(struct perf_bench *b)
{
    struct perf_case c = device_case("ring-trip", 0, run<nop_trip>, NULL);
    int status = perf_measure(b, &c);
    static const char *const names[] = {"ring-push-1", "ring-push-2", "ring-push-4"};
    for (int i = 0; i < 3 && !status; i++)
        status = measure_window(b, names[i], 0, NOPS, 1 << i, run<nop_window>);
    return status;
}
