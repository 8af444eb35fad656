// SPDX-License-Identifier: BSD-3-Clause
#include "api/memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/argument.h"
#include "api/consent.h"
#include "api/growth.h"
#include "comm/context.h"
#include "comm/sync.h"
#include "core/sized.h"
#include "gpushmem/gpushmem.h"
#include "memory/adopted.h"
#include "memory/heap_alloc.h"
#include "memory/local_memory.h"
#include "memory/place.h"
#include "memory/regions.h"
#include "memory/symmetric.h"
#include "memory/team_scratch.h"
#include "proxy/device_side.h"
#include "state/state.h"

// What blocks are taken from: the heap, and beside one in GPU memory some host memory (base NULL:
// none).
static struct arena {
    struct gpsh_heap_alloc *allocator;
    char *base;
    uint64_t bytes; // of the host memory
} heap, host;
static uint64_t allocated_end; // of the heap, where blocks may lie
// Under THREAD_MULTIPLE several threads may ask for usage while one allocates; allocation itself is
// collective.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

int gpsh_memory_init(void)
{
    gpsh_heap_growth_init();
    gpsh_consent_init();
    allocated_end = gpsh.user_bytes;
    heap = (struct arena){.allocator = gpsh_heap_alloc_new(gpsh.user_bytes), .base = gpsh.heap};
    host = (struct arena){.base = gpsh_regions_host_part(&host.bytes), .bytes = host.bytes};
    if (host.base)
        host.allocator = gpsh_heap_alloc_new(host.bytes);
    return heap.allocator && (host.allocator || !host.base)
               ? 0
               : gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory for the heap's book-keeping");
}

static struct arena *arena_of(const void *block)
{
    return host.base && (uint64_t)((uintptr_t)block - (uintptr_t)host.base) < host.bytes ? &host
                                                                                         : &heap;
}

static uint64_t offset_of(const void *block)
{
    return (uint64_t)((uintptr_t)block - (uintptr_t)arena_of(block)->base);
}

uint64_t gpsh_memory_number(const void *block)
{
    uint64_t offset = offset_of(block);
    if (arena_of(block) == &host)
        return GPSH_HOST_BLOCK | offset;
    return offset < gpsh_heap_bytes() ? offset : GPSH_NO_BLOCK;
}

// Their blocks are not among those that the program forgot.
static void end_registrations(void)
{
    char *block;
    int n = 0;
    for (; gpsh_adopted_end_one(&block); n++)
        if (block)
            gpsh_memory_give(block);
    if (n)
        GPSH_LOG(WARN, "heap",
                 "gpushmem_finalize found %d symmetric buffer%s of the program, and makes %s plain "
                 "memory again; call gpushmem_buffer_unregister_symmetric before",
                 n, n == 1 ? "" : "s", n == 1 ? "it" : "them");
}

static void warn_of_blocks(const struct arena *arena)
{
    struct gpsh_heap_usage usage = {0};
    if (arena->allocator)
        gpsh_heap_alloc_usage(arena->allocator, &usage);
    if (usage.allocations && !gpsh.openshmem)
        GPSH_LOG(WARN, "heap",
                 "gpushmem_finalize found %" PRIu64 " block%s (%" PRIu64
                 " bytes) of the symmetric heap still allocated, and releases all of it; call "
                 "gpushmem_free before",
                 usage.allocations, usage.allocations == 1 ? "" : "s", usage.used_bytes);
}

void gpsh_memory_finalize(void)
{
    if (!heap.allocator)
        return;
    end_registrations();
    warn_of_blocks(&heap);
    warn_of_blocks(&host);
    gpsh_local_finalize();
    gpsh_heap_alloc_delete(heap.allocator);
    gpsh_heap_alloc_delete(host.allocator);
    heap = host = (struct arena){.base = NULL};
}

static const char *setting_of(const struct arena *arena)
{
    if (arena == &host)
        return "GPUSHMEM_HOST_HEAP_SIZE";
    return "GPUSHMEM_HEAP_SIZE or GPUSHMEM_HEAP_MAX";
}

