// SPDX-License-Identifier: BSD-3-Clause
// Memory of GPUs at either end, registered by pointer or as a dma-buf. The driver is loaded at run
// time; where there is none, the group is skipped.
#define _GNU_SOURCE // dlopen
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "endpoint.h"

typedef unsigned long long device_pointer;
enum { HANDLE_DMABUF = 1, PAGE = 65536 };

static struct {
    int (*init)(unsigned flags);
    int (*count)(int *n);
    int (*retain)(void **context, int device);
    int (*set)(void *context);
    int (*allocate)(device_pointer *pointer, size_t bytes);
    int (*free)(device_pointer pointer);
    int (*clear)(device_pointer pointer, unsigned char value, size_t bytes);
    int (*copy)(device_pointer to, device_pointer from, size_t bytes);
    int (*wait)(void *stream);
    int (*handle)(void *handle, device_pointer pointer, size_t bytes, int type,
                  unsigned long long flags);
} cuda;

static bool cuda_load(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library)
        return false;
    *(void **)&cuda.init = dlsym(library, "cuInit");
    *(void **)&cuda.count = dlsym(library, "cuDeviceGetCount");
    *(void **)&cuda.retain = dlsym(library, "cuDevicePrimaryCtxRetain");
    *(void **)&cuda.set = dlsym(library, "cuCtxSetCurrent");
    *(void **)&cuda.allocate = dlsym(library, "cuMemAlloc_v2");
    *(void **)&cuda.free = dlsym(library, "cuMemFree_v2");
    *(void **)&cuda.clear = dlsym(library, "cuMemsetD8_v2");
    *(void **)&cuda.copy = dlsym(library, "cuMemcpy");
    *(void **)&cuda.wait = dlsym(library, "cuStreamSynchronize");
    *(void **)&cuda.handle = dlsym(library, "cuMemGetHandleForAddressRange");
    return cuda.init && cuda.handle && !cuda.init(0);
}

// In a process of its own: after cuInit a process must not fork any more.
bool gpu_present(void)
{
    int status = 1;
    pid_t child = fork();
    if (!child) {
        int n = 0;
        _exit(!cuda_load() || cuda.count(&n) || !n);
    }
    return waitpid(child, &status, 0) == child && status == 0;
}

// They last until the process exits.
static device_pointer buffers[64];

static void buffers_free(void)
{
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers && buffers[i]; i++)
        cuda.free(buffers[i]);
}

static void buffer_keep(device_pointer at)
{
    size_t i = 0;
    if (!buffers[0])
        atexit(buffers_free);
    while (buffers[i])
        i++;
    buffers[i] = at;
}

char *gpu_allocate(bool last, size_t bytes, int *dmabuf_fd)
{
    int n = 0;
    void *context;
    device_pointer at = 0;
    if (!cuda_load() || cuda.count(&n) || cuda.retain(&context, last ? n - 1 : 0) ||
        cuda.set(context) || cuda.allocate(&at, bytes + PAGE))
        return NULL;
    buffer_keep(at);
    at = (at + PAGE - 1) & ~(device_pointer)(PAGE - 1); // a dma-buf begins at a page of the host
    cuda.clear(at, 0, bytes); // it, and a copy, may return before they are complete
    cuda.wait(NULL);
    if (dmabuf_fd && cuda.handle(dmabuf_fd, at, bytes, HANDLE_DMABUF, 0))
        *dmabuf_fd = -1;
    return (char *)(uintptr_t)at;
}

void gpu_copy(void *to, const void *from, size_t bytes)
{
    CHECK_EQ(cuda.copy((uintptr_t)to, (uintptr_t)from, bytes), 0);
    CHECK_EQ(cuda.wait(NULL), 0);
}

static uint64_t near_value(struct pair *pair, uint64_t offset)
{
    uint64_t value;
    near_load(pair, offset, &value, sizeof value);
    return value;
}

