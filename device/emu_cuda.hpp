// SPDX-License-Identifier: BSD-3-Clause
// The part of CUDA C++ that kernels on CPU threads may use beside threads and barriers (emu.hpp):
// vector types, warp functions, atomics, bit functions, clocks. docs/emulation.md lists it.
#ifndef GPUSHMEM_EMU_CUDA_HPP
#define GPUSHMEM_EMU_CUDA_HPP

#include <type_traits>

#include "gpushmem/device/emu_launch.hpp"

#undef __align__
#undef __shared__
#define __align__(bytes) alignas(bytes)
// One declaration cannot be memory of each block where blocks are threads of one process.
#define __shared__                                                                                 \
    static_assert(false,                                                                           \
                  "on CPU threads shared memory is declared by GPUSHMEM_SHARED(type, name, "       \
                  "count), or GPUSHMEM_DYNAMIC_SHARED(type, name); both work with nvcc");

// ---- Vector types ----

#ifndef __VECTOR_TYPES_H__
// X(name, element, alignment of 2, alignment of 4): the alignments are CUDA's.
#define GPSH_EMU_VECTORS(X)                                                                        \
    X(char, signed char, 2, 4)                                                                     \
    X(uchar, unsigned char, 2, 4)                                                                  \
    X(short, short, 4, 8)                                                                          \
    X(ushort, unsigned short, 4, 8)                                                                \
    X(int, int, 8, 16)                                                                             \
    X(long, long, 16, 16)                                                                          \
    X(ulong, unsigned long, 16, 16)                                                                \
    X(longlong, long long, 16, 16)                                                                 \
    X(ulonglong, unsigned long long, 16, 16)                                                       \
    X(float, float, 8, 16)                                                                         \
    X(double, double, 16, 16)
#define GPSH_EMU_VECTOR(NAME, TYPE, ALIGN2, ALIGN4)                                                \
    struct NAME##1                                                                                 \
    {                                                                                              \
        TYPE x;                                                                                    \
    };                                                                                             \
    struct alignas(ALIGN2) NAME##2                                                                 \
    {                                                                                              \
        TYPE x, y;                                                                                 \
    };                                                                                             \
    struct alignas(ALIGN4) NAME##4                                                                 \
    {                                                                                              \
        TYPE x, y, z, w;                                                                           \
    };                                                                                             \
    inline NAME##1 make_##NAME##1(TYPE x)                                                          \
    {                                                                                              \
        return {x};                                                                                \
    }                                                                                              \
    inline NAME##2 make_##NAME##2(TYPE x, TYPE y)                                                  \
    {                                                                                              \
        return {x, y};                                                                             \
    }                                                                                              \
    inline NAME##4 make_##NAME##4(TYPE x, TYPE y, TYPE z, TYPE w)                                  \
    {                                                                                              \
        return {x, y, z, w};                                                                       \
    }
#define GPSH_EMU_VECTOR3(NAME, TYPE, ALIGN2, ALIGN4)                                               \
    struct NAME##3                                                                                 \
    {                                                                                              \
        TYPE x, y, z;                                                                              \
    };                                                                                             \
    inline NAME##3 make_##NAME##3(TYPE x, TYPE y, TYPE z)                                          \
    {                                                                                              \
        return {x, y, z};                                                                          \
    }
GPSH_EMU_VECTORS(GPSH_EMU_VECTOR)
GPSH_EMU_VECTORS(GPSH_EMU_VECTOR3)
GPSH_EMU_VECTOR(uint, unsigned, 8, 16) // emu.hpp has uint3
inline uint3 make_uint3(unsigned x, unsigned y, unsigned z)
{
    return {x, y, z};
}
#undef GPSH_EMU_VECTOR3
#undef GPSH_EMU_VECTOR
#undef GPSH_EMU_VECTORS
#endif

// ---- Warps ----

// What lane `from` of the warp brings, in each thread; `width` divides the warp into equal parts,
// and a lane outside of the caller's part brings the caller's own value.
template <typename T> inline T gpsh_emu_shuffle(T value, int from, bool inside)
{
    static_assert(sizeof(T) <= 8, "a shuffle moves up to 8 bytes");
    gpsh_emu_warp &warp = gpsh_emu_current_warp();
    memcpy(&warp.exchange[gpsh_emu_thread % warpSize], &value, sizeof value);
    warp.barrier.wait();
    if (inside)
        memcpy(&value, &warp.exchange[from], sizeof value);
    warp.barrier.wait();
    return value;
}

inline int gpsh_emu_lane(void)
{
    return (int)(gpsh_emu_thread % warpSize);
}

template <typename T> inline T __shfl_sync(unsigned, T value, int lane, int width = warpSize)
{
    return gpsh_emu_shuffle(value, gpsh_emu_lane() / width * width + (lane & (width - 1)), true);
}

template <typename T> inline T __shfl_up_sync(unsigned, T value, unsigned by, int width = warpSize)
{
    int from = gpsh_emu_lane() - (int)by;
    return gpsh_emu_shuffle(value, from, from >= gpsh_emu_lane() / width * width);
}

template <typename T>
inline T __shfl_down_sync(unsigned, T value, unsigned by, int width = warpSize)
{
    int from = gpsh_emu_lane() + (int)by;
    return gpsh_emu_shuffle(value, from, from < (gpsh_emu_lane() / width + 1) * width);
}

