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

// Copies element rank, rank + size, ... in words of type W, four loads in flight.
template <typename W> GPSH_DEV void gpsh_dev_copy_words(char *to, const char *from, size_t words, unsigned rank, unsigned size)
{
    W *t = (W *)to;
    const W *f = (const W *)from;
    size_t i = rank;
    for (; i + 3 * (size_t)size < words; i += 4 * (size_t)size) {
        W a = f[i], b = f[i + size], c = f[i + 2 * (size_t)size], d = f[i + 3 * (size_t)size];
        t[i] = a;
        t[i + size] = b;
        t[i + 2 * (size_t)size] = c;
        t[i + 3 * (size_t)size] = d;
    }
    for (; i < words; i += size)
        t[i] = f[i];
}

#if defined(__CUDACC__)
typedef uint4 gpsh_dev_word128;

// All threads of the scope take part; no thread waits for another here.
template <class Scope> GPSH_DEV_CALL void gpsh_dev_copy_many(char *to, const char *from, size_t bytes)
{
    unsigned rank = Scope::rank(), size = Scope::size();
    uintptr_t both = (uintptr_t)to | (uintptr_t)from;
    size_t width = both % 16 == 0 ? 16 : both % 8 == 0 ? 8 : both % 4 == 0 ? 4 : 1, words = bytes / width;
    if (width == 16)
        gpsh_dev_copy_words<gpsh_dev_word128>(to, from, words, rank, size);
    else if (width == 8)
        gpsh_dev_copy_words<gpsh_dev_word64>(to, from, words, rank, size);
    else if (width == 4)
        gpsh_dev_copy_words<gpsh_dev_word32>(to, from, words, rank, size);
    else
        gpsh_dev_copy_words<char>(to, from, words, rank, size);
    gpsh_dev_copy_words<char>(to + words * width, from + words * width, bytes - words * width, rank, size);
}
#else
// Each CPU thread copies one piece, in whole cache lines.
template <class Scope> GPSH_DEV_CALL void gpsh_dev_copy_many(char *to, const char *from, size_t bytes)
{
    size_t piece = (bytes / Scope::size() + 63) / 64 * 64, first = piece * Scope::rank();
    if (Scope::size() == 1)
        memmove(to, from, bytes); // a put to oneself may overlap
    else if (first < bytes)
        memcpy(to + first, from + first, bytes - first < piece ? bytes - first : piece);
}
#endif

// Copies to or from a mapped peer. An aligned copy of up to 8 bytes is one store, so that programs may put their flags.
template <class Scope> GPSH_DEV void gpsh_dev_copy(char *to, const char *from, size_t bytes)
{
    bool small = bytes == 8 || bytes == 4 || bytes == 2 || bytes == 1;
    if (!small || ((uintptr_t)to | (uintptr_t)from) % bytes) {
        if (bytes)
            gpsh_dev_copy_many<Scope>(to, from, bytes);
    } else if (Scope::rank() == 0) {
        uint64_t value = bytes == 8   ? *(const gpsh_dev_word64 *)from
                         : bytes == 4 ? *(const gpsh_dev_word32 *)from
                         : bytes == 2 ? *(const gpsh_dev_word16 *)from
                                      : *(const uint8_t *)from;
        gpsh_dev_store_small(to, value, bytes);
    }
}

// n elements of `size` bytes; strides in elements.
template <class Scope>
GPSH_DEV void gpsh_dev_copy_strided(char *to, const char *from, ptrdiff_t to_stride, ptrdiff_t from_stride, size_t n, size_t size)
{
    for (size_t i = Scope::rank(); i < n; i += Scope::size())
        gpsh_dev_copy<gpsh_scope_thread>(to + (ptrdiff_t)i * to_stride * (ptrdiff_t)size,
                                         from + (ptrdiff_t)i * from_stride * (ptrdiff_t)size, size);
}

#endif
