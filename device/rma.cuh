// SPDX-License-Identifier: BSD-3-Clause
// Put, get, p, g, iput, iget: the bodies. The path is chosen per call: a mapped peer directly, any
// other through a ring.
#ifndef GPUSHMEM_DEVICE_RMA_CUH
#define GPUSHMEM_DEVICE_RMA_CUH

#include "gpushmem/device/path_p2p.cuh"
#include "gpushmem/device/path_proxy.cuh"

// Warp and block calls begin and end with a barrier of the scope: what its threads wrote before is
// in the source, and after the call any of them may fence, quiet or reuse the buffers. A call that
// has nothing to move has the same barriers.
template <class Scope>
GPSH_DEV void gpsh_dev_put(const struct gpushmem_dev &dev, const struct gpushmem_dev &via, void *to,
                           const void *from, size_t bytes, int pe, bool blocking)
{
    if (!bytes || !gpsh_dev_check(dev, to, bytes, pe))
        return Scope::sync();
    Scope::sync();
    if (uint64_t away = gpsh_dev_away(dev, pe))
        gpsh_dev_copy<Scope, gpsh_from_here>(gpsh_dev_at(away, to), (const char *)from, bytes);
    else if (Scope::rank() == 0)
        gpsh_dev_ring_put(*via.self, to, from, bytes, pe, blocking);
    Scope::sync();
}

template <class Scope>
GPSH_DEV void gpsh_dev_get(const struct gpushmem_dev &dev, const struct gpushmem_dev &via, void *to,
                           const void *from, size_t bytes, int pe, bool blocking)
{
    if (!bytes || !gpsh_dev_check(dev, from, bytes, pe))
        return Scope::sync();
    Scope::sync();
    if (uint64_t away = gpsh_dev_away(dev, pe))
        gpsh_dev_copy<Scope, gpsh_from_peer>((char *)to, gpsh_dev_at(away, from), bytes);
    else if (Scope::rank() == 0)
        gpsh_dev_ring_get(*via.self, to, from, bytes, pe, blocking);
    Scope::sync();
}

template <class Scope>
GPSH_DEV void gpsh_dev_iput(const struct gpushmem_dev &dev, const struct gpushmem_dev &via,
                            void *to, const void *from, ptrdiff_t to_stride, ptrdiff_t from_stride,
                            size_t n, size_t size, int pe)
{
    if (!n || !gpsh_dev_check(dev, to, gpsh_dev_span(n, to_stride, size), pe))
        return Scope::sync();
    Scope::sync();
    if (uint64_t away = gpsh_dev_away(dev, pe))
        gpsh_dev_copy_strided<Scope, gpsh_from_here>(gpsh_dev_at(away, to), (const char *)from,
                                                     to_stride, from_stride, n, size);
    else if (Scope::rank() == 0)
        gpsh_dev_ring_strided(*via.self, GPUSHMEM_CMD_IPUT, to, from, to_stride, from_stride, n,
                              size, pe);
    Scope::sync();
}

template <class Scope>
GPSH_DEV void gpsh_dev_iget(const struct gpushmem_dev &dev, const struct gpushmem_dev &via,
                            void *to, const void *from, ptrdiff_t to_stride, ptrdiff_t from_stride,
                            size_t n, size_t size, int pe)
{
    if (!n || !gpsh_dev_check(dev, from, gpsh_dev_span(n, from_stride, size), pe))
        return Scope::sync();
    Scope::sync();
    if (uint64_t away = gpsh_dev_away(dev, pe))
        gpsh_dev_copy_strided<Scope, gpsh_from_peer>((char *)to, gpsh_dev_at(away, from), to_stride,
                                                     from_stride, n, size);
    else if (Scope::rank() == 0)
        gpsh_dev_ring_strided(*via.self, GPUSHMEM_CMD_IGET, from, to, to_stride, from_stride, n,
                              size, pe);
    Scope::sync();
}

// One value, by its bytes (up to 8).
GPSH_DEV void gpsh_dev_put_value(const struct gpushmem_dev &dev, const struct gpushmem_dev &via,
                                 void *to, uint64_t bits, size_t bytes, int pe)
{
    if (!gpsh_dev_check(dev, to, bytes, pe))
        return;
    if (uint64_t away = gpsh_dev_away(dev, pe))
        gpsh_dev_store_small(gpsh_dev_at(away, to), bits, bytes);
    else
        gpsh_dev_ring_put_value(via, to, bits, bytes, pe);
}

// Misaligned, which is rare: in place it would be an instruction more for each step of it.
GPSH_DEV_CALL uint64_t gpsh_dev_load_bytes(const char *from, size_t bytes)
{
    uint64_t bits = 0;
    for (size_t i = 0; i < bytes; i++)
        bits |= (uint64_t)gpsh_from_peer::load((const uint8_t *)from + i) << 8 * i;
    return bits;
}

GPSH_DEV uint64_t gpsh_dev_get_value(const struct gpushmem_dev &dev, const struct gpushmem_dev &via,
                                     const void *from, size_t bytes, int pe)
{
    if (!gpsh_dev_check(dev, from, bytes, pe))
        return 0;
    if (uint64_t away = gpsh_dev_away(dev, pe)) {
        const char *direct = gpsh_dev_at(away, from);
        // heaps begin at whole pages: the address here is aligned as the one there
        if (bytes == 8 && !((uintptr_t)from & 7))
            return gpsh_dev_load64_value_sys(direct);
        if (bytes == 4 && !((uintptr_t)from & 3))
            return gpsh_dev_load32_value_sys(direct);
        if (bytes == 2 && !((uintptr_t)from & 1))
            return gpsh_dev_load16_value_sys(direct);
        return bytes == 1 ? gpsh_from_peer::load((const uint8_t *)direct)
                          : gpsh_dev_load_bytes(direct, bytes);
    }
    return gpsh_dev_ring_get_value(via, from, bytes, pe);
}

template <typename T> GPSH_DEV uint64_t gpsh_dev_to_bits(T value)
{
    static_assert(sizeof(T) <= 8, "a command carries up to 8 bytes");
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof value);
    return bits;
}

template <typename T> GPSH_DEV T gpsh_dev_from_bits(uint64_t bits)
{
    T value;
    memcpy((void *)&value, &bits, sizeof value);
    return value;
}

#endif
