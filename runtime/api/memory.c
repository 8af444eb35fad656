// SPDX-License-Identifier: BSD-3-Clause
#include "api/memory.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/argument.h"
#include "api/compat.h"
#include "api/growth.h"
#include "comm/context.h"
#include "comm/sync.h"
#include "connect/net.h"
#include "core/config.h"
#include "core/log.h"
#include "core/sized.h"
#include "gpushmem/gpushmem.h"
#include "job/job.h"
#include "memory/adopted.h"
#include "memory/blocks.h"
#include "memory/heap.h"
#include "memory/local_memory.h"
#include "memory/place.h"
#include "memory/regions.h"
#include "memory/symmetric.h"
#include "memory/team_scratch.h"
#include "proxy/device_side.h"

int gpsh_memory_init(void)
{
    gpsh_heap_growth_init();
    return gpsh_blocks_init();
}

uint64_t gpsh_memory_number(const void *block)
{
    uint64_t offset = gpsh_blocks_offset(block);
    if (gpsh_blocks_arena(block) == GPSH_ARENA_HOST)
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
            gpsh_blocks_give(block);
    if (n)
        GPSH_LOG(WARN, "heap",
                 "gpushmem_finalize found %d symmetric buffer%s of the program, and makes %s plain "
                 "memory again; call gpushmem_buffer_unregister_symmetric before",
                 n, n == 1 ? "" : "s", n == 1 ? "it" : "them");
}

static bool leaves_blocks;

void gpsh_memory_leave_blocks(void)
{
    leaves_blocks = true;
}

static void warn_of_blocks(enum gpsh_arena arena)
{
    struct gpsh_heap_usage usage;
    if (gpsh_blocks_usage(arena, &usage) && usage.allocations && !leaves_blocks)
        GPSH_LOG(WARN, "heap",
                 "gpushmem_finalize found %" PRIu64 " block%s (%" PRIu64
                 " bytes) of the symmetric heap still allocated, and releases all of it; call "
                 "gpushmem_free before",
                 usage.allocations, usage.allocations == 1 ? "" : "s", usage.used_bytes);
}

void gpsh_memory_finalize(void)
{
    struct gpsh_heap_usage ignored;
    if (!gpsh_blocks_usage(GPSH_ARENA_HEAP, &ignored))
        return;
    end_registrations();
    warn_of_blocks(GPSH_ARENA_HEAP);
    warn_of_blocks(GPSH_ARENA_HOST);
    gpsh_local_finalize();
    gpsh_blocks_finalize();
}

// Every PE comes here, as the heap is exhausted on all of them, unless they differ in what they
// ask for: growing meets the others, and finds that out.
static int take_of_larger(const char *function, enum gpsh_collective_kind kind, uint64_t a,
                          uint64_t b, uint64_t bytes, uint64_t alignment, void **block)
{
    uint64_t before = gpsh_heap_bytes(), need;
    if (__builtin_add_overflow(bytes, alignment + 2 * GPSH_HEAP_GRAIN, &need))
        need = UINT64_MAX;
    int status = gpsh_heap_grow(function, kind, a, b, bytes, need, NULL);
    if (!status)
        status = gpsh_blocks_extend(before, gpsh_heap_bytes() - before);
    if (!status)
        *block = gpsh_blocks_take(function, GPSH_ARENA_HEAP, bytes, alignment);
    return status;
}

// *block is NULL if there is no room. What became of it is told by the sentence, and where the heap
// has grown there is nothing to tell.
static int take(const char *function, enum gpsh_arena from, enum gpsh_collective_kind kind,
                uint64_t a, uint64_t b, uint64_t bytes, uint64_t alignment, void **block)
{
    struct gpsh_error before;
    gpsh_error_keep(&before);
    *block = gpsh_blocks_take(function, from, bytes, alignment);
    if (*block || from != GPSH_ARENA_HEAP || !gpsh_heap()->grows)
        return 0;
    int status = take_of_larger(function, kind, a, b, bytes, alignment, block);
    if (*block)
        gpsh_error_put_back(&before);
    return status;
}

static int fill(void *block, int byte, uint64_t bytes)
{
    if (gpsh_blocks_arena(block) == GPSH_ARENA_HEAP)
        return gpsh_regions_fill(block, byte, bytes);
    memset(block, byte, bytes);
    return 0;
}

