// SPDX-License-Identifier: BSD-3-Clause
// A CUDA graph of kernels and stream operations, launched again and again without the host in
// between. Part of stream.cu.
#define CHECK_CUDA(call) CHECK((call) == cudaSuccess)

enum {
    GRAPH_WORDS = 512,
    GRAPH_LARGE = 100 << 10,
    GRAPH_FLAG = 20,
    GRAPH_SUM = 21,
    GRAPH_KERNEL_FLAG = 22,
    REPLAYS = 100
};

__global__ void graph_step(uint64_t *step, uint64_t *source)
{
    *step += 1;
    for (uint64_t i = 0; i < GRAPH_WORDS; i++)
        source[i] = *step * 1000 + i;
}

// Device-initiated operations within the graph: with the handle that was captured as an argument,
// and with the implicit one.
__global__ void graph_talk(struct gpushmem_dev dev, const uint64_t *step, uint64_t *dest,
                           uint64_t *flag, int to, int *counts)
{
    gpushmem_dev_uint64_put_signal(dev, dest, step, 1, flag, *step, GPUSHMEM_SIGNAL_SET, to);
    EXPECT(counts, gpushmem_dev_signal_wait_until(flag, GPUSHMEM_CMP_EQ, *step) == *step);
    EXPECT(counts, *dest == *step);
    gpushmem_dev_quiet(dev);
}

__global__ void graph_expect(const uint64_t *step, const uint64_t *data, int *counts)
{
    for (uint64_t i = 0; i < GRAPH_WORDS; i++)
        EXPECT(counts, data[i] == *step * 1000 + i);
}

__global__ void graph_store_late(const uint64_t *step, uint64_t *word)
{
    for (volatile int i = 0; i < 1000; i++)
        ;
    *word = *step * 3;
}

__global__ void graph_expect_word(const uint64_t *step, const uint64_t *word, int *counts)
{
    EXPECT(counts, *word == *step * 3);
}

// The next operation of `to` comes behind what `from` has.
static void graph_join(gpushmem_stream_t from, gpushmem_stream_t to)
{
    cudaEvent_t event;
    CHECK_CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    CHECK_CUDA(cudaEventRecord(event, from));
    CHECK_CUDA(cudaStreamWaitEvent(to, event, 0));
    CHECK_CUDA(cudaEventDestroy(event));
}

// Operations with more than one node before them, and behind a memset, a copy and each other. Ends
// behind a barrier.
static void graph_record_branches(gpushmem_stream_t s, gpushmem_stream_t other)
{
    uint64_t *step = &words[30], *late = &words[34], *arrived = &words[35], *sum = &words[36],
             *copied = &words[37];
    graph_join(s, other);
    graph_store_late<<<1, 1, 0, other>>>(step, late);
    CHECK_CUDA(cudaMemsetAsync(arrived, 0, 8, s));
    barrier(s);
    graph_join(other, s);
    CHECK_OK(gpushmem_putmem_on_stream(arrived, late, 8, right, s));
    barrier(s);
    graph_expect_word<<<1, 1, 0, s>>>(step, arrived, errors);
    CHECK_CUDA(cudaMemcpyAsync(copied, arrived, 8, cudaMemcpyDeviceToDevice, s));
    CHECK_OK(
        gpushmem_putmem_signal_on_stream(arrived, copied, 8, sum, 1, GPUSHMEM_SIGNAL_ADD, left, s));
    graph_join(s, other);
    CHECK_OK(gpushmem_signal_op_on_stream(sum, 1, GPUSHMEM_SIGNAL_ADD, left, other));
    barrier(s);
    graph_join(other, s);
    graph_expect_word<<<1, 1, 0, s>>>(step, arrived, errors);
    barrier(s);
}

