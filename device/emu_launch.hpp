// SPDX-License-Identifier: BSD-3-Clause
// Launches of kernels on CPU threads: streams, and the pool of threads that runs what is in them.
#ifndef GPUSHMEM_EMU_LAUNCH_HPP
#define GPUSHMEM_EMU_LAUNCH_HPP

#include <pthread.h>
#include <stdio.h>
#include <utility>

#include "gpushmem/device/emu.hpp"
#include "gpushmem/device/launch_shape.cuh"

inline unsigned gpsh_emu_launches;

// What GPUSHMEM_LAUNCH was given, for the trace: of the launch that this thread makes next.
inline thread_local const char *gpsh_emu_launch_text;

// What a thread of a launch does: the call of the kernel with its arguments.
struct gpsh_emu_body {
    virtual void run() = 0;
    virtual ~gpsh_emu_body() = default;
};
template <typename Call> struct gpsh_emu_body_of : gpsh_emu_body {
    Call call;
    explicit gpsh_emu_body_of(Call c) : call(std::move(c))
    {
    }
    void run() override
    {
        call();
    }
};

struct gpsh_emu_launch {
    dim3 grid, block;
    gpsh_emu_body *body;
    size_t n_blocks;
    gpsh_emu_block *blocks;
    gpsh_emu_barrier everybody;      // of a collective launch
    unsigned remaining = 0;          // threads still running
    gpsh_emu_launch *next = nullptr; // in its stream
    gpushmem_stream_t stream;
    const char *text; // NULL: an operation of a stream
    uint64_t began = 0;

    gpsh_emu_launch(dim3 g, dim3 b, gpsh_emu_body *f, gpushmem_stream_t s, size_t shared_bytes,
                    bool together)
        : grid(g), block(b), body(f), n_blocks((size_t)g.x * g.y * g.z),
          blocks(new gpsh_emu_block[n_blocks]), stream(s), text(gpsh_emu_launch_text)
    {
        unsigned threads = b.x * b.y * b.z;
        everybody.members = threads * (unsigned)n_blocks;
        unsigned number = __atomic_fetch_add(&gpsh_emu_launches, 1, __ATOMIC_RELAXED);
        for (size_t i = 0; i < n_blocks; i++) {
            gpsh_emu_block &one = blocks[i];
            one.launch = number;
            one.index =
                uint3{(unsigned)(i % g.x), (unsigned)(i / g.x % g.y), (unsigned)(i / g.x / g.y)};
            one.barrier.members = threads;
            one.grid = together ? &everybody : nullptr;
            one.dynamic_bytes = shared_bytes;
            one.warps = new gpsh_emu_warp[(threads + warpSize - 1) / warpSize]();
            one.warpgroups = new gpsh_emu_barrier[(threads + 127) / 128]();
            for (unsigned t = 0; t < threads; t++) {
                one.warps[t / warpSize].barrier.members++;
                one.warpgroups[t / 128].members++;
            }
        }
    }
    ~gpsh_emu_launch()
    {
        delete body;
        delete[] blocks;
    }
    gpsh_emu_launch(const gpsh_emu_launch &) = delete;
};

// What gpushmem_stream_t points to. On a GPU the same name is CUDA's.
struct CUstream_st {
    gpsh_emu_launch *first = nullptr, *last = nullptr; // the first one runs
    // workers set aside: the threads of its largest launch since it was last empty
    size_t reserved = 0;
    int number = 0; // counts those of the process, 0 being the default one
    CUstream_st *next = nullptr;
};

// One thread of the pool. It sleeps until `work` has a launch for it.
struct gpsh_emu_worker {
    uint32_t signal = 0;
    gpsh_emu_launch *launch = nullptr;
    size_t block = 0;
    unsigned thread = 0;
    gpsh_emu_worker *next = nullptr; // that is idle
};

