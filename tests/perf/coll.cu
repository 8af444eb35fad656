// SPDX-License-Identifier: BSD-3-Clause
// Collectives: on streams in a row and in a graph, and in kernels by a thread, a warp, a block and
// a grid; where --nccl names the library, NCCL's in turn with ours, on the same memory. A row's
// size is the largest buffer of a PE: what is reduced or broadcast, all that fcollect and alltoall
// move, and the source of reducescatter. Bandwidth is that size by the time.
#define GPUSHMEM_THREAD_LOADS 16 // lone threads here are in small blocks
#include "kernels.cuh"
#include "nccl.h"

enum { IN_A_ROW = 20, ROUNDS = 21 };

static gpushmem_stream_t stream;
static const int world = GPUSHMEM_TEAM_WORLD;

struct operation {
    const char *name, *nccl_name;
    enum perf_nccl_kind nccl;
    int (*enqueue)(float *to, const float *from, size_t count);
    bool divided; // count is that of a block
    int kind;     // enum gpushmem_coll_kind
};

static const struct operation operations[] = {
    {"reduce", "nccl-reduce", PERF_NCCL_ALL_REDUCE,
     [](float *to, const float *from, size_t count) {
         return gpushmem_float_sum_reduce_on_stream(world, to, from, count, stream);
     },
     false, GPUSHMEM_COLL_REDUCE},
    {"fcollect", "nccl-fcollect", PERF_NCCL_ALL_GATHER,
     [](float *to, const float *from, size_t count) {
         return gpushmem_float_fcollect_on_stream(world, to, from, count, stream);
     },
     true, GPUSHMEM_COLL_FCOLLECT},
    {"alltoall", "nccl-alltoall", PERF_NCCL_ALL_TO_ALL,
     [](float *to, const float *from, size_t count) {
         return gpushmem_float_alltoall_on_stream(world, to, from, count, stream);
     },
     true, GPUSHMEM_COLL_ALLTOALL},
    {"reducescatter", "nccl-reducescatter", PERF_NCCL_REDUCE_SCATTER,
     [](float *to, const float *from, size_t count) {
         return gpushmem_float_sum_reducescatter_on_stream(world, to, from, count, stream);
     },
     true, GPUSHMEM_COLL_REDUCESCATTER},
    {"broadcast", "nccl-broadcast", PERF_NCCL_BROADCAST,
     [](float *to, const float *from, size_t count) {
         return gpushmem_float_broadcast_on_stream(world, to, from, count, 0, stream);
     },
     false, GPUSHMEM_COLL_BROADCAST},
};

static size_t count_of(const struct perf_bench *b, const struct operation *o, uint64_t size)
{
    return size / sizeof(float) / (o->divided ? (size_t)b->n_pes : 1);
}

// ---- Ways ----

// IN_A_ROW operations, ours or NCCL's.
static int enqueue(struct perf_bench *b, const struct operation *o, uint64_t size, bool nccl)
{
    float *to = (float *)b->target;
    const float *from = (const float *)b->source;
    size_t count = count_of(b, o, size);
    int status = 0;
    for (int i = 0; i < IN_A_ROW && !status; i++)
        status = nccl ? perf_nccl_enqueue(o->nccl, to, from, count, stream)
                      : o->enqueue(to, from, count);
    return status;
}

struct way {
    const char *name;
    void *graphs[2]; // ours, NCCL's
};

static int run_way(struct perf_bench *b, const struct way *way, const struct operation *o,
                   uint64_t size, bool nccl, double *us)
{
    int status = gpushmem_barrier_all();
    uint64_t begin = perf_now_ns();
    if (status)
        return status;
#if defined(__CUDACC__)
    if (way->graphs[0])
        status = cudaGraphLaunch((cudaGraphExec_t)way->graphs[nccl], stream) == cudaSuccess
                     ? 0
                     : gpushmem_launch_refused(GPUSHMEM_ERR_CUDA, "cudaGraphLaunch");
    else
#endif
        status = enqueue(b, o, size, nccl);
    if (!status)
        status = gpushmem_launch_wait(stream);
    *us = (double)(perf_now_ns() - begin) / 1e3 / IN_A_ROW;
    return status;
}

