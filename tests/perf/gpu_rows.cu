// SPDX-License-Identifier: BSD-3-Clause
// Device-issued operations between PE 0 and PE 1, one row each: what docs/benchmarks.md holds against other libraries.
// Run with two PEs: `gpushmem run -n 2 perf_gpu_rows.cuda`. GPUSHMEM_P2P=0 measures the way through ring and proxy.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define GPUSHMEM_THREAD_LOADS 16 // its kernels that put by single threads have small blocks
#include "gpushmem/device.cuh"
#include "gpushmem/gpushmem.h"

static const size_t HEAP_BYTES = 64 << 20; // of each of the two buffers
static char *outbox, *inbox;               // symmetric
static uint64_t *flags, *times;            // symmetric: flags of ping-pongs; begin and end of a kernel's loop
static uint64_t *grid_counter;             // symmetric: barrier of the blocks of a grid

static void check(int status, const char *what)
{
    if (!status)
        return;
    fprintf(stderr, "%s: %s\n", what, gpushmem_last_error());
    exit(1);
}

// ---- Kernels: every one times a loop of n rounds by its first thread ----

enum Scope { THREAD, WARP, BLOCK, BULK };

template <int SCOPE> static __device__ void put(const gpushmem_dev &dev, char *to, const char *from, size_t bytes, char *shared)
{
    if (SCOPE == THREAD)
        gpushmem_dev_putmem(dev, to, from, bytes, 1);
    else if (SCOPE == WARP)
        gpushmem_dev_putmem_warp(dev, to, from, bytes, 1);
    else if (SCOPE == BLOCK)
        gpushmem_dev_putmem_block(dev, to, from, bytes, 1);
    else
        gpushmem_dev_putmem_bulk(dev, to, from, bytes, 1, shared, 32 << 10);
}

template <int SCOPE> __global__ void put_quiet(gpushmem_dev dev, char *to, const char *from, size_t bytes, int n, uint64_t *times)
{
    GPUSHMEM_SHARED(uint4, shared, SCOPE == BULK ? 2048 + 8 : 1);
    char *lent = (char *)(((uintptr_t)shared + 127) & ~(uintptr_t)127);
    for (int i = -10; i < n; i++) {
        if (i == 0 && threadIdx.x == 0)
            times[0] = gpsh_dev_now_ns();
        put<SCOPE>(dev, to, from, bytes, lent);
        if (threadIdx.x == 0)
            gpushmem_dev_quiet(dev);
        if (SCOPE == BLOCK)
            __syncthreads();
        else if (SCOPE == WARP)
            __syncwarp();
    }
    if (threadIdx.x == 0)
        times[1] = gpsh_dev_now_ns();
}

// All blocks meet: a barrier of the grid, which must be resident.
static __device__ void meet(uint64_t *counter, uint64_t round)
{
    __syncthreads();
    if (threadIdx.x == 0) {
        gpsh_dev_fence_gpu();
        gpsh_dev_add64_relaxed_gpu(counter, 1);
        while (gpsh_dev_load64_relaxed_gpu(counter) < (round + 1) * gridDim.x)
            gpsh_dev_relax(64);
    }
    __syncthreads();
}

// Each block moves its part of `bytes`; a grid barrier per round, as the peers' benchmarks have it.
__global__ void bandwidth(gpushmem_dev dev, char *to, char *from, size_t bytes, int get, int n, uint64_t *counter, uint64_t *times)
{
    size_t part = bytes / gridDim.x, at = part * blockIdx.x;
    uint64_t round = 0;
    for (int i = -3; i < n; i++) {
        if (i == 0 && blockIdx.x == 0 && threadIdx.x == 0)
            times[0] = gpsh_dev_now_ns();
        if (get)
            gpushmem_dev_getmem_nbi_block(dev, from + at, to + at, part, 1);
        else
            gpushmem_dev_putmem_nbi_block(dev, to + at, from + at, part, 1);
        meet(counter, round++);
    }
    if (threadIdx.x == 0)
        gpushmem_dev_quiet(dev);
    meet(counter, round);
    if (blockIdx.x == 0 && threadIdx.x == 0)
        times[1] = gpsh_dev_now_ns();
}

