// SPDX-License-Identifier: BSD-3-Clause
// The GPU's side of gpu_ring_variants.cu: each variant of pushing commands and of waiting for them,
// as template parameters.
#ifndef PERF_GPU_RING_VARIANTS_CUH
#define PERF_GPU_RING_VARIANTS_CUH

#include <cstdint>

#include "gpushmem/device_abi.h"

// atomicAdd per thread; one per warp; one per four pushes of a warp
enum Index { BY_THREAD, BY_WARP, BY_FOUR };
// WARP: GPU scope, by lane 0 behind __syncwarp
enum Fence { NO_FENCE, GPU_FENCE, SYSTEM_FENCE, WARP_FENCE };
// each thread its command; or four lanes a command, 64 bytes in a row
enum Store { BY_OWNER, TRANSPOSED };
// who reads the consumed count of the host when the ring looks full
enum Room { EVERYBODY, ELECTED };
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
    asm volatile("ld.volatile.global.v2.u64 {%0, %1}, [%2];"
                 : "=l"(v.x), "=l"(v.y)
                 : "l"(p)
                 : "memory");
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

// A host word read again and again. DEPTH > 1: with so many loads in flight, so that it is sampled
// DEPTH times per PCIe round trip. DEPTH <= 0: one load, the first one -DEPTH ns late, so that it
// does not pass the host's answer on its way.
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

// A recent value of a count that the host writes: from its copy in GPU memory, or, if that is too
// old, from host memory, by one elected thread at a time that refreshes the copy for all.
static __device__ void await(const uint64_t *host, unsigned long long *copy, unsigned *lock,
                             uint64_t least)
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

template <int WORDS>
static __device__ void pack(uint64_t *words, uint64_t index, uint64_t value, uint64_t reply)
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

template <int WORDS, int STORE>
static __device__ void write(const Ring &ring, uint64_t index, const uint64_t *words)
{
    if (STORE == BY_OWNER) {
        uint64_t *slot = ring.slots + (index & (ENTRIES - 1)) * WORDS;
#pragma unroll
        for (int i = 0; i < WORDS; i += 2)
            store_pair(slot + i, words[i], words[i + 1]);
        return;
    }
    // Full warps only: round k writes commands 8k .. 8k+7, lane l the quarter l % 4 of command 8k +
    // l / 4.
    unsigned lane = threadIdx.x & 31;
#pragma unroll
    for (int k = 0; k < 4; k++) {
        int owner = 8 * k + (int)(lane >> 2), quarter = (int)(lane & 3);
        uint64_t a = 0, b = 0;
#pragma unroll
        for (int q = 0; q < 4; q++) {
            uint64_t x = __shfl_sync(~0u, words[2 * q], owner),
                     y = __shfl_sync(~0u, words[2 * q + 1], owner);
            if (q == quarter)
                a = x, b = y;
        }
        uint64_t at = __shfl_sync(~0u, index, owner);
        store_pair(ring.slots + (at & (ENTRIES - 1)) * WORDS + 2 * quarter, a, b);
    }
}

template <int WAIT, int DEPTH>
static __device__ void await_completion(const Job &job, const Ring &ring, unsigned active,
                                        uint64_t index, uint32_t nonce)
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

template <int WORDS, int INDEX, int FENCE, int STORE, int ROOM, int WAIT, int DEPTH>
__global__ void pushes(Job job)
{
    int thread = blockIdx.x * blockDim.x + threadIdx.x;
    const Ring ring =
        job.rings[(blockIdx.x * ((blockDim.x + 31) / 32) + threadIdx.x / 32) % job.n_rings];
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
        pack<WORDS>(words, index, (uint64_t)thread + 1,
                    WAIT == REPLY ? (uint64_t)thread << 32 | nonce : 0);
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
template <int DEPTH>
__global__ void echo(uint64_t *out, const uint64_t *in, uint64_t *samples, int n)
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
        asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(device), "l"((uint64_t)i)
                     : "memory");
        __threadfence();
    }
    out[2] = (uint64_t)(clock64() - begin);
}

#endif
