// SPDX-License-Identifier: BSD-3-Clause
// The fake driver's own test: that it is as strict as fake_cuda.h says. Each case is a process of
// its own, which ends as the table says.
#define _POSIX_C_SOURCE 200809L // setenv, SIGSEGV
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake_cuda.h"
#include "internal.h"

enum { WRONG = 99 };

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            printf("line %d: not true: %s\n", __LINE__, #condition);                               \
            exit(WRONG);                                                                           \
        }                                                                                          \
    } while (0)

static gpsh_cu_context context;

static void start(void)
{
    CHECK(!cuInit(0));
    CHECK(!cuDevicePrimaryCtxRetain(&context, 0));
    CHECK(!cuCtxSetCurrent(context));
}

static gpsh_cu_ptr allocate(size_t bytes)
{
    gpsh_cu_ptr memory = 0;
    CHECK(!cuMemAlloc_v2(&memory, bytes));
    return memory;
}

static void dereference(void)
{
    start();
    signal(SIGSEGV, SIG_DFL); // also under a sanitizer
    volatile char *memory = (volatile char *)(uintptr_t)allocate(100);
    printf("%d\n", memory[7]);
}

static void visible(void)
{
    start();
    gpsh_cu_ptr memory = allocate(100);
    volatile char *seen = (volatile char *)(uintptr_t)memory, *host = fake_cuda_host(memory);
    CHECK(seen != host);
    seen[7] = 3;
    CHECK(host[7] == 3);
    CHECK(!cuMemFree_v2(memory));
}

static void free_twice(void)
{
    start();
    gpsh_cu_ptr memory = allocate(8);
    CHECK(!cuMemFree_v2(memory));
    cuMemFree_v2(memory);
}

static void leak(void)
{
    start();
    allocate(8);
}

static void granularity(void)
{
    start();
    gpsh_cu_ptr base;
    cuMemAddressReserve(&base, 4096, 0, 0, 0);
}

static gpsh_cu_ptr map_block(gpsh_cu_ptr base, int grains)
{
    const struct gpsh_cu_allocation_properties p = {.type = GPSH_CU_ALLOCATION_PINNED,
                                                    .location = {GPSH_CU_LOCATION_DEVICE, 0}};
    const struct gpsh_cu_access access = {{GPSH_CU_LOCATION_DEVICE, 0}, GPSH_CU_ACCESS_READWRITE};
    gpsh_cu_allocation block;
    size_t bytes = (size_t)grains * FAKE_GRAIN;
    CHECK(!cuMemCreate(&block, bytes, &p, 0) && !cuMemMap(base, bytes, 0, block, 0));
    CHECK(!cuMemRelease(block) && !cuMemSetAccess(base, bytes, &access, 1));
    return base + bytes;
}

// Blocks side by side in one reservation: each is memory of its own.
static void several_blocks(void)
{
    start();
    const size_t grain = FAKE_GRAIN;
    gpsh_cu_ptr base, start_of = 0;
    size_t bytes = 0;
    uint64_t word = 7;
    CHECK(!cuMemAddressReserve(&base, 8 * grain, 0, 0, 0));
    gpsh_cu_ptr second = map_block(base, 1), end = map_block(second, 2);
    CHECK(!cuMemcpyHtoDAsync_v2(end - 8, &word, 8, NULL));
    CHECK(cuMemcpyHtoDAsync_v2(end, &word, 8, NULL) == GPSH_CU_INVALID_VALUE);
    CHECK(cuMemcpyHtoDAsync_v2(second - 4, &word, 8, NULL) == GPSH_CU_INVALID_VALUE);
    CHECK(!cuMemGetAddressRange_v2(&start_of, &bytes, second + 5));
    CHECK(start_of == second && bytes == 2 * grain);
    CHECK(cuMemUnmap(base, 3 * grain) == GPSH_CU_INVALID_VALUE);
    CHECK(!cuMemUnmap(base, grain) && !fake_cuda_host(base) && fake_cuda_host(second));
    CHECK(map_block(base, 1) == second && !cuMemUnmap(base, grain));
    CHECK(!cuMemUnmap(second, 2 * grain) && !cuMemAddressFree(base, 8 * grain));
    CHECK(cuMemAddressReserve(&base, (size_t)1 << 40, 0, 0, 0) == GPSH_CU_OUT_OF_MEMORY);
}

static void map_twice(void)
{
    start();
    gpsh_cu_ptr base;
    CHECK(!cuMemAddressReserve(&base, 8 * (size_t)FAKE_GRAIN, 0, 0, 0));
    map_block(base + FAKE_GRAIN, 2);
    map_block(base, 2);
}

static void no_context(void)
{
    gpsh_cu_ptr memory;
    CHECK(cuMemAlloc_v2(&memory, 8) == FAKE_NOT_INITIALISED);
    CHECK(!cuInit(0));
    CHECK(cuMemAlloc_v2(&memory, 8) == FAKE_INVALID_CONTEXT);
    CHECK(cuCtxSetCurrent(&(struct gpsh_cu_context_opaque){0}) == FAKE_INVALID_CONTEXT);
}

static void full(void)
{
    start();
    gpsh_cu_ptr memory;
    CHECK(cuMemAlloc_v2(&memory, 1001) == GPSH_CU_OUT_OF_MEMORY);
    memory = allocate(1000);
    CHECK(!cuMemFree_v2(memory));
}

