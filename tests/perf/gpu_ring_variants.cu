// SPDX-License-Identifier: BSD-3-Clause
// Why the command ring looks as it does: the variants that docs/adr/0003-command-ring.md chooses between, measured on one
// GPU. Rings in pinned host memory, the index in GPU memory, a lap bit in each word, every word read and unpacked on the
// host. Needs a GPU and nothing else: nvcc -O3 -std=c++17 -arch=sm_90 -Iinclude tests/perf/gpu_ring_variants.cu
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <pthread.h>
#include <thread>
#include <vector>

#include "cuda_check.cuh"
#include "gpushmem/device_abi.h"

enum Index { BY_THREAD, BY_WARP, BY_FOUR };            // atomicAdd per thread; one per warp; one per four pushes of a warp
enum Fence { NO_FENCE, GPU_FENCE, SYSTEM_FENCE, WARP_FENCE }; // WARP: GPU scope, by lane 0 behind __syncwarp
enum Store { BY_OWNER, TRANSPOSED };                   // each thread its command; or four lanes a command, 64 bytes in a row
enum Room { EVERYBODY, ELECTED };                      // who reads the consumed count of the host when the ring looks full
enum Wait { NO_WAIT, ALL_LANES, ONE_LANE, CACHED, REPLY };

static constexpr unsigned LOG2 = 12; // 4096 entries
static constexpr uint64_t ENTRIES = 1ull << LOG2;
static constexpr int MAX_SAMPLES = 1 << 14;

struct Status { // on lines of their own, as in gpushmem_ring_status
    uint64_t consumed, pad0[7], completed, pad1[7];
};

struct Ring {
    uint64_t *slots;           // host
    Status *status;            // host
    unsigned long long *head;  // device
    unsigned long long *seen;  // device: consumed
    unsigned long long *done;  // device: completed
    unsigned *poller, *waiter; // device: locks of the elected readers
};

struct Job {
    const Ring *rings;
    gpushmem_reply *replies; // host, one per thread
    uint64_t *samples;
    unsigned *n_samples;
    int n_rings;
    int pushes; // per thread
};

static __device__ __forceinline__ uint64_t load_host(const uint64_t *p)
{
    uint64_t v;
    asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
    return v;
}

static __device__ __forceinline__ unsigned long long load_gpu(const unsigned long long *p)
{
    unsigned long long v;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
    return v;
}

static __device__ __forceinline__ ulonglong2 load_pair(const gpushmem_reply *p)
{
    ulonglong2 v;
    asm volatile("ld.volatile.global.v2.u64 {%0, %1}, [%2];" : "=l"(v.x), "=l"(v.y) : "l"(p) : "memory");
    return v;
}

static __device__ __forceinline__ void store_pair(uint64_t *to, uint64_t a, uint64_t b)
{
    asm volatile("st.volatile.global.v2.u64 [%0], {%1, %2};" ::"l"(to), "l"(a), "l"(b) : "memory");
}

template <int DEPTH> static __device__ uint64_t poll_deep(const uint64_t *word, uint64_t least)
{
    uint64_t value[DEPTH];
#pragma unroll
    for (int i = 0; i < DEPTH; i++) {
        value[i] = load_host(word);
        if (DEPTH > 1 && i + 1 < DEPTH)
            __nanosleep(20);
    }
    for (;;) {
#pragma unroll
        for (int i = 0; i < DEPTH; i++) {
            if (value[i] >= least)
                return value[i];
            value[i] = load_host(word);
        }
    }
}

static __device__ void spin(int ns)
{
    for (long long begin = clock64(); clock64() - begin < ns * 2;) // about 2 GHz
        ;
}

// A host word read again and again. DEPTH > 1: with so many loads in flight, so that it is sampled DEPTH times per PCIe
// round trip. DEPTH <= 0: one load, the first one -DEPTH ns late, so that it does not pass the host's answer on its way.
template <int DEPTH> static __device__ uint64_t poll(const uint64_t *word, uint64_t least)
{
    if constexpr (DEPTH <= 0) {
        spin(-DEPTH);
        uint64_t now;
        do
            now = load_host(word);
        while (now < least);
        return now;
    } else {
        return poll_deep<DEPTH>(word, least);
    }
}

