// SPDX-License-Identifier: BSD-3-Clause
// Starting kernels: on the GPU, or on CPU threads. The same source serves both:
//
// GPUSHMEM_LAUNCH(kernel, grid, block, stream, arguments...)
//     0 or a negative status; returns at once
// GPUSHMEM_LAUNCH_SHARED(kernel, grid, block, shared_bytes, stream, arguments...)
//     the same with so much dynamic shared memory for each block: grid, block, bytes and stream
//     come as between CUDA's <<< >>>. GPUSHMEM_LAUNCH alone has no bytes;
//     GPUSHMEM_LAUNCH_COLLECTIVE has them
// gpushmem_launch_wait(stream)
//     until the stream's kernels are done; reports their errors. What the host has posted on the
//     default context is complete before it waits, since kernels may wait for what that brings
//     about
// gpushmem_stream_create(&stream), gpushmem_stream_destroy(stream)
//     a stream of its own; what is in it still runs to its end. Destroying NULL does nothing. Both
//     return 0 or a negative status. GPUSHMEM_ERR_CUDA: (destroy) there is no such stream;
//     (create) the driver has no more
// GPUSHMEM_SHARED(type, name, count), GPUSHMEM_DYNAMIC_SHARED(type, name)
//     in a kernel: `type *name`, memory of the block; the second of the launch's size
//
// Launches in one stream run one after the other, different streams run side by side. Stream NULL
// is the default one. The launch gives the kernel's translation unit the current handle, so that
// functions without a handle argument work; a program that launches in another way calls
// gpushmem_device_attach() after gpushmem_init in each file with kernels, or passes the handle as
// an argument (the only way for kernels loaded as cubin or PTX).
#ifndef GPUSHMEM_DEVICE_LAUNCH_CUH
#define GPUSHMEM_DEVICE_LAUNCH_CUH

#include <stdio.h>

#include "gpushmem/device/launch_shape.cuh"
#include "gpushmem/device_host.h"
#if !defined(__CUDACC__)
#include <errno.h>
#include <sys/uio.h>
#endif

// Before init, or after finalize: the sentence names what the program has called.
static inline bool gpsh_is_unready(int status) // kernels fail with the same status
{
    struct gpushmem_dev dev;
    return status == GPUSHMEM_ERR_STATE && gpushmem_device_handle(&dev) == GPUSHMEM_ERR_STATE;
}
static inline int gpsh_launch_unready(int status)
{
    return gpsh_is_unready(status)
               ? gpushmem_launch_refused(status,
                                         "gpushmem is not initialised; call gpushmem_init before")
               : status;
}
static inline int gpsh_wait_unready(int status)
{
    return gpsh_is_unready(status)
               ? gpushmem_call_failed(status, "gpushmem_launch_wait",
                                      "gpushmem is not initialised; call gpushmem_init before")
               : status;
}

#if defined(__CUDACC__)

#define GPUSHMEM_SHARED(type, name, count) __shared__ type name[count]
#define GPUSHMEM_DYNAMIC_SHARED(type, name)                                                        \
    extern __shared__ __align__(128) char gpsh_dynamic_shared[];                                   \
    type *const name = (type *)gpsh_dynamic_shared

// Weak: a file with kernels alone is linked without the library.
extern "C" __attribute__((weak)) void gpushmem_cuda_runtime_add(struct gpushmem_cuda_runtime *);
extern "C" __attribute__((weak)) void gpushmem_cuda_runtime_remove(struct gpushmem_cuda_runtime *);

// The CUDA runtime that is linked with this translation unit; each shared object may have its own,
// so nothing of this is shared. A failure is told by the program's first call of it.
namespace
{
void gpsh_cuda_begin()
{
    if (cudaFree(nullptr) != cudaSuccess)
        cudaGetLastError();
}

struct gpsh_cuda_runtime {
    struct gpushmem_cuda_runtime known = {gpsh_cuda_begin, nullptr, nullptr};
    gpsh_cuda_runtime()
    {
        if (gpushmem_cuda_runtime_add)
            gpushmem_cuda_runtime_add(&known);
    }
    ~gpsh_cuda_runtime()
    {
        if (gpushmem_cuda_runtime_remove)
            gpushmem_cuda_runtime_remove(&known);
    }
} gpsh_cuda_runtime_here;
} // namespace

// Machines where a GPU reaches all memory of the process (HMM, Grace) may have heaps in host
// memory.
static inline bool gpsh_gpu_reaches(const struct gpushmem_dev &dev)
{
    int device = 0, everything = 0;
    if (dev.flags & GPUSHMEM_DEV_GPU_HEAP)
        return true;
    return cudaGetDevice(&device) == cudaSuccess &&
           cudaDeviceGetAttribute(&everything, cudaDevAttrPageableMemoryAccess, device) ==
               cudaSuccess &&
           everything;
}

