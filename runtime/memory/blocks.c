// SPDX-License-Identifier: BSD-3-Clause
#include "memory/blocks.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>

#include "core/error.h"
#include "memory/heap.h"
#include "memory/regions.h"

// What blocks are taken from: the heap, and beside one in GPU memory some host memory (base NULL:
// none).
static struct arena {
    struct gpsh_heap_alloc *allocator;
    char *base;
    uint64_t bytes; // of the host memory
} arenas[GPSH_ARENAS];
static struct arena *const heap = &arenas[GPSH_ARENA_HEAP], *const host = &arenas[GPSH_ARENA_HOST];
static uint64_t allocated_end; // of the heap, where blocks may lie
// Under THREAD_MULTIPLE several threads may ask for usage while one allocates; allocation itself is
// collective.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

int gpsh_blocks_init(void)
{
    uint64_t bytes = 0;
    allocated_end = gpsh_heap()->user_bytes;
    *heap = (struct arena){.allocator = gpsh_heap_alloc_new(gpsh_heap()->user_bytes),
                           .base = gpsh_heap()->base};
    *host = (struct arena){.base = gpsh_regions_host_part(&bytes)};
    host->bytes = bytes;
    if (host->base)
        host->allocator = gpsh_heap_alloc_new(host->bytes);
    return heap->allocator && (host->allocator || !host->base)
               ? 0
               : gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory for the heap's book-keeping");
}

void gpsh_blocks_finalize(void)
{
    for (int i = 0; i < GPSH_ARENAS; i++) {
        gpsh_heap_alloc_delete(arenas[i].allocator);
        arenas[i] = (struct arena){.base = NULL};
    }
}

static struct arena *arena_of(const void *block)
{
    return host->base && (uint64_t)((uintptr_t)block - (uintptr_t)host->base) < host->bytes ? host
                                                                                            : heap;
}

enum gpsh_arena gpsh_blocks_arena(const void *block)
{
    return (enum gpsh_arena)(arena_of(block) - arenas);
}

uint64_t gpsh_blocks_offset(const void *block)
{
    return (uint64_t)((uintptr_t)block - (uintptr_t)arena_of(block)->base);
}

bool gpsh_blocks_usage(enum gpsh_arena from, struct gpsh_heap_usage *usage)
{
    const struct arena *arena = &arenas[from];
    *usage = (struct gpsh_heap_usage){0};
    pthread_mutex_lock(&lock);
    if (arena->allocator)
        gpsh_heap_alloc_usage(arena->allocator, usage);
    pthread_mutex_unlock(&lock);
    return arena->allocator;
}

uint64_t gpsh_blocks_size(const void *block)
{
    pthread_mutex_lock(&lock);
    uint64_t bytes = gpsh_heap_alloc_size(arena_of(block)->allocator, gpsh_blocks_offset(block));
    pthread_mutex_unlock(&lock);
    return bytes;
}

static const char *setting_of(const struct arena *arena)
{
    if (arena == host)
        return "GPUSHMEM_HOST_HEAP_SIZE";
    return "GPUSHMEM_HEAP_SIZE or GPUSHMEM_HEAP_MAX";
}

void *gpsh_blocks_take(const char *function, enum gpsh_arena arena, uint64_t bytes,
                       uint64_t alignment)
{
    struct arena *from = &arenas[arena];
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
              function, bytes, where, from == host ? "host memory" : "heap", usage.bytes,
              usage.largest_free, setting_of(from));
    return NULL;
}

void gpsh_blocks_give(const void *block)
{
    const struct arena *arena = arena_of(block);
    pthread_mutex_lock(&lock);
    (void)gpsh_heap_alloc_give(arena->allocator, gpsh_blocks_offset(block));
    pthread_mutex_unlock(&lock);
}

// The heap had `before` bytes. Beyond what is reserved at the end of the first piece, or beyond
// memory of the program, or beyond a grain: no block may lie in two pieces, since a NIC has a key
// for each.
int gpsh_blocks_extend(uint64_t before, uint64_t more)
{
    uint64_t between = before - allocated_end, gap = between ? between : GPSH_HEAP_GRAIN;
    pthread_mutex_lock(&lock);
    bool extended = gpsh_heap_alloc_extend(heap->allocator, gap, between ? more : more - gap);
    pthread_mutex_unlock(&lock);
    if (extended)
        allocated_end = before + more;
    return extended ? 0
                    : gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory for the heap's book-keeping");
}

static void describe_use(const void *sym, size_t bytes, enum gpsh_heap_use use,
                         const struct gpsh_heap_block *block, char *why, size_t room)
{
    int used = snprintf(why, room, "%zu bytes at %p (%s offset %" PRIu64 ") ", bytes, sym,
                        arena_of(sym) == host ? "host memory" : "heap", gpsh_blocks_offset(sym));
    why += used;
    room -= (size_t)used;
    if (use == GPSH_HEAP_TAKEN)
        snprintf(why, room,
                 "run past the end of the block of %" PRIu64
                 " bytes that was allocated at offset %" PRIu64,
                 block->bytes, block->offset);
    else if (use == GPSH_HEAP_FREED)
        snprintf(why, room,
                 "are in no block: the block of %" PRIu64
                 " bytes that was allocated at offset %" PRIu64 " was freed",
                 block->bytes, block->offset);
    else
        snprintf(why, room, "are in no block: %s",
                 use == GPSH_HEAP_FRESH ? "memory there was never allocated"
                                        : "no block is allocated there; was it freed?");
}

bool gpsh_blocks_hold(const void *sym, size_t bytes, char *why, size_t room)
{
    struct gpsh_heap_block block = {0};
    uint64_t offset = gpsh_blocks_offset(sym);
    pthread_mutex_lock(&lock);
    enum gpsh_heap_use use = gpsh_heap_alloc_use(arena_of(sym)->allocator, offset, &block);
    pthread_mutex_unlock(&lock);
    uint64_t into = offset - block.offset;
    bool held = use == GPSH_HEAP_OTHERS ||
                (use == GPSH_HEAP_TAKEN && into <= block.bytes && bytes <= block.bytes - into);
    if (!held && why)
        describe_use(sym, bytes, use, &block, why, room);
    return held;
}

int gpsh_blocks_check(const char *function, const void *sym, size_t bytes)
{
    char why[256];
    return gpsh_blocks_hold(sym, bytes, why, sizeof why)
               ? 0
               : gpsh_fail(GPUSHMEM_ERR_ADDRESS, "%s: %s", function, why);
}
