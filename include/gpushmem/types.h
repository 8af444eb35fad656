// SPDX-License-Identifier: BSD-3-Clause
// Types and constants shared by the host API (gpushmem.h) and the device API (device.cuh). Plain
// C11, C++17 and CUDA.
#ifndef GPUSHMEM_TYPES_H
#define GPUSHMEM_TYPES_H

#include <stddef.h>
#include <stdint.h>

#define GPUSHMEM_VERSION_MAJOR 0
#define GPUSHMEM_VERSION_MINOR 1
#define GPUSHMEM_VERSION_PATCH 0

// Of every function of the library. Only who builds it needs the attribute, which costs a compiler
// a twentieth of its time for these headers.
#if !defined(GPUSHMEM_API)
#if defined(GPSH_EXPORTS) && defined(__GNUC__)
#define GPUSHMEM_API __attribute__((visibility("default")))
#else
#define GPUSHMEM_API
#endif
#endif

#if defined(__CUDACC__)
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#endif
// 16-bit floating point values: as bits, but for kernels CUDA's types. On CPU threads these are
// CUDA's if the program has included CUDA's headers before this one.
#if defined(__CUDACC__) ||                                                                         \
    (defined(__cplusplus) && defined(GPUSHMEM_EMULATION) && defined(__CUDA_FP16_H__))
typedef __half gpushmem_half;
#else
typedef struct gpushmem_half {
    uint16_t bits;
} gpushmem_half;
#endif
#if defined(__CUDACC__) ||                                                                         \
    (defined(__cplusplus) && defined(GPUSHMEM_EMULATION) && defined(__CUDA_BF16_H__))
typedef __nv_bfloat16 gpushmem_bfloat16;
#else
typedef struct gpushmem_bfloat16 {
    uint16_t bits;
} gpushmem_bfloat16;
#endif

// A value, and where it is: of gpushmem_double2_maxloc_reduce.
typedef struct gpushmem_double2 {
    double x, y;
} gpushmem_double2;

// Status codes: 0 is success, every failure is negative. gpushmem_strerror() names them, and
// gpushmem_last_error() holds the calling thread's last sentence about one.
enum gpushmem_status {
    GPUSHMEM_OK = 0,
    GPUSHMEM_ERR_INVALID = -1,   // an argument outside what its contract allows
    GPUSHMEM_ERR_STATE = -2,     // called before init, after finalize, or in the wrong order
    GPUSHMEM_ERR_PE = -3,        // PE number outside 0 .. n_pes-1
    GPUSHMEM_ERR_ADDRESS = -4,   // address range not inside the symmetric heap
    GPUSHMEM_ERR_ALIGNMENT = -5, // address of an atomic not a multiple of the operand's size
    GPUSHMEM_ERR_NO_MEMORY = -6, // heap, host memory, GPU memory or memlock exhausted
    GPUSHMEM_ERR_SETTING = -7,   // malformed or out-of-range GPUSHMEM_* setting
    GPUSHMEM_ERR_BOOTSTRAP = -8, // launcher or PMIx server failed or is unreachable
    // a peer published data that is truncated, of another version, or contradictory
    GPUSHMEM_ERR_PEER_DATA = -9,
    GPUSHMEM_ERR_TRANSPORT = -10,   // a transport failed, or a required one is not available
    GPUSHMEM_ERR_UNREACHABLE = -11, // no transport reaches the PE
    GPUSHMEM_ERR_PE_FAILED = -12,   // the PE died, or does not answer and may have
    GPUSHMEM_ERR_TIMEOUT = -13,     // a bounded wait ran out
    // a command ring held what is no command, or a kernel waited too long for room in it
    GPUSHMEM_ERR_RING = -14,
    // PEs made different collective calls, or passed different arguments
    GPUSHMEM_ERR_ASYMMETRY = -15,
    GPUSHMEM_ERR_UNSUPPORTED = -16, // not possible with this build, machine or transport
    GPUSHMEM_ERR_SYSTEM = -17,      // an operating system call failed
    GPUSHMEM_ERR_CUDA = -18,        // a CUDA call failed
};