// Kernels of nvcc, and a heap that they do not reach.
static inline int gpsh_gpu_missing(void)
{
    int gpus = 0;
    char why[240] = "the heap is in host memory, which this GPU's kernels do not reach; "
                    "unset GPUSHMEM_HEAP_KIND, or build the program for CPU threads (g++ -xc++)";
    cudaError_t error = cudaGetDeviceCount(&gpus);
    if (error != cudaSuccess || !gpus)
        snprintf(why, sizeof why,
                 "its kernels were compiled by nvcc, and CUDA finds no GPU here (%s; `gpushmem "
                 "doctor` explains it under cuda); build the program for CPU threads (g++ -xc++)",
                 cudaGetErrorString(error));
    cudaGetLastError();
    return gpushmem_launch_refused(GPUSHMEM_ERR_UNSUPPORTED, why);
}

// CUDA's current device is each thread's own, and 0 in a new thread: a kernel that ran there would
// touch the heap of another GPU's PE, which ends the program's CUDA context.
static inline int gpsh_gpu_of(const struct gpushmem_dev &dev)
{
    struct cudaPointerAttributes heap;
    return cudaPointerGetAttributes(&heap, dev.heap) == cudaSuccess ? heap.device : -1;
}

static inline int gpsh_gpu_is(int gpu)
{
    int current = gpu;
    char why[160];
    if (gpu < 0 || cudaGetDevice(&current) != cudaSuccess || current == gpu)
        return 0;
    snprintf(why, sizeof why,
             "this thread's GPU is %d, and the heap of this PE is on GPU %d; call "
             "cudaSetDevice(%d) in each thread that launches kernels",
             current, gpu, gpu);
    return gpushmem_launch_refused(GPUSHMEM_ERR_INVALID, why);
}

static inline int gpushmem_device_attach(void)
{
    static uint32_t attached; // generation of the handle this translation unit has
    static int gpu;           // of its heap, or -1
    struct gpushmem_dev dev;
    int status = gpushmem_device_handle(&dev);
    if (status)
        return status;
    if (__atomic_load_n(&attached, __ATOMIC_ACQUIRE) == dev.generation)
        return gpsh_gpu_is(__atomic_load_n(&gpu, __ATOMIC_RELAXED));
    if (!gpsh_gpu_reaches(dev))
        return gpsh_gpu_missing();
    int heaps = dev.flags & GPUSHMEM_DEV_GPU_HEAP ? gpsh_gpu_of(dev) : -1;
    status = gpsh_gpu_is(heaps);
    if (status)
        return status;
    __atomic_store_n(&gpu, heaps, __ATOMIC_RELAXED);
    cudaError_t error = cudaMemcpyToSymbol(gpsh_dev_implicit, &dev, sizeof dev);
    if (error != cudaSuccess)
        return gpushmem_launch_refused(GPUSHMEM_ERR_CUDA, cudaGetErrorString(error));
    // Threads that launch for the first time at once copy the same bytes, all before they launch.
    __atomic_store_n(&attached, dev.generation, __ATOMIC_RELEASE);
    return 0;
}

// Once for each translation unit, whose kernels are one module: before the first of them runs.
static inline void gpsh_load_kernels_beside(const void *kernel)
{
    static bool loaded;
    cudaFunction_t function;
    if (__atomic_load_n(&loaded, __ATOMIC_ACQUIRE))
        return;
    if (cudaGetFuncBySymbol(&function, kernel) == cudaSuccess)
        gpushmem_kernels_load(function);
    else
        cudaGetLastError(); // the launch will say what is wrong with the kernel
    __atomic_store_n(&loaded, true, __ATOMIC_RELEASE);
}

template <typename Kernel> static cudaError_t gpsh_allow_shared(Kernel kernel, size_t shared_bytes)
{
    const size_t without_asking = 48 << 10;
    return shared_bytes > without_asking
               ? cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                      (int)shared_bytes)
               : cudaSuccess;
}

// Whether blocks of this shape have too many threads for the kernel's registers, which CUDA's own
// sentence leaves to the reader; then what to do about it is in `why`.
static inline bool gpsh_launch_finds_no_registers(const void *kernel,
                                                  const struct gpushmem_launch_shape *shape,
                                                  char *why, size_t bytes)
{
    cudaFuncAttributes has;
    const unsigned threads = shape->block[0] * shape->block[1] * shape->block[2];
    if (cudaFuncGetAttributes(&has, kernel) != cudaSuccess ||
        threads <= (unsigned)has.maxThreadsPerBlock)
        return false;
    snprintf(why, bytes,
             "the kernel takes %d registers for each thread, so a block has at most %d threads; "
             "launch smaller blocks, or declare the kernel with __launch_bounds__(%u)",
             has.numRegs, has.maxThreadsPerBlock, threads);
    return true;
}

