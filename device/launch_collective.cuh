// SPDX-License-Identifier: BSD-3-Clause
// Launches that all PEs make together, and whose blocks all run at the same time: so a block may
// wait for any other one, of this PE and of others.
//
// GPUSHMEM_LAUNCH_COLLECTIVE(kernel, grid, block, shared_bytes, stream, arguments...)
//     As GPUSHMEM_LAUNCH_SHARED, whose arguments it has, but the launch is refused if its blocks do
//     not fit onto the GPU at once. A grid of 0 is the largest that fits; the kernel reads it in
//     gridDim.x. It does not wait for the other PEs, and each gets its own largest grid.
//     Collective. The kernel begins when all of its blocks have room: what runs before it in other
//     streams may have to end first. A PE whose launch is refused has launched nothing, and is not
//     waited for: kernels of other PEs that wait for its kernel do so until
//     GPUSHMEM_WAIT_TIMEOUT_MS.
//       GPUSHMEM_ERR_INVALID      the blocks do not fit at once; a side of the grid is 0, not x
//                                 alone
//       GPUSHMEM_ERR_UNSUPPORTED  this GPU has no such launches
//       GPUSHMEM_ERR_ASYMMETRY    with GPUSHMEM_CHECK=1: PEs passed different grids, blocks or
//                                 sizes of shared memory; on all PEs, and nothing was launched.
//                                 The call waits for all PEs then
// gpushmem_launch_collective_grid(kernel, block, shared_bytes, &blocks)
//     How many blocks of this shape fit at once, for this kernel on the current GPU: those of a
//     multiprocessor times their number; on CPU threads as if there were two multiprocessors
//     with room for 1024 threads and 8 blocks each. 0 or a negative status. Local.
//
// gpushmem_dev_grid_sync, by which the blocks of such a kernel meet: gpushmem/grid_sync.cuh.
#ifndef GPUSHMEM_DEVICE_LAUNCH_COLLECTIVE_CUH
#define GPUSHMEM_DEVICE_LAUNCH_COLLECTIVE_CUH

#include <stdio.h>

#include "gpushmem/device/api_generic.cuh"
#include "gpushmem/device/launch.cuh"

// ---- In the kernel ----

// Taken where gpushmem/grid_sync.cuh was not included: that header has the real ones.
template <typename... Handle> GPSH_DEV int gpushmem_dev_grid_sync(const Handle &...)
{
    static_assert(sizeof...(Handle) > 1,
                  "gpushmem_dev_grid_sync: include <gpushmem/grid_sync.cuh> before its first use");
    return GPUSHMEM_ERR_UNSUPPORTED;
}

// ---- On the host ----

// What fits at once: blocks of one multiprocessor, and multiprocessors.
struct gpsh_launch_room {
    int each, processors;
};

#if defined(__CUDACC__)

template <typename Kernel>
static int gpsh_launch_find_room(Kernel kernel, dim3 block, size_t shared_bytes,
                                 struct gpsh_launch_room *room)
{
    const char *function = "gpushmem_launch_collective_grid";
    int device = 0, possible = 0;
    cudaError_t error = cudaGetDevice(&device);
    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(&possible, cudaDevAttrCooperativeLaunch, device);
    if (error == cudaSuccess && !possible)
        return gpushmem_call_failed(GPUSHMEM_ERR_UNSUPPORTED, function,
                                    "this GPU cannot launch all blocks of a grid at once");
    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(&room->processors, cudaDevAttrMultiProcessorCount, device);
    if (error == cudaSuccess)
        error = gpsh_allow_shared(kernel, shared_bytes);
    if (error == cudaSuccess)
        error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(
            &room->each, kernel, (int)(block.x * block.y * block.z), shared_bytes);
    return gpsh_cuda_status(function, error);
}

template <typename... P>
static int gpsh_launch_together(void (*kernel)(P...), dim3 grid, dim3 block, size_t shared_bytes,
                                gpushmem_stream_t stream, P... parameters)
{
    void *addresses[sizeof...(P) + 1] = {(void *)&parameters..., nullptr};
    gpsh_load_kernels_beside((const void *)kernel);
    cudaError_t error = cudaLaunchCooperativeKernel((const void *)kernel, grid, block, addresses,
                                                    shared_bytes, stream);
    return gpsh_launch_status(error, (const void *)kernel, grid, block, shared_bytes);
}

#else

static inline bool
gpsh_launch_finds_no_registers(const void *, const struct gpushmem_launch_shape *, char *, size_t)
{
    return false; // CPU threads have no such limit
}

template <typename Kernel>
static int gpsh_launch_find_room(Kernel, dim3 block, size_t shared_bytes,
                                 struct gpsh_launch_room *room)
{
    const struct gpushmem_launch_shape shape = gpsh_launch_shape(1, block, shared_bytes);
    const char *limit = gpsh_emu_launch_limit(1, block, shared_bytes);
    if (limit)
        return gpushmem_launch_failed(GPUSHMEM_ERR_INVALID, &shape, limit);
    unsigned warps = (block.x * block.y * block.z + warpSize - 1) / warpSize;
    int by_threads = (int)GPSH_EMU_MAX_BLOCK / (int)warpSize / (int)warps,
        by_memory = (int)(GPSH_EMU_MAX_SHARED / (shared_bytes ? shared_bytes : 1));
    room->processors = GPSH_EMU_PROCESSORS;
    room->each = GPSH_EMU_PROCESSOR_BLOCKS;
    room->each = by_threads < room->each ? by_threads : room->each;
    room->each = by_memory < room->each ? by_memory : room->each;
    return 0;
}

