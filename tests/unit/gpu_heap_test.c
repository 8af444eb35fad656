// SPDX-License-Identifier: BSD-3-Clause
// Which range of GPU memory the driver is asked for a dma-buf of. The driver is a table of
// functions, filled here with those that this takes.
#include <criterion/criterion.h>
#include <unistd.h>

#include "gpu/gpu.h"
#include "gpu/gpu_heap.h"

enum { DMABUF = 1234 };

static gpsh_cu_ptr asked;
static size_t asked_bytes;
static gpsh_cu_result answer;

static gpsh_cu_result context_current(gpsh_cu_context *context)
{
    *context = gpsh_gpu.context;
    return 0;
}

static int mode; // of captures, in this thread

static gpsh_cu_result capture_mode(int *exchange)
{
    int before = mode;
    mode = *exchange;
    *exchange = before;
    return 0;
}

// As the real one, which refuses what is not whole pages of the host.
static gpsh_cu_result range_handle(void *handle, gpsh_cu_ptr base, size_t bytes, int type,
                                   unsigned long long flags)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    cr_assert(type == GPSH_CU_RANGE_DMA_BUF_FD && !flags);
    cr_expect_eq(mode, GPSH_CU_CAPTURE_MODE_RELAXED); // the program may capture a stream
    asked = base;
    asked_bytes = bytes;
    if (base % page || bytes % page || !bytes)
        return GPSH_CU_INVALID_VALUE;
    *(int *)handle = DMABUF;
    return answer;
}

static void begin(void)
{
    gpsh_cu.context_current = context_current;
    gpsh_cu.capture_mode = capture_mode;
    gpsh_cu.range_handle = range_handle;
    gpsh_gpu.dmabuf = 1;
}

TestSuite(gpu_heap, .init = begin);

static void expect_range(uint64_t address, size_t bytes, uint64_t first, size_t whole)
{
    const void *memory = (const void *)(uintptr_t)address;
    cr_expect_eq(gpsh_gpu_dmabuf(memory, bytes), DMABUF, "%zu bytes at 0x%llx", bytes,
                 (unsigned long long)address);
    cr_expect(asked == first && asked_bytes == whole, "%zu bytes at 0x%llx: %zu at 0x%llx", bytes,
              (unsigned long long)address, asked_bytes, (unsigned long long)asked);
}

Test(gpu_heap, dmabuf__any_range__the_whole_pages_around_it)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), base = UINT64_C(0x7f0000000000);
    expect_range(base, page, base, page);
    expect_range(base + 264, 8, base, page);
    expect_range(base, page + 1, base, 2 * page);
    expect_range(base + page - 1, 2, base, 2 * page);
    expect_range(base + page + 8, 3 * page - 8, base + page, 3 * page);
    cr_expect_eq(mode, 0);
}

Test(gpu_heap, dmabuf__driver_gives_none__is_none)
{
    answer = GPSH_CU_INVALID_VALUE;
    cr_expect_eq(gpsh_gpu_dmabuf((const void *)4096, 4096), -1);
    gpsh_cu.range_handle = NULL;
    cr_expect_eq(gpsh_gpu_dmabuf((const void *)4096, 4096), -1);
}