// Writes of all sizes, also of several mails, and reads of what was written.
static void there_and_back(struct pair *pair)
{
    const uint32_t sizes[] = {1, 8, 100, 4096, 262144, 262145, 500000};
    char *pattern = malloc(BUFFER_BYTES), *back = malloc(BUFFER_BYTES);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct ibv_sge sge;
        for (uint32_t b = 0; b < sizes[i]; b++)
            pattern[b] = (char)(b * 11 + b / 256 + i);
        near_store(pair, 0, pattern, sizes[i]);
        struct ibv_send_wr wr = write_wr(pair, &sge, 0, 40, sizes[i]);
        CHECK_EQ(run_wr(pair, &wr), IBV_WC_SUCCESS);
        wr = write_wr(pair, &sge, BUFFER_BYTES / 2, 40, sizes[i]);
        wr.opcode = IBV_WR_RDMA_READ;
        CHECK_EQ(run_wr(pair, &wr), IBV_WC_SUCCESS);
        near_load(pair, BUFFER_BYTES / 2, back, sizes[i]);
        CHECK(!memcmp(pattern, back, sizes[i]));
    }
    free(pattern);
    free(back);
}

static void count(struct pair *pair)
{
    for (uint64_t i = 0; i < 20; i++) {
        struct ibv_sge sge;
        struct ibv_send_wr wr = write_wr(pair, &sge, 64, 0, 8);
        wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
        wr.wr.atomic.remote_addr = pair->there.address + 8;
        wr.wr.atomic.rkey = pair->there.rkey;
        wr.wr.atomic.compare_add = 3;
        CHECK_EQ(run_wr(pair, &wr), IBV_WC_SUCCESS);
        CHECK_EQ(near_value(pair, 64), 3 * i);
    }
    CHECK_EQ(far_word(pair, 8), 60);
}

static void inline_and_message(struct pair *pair)
{
    uint64_t value = 0x123456789;
    struct ibv_sge sge = {(uintptr_t)&value, 8, 0}, unused;
    struct ibv_send_wr wr = write_wr(pair, &unused, 0, 16, 0);
    wr.sg_list = &sge;
    wr.send_flags |= IBV_SEND_INLINE;
    CHECK_EQ(run_wr(pair, &wr), IBV_WC_SUCCESS);
    CHECK_EQ(far_word(pair, 16), 0x123456789);
    CHECK_EQ(far_do(pair, FAR_RECEIVE, 512).value, 0);
    wr.opcode = IBV_WR_SEND;
    CHECK_EQ(run_wr(pair, &wr), IBV_WC_SUCCESS);
    CHECK_EQ(far_do(pair, FAR_POLL, 0).wc.status, IBV_WC_SUCCESS);
    CHECK_EQ(far_word(pair, 512), 0x123456789);
}

static void all(enum mode mode, enum gpu_memory near, enum gpu_memory far)
{
    struct pair pair;
    struct options options = usual;
    options.near_gpu = near;
    options.far_gpu = far;
    pair_open(&pair, mode, &options);
    there_and_back(&pair);
    struct ibv_sge sge;
    near_store(&pair, 0, (const char[64]){0}, 64);
    struct ibv_send_wr wr = write_wr(&pair, &sge, 0, 0, 64);
    CHECK_EQ(run_wr(&pair, &wr), IBV_WC_SUCCESS);
    count(&pair);
    inline_and_message(&pair);
    wr = write_wr(&pair, &sge, 0, BUFFER_BYTES - 4, 8);
    CHECK_EQ(run_wr(&pair, &wr), IBV_WC_REM_ACCESS_ERR);
    pair_close(&pair);
}

static void far_gpu(enum mode mode)
{
    all(mode, NO_GPU, GPU_BY_POINTER);
}

static void near_gpu(enum mode mode)
{
    all(mode, GPU_BY_POINTER, NO_GPU);
}

static void both_gpus(enum mode mode)
{
    all(mode, GPU_BY_POINTER, GPU_BY_POINTER);
}

// Queues in host memory, data in that of GPUs.
static void programs(enum mode mode, enum gpu_memory near, enum gpu_memory far)
{
    struct pair pair;
    struct options options = usual;
    options.near_gpu = near;
    options.far_gpu = far;
    pair_open(&pair, mode, &options);
    random_programs(&pair);
    pair_close(&pair);
}

static void programs_far(enum mode mode)
{
    programs(mode, NO_GPU, GPU_BY_POINTER);
}

static void programs_near(enum mode mode)
{
    programs(mode, GPU_BY_POINTER, NO_GPU);
}

static void programs_both(enum mode mode)
{
    programs(mode, GPU_BY_POINTER, GPU_BY_POINTER);
}

