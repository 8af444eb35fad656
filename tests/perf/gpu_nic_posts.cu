// SPDX-License-Identifier: BSD-3-Clause
// What it costs a GPU to post to a NIC by itself, by the library's device code and without a NIC: a
// thread looks at the doorbell record and writes a completion for what it covers, and no request is
// read. It is one of the same GPU where queues are in GPU memory, and one of the host where they
// are in host memory: so its looks cross no PCIe. The doorbell is a word of pinned host memory,
// across PCIe as a NIC's register would be. Needs one GPU and no job.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#define GPUSHMEM_DEVICE_NIC 1
#include "cuda_check.cuh"
#include "gpushmem/device.cuh"

static const unsigned ENTRIES_LOG2 = 12, CQES_LOG2 = 12;
static const int PE = 1, PES = 2, ONE = 1000;
static const size_t HEAP_BYTES = 1 << 20;

// ---- The rig ----

struct rig {
    gpushmem_dev dev, *self;
    gpushmem_nic_queue *queue; // device memory
    uint32_t *record;
    uint64_t *cqes;
    uint64_t *doorbell;
    bool near_gpu;
};

static void *pinned(size_t bytes)
{
    void *memory;
    CHECK(cudaHostAlloc(&memory, bytes, cudaHostAllocMapped | cudaHostAllocPortable));
    return memset(memory, 0, bytes);
}

static void *on_gpu(size_t bytes)
{
    void *memory;
    CHECK(cudaMalloc(&memory, bytes));
    CHECK(cudaMemset(memory, 0, bytes));
    return memory;
}

// Queue, records and completions are in the GPU's memory, or the host's.
static rig rig_make(bool near_gpu, bool near_fences)
{
    rig r = {};
    r.near_gpu = near_gpu;
    void *(*place)(size_t) = near_gpu ? on_gpu : pinned;
    const size_t cq_bytes = (size_t)64 << CQES_LOG2;
    gpushmem_nic *nic = (gpushmem_nic *)on_gpu(sizeof *nic + PES * (sizeof *r.queue + 4));
    gpushmem_nic_queue q = {};
    char *heap = (char *)on_gpu(HEAP_BYTES), *records = (char *)place(4096),
         *cq = (char *)place(cq_bytes);
    static char none[(size_t)64 << CQES_LOG2];
    memset(none, 0xf0, sizeof none); // completions that are not there
    CHECK(cudaMemcpy(cq, none, cq_bytes, cudaMemcpyDefault));
    r.queue = gpushmem_nic_queues(nic) + PE;
    r.record = (uint32_t *)records;
    r.cqes = (uint64_t *)cq;
    r.doorbell = (uint64_t *)pinned(4096);
    q.sq = (uint64_t *)place((size_t)64 << ENTRIES_LOG2);
    q.doorbell = r.doorbell;
    q.sq_record = r.record;
    q.cq_record = (uint32_t *)(records + 128);
    q.cq = cq;
    q.failure = (uint64_t *)pinned(64);
    q.marks = (uint64_t *)on_gpu((size_t)8 << ENTRIES_LOG2);
    q.marks_log2 = ENTRIES_LOG2;
    q.heap_bytes = HEAP_BYTES;
    q.qpn = 77;
    q.cqe_bytes = 64;
    q.depth = 1u << ENTRIES_LOG2;
    q.most = 1u << 30;
    q.entries_log2 = ENTRIES_LOG2;
    q.cqes_log2 = CQES_LOG2;
    q.record_log2 = CQES_LOG2 - 2; // the library: half of what completions have to spare
    q.pe = PE;
    q.flags = near_fences ? GPUSHMEM_NIC_NEAR : 0;
    q.state = GPUSHMEM_NIC_UP;
    const uint32_t used = PE, n_used = 1;
    CHECK(cudaMemcpy(r.queue, &q, sizeof q, cudaMemcpyDefault));
    CHECK(cudaMemcpy(gpushmem_nic_used(nic, PES), &used, sizeof used, cudaMemcpyDefault));
    CHECK(cudaMemcpy(&nic->n_used, &n_used, sizeof n_used, cudaMemcpyDefault));
    r.dev.n_pes = PES;
    r.dev.heap = heap;
    r.dev.heap_bytes = HEAP_BYTES;
    r.dev.control = (gpushmem_device_control *)pinned(sizeof *r.dev.control);
    r.dev.nic = nic;
    r.dev.self = r.self = (gpushmem_dev *)on_gpu(sizeof *r.self);
    CHECK(cudaMemcpy(r.self, &r.dev, sizeof r.dev, cudaMemcpyDefault));
    CHECK(cudaMemcpy(&nic->dev, &r.self, sizeof r.self, cudaMemcpyDefault));
    return r;
}

