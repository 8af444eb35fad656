// SPDX-License-Identifier: BSD-3-Clause
#include "api/memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/argument.h"
#include "comm/context.h"
#include "comm/sync.h"
#include "core/sized.h"
#include "gpushmem/gpushmem.h"
#include "memory/heap_alloc.h"
#include "memory/local_memory.h"
#include "memory/regions.h"
#include "memory/symmetric.h"
#include "proxy/device_side.h"
#include "state/state.h"

enum function { CALL_MALLOC, CALL_CALLOC, CALL_ALIGN, CALL_FREE };
static const char *const function_names[] = {"malloc", "calloc", "align", "free"};

static struct gpsh_heap_alloc *allocator;
static uint64_t call_number;
// Under THREAD_MULTIPLE several threads may ask for usage while one allocates; allocation itself is
// collective.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

int gpsh_memory_init(void)
{
    call_number = 0;
    allocator = gpsh_heap_alloc_new(gpsh.heap_bytes - GPSH_DEVICE_RESERVED);
    return allocator ? 0
                     : gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory for the heap's book-keeping");
}

void gpsh_memory_finalize(void)
{
    struct gpsh_heap_usage usage;
    if (!allocator)
        return;
    gpsh_heap_alloc_usage(allocator, &usage);
    if (usage.allocations)
        GPSH_LOG(WARN, "heap",
                 "finalize with %" PRIu64 " block%s (%" PRIu64
                 " bytes) of the symmetric heap still allocated, and "
                 "released now; call gpushmem_free before",
                 usage.allocations, usage.allocations == 1 ? "" : "s", usage.used_bytes);
    gpsh_local_finalize();
    gpsh_heap_alloc_delete(allocator);
    allocator = NULL;
}

static int read_call(int pe, struct gpsh_memory_call *call)
{
    struct gpsh_op op = {.kind = GPSH_OP_GET,
                         .region = GPSH_CONTROL,
                         .pe = pe,
                         .local = (char *)call,
                         .bytes = sizeof *call,
                         .remote = offsetof(struct gpsh_control, memory_call)};
    return gpsh_context_submit(&gpsh_default_context, &op, GPSH_WAIT_FETCH);
}

static int compare_calls(const struct gpsh_memory_call *first, int pe)
{
    struct gpsh_memory_call other;
    int status = read_call(pe, &other);
    if (status || !memcmp(first, &other, sizeof other))
        return status;
    return gpsh_fail(GPUSHMEM_ERR_ASYMMETRY,
                     "allocation call %" PRIu64 ": PE %d calls gpushmem_%s(%" PRIu64 ", %" PRIu64
                     "), PE 0 "
                     "gpushmem_%s(%" PRIu64 ", %" PRIu64
                     "); all PEs must make the same allocation calls in the same order",
                     first->number, pe, function_names[other.function & 3], other.arguments[0],
                     other.arguments[1], function_names[first->function & 3], first->arguments[0],
                     first->arguments[1]);
}

// GPUSHMEM_CHECK=1: every PE shows its call, and all find the same first PE that differs from PE 0.
static int check_symmetry(enum function function, uint64_t a, uint64_t b)
{
    if (!gpsh.settings.check)
        return 0;
    gpsh.control->memory_call = (struct gpsh_memory_call){
        .number = ++call_number, .function = function, .arguments = {a, b}};
    int status = gpsh_sync_all();
    struct gpsh_memory_call first;
    if (!status)
        status = read_call(0, &first);
    for (int pe = 1; pe < gpsh.n_pes && !status; pe++)
        status = compare_calls(&first, pe);
    // Nobody overwrites its call before everybody has looked.
    int barrier = gpsh_sync_all();
    return status ? status : barrier;
}

// Takes a block on this PE; the caller makes it collective. NULL and an error sentence if the heap
// is exhausted.
static void *take(const char *function, uint64_t bytes, uint64_t alignment)
{
    pthread_mutex_lock(&lock);
    int64_t offset = gpsh_heap_alloc_take(allocator, bytes, alignment);
    struct gpsh_heap_usage usage = {0};
    if (offset < 0)
        gpsh_heap_alloc_usage(allocator, &usage);
    pthread_mutex_unlock(&lock);
    if (offset >= 0)
        return gpsh.heap + offset;
    char where[64] = "";
    if (alignment > 1)
        snprintf(where, sizeof where, " at a multiple of %" PRIu64, alignment);
    gpsh_fail(GPUSHMEM_ERR_NO_MEMORY,
              "gpushmem_%s: no block of %" PRIu64 " bytes%s is free in the symmetric heap of "
              "%" PRIu64 " bytes (the largest free one has %" PRIu64 "); raise GPUSHMEM_HEAP_SIZE",
              function, bytes, where, usage.bytes, usage.largest_free);
    return NULL;
}

static void give(uint64_t offset)
{
    pthread_mutex_lock(&lock);
    gpsh_heap_alloc_give(allocator, offset);
    pthread_mutex_unlock(&lock);
}

static void *allocate(enum function function, uint64_t a, uint64_t b, uint64_t bytes,
                      uint64_t alignment, bool zero)
{
    if (gpsh_check_initialised(function_names[function]) || check_symmetry(function, a, b))
        return NULL;
    if (!bytes)
        return NULL;
    void *block = take(function_names[function], bytes, alignment);
    if (block && zero && gpsh_regions_zero(block, bytes) < 0)
        block = NULL;
    // A PE whose heap is exhausted still meets the others: all of them are, since allocation is
    // symmetric.
    if (gpsh_barrier_all()) {
        if (block)
            give((uint64_t)((char *)block - gpsh.heap));
        return NULL;
    }
    return block;
}