// Takes a block on this PE; the caller makes it collective. NULL and an error sentence if the arena
// is exhausted.
static void *take(const char *function, struct arena *from, uint64_t bytes, uint64_t alignment)
{
    pthread_mutex_lock(&lock);
    int64_t offset = from->allocator ? gpsh_heap_alloc_take(from->allocator, bytes, alignment) : -1;
    struct gpsh_heap_usage usage = {0};
    if (offset < 0 && from->allocator)
        gpsh_heap_alloc_usage(from->allocator, &usage);
    pthread_mutex_unlock(&lock);
    if (offset >= 0)
        return from->base + offset;
    char where[64] = "";
    if (alignment > 1)
        snprintf(where, sizeof where, " at a multiple of %" PRIu64, alignment);
    gpsh_fail(GPUSHMEM_ERR_NO_MEMORY,
              "%s: no block of %" PRIu64 " bytes%s is free in the symmetric %s of "
              "%" PRIu64 " bytes (the largest free one has %" PRIu64 "); raise %s",
              function, bytes, where, from == &host ? "host memory" : "heap", usage.bytes,
              usage.largest_free, setting_of(from));
    return NULL;
}

static bool give(const void *block)
{
    const struct arena *arena = arena_of(block);
    pthread_mutex_lock(&lock);
    bool given = gpsh_heap_alloc_give(arena->allocator, offset_of(block));
    pthread_mutex_unlock(&lock);
    return given;
}

void gpsh_memory_give(const void *block)
{
    (void)give(block);
}

// The heap had `before` bytes. Beyond what is reserved at the end of the first piece, or beyond
// memory of the program, or beyond a grain: no block may lie in two pieces, since a NIC has a key
// for each.
static int extend(uint64_t before, uint64_t more)
{
    uint64_t between = before - allocated_end, gap = between ? between : GPSH_HEAP_GRAIN;
    pthread_mutex_lock(&lock);
    bool extended = gpsh_heap_alloc_extend(heap.allocator, gap, between ? more : more - gap);
    pthread_mutex_unlock(&lock);
    if (extended)
        allocated_end = before + more;
    return extended ? 0
                    : gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory for the heap's book-keeping");
}

// Every PE comes here, as the heap is exhausted on all of them, unless they differ in what they
// ask for: growing meets the others, and finds that out.
static int take_of_larger(const char *function, enum gpsh_collective_kind kind, uint64_t a,
                          uint64_t b, uint64_t bytes, uint64_t alignment, void **block)
{
    uint64_t before = gpsh_heap_bytes(), need;
    if (__builtin_add_overflow(bytes, alignment + 2 * GPSH_HEAP_GRAIN, &need))
        need = UINT64_MAX;
    int status = gpsh_heap_grow(function, kind, a, b, bytes, need);
    if (!status)
        status = extend(before, gpsh_heap_bytes() - before);
    if (!status)
        *block = take(function, &heap, bytes, alignment);
    return status;
}

static int zero(void *block, uint64_t bytes)
{
    if (arena_of(block) == &heap)
        return gpsh_regions_zero(block, bytes);
    memset(block, 0, bytes);
    return 0;
}

// The barrier compares the arguments: a PE that passed others, or that is in another call, is told
// to all, and nothing has changed then.
static void *allocate(const char *function, struct arena *from, enum gpsh_collective_kind kind,
                      uint64_t a, uint64_t b, uint64_t bytes, uint64_t alignment)
{
    if (gpsh_check_ready(function) || !bytes)
        return NULL;
    void *block = take(function, from, bytes, alignment);
    if (!block && from == &heap && gpsh.heap_grows &&
        take_of_larger(function, kind, a, b, bytes, alignment, &block) == GPUSHMEM_ERR_ASYMMETRY)
        return NULL; // all were told when they met: another meeting would be one too many
    if (block && kind == GPSH_CALL_CALLOC && zero(block, bytes) < 0)
        block = NULL;
    // A PE whose heap is exhausted still meets the others: all of them are, since allocation is
    // symmetric.
    if (gpsh_barrier_as(kind, a, b, function)) {
        if (block)
            gpsh_memory_give(block);
        return NULL;
    }
    return block;
}

