// SPDX-License-Identifier: BSD-3-Clause
// Why the command ring looks as it does: the variants that docs/adr/0003-command-ring.md chooses
// between, measured on one GPU. Rings in pinned host memory, the index in GPU memory, a lap bit in
// each word, every word read and unpacked on the host. Needs a GPU and nothing else: nvcc -O3
// -std=c++17 -arch=sm_90 -Iinclude tests/perf/gpu_ring_variants.cu
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
#include "gpu_ring_variants.cuh"

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
    if (c.opcode < GPUSHMEM_CMD_NOP || c.opcode > GPUSHMEM_CMD_LAST || (unsigned)c.pe > 1 ||
        c.bytes != 8 || c.remote - 0x7f1000000000ull != c.operand)
        self.bad++;
    self.sum += c.operand;
    if (!c.reply)
        return;
    gpushmem_reply *reply = self.replies + (c.reply >> 32);
    __atomic_store_n(&reply->low, gpushmem_reply_pack((uint32_t)c.reply, false, 7),
                     __ATOMIC_RELAXED);
    __atomic_store_n(&reply->high, gpushmem_reply_pack((uint32_t)c.reply, false, 0),
                     __ATOMIC_RELAXED);
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
            self->total.store(self->total.load(std::memory_order_relaxed) + at - begin,
                              std::memory_order_relaxed);
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
    CHECK(cudaMemcpy(b.device_rings, b.rings.data(), sizeof(Ring) * (size_t)n_rings,
                     cudaMemcpyHostToDevice));
    char *rest = (char *)(b.device_rings + n_rings);
    b.job = {b.device_rings,   (gpushmem_reply *)(b.host + per_ring * (size_t)n_rings),
             (uint64_t *)rest, (unsigned *)(rest + MAX_SAMPLES * 8),
             n_rings,          pushes};
    return b;
}

// One line of the table: `pushes` commands per thread from blocks x threads into n_rings rings that
// n_hosts threads read.
template <int WORDS, int INDEX, int FENCE, int STORE, int ROOM, int WAIT = NO_WAIT, int DEPTH = 0>
static void measure(const char *name, int blocks, int threads, int n_rings, int n_hosts,
                    int n_pushes)
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
        printf("%-44s %3d x %4d  rings %2d  hosts %d  stuck at %llu of %llu\n", name, blocks,
               threads, n_rings, n_hosts, (unsigned long long)total, (unsigned long long)expected);
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
    printf("%-44s %3d x %4d  rings %2d  hosts %d  %8.2f M/s", name, blocks, threads, n_rings,
           n_hosts, (double)expected / seconds / 1e6);
    if (WAIT != NO_WAIT) {
        unsigned got = 0;
        CHECK(cudaMemcpy(&got, b.job.n_samples, sizeof got, cudaMemcpyDeviceToHost));
        std::vector<uint64_t> samples(std::min<unsigned>(got, MAX_SAMPLES));
        CHECK(
            cudaMemcpy(samples.data(), b.job.samples, samples.size() * 8, cudaMemcpyDeviceToHost));
        printf("  p50 %6.2f us  min %5.2f  p99 %6.2f", quantile(samples, 0.5), quantile(samples, 0),
               quantile(samples, 0.99));
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
    printf("%-44s p50 %6.2f us  min %5.2f  p99 %6.2f\n", name, quantile(v, 0.5), quantile(v, 0),
           quantile(v, 0.99));
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
    printf("clock %.0f MHz; load from host memory %.3f us; atomicAdd in GPU memory %.3f us; store "
           "+ GPU fence %.3f us\n",
           cycles_per_us, (double)host[0] / 100 / cycles_per_us,
           (double)host[1] / 100 / cycles_per_us, (double)host[2] / 100 / cycles_per_us);
    CHECK(cudaFreeHost(pinned));
    CHECK(cudaFree(out));
}