// In turn, so that both have the same conditions; the first rounds do not count.
static int measure_way(struct perf_bench *b, const struct way *way, const struct operation *o,
                       uint64_t size)
{
    struct perf_samples samples[2] = {};
    int status = 0, sides = perf_nccl_is_open() ? 2 : 1;
    int rounds = b->options->rounds ? b->options->rounds : ROUNDS;
    for (int i = -3; i < rounds && !status; i++)
        for (int side = 0; side < sides && !status; side++) {
            double us;
            status = run_way(b, way, o, size, side, &us);
            if (i >= 0 && !status)
                perf_samples_add(&samples[side], us);
        }
    struct perf_case c = {};
    c.issuer = way->name;
    c.size = size;
    c.by_gpu = true;
    c.both = true;
    for (int side = 0; side < sides && !status && b->initiator; side++)
        perf_bench_report(b, &c, side ? o->nccl_name : o->name, &samples[side]);
    if (sides == 2 && !status && b->initiator)
        fprintf(stderr, "%s %s %llu: %.3f of NCCL's time\n", o->name, way->name,
                (unsigned long long)size,
                perf_samples_percentile(&samples[0], 50) /
                    perf_samples_percentile(&samples[1], 50));
    for (struct perf_samples &s : samples)
        perf_samples_clear(&s);
    return status;
}

#if defined(__CUDACC__)
static int capture(struct perf_bench *b, const struct operation *o, uint64_t size, bool nccl,
                   void **out)
{
    cudaGraph_t captured;
    cudaGraphExec_t graph;
    cudaError_t error = cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
    int status = error == cudaSuccess ? enqueue(b, o, size, nccl) : GPUSHMEM_ERR_CUDA;
    if (error == cudaSuccess)
        error = cudaStreamEndCapture(stream, &captured);
    if (error == cudaSuccess && !status)
        error = cudaGraphInstantiateWithFlags(&graph, captured, 0);
    if (error != cudaSuccess)
        return gpushmem_launch_refused(GPUSHMEM_ERR_CUDA, cudaGetErrorString(error));
    if (!status)
        *out = graph;
    cudaGraphDestroy(captured);
    return status;
}

static int measure_graph(struct perf_bench *b, const struct operation *o, uint64_t size)
{
    struct way way = {"graph", {}};
    int status = capture(b, o, size, false, &way.graphs[0]);
    if (!status && perf_nccl_is_open())
        status = capture(b, o, size, true, &way.graphs[1]);
    if (!status)
        status = measure_way(b, &way, o, size);
    for (void *graph : way.graphs)
        if (graph)
            cudaGraphExecDestroy((cudaGraphExec_t)graph);
    return status;
}
#else
static int measure_graph(struct perf_bench *, const struct operation *, uint64_t)
{
    return 0;
}
#endif

// ---- Streams ----

static const uint64_t standard_sizes[] = {8, 4096, 65536, 262144, 1 << 20, 4 << 20, 16 << 20};

static int stream_rows(struct perf_bench *b)
{
    const struct way row = {"stream", {}};
    const uint64_t *sizes;
    int n = perf_bench_sizes(b, standard_sizes, sizeof standard_sizes / sizeof standard_sizes[0],
                             &sizes),
        status = 0;
    for (const struct operation &o : operations)
        for (int i = 0; i < n && !status; i++) {
            if (!count_of(b, &o, sizes[i]))
                continue;
            status = measure_way(b, &row, &o, sizes[i]);
            if (!status)
                status = measure_graph(b, &o, sizes[i]);
        }
    return status;
}