void *gpsh_memory_allocate_host(const char *function, enum gpsh_collective_kind kind, uint64_t a,
                                uint64_t b, uint64_t bytes, uint64_t alignment)
{
    return allocate(function, gpsh.device_heap ? &host : &heap, kind, a, b, bytes, alignment);
}

void *gpushmem_malloc(size_t bytes)
{
    return allocate(__func__, &heap, GPSH_CALL_MALLOC, bytes, 0, bytes, 1);
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
    return allocate(__func__, &heap, GPSH_CALL_CALLOC, count, size, bytes, 1);
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
                  alignment, gpsh_regions_alignment(), gpsh_heap_bytes(),
                  gpsh_heap_bytes() < GPSH_SYMMETRIC_ALIGNMENT && !gpsh.device_heap
                      ? "; a larger GPUSHMEM_HEAP_SIZE gives more"
                      : "");
        return NULL;
    }
    return allocate(__func__, &heap, GPSH_CALL_ALIGN, alignment, bytes, bytes, alignment);
}

static bool is_adopted(const void *block)
{
    struct gpsh_adopted ignored;
    return gpsh_adopted_find(block, &ignored);
}

// Why `block` cannot be freed or moved.
static int refuse_block(const char *function, const void *block)
{
    char range[GPSH_PLACE_RANGE_BYTES];
    if (is_adopted(block))
        return gpsh_fail(GPUSHMEM_ERR_ADDRESS,
                         "%s(%p): a symmetric buffer of the program begins there; call "
                         "gpushmem_buffer_unregister_symmetric",
                         function, block);
    gpsh_place_range(range);
    if (arena_of(block) == &heap && !gpsh_in_user_heap(gpsh_offset(block), 1))
        return gpsh_fail(GPUSHMEM_ERR_ADDRESS, "%s(%p): not an address of the symmetric heap (%s)",
                         function, block, range);
    return gpsh_fail(GPUSHMEM_ERR_ADDRESS,
                     "%s(%p): no allocated block starts there; was it freed already, or is it not "
                     "what gpushmem_malloc returned?",
                     function, block);
}

// A wrong address meets the others, too: if it is wrong on one PE only, the barrier says so.
int gpushmem_free(void *block)
{
    int status = gpsh_check_ready(__func__);
    if (status || !block)
        return status;
    status = gpsh_barrier_as(GPSH_CALL_FREE, gpsh_memory_number(block), 0, __func__);
    if (status == GPUSHMEM_ERR_ASYMMETRY)
        return status;
    return !is_adopted(block) && give(block) ? status : refuse_block(__func__, block);
}

static int copy(void *to, const void *from, uint64_t bytes)
{
    if (arena_of(from) == &heap)
        return gpsh_regions_copy(to, from, bytes);
    memcpy(to, from, bytes);
    return 0;
}

// The same content in a block of another size. Collective; the old one stays allocated.
static void *copy_to_new(const char *function, void *old, uint64_t old_bytes, uint64_t bytes)
{
    void *block = take(function, arena_of(old), bytes, 1);
    if (block && copy(block, old, old_bytes < bytes ? old_bytes : bytes) < 0) {
        gpsh_memory_give(block);
        block = NULL;
    }
    return block;
}

// Nobody uses `old` any more. Other PEs may put into the new block once all have copied.
static void *reallocate(const char *function, void *old, uint64_t old_bytes, uint64_t bytes)
{
    void *block = copy_to_new(function, old, old_bytes, bytes);
    int status = gpsh_sync_as(GPSH_CALL_REALLOC, gpsh_memory_number(old), bytes, function);
    void *gone = status ? block : old;
    if (block && gone)
        gpsh_memory_give(gone);
    return status ? NULL : block;
}

