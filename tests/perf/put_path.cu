// SPDX-License-Identifier: BSD-3-Clause
// Puts of 8 bytes that kernels issue, through ring, proxy and transport: how many per second, and
// where the time goes, in the kernel and in the proxy. PE 0 issues to PE 1.
//
//   perf_put_path [puts in each row]
//
// The path is what the settings give: for the whole way between hosts without a NIC, preload the
// software HCA. With GPUSHMEM_PROXY_TIMES=1 the proxy's shares are shown as well. One PE puts to
// itself; that is all that goes with the software HCA's null mode, where nothing arrives.
#define GPUSHMEM_DEVICE_CHECKS 0 // as on a GPU
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpushmem/device.cuh"
#include "gpushmem/gpushmem.h"

enum { MAX_THREADS = 1024, MAX_BLOCKS = 32, BURST = 2048 };

struct span {
    uint64_t begin, pushed, done;
};

struct job {
    uint64_t n;       // puts of each thread
    uint64_t *source; // [threads] symmetric, like all of these
    uint64_t *target; // [threads]
    span *spans;      // [blocks]
    int peer;
};

struct op_p {
    static __device__ void put(const job &j, unsigned t, uint64_t i)
    {
        gpushmem_dev_uint64_p(&j.target[t], i, j.peer);
    }
};

struct op_put_nbi {
    static __device__ void put(const job &j, unsigned t, uint64_t)
    {
        gpushmem_dev_uint64_put_nbi(&j.target[t], &j.source[t], 1, j.peer);
    }
};

template <typename Op> __global__ void issue(job j)
{
    unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
    __syncthreads();
    uint64_t begin = gpsh_dev_now_ns();
    for (uint64_t i = 1; i <= j.n; i++)
        Op::put(j, t, i);
    __syncthreads();
    if (threadIdx.x == 0) {
        uint64_t pushed = gpsh_dev_now_ns();
        gpushmem_dev_quiet();
        j.spans[blockIdx.x].begin = begin;
        j.spans[blockIdx.x].pushed = pushed;
        j.spans[blockIdx.x].done = gpsh_dev_now_ns();
    }
}

struct shape {
    int blocks, threads;
    const char *name;
};

#if defined(__CUDACC__)
static const shape shapes[] = {
    {1, 1, "1 thread"}, {1, 32, "1 warp"}, {4, 32, "4 warps"}, {32, 32, "32 warps"}};
#else
static const shape shapes[] = {{1, 1, "1 thread"}, {4, 1, "4 threads"}};
#endif

// A row, times in ns; in the kernel they are means over the blocks.
struct row {
    double total; // first put to the end of the last quiet
    double push, quiet;
};

static void die(const char *what)
{
    fprintf(stderr, "perf_put_path: %s: %s\n", what, gpushmem_last_error());
    gpushmem_global_exit(1);
    exit(1);
}

static bool is_set(const char *name)
{
    const char *value = getenv(name);
    return value && *value && *value != '0';
}

// This PE's own memory, by no transport: it might move nothing.
static void fetch(void *to, const void *from, size_t bytes)
{
#if defined(__CUDACC__)
    if (cudaMemcpy(to, from, bytes, cudaMemcpyDefault) != cudaSuccess)
        die("cudaMemcpy");
#else
    memcpy(to, from, bytes);
#endif
}

template <typename Op> static row run(const shape &s, job j, uint64_t n)
{
    span spans[MAX_BLOCKS];
    j.n = n;
    if (GPUSHMEM_LAUNCH(issue<Op>, s.blocks, s.threads, NULL, j) || gpushmem_launch_wait(NULL))
        die("kernel");
    fetch(spans, j.spans, sizeof(span) * (size_t)s.blocks);
    row r = {};
    uint64_t first = spans[0].begin, last = spans[0].done;
    for (int b = 0; b < s.blocks; b++) {
        first = spans[b].begin < first ? spans[b].begin : first;
        last = spans[b].done > last ? spans[b].done : last;
        r.push += (double)(spans[b].pushed - spans[b].begin) / s.blocks;
        r.quiet += (double)(spans[b].done - spans[b].pushed) / s.blocks;
    }
    r.total = (double)(last - first);
    return r;
}

static void check_arrived(const shape &s, const job &j, const char *name, const uint64_t *expected)
{
    uint64_t words[MAX_THREADS];
    int threads = s.blocks * s.threads;
    if (is_set("GPUSHMEM_SOFTHCA_NULL"))
        return;
    if (gpushmem_getmem(words, j.target, sizeof(uint64_t) * (size_t)threads, j.peer))
        die("getmem");
    for (int t = 0; t < threads; t++)
        if (words[t] != expected[t]) {
            fprintf(stderr, "perf_put_path: %s, %s: word %d at the target is %llu, not %llu\n",
                    name, s.name, t, (unsigned long long)words[t], (unsigned long long)expected[t]);
            gpushmem_global_exit(1);
        }
}

