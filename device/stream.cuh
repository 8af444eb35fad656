// SPDX-License-Identifier: BSD-3-Clause
// The operations of gpushmem/stream.h as kernels of one block: the library launches them on a GPU,
// the emulation on CPU threads.
#ifndef GPUSHMEM_DEVICE_STREAM_CUH
#define GPUSHMEM_DEVICE_STREAM_CUH

#include "gpushmem/device/sync.cuh"

// The bytes that this block of a launch with several copies: whole lines, so that blocks do not
// share one.
GPSH_DEV struct gpushmem_stream_op gpsh_dev_stream_share(struct gpushmem_stream_op op)
{
    uint64_t blocks = gpsh_dev_grid_blocks(), share = (op.bytes / blocks + 128) / 128 * 128,
             first = share * gpsh_dev_block_number();
    if (blocks > 1) {
        op.dest = (char *)op.dest + first;
        op.source = (const char *)op.source + first;
        op.bytes = first >= op.bytes ? 0 : op.bytes - first < share ? op.bytes - first : share;
    }
    return op;
}

// Where another agent executes a mapped PE's atomics, its signals go through a ring: they are
// complete before the stream goes on, as everything towards a mapped PE is.
GPSH_DEV void gpsh_dev_stream_settle(const struct gpushmem_dev &dev, int pe)
{
    if (!(dev.flags & GPUSHMEM_DEV_DIRECT_ATOMICS) && gpsh_dev_away(dev, pe))
        gpsh_dev_pe_quiet(dev, dev, pe);
}

template <typename T>
GPSH_DEV void gpsh_dev_stream_wait_as(const struct gpushmem_dev &dev,
                                      const struct gpushmem_stream_op &op)
{
    gpsh_dev_wait_value<T>(dev, (const T *)(const void *)op.signal, op.op, (T)op.value);
}
GPSH_DEV void gpsh_dev_stream_wait(const struct gpushmem_dev &dev,
                                   const struct gpushmem_stream_op &op)
{
    switch (op.size) {
    case 2: gpsh_dev_stream_wait_as<uint16_t>(dev, op); break;
    case 4: gpsh_dev_stream_wait_as<uint32_t>(dev, op); break;
    case -2: gpsh_dev_stream_wait_as<int16_t>(dev, op); break;
    case -4: gpsh_dev_stream_wait_as<int32_t>(dev, op); break;
    case -8: gpsh_dev_stream_wait_as<int64_t>(dev, op); break;
    default: gpsh_dev_stream_wait_as<uint64_t>(dev, op); break;
    }
}

// `kind` is op.kind. All threads of the block take part where data is copied; the others are
// launched with one thread. Puts and gets of mapped PEs may have several blocks.
GPSH_DEV void gpsh_dev_stream_do(const struct gpushmem_dev &dev,
                                 const struct gpushmem_stream_op &op, int kind)
{
    const struct gpushmem_stream_op mine = gpsh_dev_stream_share(op);
    switch (kind) {
    case GPUSHMEM_STREAM_PUT:
        gpsh_dev_move<gpsh_scope_block, gpsh_way_put>(dev, dev, mine.dest, mine.source, mine.bytes,
                                                      mine.pe, true);
        break;
    case GPUSHMEM_STREAM_GET:
        gpsh_dev_move<gpsh_scope_block, gpsh_way_get>(dev, dev, mine.dest, mine.source, mine.bytes,
                                                      mine.pe, true);
        break;
    case GPUSHMEM_STREAM_PUT_SIGNAL:
        gpsh_dev_put_signal<gpsh_scope_block>(dev, dev, op.dest, op.source, op.bytes, op.signal,
                                              op.value, op.op, op.pe, true);
        if (gpsh_scope_block::rank() == 0)
            gpsh_dev_stream_settle(dev, op.pe);
        break;
    case GPUSHMEM_STREAM_SIGNAL: // after everything before it in the stream
        if (gpsh_dev_check_word(dev, op.signal, sizeof *op.signal, op.pe))
            gpsh_dev_signal_released(dev, dev, op.signal, op.value, op.op, op.pe);
        gpsh_dev_stream_settle(dev, op.pe);
        break;
    case GPUSHMEM_STREAM_WAIT: gpsh_dev_stream_wait(dev, op); break;
    case GPUSHMEM_STREAM_P: gpsh_dev_put_value(dev, dev, op.dest, op.value, op.bytes, op.pe); break;
    case GPUSHMEM_STREAM_IPUT:
        gpsh_dev_move_strided<gpsh_scope_block, gpsh_way_put>(
            dev, dev, op.dest, op.source, op.dest_stride, op.source_stride,
            op.bytes / (uint32_t)op.size, (size_t)op.size, op.pe);
        break;
    case GPUSHMEM_STREAM_IGET:
        gpsh_dev_move_strided<gpsh_scope_block, gpsh_way_get>(
            dev, dev, op.dest, op.source, op.dest_stride, op.source_stride,
            op.bytes / (uint32_t)op.size, (size_t)op.size, op.pe);
        break;
    case GPUSHMEM_STREAM_QUIET: gpsh_dev_quiet(dev, dev); break;
    case GPUSHMEM_STREAM_BARRIER: gpsh_dev_barrier_all<gpsh_scope_thread>(dev); break;
    case GPUSHMEM_STREAM_SYNC: gpsh_dev_sync_all<gpsh_scope_thread>(dev); break;
    default: break;
    }
}

// Whether the operation ends by what others do, at whatever time: another PE, a proxy, a NIC.
GPSH_DEV bool gpsh_dev_stream_waits(const struct gpushmem_dev &dev, int pe, int kind)
{
    switch (kind) {
    case GPUSHMEM_STREAM_PUT:
    case GPUSHMEM_STREAM_GET:
    case GPUSHMEM_STREAM_P:
    case GPUSHMEM_STREAM_IPUT:
    case GPUSHMEM_STREAM_IGET: return !gpsh_dev_away(dev, pe);
    case GPUSHMEM_STREAM_PUT_SIGNAL:
    case GPUSHMEM_STREAM_SIGNAL: return !gpsh_dev_away_amo(dev, pe);
    default: return true;
    }
}

// `start_next` lets the stream's next kernel be launched early, which then sits on multiprocessors
// until this one has ended. What this one waits for may need them, so it waits first. If op's kind
// is not `kind`, there is nothing to do.
template <class StartNext>
GPSH_DEV void gpsh_dev_stream_kernel(const struct gpushmem_dev &dev,
                                     const struct gpushmem_stream_op &op, int kind,
                                     StartNext start_next)
{
    bool waits = gpsh_dev_stream_waits(dev, op.pe, kind);
    if (!waits)
        start_next();
    if (op.kind == kind)
        gpsh_dev_stream_do(dev, op, kind);
    if (waits)
        start_next();
}

#endif
