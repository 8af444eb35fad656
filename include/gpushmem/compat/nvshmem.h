// SPDX-License-Identifier: BSD-3-Clause
// NVSHMEM's API over gpushmem: names, types and constants are those of NVSHMEM's public
// documentation, contracts are those of gpushmem.h and device.cuh; docs/compat.md says what
// differs.
//
// Functions that kernels have, too, are defined in line and call gpushmem's: put and get, atomics,
// waits for a word. libnvshmem_host has what the host alone has: start and end, memory, streams;
// and the host's side of what takes long: collectives, waits for several words. Where kernels can
// be compiled, by nvcc or for CPU threads (GPUSHMEM_EMULATION), their functions are here. With
// NVSHMEM_HOSTLIB_ONLY all functions of the host are only declared, for programs that load
// libnvshmem_host.so.3 by name.
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
#if !defined(__CUDACC__)
#include "gpushmem/coll.h"
#endif
#endif

// ---- The functions, by the rows of one table ----
// What a row becomes is said without a step between: a hundred thousand words pass through here.

#if defined(GPUSHMEM_NVSHMEM_LIBRARY)
#define GPSH_NVS_ROW(RETURN, NAME, PARAMETERS, ...)                                                \
    GPUSHMEM_API RETURN NAME PARAMETERS;                                                           \
    RETURN NAME PARAMETERS __VA_ARGS__
#else
#define GPSH_NVS_ROW(RETURN, NAME, PARAMETERS, ...) GPUSHMEM_API RETURN NAME PARAMETERS;
#endif

// One function for both sides: nvcc knows which of them it compiles, and on CPU threads the thread
// does.
#if defined(GPSH_NVSHMEM_KERNELS) && !defined(__CUDACC__)
#define GPSH_NVS_BOTH(RETURN, NAME, PARAMETERS, ARGUMENTS, ...)                                    \
    static inline RETURN NAME PARAMETERS                                                           \
    {                                                                                              \
        if (gpsh_emu_current_block)                                                                \
            return gpsh_dev_##NAME ARGUMENTS;                                                      \
        __VA_ARGS__                                                                                \
    }
#elif defined(GPSH_NVSHMEM_KERNELS) && defined(__CUDA_ARCH__)
#define GPSH_NVS_BOTH(RETURN, NAME, PARAMETERS, ARGUMENTS, ...)                                    \
    static __host__ __device__ __forceinline__ RETURN NAME PARAMETERS                              \
    {                                                                                              \
        return gpsh_dev_##NAME ARGUMENTS;                                                          \
    }
#elif defined(GPSH_NVSHMEM_KERNELS)
#define GPSH_NVS_BOTH(RETURN, NAME, PARAMETERS, ARGUMENTS, ...)                                    \
    static __host__ __device__ __forceinline__ RETURN NAME PARAMETERS __VA_ARGS__
#elif defined(GPUSHMEM_NVSHMEM_LIBRARY)
#define GPSH_NVS_BOTH(RETURN, NAME, PARAMETERS, ARGUMENTS, ...)                                    \
    GPUSHMEM_API RETURN NAME PARAMETERS;                                                           \
    RETURN NAME PARAMETERS __VA_ARGS__
#elif defined(NVSHMEM_HOSTLIB_ONLY)
#define GPSH_NVS_BOTH(RETURN, NAME, PARAMETERS, ARGUMENTS, ...) GPUSHMEM_API RETURN NAME PARAMETERS;
#else
#define GPSH_NVS_BOTH(RETURN, NAME, PARAMETERS, ARGUMENTS, ...)                                    \
    static inline RETURN NAME PARAMETERS __VA_ARGS__
#endif

// A body would only make each file that includes this slower to compile: the host calls the
// library's, and is told so in files without kernels, and by nvcc's pass for the host.
#if defined(GPSH_NVSHMEM_KERNELS) && defined(__CUDACC__) && !defined(__CUDA_ARCH__)
#define GPSH_NVS_LONG(RETURN, NAME, PARAMETERS, ...)                                               \
    GPUSHMEM_API __host__ __device__ RETURN NAME PARAMETERS;
#elif defined(GPSH_NVSHMEM_KERNELS) || defined(GPUSHMEM_NVSHMEM_LIBRARY)
#define GPSH_NVS_LONG GPSH_NVS_BOTH
#else
#define GPSH_NVS_LONG GPSH_NVS_ROW
#endif

#ifdef __cplusplus
extern "C" {
#endif
#include "gpushmem/compat/impl/nvshmem_rows.h"
// Bytes of shared memory that puts of a block want. None: no put goes through it, so a launch need
// not set any aside, and what kernels give stays the program's.
GPUSHMEM_HOST_DEVICE int nvshmemx_ask_smem(nvshmemx_smem_amount_t amount)
{
    (void)amount;
    return 0;
}
#if defined(GPSH_NVSHMEM_KERNELS)
GPSH_DEV void nvshmemx_give_smem(void *smem, size_t size)
{
    (void)smem, (void)size;
}
GPSH_DEV void nvshmemx_release_smem(void)
{
}
#endif
#ifdef __cplusplus
}
#endif
#undef GPSH_NVS_LONG
#undef GPSH_NVS_BOTH
#undef GPSH_NVS_ROW

#if defined(GPSH_NVSHMEM_CUDA) && !defined(GPUSHMEM_EMULATION)
#include "gpushmem/compat/impl/nvshmem_launch.h"
#endif

#endif