// 0: none begins there.
static uint64_t block_bytes(const void *block)
{
    if (gpsh_memory_number(block) == GPSH_NO_BLOCK || is_adopted(block))
        return 0;
    pthread_mutex_lock(&lock);
    uint64_t bytes = gpsh_heap_alloc_size(arena_of(block)->allocator, offset_of(block));
    pthread_mutex_unlock(&lock);
    return bytes;
}

void *gpushmem_realloc(void *address, size_t bytes)
{
    if (gpsh_check_ready(__func__) || (!address && !bytes))
        return NULL;
    if (!address)
        return allocate(__func__, &heap, GPSH_CALL_REALLOC, GPSH_NULL_BLOCK, bytes, bytes, 1);
    uint64_t old = block_bytes(address), number = old ? gpsh_memory_number(address) : GPSH_NO_BLOCK;
    if (gpsh_barrier_as(GPSH_CALL_REALLOC, number, bytes, __func__))
        return NULL;
    if (!old) {
        refuse_block(__func__, address);
        return NULL;
    }
    if (bytes)
        return reallocate(__func__, address, old, bytes);
    gpsh_memory_give(address);
    return NULL;
}

void *gpushmem_malloc_with_hints(size_t bytes, long hints)
{
    const long known =
        GPUSHMEM_MALLOC_ATOMICS_REMOTE | GPUSHMEM_MALLOC_SIGNAL_REMOTE | GPUSHMEM_MALLOC_HOST;
    if (gpsh_check_ready(__func__))
        return NULL;
    if (hints & ~known) {
        gpsh_fail(GPUSHMEM_ERR_INVALID,
                  "gpushmem_malloc_with_hints: hints %#lx have unknown bits; known are "
                  "GPUSHMEM_MALLOC_ATOMICS_REMOTE (%d), GPUSHMEM_MALLOC_SIGNAL_REMOTE (%d) and "
                  "GPUSHMEM_MALLOC_HOST (%d)",
                  hints, GPUSHMEM_MALLOC_ATOMICS_REMOTE, GPUSHMEM_MALLOC_SIGNAL_REMOTE,
                  GPUSHMEM_MALLOC_HOST);
        return NULL;
    }
    if (hints & GPUSHMEM_MALLOC_HOST)
        return gpsh_memory_allocate_host(__func__, GPSH_CALL_MALLOC_WITH_HINTS, bytes,
                                         (uint64_t)hints, bytes, 1);
    return allocate(__func__, &heap, GPSH_CALL_MALLOC_WITH_HINTS, bytes, (uint64_t)hints, bytes, 1);
}

int gpushmem_pe_accessible(int pe)
{
    if (gpsh.n_pes == 0 || pe < 0 || pe >= gpsh.n_pes)
        return 0;
    const struct gpsh_peer *peer = &gpsh.peers[pe];
    return atomic_load_explicit(&peer->error, memory_order_acquire) == 0 &&
           (gpsh.direct[pe] != NULL || peer->data >= 0);
}

int gpushmem_addr_accessible(const void *address, int pe)
{
    return gpushmem_pe_accessible(pe) && gpsh_is_symmetric(address, 1);
}

void *gpushmem_ptr(const void *sym, int pe)
{
    struct gpsh_place place = {.direct = NULL};
    if (gpsh_check_pe_number("gpushmem_ptr", pe) < 0 || gpsh_check_heap("gpushmem_ptr", sym, 1) < 0)
        return NULL;
    if (pe == gpsh.my_pe)
        return (void *)(uintptr_t)sym;
    if (!gpsh_place_find(sym, 1, pe, &place) || place.direct)
        return place.direct;
    // no processor reaches GPU memory, but kernels and copies of this PE's GPU do
    char *base = gpsh_device_side_direct(pe) ? gpsh.mapped[place.region][pe] : NULL;
    return base ? base + place.offset : NULL;
}