struct gpsh_emu_pool {
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t idle_stream = PTHREAD_COND_INITIALIZER;
    gpsh_emu_worker *idle = nullptr;
    size_t running = 0; // launches begun and not over, or queued
    // that exist: at least `reserved`, so a launch whose turn has come finds its threads idle
    size_t workers = 0;
    size_t reserved = 0;            // by all streams
    CUstream_st standard;           // stream NULL
    CUstream_st *streams = nullptr; // all others that exist
};

// Never destroyed: its threads may outlive static destructors.
inline gpsh_emu_pool &gpsh_emu_the_pool(void)
{
    static gpsh_emu_pool *pool = new gpsh_emu_pool;
    return *pool;
}

enum {
    GPSH_EMU_STACK_BYTES = 512 * 1024,
    GPSH_EMU_MAX_THREADS = 16384,
    GPSH_EMU_MAX_BLOCK = 1024,
    GPSH_EMU_MAX_SHARED = 227 * 1024,
    // what a collective launch has room for: multiprocessors, and blocks on each
    GPSH_EMU_PROCESSORS = 2,
    GPSH_EMU_PROCESSOR_BLOCKS = 8,
};

inline void gpsh_emu_run(gpsh_emu_worker *self)
{
    gpsh_emu_launch *launch = self->launch;
    gpsh_emu_block *block = &launch->blocks[self->block];
    dim3 d = launch->block;
    unsigned t = self->thread;
    blockDim = d;
    gridDim = launch->grid;
    blockIdx = block->index;
    threadIdx = uint3{t % d.x, t / d.x % d.y, t / d.x / d.y};
    gpsh_emu_thread = t;
    gpsh_emu_current_block = block;
    __atomic_fetch_add(&gpsh_emu_running, 1, __ATOMIC_RELAXED);
    launch->body->run();
    __atomic_fetch_sub(&gpsh_emu_running, 1, __ATOMIC_RELAXED);
    gpsh_emu_current_warp().exchange[t % warpSize] = 0; // votes no more
    unsigned lanes = d.x * d.y * d.z - t / warpSize * warpSize;
    if (gpsh_emu_current_warp().barrier.leave())
        gpsh_emu_warp_check(gpsh_emu_current_warp(),
                            lanes < (unsigned)warpSize ? lanes : (unsigned)warpSize);
    block->warpgroups[t / 128].leave();
    block->barrier.leave();
    if (block->grid)
        block->grid->leave();
    gpsh_emu_current_block = nullptr;
}

inline void gpsh_emu_rests(gpsh_emu_pool &pool, gpsh_emu_worker *worker)
{
    worker->next = pool.idle;
    pool.idle = worker;
}

inline void gpsh_emu_begin(gpsh_emu_pool &pool, gpsh_emu_launch *launch);

// The worker's launch is one thread shorter; the last one out starts what is next in the stream.
inline void gpsh_emu_end(gpsh_emu_pool &pool, gpsh_emu_worker *self)
{
    pthread_mutex_lock(&pool.lock);
    gpsh_emu_launch *launch = self->launch;
    gpsh_emu_rests(pool, self);
    if (--launch->remaining == 0) {
        gpushmem_stream_t stream = launch->stream;
        if (launch->began)
            gpushmem_kernel_ends(launch->began, launch->text,
                                 (unsigned)launch->n_blocks * launch->block.x * launch->block.y *
                                     launch->block.z,
                                 stream->number);
        stream->first = launch->next;
        pool.running--;
        delete launch;
        if (stream->first) {
            gpsh_emu_begin(pool, stream->first);
        } else {
            pool.reserved -= stream->reserved;
            stream->reserved = 0;
            pthread_cond_broadcast(&pool.idle_stream);
        }
    }
    pthread_mutex_unlock(&pool.lock);
}

inline void *gpsh_emu_worker_main(void *arg)
{
    gpsh_emu_worker *self = (gpsh_emu_worker *)arg;
    gpsh_emu_pool &pool = gpsh_emu_the_pool();
    pthread_setname_np(pthread_self(), "gpushmem-kernel");
    for (uint32_t seen = 0;; seen++) {
        while (__atomic_load_n(&self->signal, __ATOMIC_ACQUIRE) == seen)
            gpsh_emu_futex_wait(&self->signal, seen);
        gpsh_emu_run(self);
        gpsh_emu_end(pool, self);
    }
    return nullptr;
}