// Thread levels of gpushmem_init_thread, as in OpenSHMEM.
enum gpushmem_thread_level {
    GPUSHMEM_THREAD_SINGLE = 0,
    GPUSHMEM_THREAD_FUNNELED = 1,
    GPUSHMEM_THREAD_SERIALIZED = 2,
    GPUSHMEM_THREAD_MULTIPLE = 3,
};

// Comparisons of wait_until and test. The numbers are those that NVSHMEM's clients were compiled
// with, so that a binary or a foreign-language binding may pass its own.
enum gpushmem_cmp {
    GPUSHMEM_CMP_EQ = 0,
    GPUSHMEM_CMP_NE = 1,
    GPUSHMEM_CMP_GT = 2,
    GPUSHMEM_CMP_LE = 3,
    GPUSHMEM_CMP_LT = 4,
    GPUSHMEM_CMP_GE = 5,
};

// What a signal operation does to the 64-bit signal word. The numbers are those of NVSHMEM's
// clients, too.
enum gpushmem_signal_op {
    GPUSHMEM_SIGNAL_SET = 9,
    GPUSHMEM_SIGNAL_ADD = 10,
};

// Options of gpushmem_ctx_create, or-ed.
enum gpushmem_ctx_option {
    GPUSHMEM_CTX_SHARED = 0,     // any thread may use it
    GPUSHMEM_CTX_SERIALIZED = 1, // any thread, but never two at a time
    GPUSHMEM_CTX_PRIVATE = 2,    // only the creating thread
    GPUSHMEM_CTX_NOSTORE = 4,    // fence and quiet do not cover stores through gpushmem_ptr
};

// A team: PEs that call collective functions together, numbered 0 .. n-1 within the team. A plain
// number, the same on all members, for the host, streams and kernels (gpushmem/team.h).
typedef int32_t gpushmem_team_t;

// The numbers of NVSHMEM's clients.
#define GPUSHMEM_TEAM_INVALID   ((gpushmem_team_t)-1)
#define GPUSHMEM_TEAM_WORLD     ((gpushmem_team_t)0) // all PEs
#define GPUSHMEM_TEAM_SHARED    ((gpushmem_team_t)1) // those whose heaps this PE can load and store
#define GPUSHMEM_TEAM_NODE      ((gpushmem_team_t)2) // those of this node
#define GPUSHMEM_TEAM_SAME_RANK ((gpushmem_team_t)3) // those with this PE's number on their nodes
// Those whose heaps are on this PE's GPU; with a heap in host memory, this PE alone.
#define GPUSHMEM_TEAM_SAME_GPU    ((gpushmem_team_t)4)
#define GPUSHMEM_TEAM_GPU_LEADERS ((gpushmem_team_t)5) // the first PE of each SAME_GPU

// Channel 0 .. 7 of a team, for collectives in kernels: the operations of a channel are one
// sequence, so blocks that work side by side take one each. Channel 0 is the team itself. Teams
// without memory for streams (GPUSHMEM_TEAM_MEMORY) have no other one.
#define GPUSHMEM_TEAM_CHANNEL(team, channel) ((gpushmem_team_t)((team) | (channel) << 27))

// Hints of gpushmem_ctx_session_start, and what its configuration says.
enum gpushmem_ctx_session_option {
    GPUSHMEM_CTX_SESSION_BATCH = 1, // many operations of the same kind, to the same PEs
};
enum gpushmem_ctx_session_mask {
    GPUSHMEM_CTX_SESSION_TOTAL_OPS = 1, // total_ops is set
};

// Hints of gpushmem_malloc_with_hints, or-ed.
enum gpushmem_malloc_hint {
    GPUSHMEM_MALLOC_ATOMICS_REMOTE = 1, // words that other PEs update by atomics
    GPUSHMEM_MALLOC_SIGNAL_REMOTE = 2,  // signal words that other PEs update
    GPUSHMEM_MALLOC_HOST = 4,           // in host memory, wherever the heap is
};

// Room for gpushmem_info_get_name, the NUL included.
#define GPUSHMEM_MAX_NAME_LEN 256