static void print_shares(const gpushmem_proxy_times &a, const gpushmem_proxy_times &b)
{
    const uint64_t parts[] = {b.parse_ns - a.parse_ns, b.post_ns - a.post_ns,
                              b.doorbell_ns - a.doorbell_ns, b.poll_ns - a.poll_ns,
                              b.retire_ns - a.retire_ns};
    double total = (double)(b.total_ns - a.total_ns), idle = 100;
    for (uint64_t part : parts) {
        double share = 100.0 * (double)part / total;
        printf(" %.1f |", share);
        idle -= share;
    }
    printf(" %.1f |", idle);
}

// How long pushing takes where the ring has room: a burst that fits into the rings of the blocks,
// of which there are 4 if the settings say nothing else.
template <typename Op> static double push_ns(const shape &s, const job &j, uint64_t puts)
{
    const char *entries = getenv("GPUSHMEM_TEST_RING_ENTRIES");
    uint64_t most = entries ? strtoull(entries, NULL, 10) / 2 : (uint64_t)BURST;
    most = puts < most ? puts : most;
    uint64_t n = most / (uint64_t)s.threads / (s.blocks > 4 ? 8 : 1);
    n = n ? n : 1;
    return run<Op>(s, j, n).push / (double)n;
}

template <typename Op>
static void measure(const char *name, const shape &s, job j, uint64_t puts, bool in_p)
{
    int threads = s.blocks * s.threads;
    uint64_t n = puts / (uint64_t)threads, expected[MAX_THREADS];
    gpushmem_proxy_times before = {}, after = {};
    n = n ? n : 1;
    double alone = push_ns<Op>(s, j, puts); // also warms up
    bool times = !gpushmem_proxy_times_read(&before);
    row r = run<Op>(s, j, n);
    times = times && !gpushmem_proxy_times_read(&after);
    for (int t = 0; t < threads; t++)
        expected[t] = in_p ? n : 1000 + (uint64_t)t;
    check_arrived(s, j, name, expected);
    double inside = r.push + r.quiet,
           push = alone * (double)n < r.push ? alone * (double)n : r.push;
    printf("| %s | %s | %.3f | %.0f | %.1f | %.1f | %.1f |", name, s.name,
           (double)n * threads / r.total * 1e3, alone, 100 * push / inside,
           100 * (r.push - push) / inside, 100 * r.quiet / inside);
    if (times)
        print_shares(before, after);
    printf("\n");
    fflush(stdout);
}

static void print_heading(void)
{
    bool shares = is_set("GPUSHMEM_PROXY_TIMES");
    printf("| put of 8 B | issued by | M puts/s | push alone, ns | kernel: push %% | wait for room "
           "%% | quiet %% |%s\n",
           shares ? " proxy: parse % | post % | doorbell % | poll % | retire % | idle % |" : "");
    printf("|---|---|--:|--:|--:|--:|--:|%s\n", shares ? "--:|--:|--:|--:|--:|--:|" : "");
}

int main(int argc, char **argv)
{
    uint64_t puts = argc > 1 ? strtoull(argv[1], NULL, 10) : 200000, values[MAX_THREADS];
    if (gpushmem_init())
        die("init");
    job j = {};
    j.source = (uint64_t *)gpushmem_calloc(MAX_THREADS, sizeof(uint64_t));
    j.target = (uint64_t *)gpushmem_calloc(MAX_THREADS, sizeof(uint64_t));
    j.spans = (span *)gpushmem_calloc(MAX_BLOCKS, sizeof(span));
    j.peer = gpushmem_n_pes() > 1 ? 1 : 0;
    for (uint64_t t = 0; t < MAX_THREADS; t++)
        values[t] = 1000 + t;
    if (!j.source || !j.target || !j.spans ||
        gpushmem_putmem(j.source, values, sizeof values, gpushmem_my_pe()) ||
        gpushmem_barrier_all())
        die("memory");
    if (gpushmem_my_pe() == 0) {
        print_heading();
        for (const shape &s : shapes) {
            measure<op_p>("p", s, j, puts, true);
            measure<op_put_nbi>("put_nbi", s, j, puts, false);
        }
    }
    gpushmem_free(j.spans);
    gpushmem_free(j.target);
    gpushmem_free(j.source);
    if (gpushmem_finalize())
        die("end");
    return 0;
}