int perf_stream_coll(struct perf_bench *b)
{
    int status = gpushmem_stream_create(&stream);
    if (!status && b->options->nccl)
        status = perf_nccl_open(b->options->nccl, b->source, b->target, b->max_bytes);
    if (!status)
        status = stream_rows(b);
    perf_nccl_close();
    gpushmem_stream_destroy(stream);
    return status;
}

// ---- Kernels ----

template <int KIND, int SCOPE> struct collective : scoped<SCOPE> {
    enum { MOST = SCOPE == THREAD || SCOPE == WARP ? 32 : 512, MEETS = SCOPE == GRID };
    static __device__ void initiate(const struct job &j, uint64_t)
    {
        struct gpushmem_coll_op op = {};
        uint64_t blocks =
            KIND == GPUSHMEM_COLL_FCOLLECT || KIND == GPUSHMEM_COLL_ALLTOALL ? j.window : 1;
        op.kind = KIND;
        op.type = GPUSHMEM_COLL_FLOAT;
        op.fold = GPUSHMEM_COLL_SUM;
        op.dest = j.target;
        op.source = j.source;
        op.n = j.size / sizeof(float) / blocks;
        op.width = sizeof(float);
        const struct gpushmem_dev &dev = gpsh_dev_implicit;
        if (KIND == GPUSHMEM_COLL_SYNC)
            SCOPE == THREAD ? gpushmem_dev_team_sync(world)
            : SCOPE == WARP ? gpushmem_dev_team_sync_warp(world)
            : SCOPE == GRID ? gpushmem_dev_team_sync_grid(world)
                            : gpushmem_dev_team_sync_block(world);
        else if (SCOPE == GRID)
            gpsh_dev_caller<gpsh_scope_grid>::run(dev, op);
        else if (SCOPE == THREAD)
            gpsh_dev_coll_run(dev, gpsh_dev_group_of<gpsh_scope_thread>(), op);
        else if (SCOPE == WARP)
            gpsh_dev_coll_run(dev, gpsh_dev_group_of<gpsh_scope_warp>(), op);
        else
            gpsh_dev_coll_run(dev, gpsh_dev_group_of<gpsh_scope_block>(), op);
    }
    static __device__ void respond(const struct job &j, uint64_t sequence)
    {
        initiate(j, sequence);
    }
};

template <int KIND, int SCOPE>
static int measure_collective(struct perf_bench *b, const char *name, uint64_t size)
{
    typedef collective<KIND, SCOPE> in_kernel;
    struct perf_case c = device_case<in_kernel>(name, SCOPE, size);
    c.threads = SCOPE == THREAD               ? 1
                : SCOPE == WARP               ? 32
                : c.threads > in_kernel::MOST ? +in_kernel::MOST
                                              : c.threads;
    return perf_measure(b, &c);
}

template <int SCOPE> static int kernel_rows(struct perf_bench *b)
{
    static const uint64_t small[] = {8, 1024, 65536};
    const uint64_t *sizes;
    int n = perf_bench_sizes(b, small, 3, &sizes);
    int status = measure_collective<GPUSHMEM_COLL_SYNC, SCOPE>(b, "team_sync", 0);
    for (int i = 0; i < n && !status; i++) {
        if (sizes[i] > (1 << 20) || (SCOPE == THREAD && sizes[i] > 65536))
            continue;
        status = measure_collective<GPUSHMEM_COLL_REDUCE, SCOPE>(b, "reduce", sizes[i]);
        if (!status)
            status = measure_collective<GPUSHMEM_COLL_BROADCAST, SCOPE>(b, "broadcast", sizes[i]);
    }
    return status;
}

int perf_device_coll(struct perf_bench *b)
{
    int status = kernel_rows<THREAD>(b);
#if defined(__CUDACC__)
    if (!status)
        status = kernel_rows<WARP>(b);
    if (!status)
        status = kernel_rows<BLOCK>(b);
    if (!status)
        status = kernel_rows<GRID>(b);
#endif
    return status;
}