static void both_dmabuf(enum mode mode)
{
    int fd = -1;
    pid_t child = fork(); // not every machine exports dma-bufs
    if (!child)
        _exit(!gpu_allocate(false, BUFFER_BYTES, &fd) || fd < 0);
    int status = 1;
    waitpid(child, &status, 0);
    if (status) {
        printf("[SKIP] the driver exports no dma-bufs here\n");
        return;
    }
    all(mode, GPU_BY_DMABUF, GPU_BY_DMABUF);
}

enum {
    WRITES = 64,
    ADDS = 4,
    CHAIN = WRITES + ADDS + 1,
    SUM_AT = 8 * WRITES,
    BACK_AT = 4096,
    OLD_AT = 8192
};

// Calls so far, of a driver that counts them (tests/fakes/cuda); -1: this one does not.
static long driver_calls(const char *name)
{
    unsigned long (*calls)(const char *function);
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    *(void **)&calls = library ? dlsym(library, "fake_cuda_calls") : NULL;
    return calls ? (long)calls(name) : -1;
}

// Small writes, atomics on one word and a read, posted together: in order, with few calls of the
// driver.
static void chain(enum mode mode)
{
    struct pair pair;
    struct options options = usual;
    struct ibv_sge sges[CHAIN];
    struct ibv_send_wr wrs[CHAIN];
    options.far_gpu = GPU_BY_POINTER;
    options.sq_depth = 2 * CHAIN;
    pair_open(&pair, mode, &options);
    for (uint64_t i = 0; i < WRITES; i++) {
        *near_word(&pair, 8 * i) = 100 + i;
        wrs[i] = write_wr(&pair, &sges[i], 8 * i, 8 * i, 8);
    }
    for (uint64_t i = WRITES; i < WRITES + ADDS; i++) {
        wrs[i] = write_wr(&pair, &sges[i], OLD_AT + 8 * i, 0, 8);
        wrs[i].opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
        wrs[i].wr.atomic.remote_addr = pair.there.address + SUM_AT;
        wrs[i].wr.atomic.rkey = pair.there.rkey;
        wrs[i].wr.atomic.compare_add = 5;
    }
    wrs[CHAIN - 1] = write_wr(&pair, &sges[CHAIN - 1], BACK_AT, 0, SUM_AT + 8);
    wrs[CHAIN - 1].opcode = IBV_WR_RDMA_READ;
    for (int i = 0; i < CHAIN - 1; i++)
        wrs[i].next = &wrs[i + 1];
    long stores = driver_calls("cuStreamBatchMemOp"), copies = driver_calls("cuMemcpyAsync");
    CHECK_EQ(post(&pair, wrs), 0);
    for (int i = 0; i < CHAIN; i++)
        CHECK_EQ(wait_wc(pair.near.cq).status, IBV_WC_SUCCESS);
    for (uint64_t i = 0; i < WRITES; i++)
        CHECK_EQ(*near_word(&pair, BACK_AT + 8 * i), 100 + i);
    for (uint64_t i = 0; i < ADDS; i++)
        CHECK_EQ(*near_word(&pair, OLD_AT + 8 * (WRITES + i)), 5 * i);
    CHECK_EQ(*near_word(&pair, BACK_AT + SUM_AT), 5 * ADDS);
    if (stores > 0 && mode == SAME_PROCESS) {
        // the writes, and those of the atomics
        CHECK_EQ(driver_calls("cuStreamBatchMemOp") - stores, 2);
        CHECK_EQ(driver_calls("cuMemcpyAsync") - copies, ADDS + 1);
    }
    pair_close(&pair);
}