static void measure_echoes()
{
    measure_echo<0>("bare flag, one load in flight");
    measure_echo<-100>("bare flag, first load 100 ns late");
    measure_echo<-200>("bare flag, first load 200 ns late");
    measure_echo<-300>("bare flag, first load 300 ns late");
    measure_echo<-500>("bare flag, first load 500 ns late");
    measure_echo<2>("bare flag, 2 loads in flight");
    measure_echo<4>("bare flag, 4 loads in flight");
}

// One thread pushes a command and waits for it.
template <int WORDS, int INDEX, int FENCE, int WAIT, int DEPTH = 0>
static void trip(const char *name)
{
    measure<WORDS, INDEX, FENCE, BY_OWNER, ELECTED, WAIT, DEPTH>(name, 1, 1, 1, 1, 8000);
}

static void measure_trips()
{
    printf("\none thread, push and wait\n");
    trip<8, BY_THREAD, NO_FENCE, ALL_LANES>("no fence, counter");
    trip<8, BY_THREAD, NO_FENCE, ALL_LANES, -100>("no fence, counter, first load 100 ns late");
    trip<8, BY_THREAD, NO_FENCE, ALL_LANES, -200>("no fence, counter, first load 200 ns late");
    trip<8, BY_THREAD, NO_FENCE, ALL_LANES, -300>("no fence, counter, first load 300 ns late");
    trip<8, BY_THREAD, NO_FENCE, ALL_LANES, -400>("no fence, counter, first load 400 ns late");
    trip<8, BY_THREAD, NO_FENCE, ALL_LANES, -600>("no fence, counter, first load 600 ns late");
    trip<8, BY_THREAD, NO_FENCE, ALL_LANES, -800>("no fence, counter, first load 800 ns late");
    trip<8, BY_THREAD, NO_FENCE, ALL_LANES, 2>("no fence, counter, 2 loads in flight");
    trip<8, BY_THREAD, NO_FENCE, ALL_LANES, 4>("no fence, counter, 4 loads in flight");
    trip<8, BY_FOUR, NO_FENCE, ALL_LANES, -300>("index four at a time, first load 300 ns late");
    trip<8, BY_THREAD, GPU_FENCE, ALL_LANES>("gpu fence, counter");
    trip<8, BY_THREAD, GPU_FENCE, ALL_LANES, -300>("gpu fence, counter, first load 300 ns late");
    trip<8, BY_THREAD, SYSTEM_FENCE, ALL_LANES, -300>(
        "system fence, counter, first load 300 ns late");
    trip<8, BY_THREAD, NO_FENCE, CACHED>("no fence, counter cached in GPU memory");
    trip<8, BY_THREAD, NO_FENCE, REPLY>("no fence, reply slot");
    trip<8, BY_THREAD, NO_FENCE, REPLY, -300>("no fence, reply slot, first load 300 ns late");
    trip<8, BY_THREAD, NO_FENCE, CACHED, -300>("no fence, cached counter, first load 300 ns late");
    trip<4, BY_THREAD, NO_FENCE, ALL_LANES>("32-byte command, no fence");
    trip<16, BY_THREAD, NO_FENCE, ALL_LANES>("128-byte command, no fence");
}

