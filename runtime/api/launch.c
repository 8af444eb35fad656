// SPDX-License-Identifier: BSD-3-Clause
// Launches that all PEs make together.
#include "api/argument.h"
#include "comm/sync.h"
#include "core/settings.h"
#include "gpushmem/device_host.h"

int gpushmem_launch_compare(const struct gpushmem_launch_shape *shape)
{
    const unsigned *grid = shape->grid, *block = shape->block;
    int status = gpsh_check_ready("gpushmem_launch_collective");
    if (status < 0 || !gpsh_settings()->check)
        return status;
    return gpsh_sync_as(
        GPSH_CALL_LAUNCH, (uint64_t)grid[2] << 48 | (uint64_t)grid[1] << 32 | grid[0],
        (uint64_t)shape->shared_bytes << 32 | (uint64_t)block[2] << 24 | block[1] << 12 | block[0],
        "GPUSHMEM_LAUNCH_COLLECTIVE");
}