int gpushmem_heap_info_sized(struct gpushmem_heap_info *out, size_t size)
{
    enum { FIRST_VERSION = 48 };
    int status = gpsh_check_initialised("heap_info");
    if (status)
        return status;
    struct gpsh_heap_usage usage;
    pthread_mutex_lock(&lock);
    gpsh_heap_alloc_usage(heap.allocator, &usage);
    pthread_mutex_unlock(&lock);
    const struct gpushmem_heap_info info = {.bytes = usage.bytes,
                                            .used_bytes = usage.used_bytes,
                                            .largest_free_bytes = usage.largest_free,
                                            .allocations = usage.allocations,
                                            .kind = gpsh.device_heap ? "device" : "host",
                                            .pages = gpsh_regions_pages()};
    return gpsh_sized_fill("gpushmem_heap_info", out, size, &info, sizeof info, FIRST_VERSION);
}

// From the transports 0 .. n-1. The first failure, if any.
static int unregister_from(int n, const void *base)
{
    int result = 0;
    for (int i = 0; i < n; i++) {
        struct gpsh_transport *t = gpsh.transports[i];
        int status = t->ops->buffer_unregister ? t->ops->buffer_unregister(t, base) : 0;
        if (!result)
            result = status;
    }
    return result;
}

// With all transports, or with none.
static int register_with_all(void *buffer, size_t bytes)
{
    int status = 0, n = 0;
    struct gpsh_region region = gpsh_regions_buffer(buffer, bytes);
    for (; n < gpsh.n_transports && !status; n++) {
        struct gpsh_transport *t = gpsh.transports[n];
        status = t->ops->buffer_register ? t->ops->buffer_register(t, &region) : 0;
    }
    gpsh_regions_buffer_release(&region);
    if (status)
        (void)unregister_from(n - 1, buffer);
    return status;
}

static int check_buffer(const void *buffer, size_t bytes)
{
    if (!buffer || !bytes)
        return gpsh_fail(
            GPUSHMEM_ERR_INVALID,
            "gpushmem_buffer_register(%p, %zu): it takes an address, not NULL, and 1 byte or more",
            buffer, bytes);
    uint64_t first = (uintptr_t)buffer, base = (uintptr_t)gpsh.heap;
    if (first >= base ? first - base < gpsh_heap_bytes() : base - first < bytes)
        return gpsh_fail(GPUSHMEM_ERR_INVALID,
                         "gpushmem_buffer_register(%p, %zu): overlaps the symmetric heap, which is "
                         "registered already",
                         buffer, bytes);
    if (gpsh_adopted_overlaps(buffer, bytes))
        return gpsh_fail(GPUSHMEM_ERR_INVALID,
                         "gpushmem_buffer_register(%p, %zu): overlaps a symmetric buffer, which is "
                         "registered already",
                         buffer, bytes);
    if (!gpsh_local_exists(buffer, bytes))
        return gpsh_fail(GPUSHMEM_ERR_INVALID,
                         "gpushmem_buffer_register(%p, %zu): not all of this is memory of this "
                         "process",
                         buffer, bytes);
    return 0;
}

int gpushmem_buffer_register(void *address, size_t bytes)
{
    int status = gpsh_check_initialised("buffer_register");
    if (!status)
        status = check_buffer(address, bytes);
    if (!status)
        status = gpsh_local_register(address, bytes);
    if (status)
        return status;
    status = register_with_all(address, bytes);
    if (status)
        (void)gpsh_local_unregister(address);
    return status;
}

int gpushmem_buffer_unregister(void *address)
{
    int status = gpsh_check_initialised("buffer_unregister");
    if (status)
        return status;
    if (!gpsh_local_unregister(address))
        return gpsh_fail(GPUSHMEM_ERR_INVALID,
                         "gpushmem_buffer_unregister(%p): no registered buffer begins there",
                         address);
    return unregister_from(gpsh.n_transports, address);
}
