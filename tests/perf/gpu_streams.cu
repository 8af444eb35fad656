// SPDX-License-Identifier: BSD-3-Clause
// Operations of streams between PE 0 and PE 1, one row each: back to back in one stream (and what the call alone takes the host),
// one operation and a synchronisation, and as nodes of a CUDA graph.
// Run with two PEs: `gpushmem run -n 2 perf_gpu_streams`; GPUSHMEM_P2P=0 measures the way through ring and proxy.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gpushmem/device.cuh"
#include "gpushmem/gpushmem.h"

enum { NODES = 20 };
static const size_t HEAP_BYTES = 4 << 20; // of each of the two buffers
static char *outbox, *inbox;              // symmetric
static uint64_t *flags;                   // symmetric
static gpushmem_stream_t stream;
static int me;

static void check(int status, const char *what)
{
    if (!status)
        return;
    fprintf(stderr, "%s: %s\n", what, gpushmem_last_error());
    exit(1);
}

static void check_cuda(cudaError_t error, const char *what)
{
    if (error == cudaSuccess)
        return;
    fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
    exit(1);
}

#define CHECK(call) check((call), #call)
#define CUDA(call)  check_cuda((call), #call)

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

// ---- What is measured: one call each ----

typedef void operation(size_t bytes);

static void put(size_t bytes) { CHECK(gpushmem_putmem_on_stream(inbox, outbox, bytes, 1, stream)); }
static void get(size_t bytes) { CHECK(gpushmem_getmem_on_stream(inbox, outbox, bytes, 1, stream)); }
static void put_signal(size_t bytes)
{
    CHECK(gpushmem_putmem_signal_on_stream(inbox, outbox, bytes, flags, 1, GPUSHMEM_SIGNAL_SET, 1, stream));
}
static void signal_set(size_t) { CHECK(gpushmem_signal_op_on_stream(flags, 1, GPUSHMEM_SIGNAL_SET, 1, stream)); }
static void signal_add(size_t) { CHECK(gpushmem_signal_op_on_stream(flags, 1, GPUSHMEM_SIGNAL_ADD, 1, stream)); }
static void wait_satisfied(size_t) { CHECK(gpushmem_signal_wait_until_on_stream(flags + 8, GPUSHMEM_CMP_EQ, 0, stream)); }
static void quiet(size_t) { CHECK(gpushmem_quiet_on_stream(stream)); }
static void barrier_all(size_t) { CHECK(gpushmem_barrier_all_on_stream(stream)); }
static void sync_all(size_t) { CHECK(gpushmem_sync_all_on_stream(stream)); }

// A signal there and one back: a round trip between two streams.
static void ping_pong(size_t)
{
    static uint64_t round;
    round++;
    if (me == 0)
        CHECK(gpushmem_signal_op_on_stream(flags + 16, round, GPUSHMEM_SIGNAL_SET, 1, stream));
    CHECK(gpushmem_signal_wait_until_on_stream(flags + 16, GPUSHMEM_CMP_GE, round, stream));
    if (me == 1)
        CHECK(gpushmem_signal_op_on_stream(flags + 16, round, GPUSHMEM_SIGNAL_SET, 0, stream));
}

// ---- How ----

static double back_to_back(operation *run, size_t bytes, int n, double *call_us)
{
    for (int i = 0; i < 20; i++)
        run(bytes);
    CUDA(cudaStreamSynchronize(stream));
    double begin = now_us();
    for (int i = 0; i < n; i++)
        run(bytes);
    *call_us = (now_us() - begin) / n;
    CUDA(cudaStreamSynchronize(stream));
    return (now_us() - begin) / n;
}

static double one_by_one(operation *run, size_t bytes, int n)
{
    double begin = now_us();
    for (int i = 0; i < n; i++) {
        run(bytes);
        CUDA(cudaStreamSynchronize(stream));
    }
    return (now_us() - begin) / n;
}

static double in_graph(operation *run, size_t bytes, int n)
{
    cudaGraph_t graph;
    cudaGraphExec_t replay;
    CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    for (int i = 0; i < NODES; i++)
        run(bytes);
    CUDA(cudaStreamEndCapture(stream, &graph));
    CUDA(cudaGraphInstantiateWithFlags(&replay, graph, 0));
    CUDA(cudaGraphLaunch(replay, stream));
    CUDA(cudaStreamSynchronize(stream));
    double begin = now_us();
    for (int i = 0; i < n; i++)
        CUDA(cudaGraphLaunch(replay, stream));
    CUDA(cudaStreamSynchronize(stream));
    double us = (now_us() - begin) / n / NODES;
    CUDA(cudaGraphExecDestroy(replay));
    CUDA(cudaGraphDestroy(graph));
    return us;
}

static const char *size_name(size_t bytes)
{
    static char name[32];
    if (bytes >= 1 << 20)
        snprintf(name, sizeof name, "%zu MiB", bytes >> 20);
    else if (bytes >= 1024)
        snprintf(name, sizeof name, "%zu KiB", bytes >> 10);
    else
        snprintf(name, sizeof name, "%zu B", bytes);
    return name;
}

// `captured`: also in a graph (an operation with another value each time cannot be).
static void row(const char *name, operation *run, size_t bytes, bool captured)
{
    int n = bytes >= 1 << 20 ? 100 : 300;
    double call_us, queued = back_to_back(run, bytes, n, &call_us), one = one_by_one(run, bytes, n / 3), graph = 0;
    if (captured)
        graph = in_graph(run, bytes, n / NODES);
    if (me)
        return;
    printf("stream %-34s %8s %9.2f us (call %6.2f us), with synchronise %8.2f us", name, bytes ? size_name(bytes) : "", queued, call_us,
           one);
    captured ? printf(", in a graph %8.2f us\n", graph) : printf("\n");
}

static void rows_of_pe_0(void)
{
    static const size_t sizes[] = {8, 1024, 4096, 16384, 65536, 262144, 1 << 20, 4 << 20};
    for (size_t bytes : sizes)
        row("put", put, bytes, true);
    for (size_t bytes : sizes)
        row("get", get, bytes, true);
    for (size_t bytes : sizes)
        row("put_signal", put_signal, bytes, true);
    row("signal_op, set", signal_set, 0, true);
    row("signal_op, add", signal_add, 0, true);
    row("signal_wait_until, satisfied", wait_satisfied, 0, true);
    row("quiet", quiet, 0, false);
}

int main(void)
{
    check(gpushmem_init(), "init");
    me = gpushmem_my_pe();
    if (gpushmem_n_pes() != 2) {
        fprintf(stderr, "perf_gpu_streams wants two PEs: gpushmem run -n 2 perf_gpu_streams\n");
        return 1;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    inbox = (char *)gpushmem_calloc(1, HEAP_BYTES);
    outbox = (char *)gpushmem_calloc(1, HEAP_BYTES);
    flags = (uint64_t *)gpushmem_calloc(64, sizeof *flags);
    CHECK(gpushmem_stream_create(&stream));
    if (me == 0)
        rows_of_pe_0();
    CHECK(gpushmem_barrier_all());
    row("barrier_all", barrier_all, 0, true);
    CHECK(gpushmem_barrier_all());
    row("sync_all", sync_all, 0, true);
    CHECK(gpushmem_barrier_all());
    row("signal there and back", ping_pong, 0, false);
    CHECK(gpushmem_barrier_all());
    gpushmem_stream_destroy(stream);
    gpushmem_free(flags);
    gpushmem_free(outbox);
    gpushmem_free(inbox);
    check(gpushmem_finalize(), "finalize");
    return 0;
}
