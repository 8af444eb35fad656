// SPDX-License-Identifier: BSD-3-Clause
#include "stream/stream_gpu.h"

#include "core/config.h"
#include "core/cpu.h"
#include "core/error.h"
#include "gpu/gpu.h"
#include "memory/heap.h"
#include "proxy/device_side.h"
#include "stream/stream_image.h"
#include "stream/stream_module.h"

static const char *const names[GPUSHMEM_STREAM_KINDS] = {
    [GPUSHMEM_STREAM_PUT] = "gpsh_stream_put",
    [GPUSHMEM_STREAM_GET] = "gpsh_stream_get",
    [GPUSHMEM_STREAM_PUT_SIGNAL] = "gpsh_stream_put_signal",
    [GPUSHMEM_STREAM_SIGNAL] = "gpsh_stream_signal",
    [GPUSHMEM_STREAM_WAIT] = "gpsh_stream_wait",
    [GPUSHMEM_STREAM_QUIET] = "gpsh_stream_quiet",
    [GPUSHMEM_STREAM_BARRIER] = "gpsh_stream_barrier",
    [GPUSHMEM_STREAM_SYNC] = "gpsh_stream_sync",
    [GPUSHMEM_STREAM_P] = "gpsh_stream_p",
    [GPUSHMEM_STREAM_IPUT] = "gpsh_stream_iput",
    [GPUSHMEM_STREAM_IGET] = "gpsh_stream_iget",
};

static struct gpsh_stream_module streams;
static const struct gpushmem_stream_op no_op = {.kind = 0};
static void *const nothing[] = {&streams.handle, (void *)(uintptr_t)&no_op};

static struct gpsh_stream_module streams = {
    .what = "stream operations",
    .image = &gpsh_stream_image,
    .names = names,
    .n = GPUSHMEM_STREAM_KINDS,
    .asked = GPUSHMEM_STREAM_BARRIER,
    .late = GPUSHMEM_STREAM_KINDS,
    .early_blocks = 1,
    .idle_threads = 1,
    .idle_nothing = nothing,
    .unload = gpsh_stream_gpu_unload,
    .lock = PTHREAD_MUTEX_INITIALIZER,
};

static const struct gpsh_stream_shape lone = {1, 1};

void gpsh_stream_gpu_unload(void)
{
    gpsh_stream_module_unload(&streams);
}

void gpsh_stream_gpu_preload(void)
{
    gpsh_stream_module_preload(&streams);
}

static gpsh_cu_result launch(const struct gpushmem_stream_op *op, int kernel,
                             struct gpsh_stream_shape shape, gpushmem_stream_t stream)
{
    void *parameters[] = {&streams.handle, (void *)(uintptr_t)op};
    return gpsh_stream_module_launch(&streams, kernel, shape, parameters, stream);
}

// ---- Enqueueing ----

static bool capturing(gpushmem_stream_t stream)
{
    // the default stream cannot be captured, nor asked while another one is
    int status = GPSH_CU_CAPTURE_NONE;
    return stream && !gpsh_cu.stream_capturing(stream, &status) && status != GPSH_CU_CAPTURE_NONE;
}

// 64 bytes for each thread: enough loads in flight, and one warp for what is small. Commands for a
// ring take one thread.
static struct gpsh_stream_shape block_for(uint64_t bytes, const char *direct)
{
    uint64_t warps = direct ? (bytes + 2047) / 2048 : 1;
    return (struct gpsh_stream_shape){1, warps <= 1    ? 32
                                         : warps >= 32 ? 1024
                                                       : (unsigned)(32 * warps)};
}

// One block's 1024 threads move 16 KiB in a microsecond or two; 32 blocks fill the links.
static struct gpsh_stream_shape blocks_for(uint64_t bytes, const char *direct)
{
    uint64_t blocks = direct ? (bytes + (16 << 10) - 1) / (16 << 10) : 1;
    return blocks <= 1 ? block_for(bytes, direct)
                       : (struct gpsh_stream_shape){blocks < 32 ? (unsigned)blocks : 32, 1024};
}

// `there`: the peer's heap where the copy engine reaches it.
static gpsh_cu_result copy(const struct gpushmem_stream_op *op, char *there,
                           gpushmem_stream_t stream)
{
    bool get = op->kind == GPUSHMEM_STREAM_GET;
    gpsh_cu_ptr remote = (gpsh_cu_ptr)(uintptr_t)(there + gpsh_offset(get ? op->source : op->dest));
    gpsh_cu_ptr local = (gpsh_cu_ptr)(uintptr_t)(get ? op->dest : op->source);
    return get ? gpsh_cu.copy_any(local, remote, op->bytes, stream)
               : gpsh_cu.copy_any(remote, local, op->bytes, stream);
}