enum Word { P_QUIET, G, INC_QUIET, FETCH_ADD };

__global__ void words(gpushmem_dev dev, uint64_t *word, int what, int n, uint64_t *times)
{
    uint64_t sum = 0;
    for (int i = -10; i < n; i++) {
        if (i == 0)
            times[0] = gpsh_dev_now_ns();
        if (what == P_QUIET)
            gpushmem_dev_uint64_p(dev, word, (uint64_t)i, 1);
        else if (what == G)
            sum += gpushmem_dev_uint64_g(dev, word + (sum >> 63), 1); // each waits for the one before
        else if (what == INC_QUIET)
            gpushmem_dev_uint64_atomic_inc(dev, word, 1);
        else
            sum += gpushmem_dev_uint64_atomic_fetch_add(dev, word + (sum >> 63), 1, 1);
        if (what == P_QUIET || what == INC_QUIET)
            gpushmem_dev_quiet(dev);
    }
    times[1] = gpsh_dev_now_ns();
    times[2] = sum;
}

enum Pong { PUT_FENCE_FLAG, PUT_SIGNAL, SIGNAL };

__global__ void ping_pong(gpushmem_dev dev, char *to, const char *from, size_t bytes, uint64_t *flag, int what, int n, uint64_t base,
                          uint64_t *times)
{
    int me = gpushmem_dev_my_pe(dev), other = 1 - me;
    for (int i = -10; i < n; i++) {
        uint64_t value = base + (uint64_t)(i + 11);
        if (i == 0)
            times[0] = gpsh_dev_now_ns();
        if (me == 1)
            gpushmem_dev_signal_wait_until(dev, flag, GPUSHMEM_CMP_GE, value);
        if (what == PUT_FENCE_FLAG) {
            gpushmem_dev_putmem(dev, to, from, bytes, other);
            gpushmem_dev_fence(dev);
            gpushmem_dev_uint64_p(dev, flag, value, other);
        } else if (what == PUT_SIGNAL) {
            gpushmem_dev_putmem_signal(dev, to, from, bytes, flag, value, GPUSHMEM_SIGNAL_SET, other);
        } else {
            gpushmem_dev_signal_op(dev, flag, value, GPUSHMEM_SIGNAL_SET, other);
        }
        if (me == 0)
            gpushmem_dev_signal_wait_until(dev, flag, GPUSHMEM_CMP_GE, value);
    }
    times[1] = gpsh_dev_now_ns();
}

__global__ void barriers(gpushmem_dev dev, int scope, int sync_only, int n, uint64_t *times)
{
    for (int i = -10; i < n; i++) {
        if (i == 0 && threadIdx.x == 0)
            times[0] = gpsh_dev_now_ns();
        if (scope == THREAD)
            sync_only ? gpushmem_dev_sync_all(dev) : gpushmem_dev_barrier_all(dev);
        else if (scope == WARP)
            sync_only ? gpushmem_dev_sync_all_warp(dev) : gpushmem_dev_barrier_all_warp(dev);
        else
            sync_only ? gpushmem_dev_sync_all_block(dev) : gpushmem_dev_barrier_all_block(dev);
    }
    if (threadIdx.x == 0)
        times[1] = gpsh_dev_now_ns();
}

// ---- Rows ----

static double elapsed_us(int n)
{
    uint64_t t[2] = {0, 0};
    check(gpushmem_launch_wait(NULL), "kernel");
    check(gpushmem_getmem(t, times, sizeof t, gpushmem_my_pe()), "times");
    return (double)(t[1] - t[0]) / 1e3 / n;
}

static gpushmem_dev dev;