static void graph_record(gpushmem_stream_t s, bool talk)
{
    uint64_t *source = (uint64_t *)outbox, *data = (uint64_t *)inbox, *step = &words[30];
    char *large = inbox + 8 * GRAPH_WORDS, *fetched = inbox + (128 << 10);
    size_t bytes = 8 * GRAPH_WORDS;
    graph_step<<<1, 1, 0, s>>>(step, source);
    CHECK_OK(gpushmem_putmem_on_stream(data, source, bytes, right, s));
    CHECK_OK(gpushmem_putmem_on_stream(large, outbox, GRAPH_LARGE, right, s));
    CHECK_OK(gpushmem_quiet_on_stream(s));
    CHECK_OK(gpushmem_signal_op_on_stream(&words[GRAPH_FLAG], 1, GPUSHMEM_SIGNAL_SET, right, s));
    CHECK_OK(gpushmem_signal_wait_until_on_stream(&words[GRAPH_FLAG], GPUSHMEM_CMP_EQ, 1, s));
    graph_expect<<<1, 1, 0, s>>>(step, data, errors);
    graph_expect<<<1, 1, 0, s>>>(step, (const uint64_t *)large, errors);
    CHECK_OK(gpushmem_getmem_on_stream(fetched, outbox, bytes, left, s));
    graph_expect<<<1, 1, 0, s>>>(step, (const uint64_t *)fetched, errors);
    // for the next launch
    CHECK_OK(gpushmem_signal_op_on_stream(&words[GRAPH_FLAG], 0, GPUSHMEM_SIGNAL_SET, me, s));
    CHECK_OK(gpushmem_quiet_on_stream(s));
    barrier(s);
    CHECK_OK(gpushmem_putmem_signal_on_stream(data, source, bytes, &words[GRAPH_SUM], 1,
                                              GPUSHMEM_SIGNAL_ADD, right, s));
    CHECK_OK(gpushmem_putmem_signal_on_stream(large, outbox, GRAPH_LARGE, &words[GRAPH_SUM], 1,
                                              GPUSHMEM_SIGNAL_ADD, right, s));
    if (talk) {
        struct gpushmem_dev dev;
        CHECK_OK(gpushmem_device_handle(&dev));
        graph_talk<<<1, 1, 0, s>>>(dev, step, &words[31], &words[GRAPH_KERNEL_FLAG], right, errors);
    }
    barrier(s);
}

// `first`: no operation of a stream was ever called, no handle asked for. A kernel of ours that
// uses the implicit handle cannot be the first, since the handle is copied to the GPU outside of
// graphs.
static void test_graph(gpushmem_stream_t s, gpushmem_stream_t other, bool first)
{
    cudaGraph_t graph;
    cudaGraphExec_t runs;
    if (!first)
        CHECK_OK(gpushmem_device_attach());
    CHECK_CUDA(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    graph_record(s, !first);
    graph_record_branches(s, other);
    CHECK_OK(gpushmem_uint64_p(&words[33], 5, me)); // the host's own operations go on meanwhile
    CHECK_OK(gpushmem_quiet());
    CHECK(check_read(&words[33]) == 5);
    CHECK_CUDA(cudaStreamEndCapture(s, &graph));
    CHECK_CUDA(cudaGraphInstantiateWithFlags(&runs, graph, 0));
    CHECK(check_read(&words[30]) == 0); // recorded, not done
    for (int i = 0; i < REPLAYS; i++)
        CHECK_CUDA(cudaGraphLaunch(
            runs, i % 2 ? other : s)); // a graph's launches are ordered by themselves
    CHECK_OK(gpushmem_launch_wait(s));
    CHECK_OK(gpushmem_launch_wait(other));
    CHECK(check_read(&words[30]) == REPLAYS);
    CHECK(check_read(&words[GRAPH_SUM]) == 2 * REPLAYS);
    CHECK(check_read(&words[36]) == 2 * REPLAYS);
    CHECK_CUDA(cudaGraphExecDestroy(runs));
    CHECK_CUDA(cudaGraphDestroy(graph));
    CHECK_OK(gpushmem_barrier_all());
}
