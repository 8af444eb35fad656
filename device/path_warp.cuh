// SPDX-License-Identifier: BSD-3-Clause
// Puts of single values by all threads of a warp, each to a place of its own. Neighbouring lanes
// whose places are neighbours at one PE share a command of the ring. The threads come together by
// the call's contract: for calls of single threads, which may be anywhere in a program's branches,
// docs/design/kernels.md says why not.
#ifndef GPUSHMEM_DEVICE_PATH_WARP_CUH
#define GPUSHMEM_DEVICE_PATH_WARP_CUH

#include "gpushmem/device/rma.cuh"
#if !defined(__CUDACC__)
#include "gpushmem/device/emu_cuda.hpp"
#endif

// The part of the warp's put that a lane has to do.
struct gpsh_dev_lane {
    unsigned mask;  // of the warp's threads
    unsigned count; // lanes from this one on that share its command; 0: another lane's has it
    unsigned heads; // lanes with a command
};

GPSH_DEV unsigned gpsh_dev_lanes_below(unsigned lane)
{
    return (1u << lane) - 1;
}

// How the lanes that go through the ring are put together, at most `most` to a command.
GPSH_DEV struct gpsh_dev_lane gpsh_dev_warp_share(unsigned mask, const char *to, unsigned bytes,
                                                  int pe, bool goes, unsigned most)
{
    const unsigned lane = gpsh_scope_warp::rank();
    uint64_t before = __shfl_up_sync(mask, (uint64_t)to, 1);
    int pe_before = __shfl_up_sync(mask, goes ? pe : -1, 1);
    bool follows = goes && lane && pe_before == pe && before + bytes == (uint64_t)to;
    const unsigned following = __ballot_sync(mask, follows), going = __ballot_sync(mask, goes);
    const unsigned starts = going & ~following & (gpsh_dev_lanes_below(lane) | 1u << lane);
    bool head = goes && (lane - (31u - (unsigned)__clz((int)starts))) % most == 0;
    // those that follow this lane without a gap; beyond lane 31 there are none
    unsigned after = (unsigned)__ffs((int)~(unsigned)((uint64_t)following >> (lane + 1))) - 1;
    struct gpsh_dev_lane mine = {mask, 0, __ballot_sync(mask, head)};
    if (head)
        mine.count = after + 1 < most ? after + 1 : most;
    return mine;
}

// Word k of the payload that begins at this lane: values of the lanes from here on.
GPSH_DEV uint64_t gpsh_dev_warp_word(unsigned mask, uint64_t packed, unsigned k, unsigned bytes)
{
    return k ? __shfl_down_sync(mask, packed, k * 8 / bytes) : packed;
}

// Slots for all heads at once: one add for the warp. Between it and the end of the shuffle nobody
// waits for anything but the warp's threads, which are all here.
GPSH_DEV struct gpsh_dev_slot gpsh_dev_warp_reserve(const struct gpushmem_ring &ring,
                                                    struct gpsh_dev_lane mine)
{
    const unsigned lane = gpsh_scope_warp::rank();
    struct gpsh_dev_slot slot = {0, gpsh_dev_load64_relaxed_gpu(ring.consumed_seen)};
    uint64_t first = 0;
    if (lane == 0)
        first = gpsh_dev_add64_relaxed_gpu(ring.head, (unsigned)__popc(mine.heads));
    slot.index = __shfl_sync(mine.mask, first, 0) +
                 (unsigned)__popc(mine.heads & gpsh_dev_lanes_below(lane));
    return slot;
}

// All threads of the warp; those whose peer is mapped only take part in the exchange.
GPSH_DEV_CALL void gpsh_dev_ring_put_warp(const struct gpushmem_dev &dev, char *to, uint64_t value,
                                          unsigned bytes, int pe, bool goes)
{
    GPSH_DEV_BOUNDS();
    enum { WORDS = GPUSHMEM_INLINE_BYTES / 8 };
    const unsigned size = gpsh_scope_warp::size(),
                   mask = size == 32 ? 0xffffffffu : gpsh_dev_lanes_below(size);
    if (!__any_sync(mask, goes))
        return;
    const struct gpsh_dev_lane mine =
        gpsh_dev_warp_share(mask, to, bytes, pe, goes, GPUSHMEM_INLINE_BYTES / bytes);
    for (unsigned have = bytes; have < 8; have *= 2)
        value |= __shfl_down_sync(mask, value, have / bytes) << 8 * have;
    uint64_t words[WORDS];
    GPSH_UNROLL
    for (unsigned k = 0; k < WORDS; k++) {
        words[k] = gpsh_dev_warp_word(mask, value, k, bytes);
        words[k] = 8 * k < mine.count * bytes ? words[k] : 0;
    }
    struct gpushmem_command c =
        gpsh_dev_command(GPUSHMEM_CMD_PUT_INLINE, pe, to, nullptr, mine.count * bytes);
    c.operand = words[0];
    c.local = words[1];
    c.compare = words[2];
    c.reply = words[3];
    c.extra = words[4];
    const struct gpushmem_ring ring = gpsh_dev_ring(dev);
    const struct gpsh_dev_slot slot = gpsh_dev_warp_reserve(ring, mine);
    if (mine.count)
        gpsh_dev_write(dev, ring, slot, c);
}

// One value of each thread of the warp.
GPSH_DEV void gpsh_dev_put_value_warp(const struct gpushmem_dev &dev,
                                      const struct gpushmem_dev &via, void *to, uint64_t bits,
                                      unsigned bytes, int pe)
{
    gpsh_scope_warp::sync();
    bool good = gpsh_dev_check(dev, to, bytes, pe);
    char *direct = gpsh_dev_direct(dev, to, pe);
    if (good && direct)
        gpsh_dev_store_small(direct, bits, bytes);
    bool goes = good && !direct;
    if (goes) {
        const auto became = gpsh_dev_nic_try(via, pe, [=, &via](bool prepared) {
            return gpsh_dev_nic_put_value(*via.self, via.nic, to, bits, bytes, pe, prepared);
        });
        goes = became != GPSH_NIC_TAKEN;
    }
    if (!(dev.flags & GPUSHMEM_DEV_ALL_DIRECT))
        gpsh_dev_ring_put_warp(*via.self, (char *)to, bits, bytes, pe, goes);
    gpsh_scope_warp::sync();
}

#endif