static void measure_few_pushers()
{
    printf("\npush without waiting\n");
    measure<8, BY_THREAD, NO_FENCE, BY_OWNER, ELECTED>("one thread, no fence", 1, 1, 1, 1, 100000);
    measure<8, BY_THREAD, GPU_FENCE, BY_OWNER, ELECTED>("one thread, gpu fence", 1, 1, 1, 1,
                                                        100000);
    measure<8, BY_THREAD, SYSTEM_FENCE, BY_OWNER, ELECTED>("one thread, system fence", 1, 1, 1, 1,
                                                           100000);
    measure<8, BY_FOUR, NO_FENCE, BY_OWNER, ELECTED>("one thread, no fence, four at a time", 1, 1,
                                                     1, 1, 100000);
    for (int warm = 0; warm < 2; warm++) {
        measure<8, BY_THREAD, NO_FENCE, BY_OWNER, ELECTED>(
            "4 warps, 4 rings: thread index, no fence", 4, 32, 4, 4, 100000);
        measure<8, BY_WARP, NO_FENCE, BY_OWNER, ELECTED>("4 warps, 4 rings: warp index, no fence",
                                                         4, 32, 4, 4, 100000);
        measure<8, BY_FOUR, NO_FENCE, BY_OWNER, ELECTED>(
            "4 warps, 4 rings: four at a time, no fence", 4, 32, 4, 4, 100000);
        measure<8, BY_WARP, NO_FENCE, TRANSPOSED, ELECTED>("4 warps, 4 rings: transposed, no fence",
                                                           4, 32, 4, 4, 100000);
        measure<8, BY_THREAD, GPU_FENCE, BY_OWNER, ELECTED>(
            "4 warps, 4 rings: thread index, gpu fence", 4, 32, 4, 4, 100000);
        measure<8, BY_WARP, WARP_FENCE, BY_OWNER, ELECTED>(
            "4 warps, 4 rings: warp index, lane 0 fence", 4, 32, 4, 4, 100000);
        measure<8, BY_FOUR, WARP_FENCE, BY_OWNER, ELECTED>("4 warps, 4 rings: four, lane 0 fence",
                                                           4, 32, 4, 4, 100000);
    }
    measure<8, BY_THREAD, SYSTEM_FENCE, BY_OWNER, ELECTED>(
        "4 warps, 4 rings: thread index, system fence", 4, 32, 4, 4, 30000);
    measure<4, BY_THREAD, NO_FENCE, BY_OWNER, ELECTED>("4 warps, 4 rings: 32-byte commands", 4, 32,
                                                       4, 4, 100000);
    measure<16, BY_THREAD, NO_FENCE, BY_OWNER, ELECTED>("4 warps, 4 rings: 128-byte commands", 4,
                                                        32, 4, 4, 100000);
}

static void measure_32_warps()
{
    measure<8, BY_THREAD, NO_FENCE, BY_OWNER, ELECTED>("32 warps, one ring: thread index, no fence",
                                                       32, 32, 1, 1, 10000);
    measure<8, BY_WARP, NO_FENCE, BY_OWNER, ELECTED>("32 warps, one ring: warp index, no fence", 32,
                                                     32, 1, 1, 10000);
    measure<8, BY_WARP, NO_FENCE, TRANSPOSED, ELECTED>("32 warps, one ring: transposed, no fence",
                                                       32, 32, 1, 1, 10000);
    measure<8, BY_WARP, WARP_FENCE, BY_OWNER, ELECTED>(
        "32 warps, one ring: warp index, lane 0 fence", 32, 32, 1, 1, 10000);
    measure<8, BY_WARP, NO_FENCE, BY_OWNER, EVERYBODY>(
        "32 warps, one ring: everybody asks for room", 32, 32, 1, 1, 10000);
    measure<4, BY_WARP, NO_FENCE, BY_OWNER, ELECTED>("32 warps, one ring: 32-byte commands", 32, 32,
                                                     1, 1, 10000);
    measure<16, BY_WARP, NO_FENCE, BY_OWNER, ELECTED>("32 warps, one ring: 128-byte commands", 32,
                                                      32, 1, 1, 10000);
    for (int rings = 4; rings <= 32; rings *= 2) {
        measure<8, BY_WARP, NO_FENCE, BY_OWNER, ELECTED>("32 warps: warp index, no fence", 32, 32,
                                                         rings, 4, 40000);
        measure<8, BY_WARP, WARP_FENCE, BY_OWNER, ELECTED>("32 warps: warp index, lane 0 fence", 32,
                                                           32, rings, 4, 40000);
    }
    measure<8, BY_THREAD, GPU_FENCE, BY_OWNER, ELECTED>("32 warps: thread index, gpu fence", 32, 32,
                                                        32, 4, 40000);
    measure<8, BY_WARP, NO_FENCE, TRANSPOSED, ELECTED>("32 warps: transposed, no fence", 32, 32, 32,
                                                       4, 40000);
}

