// SPDX-License-Identifier: BSD-3-Clause
// What headers that C11, C++17 and CUDA share are written with.
#ifndef GPUSHMEM_IMPL_HOST_DEVICE_H
#define GPUSHMEM_IMPL_HOST_DEVICE_H

#if defined(__CUDACC__)
#define GPUSHMEM_HOST_DEVICE static __host__ __device__ __forceinline__
#else
#define GPUSHMEM_HOST_DEVICE static inline
#endif

#if defined(__cplusplus)
#define GPUSHMEM_STATIC_ASSERT(condition, text) static_assert(condition, text)
#else
#define GPUSHMEM_STATIC_ASSERT(condition, text) _Static_assert(condition, text)
#endif

#endif