// A recent value of a count that the host writes: from its copy in GPU memory, or, if that is too old, from host memory, by
// one elected thread at a time that refreshes the copy for all.
static __device__ void await(const uint64_t *host, unsigned long long *copy, unsigned *lock, uint64_t least)
{
    while (load_gpu(copy) < least) {
        if (atomicExch(lock, 1u) == 0) {
            uint64_t now = load_host(host);
            atomicMax(copy, (unsigned long long)now);
            atomicExch(lock, 0u); // the lock only keeps others from asking too: no order is needed
            if (now >= least)
                return;
        } else {
            __nanosleep(100);
        }
    }
}

template <int ROOM> static __device__ void await_room(const Ring &ring, uint64_t last)
{
    if (last < ENTRIES)
        return;
    uint64_t least = last - ENTRIES + 1;
    if (load_gpu(ring.seen) >= least)
        return;
    if (ROOM == ELECTED) {
        await(&ring.status->consumed, ring.seen, ring.poller, least);
        return;
    }
    atomicMax(ring.seen, (unsigned long long)poll<0>(&ring.status->consumed, least));
}

template <int INDEX>
static __device__ uint64_t reserve(const Ring &ring, unsigned active, uint64_t &cached, int push)
{
    unsigned lane = threadIdx.x & 31;
    if (INDEX == BY_THREAD)
        return atomicAdd(ring.head, 1ull);
    unsigned rank = __popc(active & ((1u << lane) - 1)), n = __popc(active);
    int leader = __ffs(active) - 1;
    if (INDEX == BY_WARP) {
        unsigned long long base = 0;
        if (rank == 0)
            base = atomicAdd(ring.head, (unsigned long long)n);
        return __shfl_sync(active, base, leader) + rank;
    }
    if ((push & 3) == 0) {
        unsigned long long base = 0;
        if (rank == 0)
            base = atomicAdd(ring.head, 4ull * n);
        cached = __shfl_sync(active, base, leader);
    }
    return cached + (uint64_t)(push & 3) * n + rank;
}

template <int WORDS> static __device__ void pack(uint64_t *words, uint64_t index, uint64_t value, uint64_t reply)
{
    uint64_t lap = gpushmem_ring_lap(index, LOG2);
    if (WORDS == 8) {
        gpushmem_command c = {};
        c.opcode = GPUSHMEM_CMD_PUT;
        c.pe = (int32_t)(threadIdx.x & 1);
        c.local = 0x7f0000000000ull + value;
        c.remote = 0x7f1000000000ull + value;
        c.bytes = 8;
        c.operand = value;
        c.reply = reply;
        gpushmem_command_pack(&c, lap, words);
        return;
    }
    constexpr int others = WORDS == 8 ? 0 : WORDS;
#pragma unroll
    for (int i = 0; i < others; i++)
        words[i] = lap << GPUSHMEM_LAP_BIT | (value + i);
}

template <int WORDS, int STORE> static __device__ void write(const Ring &ring, uint64_t index, const uint64_t *words)
{
    if (STORE == BY_OWNER) {
        uint64_t *slot = ring.slots + (index & (ENTRIES - 1)) * WORDS;
#pragma unroll
        for (int i = 0; i < WORDS; i += 2)
            store_pair(slot + i, words[i], words[i + 1]);
        return;
    }
    // Full warps only: round k writes commands 8k .. 8k+7, lane l the quarter l % 4 of command 8k + l / 4.
    unsigned lane = threadIdx.x & 31;
#pragma unroll
    for (int k = 0; k < 4; k++) {
        int owner = 8 * k + (int)(lane >> 2), quarter = (int)(lane & 3);
        uint64_t a = 0, b = 0;
#pragma unroll
        for (int q = 0; q < 4; q++) {
            uint64_t x = __shfl_sync(~0u, words[2 * q], owner), y = __shfl_sync(~0u, words[2 * q + 1], owner);
            if (q == quarter)
                a = x, b = y;
        }
        uint64_t at = __shfl_sync(~0u, index, owner);
        store_pair(ring.slots + (at & (ENTRIES - 1)) * WORDS + 2 * quarter, a, b);
    }
}

template <int WAIT, int DEPTH>
static __device__ void await_completion(const Job &job, const Ring &ring, unsigned active, uint64_t index, uint32_t nonce)
{
    int last = 31 - __clz(active), lane = threadIdx.x & 31;
    if (WAIT == ALL_LANES)
        poll<DEPTH>(&ring.status->completed, index + 1);
    if (WAIT == ONE_LANE || WAIT == CACHED) {
        uint64_t least = __shfl_sync(active, index, last) + 1;
        if (lane == last && WAIT == ONE_LANE)
            poll<DEPTH>(&ring.status->completed, least);
        if (lane == last && WAIT == CACHED && DEPTH < 0)
            spin(-DEPTH);
        if (lane == last && WAIT == CACHED)
            await(&ring.status->completed, ring.done, ring.waiter, least);
        __syncwarp(active);
    }
    if (WAIT == REPLY) {
        const gpushmem_reply *mine = job.replies + (size_t)blockIdx.x * blockDim.x + threadIdx.x;
        ulonglong2 v;
        spin(-DEPTH);
        do
            v = load_pair(mine);
        while (!gpushmem_reply_ready({v.x, v.y}, nonce));
    }
}