template <typename T> inline T __shfl_xor_sync(unsigned, T value, int mask, int width = warpSize)
{
    int from = gpsh_emu_lane() ^ mask;
    return gpsh_emu_shuffle(value, from, from < (gpsh_emu_lane() / width + 1) * width);
}

// Bit i: lane i is in the mask, has not returned, and its predicate is not 0.
inline unsigned __ballot_sync(unsigned mask, int predicate)
{
    gpsh_emu_warp &warp = gpsh_emu_current_warp();
    unsigned votes = 0;
    warp.exchange[gpsh_emu_lane()] = predicate != 0;
    warp.barrier.wait();
    for (int lane = 0; lane < warpSize; lane++)
        votes |= (unsigned)(warp.exchange[lane] == 1) << lane;
    warp.barrier.wait();
    return votes & mask;
}

inline int __any_sync(unsigned mask, int predicate)
{
    return __ballot_sync(mask, predicate) != 0;
}

inline int __all_sync(unsigned mask, int predicate)
{
    return __ballot_sync(mask, !predicate) == 0;
}

// ---- Atomics ----

// Of any type with ==, by compare and swap.
template <typename T, typename F> inline T gpsh_emu_update(T *word, F change)
{
    T old, next;
    __atomic_load(word, &old, __ATOMIC_ACQUIRE);
    do
        next = change(old);
    while (!__atomic_compare_exchange(word, &old, &next, true, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
    return old;
}

// X(name, what it makes of `old` and `value`), each at the three scopes of CUDA.
#define GPSH_EMU_ATOMICS(X)                                                                        \
    X(atomicAdd, (T)(old + value))                                                                 \
    X(atomicSub, (T)(old - value))                                                                 \
    X(atomicExch, value)                                                                           \
    X(atomicMin, (value < old ? value : old))                                                      \
    X(atomicMax, (old < value ? value : old))                                                      \
    X(atomicAnd, (T)(old & value))                                                                 \
    X(atomicOr, (T)(old | value))                                                                  \
    X(atomicXor, (T)(old ^ value))                                                                 \
    X(atomicInc, (T)(old >= value ? 0 : old + 1))                                                  \
    X(atomicDec, (T)(old == 0 || old > value ? value : old - 1))
#define GPSH_EMU_ATOMIC_AT(NAME, NEXT)                                                             \
    template <typename T> inline T NAME(T *word, typename std::common_type<T>::type value)         \
    {                                                                                              \
        return gpsh_emu_update(word, [&](T old) { return (void)old, NEXT; });                      \
    }
#define GPSH_EMU_ATOMIC(NAME, NEXT)                                                                \
    GPSH_EMU_ATOMIC_AT(NAME, NEXT)                                                                 \
    GPSH_EMU_ATOMIC_AT(NAME##_block, NEXT)                                                         \
    GPSH_EMU_ATOMIC_AT(NAME##_system, NEXT)
GPSH_EMU_ATOMICS(GPSH_EMU_ATOMIC)
#undef GPSH_EMU_ATOMIC
#undef GPSH_EMU_ATOMIC_AT
#undef GPSH_EMU_ATOMICS

#define GPSH_EMU_CAS(NAME)                                                                         \
    template <typename T>                                                                          \
    inline T NAME(T *word, typename std::common_type<T>::type compare,                             \
                  typename std::common_type<T>::type value)                                        \
    {                                                                                              \
        __atomic_compare_exchange_n(word, &compare, value, false, __ATOMIC_ACQ_REL,                \
                                    __ATOMIC_ACQUIRE);                                             \
        return compare;                                                                            \
    }
GPSH_EMU_CAS(atomicCAS)
GPSH_EMU_CAS(atomicCAS_block)
GPSH_EMU_CAS(atomicCAS_system)
#undef GPSH_EMU_CAS

// ---- Bits, loads, clocks, minimum and maximum ----

inline int __popc(unsigned word)
{
    return __builtin_popcount(word);
}
inline int __popcll(unsigned long long word)
{
    return __builtin_popcountll(word);
}
inline int __clz(int word)
{
    return word ? __builtin_clz((unsigned)word) : 32;
}
inline int __clzll(long long word)
{
    return word ? __builtin_clzll((unsigned long long)word) : 64;
}
inline int __ffs(int word)
{
    return __builtin_ffs(word);
}
inline int __ffsll(long long word)
{
    return __builtin_ffsll(word);
}

template <typename T> inline T __ldg(const T *from)
{
    return *from;
}
template <typename T> inline T __ldcg(const T *from)
{
    return *from;
}

inline long long clock64(void) // nanoseconds here
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (long long)now.tv_sec * 1000000000 + now.tv_nsec;
}

inline void __nanosleep(unsigned ns)
{
    struct timespec nap = {0, (long)(ns < 999999999 ? ns : 999999999)};
    nanosleep(&nap, NULL);
}

template <typename A, typename B>
inline constexpr typename std::common_type<A, B>::type min(A a, B b)
{
    typedef typename std::common_type<A, B>::type both;
    return (both)b < (both)a ? (both)b : (both)a;
}
template <typename A, typename B>
inline constexpr typename std::common_type<A, B>::type max(A a, B b)
{
    typedef typename std::common_type<A, B>::type both;
    return (both)a < (both)b ? (both)b : (both)a;
}

#endif