static const char *size_name(size_t bytes)
{
    static char text[4][32];
    static int next;
    char *name = text[next++ % 4];
    if (bytes >= 1 << 20)
        snprintf(name, 32, "%zu MiB", bytes >> 20);
    else if (bytes >= 1024)
        snprintf(name, 32, "%zu KiB", bytes >> 10);
    else
        snprintf(name, 32, "%zu B", bytes);
    return name;
}

template <int SCOPE> static void row_put_quiet(const char *name, int threads, size_t most)
{
    static const size_t sizes[] = {8, 1024, 4096, 65536, 1 << 20};
    for (size_t bytes : sizes) {
        if (bytes > most)
            break;
        int n = bytes > 65536 ? 20 : 200;
        check(GPUSHMEM_LAUNCH(put_quiet<SCOPE>, 1, threads, NULL, dev, inbox, outbox, bytes, n, times), "launch");
        printf("put + quiet, %-28s %8s %9.2f us\n", name, size_name(bytes), elapsed_us(n));
    }
}

static void row_bandwidth(int get, int blocks, int threads)
{
    static const size_t sizes[] = {1024, 4096, 65536, 1 << 20, 16 << 20, 64 << 20};
    for (size_t bytes : sizes) {
        int n = bytes >= 16 << 20 ? 20 : 100;
        uint64_t zero = 0;
        check(gpushmem_putmem(grid_counter, &zero, sizeof zero, 0), "putmem");
        check(gpushmem_quiet(), "quiet");
        check(GPUSHMEM_LAUNCH(bandwidth, blocks, threads, NULL, dev, inbox, outbox, bytes, get, n, grid_counter, times), "launch");
        double us = elapsed_us(n);
        printf("block %s, %3d x %4d %21s %8s %9.2f GB/s %9.2f us\n", get ? "get" : "put", blocks, threads, "", size_name(bytes),
               (double)bytes / us / 1e3, us);
    }
}

static void row_word(const char *name, int what)
{
    int n = 500;
    check(GPUSHMEM_LAUNCH(words, 1, 1, NULL, dev, flags + 16, what, n, times), "launch");
    printf("%-41s %8s %9.2f us\n", name, "8 B", elapsed_us(n));
}

static void row_ping_pong(const char *name, int what)
{
    static const size_t sizes[] = {8, 1024, 4096, 65536};
    static uint64_t base;
    for (size_t bytes : sizes) {
        int n = bytes > 4096 ? 50 : 300;
        check(gpushmem_barrier_all(), "barrier");
        check(GPUSHMEM_LAUNCH(ping_pong, 1, 1, NULL, dev, inbox, outbox, bytes, flags, what, n, base, times), "launch");
        double us = elapsed_us(n);
        base += 1000;
        if (gpushmem_my_pe() == 0)
            printf("%-41s %8s %9.2f us\n", name, size_name(what == SIGNAL ? 8 : bytes), us);
        if (what == SIGNAL)
            break;
    }
}

static void row_barrier(const char *name, int scope, int threads, int sync_only)
{
    check(gpushmem_barrier_all(), "barrier");
    check(GPUSHMEM_LAUNCH(barriers, 1, threads, NULL, dev, scope, sync_only, 500, times), "launch");
    double us = elapsed_us(500);
    if (gpushmem_my_pe() == 0)
        printf("%-41s %8s %9.2f us\n", name, "", us);
}

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

// Operations of the host itself. `what`: 0 put from program memory, 1 put from the heap, 2 its nbi form with one quiet at the
// end, 3 get into program memory, 4 get into the heap.
static void row_host(const char *name, int what, char *program)
{
    static const size_t sizes[] = {8, 1024, 4096, 65536, 1 << 20, 4 << 20};
    for (size_t bytes : sizes) {
        int n = 200;
        double begin = 0;
        for (int i = -20; i < n; i++) {
            if (i == 0) {
                gpushmem_quiet();
                begin = now_us();
            }
            if (what == 0)
                gpushmem_putmem(inbox, program, bytes, 1);
            else if (what == 1)
                gpushmem_putmem(inbox, outbox, bytes, 1);
            else if (what == 2)
                gpushmem_putmem_nbi(inbox, outbox, bytes, 1);
            else
                gpushmem_getmem(what == 3 ? program : outbox, inbox, bytes, 1);
        }
        double issued = now_us();
        gpushmem_quiet();
        double us = (issued - begin) / n, all = (now_us() - begin) / n;
        printf("host %-36s %8s %9.2f us, with quiet %9.2f us, %8.2f GB/s\n", name, size_name(bytes), us, all,
               (double)bytes / all / 1e3);
    }
}