// Told here, a failure is taken from CUDA, so that no later call finds it.
static inline int gpsh_launch_status(cudaError_t error, const void *kernel, dim3 grid, dim3 block,
                                     size_t shared_bytes)
{
    if (error == cudaSuccess)
        return 0;
    char why[200];
    cudaGetLastError();
    const struct gpushmem_launch_shape shape = gpsh_launch_shape(grid, block, shared_bytes);
    // A cooperative launch has the second, as if the grid were too large.
    bool registers =
        (error == cudaErrorLaunchOutOfResources || error == cudaErrorCooperativeLaunchTooLarge) &&
        gpsh_launch_finds_no_registers(kernel, &shape, why, sizeof why);
    return gpushmem_launch_failed(GPUSHMEM_ERR_CUDA, &shape,
                                  registers ? why : cudaGetErrorString(error));
}

// Static: it gives the handle to its own translation unit. The launch returns its own status: after
// <<<>>> there is only CUDA's last error, which may be older.
template <typename Kernel, typename... Arguments>
static int gpsh_launch_now(Kernel kernel, dim3 grid, dim3 block, size_t shared_bytes,
                           gpushmem_stream_t stream, Arguments... arguments)
{
    int status = gpushmem_device_attach();
    if (status)
        return gpsh_launch_unready(status);
    gpsh_load_kernels_beside((const void *)kernel);
    cudaError_t error = gpsh_allow_shared(kernel, shared_bytes);
    if (error == cudaSuccess) {
        cudaLaunchConfig_t config = {};
        config.gridDim = grid;
        config.blockDim = block;
        config.dynamicSmemBytes = shared_bytes;
        config.stream = stream;
        error = cudaLaunchKernelEx(&config, kernel, arguments...);
    }
    return gpsh_launch_status(error, (const void *)kernel, grid, block, shared_bytes);
}

static inline int gpsh_cuda_status(const char *function, cudaError_t error)
{
    if (error == cudaSuccess)
        return 0;
    cudaGetLastError();
    return gpushmem_call_failed(GPUSHMEM_ERR_CUDA, function, cudaGetErrorString(error));
}

static inline int gpushmem_stream_create(gpushmem_stream_t *stream)
{
    if (!stream)
        return gpushmem_call_failed(GPUSHMEM_ERR_INVALID, "gpushmem_stream_create",
                                    "there is no place for the stream (NULL)");
    return gpsh_cuda_status("gpushmem_stream_create",
                            cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking));
}

static inline int gpushmem_stream_destroy(gpushmem_stream_t stream)
{
    return stream ? gpsh_cuda_status("gpushmem_stream_destroy", cudaStreamDestroy(stream)) : 0;
}

static inline int gpushmem_launch_wait(gpushmem_stream_t stream)
{
    gpushmem_launch_waiting(1);
    cudaError_t error = cudaStreamSynchronize(stream);
    gpushmem_launch_waiting(-1);
    int device = gpushmem_device_error(); // the sentence of what failed first stays
    return error == cudaSuccess ? gpsh_wait_unready(device)
                                : gpsh_cuda_status("gpushmem_launch_wait", error);
}

#else

// What the library calls to put an operation into an emulated stream, and to wait for all kernels.
// gpushmem's own programs link it (docs/design/building.md).
#if defined(GPSH_EMU_LINKED)
int gpsh_emu_enqueue(gpushmem_stream_t stream, const struct gpushmem_stream_op *op);
#else
#include "gpushmem/device/emu_operations.cuh"
#endif

// Asked of the kernel, since touching GPU memory would end the program.
inline bool gpsh_cpu_reaches(const struct gpushmem_dev &dev)
{
    char byte;
    struct iovec here = {&byte, 1}, there = {dev.heap, 1};
    return !(dev.flags & GPUSHMEM_DEV_GPU_HEAP) ||
           process_vm_readv((pid_t)gpsh_emu_syscall(SYS_getpid), &here, 1, &there, 1, 0) == 1 ||
           errno != EFAULT;
}

inline int gpushmem_device_attach(void)
{
    static gpsh_emu_mutex lock;
    struct gpushmem_dev dev;
    gpushmem_stream_serve(gpsh_emu_enqueue);
    int status = gpushmem_device_handle(&dev);
    // Threads may make their first launches at the same time: the copy is looked at with the lock.
    gpsh_emu_guard guard(lock);
    if (status || dev.generation == gpsh_dev_implicit.generation)
        return status;
    if (!gpsh_cpu_reaches(dev))
        return gpushmem_launch_refused(
            GPUSHMEM_ERR_UNSUPPORTED,
            "its kernels run on CPU threads, but the heap is in GPU memory; set "
            "GPUSHMEM_HEAP_KIND=host, or build the program with nvcc");
    gpsh_emu_wait_all(); // kernels that still run have the old one
    gpsh_dev_implicit = dev;
    return 0;
}

