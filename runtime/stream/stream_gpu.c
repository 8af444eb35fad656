// SPDX-License-Identifier: BSD-3-Clause
#include "stream/stream_gpu.h"

#include <pthread.h>
#include <stdatomic.h>

#include "gpu/gpu.h"
#include "gpushmem/device_host.h"
#include "proxy/device_side.h"
#include "stream/stream_image.h"

static const char *const names[GPUSHMEM_STREAM_KINDS] = {
    [GPUSHMEM_STREAM_PUT] = "gpsh_stream_put",
    [GPUSHMEM_STREAM_GET] = "gpsh_stream_get",
    [GPUSHMEM_STREAM_PUT_SIGNAL] = "gpsh_stream_put_signal",
    [GPUSHMEM_STREAM_SIGNAL] = "gpsh_stream_signal",
    [GPUSHMEM_STREAM_WAIT] = "gpsh_stream_wait",
    [GPUSHMEM_STREAM_QUIET] = "gpsh_stream_quiet",
    [GPUSHMEM_STREAM_BARRIER] = "gpsh_stream_barrier",
    [GPUSHMEM_STREAM_SYNC] = "gpsh_stream_sync",
};

static struct {
    pthread_mutex_t lock;
    _Atomic bool ready; // everything below is there, and stays until finalize
    gpsh_cu_module module;
    gpsh_cu_function kernels[GPUSHMEM_STREAM_KINDS];
    struct gpushmem_dev handle;
    bool early; // kernels are launched before the one ahead has ended, and wait for that on the GPU
} streams = {.lock = PTHREAD_MUTEX_INITIALIZER};

// Of a kernel.
struct shape {
    unsigned blocks, threads;
};
static const struct shape lone = {1, 1};

// ---- Loading ----

// A kernel is launched early only if it is one block: a larger one that follows a wait or a barrier
// would hold its multiprocessors until that ends, and what is waited for may need them.
static gpsh_cu_result launch(const struct gpushmem_stream_op *op, int kernel, struct shape shape,
                             gpushmem_stream_t stream)
{
    void *parameters[] = {&streams.handle, (void *)(uintptr_t)op};
    if (!streams.early || shape.blocks > 1)
        return gpsh_cu.launch(streams.kernels[kernel], shape.blocks, 1, 1, shape.threads, 1, 1, 0,
                              stream, parameters, NULL);
    struct gpsh_cu_launch_attribute early = {.id = GPSH_CU_LAUNCH_EARLY, .value.on = 1};
    const struct gpsh_cu_launch_config config = {shape.blocks, 1,      1, shape.threads, 1, 1, 0,
                                                 stream,       &early, 1};
    return gpsh_cu.launch_with(&config, streams.kernels[kernel], parameters, NULL);
}

// A kernel that does not wait for the one ahead of it by itself must not be launched early: only
// code for compute capability 9.0 or more does (device/atomics.cuh), not what the driver makes of
// older PTX. Graphs take it since CUDA 12.3.
bool gpsh_stream_gpu_may_be_early(gpsh_cu_function kernel)
{
    int driver = 0, code = 0;
    return gpsh.settings.stream_early && gpsh_cu.launch_with && gpsh_cu.function_attribute &&
           !gpsh_cu.driver_version(&driver) && driver >= 12030 &&
           !gpsh_cu.function_attribute(&code, GPSH_CU_FUNCTION_PTX_VERSION, kernel) && code >= 90;
}

// The driver may load a kernel as late as at its first launch. So each is launched once, with
// nothing to do.
static gpsh_cu_result warm_up(void)
{
    const struct gpushmem_stream_op nothing = {.kind = 0};
    gpsh_cu_stream stream = NULL;
    gpsh_cu_result code = gpsh_cu.stream_create(&stream, GPSH_CU_STREAM_NON_BLOCKING);
    for (int kind = 1; kind < GPUSHMEM_STREAM_KINDS && !code; kind++)
        code = launch(&nothing, kind, lone, stream);
    if (!code)
        code = gpsh_cu.stream_sync(stream);
    if (stream)
        gpsh_cu.stream_destroy(stream);
    return code;
}