// Through ring and proxy: each round takes microseconds, so fewer rows say it all.
static void rows_of_proxy(void)
{
    row_put_quiet<THREAD>("one thread", 1, 1 << 20);
    row_word("p + quiet", P_QUIET);
    row_word("g", G);
    row_word("atomic inc + quiet", INC_QUIET);
    row_word("atomic fetch_add", FETCH_ADD);
}

static void rows_of_pe_0(void)
{
    row_put_quiet<THREAD>("one thread", 1, 65536);
    row_put_quiet<BULK>("one thread, 32 KiB lent", 1, 1 << 20);
    row_put_quiet<WARP>("one warp", 32, 1 << 20);
    row_put_quiet<BLOCK>("one block of 1024", 1024, 1 << 20);
    row_bandwidth(0, 32, 1024);
    row_bandwidth(1, 32, 1024);
    row_bandwidth(0, 1, 1024);
    row_bandwidth(1, 1, 1024);
    row_bandwidth(0, 132, 1024);
    row_bandwidth(1, 132, 1024);
    row_word("p + quiet", P_QUIET);
    row_word("g", G);
    row_word("atomic inc + quiet", INC_QUIET);
    row_word("atomic fetch_add", FETCH_ADD);
    char *program = (char *)malloc(HEAP_BYTES);
    memset(program, 1, HEAP_BYTES);
    row_host("put from program memory", 0, program);
    row_host("put from the heap", 1, program);
    row_host("put_nbi from the heap", 2, program);
    row_host("get into program memory", 3, program);
    row_host("get into the heap", 4, program);
    free(program);
}

// usage: perf_gpu_rows [proxy]
int main(int argc, char **argv)
{
    bool proxy = argc > 1 && !strcmp(argv[1], "proxy");
    check(gpushmem_init(), "init");
    if (gpushmem_n_pes() != 2) {
        fprintf(stderr, "perf_gpu_rows wants two PEs: gpushmem run -n 2 perf_gpu_rows.cuda\n");
        return 1;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    inbox = (char *)gpushmem_calloc(1, HEAP_BYTES);
    outbox = (char *)gpushmem_calloc(1, HEAP_BYTES);
    flags = (uint64_t *)gpushmem_calloc(64, sizeof *flags);
    times = (uint64_t *)gpushmem_calloc(4, sizeof *times);
    grid_counter = (uint64_t *)gpushmem_calloc(1, sizeof *grid_counter);
    check(gpushmem_device_handle(&dev), "handle");
    if (gpushmem_my_pe() == 0)
        proxy ? rows_of_proxy() : rows_of_pe_0();
    check(gpushmem_barrier_all(), "barrier");
    row_ping_pong("ping-pong: put, fence, flag; round trip", PUT_FENCE_FLAG);
    row_ping_pong("ping-pong: put_signal; round trip", PUT_SIGNAL);
    row_ping_pong("ping-pong: signal; round trip", SIGNAL);
    row_barrier("barrier_all, thread", THREAD, 1, 0);
    row_barrier("barrier_all, warp", WARP, 32, 0);
    row_barrier("barrier_all, block of 1024", BLOCK, 1024, 0);
    row_barrier("sync_all, block of 1024", BLOCK, 1024, 1);
    gpushmem_free(grid_counter);
    gpushmem_free(times);
    gpushmem_free(flags);
    gpushmem_free(outbox);
    gpushmem_free(inbox);
    check(gpushmem_finalize(), "finalize");
    return 0;
}
