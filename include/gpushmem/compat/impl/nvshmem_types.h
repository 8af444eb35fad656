// SPDX-License-Identifier: BSD-3-Clause
// Types, constants and type families of nvshmem.h: sizes and values are those that programs were
// compiled with (docs/design/compatibility.md). C, C++ and CUDA; no functions.
#ifndef GPUSHMEM_COMPAT_IMPL_NVSHMEM_TYPES_H
#define GPUSHMEM_COMPAT_IMPL_NVSHMEM_TYPES_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

// Programs expect CUDA's types from this header: streams, and 16-bit floating point values, which
// are bits where there is no toolkit. On CPU threads gpushmem/device/emu.hpp has streams and the
// types of kernels.
#if defined(__has_include) && !defined(GPSH_NVSHMEM_NO_CUDA)
#if __has_include(<cuda_runtime.h>)
#define GPSH_NVSHMEM_TOOLKIT
#endif
#endif
#if defined(GPSH_NVSHMEM_TOOLKIT) && defined(__cplusplus)
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#endif

#include "gpushmem/compat/non_abi/nvshmem_version.h"
#include "gpushmem/impl/host_device.h"
#include "gpushmem/types.h"

#if defined(GPSH_NVSHMEM_TOOLKIT) && (defined(__CUDACC__) || !defined(GPUSHMEM_EMULATION))
#define GPSH_NVSHMEM_CUDA
#include <cuda_runtime.h>
#else
typedef struct CUstream_st *cudaStream_t;
#endif
// Handles of the driver, as cuda.h has them: programs expect them of this header.
typedef struct CUmod_st *CUmodule;
typedef struct CUlib_st *CUlibrary;
typedef struct CUfunc_st *CUfunction;
typedef struct CUkern_st *CUkernel;
typedef struct CUctx_st *CUcontext;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef unsigned long long CUdeviceptr;
typedef int CUdevice;
#if defined(GPSH_NVSHMEM_TOOLKIT) && defined(__cplusplus)
typedef __half gpsh_nvshmem_half;
typedef __nv_bfloat16 gpsh_nvshmem_bfloat16;
#else
typedef gpushmem_half gpsh_nvshmem_half;
typedef gpushmem_bfloat16 gpsh_nvshmem_bfloat16;
#endif

// ---- Teams ----

typedef int32_t nvshmem_team_t;
typedef nvshmem_team_t nvshmemx_team_t;
enum gpsh_nvshmem_team {
    NVSHMEM_TEAM_INVALID = -1,
    NVSHMEM_TEAM_WORLD = 0,
    NVSHMEM_TEAM_SHARED = 1,
    NVSHMEM_TEAM_MC_SHARED = 1, // by multicast, which there is none of
    NVSHMEMX_TEAM_NODE = 2,
    NVSHMEMX_TEAM_SAME_MYPE_NODE = 3,
    NVSHMEMX_TEAM_SAME_GPU = 4,    // the PEs that have their heaps on this PE's GPU
    NVSHMEMX_TEAM_GPU_LEADERS = 5, // the first PE of each GPU
};
// The same numbers as indices, and those of teams that NVSHMEM has for itself.
enum gpsh_nvshmem_team_index {
    NVSHMEM_TEAM_WORLD_INDEX = 0,
    NVSHMEM_TEAM_SHARED_INDEX = 1,
    NVSHMEMX_TEAM_NODE_INDEX = 2,
    NVSHMEM_TEAM_NODE_INDEX = 2,
    NVSHMEMX_TEAM_SAME_MYPE_NODE_INDEX = 3,
    NVSHMEM_TEAM_SAME_MYPE_NODE_INDEX = 3,
    NVSHMEMI_TEAM_SAME_GPU_INDEX = 4,
    NVSHMEM_TEAM_SAME_GPU_INDEX = 4,
    NVSHMEMI_TEAM_SAME_GPU = 4,
    NVSHMEMI_TEAM_GPU_LEADERS_INDEX = 5,
    NVSHMEM_TEAM_GPU_LEADERS_INDEX = 5,
    NVSHMEMI_TEAM_GPU_LEADERS = 5,
    NVSHMEM_TEAM_INDEX_MAX = INT_MAX,
};

// A struct's version is 1 << 16, and its size.
#define GPSH_NVSHMEM_VERSION_OF(TYPE) ((1 << 16) + (int)sizeof(TYPE))

// Names the members of a team to be (nvshmemx_team_init): one of them makes it, and hands it on.
typedef uint64_t nvshmemx_team_uniqueid_t;

typedef struct nvshmem_team_config_v2 {
    int version;
    int num_contexts;
    nvshmemx_team_uniqueid_t uniqueid;
    char padding[48];
} nvshmem_team_config_v2;
typedef nvshmem_team_config_v2 nvshmem_team_config_v1;
typedef nvshmem_team_config_v2 nvshmem_team_config_t;
#define NVSHMEM_TEAM_NUM_CONTEXTS             1L
#define NVSHMEM_TEAM_CONFIG_MASK_NUM_CONTEXTS 1L
#define NVSHMEM_TEAM_CONFIG_MASK_UNIQUEID     2L
#define NVSHMEMX_TEAM_UNIQUEID_INITIALIZER    0
#define NVSHMEM_TEAM_CONFIG_INITIALIZER                                                            \
    {                                                                                              \
        GPSH_NVSHMEM_VERSION_OF(nvshmem_team_config_t), INT_MAX, 0,                                \
        {                                                                                          \
            0                                                                                      \
        }                                                                                          \
    }

