// SPDX-License-Identifier: BSD-3-Clause
// NVSHMEM's API over gpushmem: names, types and constants are those of NVSHMEM's public
// documentation, contracts are those of gpushmem.h and device.cuh; docs/compat.md says what
// differs.
//
// Every function is defined in line and calls gpushmem's. Where kernels can be compiled, by nvcc or
// for CPU threads (GPUSHMEM_EMULATION), those of kernels are here, too. With NVSHMEM_HOSTLIB_ONLY
// the functions of the host are only declared, and libnvshmem_host.so.3 has them: for programs that
// load it by name.
//
// A call that fails logs the library's sentence at level ERROR, each sentence once, and returns:
// nothing, an enum nvshmemx_status, or 0. The process goes on (docs/design/compatibility.md).
#ifndef GPUSHMEM_COMPAT_NVSHMEM_H
#define GPUSHMEM_COMPAT_NVSHMEM_H

// Programs rely on these.
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpushmem/compat/impl/nvshmem_calls.h"
#include "gpushmem/compat/impl/nvshmem_types.h"

// Programs report errors of their own by it.
#define NVSHMEMI_ERROR_PRINT(...) fprintf(stderr, __VA_ARGS__)

#if (defined(__CUDACC__) || defined(GPUSHMEM_EMULATION)) && defined(__cplusplus) &&                \
    !defined(NVSHMEM_HOSTLIB_ONLY)
#define GPSH_NVSHMEM_KERNELS
#include "gpushmem/compat/impl/nvshmem_device.cuh"
#endif

// ---- The functions, by the rows of one table ----

#if defined(GPUSHMEM_NVSHMEM_LIBRARY)
#define GPSH_NVS_ROW(RETURN, NAME, PARAMETERS, ...)                                                \
    GPUSHMEM_API RETURN NAME PARAMETERS;                                                           \
    RETURN NAME PARAMETERS __VA_ARGS__
#elif defined(NVSHMEM_HOSTLIB_ONLY)
#define GPSH_NVS_ROW(RETURN, NAME, PARAMETERS, ...) GPUSHMEM_API RETURN NAME PARAMETERS;
#else
#define GPSH_NVS_ROW(RETURN, NAME, PARAMETERS, ...) static inline RETURN NAME PARAMETERS __VA_ARGS__
#endif

// One function for both sides: nvcc knows which of them it compiles, and on CPU threads the thread
// does.
#if !defined(GPSH_NVSHMEM_KERNELS)
#define GPSH_NVS_BOTH(RETURN, NAME, PARAMETERS, ARGUMENTS, ...)                                    \
    GPSH_NVS_ROW(RETURN, NAME, PARAMETERS, __VA_ARGS__)
#elif !defined(__CUDACC__)
#define GPSH_NVS_BOTH(RETURN, NAME, PARAMETERS, ARGUMENTS, ...)                                    \
    static inline RETURN NAME PARAMETERS                                                           \
    {                                                                                              \
        if (gpsh_emu_current_block)                                                                \
            return gpsh_dev_##NAME ARGUMENTS;                                                      \
        __VA_ARGS__                                                                                \
    }
#elif defined(__CUDA_ARCH__)
#define GPSH_NVS_BOTH(RETURN, NAME, PARAMETERS, ARGUMENTS, ...)                                    \
    static __host__ __device__ __forceinline__ RETURN NAME PARAMETERS                              \
    {                                                                                              \
        return gpsh_dev_##NAME ARGUMENTS;                                                          \
    }
#else
#define GPSH_NVS_BOTH(RETURN, NAME, PARAMETERS, ARGUMENTS, ...)                                    \
    static __host__ __device__ __forceinline__ RETURN NAME PARAMETERS __VA_ARGS__
#endif

#ifdef __cplusplus
extern "C" {
#endif
#include "gpushmem/compat/impl/nvshmem_rows.h"
#ifdef __cplusplus
}
#endif
#undef GPSH_NVS_BOTH
#undef GPSH_NVS_ROW

#if defined(GPSH_NVSHMEM_CUDA) && !defined(GPUSHMEM_EMULATION)
#include "gpushmem/compat/impl/nvshmem_launch.h"
#endif

#endif