template <int WORDS, int INDEX, int FENCE, int STORE, int ROOM, int WAIT, int DEPTH> __global__ void pushes(Job job)
{
    int thread = blockIdx.x * blockDim.x + threadIdx.x;
    const Ring ring = job.rings[(blockIdx.x * ((blockDim.x + 31) / 32) + threadIdx.x / 32) % job.n_rings];
    const unsigned active = __activemask(); // nobody leaves before the end
    uint64_t cached = 0;
    for (int push = 0; push < job.pushes; push++) {
        long long begin = clock64();
        if (FENCE == GPU_FENCE)
            __threadfence();
        if (FENCE == SYSTEM_FENCE)
            __threadfence_system();
        if (FENCE == WARP_FENCE) {
            __syncwarp(active);
            if ((threadIdx.x & 31) == 0)
                __threadfence();
            __syncwarp(active);
        }
        uint64_t index = reserve<INDEX>(ring, active, cached, push);
        uint64_t last = INDEX == BY_THREAD ? index : __shfl_sync(active, index, 31 - __clz(active));
        if (INDEX == BY_THREAD || (int)(threadIdx.x & 31) == __ffs(active) - 1)
            await_room<ROOM>(ring, last);
        __syncwarp(active); // side by side again, so that the stores of a warp coalesce
        uint64_t words[WORDS];
        uint32_t nonce = (uint32_t)push + 1;
        pack<WORDS>(words, index, (uint64_t)thread + 1, WAIT == REPLY ? (uint64_t)thread << 32 | nonce : 0);
        write<WORDS, STORE>(ring, index, words);
        if (WAIT == NO_WAIT)
            continue;
        await_completion<WAIT, DEPTH>(job, ring, active, index, nonce);
        if ((threadIdx.x & 31) == 0) {
            unsigned at = atomicAdd(job.n_samples, 1u);
            if (at < MAX_SAMPLES)
                job.samples[at] = (uint64_t)(clock64() - begin);
        }
    }
}

// The floor of every round trip: a flag written by the GPU, answered by the host.
template <int DEPTH> __global__ void echo(uint64_t *out, const uint64_t *in, uint64_t *samples, int n)
{
    for (int i = 1; i <= n; i++) {
        long long begin = clock64();
        asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(out), "l"((uint64_t)i) : "memory");
        poll<DEPTH>(in, (uint64_t)i);
        samples[i - 1] = (uint64_t)(clock64() - begin);
    }
}

__global__ void calibrate(uint64_t *cycles, uint64_t *ns)
{
    uint64_t from, to;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(from));
    long long begin = clock64();
    do
        asm volatile("mov.u64 %0, %globaltimer;" : "=l"(to));
    while (to - from < 20000000);
    *cycles = (uint64_t)(clock64() - begin);
    *ns = to - from;
}

__global__ void floors(uint64_t *out, const uint64_t *host, unsigned long long *device)
{
    long long begin = clock64();
    for (int i = 0; i < 100; i++)
        out[3] += load_host(host);
    out[0] = (uint64_t)(clock64() - begin);
    begin = clock64();
    unsigned long long at = 0;
    for (int i = 0; i < 100; i++)
        at += atomicAdd(device + (at & 0), 1ull);
    out[1] = (uint64_t)(clock64() - begin);
    out[3] += at;
    begin = clock64();
    for (int i = 0; i < 100; i++) {
        asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(device), "l"((uint64_t)i) : "memory");
        __threadfence();
    }
    out[2] = (uint64_t)(clock64() - begin);
}

// ---- Host -------------------------------------------------------------------------------------------------------

struct alignas(128) Consumer { // one proxy thread
    std::vector<Ring> rings;
    std::vector<uint64_t> parsed;
    gpushmem_reply *replies;
    uint64_t sum = 0, bad = 0;
    alignas(128) std::atomic<uint64_t> total{0};
};

static std::atomic<bool> stop;