// ---- Kernels ----

// The completion of all requests before `next`.
__host__ __device__ static uint64_t completion_of(uint16_t next, uint64_t number)
{
    const uint64_t counter = (uint16_t)(next - 1), swapped = (counter & 0xff) << 8 | counter >> 8;
    return swapped << 32 | (number >> CQES_LOG2 & 1) << 56;
}

// A NIC that takes no time: one completion for all that the record covers, until `total` requests
// are complete. It has written nothing before a completion, so that is a plain store: one that
// releases takes a fence of the system first.
__global__ void null_nic(uint32_t *record, uint64_t *cqes, uint64_t total)
{
    uint64_t done = 0;
    for (uint64_t produced = 0; done < total;) {
        const uint16_t next = (uint16_t)__byte_perm(*(volatile uint32_t *)record, 0, 0x0123);
        const uint16_t ahead = (uint16_t)(next - (uint16_t)done);
        if (!ahead)
            continue;
        done += ahead;
        gpsh_dev_store64_sys(cqes + (produced & ((1u << CQES_LOG2) - 1)) * 8 + 7,
                             completion_of(next, produced));
        produced++;
    }
}

// The same on the host's side of PCIe.
static void null_host_nic(const uint32_t *record, uint64_t *cqes, uint64_t total)
{
    uint64_t done = 0;
    for (uint64_t produced = 0; done < total;) {
        const uint16_t next =
                           (uint16_t)__builtin_bswap32(__atomic_load_n(record, __ATOMIC_ACQUIRE)),
                       ahead = (uint16_t)(next - (uint16_t)done);
        if (!ahead)
            continue;
        done += ahead;
        __atomic_store_n(cqes + (produced & ((1u << CQES_LOG2) - 1)) * 8 + 7,
                         completion_of(next, produced), __ATOMIC_RELEASE);
        produced++;
    }
}

// Cycles of each of n posts of one thread, and of a post and quiet.
__global__ void one(gpushmem_dev dev, uint64_t *word, int n, bool quiet, long long *cycles)
{
    const long long begin = clock64();
    for (int i = 0; i < n; i++) {
        gpsh_dev_nic_put_value(*dev.self, dev.nic, word, (uint64_t)i, 8, PE, false);
        if (quiet)
            gpsh_dev_nic_quiet(dev.nic, dev.n_pes);
    }
    *cycles = (clock64() - begin) / n;
}

// What it takes to write the requests alone.
__global__ void many(gpushmem_dev dev, uint64_t *words, int n)
{
    uint64_t *word = words + (blockIdx.x * blockDim.x + threadIdx.x) % 4096;
    for (int i = 0; i < n; i++)
        gpsh_dev_nic_put_value(*dev.self, dev.nic, word, (uint64_t)i, 8, PE, false);
    if (threadIdx.x == 0)
        gpsh_dev_nic_quiet(dev.nic, dev.n_pes);
}

// Every other thread's signal is an atomic, which needs no read behind it where rails are apart.
__global__ void signal_apart(gpushmem_dev dev, uint64_t *word, unsigned first)
{
    const int op = (threadIdx.x + first) & 1 ? GPUSHMEM_SIGNAL_ADD : GPUSHMEM_SIGNAL_SET;
    gpsh_dev_nic_put_signal(*dev.self, dev.nic, nullptr, nullptr, 0, word, 1, op, PE, false, false);
}

// ---- Floors: what a post is made of ----

enum floor_kind { LOAD, ADD, FENCE_GPU, FENCE_SYS, FENCE_SYS_HOST, BELL_GPU, BELL_SYS, FLOORS };
static const char *const floor_names[FLOORS] = {
    "load of a word in GPU memory",
    "atomic add with its result",
    "8 words to GPU memory, fence of the GPU",
    "8 words to GPU memory, fence of the system",
    "8 words to host memory, fence of the system",
    "words, fence of the GPU, record, fence of the GPU, doorbell",
    "words, fence of the system, record, fence of the system, doorbell"};