// Type families. X(NAME, TYPE): NAME is the word in function names, TYPE the C type.
// All integer types.
#define GPUSHMEM_INTEGER_TYPES(X)                                                                  \
    X(char, char)                                                                                  \
    X(schar, signed char)                                                                          \
    X(short, short)                                                                                \
    X(int, int)                                                                                    \
    X(long, long)                                                                                  \
    X(longlong, long long)                                                                         \
    X(uchar, unsigned char)                                                                        \
    X(ushort, unsigned short)                                                                      \
    X(uint, unsigned int)                                                                          \
    X(ulong, unsigned long)                                                                        \
    X(ulonglong, unsigned long long)                                                               \
    X(int8, int8_t)                                                                                \
    X(int16, int16_t)                                                                              \
    X(int32, int32_t)                                                                              \
    X(int64, int64_t)                                                                              \
    X(uint8, uint8_t)                                                                              \
    X(uint16, uint16_t)                                                                            \
    X(uint32, uint32_t)                                                                            \
    X(uint64, uint64_t)                                                                            \
    X(size, size_t)                                                                                \
    X(ptrdiff, ptrdiff_t)

// The 25 types of put, get, p, g, iput, iget and their kin.
#define GPUSHMEM_RMA_TYPES(X)                                                                      \
    X(bfloat16, gpushmem_bfloat16)                                                                 \
    X(half, gpushmem_half)                                                                         \
    X(float, float)                                                                                \
    X(double, double)                                                                              \
    GPUSHMEM_INTEGER_TYPES(X)

// Atomics with arithmetic: add, inc, compare_swap and their fetching forms.
#define GPUSHMEM_AMO_TYPES(X)                                                                      \
    X(int, int)                                                                                    \
    X(long, long)                                                                                  \
    X(longlong, long long)                                                                         \
    X(uint, unsigned int)                                                                          \
    X(ulong, unsigned long)                                                                        \
    X(ulonglong, unsigned long long)                                                               \
    X(int32, int32_t)                                                                              \
    X(int64, int64_t)                                                                              \
    X(uint32, uint32_t)                                                                            \
    X(uint64, uint64_t)                                                                            \
    X(size, size_t)                                                                                \
    X(ptrdiff, ptrdiff_t)

// fetch, set and swap also exist for floating point (moved as bits).
#define GPUSHMEM_AMO_EXTENDED_TYPES(X)                                                             \
    X(float, float)                                                                                \
    X(double, double)                                                                              \
    GPUSHMEM_AMO_TYPES(X)

// and, or, xor and their fetching forms.
#define GPUSHMEM_AMO_BITWISE_TYPES(X)                                                              \
    X(uint, unsigned int)                                                                          \
    X(ulong, unsigned long)                                                                        \
    X(ulonglong, unsigned long long)                                                               \
    X(int32, int32_t)                                                                              \
    X(int64, int64_t)                                                                              \
    X(uint32, uint32_t)                                                                            \
    X(uint64, uint64_t)

// Types wait_until and test work on.
#define GPUSHMEM_SYNC_TYPES(X)                                                                     \
    X(short, short)                                                                                \
    X(ushort, unsigned short)                                                                      \
    GPUSHMEM_AMO_TYPES(X)

// Reductions: and, or, xor of the integers; min and max of these; sum and prod also of complex
// numbers, of which coll.h knows the types. Integers wrap; half and bfloat16 are folded in float
// and rounded once; min and max of floating point give NaN if an operand is (its sign and payload
// may be any), and take -0 for less than +0. The order is that of the ranks, from the left.
#define GPUSHMEM_COLL_BITWISE_TYPES(X) GPUSHMEM_INTEGER_TYPES(X)
#define GPUSHMEM_COLL_ORDERED_TYPES(X)                                                             \
    GPUSHMEM_RMA_TYPES(X)                                                                          \
    X(longdouble, long double)
#define GPUSHMEM_COLL_TYPES(X)                                                                     \
    GPUSHMEM_COLL_ORDERED_TYPES(X)                                                                 \
    X(complexf, gpushmem_complexf)                                                                 \
    X(complexd, gpushmem_complexd)

// X(BITS): put8 .. get128, sized by the bits of an element.
#define GPUSHMEM_RMA_SIZES(X)                                                                      \
    X(8)                                                                                           \
    X(16)                                                                                          \
    X(32)                                                                                          \
    X(64)                                                                                          \
    X(128)

#endif
