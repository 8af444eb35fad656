// SPDX-License-Identifier: BSD-3-Clause
// The command ring with nothing left out: commands pushed by the library's device code, read by its
// proxy threads, executed by its p2p transport on pinned host memory. What
// docs/design/kernels.md says of whole commands is measured here. Needs one GPU and no job.
// Compiled for the CPU it is a short test of the same paths.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "gpushmem/device.cuh"
#include "ring_rig.h"

#if defined(__CUDACC__)

#include "cuda_check.cuh"

static void *pinned_alloc(size_t bytes)
{
    void *memory;
    CHECK(cudaHostAlloc(&memory, bytes, cudaHostAllocMapped | cudaHostAllocPortable));
    return memset(memory, 0, bytes);
}
static void pinned_free(void *memory, size_t)
{
    CHECK(cudaFreeHost(memory));
}
static void *device_alloc(size_t bytes)
{
    void *memory;
    CHECK(cudaMalloc(&memory, bytes));
    CHECK(cudaMemset(memory, 0, bytes));
    return memory;
}
static void device_free(void *memory, size_t)
{
    CHECK(cudaFree(memory));
}
static int device_write(void *to, const void *from, size_t bytes)
{
    CHECK(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice));
    return 0;
}
static int device_read(void *to, const void *from, size_t bytes)
{
    CHECK(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost));
    return 0;
}
static const struct gpsh_device_memory memory = {pinned_alloc, pinned_free,  device_alloc,
                                                 device_free,  device_write, device_read,
                                                 nullptr,      nullptr,      false};

template <typename Kernel, typename... Arguments>
static void launch(Kernel kernel, int blocks, int threads, Arguments... arguments)
{
    kernel<<<blocks, threads>>>(arguments...);
    CHECK(cudaGetLastError());
}
static void wait_for_kernel()
{
    CHECK(cudaDeviceSynchronize());
}
static __device__ __forceinline__ uint64_t ticks()
{
    return (uint64_t)clock64();
}
static const bool emulated = false;

#else

static const struct gpsh_device_memory &memory = gpsh_device_memory_host;

template <typename Kernel, typename... Arguments>
static void launch(Kernel kernel, int blocks, int threads, Arguments... arguments)
{
    gpsh_emu_submit(dim3((unsigned)blocks), dim3((unsigned)threads), NULL,
                    [=] { kernel(arguments...); });
}
static void wait_for_kernel()
{
    gpsh_emu_wait(NULL);
}
static uint64_t ticks()
{
    return gpsh_dev_now_ns();
}
static const bool emulated = true;

#endif

static const unsigned ENTRIES_LOG2 = 12; // the default of GPUSHMEM_TEST_RING_ENTRIES
static const int TARGET = 1, MAX_TRIPS = 4000;
// puts go to the lower half of the heap, atomics to the upper
static const size_t WORDS = RING_RIG_HEAP_BYTES / 16;

// ---- Kernels ----

__device__ static void push_nop(const gpushmem_dev &dev)
{
    gpsh_dev_submit(dev, gpsh_dev_command(GPUSHMEM_CMD_NOP, TARGET, nullptr, nullptr, 0),
                    GPSH_DEV_NOTHING);
}

__device__ static size_t global_thread()
{
    return (size_t)blockIdx.x * blockDim.x + threadIdx.x;
}