template <typename... P>
static int gpsh_launch_together(void (*kernel)(P...), dim3 grid, dim3 block, size_t shared_bytes,
                                gpushmem_stream_t stream, P... parameters)
{
    gpushmem_faults_watch(gpsh_emu_tell_fault);
    return gpsh_emu_submit(
        grid, block, stream, [=] { kernel(parameters...); }, shared_bytes, true);
}

#endif

// *blocks: at most INT_MAX, as on every GPU.
template <typename Kernel>
static int gpsh_launch_grid(Kernel kernel, dim3 block, size_t shared_bytes, int *blocks)
{
    struct gpsh_launch_room room = {0, 0};
    int status = blocks
                     ? gpsh_launch_find_room(kernel, block, shared_bytes, &room)
                     : gpushmem_call_failed(GPUSHMEM_ERR_INVALID, "gpushmem_launch_collective_grid",
                                            "there is no place for the number (NULL)");
    if (!status)
        *blocks = room.each * room.processors;
    return status;
}

// Two of each, as in launch.cuh: for kernels called as functions of C.
template <typename P, typename... More>
static int gpushmem_launch_collective_grid(void (*kernel)(P, More...), dim3 block,
                                           size_t shared_bytes, int *blocks)
{
    return gpsh_launch_grid(kernel, block, shared_bytes, blocks);
}
template <typename = void>
static int gpushmem_launch_collective_grid(void (*kernel)(), dim3 block, size_t shared_bytes,
                                           int *blocks)
{
    return gpsh_launch_grid(kernel, block, shared_bytes, blocks);
}

static inline int gpsh_launch_refuse_room(const void *kernel,
                                          const struct gpushmem_launch_shape *shape, int most)
{
    char why[200];
    if (most || !gpsh_launch_finds_no_registers(kernel, shape, why, sizeof why))
        snprintf(why, sizeof why,
                 "a collective launch needs room for all its blocks at once, and here is room "
                 "for %d%s",
                 most,
                 most ? "; launch fewer, or 0 for as many as fit"
                      : " of that many threads and bytes of shared memory; launch smaller ones");
    return gpushmem_launch_failed(GPUSHMEM_ERR_INVALID, shape, why);
}

// The kernel's parameters convert the arguments, as in every call of a function.
template <typename... P>
static int gpsh_launch_collectively(void (*kernel)(P...), dim3 grid, dim3 block,
                                    size_t shared_bytes, gpushmem_stream_t stream,
                                    typename gpsh_dev_same<P>::type... parameters)
{
    const struct gpushmem_launch_shape shape = gpsh_launch_shape(grid, block, shared_bytes);
    int most = 0;
    int status = gpsh_launch_unready(gpushmem_device_attach());
    if (!status)
        status = gpushmem_launch_compare(&shape);
    if (!status)
        status = gpsh_launch_grid(kernel, block, shared_bytes, &most);
    if (status)
        return status;
    unsigned long long blocks = (unsigned long long)grid.x * grid.y * grid.z;
    if (!blocks && !(grid.x == 0 && grid.y == 1 && grid.z == 1))
        return gpushmem_launch_failed(GPUSHMEM_ERR_INVALID, &shape,
                                      "one of its sides is 0; as many blocks as fit are a grid of "
                                      "0, which is dim3(0, 1, 1)");
    if (most == 0 || blocks > (unsigned long long)most)
        return gpsh_launch_refuse_room((const void *)kernel, &shape, most);
    return gpsh_launch_together<P...>(kernel, blocks ? grid : dim3((unsigned)most), block,
                                      shared_bytes, stream, parameters...);
}

template <typename P, typename... More>
static int gpsh_launch_collective(void (*kernel)(P, More...), dim3 grid, dim3 block,
                                  size_t shared_bytes, gpushmem_stream_t stream,
                                  typename gpsh_dev_same<P>::type first,
                                  typename gpsh_dev_same<More>::type... more)
{
    return gpsh_launch_collectively<P, More...>(kernel, grid, block, shared_bytes, stream, first,
                                                more...);
}
template <typename = void>
static int gpsh_launch_collective(void (*kernel)(), dim3 grid, dim3 block, size_t shared_bytes,
                                  gpushmem_stream_t stream)
{
    return gpsh_launch_collectively<>(kernel, grid, block, shared_bytes, stream);
}

// A stream in the place of the bytes, as in GPUSHMEM_LAUNCH. 0 and NULL are bytes.
template <typename P, typename... More, typename Stream, typename... Arguments>
static int gpsh_launch_collective(void (*)(P, More...), dim3, dim3, Stream *, Arguments...)
{
    static_assert(!sizeof(Stream *),
                  "GPUSHMEM_LAUNCH_COLLECTIVE(kernel, grid, block, shared_bytes, stream, "
                  "arguments...): the bytes of shared memory, 0 for none, come before the stream");
    return GPUSHMEM_ERR_INVALID;
}

template <typename Pointee> struct gpsh_no_stream {
    typedef int type;
};
template <> struct gpsh_no_stream<CUstream_st> {
};

// An argument of the kernel in the place of the stream, as after GPUSHMEM_LAUNCH's one NULL.
template <typename P, typename... More, typename Pointee, typename... Arguments>
static typename gpsh_no_stream<Pointee>::type
gpsh_launch_collective(void (*)(P, More...), dim3, dim3, size_t, Pointee *, Arguments...)
{
    static_assert(!sizeof(Pointee *),
                  "GPUSHMEM_LAUNCH_COLLECTIVE(kernel, grid, block, shared_bytes, stream, "
                  "arguments...): the bytes, 0 for none, and the stream, NULL for the default one, "
                  "come before the arguments");
    return GPUSHMEM_ERR_INVALID;
}

#define GPUSHMEM_LAUNCH_COLLECTIVE(...) GPSH_LAUNCH_BY(gpsh_launch_collective, __VA_ARGS__)

#endif
