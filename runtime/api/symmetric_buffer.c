// SPDX-License-Identifier: BSD-3-Clause
// Buffers of the program as symmetric memory: each PE's pages move into a block of the heap.
// docs/adr/0027-buffers-of-the-program.md.
#include "api/argument.h"
#include "api/consent.h"
#include "api/memory.h"
#include "memory/adopted.h"
#include "memory/regions.h"

// No PE has used the block yet.
static void undo(void *buffer, char *block)
{
    gpsh_adopt_end(buffer);
    if (block)
        gpsh_memory_give((uint64_t)(block - gpsh.heap));
}

static int move_all(const char *function, void *buffer, size_t bytes, char **block)
{
    uint64_t page = gpsh_regions_page_bytes(GPSH_HEAP);
    *block = gpsh_memory_allocate(function, GPSH_CALL_REGISTER, bytes, 0, bytes, page);
    if (!*block) // everywhere
        return gpsh_last_error_code();
    int here = gpsh_adopt_move(function, buffer, *block);
    if (!here)
        here = gpsh_adopt_settle(function, buffer);
    return gpsh_consent(function, GPSH_CALL_REGISTER, bytes, 0, here);
}

void *gpushmem_buffer_register_symmetric(void *buffer, size_t bytes)
{
    char *block = NULL;
    if (gpsh_check_ready(__func__))
        return NULL;
    int here = gpsh_adopt_claim(__func__, buffer, bytes);
    int status = gpsh_consent(__func__, GPSH_CALL_REGISTER, bytes, 0, here);
    if (!status)
        status = move_all(__func__, buffer, bytes, &block);
    if (!status)
        gpsh_adopt_keep(buffer);
    else if (!here)
        undo(buffer, block);
    return status ? NULL : block;
}

int gpushmem_buffer_unregister_symmetric(void *address)
{
    struct gpsh_adopted a = {0};
    int here = gpsh_check_ready(__func__);
    if (here)
        return here;
    bool found = gpsh_adopted_find(address, &a) && a.block;
    uint64_t offset = found ? (uint64_t)(a.block - gpsh.heap) : GPSH_NO_BLOCK;
    if (found)
        here = gpsh_adopt_prepare_return(__func__, a.base);
    else
        here = gpsh_fail(GPUSHMEM_ERR_INVALID, "%s(%p): no symmetric buffer begins there", __func__,
                         address);
    int status = gpsh_consent(__func__, GPSH_CALL_UNREGISTER, offset, 0, here);
    if (status) {
        if (found)
            gpsh_adopt_keep(a.base);
        return status;
    }
    gpsh_adopt_end(a.base);
    gpsh_memory_give(offset);
    return 0;
}