// Each way in which a program fills rings: `n` times by every thread.
struct empty {
    static __device__ void issue(const gpushmem_dev &dev, uint64_t *, uint64_t)
    {
        push_nop(dev);
    }
};
struct put_word {
    static __device__ void issue(const gpushmem_dev &dev, uint64_t *words, uint64_t i)
    {
        gpushmem_dev_uint64_p(dev, words + global_thread() % WORDS, i + 1, TARGET);
    }
};
// each block its word: proxies do not fight for it more than they would in a program
struct add_word {
    static __device__ void issue(const gpushmem_dev &dev, uint64_t *words, uint64_t)
    {
        gpushmem_dev_uint64_atomic_add(dev, words + WORDS + 8 * blockIdx.x, 1, TARGET);
    }
};
struct put_signal {
    static __device__ void issue(const gpushmem_dev &dev, uint64_t *words, uint64_t)
    {
        size_t at = global_thread() % WORDS;
        gpushmem_dev_putmem_signal_nbi(dev, words + at, words + at, 8,
                                       words + WORDS + 8 * blockIdx.x, 1, GPUSHMEM_SIGNAL_ADD,
                                       TARGET);
    }
};
struct fetch_add {
    static __device__ void issue(const gpushmem_dev &dev, uint64_t *words, uint64_t)
    {
        gpushmem_dev_uint64_atomic_fetch_add(dev, words + WORDS + 8 * blockIdx.x, 1, TARGET);
    }
};

template <class Way>
__global__ void __launch_bounds__(1024, 1) fill(gpushmem_dev dev, uint64_t *words, int n)
{
    for (int i = 0; i < n; i++)
        Way::issue(dev, words, (uint64_t)i);
}

struct empty_quiet {
    static __device__ void go(const gpushmem_dev &dev, uint64_t *)
    {
        push_nop(dev);
        gpushmem_dev_quiet(dev);
    }
};
struct put_quiet {
    static __device__ void go(const gpushmem_dev &dev, uint64_t *words)
    {
        gpushmem_dev_uint64_p(dev, words, 1, TARGET);
        gpushmem_dev_quiet(dev);
    }
};
struct put_pe_quiet {
    static __device__ void go(const gpushmem_dev &dev, uint64_t *words)
    {
        gpushmem_dev_uint64_p(dev, words, 1, TARGET);
        gpushmem_dev_pe_quiet(dev, TARGET);
    }
};
struct get_word {
    static __device__ void go(const gpushmem_dev &dev, uint64_t *words)
    {
        gpushmem_dev_uint64_g(dev, words, TARGET);
    }
};
struct fetch {
    static __device__ void go(const gpushmem_dev &dev, uint64_t *words)
    {
        gpushmem_dev_uint64_atomic_fetch_add(dev, words + WORDS, 1, TARGET);
    }
};

template <class Trip>
__global__ void trips(gpushmem_dev dev, uint64_t *words, int n, uint64_t *samples)
{
    for (int i = 0; i < n; i++) {
        uint64_t begin = ticks();
        Trip::go(dev, words);
        samples[i] = ticks() - begin;
    }
}

// The floor of every trip: a flag written here, answered by the host.
__global__ void echo(uint64_t *out, const uint64_t *in, int n, uint64_t *samples)
{
    for (int i = 1; i <= n; i++) {
        uint64_t begin = ticks();
        gpsh_dev_store64_sys(out, (uint64_t)i);
        while (gpsh_dev_load64_value_sys(in) < (uint64_t)i)
            gpsh_dev_relax(64);
        samples[i - 1] = ticks() - begin;
    }
}

__global__ void calibrate(uint64_t *out)
{
    uint64_t from = gpsh_dev_now_ns(), begin = ticks(), to;
    do
        to = gpsh_dev_now_ns();
    while (to - from < 20000000);
    out[0] = ticks() - begin;
    out[1] = to - from;
}

// ---- Host ----

static double ticks_per_us = 1000;
static int scale_down = 1; // of the number of commands

static double median(std::vector<double> &v)
{
    std::sort(v.begin(), v.end());
    return v[v.size() / 2];
}

struct Shape {
    const char *name;
    int blocks, threads, rings, proxies, pushes;
    const char *aim;
};

struct Bench {
    ring_rig *rig;
    gpushmem_dev dev;
    uint64_t *words; // in the heap of PE 0
};

static void drain(const Bench &b)
{
    wait_for_kernel();
    if (!ring_rig_drain(b.rig))
        exit(1);
}

