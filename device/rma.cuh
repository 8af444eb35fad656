// SPDX-License-Identifier: BSD-3-Clause
// Put, get, p, g, iput, iget: the bodies. The path is chosen per call: a mapped peer directly, any
// other by a queue of the NIC, or through a ring.
#ifndef GPUSHMEM_DEVICE_RMA_CUH
#define GPUSHMEM_DEVICE_RMA_CUH

#include "gpushmem/device/path_nic.cuh"
#include "gpushmem/device/path_p2p.cuh"

// By the NIC's queue where there is one, else through a ring.
template <class Way>
GPSH_DEV void gpsh_dev_move_away(const struct gpushmem_dev &via, void *to, const void *from,
                                 size_t bytes, int pe, bool blocking)
{
    const auto became = gpsh_dev_nic_try(via, pe, [=, &via](bool prepared) {
        return Way::is_put
                   ? gpsh_dev_nic_put(*via.self, via.nic, to, from, bytes, pe, blocking, prepared)
                   : gpsh_dev_nic_get(*via.self, via.nic, to, from, bytes, pe, blocking, prepared);
    });
    if (became == GPSH_NIC_TAKEN)
        return;
    Way::is_put ? gpsh_dev_ring_put(*via.self, to, from, bytes, pe, blocking)
                : gpsh_dev_ring_get(*via.self, to, from, bytes, pe, blocking);
}

// Warp and block calls begin and end with a barrier of the scope: what its threads wrote before is
// in the source, and after the call any of them may fence, quiet or reuse the buffers. A call that
// has nothing to move has the same barriers.
template <class Scope, class Way>
GPSH_DEV void gpsh_dev_move(const struct gpushmem_dev &dev, const struct gpushmem_dev &via,
                            void *to, const void *from, size_t bytes, int pe, bool blocking)
{
    const void *remote = Way::is_put ? to : from, *local = Way::is_put ? from : to;
    if (!bytes || !gpsh_dev_check(dev, remote, bytes, pe) ||
        !gpsh_dev_check_local(dev, local, pe, Way::is_put))
        return Scope::sync();
    Scope::sync();
    if (uint64_t away = gpsh_dev_away(dev, pe)) {
        char *there = gpsh_dev_at(away, remote);
        gpsh_dev_copy<Scope, Way>(Way::is_put ? there : (char *)to,
                                  Way::is_put ? (const char *)from : there, bytes);
        if (Scope::rank() == 0)
            gpsh_dev_count(dev, pe, bytes);
    } else if (Scope::rank() == 0) {
        gpsh_dev_move_away<Way>(via, to, from, bytes, pe, blocking);
    }
    Scope::sync();
}

template <class Scope, class Way>
GPSH_DEV void gpsh_dev_move_strided(const struct gpushmem_dev &dev, const struct gpushmem_dev &via,
                                    void *to, const void *from, ptrdiff_t to_stride,
                                    ptrdiff_t from_stride, size_t n, size_t size, int pe)
{
    const void *remote = Way::is_put ? to : from, *local = Way::is_put ? from : to;
    const ptrdiff_t stride = Way::is_put ? to_stride : from_stride,
                    local_stride = Way::is_put ? from_stride : to_stride;
    if (!n || !gpsh_dev_check_strides(dev, stride, local_stride, pe) ||
        !gpsh_dev_check(dev, remote, gpsh_dev_span(n, stride, size), pe) ||
        !gpsh_dev_check_local(dev, local, pe, Way::is_put))
        return Scope::sync();
    Scope::sync();
    if (uint64_t away = gpsh_dev_away(dev, pe)) {
        char *there = gpsh_dev_at(away, remote);
        gpsh_dev_copy_strided<Scope, Way>(Way::is_put ? there : (char *)to,
                                          Way::is_put ? (const char *)from : there, to_stride,
                                          from_stride, n, size);
        if (Scope::rank() == 0)
            gpsh_dev_count(dev, pe, n * size);
    } else if (Scope::rank() == 0) {
        gpsh_dev_nic_try(via, pe, [=, &via](bool prepared) {
            return gpsh_dev_nic_leave(*via.self, via.nic, pe, prepared);
        });
        gpsh_dev_ring_strided(*via.self, Way::is_put ? GPUSHMEM_CMD_IPUT : GPUSHMEM_CMD_IGET,
                              remote, local, to_stride, from_stride, n, size, pe);
    }
    Scope::sync();
}

// One value, by its bytes (up to 8).
GPSH_DEV void gpsh_dev_put_value(const struct gpushmem_dev &dev, const struct gpushmem_dev &via,
                                 void *to, uint64_t bits, size_t bytes, int pe)
{
    if (!gpsh_dev_check(dev, to, bytes, pe))
        return;
    if (uint64_t away = gpsh_dev_away(dev, pe)) {
        gpsh_dev_store_small(gpsh_dev_at(away, to), bits, bytes);
        gpsh_dev_count(dev, pe, bytes);
        return;
    }
    const auto became = gpsh_dev_nic_try(via, pe, [=, &via](bool prepared) {
        return gpsh_dev_nic_put_value(*via.self, via.nic, to, bits, bytes, pe, prepared);
    });
    if (became != GPSH_NIC_TAKEN)
        gpsh_dev_ring_put_value(via, to, bits, bytes, pe);
}

// Misaligned, which is rare: in place it would be an instruction more for each step of it.
GPSH_DEV_CALL uint64_t gpsh_dev_load_bytes(const char *from, size_t bytes)
{
    GPSH_DEV_BOUNDS();
    uint64_t bits = 0;
    for (size_t i = 0; i < bytes; i++)
        bits |= (uint64_t)gpsh_way_get::load((const uint8_t *)from + i) << 8 * i;
    return bits;
}

GPSH_DEV uint64_t gpsh_dev_get_value(const struct gpushmem_dev &dev, const struct gpushmem_dev &via,
                                     const void *from, size_t bytes, int pe)
{
    if (!gpsh_dev_check(dev, from, bytes, pe))
        return 0;
    if (uint64_t away = gpsh_dev_away(dev, pe)) {
        const char *direct = gpsh_dev_at(away, from);
        gpsh_dev_count(dev, pe, bytes);
        // heaps begin at whole pages: the address here is aligned as the one there
        if (bytes == 8 && !((uintptr_t)from & 7))
            return gpsh_dev_load64_value_sys(direct);
        if (bytes == 4 && !((uintptr_t)from & 3))
            return gpsh_dev_load32_value_sys(direct);
        if (bytes == 2 && !((uintptr_t)from & 1))
            return gpsh_dev_load16_value_sys(direct);
        return bytes == 1 ? gpsh_way_get::load((const uint8_t *)direct)
                          : gpsh_dev_load_bytes(direct, bytes);
    }
    const struct gpsh_dev_taken got = gpsh_dev_nic_try(via, pe, [=, &via](bool prepared) {
        return gpsh_dev_nic_get_value(*via.self, via.nic, from, bytes, pe, prepared);
    });
    if (got.how == GPSH_NIC_TAKEN)
        return got.value;
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
