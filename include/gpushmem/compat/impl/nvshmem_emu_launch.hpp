// SPDX-License-Identifier: BSD-3-Clause
// nvshmemx_collective_launch for kernels on CPU threads: the kernel has to come with its type,
// since nothing else says what its arguments are.
#ifndef GPUSHMEM_COMPAT_IMPL_NVSHMEM_EMU_LAUNCH_HPP
#define GPUSHMEM_COMPAT_IMPL_NVSHMEM_EMU_LAUNCH_HPP

#include <utility>

#include "gpushmem/compat/impl/nvshmem_calls.h"
#include "gpushmem/device/emu_cuda.hpp"
#include "gpushmem/device/launch_collective.cuh"

static inline int gpsh_nvshmem_untyped(const char *function)
{
    return gpushmem_nvshmem_check(
        gpushmem_call_failed(GPUSHMEM_ERR_UNSUPPORTED, function,
                             "kernels on CPU threads are called with their types: pass the kernel "
                             "itself, without a cast to (const void *)"));
}

template <typename... P, size_t... I>
static int gpsh_nvshmem_launch(void (*kernel)(P...), dim3 grid, dim3 block, void **args,
                               size_t shared_bytes, gpushmem_stream_t stream,
                               std::index_sequence<I...>)
{
    return GPUSHMEM_LAUNCH_COLLECTIVE(kernel, grid, block, shared_bytes, stream,
                                      *static_cast<P *>(args[I])...);
}

template <typename... P>
static int nvshmemx_collective_launch(void (*func)(P...), dim3 gridDims, dim3 blockDims,
                                      void **args, size_t sharedMem, cudaStream_t stream)
{
    return gpushmem_nvshmem_check(gpsh_nvshmem_launch(func, gridDims, blockDims, args, sharedMem,
                                                      stream, std::index_sequence_for<P...>()));
}
static inline int nvshmemx_collective_launch(const void *, dim3, dim3, void **, size_t,
                                             cudaStream_t)
{
    return gpsh_nvshmem_untyped("nvshmemx_collective_launch");
}

template <typename... P>
static int nvshmemx_collective_launch_query_gridsize(void (*func)(P...), dim3 blockDims, void **,
                                                     size_t sharedMem, int *gridsize)
{
    return gpushmem_nvshmem_check(
        gpushmem_launch_collective_grid(func, blockDims, sharedMem, gridsize));
}
static inline int nvshmemx_collective_launch_query_gridsize(const void *, dim3, void **, size_t,
                                                            int *)
{
    return gpsh_nvshmem_untyped("nvshmemx_collective_launch_query_gridsize");
}

#endif