// Million commands per second, from before the launch until the last one is complete.
template <class Way> static double rate(const Bench &b, const Shape &s, int pushes)
{
    std::vector<double> rates;
    pushes = std::max(1, pushes / scale_down);
    for (int repeat = 0; repeat < (emulated ? 2 : 6); repeat++) {
        auto begin = std::chrono::steady_clock::now();
        launch(fill<Way>, s.blocks, s.threads, b.dev, b.words, pushes);
        drain(b);
        double us =
            std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin)
                .count();
        if (repeat) // the first one warms up
            rates.push_back((double)s.blocks * s.threads * pushes / us);
    }
    return median(rates);
}

static Bench open_bench(int rings, int proxies)
{
    Bench b;
    b.rig = ring_rig_open(&memory, rings, proxies, ENTRIES_LOG2, true);
    if (!b.rig)
        exit(1);
    ring_rig_handle(b.rig, &b.dev);
    b.words = (uint64_t *)ring_rig_heap(b.rig, 0);
    return b;
}

// What the target holds must be what all repeats put there.
static void check_words(const Bench &b, const Shape &s, int adds)
{
    const uint64_t *at = (const uint64_t *)ring_rig_heap(b.rig, TARGET);
    uint64_t n = (uint64_t)adds * (uint64_t)s.threads;
    for (int block = 0; block < s.blocks; block++)
        if (at[WORDS + 8 * (size_t)block] != n) {
            fprintf(stderr, "%s: block %d added %llu, not %llu\n", s.name, block,
                    (unsigned long long)at[WORDS + 8 * (size_t)block], (unsigned long long)n);
            exit(1);
        }
}

static void measure_rates(const Shape &s)
{
    Bench b = open_bench(s.rings, s.proxies);
    int waiting = std::max(s.pushes / 20, 1), runs = emulated ? 2 : 6;
    double nop = rate<empty>(b, s, s.pushes), put = rate<put_word>(b, s, s.pushes),
           add = rate<add_word>(b, s, s.pushes);
    double signal = rate<put_signal>(b, s, s.pushes), fetched = rate<fetch_add>(b, s, waiting);
    check_words(
        b, s, runs * (2 * std::max(1, s.pushes / scale_down) + std::max(1, waiting / scale_down)));
    printf("| %-22s | %3d x %4d | %5d | %7d | %7.2f | %7.2f | %7.2f | %7.2f | %7.2f | %5s |\n",
           s.name, s.blocks, s.threads, s.rings, s.proxies, nop, put, add, signal, fetched, s.aim);
    fflush(stdout);
    ring_rig_close(b.rig);
}

static void print_trip(const char *name, uint64_t *samples, int n, const char *aim)
{
    std::sort(samples, samples + n);
    printf("| %-36s | %6.2f | %6.2f | %6.2f | %5s |\n", name, (double)samples[n / 2] / ticks_per_us,
           (double)samples[0] / ticks_per_us, (double)samples[n * 99 / 100] / ticks_per_us, aim);
    fflush(stdout);
}

template <class Trip> static void measure_trip(const char *name, int rings, const char *aim)
{
    Bench b = open_bench(rings, 1);
    int n = MAX_TRIPS / scale_down;
    uint64_t *samples = (uint64_t *)memory.host_alloc(MAX_TRIPS * 8);
    for (int warm = 1; warm >= 0; warm--) {
        launch(trips<Trip>, 1, 1, b.dev, b.words, n, samples);
        drain(b);
    }
    print_trip(name, samples, n, aim);
    memory.host_free(samples, MAX_TRIPS * 8);
    ring_rig_close(b.rig);
}

