// SPDX-License-Identifier: BSD-3-Clause
// Kernels on CPU threads: what CUDA's compiler and runtime provide to a kernel, for a plain C++17
// compiler.
//
// Every thread of a launch is an operating system thread and all of them run concurrently, so
// kernels may spin on each other and on other PEs. The threads come from a pool that grows and
// stays, so a repeated launch costs wake-ups only. It is for development and tests: correct first,
// and as fast as threads can be.
#ifndef GPUSHMEM_EMU_HPP
#define GPUSHMEM_EMU_HPP

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <time.h>
#include <utility> // as cuda_runtime.h does

#include "gpushmem/device_host.h"
#include "gpushmem/types.h"

#ifndef __global__
#define __global__
#define __device__
#define __host__
#define __constant__
#define __forceinline__ inline
#define __launch_bounds__(...)
#endif

// Where the toolkit's headers are on the path, a program may include those that need no nvcc
// (cuda_fp16.h), before or after this one: then the vector types are theirs.
#if __has_include(<vector_functions.h>)
#include <vector_functions.h>
#endif
#ifndef __VECTOR_TYPES_H__
struct uint3 {
    unsigned x, y, z;
};
struct alignas(16) double2 {
    double x, y;
};
struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned vx = 1, unsigned vy = 1, unsigned vz = 1) : x(vx), y(vy), z(vz)
    {
    }
};
#endif

enum { warpSize = 32 };

// ---- Waiting ----

// Not from <unistd.h>: kernels may be called read, pipe or sync, and its functions would then be
// overloads of them.
extern "C" long gpsh_emu_syscall(long number, ...) __asm__("syscall");