// Makes sure that there are `count` workers; the lock is held. 0 or a negative status.
inline int gpsh_emu_grow(gpsh_emu_pool &pool, size_t count)
{
    int error = 0;
    while (!error && pool.workers < count) {
        gpsh_emu_worker *worker = new gpsh_emu_worker;
        error = gpushmem_kernel_thread_start(gpsh_emu_worker_main, worker, GPSH_EMU_STACK_BYTES);
        if (error) {
            delete worker;
        } else {
            gpsh_emu_rests(pool, worker);
            pool.workers++;
        }
    }
    return error ? GPUSHMEM_ERR_NO_MEMORY : 0;
}

// Hands the threads of the launch to idle workers, of which there are enough; the lock is held.
inline void gpsh_emu_begin(gpsh_emu_pool &pool, gpsh_emu_launch *launch)
{
    unsigned threads = launch->block.x * launch->block.y * launch->block.z;
    launch->remaining = threads * (unsigned)launch->n_blocks;
    launch->began = gpushmem_kernel_begins();
    for (size_t b = 0; b < launch->n_blocks; b++) {
        for (unsigned t = 0; t < threads; t++) {
            gpsh_emu_worker *worker = pool.idle;
            pool.idle = worker->next;
            worker->launch = launch;
            worker->block = b;
            worker->thread = t;
            __atomic_fetch_add(&worker->signal, 1, __ATOMIC_RELEASE);
            gpsh_emu_futex_wake(&worker->signal);
        }
    }
}

// NULL, or what no GPU, or these threads, allow of the launch.
inline const char *gpsh_emu_launch_limit(dim3 grid, dim3 block, size_t shared_bytes)
{
    uint64_t in_block = (uint64_t)block.x * block.y * block.z,
             blocks = (uint64_t)grid.x * grid.y * grid.z;
    if (!in_block || in_block > GPSH_EMU_MAX_BLOCK || block.z > 64)
        return "a block has 1 to 1024 threads, at most 64 of them in z";
    if (!blocks || grid.y > 65535 || grid.z > 65535)
        return "a grid has at least one block, and at most 65535 in y and in z";
    if (blocks > GPSH_EMU_MAX_THREADS || in_block * blocks > GPSH_EMU_MAX_THREADS)
        return "on CPU threads a launch has 1 to 16384 threads, all blocks together";
    if (shared_bytes > GPSH_EMU_MAX_SHARED)
        return "a block has at most 232448 bytes of shared memory";
    return nullptr;
}

inline int gpsh_emu_no_stream(const char *function, gpushmem_stream_t stream)
{
    char text[160];
    snprintf(text, sizeof text,
             "there is no stream %p; pass one that gpushmem_stream_create made and nobody "
             "destroyed, or NULL",
             (void *)stream);
    return gpushmem_call_failed(GPUSHMEM_ERR_CUDA, function, text);
}

// With the lock held. NULL: there is no such stream.
inline gpushmem_stream_t gpsh_emu_stream(gpsh_emu_pool &pool, gpushmem_stream_t stream)
{
    if (!stream)
        return &pool.standard;
    gpushmem_stream_t one = pool.streams;
    while (one && one != stream)
        one = one->next;
    return one;
}

// With the lock held: gives the launch its threads, and its place in its stream.
inline int gpsh_emu_queue(gpsh_emu_pool &pool, gpsh_emu_launch *launch, size_t threads)
{
    gpushmem_stream_t stream = launch->stream;
    size_t more = threads > stream->reserved ? threads - stream->reserved : 0;
    int status = gpsh_emu_grow(pool, pool.reserved + more);
    if (status)
        return status;
    pool.reserved += more;
    stream->reserved += more;
    pool.running++;
    bool alone = !stream->first;
    (alone ? stream->first : stream->last->next) = launch;
    stream->last = launch;
    if (alone)
        gpsh_emu_begin(pool, launch);
    return 0;
}