// Kernels make the data and use it, and a change of the stream to the copy engine and back takes
// 6 us, 9 in a graph; only copies of up to 64 KiB outside of graphs do not pay that. Very large
// copies go to the copy engine, to leave the multiprocessors to others. Figures:
// docs/design/kernels.md.
static bool by_kernel(uint64_t bytes, gpushmem_stream_t stream)
{
    return bytes < gpsh_settings()->stream_copy_bytes &&
           (bytes > gpsh_settings()->stream_kernel_bytes || capturing(stream));
}

static gpsh_cu_result move(const struct gpushmem_stream_op *op, gpushmem_stream_t stream)
{
    char *there = gpsh_device_side_direct(op->pe);
    if (there && !by_kernel(op->bytes, stream))
        return copy(op, there, stream);
    return launch(op, op->kind, blocks_for(op->bytes, there), stream);
}

// A store needs no kernel: the stream's front end does it (2.5 us instead of 2.7), but not faster
// in a graph.
static gpsh_cu_result signal(const struct gpushmem_stream_op *op, gpushmem_stream_t stream)
{
    char *there =
        streams.handle.flags & GPUSHMEM_DEV_DIRECT_ATOMICS ? gpsh_device_side_direct(op->pe) : NULL;
    if (there && op->op == GPUSHMEM_SIGNAL_SET && !capturing(stream))
        return gpsh_cu.stream_write64(
            stream, (gpsh_cu_ptr)(uintptr_t)(there + gpsh_offset(op->signal)), op->value, 0);
    return launch(op, GPUSHMEM_STREAM_SIGNAL, lone, stream);
}

// One kernel where one block is enough for the data. Otherwise the signal follows the put in the
// stream: after a put by a kernel, the signal is a kernel too, since that can be launched early.
static gpsh_cu_result put_signal(const struct gpushmem_stream_op *op, gpushmem_stream_t stream)
{
    char *there = gpsh_device_side_direct(op->pe);
    if (!there || op->bytes <= gpsh_settings()->stream_kernel_bytes)
        return launch(op, GPUSHMEM_STREAM_PUT_SIGNAL, block_for(op->bytes, there), stream);
    struct gpushmem_stream_op data = *op, behind = *op;
    data.kind = GPUSHMEM_STREAM_PUT;
    behind.kind = GPUSHMEM_STREAM_SIGNAL;
    gpsh_cu_result code = move(&data, stream);
    if (code)
        return code;
    return by_kernel(op->bytes, stream) ? launch(&behind, GPUSHMEM_STREAM_SIGNAL, lone, stream)
                                        : signal(&behind, stream);
}

static gpsh_cu_result enqueue(const struct gpushmem_stream_op *op, gpushmem_stream_t stream)
{
    switch (op->kind) {
    case GPUSHMEM_STREAM_PUT:
    case GPUSHMEM_STREAM_GET: return move(op, stream);
    case GPUSHMEM_STREAM_PUT_SIGNAL: return put_signal(op, stream);
    case GPUSHMEM_STREAM_SIGNAL: return signal(op, stream);
    case GPUSHMEM_STREAM_IPUT:
    case GPUSHMEM_STREAM_IGET:
        // one block: elements lie apart, and the blocks' shares are counted in bytes
        return launch(op, op->kind, block_for(op->bytes, gpsh_device_side_direct(op->pe)), stream);
    case GPUSHMEM_STREAM_QUIET:
        if (streams.handle.flags & GPUSHMEM_DEV_ALL_DIRECT)
            return 0; // what ended in the stream is complete
        break;
    default: break;
    }
    return launch(op, op->kind, lone, stream);
}

int gpsh_stream_gpu_submit(const struct gpushmem_stream_op *op, gpushmem_stream_t stream)
{
    int status = gpsh_stream_module_use(&streams);
    if (status)
        return status;
    gpsh_device_side_launching();
    GPSH_IN_GPU;
    gpsh_cu_result code = enqueue(op, stream);
    if (GPSH_LIKELY(!code))
        return 0;
    const char *what = names[op->kind] + sizeof "gpsh_stream_" - 1;
    return gpsh_gpu_fail(code, "%s towards PE %d on stream %p", what, op->pe, (void *)stream);
}

int gpsh_stream_gpu_drain(const char *function, gpushmem_stream_t stream)
{
    GPSH_IN_GPU;
    gpsh_cu_result code = gpsh_cu.stream_sync(stream);
    return code ? gpsh_gpu_fail(code, "%s: waiting for stream %p", function, (void *)stream) : 0;
}

int gpsh_stream_gpu_check_local(const char *function, const void *local)
{
    unsigned type;
    if (gpsh_offset(local) < gpsh_heap_bytes() ||
        !gpsh_cu.pointer_attribute(&type, GPSH_CU_POINTER_MEMORY_TYPE,
                                   (gpsh_cu_ptr)(uintptr_t)local))
        return 0;
    return gpsh_fail(
        GPUSHMEM_ERR_INVALID,
        "%s: %p is pageable host memory, which a stream's operations cannot use; pass memory "
        "of the GPU, or pinned host memory (cudaHostAlloc, cudaHostRegister)",
        function, local);
}