static int load(void)
{
    gpsh_gpu_on_close(gpsh_stream_gpu_unload);
    if (!gpsh_stream_image)
        return gpsh_fail(GPUSHMEM_ERR_UNSUPPORTED,
                         "this gpushmem was built without CUDA's compiler and has no kernels for "
                         "stream operations; build it with -DGPUSHMEM_CUDA=ON");
    gpsh_cu_result code = gpsh_cu.module_load(&streams.module, gpsh_stream_image);
    for (int kind = 1; kind < GPUSHMEM_STREAM_KINDS && !code; kind++)
        code = gpsh_cu.module_function(&streams.kernels[kind], streams.module, names[kind]);
    streams.early = !code && gpsh_stream_gpu_may_be_early(streams.kernels[GPUSHMEM_STREAM_BARRIER]);
    if (!code)
        code = warm_up();
    if (!code)
        return 0;
    int status =
        gpsh_gpu_fail(code, "loading the kernels of stream operations on %s", gpsh_gpu.name);
    if (streams.module)
        gpsh_cu.module_unload(streams.module);
    streams.module = NULL;
    return status;
}

static int load_once(void)
{
    pthread_mutex_lock(&streams.lock);
    bool entered = gpsh_gpu_enter();
    int mode = gpsh_gpu_relax();
    int status = streams.module ? 0 : load();
    gpsh_gpu_restore(mode);
    gpsh_gpu_leave(entered);
    pthread_mutex_unlock(&streams.lock);
    return status;
}

void gpsh_stream_gpu_unload(void)
{
    atomic_store(&streams.ready, false);
    if (streams.module)
        gpsh_cu.module_unload(streams.module);
    streams.module = NULL;
}

void gpsh_stream_gpu_preload(void)
{
    if (!gpsh.device_heap || !gpsh_stream_image || !load_once())
        return;
    GPSH_LOG(DEBUG, "stream", "%s", gpsh_last_error());
    gpsh_clear_error();
}

static int prepare(void)
{
    struct gpushmem_dev handle;
    int status = gpushmem_device_handle(&handle);
    if (!status)
        status = load_once();
    if (status)
        return status;
    pthread_mutex_lock(&streams.lock);
    if (!atomic_load(&streams.ready))
        streams.handle = handle;
    atomic_store_explicit(&streams.ready, true, memory_order_release);
    pthread_mutex_unlock(&streams.lock);
    return 0;
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
static struct shape block_for(uint64_t bytes, const char *direct)
{
    uint64_t warps = direct ? (bytes + 2047) / 2048 : 1;
    return (struct shape){1, warps <= 1 ? 32 : warps >= 32 ? 1024 : (unsigned)(32 * warps)};
}

// One block's 1024 threads move 16 KiB in a microsecond or two; 32 blocks fill the links.
static struct shape blocks_for(uint64_t bytes, const char *direct)
{
    uint64_t blocks = direct ? (bytes + (16 << 10) - 1) / (16 << 10) : 1;
    return blocks <= 1 ? block_for(bytes, direct)
                       : (struct shape){blocks < 32 ? (unsigned)blocks : 32, 1024};
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
// copies go to the copy engine, to leave the multiprocessors to others. Figures: docs/adr/0009.
static bool by_kernel(uint64_t bytes, gpushmem_stream_t stream)
{
    return bytes < gpsh.settings.stream_copy_bytes &&
           (bytes > gpsh.settings.stream_kernel_bytes || capturing(stream));
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
    if (!there || op->bytes <= gpsh.settings.stream_kernel_bytes)
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
    if (GPSH_UNLIKELY(!atomic_load_explicit(&streams.ready, memory_order_acquire))) {
        int status = prepare();
        if (status)
            return status;
    }
    gpsh_device_side_launching();
    bool entered = gpsh_gpu_enter();
    gpsh_cu_result code = enqueue(op, stream);
    gpsh_gpu_leave(entered);
    if (GPSH_LIKELY(!code))
        return 0;
    const char *what = names[op->kind] + sizeof "gpsh_stream_" - 1;
    return gpsh_gpu_fail(code, "%s towards PE %d on stream %p", what, op->pe, (void *)stream);
}

int gpsh_stream_gpu_check_local(const char *function, const void *local)
{
    unsigned type;
    if (gpsh_offset(local) < gpsh.heap_bytes ||
        !gpsh_cu.pointer_attribute(&type, GPSH_CU_POINTER_MEMORY_TYPE,
                                   (gpsh_cu_ptr)(uintptr_t)local))
        return 0;
    return gpsh_fail(
        GPUSHMEM_ERR_INVALID,
        "%s: %p is pageable host memory, which a stream's operations cannot use; pass memory "
        "of the GPU, or pinned host memory (cudaHostAlloc, cudaHostRegister)",
        function, local);
}
