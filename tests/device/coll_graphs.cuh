// SPDX-License-Identifier: BSD-3-Clause
// CUDA graphs with collectives of several sizes, replayed in turn with each other, with calls that
// are enqueued at once, and with collectives in kernels: all in one order, in two streams. Part of
// coll_kinds.cu.
#define CHECK_CUDA(call) CHECK((call) == cudaSuccess)

enum { GRAPHS = 3, GRAPH_TURNS = 120, GRAPH_THREADS = 256 };
static const size_t graph_sizes[GRAPHS] = {3, 2000, ROOM / sizeof(int)};

// What members bring differs from step to step, so that data of another one is seen.
static __device__ int graph_value(uint64_t step, size_t i)
{
    return (int)(step * 10 + i) % 1000;
}

__global__ void graph_fill(uint64_t *step, int *source, size_t n, int me)
{
    uint64_t now = *step + 1;
    __syncthreads();
    for (size_t i = threadIdx.x; i < n; i += blockDim.x)
        source[i] = (me + 1) * graph_value(now, i);
    if (threadIdx.x == 0)
        *step = now;
}

__global__ void graph_expect(const uint64_t *step, const int *dest, size_t n, int pes, int *counts)
{
    for (size_t i = threadIdx.x; i < n; i += blockDim.x)
        EXPECT(counts, dest[i] == pes * (pes + 1) / 2 * graph_value(*step, i));
}

__global__ void graph_reduce(int *dest, const int *source, size_t n, int *counts)
{
    EXPECT(counts, !gpushmem_dev_int_sum_reduce_block(0, dest, source, n));
}

// One step: captured, or done at once.
static void graph_step(uint64_t *step, size_t n, gpushmem_stream_t stream)
{
    int *dest = (int *)inbox, *source = (int *)outbox;
    graph_fill<<<1, GRAPH_THREADS, 0, stream>>>(step, source, n, my_pe);
    CHECK_OK(gpushmem_int_sum_reduce_on_stream(0, dest, source, n, stream));
    graph_expect<<<1, GRAPH_THREADS, 0, stream>>>(step, dest, n, n_pes, errors);
    CHECK_OK(gpushmem_team_sync_on_stream(0, stream));
}

static void graph_kernel_step(uint64_t *step, size_t n, gpushmem_stream_t stream)
{
    int *dest = (int *)inbox, *source = (int *)outbox;
    graph_fill<<<1, GRAPH_THREADS, 0, stream>>>(step, source, n, my_pe);
    CHECK_OK(GPUSHMEM_LAUNCH(graph_reduce, 1, 64, stream, dest, source, n, errors));
    graph_expect<<<1, GRAPH_THREADS, 0, stream>>>(step, dest, n, n_pes, errors);
}

static cudaGraphExec_t graph_of(uint64_t *step, size_t n, gpushmem_stream_t stream)
{
    cudaGraph_t graph;
    cudaGraphExec_t runs;
    CHECK_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    graph_step(step, n, stream);
    CHECK_CUDA(cudaStreamEndCapture(stream, &graph));
    CHECK_CUDA(cudaGraphInstantiateWithFlags(&runs, graph, 0));
    CHECK_CUDA(cudaGraphDestroy(graph));
    return runs;
}

static void test_graphs(void)
{
    gpushmem_stream_t streams[2];
    cudaGraphExec_t graphs[GRAPHS];
    cudaEvent_t before;
    uint64_t *step = (uint64_t *)gpushmem_calloc(1, sizeof *step);
    for (gpushmem_stream_t &stream : streams)
        CHECK_OK(gpushmem_stream_create(&stream));
    CHECK_CUDA(cudaEventCreateWithFlags(&before, cudaEventDisableTiming));
    for (int g = 0; g < GRAPHS; g++)
        graphs[g] = graph_of(step, graph_sizes[g], streams[0]);
    for (int turn = 0; turn < GRAPH_TURNS; turn++) {
        int what = turn * 7 % (GRAPHS + 2), stream = turn / 3 % 2;
        CHECK_CUDA(cudaStreamWaitEvent(streams[stream], before, 0)); // the turn before
        if (what < GRAPHS)
            CHECK_CUDA(cudaGraphLaunch(graphs[what], streams[stream]));
        else if (what == GRAPHS)
            graph_step(step, graph_sizes[turn % GRAPHS], streams[stream]);
        else
            graph_kernel_step(step, graph_sizes[turn % GRAPHS], streams[stream]);
        CHECK_CUDA(cudaEventRecord(before, streams[stream]));
    }
    for (gpushmem_stream_t stream : streams) {
        CHECK_OK(gpushmem_launch_wait(stream));
        CHECK_OK(gpushmem_stream_destroy(stream));
    }
    CHECK(check_read(step) == GRAPH_TURNS);
    for (cudaGraphExec_t graph : graphs)
        CHECK_CUDA(cudaGraphExecDestroy(graph));
    CHECK_CUDA(cudaEventDestroy(before));
    gpushmem_free(step);
}
