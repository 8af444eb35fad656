// SPDX-License-Identifier: BSD-3-Clause
// Operations of streams, each in up to three ways: "stream", many in a row and one synchronisation;
// "sync", each synchronised; "graph", as nodes of a CUDA graph. Times are the host's, from the
// first call until the stream is idle.
#include "bench.h"
#include "gpushmem/device.cuh"
#include "tests.h"

enum { IN_A_ROW = 100, NODES = 20 };

static gpushmem_stream_t stream;

// ---- Operations ----

struct put {
    static int call(struct perf_bench *b, uint64_t size)
    {
        return gpushmem_putmem_on_stream(b->target, b->source, size, b->peer, stream);
    }
};

struct get {
    static int call(struct perf_bench *b, uint64_t size)
    {
        return gpushmem_getmem_on_stream(b->source, b->target, size, b->peer, stream);
    }
};

struct put_signal {
    static int call(struct perf_bench *b, uint64_t size)
    {
        return gpushmem_putmem_signal_on_stream(b->target, b->source, size, b->word, 1,
                                                GPUSHMEM_SIGNAL_SET, b->peer, stream);
    }
};

struct signal {
    static int call(struct perf_bench *b, uint64_t)
    {
        return gpushmem_signal_op_on_stream(b->word, 1, GPUSHMEM_SIGNAL_SET, b->peer, stream);
    }
};

// Of a word that is as it should be.
struct signal_wait {
    static int call(struct perf_bench *b, uint64_t)
    {
        return gpushmem_signal_wait_until_on_stream(b->flag, GPUSHMEM_CMP_GE, 0, stream);
    }
};

struct barrier_all {
    static int call(struct perf_bench *, uint64_t)
    {
        return gpushmem_barrier_all_on_stream(stream);
    }
};

struct sync_all {
    static int call(struct perf_bench *, uint64_t)
    {
        return gpushmem_sync_all_on_stream(stream);
    }
};

__global__ void nothing(void)
{
}

struct kernel {
    static int call(struct perf_bench *, uint64_t)
    {
        return GPUSHMEM_LAUNCH(nothing, 1, 1, stream);
    }
};

// As programs do it: a kernel makes the data, or uses it. Where the copy engine moves the data, the
// stream changes engines twice.
template <typename Operation> struct behind_kernel {
    static int call(struct perf_bench *b, uint64_t size)
    {
        int status = kernel::call(b, size);
        return status ? status : Operation::call(b, size);
    }
};

// ---- Ways ----

template <typename Operation> static int enqueue(struct perf_bench *b, uint64_t size, uint64_t n)
{
    int status = 0;
    for (uint64_t i = 0; i < n && !status; i++)
        status = Operation::call(b, size);
    return status;
}

template <typename Operation>
static int run_in_a_row(struct perf_bench *b, const struct perf_case *c, uint64_t n)
{
    int status = 0;
    for (uint64_t i = 0; i < n && !status; i++) {
        status = enqueue<Operation>(b, c->size, c->window);
        if (!status)
            status = gpushmem_launch_wait(stream);
    }
    return status;
}

template <typename Operation>
static int run_synchronised(struct perf_bench *b, const struct perf_case *c, uint64_t n)
{
    int status = 0;
    for (uint64_t i = 0; i < n && !status; i++) {
        status = Operation::call(b, c->size);
        if (!status)
            status = gpushmem_launch_wait(stream);
    }
    return status;
}

#if defined(__CUDACC__)
static cudaGraphExec_t graph; // of the row being measured

static int cuda_status(cudaError_t error)
{
    return error == cudaSuccess
               ? 0
               : gpushmem_launch_refused(GPUSHMEM_ERR_CUDA, cudaGetErrorString(error));
}