// Small writes out of GPU memory that are neighbours there: one copy fetches them.
static void gather(enum mode mode)
{
    struct pair pair;
    struct options options = usual;
    struct ibv_sge sges[WRITES];
    struct ibv_send_wr wrs[WRITES];
    uint64_t values[WRITES];
    options.near_gpu = options.far_gpu = GPU_BY_POINTER;
    options.sq_depth = WRITES;
    pair_open(&pair, mode, &options);
    for (uint64_t i = 0; i < WRITES; i++) {
        values[i] = 500 + i;
        wrs[i] = write_wr(&pair, &sges[i], 8 * i, 4096 + 16 * i, 8);
        wrs[i].next = i + 1 < WRITES ? &wrs[i + 1] : NULL;
    }
    near_store(&pair, 0, values, sizeof values);
    long stores = driver_calls("cuStreamBatchMemOp"), copies = driver_calls("cuMemcpyAsync");
    CHECK_EQ(post(&pair, wrs), 0);
    for (int i = 0; i < WRITES; i++)
        CHECK_EQ(wait_wc(pair.near.cq).status, IBV_WC_SUCCESS);
    int n_gpus = 0;
    // another GPU's memory takes copies
    if (stores > 0 && mode == SAME_PROCESS && !cuda.count(&n_gpus) && n_gpus == 1) {
        CHECK_EQ(driver_calls("cuStreamBatchMemOp") - stores, 1);
        CHECK_EQ(driver_calls("cuMemcpyAsync") - copies, 1);
    }
    for (uint64_t i = 0; i < WRITES; i++)
        CHECK_EQ(far_word(&pair, 4096 + 16 * i), values[i]);
    pair_close(&pair);
}

// A request in the middle that has to be refused: what is before it has happened, what is behind it
// has not.
static void refused(enum mode mode)
{
    struct pair pair;
    struct options options = usual;
    struct ibv_sge sges[3];
    struct ibv_send_wr wrs[3];
    options.far_gpu = GPU_BY_POINTER;
    pair_open(&pair, mode, &options);
    *near_word(&pair, 0) = 77;
    wrs[0] = write_wr(&pair, &sges[0], 0, 0, 8);
    wrs[1] = write_wr(&pair, &sges[1], 0, BUFFER_BYTES - 4, 8);
    wrs[2] = write_wr(&pair, &sges[2], 0, 64, 8);
    wrs[0].next = &wrs[1];
    wrs[1].next = &wrs[2];
    CHECK_EQ(post(&pair, wrs), 0);
    CHECK_EQ(wait_wc(pair.near.cq).status, IBV_WC_SUCCESS);
    CHECK_EQ(wait_wc(pair.near.cq).status, IBV_WC_REM_ACCESS_ERR);
    CHECK_EQ(wait_wc(pair.near.cq).status, IBV_WC_WR_FLUSH_ERR);
    CHECK_EQ(far_word(&pair, 0), 77);
    CHECK_EQ(far_word(&pair, 64), 0);
    pair_close(&pair);
}

// The process whose engine does the copying dies.
static void killed(enum mode mode)
{
    struct pair pair;
    struct ibv_sge sge;
    struct options options = usual;
    options.far_gpu = GPU_BY_POINTER;
    pair_open(&pair, mode, &options);
    struct ibv_send_wr wr = write_wr(&pair, &sge, 0, 0, 262144);
    CHECK_EQ(run_wr(&pair, &wr), IBV_WC_SUCCESS);
    CHECK_EQ(post(&pair, &wr), 0);
    kill(pair.child, SIGKILL);
    waitpid(pair.child, NULL, 0);
    int first = wait_wc(pair.near.cq).status; // it may have been in time
    CHECK(first == IBV_WC_SUCCESS || first == IBV_WC_RETRY_EXC_ERR);
    CHECK_EQ(run_wr(&pair, &wr), first ? IBV_WC_WR_FLUSH_ERR : IBV_WC_RETRY_EXC_ERR);
    end_close(&pair.near);
}

const struct test_case gpu_cases[] = {
    {"far_gpu", SAME_PROCESS | PRIVATE_MEMORY, .run = far_gpu},
    {"near_gpu", ALL_MODES, .run = near_gpu},
    {"both_gpus", SAME_PROCESS | PRIVATE_MEMORY, .run = both_gpus},
    {"both_dmabuf", SAME_PROCESS | PRIVATE_MEMORY, .run = both_dmabuf},
    {"chain", SAME_PROCESS | PRIVATE_MEMORY, .run = chain},
    {"gather", SAME_PROCESS | PRIVATE_MEMORY, .run = gather},
    {"refused", SAME_PROCESS | PRIVATE_MEMORY, .run = refused},
    {"killed", PRIVATE_MEMORY, .run = killed},
    {"programs_far", SAME_PROCESS | PRIVATE_MEMORY, "MLX5=1", .run = programs_far},
    {"programs_near", ALL_MODES, "MLX5=1", .run = programs_near},
    {"programs_both", SAME_PROCESS | PRIVATE_MEMORY, "MLX5=1 REORDER=1", .run = programs_both},
    {0},
};