// The launch, or its failure, takes the body.
inline int gpsh_emu_submit_body(dim3 grid, dim3 block, gpushmem_stream_t stream,
                                gpsh_emu_body *body, size_t shared_bytes, bool together)
{
    const struct gpushmem_launch_shape shape = gpsh_launch_shape(grid, block, shared_bytes);
    const char *limit = gpsh_emu_launch_limit(grid, block, shared_bytes);
    if (limit) {
        delete body;
        return gpushmem_launch_failed(GPUSHMEM_ERR_INVALID, &shape, limit);
    }
    gpsh_emu_pool &pool = gpsh_emu_the_pool();
    pthread_mutex_lock(&pool.lock);
    gpushmem_stream_t known = gpsh_emu_stream(pool, stream);
    pthread_mutex_unlock(&pool.lock);
    if (!known) {
        delete body;
        return gpsh_emu_no_stream("a launch", stream);
    }
    gpsh_emu_launch *launch = new gpsh_emu_launch(grid, block, body, known, shared_bytes, together);
    size_t threads = launch->n_blocks * block.x * block.y * block.z;
    gpsh_emu_launch_text = nullptr;
    pthread_mutex_lock(&pool.lock);
    int status = gpsh_emu_queue(pool, launch, threads);
    pthread_mutex_unlock(&pool.lock);
    if (!status)
        return 0;
    delete launch;
    return gpushmem_launch_failed(
        status, &shape,
        "the system has no more threads; launch fewer, or raise the limit (ulimit -u)");
}

template <typename Call>
inline int gpsh_emu_submit(dim3 grid, dim3 block, gpushmem_stream_t stream, Call body,
                           size_t shared_bytes = 0, bool together = false)
{
    return gpsh_emu_submit_body(grid, block, stream, new gpsh_emu_body_of<Call>(std::move(body)),
                                shared_bytes, together);
}

// With the lock held, which is given up meanwhile. False: there is no such stream.
inline bool gpsh_emu_drain(gpsh_emu_pool &pool, gpushmem_stream_t stream)
{
    gpushmem_stream_t known = gpsh_emu_stream(pool, stream);
    while (known && known->first)
        pthread_cond_wait(&pool.idle_stream, &pool.lock);
    return known != nullptr;
}

inline int gpsh_emu_wait(gpushmem_stream_t stream)
{
    gpsh_emu_pool &pool = gpsh_emu_the_pool();
    pthread_mutex_lock(&pool.lock);
    bool known = gpsh_emu_drain(pool, stream);
    pthread_mutex_unlock(&pool.lock);
    return known ? 0 : gpsh_emu_no_stream("gpushmem_launch_wait", stream);
}

inline gpushmem_stream_t gpsh_emu_stream_create(void)
{
    gpsh_emu_pool &pool = gpsh_emu_the_pool();
    static int made;
    gpushmem_stream_t stream = new CUstream_st;
    pthread_mutex_lock(&pool.lock);
    stream->number = ++made;
    stream->next = pool.streams;
    pool.streams = stream;
    pthread_mutex_unlock(&pool.lock);
    return stream;
}

inline int gpsh_emu_stream_destroy(gpushmem_stream_t stream)
{
    gpsh_emu_pool &pool = gpsh_emu_the_pool();
    pthread_mutex_lock(&pool.lock);
    bool known = gpsh_emu_drain(pool, stream);
    CUstream_st **link = &pool.streams;
    while (*link && *link != stream)
        link = &(*link)->next;
    if (*link)
        *link = stream->next;
    pthread_mutex_unlock(&pool.lock);
    if (!known)
        return gpsh_emu_no_stream("gpushmem_stream_destroy", stream);
    delete stream;
    return 0;
}

// Until nothing runs in any stream.
inline void gpsh_emu_wait_all(void)
{
    gpsh_emu_pool &pool = gpsh_emu_the_pool();
    pthread_mutex_lock(&pool.lock);
    while (pool.running)
        pthread_cond_wait(&pool.idle_stream, &pool.lock);
    pthread_mutex_unlock(&pool.lock);
}

#endif