template <int WORDS> static bool peek(const Ring &ring, uint64_t index, uint64_t *words)
{
    const uint64_t *slot = ring.slots + (index & (ENTRIES - 1)) * WORDS;
    uint64_t lap = gpushmem_ring_lap(index, LOG2), every = ~0ull, any = 0;
    words[0] = __atomic_load_n(&slot[0], __ATOMIC_ACQUIRE);
    if (words[0] >> 63 != lap)
        return false;
    for (int i = 1; i < WORDS; i++)
        words[i] = __atomic_load_n(&slot[i], __ATOMIC_RELAXED);
    for (int i = 0; i < WORDS; i++)
        every &= words[i], any |= words[i];
    return (lap ? every : ~any) >> 63;
}

template <int WORDS> static void consume(Consumer &self, const uint64_t *words)
{
    if (WORDS != 8) {
        self.sum += words[0] & ~(1ull << 63);
        return;
    }
    gpushmem_command c;
    gpushmem_command_unpack(words, &c);
    if (c.opcode < GPUSHMEM_CMD_NOP || c.opcode > GPUSHMEM_CMD_LAST || (unsigned)c.pe > 1 || c.bytes != 8 ||
        c.remote - 0x7f1000000000ull != c.operand)
        self.bad++;
    self.sum += c.operand;
    if (!c.reply)
        return;
    gpushmem_reply *reply = self.replies + (c.reply >> 32);
    __atomic_store_n(&reply->low, gpushmem_reply_pack((uint32_t)c.reply, false, 7), __ATOMIC_RELAXED);
    __atomic_store_n(&reply->high, gpushmem_reply_pack((uint32_t)c.reply, false, 0), __ATOMIC_RELAXED);
}

template <int WORDS> static void serve(Consumer *self, int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    pthread_setaffinity_np(pthread_self(), sizeof set, &set);
    uint64_t words[WORDS];
    while (!stop.load(std::memory_order_relaxed)) {
        for (size_t r = 0; r < self->rings.size(); r++) {
            const Ring &ring = self->rings[r];
            uint64_t at = self->parsed[r], begin = at;
            while (at - begin < 32 && peek<WORDS>(ring, at, words)) {
                consume<WORDS>(*self, words);
                at++;
            }
            if (at == begin)
                continue;
            self->parsed[r] = at;
            __atomic_store_n(&ring.status->consumed, at, __ATOMIC_RELEASE);
            __atomic_store_n(&ring.status->completed, at, __ATOMIC_RELEASE);
            self->total.store(self->total.load(std::memory_order_relaxed) + at - begin, std::memory_order_relaxed);
        }
    }
}

static double cycles_per_us;

static double quantile(std::vector<uint64_t> &v, double q)
{
    std::sort(v.begin(), v.end());
    return v.empty() ? 0 : (double)v[(size_t)(q * (double)(v.size() - 1))] / cycles_per_us;
}

struct Bench {
    std::vector<Ring> rings;
    Ring *device_rings;
    Job job;
    char *host, *device;
    size_t host_bytes, device_bytes;
};

static Bench make(int n_rings, int words, int threads, int pushes)
{
    Bench b;
    size_t slots = ENTRIES * 8 * (size_t)words, per_ring = slots + sizeof(Status);
    b.host_bytes = per_ring * (size_t)n_rings + (size_t)threads * sizeof(gpushmem_reply);
    b.device_bytes = (size_t)n_rings * 1024 + (size_t)n_rings * sizeof(Ring) + MAX_SAMPLES * 8 + 64;
    CHECK(cudaHostAlloc(&b.host, b.host_bytes, cudaHostAllocMapped | cudaHostAllocPortable));
    CHECK(cudaMalloc(&b.device, b.device_bytes));
    memset(b.host, 0, b.host_bytes);
    CHECK(cudaMemset(b.device, 0, b.device_bytes));
    for (int i = 0; i < n_rings; i++) {
        char *line = b.device + 1024 * (size_t)i, *at = b.host + per_ring * (size_t)i;
        b.rings.push_back({(uint64_t *)at, (Status *)(at + slots), (unsigned long long *)line,
                           (unsigned long long *)(line + 256), (unsigned long long *)(line + 512),
                           (unsigned *)(line + 768), (unsigned *)(line + 896)});
    }
    b.device_rings = (Ring *)(b.device + 1024 * (size_t)n_rings);
    CHECK(cudaMemcpy(b.device_rings, b.rings.data(), sizeof(Ring) * (size_t)n_rings, cudaMemcpyHostToDevice));
    char *rest = (char *)(b.device_rings + n_rings);
    b.job = {b.device_rings, (gpushmem_reply *)(b.host + per_ring * (size_t)n_rings), (uint64_t *)rest,
             (unsigned *)(rest + MAX_SAMPLES * 8), n_rings, pushes};
    return b;
}