static void measure_echo()
{
    int n = MAX_TRIPS / scale_down;
    uint64_t *flags = (uint64_t *)memory.host_alloc(4096),
             *samples = (uint64_t *)memory.host_alloc(MAX_TRIPS * 8);
    std::thread host([=] {
        if (!emulated)
            ring_rig_pin(0);
        for (uint64_t i = 1; i <= (uint64_t)n; i++) {
            while (__atomic_load_n(&flags[0], __ATOMIC_ACQUIRE) < i)
                if (emulated)
                    sched_yield();
            __atomic_store_n(&flags[64], i, __ATOMIC_RELEASE);
        }
    });
    launch(echo, 1, 1, flags, flags + 64, n, samples);
    wait_for_kernel();
    host.join();
    print_trip("bare flag (the floor)", samples, n, "");
    memory.host_free(flags, 4096);
    memory.host_free(samples, MAX_TRIPS * 8);
}

static void measure_all_rates()
{
    static const Shape shapes[] = {
        {"1 thread", 1, 1, 1, 1, 20000, ""},
        {"4 warps", 4, 32, 4, 1, 40000, ""},
        {"4 warps", 4, 32, 4, 2, 40000, ""},
        {"4 warps", 4, 32, 4, 4, 40000, "100"},
        {"32 warps, 1 ring", 32, 32, 1, 1, 5000, "80"},
        {"32 warps", 32, 32, 4, 4, 10000, ""},
        {"32 warps", 32, 32, 8, 4, 10000, ""},
        {"32 warps", 32, 32, 16, 4, 10000, "500"},
        {"32 warps", 32, 32, 32, 4, 10000, "500"},
        {"full GPU", 132, 256, 32, 4, 200, ""},
        {"full GPU", 132, 1024, 4, 1, 50, ""},
        {"full GPU", 132, 1024, 32, 4, 50, ""},
    };
    printf("Commands of 64 bytes, million per second; medians of 5\n\n"
           "| %-22s | %-10s | rings | proxies |   empty |       p |     add |  signal | fetched |  "
           " aim |\n"
           "|------------------------|------------|------:|--------:|--------:|--------:|--------:|"
           "--------:|--------:|------:|\n",
           "who", "blocks");
    static const Shape small[] = {{"1 thread", 1, 1, 1, 1, 20000, ""},
                                  {"2 blocks", 2, 2, 2, 2, 20000, ""}};
    if (emulated)
        for (const Shape &s : small)
            measure_rates(s);
    else
        for (const Shape &s : shapes)
            measure_rates(s);
}

static void measure_all_trips()
{
    printf("\nOne thread, from the call until its completion is seen, us\n\n"
           "| %-36s |    p50 |    min |    p99 |   aim "
           "|\n|--------------------------------------|-------:|-------:|-------:|------:|\n",
           "what");
    measure_echo();
    measure_trip<empty_quiet>("empty command, quiet; 1 ring", 1, "2.7");
    measure_trip<empty_quiet>("empty command, quiet; 4 rings", 4, "");
    measure_trip<put_quiet>("p, quiet; 4 rings", 4, "2.7");
    measure_trip<put_pe_quiet>("p, pe_quiet; 4 rings", 4, "");
    measure_trip<get_word>("g; 4 rings", 4, "2.7");
    measure_trip<fetch>("atomic fetch_add; 4 rings", 4, "2.7");
}

int main()
{
    setenv("CUDA_MODULE_LOADING", "EAGER", 1); // no kernel is loaded inside a measurement
    scale_down = emulated ? 100 : 1;
#if defined(__CUDACC__)
    cudaDeviceProp properties;
    CHECK(cudaGetDeviceProperties(&properties, 0));
    printf("%s, %d multiprocessors\n", properties.name, properties.multiProcessorCount);
#endif
    uint64_t *out = (uint64_t *)memory.host_alloc(64);
    launch(calibrate, 1, 1, out);
    wait_for_kernel();
    ticks_per_us = (double)out[0] / ((double)out[1] / 1e3);
    memory.host_free(out, 64);
    measure_all_rates();
    measure_all_trips();
    return 0;
}
