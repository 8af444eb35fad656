// SPDX-License-Identifier: BSD-3-Clause
// The library's own kernels for operations of a stream, one per kind, so that each is short. Plain
// device code: mapped PEs are reached by loads and stores, all others through ring and proxy, and
// every counter lives on the device side, so that a graph may replay them. A launch with another
// kind in `op` does nothing (stream_gpu.c loads them that way).
#include "gpushmem/device/stream.cuh"

struct start_next {
    __device__ __forceinline__ void operator()(void) const
    {
        gpsh_dev_let_next_kernel_start();
    }
};

// The block's size is the host's choice, up to `threads`. __grid_constant__: no thread copies the
// handle.
#define KERNEL(name, expected, threads)                                                            \
    extern "C" __global__ void __launch_bounds__(threads)                                          \
        gpsh_stream_##name(const __grid_constant__ struct gpushmem_dev dev,                        \
                           const __grid_constant__ struct gpushmem_stream_op op)                   \
    {                                                                                              \
        gpsh_dev_await_kernel_before();                                                            \
        gpsh_dev_stream_kernel(dev, op, expected, start_next());                                   \
    }

KERNEL(put, GPUSHMEM_STREAM_PUT, 1024)
KERNEL(get, GPUSHMEM_STREAM_GET, 1024)
KERNEL(put_signal, GPUSHMEM_STREAM_PUT_SIGNAL, 1024)
KERNEL(signal, GPUSHMEM_STREAM_SIGNAL, 1)
KERNEL(wait, GPUSHMEM_STREAM_WAIT, 1)
KERNEL(quiet, GPUSHMEM_STREAM_QUIET, 1)
KERNEL(barrier, GPUSHMEM_STREAM_BARRIER, 1)
KERNEL(sync, GPUSHMEM_STREAM_SYNC, 1)
KERNEL(p, GPUSHMEM_STREAM_P, 1)
KERNEL(iput, GPUSHMEM_STREAM_IPUT, 1024)
KERNEL(iget, GPUSHMEM_STREAM_IGET, 1024)