// One line of the table: `pushes` commands per thread from blocks x threads into n_rings rings that n_hosts threads read.
template <int WORDS, int INDEX, int FENCE, int STORE, int ROOM, int WAIT = NO_WAIT, int DEPTH = 0>
static void measure(const char *name, int blocks, int threads, int n_rings, int n_hosts, int n_pushes)
{
    Bench b = make(n_rings, WORDS, blocks * threads, n_pushes);
    std::vector<Consumer> consumers((size_t)n_hosts);
    for (int i = 0; i < n_rings; i++) {
        consumers[(size_t)(i % n_hosts)].rings.push_back(b.rings[(size_t)i]);
        consumers[(size_t)(i % n_hosts)].parsed.push_back(0);
    }
    stop = false;
    std::vector<std::thread> hosts;
    for (int i = 0; i < n_hosts; i++) {
        consumers[(size_t)i].replies = b.job.replies;
        hosts.emplace_back(serve<WORDS>, &consumers[(size_t)i], 2 * (i + 1));
    }
    uint64_t expected = (uint64_t)blocks * (uint64_t)threads * (uint64_t)n_pushes;
    auto begin = std::chrono::steady_clock::now();
    pushes<WORDS, INDEX, FENCE, STORE, ROOM, WAIT, DEPTH><<<blocks, threads>>>(b.job);
    CHECK(cudaGetLastError());
    double seconds = 0;
    uint64_t total = 0;
    while (total < expected && seconds < 5) {
        std::this_thread::sleep_for(std::chrono::microseconds(20));
        total = 0;
        for (Consumer &c : consumers)
            total += c.total.load(std::memory_order_relaxed);
        seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    }
    if (total < expected) {
        printf("%-44s %3d x %4d  rings %2d  hosts %d  stuck at %llu of %llu\n", name, blocks, threads, n_rings, n_hosts,
               (unsigned long long)total, (unsigned long long)expected);
        exit(1);
    }
    CHECK(cudaDeviceSynchronize());
    stop = true;
    uint64_t sum = 0, bad = 0;
    for (int i = 0; i < n_hosts; i++) {
        hosts[(size_t)i].join();
        sum += consumers[(size_t)i].sum;
        bad += consumers[(size_t)i].bad;
    }
    uint64_t n = (uint64_t)blocks * (uint64_t)threads, want = n * (n + 1) / 2 * (uint64_t)n_pushes;
    printf("%-44s %3d x %4d  rings %2d  hosts %d  %8.2f M/s", name, blocks, threads, n_rings, n_hosts,
           (double)expected / seconds / 1e6);
    if (WAIT != NO_WAIT) {
        unsigned got = 0;
        CHECK(cudaMemcpy(&got, b.job.n_samples, sizeof got, cudaMemcpyDeviceToHost));
        std::vector<uint64_t> samples(std::min<unsigned>(got, MAX_SAMPLES));
        CHECK(cudaMemcpy(samples.data(), b.job.samples, samples.size() * 8, cudaMemcpyDeviceToHost));
        printf("  p50 %6.2f us  min %5.2f  p99 %6.2f", quantile(samples, 0.5), quantile(samples, 0), quantile(samples, 0.99));
    }
    printf("%s\n", sum == want && !bad ? "" : "  WRONG DATA");
    fflush(stdout);
    CHECK(cudaFree(b.device));
    CHECK(cudaFreeHost(b.host));
}

template <int DEPTH> static void measure_echo(const char *name)
{
    const int n = 4000;
    uint64_t *flags, *samples;
    CHECK(cudaHostAlloc(&flags, 512, cudaHostAllocMapped));
    CHECK(cudaMalloc(&samples, n * 8));
    memset(flags, 0, 512);
    std::atomic<bool> ready{false};
    std::thread host([&] {
        ready = true;
        for (uint64_t i = 1; i <= n; i++) {
            while (__atomic_load_n(&flags[0], __ATOMIC_ACQUIRE) < i)
                ;
            __atomic_store_n(&flags[32], i, __ATOMIC_RELEASE);
        }
    });
    while (!ready)
        ;
    echo<DEPTH><<<1, 1>>>(flags, flags + 32, samples, n);
    CHECK(cudaDeviceSynchronize());
    host.join();
    std::vector<uint64_t> v(n);
    CHECK(cudaMemcpy(v.data(), samples, n * 8, cudaMemcpyDeviceToHost));
    printf("%-44s p50 %6.2f us  min %5.2f  p99 %6.2f\n", name, quantile(v, 0.5), quantile(v, 0), quantile(v, 0.99));
    CHECK(cudaFree(samples));
    CHECK(cudaFreeHost(flags));
}

