// SPDX-License-Identifier: BSD-3-Clause
// Who takes part in a call: one thread, a warp or a block, as a template argument of the bodies.
#ifndef GPUSHMEM_DEVICE_SCOPE_CUH
#define GPUSHMEM_DEVICE_SCOPE_CUH

#include "gpushmem/device/atomics.cuh"

// Number of the calling thread in its block, and of its block in the grid.
GPSH_DEV unsigned gpsh_dev_thread_number(void)
{
    return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
}
GPSH_DEV unsigned gpsh_dev_block_threads(void)
{
    return blockDim.x * blockDim.y * blockDim.z;
}
GPSH_DEV unsigned gpsh_dev_block_number(void)
{
    return blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
}
// Of the launch, the same for all its threads: a load from constant memory.
GPSH_DEV unsigned gpsh_dev_launch_number(void)
{
#if defined(__CUDA_ARCH__)
    uint64_t number;
    asm("mov.u64 %0, %%gridid;" : "=l"(number));
    return (unsigned)number;
#elif defined(__CUDACC__)
    return 0;
#else
    return gpsh_emu_current_block ? gpsh_emu_current_block->launch : 0;
#endif
}
GPSH_DEV unsigned gpsh_dev_grid_blocks(void)
{
    return gridDim.x * gridDim.y * gridDim.z;
}

// How many loads of 16 bytes a lone thread keeps in flight when it copies. 8 leave kernels of 1024
// threads their 64 registers; 16 (73 us instead of 114 for 64 KiB on H200) take about 90, so blocks
// of up to 512 threads may define it so.
#if !defined(GPUSHMEM_THREAD_LOADS)
#define GPUSHMEM_THREAD_LOADS 8
#endif

// `loads`: the same for each scope. any: the threads meet as in sync, and learn whether one of them
// brings true.
struct gpsh_scope_thread {
    enum { alone = true, loads = GPUSHMEM_THREAD_LOADS };
    static __device__ __forceinline__ unsigned rank(void)
    {
        return 0;
    }
    static __device__ __forceinline__ unsigned size(void)
    {
        return 1;
    }
    static __device__ __forceinline__ void sync(void)
    {
    }
    static __device__ __forceinline__ bool any(bool mine)
    {
        return mine;
    }
};

// All threads of the warp (the last warp of a block may be short).
struct gpsh_scope_warp {
    enum { alone = false, loads = 6 };
    static constexpr unsigned threads = 32; // warpSize is no constant: a division for each meeting
    static __device__ __forceinline__ unsigned rank(void)
    {
        return gpsh_dev_thread_number() % threads;
    }
    static __device__ __forceinline__ unsigned size(void)
    {
        unsigned first = gpsh_dev_thread_number() / threads * threads,
                 left = gpsh_dev_block_threads() - first;
        return left < threads ? left : threads;
    }
    static __device__ __forceinline__ void sync(void)
    {
#if defined(__CUDACC__)
        __syncwarp(size() == 32 ? 0xffffffffu : (1u << size()) - 1);
#else
        gpsh_emu_warp_meet(false);
#endif
    }
    static __device__ __forceinline__ bool any(bool mine)
    {
#if defined(__CUDACC__)
        const unsigned mask = size() == 32 ? 0xffffffffu : (1u << size()) - 1;
        __syncwarp(mask); // a vote orders no accesses to memory
        return __any_sync(mask, mine);
#else
        return gpsh_emu_warp_meet(mine);
#endif
    }
};

// Four warps in a row, as tensor cores of sm_90 take them. On a GPU they meet at the block's
// barriers 15, 14, ... (0 is that of __syncthreads): at most 8 of them, in a block of 1024.
struct gpsh_scope_warpgroup {
    enum { alone = false, loads = 4 };
    static constexpr unsigned threads = 128;
    static __device__ __forceinline__ unsigned rank(void)
    {
        return gpsh_dev_thread_number() % threads;
    }
    static __device__ __forceinline__ unsigned size(void)
    {
        unsigned first = gpsh_dev_thread_number() / threads * threads,
                 left = gpsh_dev_block_threads() - first;
        return left < threads ? left : threads;
    }
    static __device__ __forceinline__ void sync(void)
    {
#if defined(__CUDA_ARCH__)
        unsigned barrier = 15 - gpsh_dev_thread_number() / threads, warps = (size() + 31) / 32;
        asm volatile("barrier.sync %0, %1;" ::"r"(barrier), "r"(warps * 32) : "memory");
#elif !defined(__CUDACC__)
        gpsh_emu_warpgroup_sync();
#endif
    }
};

struct gpsh_scope_block {
    enum { alone = false, loads = 4 };
    static __device__ __forceinline__ unsigned rank(void)
    {
        return gpsh_dev_thread_number();
    }
    static __device__ __forceinline__ unsigned size(void)
    {
        return gpsh_dev_block_threads();
    }
    static __device__ __forceinline__ void sync(void)
    {
#if defined(__CUDACC__)
        __syncthreads();
#else
        gpsh_emu_block_meet(false);
#endif
    }
    static __device__ __forceinline__ bool any(bool mine)
    {
#if defined(__CUDACC__)
        return __syncthreads_or(mine);
#else
        return gpsh_emu_block_meet(mine);
#endif
    }
};

#endif