// Few programs look whether an allocation is NULL. What the others did, or what became of them, is
// nowhere else to be seen; that a heap is exhausted is told once, to programs that do look, too.
static void *nothing(void)
{
    static atomic_bool told;
    const int code = gpushmem_last_error_code();
    bool full = code == GPUSHMEM_ERR_NO_MEMORY;
    if (gpsh_failures_are_told() || (full && atomic_exchange(&told, true)))
        return NULL;
    if (full)
        GPSH_LOG(WARN, "heap", "an allocation is NULL: %s", gpsh_last_error());
    else if (code != GPUSHMEM_ERR_INVALID && code != GPUSHMEM_ERR_PE_FAILED)
        GPSH_LOG(ERROR, "heap", "an allocation is NULL: %s", gpsh_last_error());
    return NULL;
}

// The barrier compares the arguments, and the blocks: a PE that passed others, or that is in
// another call, is told to all, and nothing has changed then.
static void *allocate(const char *function, enum gpsh_arena from, enum gpsh_collective_kind kind,
                      uint64_t a, uint64_t b, uint64_t bytes, uint64_t alignment)
{
    if (gpsh_check_ready(function) || !bytes)
        return NULL;
    void *block;
    if (take(function, from, kind, a, b, bytes, alignment, &block) == GPUSHMEM_ERR_ASYMMETRY)
        return nothing(); // all were told when they met: another meeting would be one too many
    if (block && kind == GPSH_CALL_CALLOC && fill(block, 0, bytes) < 0)
        block = NULL;
    // A PE whose heap is exhausted still meets the others: all of them are, since allocation is
    // symmetric.
    if (gpsh_barrier_at(kind, a, b, gpsh_memory_number(block), function)) {
        if (block)
            gpsh_blocks_give(block);
        return nothing();
    }
    return block ? block : nothing();
}

void *gpsh_memory_allocate_host(const char *function, enum gpsh_collective_kind kind, uint64_t a,
                                uint64_t b, uint64_t bytes, uint64_t alignment)
{
    return allocate(function, gpsh_heap()->device ? GPSH_ARENA_HOST : GPSH_ARENA_HEAP, kind, a, b,
                    bytes, alignment);
}

void *gpushmem_malloc(size_t bytes)
{
    return allocate(__func__, GPSH_ARENA_HEAP, GPSH_CALL_MALLOC, bytes, 0, bytes, 1);
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
    return allocate(__func__, GPSH_ARENA_HEAP, GPSH_CALL_CALLOC, count, size, bytes, 1);
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
                  ", the most that a heap that began with %" PRIu64 " bytes can give%s",
                  alignment, gpsh_regions_alignment(), gpsh_heap()->first_bytes,
                  gpsh_heap()->first_bytes < GPSH_SYMMETRIC_ALIGNMENT && !gpsh_heap()->device
                      ? "; a larger GPUSHMEM_HEAP_SIZE gives more"
                      : "");
        return NULL;
    }
    return allocate(__func__, GPSH_ARENA_HEAP, GPSH_CALL_ALIGN, alignment, bytes, bytes, alignment);
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
    if (gpsh_blocks_arena(block) == GPSH_ARENA_HEAP && !gpsh_in_user_heap(gpsh_offset(block), 1))
        return gpsh_fail(GPUSHMEM_ERR_ADDRESS,
                         "%s(%p): not an address of the symmetric heap (%s); pass what "
                         "gpushmem_malloc returned",
                         function, block, range);
    return gpsh_fail(GPUSHMEM_ERR_ADDRESS,
                     "%s(%p): no allocated block starts there; was it freed already, or is it not "
                     "what gpushmem_malloc returned?",
                     function, block);
}

// No PE uses the block any more. With GPUSHMEM_CHECK=1 who reads it all the same sees that.
static int release(void *block, uint64_t bytes)
{
    enum { STALE = 0xdf };
    int status = gpsh_settings()->check ? fill(block, STALE, bytes) : 0;
    gpsh_blocks_give(block);
    return status;
}

// 0: none begins there.
static uint64_t block_bytes(const void *block)
{
    if (gpsh_memory_number(block) == GPSH_NO_BLOCK || is_adopted(block))
        return 0;
    return gpsh_blocks_size(block);
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
    uint64_t bytes = block_bytes(block);
    if (!bytes)
        return refuse_block(__func__, block);
    int filled = release(block, bytes);
    return status ? status : filled;
}