template <int KIND>
__device__ static void floor_step(uint64_t *near_words, uint64_t *far_words, int i)
{
    const uint64_t words[8] = {(uint64_t)i, 1, 2, 3, 4, 5, 6, 7};
    uint64_t *block = near_words + (i & 1023) * 8;
    if (KIND == LOAD || KIND == ADD)
        return;
    gpsh_dev_store_command(KIND == FENCE_SYS_HOST ? far_words + (i & 63) * 8 : block, words);
    KIND == FENCE_GPU || KIND == BELL_GPU ? gpsh_dev_fence_gpu() : gpsh_dev_fence_sys();
    if (KIND != BELL_GPU && KIND != BELL_SYS)
        return;
    gpsh_dev_store32_sys((uint32_t *)(near_words + 8192), (uint32_t)i);
    KIND == BELL_GPU ? gpsh_dev_fence_gpu() : gpsh_dev_fence_sys();
    gpsh_dev_store64_sys(far_words + 1024, (uint64_t)i);
}

template <int KIND>
__global__ void lay_floor(uint64_t *near_words, uint64_t *far_words, long long *cycles)
{
    uint64_t at = 0;
    const long long begin = clock64();
    for (int i = 0; i < ONE; i++) {
        if (KIND == LOAD) // each depends on the one before, and all of them are 0
            at += gpsh_dev_load64_relaxed_gpu(near_words + 16384 + at);
        else if (KIND == ADD)
            at += gpsh_dev_add64_relaxed_gpu(near_words + 16384 + at, 0);
        floor_step<KIND>(near_words, far_words, i);
    }
    *cycles = (clock64() - begin) / ONE + (long long)at;
}

template <int KIND>
static void tell_floor(uint64_t *near_words, uint64_t *far_words, long long *cycles)
{
    for (int i = 0; i < 2; i++)
        lay_floor<KIND><<<1, 1>>>(near_words, far_words, cycles);
    CHECK(cudaDeviceSynchronize());
    printf("  %-70s %6lld cycles\n", floor_names[KIND], *cycles);
}

// A record written and its completion seen, and nothing else: what the NIC of this program takes.
__global__ void answered(uint32_t *record, const uint64_t *cqes, int n, long long *cycles)
{
    const long long begin = clock64();
    for (int i = 0; i < n; i++) {
        gpsh_dev_store32_sys(record, gpsh_dev_big32((uint32_t)(i + 1) & 0xffff));
        while (gpsh_dev_load64_value_sys(cqes + (uint64_t)i * 8 + 7) >> 60)
            ;
    }
    *cycles = (clock64() - begin) / n;
}

// ---- Running ----

static cudaStream_t nic_stream, stream;
static long long *cycles; // pinned

// Seconds.
template <typename... Arguments>
static double run(const rig &r, uint64_t total, void (*kernel)(Arguments...), int blocks,
                  int threads, Arguments... arguments)
{
    cudaEvent_t begin, end;
    float ms = 0;
    CHECK(cudaEventCreate(&begin));
    CHECK(cudaEventCreate(&end));
    std::thread host_nic;
    if (r.near_gpu)
        null_nic<<<1, 1, 0, nic_stream>>>(r.record, r.cqes, total);
    else
        host_nic = std::thread(null_host_nic, r.record, r.cqes, total);
    CHECK(cudaEventRecord(begin, stream));
    kernel<<<blocks, threads, 0, stream>>>(arguments...);
    CHECK(cudaGetLastError());
    CHECK(cudaEventRecord(end, stream));
    CHECK(cudaDeviceSynchronize());
    if (host_nic.joinable())
        host_nic.join();
    CHECK(cudaEventElapsedTime(&ms, begin, end));
    return ms / 1000;
}

// Kernels may take room for their stacks the first time, which waits for those that run.
static void warm_up()
{
    rig r = rig_make(true, true);
    run(r, 0, one, 1, 1, r.dev, (uint64_t *)r.dev.heap, 0, true, cycles);
    run(r, 0, answered, 1, 1, r.record, (const uint64_t *)r.cqes, 0, cycles);
    run(r, 0, many, 64, 256, r.dev, (uint64_t *)r.dev.heap, 0);
    run(r, 0, many, 1, 1024, r.dev, (uint64_t *)r.dev.heap, 0);
}