void *gpushmem_malloc(size_t bytes)
{
    return allocate(CALL_MALLOC, bytes, 0, bytes, 1, false);
}

void *gpushmem_calloc(size_t count, size_t size)
{
    uint64_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        gpsh_fail(GPUSHMEM_ERR_NO_MEMORY,
                  "gpushmem_calloc: %zu elements of %zu bytes exceed the address space", count,
                  size);
        return NULL;
    }
    return allocate(CALL_CALLOC, count, size, bytes, 1, true);
}

void *gpushmem_align(size_t alignment, size_t bytes)
{
    if (gpsh_check_initialised("align"))
        return NULL;
    if (!alignment || (alignment & (alignment - 1))) {
        gpsh_fail(GPUSHMEM_ERR_INVALID, "gpushmem_align: alignment %zu is not a power of two",
                  alignment);
        return NULL;
    }
    if (alignment > gpsh_regions_alignment()) {
        gpsh_fail(GPUSHMEM_ERR_INVALID,
                  "gpushmem_align: alignment %zu is above %" PRIu64
                  ", the most that this heap of %" PRIu64 " bytes can give%s",
                  alignment, gpsh_regions_alignment(), gpsh.heap_bytes,
                  gpsh.heap_bytes < GPSH_SYMMETRIC_ALIGNMENT && !gpsh.device_heap
                      ? "; a larger GPUSHMEM_HEAP_SIZE gives more"
                      : "");
        return NULL;
    }
    return allocate(CALL_ALIGN, alignment, bytes, bytes, alignment, false);
}

int gpushmem_free(void *block)
{
    int status = gpsh_check_initialised("free");
    if (status || !block)
        return status;
    uint64_t offset = (uint64_t)((uintptr_t)block - (uintptr_t)gpsh.heap);
    // Addresses outside the heap differ between PEs without meaning anything.
    status = check_symmetry(CALL_FREE, offset < gpsh.heap_bytes ? offset : UINT64_MAX, 0);
    if (status)
        return status;
    // Checked before the barrier: a wrong pointer harms nobody. Wrong on one PE only, the others
    // wait in the barrier, which GPUSHMEM_CHECK=1 and GPUSHMEM_WAIT_TIMEOUT_MS turn into an error.
    if (offset >= gpsh.heap_bytes)
        return gpsh_fail(GPUSHMEM_ERR_ADDRESS,
                         "gpushmem_free(%p): not an address of the symmetric heap (%p to %p)",
                         block, (void *)gpsh.heap, (void *)(gpsh.heap + gpsh.heap_bytes));
    pthread_mutex_lock(&lock);
    uint64_t size = gpsh_heap_alloc_size(allocator, offset);
    pthread_mutex_unlock(&lock);
    if (!size)
        return gpsh_fail(
            GPUSHMEM_ERR_ADDRESS,
            "gpushmem_free(%p): no allocated block starts there; was it freed already, or is "
            "it not what gpushmem_malloc returned?",
            block);
    status = gpsh_barrier_all();
    give(offset);
    return status;
}

void *gpushmem_ptr(const void *sym, int pe)
{
    uint64_t offset = gpsh_offset(sym);
    if (gpsh_check_pe_number("gpushmem_ptr", pe) < 0 || gpsh_check_heap("gpushmem_ptr", sym, 1) < 0)
        return NULL;
    if (pe == gpsh.my_pe)
        return gpsh.heap + offset;
    return gpsh.direct[pe] ? gpsh.direct[pe] + offset : NULL;
}

int gpushmem_heap_info_sized(struct gpushmem_heap_info *out, size_t size)
{
    enum { FIRST_VERSION = 48 };
    int status = gpsh_check_initialised("heap_info");
    if (status)
        return status;
    struct gpsh_heap_usage usage;
    pthread_mutex_lock(&lock);
    gpsh_heap_alloc_usage(allocator, &usage);
    pthread_mutex_unlock(&lock);
    const struct gpushmem_heap_info info = {.bytes = usage.bytes,
                                            .used_bytes = usage.used_bytes,
                                            .largest_free_bytes = usage.largest_free,
                                            .allocations = usage.allocations,
                                            .kind = gpsh.device_heap ? "device" : "host",
                                            .pages = gpsh_regions_pages()};
    return gpsh_sized_fill("gpushmem_heap_info", out, size, &info, sizeof info, FIRST_VERSION);
}

static int for_each_transport(const struct gpsh_region *region, const void *base)
{
    for (int i = 0; i < gpsh.n_transports; i++) {
        struct gpsh_transport *t = gpsh.transports[i];
        int status = 0;
        if (region && t->ops->buffer_register)
            status = t->ops->buffer_register(t, region);
        else if (!region && t->ops->buffer_unregister)
            status = t->ops->buffer_unregister(t, base);
        if (status)
            return status;
    }
    return 0;
}

int gpushmem_buffer_register(void *buffer, size_t bytes)
{
    int status = gpsh_check_initialised("buffer_register");
    if (status)
        return status;
    if (!buffer || !bytes)
        return gpsh_fail(GPUSHMEM_ERR_INVALID,
                         "gpushmem_buffer_register(%p, %zu): an empty buffer cannot be registered",
                         buffer, bytes);
    struct gpsh_region region = gpsh_regions_buffer(buffer, bytes);
    status = for_each_transport(&region, NULL);
    gpsh_regions_buffer_release(&region);
    return status ? status : gpsh_local_register(buffer, bytes);
}

int gpushmem_buffer_unregister(void *buffer)
{
    int status = gpsh_check_initialised("buffer_unregister");
    if (status)
        return status;
    gpsh_local_unregister(buffer);
    return for_each_transport(NULL, buffer);
}