// The third and the fourth call fail.
static void fails(void)
{
    start();
    gpsh_cu_ptr memory[6];
    for (int i = 1; i <= 5; i++)
        CHECK(cuMemAlloc_v2(&memory[i], 8) == (i == 3 || i == 4 ? 719 : 0));
    CHECK(fake_cuda_calls("cuMemAlloc") == 5);
    CHECK(!cuMemFree_v2(memory[1]) && !cuMemFree_v2(memory[2]) && !cuMemFree_v2(memory[5]));
}

// With 300 ms of delay: nothing has happened when the call returns, unless the memory is pageable.
static void late(void)
{
    start();
    gpsh_cu_stream stream;
    void *memory;
    CHECK(!cuStreamCreate(&stream, GPSH_CU_STREAM_NON_BLOCKING));
    CHECK(!cuMemHostAlloc(&memory, 64, 0));
    volatile uint64_t *pinned = memory;
    gpsh_cu_ptr device = allocate(64);
    uint64_t pageable = 5;
    *pinned = 1;
    CHECK(!cuMemcpyAsync(device, (uintptr_t)pinned, 8, stream)); // reads a 2
    *pinned = 2;
    CHECK(cuStreamQuery(stream) == GPSH_CU_NOT_READY);
    CHECK(!cuMemcpyDtoHAsync_v2(&pageable, device, 8, stream));
    CHECK(pageable == 2 && cuStreamQuery(stream) == 0);
    CHECK(!cuStreamWriteValue64_v2(stream, (uintptr_t)pinned, 9, 0));
    CHECK(*pinned == 2);
    CHECK(!cuStreamSynchronize(stream));
    CHECK(*pinned == 9);
    CHECK(!cuMemcpyHtoDAsync_v2(device, &pageable, 8, stream)); // has read a 2
    pageable = 7;
    CHECK(!cuStreamSynchronize(stream));
    CHECK(*(uint64_t *)fake_cuda_host(device) == 2);
    CHECK(!cuStreamDestroy_v2(stream) && !cuMemFreeHost(memory) && !cuMemFree_v2(device));
}

static void out_of_bounds(void)
{
    start();
    gpsh_cu_ptr device = allocate(64), unused = 0;
    uint64_t word = 0, *parameters[] = {(uint64_t *)&device, (uint64_t *)&unused, &word, &word};
    gpsh_cu_module module;
    gpsh_cu_function add;
    CHECK(cuMemcpyHtoDAsync_v2(device + 60, &word, 8, NULL) == GPSH_CU_INVALID_VALUE);
    CHECK(!cuModuleLoadData(&module,
                            ".version 6.4\n.entry add(x) { atom.global.sys.add.u64 %old, }"));
    CHECK(!cuModuleGetFunction(&add, module, "add"));
    word = 3;
    CHECK(!cuLaunchKernel(add, 1, 1, 1, 1, 1, 1, 0, NULL, (void **)parameters, NULL));
    CHECK(!cuStreamSynchronize(NULL));
    CHECK(*(uint64_t *)fake_cuda_host(device) == 3);
    device += 64;
    CHECK(!cuLaunchKernel(add, 1, 1, 1, 1, 1, 1, 0, NULL, (void **)parameters, NULL));
    CHECK(cuStreamSynchronize(NULL) == FAKE_ILLEGAL_ADDRESS);
    CHECK(cuMemFree_v2(device - 64) == FAKE_ILLEGAL_ADDRESS); // sticky
}

static const struct {
    const char *name, *environment, *value;
    void (*run)(void);
    int exit_code, killed_by;
} cases[] = {
    {"dereference", "FAKE_CUDA_LEAKS", "0", dereference, 0, SIGSEGV},
    {"visible", "FAKE_CUDA_VISIBLE", "1", visible, 0, 0},
    {"free_twice", "FAKE_CUDA_LEAKS", "1", free_twice, 0, SIGABRT},
    {"leak", "FAKE_CUDA_LEAKS", "1", leak, 66, 0},
    {"granularity", "FAKE_CUDA_LEAKS", "1", granularity, 0, SIGABRT},
    {"several_blocks", "FAKE_CUDA_LEAKS", "1", several_blocks, 0, 0},
    {"map_twice", "FAKE_CUDA_LEAKS", "0", map_twice, 0, SIGABRT},
    {"no_context", "FAKE_CUDA_LEAKS", "1", no_context, 0, 0},
    {"full", "FAKE_CUDA_MEMORY", "1000", full, 0, 0},
    {"fails", "FAKE_CUDA_FAIL", "cuMemAlloc:719@3-4", fails, 0, 0},
    {"late", "FAKE_CUDA_DELAY_US", "300000", late, 0, 0},
    {"out_of_bounds", "FAKE_CUDA_LEAKS", "0", out_of_bounds, 0, 0},
};

int main(int argc, char **argv)
{
    int wrong = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (argc > 1 && !strcmp(argv[1], cases[i].name))
            return cases[i].run(), 0;
        if (argc > 1)
            continue;
        fflush(stdout);
        pid_t child = fork();
        if (!child) {
            setenv(cases[i].environment, cases[i].value, 1);
            execl(argv[0], argv[0], cases[i].name, (char *)NULL);
            _exit(WRONG);
        }
        int status = 0;
        waitpid(child, &status, 0);
        bool good = cases[i].killed_by
                        ? WIFSIGNALED(status) && WTERMSIG(status) == cases[i].killed_by
                        : WIFEXITED(status) && WEXITSTATUS(status) == cases[i].exit_code;
        printf("%s: %s (status %#x)\n", cases[i].name, good ? "ok" : "WRONG", (unsigned)status);
        wrong += !good;
    }
    return wrong != 0;
}