// ---- How to join ----

typedef struct nvshmemx_uniqueid_v1 {
    int version;
    char internal[124];
} nvshmemx_uniqueid_v1;
typedef nvshmemx_uniqueid_v1 nvshmemx_uniqueid_t;
#define NVSHMEMX_UNIQUEID_INITIALIZER                                                              \
    {                                                                                              \
        GPSH_NVSHMEM_VERSION_OF(nvshmemx_uniqueid_t),                                              \
        {                                                                                          \
            0                                                                                      \
        }                                                                                          \
    }

typedef struct nvshmemx_uniqueid_args_v1 {
    int version;
    nvshmemx_uniqueid_v1 *id;
    int myrank;
    int nranks;
} nvshmemx_uniqueid_args_v1;
typedef nvshmemx_uniqueid_args_v1 nvshmemx_uniqueid_args_t;
#define NVSHMEMX_UNIQUEID_ARGS_INITIALIZER                                                         \
    {                                                                                              \
        GPSH_NVSHMEM_VERSION_OF(nvshmemx_uniqueid_args_t), NULL, 0, 0                              \
    }

typedef struct nvshmemx_init_args_v1 {
    int version;
    nvshmemx_uniqueid_args_v1 uid_args;
    int cuda_device_id; // -1: the one that is current, or the library's choice
    char content[92];
} nvshmemx_init_args_v1;
typedef nvshmemx_init_args_v1 nvshmemx_init_args_t;
#define NVSHMEMX_INIT_ARGS_INITIALIZER                                                             \
    {                                                                                              \
        GPSH_NVSHMEM_VERSION_OF(nvshmemx_init_args_t), NVSHMEMX_UNIQUEID_ARGS_INITIALIZER, -1,     \
        {                                                                                          \
            0                                                                                      \
        }                                                                                          \
    }

typedef struct nvshmemx_init_attr_v1 {
    int version;
    void *mpi_comm; // address of an MPI_Comm
    nvshmemx_init_args_v1 args;
} nvshmemx_init_attr_v1;
typedef nvshmemx_init_attr_v1 nvshmemx_init_attr_t;
#define NVSHMEMX_INIT_ATTR_INITIALIZER                                                             \
    {                                                                                              \
        GPSH_NVSHMEM_VERSION_OF(nvshmemx_init_attr_t), NULL, NVSHMEMX_INIT_ARGS_INITIALIZER        \
    }

GPUSHMEM_STATIC_ASSERT(sizeof(nvshmem_team_config_t) == 64, "compiled into programs");
GPUSHMEM_STATIC_ASSERT(sizeof(nvshmemx_uniqueid_t) == 128, "compiled into programs");
GPUSHMEM_STATIC_ASSERT(sizeof(nvshmemx_uniqueid_args_t) == 24, "compiled into programs");
GPUSHMEM_STATIC_ASSERT(sizeof(nvshmemx_init_args_t) == 128, "compiled into programs");
GPUSHMEM_STATIC_ASSERT(sizeof(nvshmemx_init_attr_t) == 144, "compiled into programs");

// Flags of nvshmemx_init_attr. Without any: by the launcher.
enum gpsh_nvshmem_init_flag {
    NVSHMEMX_INIT_THREAD_PES = 1, // PEs that are threads: refused
    NVSHMEMX_INIT_WITH_MPI_COMM = 2,
    NVSHMEMX_INIT_WITH_SHMEM = 4,
    NVSHMEMX_INIT_WITH_UNIQUEID = 8,
    NVSHMEMX_INIT_MAX = INT_MIN, // no flag
};

// What nvshmemx_init_status says; 2 and more can be used.
enum gpsh_nvshmem_status {
    NVSHMEM_STATUS_NOT_INITIALIZED = 0,
    NVSHMEM_STATUS_IS_BOOTSTRAPPED = 1,
    NVSHMEM_STATUS_IS_INITIALIZED = 2,
    NVSHMEM_STATUS_LIMITED_MPG = 3,
    NVSHMEM_STATUS_FULL_MPG = 4,
    NVSHMEM_STATUS_INVALID = INT_MAX,
};

enum gpsh_nvshmem_thread_level {
    NVSHMEM_THREAD_SINGLE = 0,
    NVSHMEM_THREAD_FUNNELED = 1,
    NVSHMEM_THREAD_SERIALIZED = 2,
    NVSHMEM_THREAD_MULTIPLE = 3,
};

// ---- Errors: what functions that return int return beside 0 ----

