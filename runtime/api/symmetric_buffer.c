// SPDX-License-Identifier: BSD-3-Clause
// Buffers of the program as symmetric memory: each PE's pages move into a block of the heap.
// docs/design/memory.md.
#include <pthread.h>

#include "api/argument.h"
#include "api/growth.h"
#include "api/memory.h"
#include "comm/sync.h"
#include "core/error.h"
#include "gpu/gpu.h"
#include "memory/adopted.h"
#include "memory/blocks.h"
#include "memory/gpu_region.h"
#include "memory/heap.h"
#include "memory/regions.h"

// No PE has used the block yet.
static void undo(void *buffer, char *block)
{
    gpsh_adopt_end(buffer);
    if (block)
        gpsh_blocks_give(block);
}

static int move_all(const char *function, void *buffer, size_t bytes, char **block)
{
    uint64_t page = gpsh_regions_page_bytes(gpsh_regions_host());
    *block = gpsh_memory_allocate_host(function, GPSH_CALL_REGISTER, bytes, 0, bytes, page);
    if (!*block) // everywhere
        return gpsh_last_error_code();
    int here = gpsh_adopt_move(function, buffer, *block);
    if (!here)
        here = gpsh_adopt_settle(function, buffer);
    return gpsh_barrier_agree(function, GPSH_CALL_REGISTER, bytes, 0, here);
}

static void *register_buffer(const char *function, void *buffer, size_t bytes)
{
    char *block = NULL;
    int here = gpsh_adopt_claim(function, buffer, bytes);
    int status = gpsh_barrier_agree(function, GPSH_CALL_REGISTER, bytes, 0, here);
    if (!status)
        status = move_all(function, buffer, bytes, &block);
    if (!status)
        gpsh_adopt_keep(buffer);
    else if (!here)
        undo(buffer, block);
    return status ? NULL : block;
}

// ---- GPU memory: the heap goes on in it ----

enum { IN_GPU_MEMORY = 1 }; // so that a PE that passes host memory is told

static void *register_on_gpu(const char *function, void *buffer, size_t bytes)
{
    if (!gpsh_heap()->grows) { // nowhere
        int here = gpsh_fail(GPUSHMEM_ERR_NO_MEMORY,
                             "%s(%p, %zu): there are no addresses beyond the heap for GPU memory; "
                             "set GPUSHMEM_HEAP_MAX to the size of the heap and of all that will "
                             "be registered",
                             function, buffer, bytes);
        (void)gpsh_barrier_agree(function, GPSH_CALL_REGISTER, bytes, IN_GPU_MEMORY, here);
        return NULL;
    }
    char *symmetric = gpsh_heap()->base + gpsh_heap_bytes();
    return gpsh_heap_grow(function, GPSH_CALL_REGISTER, bytes, IN_GPU_MEMORY, bytes, 0, buffer)
               ? NULL
               : symmetric;
}

static int unregister_on_gpu(const char *function, uint64_t offset)
{
    int status = gpsh_barrier_agree(function, GPSH_CALL_UNREGISTER, offset, IN_GPU_MEMORY, 0);
    if (status)
        return status;
    gpsh_heap_adopted_ends(gpsh_heap()->base + offset);
    gpsh_gpu_region_return(offset);
    return 0;
}

static int unregister_buffer(const char *function, const void *address)
{
    struct gpsh_adopted a = {0};
    bool found = gpsh_adopted_find(address, &a) && a.block;
    uint64_t offset = found ? gpsh_memory_number(a.block) : GPSH_NO_BLOCK;
    int here = found ? gpsh_adopt_prepare_return(function, a.base)
                     : gpsh_fail(GPUSHMEM_ERR_INVALID, "%s(%p): no symmetric buffer begins there",
                                 function, address);
    int status = gpsh_barrier_agree(function, GPSH_CALL_UNREGISTER, offset, 0, here);
    if (!status) {
        gpsh_adopt_end(a.base);
        gpsh_blocks_give(a.block);
    } else if (found) {
        gpsh_adopt_keep(a.base);
    }
    return status;
}

// Threads that break the rule of one collective call at a time wait for each other here: they may
// be paired with the wrong ones of other PEs, but memory stays in order.
static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;

void *gpushmem_buffer_register_symmetric(void *buffer, size_t bytes)
{
    if (gpsh_check_ready(__func__))
        return NULL;
    pthread_mutex_lock(&one_at_a_time);
    bool on_gpu = gpsh_heap()->device && bytes && gpsh_gpu_is_device_memory(buffer);
    void *symmetric = on_gpu ? register_on_gpu(__func__, buffer, bytes)
                             : register_buffer(__func__, buffer, bytes);
    pthread_mutex_unlock(&one_at_a_time);
    return symmetric;
}

int gpushmem_buffer_unregister_symmetric(void *address)
{
    int status = gpsh_check_ready(__func__);
    if (status)
        return status;
    pthread_mutex_lock(&one_at_a_time);
    uint64_t offset;
    status = gpsh_gpu_region_adopted(address, &offset) ? unregister_on_gpu(__func__, offset)
                                                       : unregister_buffer(__func__, address);
    pthread_mutex_unlock(&one_at_a_time);
    return status;
}
