// SPDX-License-Identifier: BSD-3-Clause
// Operations and collectives of streams on CPU threads: most of the machine code of a small program
// with kernels.
#ifndef GPUSHMEM_DEVICE_EMU_OPERATIONS_CUH
#define GPUSHMEM_DEVICE_EMU_OPERATIONS_CUH

#include "gpushmem/device/coll_stream.cuh"
#include "gpushmem/device/stream.cuh"

#if defined(GPSH_EMU_LIBRARY)
#define GPSH_EMU_INLINE
#else
#define GPSH_EMU_INLINE inline
#endif

// Carries a collective out in the way that op.way says; CPU threads have no copy engines. Where
// several blocks can share the work there are two, so that tests see blocks work side by side. All
// PEs choose alike.
GPSH_EMU_INLINE int gpsh_emu_collective(const struct gpushmem_dev &dev, struct gpushmem_coll_op op,
                                        gpushmem_stream_t stream)
{
    const struct gpushmem_dev_team team = dev.teams[op.team & GPUSHMEM_TEAM_SLOT_MASK];
    bool small = op.kind <= GPUSHMEM_COLL_BARRIER ||
                 (op.kind != GPUSHMEM_COLL_COLLECT && op.n * op.width <= 8);
    bool nodes = op.way == GPUSHMEM_COLL_NODES || op.way == GPUSHMEM_COLL_KEEP;
    unsigned blocks = small || !(team.flags & GPUSHMEM_DEV_TEAM_DIRECT || nodes) ? 1 : 2,
             threads = small ? 1 : 2;
    return gpsh_emu_submit(blocks, threads, stream, [=] { gpsh_dev_stream_coll(dev, team, op); });
}

// Puts an operation of the library into an emulated stream, as a kernel of one thread.
// GPUSHMEM_STREAM_END waits for all kernels instead, GPUSHMEM_STREAM_DRAIN for those of the stream.
GPSH_EMU_INLINE int gpsh_emu_enqueue(gpushmem_stream_t stream, const struct gpushmem_stream_op *op)
{
    struct gpushmem_dev dev;
    struct gpushmem_stream_op copy = *op;
    if (op->kind == GPUSHMEM_STREAM_END) {
        gpsh_emu_wait_all();
        return 0;
    }
    if (op->kind == GPUSHMEM_STREAM_DRAIN)
        return gpsh_emu_wait(stream);
    int status = gpushmem_device_handle(&dev);
    if (!status && op->kind == GPUSHMEM_STREAM_COLL)
        return gpsh_emu_collective(dev, *(const struct gpushmem_coll_op *)op->source, stream);
    return status
               ? status
               : gpsh_emu_submit(1, 1, stream, [=] { gpsh_dev_stream_do(dev, copy, copy.kind); });
}

#endif