static int copy(void *to, const void *from, uint64_t bytes)
{
    if (gpsh_blocks_arena(from) == GPSH_ARENA_HEAP)
        return gpsh_regions_copy(to, from, bytes);
    memcpy(to, from, bytes);
    return 0;
}

// Nobody uses `old` any more, and all PEs have passed the same. Other PEs may put into the new
// block once all have copied.
static void *reallocate(const char *function, void *old, uint64_t old_bytes, uint64_t bytes)
{
    const uint64_t number = gpsh_memory_number(old);
    void *block;
    (void)take(function, gpsh_blocks_arena(old), GPSH_CALL_REALLOC, number, bytes, bytes, 1,
               &block);
    const uint64_t place = gpsh_memory_number(block);
    if (block && copy(block, old, old_bytes < bytes ? old_bytes : bytes) < 0) {
        gpsh_blocks_give(block);
        block = NULL;
    }
    int status = gpsh_sync_at(GPSH_CALL_REALLOC, number, bytes, place, function);
    if (block && status)
        gpsh_blocks_give(block);
    else if (block)
        (void)release(old, old_bytes);
    return block && !status ? block : nothing();
}

void *gpushmem_realloc(void *address, size_t bytes)
{
    if (gpsh_check_ready(__func__) || (!address && !bytes))
        return NULL;
    if (!address)
        return allocate(__func__, GPSH_ARENA_HEAP, GPSH_CALL_REALLOC, GPSH_NULL_BLOCK, bytes, bytes,
                        1);
    uint64_t old = block_bytes(address), number = old ? gpsh_memory_number(address) : GPSH_NO_BLOCK;
    if (gpsh_barrier_as(GPSH_CALL_REALLOC, number, bytes, __func__))
        return NULL;
    if (!old) {
        refuse_block(__func__, address);
        return NULL;
    }
    if (bytes)
        return reallocate(__func__, address, old, bytes);
    (void)release(address, old);
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
    return allocate(__func__, GPSH_ARENA_HEAP, GPSH_CALL_MALLOC_WITH_HINTS, bytes, (uint64_t)hints,
                    bytes, 1);
}

int gpushmem_pe_accessible(int pe)
{
    if (gpsh_job()->n_pes == 0 || pe < 0 || pe >= gpsh_job()->n_pes)
        return 0;
    const struct gpsh_peer *peer = &gpsh_job()->peers[pe];
    return atomic_load_explicit(&peer->error, memory_order_acquire) == 0 &&
           (gpsh_direct_base(pe) != NULL || peer->data >= 0);
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
    if (pe == gpsh_job()->my_pe)
        return (void *)(uintptr_t)sym;
    if (!gpsh_place_find(sym, 1, pe, &place) || place.direct)
        return place.direct;
    // no processor reaches GPU memory, but kernels and copies of this PE's GPU do
    char *base = gpsh_device_side_direct(pe) ? gpsh_heap()->mapped[place.region][pe] : NULL;
    return base ? base + place.offset : NULL;
}

int gpushmem_heap_info_sized(struct gpushmem_heap_info *out, size_t size)
{
    enum { FIRST_VERSION = 48 };
    int status = gpsh_check_initialised("heap_info");
    if (status)
        return status;
    struct gpsh_heap_usage usage;
    (void)gpsh_blocks_usage(GPSH_ARENA_HEAP, &usage);
    const struct gpushmem_heap_info info = {.bytes = usage.bytes,
                                            .used_bytes = usage.used_bytes,
                                            .largest_free_bytes = usage.largest_free,
                                            .allocations = usage.allocations,
                                            .kind = gpsh_heap()->device ? "device" : "host",
                                            .pages = gpsh_regions_pages()};
    return gpsh_sized_fill("gpushmem_heap_info", out, size, &info, sizeof info, FIRST_VERSION);
}

// From the transports 0 .. n-1. The first failure, if any.
static int unregister_from(int n, const void *base)
{
    int result = 0;
    for (int i = 0; i < n; i++) {
        struct gpsh_transport *t = gpsh_net()->transports[i];
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
    for (; n < gpsh_net()->n_transports && !status; n++) {
        struct gpsh_transport *t = gpsh_net()->transports[n];
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
    uint64_t first = (uintptr_t)buffer, base = (uintptr_t)gpsh_heap()->base;
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
    return unregister_from(gpsh_net()->n_transports, address);
}
