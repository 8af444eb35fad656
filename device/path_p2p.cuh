// SPDX-License-Identifier: BSD-3-Clause
// The direct path: loads and stores on a peer's heap that is mapped here.
#ifndef GPUSHMEM_DEVICE_PATH_P2P_CUH
#define GPUSHMEM_DEVICE_PATH_P2P_CUH

#include "gpushmem/device/scope.cuh"

// Stores `bytes` = 1, 2, 4 or 8 of value; one store where the address is aligned.
GPSH_DEV void gpsh_dev_store_small(void *to, uint64_t value, size_t bytes)
{
    uintptr_t address = (uintptr_t)to;
    if (bytes == 8 && !(address & 7))
        gpsh_dev_store64_sys(to, value);
    else if (bytes == 4 && !(address & 3))
        gpsh_dev_store32_sys(to, (uint32_t)value);
    else if (bytes == 2 && !(address & 1))
        gpsh_dev_store16_sys(to, (uint16_t)value);
    else
        for (size_t i = 0; i < bytes; i++)
            gpsh_dev_store8_sys((char *)to + i, (uint8_t)(value >> 8 * i));
}

// Which way a copy goes, and how it accesses words. Puts: from any memory here, which may be local
// or shared, to a peer.
struct gpsh_way_put {
    static constexpr bool is_put = true;
    template <typename W> static __device__ __forceinline__ W load(const W *from)
    {
        return *from;
    }
    static __device__ __forceinline__ void store(char *to, uint64_t value, size_t bytes)
    {
        gpsh_dev_store_small(to, value, bytes);
    }
};

// Gets: from a peer, whose words change without this multiprocessor's cache hearing of it, to any
// memory here.
struct gpsh_way_get {
    static constexpr bool is_put = false;
    template <typename W> static __device__ __forceinline__ W load(const W *from)
    {
        W word;
        gpsh_dev_load_uncached(&word, from);
        return word;
    }
    static __device__ __forceinline__ void store(char *to, uint64_t value, size_t bytes)
    {
#if defined(__CUDA_ARCH__)
        if (bytes == 8)
            *(gpsh_dev_word64 *)to = value;
        else if (bytes == 4)
            *(gpsh_dev_word32 *)to = (uint32_t)value;
        else if (bytes == 2)
            *(gpsh_dev_word16 *)to = (uint16_t)value;
        else
            *(uint8_t *)to = (uint8_t)value;
#else
        gpsh_dev_store_small(to, value, bytes);
#endif
    }
};

// Copies word rank, rank + size, ... with LOADS loads in flight, also in the last, incomplete
// round: over NVLink a load takes 0.7 us, so the bytes in flight are the speed.
template <class From, typename W, int LOADS>
GPSH_DEV void gpsh_dev_copy_words(char *to, const char *from, size_t words, unsigned rank,
                                  unsigned size)
{
    W *t = (W *)to;
    const W *f = (const W *)from;
    size_t i = rank;
    for (; i + (LOADS - 1) * (size_t)size < words; i += LOADS * (size_t)size) {
        W word[LOADS];
        GPSH_UNROLL
        for (int k = 0; k < LOADS; k++)
            word[k] = From::load(&f[i + k * (size_t)size]);
        GPSH_UNROLL
        for (int k = 0; k < LOADS; k++)
            t[i + k * (size_t)size] = word[k];
    }
    if (i >= words)
        return;
    W word[LOADS] = {};
    GPSH_UNROLL
    for (int k = 0; k < LOADS - 1; k++)
        if (i + k * (size_t)size < words)
            word[k] = From::load(&f[i + k * (size_t)size]);
    GPSH_UNROLL
    for (int k = 0; k < LOADS - 1; k++)
        if (i + k * (size_t)size < words)
            t[i + k * (size_t)size] = word[k];
}

#if defined(__CUDACC__)
typedef uint4 gpsh_dev_word128;