static void measure_full_gpu()
{
    for (int threads = 128; threads <= 1024; threads *= 2) {
        measure<8, BY_WARP, NO_FENCE, BY_OWNER, ELECTED>("no fence, one asks for room", 132,
                                                         threads, 32, 4, 200);
        measure<8, BY_WARP, NO_FENCE, BY_OWNER, EVERYBODY>("no fence, everybody asks for room", 132,
                                                           threads, 32, 4, 200);
        measure<8, BY_WARP, WARP_FENCE, BY_OWNER, ELECTED>("lane 0 fence, one asks for room", 132,
                                                           threads, 32, 4, 200);
        measure<8, BY_THREAD, GPU_FENCE, BY_OWNER, ELECTED>("thread index, gpu fence, one asks",
                                                            132, threads, 32, 4, 200);
    }
    measure<8, BY_WARP, NO_FENCE, TRANSPOSED, ELECTED>("no fence, transposed", 132, 1024, 32, 4,
                                                       200);
    measure<8, BY_WARP, WARP_FENCE, TRANSPOSED, ELECTED>("lane 0 fence, transposed", 132, 256, 32,
                                                         4, 200);
    measure<8, BY_WARP, NO_FENCE, BY_OWNER, ELECTED>("no fence, one host thread", 132, 1024, 32, 1,
                                                     200);
    measure<8, BY_WARP, NO_FENCE, BY_OWNER, ELECTED>("no fence, 8 rings", 132, 1024, 8, 4, 200);
    measure<8, BY_WARP, NO_FENCE, BY_OWNER, ELECTED>("no fence, 4 rings, one host thread", 132,
                                                     1024, 4, 1, 200);
}

static void measure_many_waiters()
{
    printf("\npush and wait, many waiters\n");
    const int shape[][4] = {
        {1, 32, 1, 1}, {32, 32, 1, 1}, {32, 32, 8, 4}, {132, 256, 8, 4}, {132, 1024, 32, 4}};
    for (auto &s : shape) {
        int n = s[1] == 1024 ? 50 : 1000;
        measure<8, BY_WARP, NO_FENCE, BY_OWNER, ELECTED, ALL_LANES>("counter, all lanes", s[0],
                                                                    s[1], s[2], s[3], n);
        measure<8, BY_WARP, NO_FENCE, BY_OWNER, ELECTED, ONE_LANE>("counter, one lane", s[0], s[1],
                                                                   s[2], s[3], n);
        measure<8, BY_WARP, NO_FENCE, BY_OWNER, ELECTED, ONE_LANE, -300>(
            "counter, one lane, first load late", s[0], s[1], s[2], s[3], n);
        measure<8, BY_WARP, NO_FENCE, BY_OWNER, ELECTED, CACHED>("counter cached in GPU memory",
                                                                 s[0], s[1], s[2], s[3], n);
        measure<8, BY_WARP, NO_FENCE, BY_OWNER, ELECTED, REPLY>("reply slot each", s[0], s[1], s[2],
                                                                s[3], n);
    }
}

int main()
{
    setenv("CUDA_MODULE_LOADING", "EAGER", 1); // no kernel is loaded inside a measurement
    cudaDeviceProp properties;
    CHECK(cudaGetDeviceProperties(&properties, 0));
    printf("%s, %d multiprocessors\n", properties.name, properties.multiProcessorCount);
    measure_floors();
    measure_echoes();
    measure_trips();
    measure_few_pushers();
    measure_32_warps();
    measure_full_gpu();
    measure_many_waiters();
    return 0;
}