// Each with queues of its own, since the NIC counts from 0.
static long long one_cycles(bool near_gpu, bool near_fences, bool quiet)
{
    rig r = rig_make(near_gpu, near_fences);
    run(r, ONE, one, 1, 1, r.dev, (uint64_t *)r.dev.heap, ONE, quiet, cycles);
    return *cycles;
}

static long long answer_cycles(bool near_gpu)
{
    rig r = rig_make(near_gpu, near_gpu);
    run(r, ONE, answered, 1, 1, r.record, (const uint64_t *)r.cqes, ONE, cycles);
    return *cycles;
}

static double many_rate(bool near_gpu, bool near_fences, int blocks, int threads, int n)
{
    rig r = rig_make(near_gpu, near_fences);
    const uint64_t total = (uint64_t)blocks * threads * n;
    return total / run(r, total, many, blocks, threads, r.dev, (uint64_t *)r.dev.heap, n) / 1e6;
}

static void tell(const char *where, bool near_gpu, bool near_fences, int n)
{
    one_cycles(near_gpu, near_fences, false);
    printf("%s\n  post of 8 B by a thread %30lld cycles\n", where,
           one_cycles(near_gpu, near_fences, false));
    printf("  post and quiet          %30lld cycles\n", one_cycles(near_gpu, near_fences, true));
    printf("  a record, and its completion seen %20lld cycles\n", answer_cycles(near_gpu));
    const struct {
        int blocks, threads;
    } shapes[] = {{1, 32}, {1, 128}, {1, 1024}, {32, 32}};
    for (auto s : shapes)
        printf("  %2d blocks of %4d threads %28.1f M/s\n", s.blocks, s.threads,
               many_rate(near_gpu, near_fences, s.blocks, s.threads, n));
    fflush(stdout);
}

// Threads of a warp write all that they have reserved, and nothing behind it.
static bool fill_their_places(unsigned first)
{
    rig r = rig_make(true, true);
    const uint32_t flags = GPUSHMEM_NIC_NEAR | GPUSHMEM_NIC_APART | GPUSHMEM_NIC_ATOMICS;
    static uint64_t wqes[128][8];
    unsigned written = 0;
    gpushmem_nic_queue q;
    CHECK(cudaMemcpy(&r.queue->flags, &flags, sizeof flags, cudaMemcpyDefault));
    signal_apart<<<1, 32, 0, stream>>>(r.dev, (uint64_t *)r.dev.heap, first);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(&q, r.queue, sizeof q, cudaMemcpyDefault));
    CHECK(cudaMemcpy(wqes, q.sq, sizeof wqes, cudaMemcpyDefault));
    for (auto &wqe : wqes)
        written += wqe[0] != 0;
    printf("signals of 32 threads, rails apart: %llu places, %llu told, %u written\n",
           (unsigned long long)q.head, (unsigned long long)q.ready, written);
    return q.head > 32 && q.ready == q.head && written == q.head;
}

int main()
{
    setenv("CUDA_MODULE_LOADING", "EAGER", 1); // no kernel is loaded while another one waits for it
    CHECK(cudaStreamCreateWithFlags(&nic_stream, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    cycles = (long long *)pinned(4096);
    warm_up();
    uint64_t *near_words = (uint64_t *)on_gpu(1 << 20), *far_words = (uint64_t *)pinned(1 << 16);
    printf("what a post is made of, one thread\n");
    tell_floor<LOAD>(near_words, far_words, cycles);
    tell_floor<ADD>(near_words, far_words, cycles);
    tell_floor<FENCE_GPU>(near_words, far_words, cycles);
    tell_floor<FENCE_SYS>(near_words, far_words, cycles);
    tell_floor<FENCE_SYS_HOST>(near_words, far_words, cycles);
    tell_floor<BELL_GPU>(near_words, far_words, cycles);
    tell_floor<BELL_SYS>(near_words, far_words, cycles);
    fflush(stdout);
    tell("queues in GPU memory, fences of the GPU", true, true, 500);
    tell("queues in GPU memory, fences of the system", true, false, 500);
    tell("queues in host memory", false, false, 100);
    const bool right = fill_their_places(0);
    return !(fill_their_places(1) && right);
}