static void measure_floors()
{
    uint64_t *out, host[4];
    CHECK(cudaMalloc(&out, 4096));
    CHECK(cudaMemset(out, 0, 4096));
    calibrate<<<1, 1>>>(out, out + 1);
    CHECK(cudaMemcpy(host, out, 16, cudaMemcpyDeviceToHost));
    cycles_per_us = (double)host[0] / ((double)host[1] / 1e3);
    uint64_t *pinned;
    CHECK(cudaHostAlloc(&pinned, 64, cudaHostAllocMapped));
    *pinned = 1;
    floors<<<1, 1>>>(out, pinned, (unsigned long long *)out + 256);
    CHECK(cudaMemcpy(host, out, 32, cudaMemcpyDeviceToHost));
    printf("clock %.0f MHz; load from host memory %.3f us; atomicAdd in GPU memory %.3f us; store + GPU fence %.3f us\n",
           cycles_per_us, (double)host[0] / 100 / cycles_per_us, (double)host[1] / 100 / cycles_per_us,
           (double)host[2] / 100 / cycles_per_us);
    CHECK(cudaFreeHost(pinned));
    CHECK(cudaFree(out));
}

int main()
{
    setenv("CUDA_MODULE_LOADING", "EAGER", 1); // no kernel is loaded inside a measurement
    cudaDeviceProp properties;
    CHECK(cudaGetDeviceProperties(&properties, 0));
    printf("%s, %d multiprocessors\n", properties.name, properties.multiProcessorCount);
    measure_floors();
    measure_echo<0>("bare flag, one load in flight");
    measure_echo<-100>("bare flag, first load 100 ns late");
    measure_echo<-200>("bare flag, first load 200 ns late");
    measure_echo<-300>("bare flag, first load 300 ns late");
    measure_echo<-500>("bare flag, first load 500 ns late");
    measure_echo<2>("bare flag, 2 loads in flight");
    measure_echo<4>("bare flag, 4 loads in flight");

    printf("\none thread, push and wait\n");
    measure<8, BY_THREAD, NO_FENCE, BY_OWNER, ELECTED, ALL_LANES>("no fence, counter", 1, 1, 1, 1, 8000);
    measure<8, BY_THREAD, NO_FENCE, BY_OWNER, ELECTED, ALL_LANES, -100>("no fence, counter, first load 100 ns late", 1, 1, 1, 1, 8000);
    measure<8, BY_THREAD, NO_FENCE, BY_OWNER, ELECTED, ALL_LANES, -200>("no fence, counter, first load 200 ns late", 1, 1, 1, 1, 8000);
    measure<8, BY_THREAD, NO_FENCE, BY_OWNER, ELECTED, ALL_LANES, -300>("no fence, counter, first load 300 ns late", 1, 1, 1, 1, 8000);
    measure<8, BY_THREAD, NO_FENCE, BY_OWNER, ELECTED, ALL_LANES, -400>("no fence, counter, first load 400 ns late", 1, 1, 1, 1, 8000);
    measure<8, BY_THREAD, NO_FENCE, BY_OWNER, ELECTED, ALL_LANES, -600>("no fence, counter, first load 600 ns late", 1, 1, 1, 1, 8000);
    measure<8, BY_THREAD, NO_FENCE, BY_OWNER, ELECTED, ALL_LANES, -800>("no fence, counter, first load 800 ns late", 1, 1, 1, 1, 8000);
    measure<8, BY_THREAD, NO_FENCE, BY_OWNER, ELECTED, ALL_LANES, 2>("no fence, counter, 2 loads in flight", 1, 1, 1, 1, 8000);
    measure<8, BY_THREAD, NO_FENCE, BY_OWNER, ELECTED, ALL_LANES, 4>("no fence, counter, 4 loads in flight", 1, 1, 1, 1, 8000);
    measure<8, BY_FOUR, NO_FENCE, BY_OWNER, ELECTED, ALL_LANES, -300>("index four at a time, first load 300 ns late", 1, 1, 1, 1, 8000);
    measure<8, BY_THREAD, GPU_FENCE, BY_OWNER, ELECTED, ALL_LANES>("gpu fence, counter", 1, 1, 1, 1, 8000);
    measure<8, BY_THREAD, GPU_FENCE, BY_OWNER, ELECTED, ALL_LANES, -300>("gpu fence, counter, first load 300 ns late", 1, 1, 1, 1, 8000);
    measure<8, BY_THREAD, SYSTEM_FENCE, BY_OWNER, ELECTED, ALL_LANES, -300>("system fence, counter, first load 300 ns late", 1, 1, 1, 1, 8000);
    measure<8, BY_THREAD, NO_FENCE, BY_OWNER, ELECTED, CACHED>("no fence, counter cached in GPU memory", 1, 1, 1, 1, 8000);
    measure<8, BY_THREAD, NO_FENCE, BY_OWNER, ELECTED, REPLY>("no fence, reply slot", 1, 1, 1, 1, 8000);
    measure<8, BY_THREAD, NO_FENCE, BY_OWNER, ELECTED, REPLY, -300>("no fence, reply slot, first load 300 ns late", 1, 1, 1, 1, 8000);
    measure<8, BY_THREAD, NO_FENCE, BY_OWNER, ELECTED, CACHED, -300>("no fence, cached counter, first load 300 ns late", 1, 1, 1, 1, 8000);
    measure<4, BY_THREAD, NO_FENCE, BY_OWNER, ELECTED, ALL_LANES>("32-byte command, no fence", 1, 1, 1, 1, 8000);
    measure<16, BY_THREAD, NO_FENCE, BY_OWNER, ELECTED, ALL_LANES>("128-byte command, no fence", 1, 1, 1, 1, 8000);

    printf("\npush without waiting\n");
    measure<8, BY_THREAD, NO_FENCE, BY_OWNER, ELECTED>("one thread, no fence", 1, 1, 1, 1, 100000);
    measure<8, BY_THREAD, GPU_FENCE, BY_OWNER, ELECTED>("one thread, gpu fence", 1, 1, 1, 1, 100000);
    measure<8, BY_THREAD, SYSTEM_FENCE, BY_OWNER, ELECTED>("one thread, system fence", 1, 1, 1, 1, 100000);
    measure<8, BY_FOUR, NO_FENCE, BY_OWNER, ELECTED>("one thread, no fence, four at a time", 1, 1, 1, 1, 100000);
    for (int warm = 0; warm < 2; warm++) {
        measure<8, BY_THREAD, NO_FENCE, BY_OWNER, ELECTED>("4 warps, 4 rings: thread index, no fence", 4, 32, 4, 4, 100000);
        measure<8, BY_WARP, NO_FENCE, BY_OWNER, ELECTED>("4 warps, 4 rings: warp index, no fence", 4, 32, 4, 4, 100000);
        measure<8, BY_FOUR, NO_FENCE, BY_OWNER, ELECTED>("4 warps, 4 rings: four at a time, no fence", 4, 32, 4, 4, 100000);
        measure<8, BY_WARP, NO_FENCE, TRANSPOSED, ELECTED>("4 warps, 4 rings: transposed, no fence", 4, 32, 4, 4, 100000);
        measure<8, BY_THREAD, GPU_FENCE, BY_OWNER, ELECTED>("4 warps, 4 rings: thread index, gpu fence", 4, 32, 4, 4, 100000);
        measure<8, BY_WARP, WARP_FENCE, BY_OWNER, ELECTED>("4 warps, 4 rings: warp index, lane 0 fence", 4, 32, 4, 4, 100000);
        measure<8, BY_FOUR, WARP_FENCE, BY_OWNER, ELECTED>("4 warps, 4 rings: four, lane 0 fence", 4, 32, 4, 4, 100000);
    }
    measure<8, BY_THREAD, SYSTEM_FENCE, BY_OWNER, ELECTED>("4 warps, 4 rings: thread index, system fence", 4, 32, 4, 4, 30000);
    measure<4, BY_THREAD, NO_FENCE, BY_OWNER, ELECTED>("4 warps, 4 rings: 32-byte commands", 4, 32, 4, 4, 100000);
    measure<16, BY_THREAD, NO_FENCE, BY_OWNER, ELECTED>("4 warps, 4 rings: 128-byte commands", 4, 32, 4, 4, 100000);
    measure<8, BY_THREAD, NO_FENCE, BY_OWNER, ELECTED>("32 warps, one ring: thread index, no fence", 32, 32, 1, 1, 10000);
    measure<8, BY_WARP, NO_FENCE, BY_OWNER, ELECTED>("32 warps, one ring: warp index, no fence", 32, 32, 1, 1, 10000);
    measure<8, BY_WARP, NO_FENCE, TRANSPOSED, ELECTED>("32 warps, one ring: transposed, no fence", 32, 32, 1, 1, 10000);
    measure<8, BY_WARP, WARP_FENCE, BY_OWNER, ELECTED>("32 warps, one ring: warp index, lane 0 fence", 32, 32, 1, 1, 10000);
    measure<8, BY_WARP, NO_FENCE, BY_OWNER, EVERYBODY>("32 warps, one ring: everybody asks for room", 32, 32, 1, 1, 10000);
    measure<4, BY_WARP, NO_FENCE, BY_OWNER, ELECTED>("32 warps, one ring: 32-byte commands", 32, 32, 1, 1, 10000);
    measure<16, BY_WARP, NO_FENCE, BY_OWNER, ELECTED>("32 warps, one ring: 128-byte commands", 32, 32, 1, 1, 10000);
    for (int rings = 4; rings <= 32; rings *= 2) {
        measure<8, BY_WARP, NO_FENCE, BY_OWNER, ELECTED>("32 warps: warp index, no fence", 32, 32, rings, 4, 40000);
        measure<8, BY_WARP, WARP_FENCE, BY_OWNER, ELECTED>("32 warps: warp index, lane 0 fence", 32, 32, rings, 4, 40000);
    }
    measure<8, BY_THREAD, GPU_FENCE, BY_OWNER, ELECTED>("32 warps: thread index, gpu fence", 32, 32, 32, 4, 40000);
    measure<8, BY_WARP, NO_FENCE, TRANSPOSED, ELECTED>("32 warps: transposed, no fence", 32, 32, 32, 4, 40000);
    for (int threads = 128; threads <= 1024; threads *= 2) {
        measure<8, BY_WARP, NO_FENCE, BY_OWNER, ELECTED>("no fence, one asks for room", 132, threads, 32, 4, 200);
        measure<8, BY_WARP, NO_FENCE, BY_OWNER, EVERYBODY>("no fence, everybody asks for room", 132, threads, 32, 4, 200);
        measure<8, BY_WARP, WARP_FENCE, BY_OWNER, ELECTED>("lane 0 fence, one asks for room", 132, threads, 32, 4, 200);
        measure<8, BY_THREAD, GPU_FENCE, BY_OWNER, ELECTED>("thread index, gpu fence, one asks", 132, threads, 32, 4, 200);
    }
    measure<8, BY_WARP, NO_FENCE, TRANSPOSED, ELECTED>("no fence, transposed", 132, 1024, 32, 4, 200);
    measure<8, BY_WARP, WARP_FENCE, TRANSPOSED, ELECTED>("lane 0 fence, transposed", 132, 256, 32, 4, 200);
    measure<8, BY_WARP, NO_FENCE, BY_OWNER, ELECTED>("no fence, one host thread", 132, 1024, 32, 1, 200);
    measure<8, BY_WARP, NO_FENCE, BY_OWNER, ELECTED>("no fence, 8 rings", 132, 1024, 8, 4, 200);
    measure<8, BY_WARP, NO_FENCE, BY_OWNER, ELECTED>("no fence, 4 rings, one host thread", 132, 1024, 4, 1, 200);

    printf("\npush and wait, many waiters\n");
    const int shape[][4] = {{1, 32, 1, 1}, {32, 32, 1, 1}, {32, 32, 8, 4}, {132, 256, 8, 4}, {132, 1024, 32, 4}};
    for (auto &s : shape) {
        int n = s[1] == 1024 ? 50 : 1000;
        measure<8, BY_WARP, NO_FENCE, BY_OWNER, ELECTED, ALL_LANES>("counter, all lanes", s[0], s[1], s[2], s[3], n);
        measure<8, BY_WARP, NO_FENCE, BY_OWNER, ELECTED, ONE_LANE>("counter, one lane", s[0], s[1], s[2], s[3], n);
        measure<8, BY_WARP, NO_FENCE, BY_OWNER, ELECTED, ONE_LANE, -300>("counter, one lane, first load late", s[0], s[1], s[2], s[3], n);
        measure<8, BY_WARP, NO_FENCE, BY_OWNER, ELECTED, CACHED>("counter cached in GPU memory", s[0], s[1], s[2], s[3], n);
        measure<8, BY_WARP, NO_FENCE, BY_OWNER, ELECTED, REPLY>("reply slot each", s[0], s[1], s[2], s[3], n);
    }
    return 0;
}