// Up to the first address where both sides can be accessed in words of `width`, then words, then
// what is left.
template <class From, typename W, int LOADS>
GPSH_DEV void gpsh_dev_copy_aligned(char *to, const char *from, size_t bytes, unsigned rank,
                                    unsigned size)
{
    size_t head = -(uintptr_t)to & (sizeof(W) - 1);
    head = head < bytes ? head : bytes;
    size_t words = (bytes - head) / sizeof(W), tail = bytes - head - words * sizeof(W),
           done = head + words * sizeof(W);
    for (size_t i = rank; i < head; i += size)
        to[i] = From::load(&from[i]);
    gpsh_dev_copy_words<From, W, LOADS>(to + head, from + head, words, rank, size);
    for (size_t i = rank; i < tail; i += size)
        to[done + i] = From::load(&from[done + i]);
}

// All threads of the scope take part; no thread waits for another here.
template <class Scope, class From>
GPSH_DEV void gpsh_dev_copy_many(char *to, const char *from, size_t bytes)
{
    unsigned rank = Scope::rank(), size = Scope::size();
    uintptr_t apart = (uintptr_t)to ^ (uintptr_t)from;
    if (apart % 16 == 0)
        gpsh_dev_copy_aligned<From, gpsh_dev_word128, Scope::loads>(to, from, bytes, rank, size);
    else if (apart % 8 == 0)
        gpsh_dev_copy_aligned<From, gpsh_dev_word64, 8>(to, from, bytes, rank, size);
    else if (apart % 4 == 0)
        gpsh_dev_copy_aligned<From, gpsh_dev_word32, 8>(to, from, bytes, rank, size);
    else
        gpsh_dev_copy_words<From, char, 8>(to, from, bytes, rank, size);
}
#else
// Each CPU thread copies one piece, in whole cache lines.
template <class Scope, class From>
GPSH_DEV void gpsh_dev_copy_many(char *to, const char *from, size_t bytes)
{
    size_t piece = (bytes / Scope::size() + 64) / 64 * 64, first = piece * Scope::rank();
    if (Scope::size() == 1)
        memmove(to, from, bytes); // a put to oneself may overlap
    else if (first < bytes)
        memcpy(to + first, from + first, bytes - first < piece ? bytes - first : piece);
}
#endif

// A copy of up to 8 bytes that is one store, so that programs may put their flags.
GPSH_DEV bool gpsh_dev_is_word(const void *to, const void *from, size_t bytes)
{
    bool power = bytes == 8 || bytes == 4 || bytes == 2 || bytes == 1;
    return power && !(((uintptr_t)to | (uintptr_t)from) & (bytes - 1));
}

template <class From> GPSH_DEV void gpsh_dev_copy_word(char *to, const char *from, size_t bytes)
{
    uint64_t value = bytes == 8   ? From::load((const gpsh_dev_word64 *)from)
                     : bytes == 4 ? From::load((const gpsh_dev_word32 *)from)
                     : bytes == 2 ? From::load((const gpsh_dev_word16 *)from)
                                  : From::load((const uint8_t *)from);
    From::store(to, value, bytes);
}

template <class Scope, class From>
GPSH_DEV_CALL void gpsh_dev_copy_any(char *to, const char *from, size_t bytes)
{
    GPSH_DEV_BOUNDS();
    if (!gpsh_dev_is_word(to, from, bytes))
        gpsh_dev_copy_many<Scope, From>(to, from, bytes);
    else if (Scope::rank() == 0)
        gpsh_dev_copy_word<From>(to, from, bytes);
}

// Copies to or from a mapped peer. A call, except for the word of a lone thread.
template <class Scope, class From>
GPSH_DEV void gpsh_dev_copy(char *to, const char *from, size_t bytes)
{
    if (Scope::alone && gpsh_dev_is_word(to, from, bytes))
        gpsh_dev_copy_word<From>(to, from, bytes);
    else if (bytes)
        gpsh_dev_copy_any<Scope, From>(to, from, bytes);
}

// n elements of `size` bytes; strides in elements.
template <class Scope, class From>
GPSH_DEV void gpsh_dev_copy_strided(char *to, const char *from, ptrdiff_t to_stride,
                                    ptrdiff_t from_stride, size_t n, size_t size)
{
    for (size_t i = Scope::rank(); i < n; i += Scope::size())
        gpsh_dev_copy<gpsh_scope_thread, From>(to + (ptrdiff_t)i * to_stride * (ptrdiff_t)size,
                                               from + (ptrdiff_t)i * from_stride * (ptrdiff_t)size,
                                               size);
}

#endif