template <typename Operation> static int capture(struct perf_bench *b, uint64_t size)
{
    cudaGraph_t captured;
    int status = cuda_status(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    if (!status)
        status = enqueue<Operation>(b, size, NODES);
    if (!status)
        status = cuda_status(cudaStreamEndCapture(stream, &captured));
    if (!status)
        status = cuda_status(cudaGraphInstantiateWithFlags(&graph, captured, 0));
    return status ? status : cuda_status(cudaGraphDestroy(captured));
}

static int run_graph(struct perf_bench *, const struct perf_case *, uint64_t n)
{
    int status = 0;
    for (uint64_t i = 0; i < n && !status; i++)
        status = cuda_status(cudaGraphLaunch(graph, stream));
    return status ? status : gpushmem_launch_wait(stream);
}
#endif

// ---- Rows ----

static struct perf_case stream_case(const char *test, const char *way, uint64_t size,
                                    perf_run_fn run, bool collective)
{
    struct perf_case c = {};
    c.test = test;
    c.issuer = way;
    c.size = size;
    c.by_gpu = true;
    c.both = true;
    c.run = run;
    c.serve = collective ? run : NULL;
    c.warm = 4;
    return c;
}

// All rows of a test go one way, then all the next: rows of one way stand under one heading.
enum way { STREAM, SYNC, GRAPH };
static int way;
#if defined(__CUDACC__)
static const int last_way = GRAPH;
#else
static const int last_way = SYNC;
#endif

template <typename Operation>
static int measure_graph(struct perf_bench *b, const char *test, uint64_t size, bool collective)
{
    int status = 0;
#if defined(__CUDACC__)
    status = capture<Operation>(b, size);
    struct perf_case c = stream_case(test, "graph", size, run_graph, collective);
    c.window = NODES;
    if (!status) {
        status = perf_measure(b, &c);
        cudaGraphExecDestroy(graph);
    }
#endif
    return status;
}

template <typename Operation>
static int measure(struct perf_bench *b, const char *test, uint64_t size, bool collective)
{
    if (way == GRAPH)
        return measure_graph<Operation>(b, test, size, collective);
    bool sync = way == SYNC;
    struct perf_case c =
        stream_case(test, sync ? "sync" : "stream", size,
                    sync ? run_synchronised<Operation> : run_in_a_row<Operation>, collective);
    c.window = sync ? 0 : IN_A_ROW;
    return perf_measure(b, &c);
}

static const uint64_t standard_sizes[] = {8, 1024, 65536, 1 << 20, 4 << 20};

template <typename Operation> static int sizes_of(struct perf_bench *b, const char *test)
{
    const uint64_t *sizes;
    int n = perf_bench_sizes(b, standard_sizes, sizeof standard_sizes / sizeof standard_sizes[0],
                             &sizes),
        status = 0;
    for (int i = 0; i < n && !status; i++)
        status = measure<Operation>(b, test, sizes[i], false);
    return status;
}

// A stream of their own for the rows of a test.
template <typename Rows> static int with_stream(struct perf_bench *b, Rows rows)
{
    int status = gpushmem_stream_create(&stream);
    if (status)
        return status;
    for (way = STREAM; way <= last_way && !status; way++)
        status = rows(b);
    gpushmem_stream_destroy(stream);
    return status;
}

static int put_rows(struct perf_bench *b)
{
    int status = measure<kernel>(b, "kernel", 0, false);
    if (!status)
        status = sizes_of<put>(b, "put");
    if (!status)
        status = sizes_of<behind_kernel<put>>(b, "kernel-put");
    if (!status)
        status = sizes_of<put_signal>(b, "put-signal");
    if (!status)
        status = sizes_of<behind_kernel<put_signal>>(b, "kernel-put-signal");
    if (!status)
        status = measure<struct signal>(b, "signal", 8, false);
    return status ? status : measure<signal_wait>(b, "signal-wait", 8, false);
}

static int get_rows(struct perf_bench *b)
{
    int status = sizes_of<get>(b, "get");
    return status ? status : sizes_of<behind_kernel<get>>(b, "kernel-get");
}

static int barrier_rows(struct perf_bench *b)
{
    int status = measure<barrier_all>(b, "barrier_all", 0, true);
    return status ? status : measure<sync_all>(b, "sync_all", 0, true);
}

int perf_stream_put(struct perf_bench *b)
{
    return with_stream(b, put_rows);
}

int perf_stream_get(struct perf_bench *b)
{
    return with_stream(b, get_rows);
}

int perf_stream_barrier(struct perf_bench *b)
{
    return with_stream(b, barrier_rows);
}