inline void gpsh_emu_futex_wait(uint32_t *word, uint32_t value)
{
    gpsh_emu_syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

inline void gpsh_emu_futex_wake(uint32_t *word)
{
    gpsh_emu_syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

inline unsigned gpsh_emu_running; // kernel threads of this process that run or spin now

inline unsigned gpsh_emu_cores(void)
{
    static const int cores = get_nprocs();
    return cores > 0 ? (unsigned)cores : 1;
}

// A kernel thread has looked in vain `misses` times. A few threads yield at first; a crowd would
// pass the cores around among themselves and starve the proxy that all of them wait for, so its
// members sleep, longer and longer. A thread that waits long sleeps in any case: what it waits for
// may never come, and it should not occupy a core until then.
inline void gpsh_emu_give_way(uint32_t misses)
{
    const uint32_t crowd_yields = 32, few_yields = 4096, shortest_us = 20, most_doublings = 4;
    bool few = __atomic_load_n(&gpsh_emu_running, __ATOMIC_RELAXED) <= 2 * gpsh_emu_cores();
    uint32_t yields = few ? few_yields : crowd_yields;
    if (misses < yields) {
        sched_yield();
        return;
    }
    uint32_t doublings = (misses - yields) / 4;
    struct timespec nap = {
        0, (long)(shortest_us << (doublings < most_doublings ? doublings : most_doublings)) * 1000};
    nanosleep(&nap, NULL);
}

// The standard library's take a fifth of a second to include.
struct gpsh_emu_mutex {
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    void lock()
    {
        pthread_mutex_lock(&mutex);
    }
    void unlock()
    {
        pthread_mutex_unlock(&mutex);
    }
};
struct gpsh_emu_guard {
    gpsh_emu_mutex &mutex;
    explicit gpsh_emu_guard(gpsh_emu_mutex &m) : mutex(m)
    {
        mutex.lock();
    }
    ~gpsh_emu_guard()
    {
        mutex.unlock();
    }
    gpsh_emu_guard(const gpsh_emu_guard &) = delete;
};

// A barrier whose threads may leave for good (a thread that returned from its kernel no longer
// counts, as on a GPU).
struct gpsh_emu_barrier {
    gpsh_emu_mutex lock;
    unsigned members = 0, arrived = 0;
    // Of the last generation, as `outcome`: how many came, and how many of them in a call of this
    // library that all threads make together.
    unsigned came = 0, came_calling = 0, calling = 0;
    uint32_t generation = 0, sleepers = 0;
    // Whether a thread that has arrived votes, and what those of the last generation made of it:
    // that stays until each of them arrives again.
    bool vote = false, outcome = false;

    // With the lock held. A thread that goes to sleep counts itself in `sleepers` first: then
    // either it sees the new generation, or it is seen here.
    void release()
    {
        came = arrived;
        came_calling = calling;
        arrived = calling = 0;
        outcome = vote;
        vote = false;
        __atomic_fetch_add(&generation, 1, __ATOMIC_SEQ_CST);
        if (__atomic_load_n(&sleepers, __ATOMIC_SEQ_CST))
            gpsh_emu_futex_wake(&generation);
    }

    // True: a thread that came votes.
    bool wait(bool votes = false, bool calls = false)
    {
        lock.lock();
        vote = vote || votes;
        calling += calls;
        uint32_t mine = __atomic_load_n(&generation, __ATOMIC_RELAXED);
        bool last = ++arrived >= members;
        if (last)
            release();
        lock.unlock();
        for (int yields = 0; !last && __atomic_load_n(&generation, __ATOMIC_ACQUIRE) == mine;
             yields++) {
            if (yields < 8) {
                sched_yield();
                continue;
            }
            __atomic_fetch_sub(&gpsh_emu_running, 1, __ATOMIC_RELAXED);
            __atomic_fetch_add(&sleepers, 1, __ATOMIC_SEQ_CST);
            gpsh_emu_futex_wait(&generation, mine);
            __atomic_fetch_sub(&sleepers, 1, __ATOMIC_SEQ_CST);
            __atomic_fetch_add(&gpsh_emu_running, 1, __ATOMIC_RELAXED);
        }
        return outcome;
    }

    // True: it was the last one.
    bool leave()
    {
        gpsh_emu_guard guard(lock);
        if (--members && arrived >= members)
            release();
        return !members;
    }
};

// ---- Blocks and threads of a running kernel ----

struct gpsh_emu_warp {
    gpsh_emu_barrier barrier;
    uint64_t exchange[warpSize];
    uint32_t meetings[warpSize] = {}; // of each lane, in calls that all lanes make together
    bool missed = false;              // a lane had left the kernel when others met in such a call
};

// Memory that a block shares: by its declaration, or, if dynamic, by the block's own address.
struct gpsh_emu_object {
    const void *key;
    void *memory;
    gpsh_emu_object *next;
};

struct gpsh_emu_block {
    uint3 index;
    unsigned launch; // counts the launches of the process
    gpsh_emu_barrier barrier;
    gpsh_emu_barrier *grid = nullptr; // of all blocks, if the launch is a collective one
    gpsh_emu_warp *warps = nullptr;
    gpsh_emu_barrier *warpgroups = nullptr; // of four warps each
    bool missed = false; // a thread was missed in a call that all threads make together
    gpsh_emu_mutex shared_lock;
    gpsh_emu_object *shared = nullptr; // a list
    size_t dynamic_bytes = 0;
    ~gpsh_emu_block()
    {
        while (gpsh_emu_object *object = shared) {
            shared = object->next;
            free(object->memory);
            delete object;
        }
        delete[] warps;
        delete[] warpgroups;
    }
};

inline thread_local uint3 threadIdx, blockIdx;
inline thread_local dim3 blockDim, gridDim;
inline thread_local gpsh_emu_block *gpsh_emu_current_block;
inline thread_local unsigned gpsh_emu_thread; // linear number in the block

// True in a thread that runs a kernel right now: headers that map one name to host or device calls
// ask it.
inline bool gpushmem_emu_in_kernel(void)
{
    return gpsh_emu_current_block != nullptr;
}

inline gpsh_emu_warp &gpsh_emu_current_warp(void)
{
    return gpsh_emu_current_block->warps[gpsh_emu_thread / warpSize];
}

// CUDA wants every thread of the block, also those that have nothing to do and return early. Here
// those that wait go on without them.
inline bool gpsh_emu_sync(bool votes)
{
    gpsh_emu_barrier &barrier = gpsh_emu_current_block->barrier;
    unsigned threads = blockDim.x * blockDim.y * blockDim.z;
    bool outcome = barrier.wait(votes);
    if (barrier.came < threads)
        gpushmem_sync_missed(barrier.came, threads);
    return outcome;
}
inline void __syncthreads(void)
{
    gpsh_emu_sync(false);
}
// In a call that all threads of the block make together. What they move is divided among all that
// the block has had, so one that has left the kernel, or is elsewhere, is missed.
inline bool gpsh_emu_block_meet(bool votes)
{
    if (!gpushmem_emu_in_kernel()) // the host calls, and is refused
        return votes;
    gpsh_emu_barrier &barrier = gpsh_emu_current_block->barrier;
    unsigned threads = blockDim.x * blockDim.y * blockDim.z;
    bool outcome = barrier.wait(votes, true);
    if (barrier.came_calling < threads) {
        __atomic_store_n(&gpsh_emu_current_block->missed, true, __ATOMIC_RELAXED);
        gpushmem_block_missed(barrier.came_calling, barrier.came, threads);
    }
    return outcome;
}
inline int __syncthreads_or(int predicate)
{
    return gpsh_emu_sync(predicate != 0);
}
inline int __syncthreads_and(int predicate)
{
    return !gpsh_emu_sync(predicate == 0);
}

// All threads of the warp that have not returned take part, whatever the mask.
inline void __syncwarp(unsigned = 0xffffffffu)
{
    gpsh_emu_current_warp().barrier.wait();
}

// In a call that all threads of the warp make together. Whether they have is known when the last of
// them leaves the kernel: until then, some may have met others by votes and shuffles.
inline bool gpsh_emu_warp_meet(bool votes)
{
    if (!gpushmem_emu_in_kernel())
        return votes;
    gpsh_emu_warp &warp = gpsh_emu_current_warp();
    unsigned first = gpsh_emu_thread / warpSize * warpSize,
             left = blockDim.x * blockDim.y * blockDim.z - first;
    warp.meetings[gpsh_emu_thread % warpSize]++;
    bool outcome = warp.barrier.wait(votes);
    if (warp.barrier.came < left && warp.barrier.came < warpSize)
        __atomic_store_n(&warp.missed, true, __ATOMIC_RELAXED);
    return outcome;
}

// Whether the calling thread's block or warp is known to have met without some of its threads.
inline bool gpsh_emu_some_missed(void)
{
    return gpushmem_emu_in_kernel() &&
           (__atomic_load_n(&gpsh_emu_current_block->missed, __ATOMIC_RELAXED) ||
            __atomic_load_n(&gpsh_emu_current_warp().missed, __ATOMIC_RELAXED));
}

// By the last thread of the warp that leaves.
inline void gpsh_emu_warp_check(const gpsh_emu_warp &warp, unsigned lanes)
{
    uint32_t most = 0;
    unsigned calling = 0; // lanes that have met most often
    for (unsigned i = 0; i < lanes; i++) {
        calling = warp.meetings[i] < most ? calling : warp.meetings[i] == most ? calling + 1 : 1;
        most = warp.meetings[i] < most ? most : warp.meetings[i];
    }
    if (calling < lanes)
        gpushmem_warp_missed(calling, lanes);
}

// Four warps meet (gpsh_scope_warpgroup).
inline void gpsh_emu_warpgroup_sync(void)
{
    gpsh_emu_current_block->warpgroups[gpsh_emu_thread / 128].wait();
}

inline void __threadfence_block(void)
{
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}
inline void __threadfence(void)
{
    __atomic_fetch_add(&gpsh_emu_thread, 0, __ATOMIC_SEQ_CST);
}
inline void __threadfence_system(void)
{
    __threadfence();
}

// Memory shared by the block's threads, one object per declaration (`key`); uninitialised, as on a
// GPU.
inline void *gpsh_emu_shared(const void *key, size_t bytes)
{
    gpsh_emu_block *block = gpsh_emu_current_block;
    gpsh_emu_guard guard(block->shared_lock);
    for (const gpsh_emu_object *object = block->shared; object; object = object->next)
        if (object->key == key)
            return object->memory;
    void *memory = aligned_alloc(128, (bytes + 127) / 128 * 128);
    block->shared = new gpsh_emu_object{key, memory, block->shared};
    return memory;
}

#define GPUSHMEM_SHARED(type, name, count)                                                         \
    static char gpsh_shared_key_##name;                                                            \
    type *const name =                                                                             \
        static_cast<type *>(gpsh_emu_shared(&gpsh_shared_key_##name, sizeof(type) * (count)))

// What GPUSHMEM_LAUNCH_SHARED asked for, or NULL.
inline void *gpsh_emu_dynamic_shared(void)
{
    size_t bytes = gpsh_emu_current_block->dynamic_bytes;
    return bytes ? gpsh_emu_shared(gpsh_emu_current_block, bytes) : nullptr;
}

#define GPUSHMEM_DYNAMIC_SHARED(type, name)                                                        \
    type *const name = static_cast<type *>(gpsh_emu_dynamic_shared())

// ---- A thread that touches what is no memory ----

// What a GPU reports as error 700, in one sentence; called by a signal handler. The highest address
// of all stands for those that no process has, of which the processor does not tell which it was.
// 0: the thread runs no kernel.
inline int gpsh_emu_tell_fault(char *text, size_t bytes, const void *address)
{
    char where[64];
    if (!gpsh_emu_current_block)
        return 0;
    snprintf(where, sizeof where, "address %#zx%s", (size_t)address, address ? "" : " (NULL)");
    return snprintf(text, bytes,
                    "gpushmem: a kernel's thread (block (%u,%u,%u), thread (%u,%u,%u)) touched %s, "
                    "which is no memory that it may use\n",
                    blockIdx.x, blockIdx.y, blockIdx.z, threadIdx.x, threadIdx.y, threadIdx.z,
                    (size_t)address == SIZE_MAX ? "an address that no process has" : where);
}

#endif