template <typename Kernel, typename... Arguments>
int gpsh_launch_now(Kernel kernel, dim3 grid, dim3 block, size_t shared_bytes,
                    gpushmem_stream_t stream, Arguments... arguments)
{
    int status = gpushmem_device_attach();
    if (status)
        return gpsh_launch_unready(status);
    gpushmem_faults_watch(gpsh_emu_tell_fault);
    return gpsh_emu_submit(
        grid, block, stream, [=] { kernel(arguments...); }, shared_bytes);
}

// The library knows from the start of the program that it has kernels: then no operation of a
// stream is done by the calling thread, which might wait in it for what it does next.
inline const bool gpsh_emu_serves = (gpushmem_stream_serve(gpsh_emu_enqueue), true);

inline int gpushmem_stream_create(gpushmem_stream_t *stream)
{
    if (!stream)
        return gpushmem_call_failed(GPUSHMEM_ERR_INVALID, "gpushmem_stream_create",
                                    "there is no place for the stream (NULL)");
    gpushmem_stream_serve(gpsh_emu_enqueue);
    *stream = gpsh_emu_stream_create();
    return 0;
}

inline int gpushmem_stream_destroy(gpushmem_stream_t stream)
{
    return stream ? gpsh_emu_stream_destroy(stream) : 0;
}

inline int gpushmem_launch_wait(gpushmem_stream_t stream)
{
    gpushmem_launch_waiting(1);
    int status = gpsh_emu_wait(stream);
    gpushmem_launch_waiting(-1);
    int device = gpushmem_device_error();
    return status ? status : gpsh_wait_unready(device);
}

#endif

// Kernels return nothing, and most have parameters: by that the compiler tells one called read or
// sync from the functions of C, which are its overloads. All are templates: a file with kernels
// alone is linked without the library.
template <typename P, typename... More, typename... Arguments>
static inline int gpsh_launch_shared(void (*kernel)(P, More...), dim3 grid, dim3 block,
                                     size_t shared_bytes, gpushmem_stream_t stream,
                                     Arguments... arguments)
{
    return gpsh_launch_now(kernel, grid, block, shared_bytes, stream, arguments...);
}
template <typename = void>
static int gpsh_launch_shared(void (*kernel)(), dim3 grid, dim3 block, size_t shared_bytes,
                              gpushmem_stream_t stream)
{
    return gpsh_launch_now(kernel, grid, block, shared_bytes, stream);
}

template <typename P, typename... More, typename... Arguments>
static inline int gpsh_launch(void (*kernel)(P, More...), dim3 grid, dim3 block,
                              gpushmem_stream_t stream, Arguments... arguments)
{
    return gpsh_launch_now(kernel, grid, block, 0, stream, arguments...);
}
template <typename = void>
static int gpsh_launch(void (*kernel)(), dim3 grid, dim3 block, gpushmem_stream_t stream)
{
    return gpsh_launch_now(kernel, grid, block, 0, stream);
}

// An argument of the kernel in the place of the stream. 0 and NULL are streams.
template <typename P, typename... More, typename Pointee, typename... Arguments>
static inline int gpsh_launch(void (*)(P, More...), dim3, dim3, Pointee *, Arguments...)
{
    static_assert(
        !sizeof(Pointee *),
        "GPUSHMEM_LAUNCH(kernel, grid, block, stream, arguments...): the stream, NULL for "
        "the default one, comes before the arguments");
    return GPUSHMEM_ERR_INVALID;
}

// All in one parameter: a kernel may be a template whose arguments have commas between them.
#if defined(__CUDACC__)
#define GPSH_LAUNCH_BY(FUNCTION, ...) FUNCTION(__VA_ARGS__)
#else
// With the text of it, for the trace.
#define GPSH_LAUNCH_BY(FUNCTION, ...) (gpsh_emu_launch_named(#__VA_ARGS__), FUNCTION(__VA_ARGS__))
static inline void gpsh_emu_launch_named(const char *text)
{
    gpsh_emu_launch_text = text;
}
#endif
#define GPUSHMEM_LAUNCH(...)        GPSH_LAUNCH_BY(gpsh_launch, __VA_ARGS__)
#define GPUSHMEM_LAUNCH_SHARED(...) GPSH_LAUNCH_BY(gpsh_launch_shared, __VA_ARGS__)

#endif
