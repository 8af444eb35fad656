// SPDX-License-Identifier: BSD-3-Clause
// Large copies by one thread, through shared memory that the kernel lends: the GPU's copy engine
// for shared memory (sm_90) keeps whole kilobytes in flight where a thread's registers hold a few
// hundred bytes. Contracts: gpushmem/device.cuh.
#ifndef GPUSHMEM_DEVICE_BULK_CUH
#define GPUSHMEM_DEVICE_BULK_CUH

#include "gpushmem/device/rma.cuh"

enum {
    GPSH_BULK_STAGES = 4,
    GPSH_BULK_HEAD = 128,   // of the lent memory: one mbarrier per stage
    GPSH_BULK_LEAST = 1024, // lent memory and copies below this are not worth it
};

#if defined(__CUDACC__)

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900

// Loads of stage i end with a phase of barrier i; its store has read the stage before the next load
// goes there.
struct gpsh_dev_bulk {
    uint32_t barriers, buffers; // addresses in shared memory
    uint32_t stage_bytes;
};

GPSH_DEV void gpsh_dev_bulk_load(const gpsh_dev_bulk &b, unsigned stage, const char *from,
                                 uint32_t bytes)
{
    uint32_t barrier = b.barriers + 8 * stage, buffer = b.buffers + stage * b.stage_bytes;
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
                 : "memory");
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
            "r"(buffer),
        "l"(from), "r"(bytes), "r"(barrier)
        : "memory");
}

GPSH_DEV void gpsh_dev_bulk_await(const gpsh_dev_bulk &b, unsigned stage, uint32_t phase)
{
    uint32_t done = 0;
    while (!done)
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; "
                     "selp.u32 %0, 1, 0, p; }"
                     : "=r"(done)
                     : "r"(b.barriers + 8 * stage), "r"(phase)
                     : "memory");
}

GPSH_DEV void gpsh_dev_bulk_store(const gpsh_dev_bulk &b, unsigned stage, char *to, uint32_t bytes)
{
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to),
                 "r"(b.buffers + stage * b.stage_bytes), "r"(bytes)
                 : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

// Addresses and bytes are multiples of 16.
template <class From>
GPSH_DEV void gpsh_dev_bulk_copy(char *to, const char *from, size_t bytes, char *shared,
                                 size_t shared_bytes)
{
    gpsh_dev_bulk b;
    b.barriers = (uint32_t)__cvta_generic_to_shared(shared);
    b.buffers = b.barriers + GPSH_BULK_HEAD;
    b.stage_bytes = (uint32_t)((shared_bytes - GPSH_BULK_HEAD) / GPSH_BULK_STAGES) & ~127u;
    for (unsigned s = 0; s < GPSH_BULK_STAGES; s++)
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(b.barriers + 8 * s) : "memory");
    // The copy engine sees the barriers, and what this thread and those it waited for wrote to
    // source and lent memory.
    asm volatile("fence.proxy.async;" ::: "memory");
    size_t loaded = 0, stored = 0;
    for (unsigned s = 0; s < GPSH_BULK_STAGES && loaded < bytes; s++) {
        uint32_t n = bytes - loaded < b.stage_bytes ? (uint32_t)(bytes - loaded) : b.stage_bytes;
        gpsh_dev_bulk_load(b, s, from + loaded, n);
        loaded += n;
    }
    uint32_t phase = 0;
    for (unsigned s = 0; stored < bytes; s++) {
        if (s == GPSH_BULK_STAGES) {
            s = 0;
            phase ^= 1;
        }
        uint32_t n = bytes - stored < b.stage_bytes ? (uint32_t)(bytes - stored) : b.stage_bytes;
        gpsh_dev_bulk_await(b, s, phase);
        gpsh_dev_bulk_store(b, s, to + stored, n);
        stored += n;
        if (loaded == bytes)
            continue;
        asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
        n = bytes - loaded < b.stage_bytes ? (uint32_t)(bytes - loaded) : b.stage_bytes;
        gpsh_dev_bulk_load(b, s, from + loaded, n);
        loaded += n;
    }
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    for (unsigned s = 0; s < GPSH_BULK_STAGES; s++)
        asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(b.barriers + 8 * s) : "memory");
}

#else

template <class From>
GPSH_DEV void gpsh_dev_bulk_copy(char *to, const char *from, size_t bytes, char *shared,
                                 size_t shared_bytes)
{
    gpsh_dev_copy<gpsh_scope_thread, From>(to, from, bytes);
}

#endif

template <class From>
GPSH_DEV void gpsh_dev_copy_bulk(char *to, const char *from, size_t bytes, char *shared,
                                 size_t shared_bytes)
{
    bool fits = ((uintptr_t)to ^ (uintptr_t)from) % 16 == 0 && (uintptr_t)shared % 128 == 0;
    // global memory on both sides
    fits = fits && !gpsh_dev_is_private(to) && !gpsh_dev_is_private(from);
    if (!fits || bytes < GPSH_BULK_LEAST || shared_bytes < GPSH_BULK_LEAST) {
        gpsh_dev_copy<gpsh_scope_thread, From>(to, from, bytes);
        return;
    }
    size_t head = -(uintptr_t)to & 15, middle = (bytes - head) & ~(size_t)15,
           tail = bytes - head - middle;
    gpsh_dev_copy<gpsh_scope_thread, From>(to, from, head);
    gpsh_dev_bulk_copy<From>(to + head, from + head, middle, shared, shared_bytes);
    gpsh_dev_copy<gpsh_scope_thread, From>(to + head + middle, from + head + middle, tail);
}

#else

template <class From>
GPSH_DEV void gpsh_dev_copy_bulk(char *to, const char *from, size_t bytes, char *shared,
                                 size_t shared_bytes)
{
    gpsh_dev_copy<gpsh_scope_thread, From>(to, from, bytes);
}

#endif

template <class Way>
GPSH_DEV void gpsh_dev_move_bulk(const struct gpushmem_dev &dev, const struct gpushmem_dev &via,
                                 void *to, const void *from, size_t bytes, int pe, void *shared,
                                 size_t shared_bytes)
{
    const void *remote = Way::is_put ? to : from;
    char *direct =
        bytes && (unsigned)pe < (unsigned)dev.n_pes ? gpsh_dev_direct(dev, remote, pe) : nullptr;
    if (direct && gpsh_dev_check(dev, remote, bytes, pe))
        gpsh_dev_copy_bulk<Way>(Way::is_put ? direct : (char *)to,
                                Way::is_put ? (const char *)from : direct, bytes, (char *)shared,
                                shared_bytes);
    else if (!direct)
        gpsh_dev_move<gpsh_scope_thread, Way>(dev, via, to, from, bytes, pe, true);
}

#endif