enum nvshmemx_status {
    NVSHMEMX_SUCCESS = 0,
    NVSHMEMX_ERROR_INVALID_VALUE = 1,
    NVSHMEMX_ERROR_OUT_OF_MEMORY = 2,
    NVSHMEMX_ERROR_NOT_SUPPORTED = 3,
    NVSHMEMX_ERROR_SYMMETRY = 4,
    NVSHMEMX_ERROR_GPU_NOT_SELECTED = 5,
    NVSHMEMX_ERROR_COLLECTIVE_LAUNCH_FAILED = 6,
    NVSHMEMX_ERROR_INTERNAL = 7,
    NVSHMEMX_ERROR_SENTINEL = INT_MAX,
};

// ---- Comparisons, signals ----

enum gpsh_nvshmem_cmp {
    NVSHMEM_CMP_EQ = 0,
    NVSHMEM_CMP_NE = 1,
    NVSHMEM_CMP_GT = 2,
    NVSHMEM_CMP_LE = 3,
    NVSHMEM_CMP_LT = 4,
    NVSHMEM_CMP_GE = 5,
    NVSHMEM_CMP_SENTINEL = INT_MAX,
};

enum gpsh_nvshmem_signal_op {
    NVSHMEM_SIGNAL_SET = 9,
    NVSHMEM_SIGNAL_ADD = 10,
};

// ---- Shared memory for puts that go through it ----

typedef enum nvshmemx_smem_amount {
    NVSHMEMX_SMEM_RECOMMENDED = 0,
    NVSHMEMX_SMEM_MINIMUM = 1,
    NVSHMEMX_SMEM_BARRIERS_ONLY = 2,
} nvshmemx_smem_amount_t;

// ---- Queue pairs: contexts, by their number ----
// Programs use these by name, so the values are gpushmem's own.

typedef int nvshmemx_qp_handle_t;
enum gpsh_nvshmem_qp {
    NVSHMEMX_QP_DEFAULT = 0,
    NVSHMEMX_QP_ANY = -1,
    NVSHMEMX_QP_ALL = -2,
    NVSHMEMX_QP_HOST = -3,
};
enum gpsh_nvshmem_pe {
    NVSHMEM_PE_INVALID = -1,
    NVSHMEMX_PE_ANY = -2,
    NVSHMEMX_PE_ALL = -3,
};

// ---- Type families: X(NAME, TYPE, AS, CTYPE) ----
// NAME and TYPE are the program's, AS and CTYPE those of the gpushmem function that does it: the
// types of 16-bit floating point values differ between compilers.
// clang-format off
#define GPSH_NVS_AMO_BITWISE_TYPES(X) \
    X(uint, unsigned int, uint, unsigned int) \
    X(ulong, unsigned long, ulong, unsigned long) \
    X(ulonglong, unsigned long long, ulonglong, unsigned long long) \
    X(int32, int32_t, int32, int32_t) \
    X(int64, int64_t, int64, int64_t) \
    X(uint32, uint32_t, uint32, uint32_t) \
    X(uint64, uint64_t, uint64, uint64_t)
#define GPSH_NVS_WIDE_TYPES(X) \
    X(int, int, int, int) \
    X(long, long, long, long) \
    X(longlong, long long, longlong, long long) \
    X(size, size_t, size, size_t) \
    X(ptrdiff, ptrdiff_t, ptrdiff, ptrdiff_t) \
    GPSH_NVS_AMO_BITWISE_TYPES(X)
#define GPSH_NVS_SYNC_TYPES(X) \
    X(short, short, short, short) \
    X(ushort, unsigned short, ushort, unsigned short) \
    GPSH_NVS_WIDE_TYPES(X)
#define GPSH_NVS_INTEGER_TYPES(X) \
    X(char, char, char, char) \
    X(schar, signed char, schar, signed char) \
    X(uchar, unsigned char, uchar, unsigned char) \
    X(int8, int8_t, int8, int8_t) \
    X(int16, int16_t, int16, int16_t) \
    X(uint8, uint8_t, uint8, uint8_t) \
    X(uint16, uint16_t, uint16, uint16_t) \
    GPSH_NVS_SYNC_TYPES(X)
#define GPSH_NVS_FLOAT_TYPES(X) \
    X(float, float, float, float) \
    X(double, double, double, double)
#define GPSH_NVS_RMA_TYPES(X) \
    X(half, gpsh_nvshmem_half, half, gpushmem_half) \
    X(bfloat16, gpsh_nvshmem_bfloat16, bfloat16, gpushmem_bfloat16) \
    GPSH_NVS_FLOAT_TYPES(X) \
    GPSH_NVS_INTEGER_TYPES(X)
// inc, add, compare_swap and their kin.
#define GPSH_NVS_AMO_TYPES(X) GPSH_NVS_WIDE_TYPES(X)
// fetch, set, swap.
#define GPSH_NVS_AMO_EXTENDED_TYPES(X) \
    GPSH_NVS_FLOAT_TYPES(X) \
    GPSH_NVS_WIDE_TYPES(X)
#define GPSH_NVS_REDUCE_TYPES(X) GPSH_NVS_RMA_TYPES(X)
// clang-format on

#endif
