// SPDX-License-Identifier: BSD-3-Clause
// The library's kernels for collectives of streams. Type and operator are arguments: one kernel
// serves all. Those for small blocks apart, so that they need few registers and start quickly.
#define GPSH_COLL_LOADS       4
#define GPUSHMEM_THREAD_LOADS 4 // there is no lone thread
#define GPSH_COLL_SUMS        1
#include "gpushmem/device/coll_stream.cuh"

#define KERNEL(name, threads)                                                                      \
    extern "C" __global__ void __launch_bounds__(threads)                                          \
        gpsh_coll_##name(const __grid_constant__ struct gpushmem_dev dev,                          \
                         const __grid_constant__ struct gpushmem_dev_team team,                    \
                         const __grid_constant__ struct gpushmem_coll_op op)

// A launch without a kind is there to load the kernel.
KERNEL(sync, 32)
{
    gpsh_dev_await_kernel_before();
    if (op.kind)
        gpsh_dev_stream_sync(dev, team, op);
    gpsh_dev_let_next_kernel_start();
}

KERNEL(packets, 512)
{
    gpsh_dev_await_kernel_before();
    if (op.kind)
        gpsh_dev_stream_packets(dev, team, op);
    gpsh_dev_let_next_kernel_start();
}

// For two members, for up to four and for up to eight.
#define KERNEL_OF_FEW(name, others)                                                                \
    extern "C" __global__ void __launch_bounds__(512)                                              \
        gpsh_coll_##name(const __grid_constant__ struct gpushmem_dev dev,                          \
                         const __grid_constant__ struct gpushmem_dev_team team,                    \
                         const __grid_constant__ struct gpushmem_coll_op op,                       \
                         const __grid_constant__ struct gpushmem_coll_few ready)                   \
    {                                                                                              \
        gpsh_dev_await_kernel_before();                                                            \
        if (op.kind)                                                                               \
            gpsh_dev_stream_few<others>(dev, team, op, ready);                                     \
        gpsh_dev_let_next_kernel_start();                                                          \
    }
KERNEL_OF_FEW(pair, 1)
KERNEL_OF_FEW(four, 3)
KERNEL_OF_FEW(few, GPUSHMEM_COLL_FEW_OTHERS)

KERNEL(dense, 512)
{
    gpsh_dev_await_kernel_before();
    if (op.kind)
        gpsh_dev_stream_dense(dev, team, op);
    gpsh_dev_let_next_kernel_start();
}

KERNEL(large, 512)
{
    gpsh_dev_await_kernel_before();
    if (op.kind)
        gpsh_dev_stream_large(dev, team, op);
    gpsh_dev_let_next_kernel_start();
}

KERNEL(nodes, 512)
{
    gpsh_dev_await_kernel_before();
    if (op.kind)
        gpsh_dev_stream_nodes(dev, team, op);
    gpsh_dev_let_next_kernel_start();
}

// Before and after the copy engine's work: the entry flags, the exit flags.
KERNEL(enter, 32)
{
    if (op.kind)
        gpsh_dev_stream_enter(dev, team);
}
KERNEL(leave, 32)
{
    if (op.kind)
        gpsh_dev_stream_leave(dev, team);
}
