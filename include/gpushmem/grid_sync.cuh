// SPDX-License-Identifier: BSD-3-Clause
// All threads of a grid meet. A header of its own: CUDA's cooperative_groups.h, which it includes,
// costs nvcc as much as all the rest of gpushmem/device.cuh.
//
// int gpushmem_dev_grid_sync()
//     In a kernel of GPUSHMEM_LAUNCH_COLLECTIVE: waits until all threads of the grid have called
//     it, none of which may have returned. What they did in memory of this GPU before is visible to
//     all of them after it; what they did at other PEs is ordered by fence and quiet as ever. 0, or
//     GPUSHMEM_ERR_STATE, recorded as a failure in the kernel: it was launched in another way. A
//     grid of one block may be launched in any way. CUDA 13 (driver 580) does not tell the ways
//     apart: there a grid that was launched in another way meets if all its blocks happen to run
//     at once, and waits for ever if not.
#ifndef GPUSHMEM_GRID_SYNC_CUH
#define GPUSHMEM_GRID_SYNC_CUH

#include "gpushmem/device.cuh"
#if defined(__CUDACC__)
#include <cooperative_groups.h>
#endif

#if defined(__CUDACC__)
GPSH_DEV bool gpsh_dev_grid_is_together(void)
{
    return cooperative_groups::this_grid().is_valid();
}
GPSH_DEV void gpsh_dev_grid_meet(void)
{
    cooperative_groups::this_grid().sync();
}
#else
GPSH_DEV bool gpsh_dev_grid_is_together(void)
{
    return gpsh_emu_current_block->grid;
}
GPSH_DEV void gpsh_dev_grid_meet(void)
{
    gpsh_emu_current_block->grid->wait();
}
#endif

// 0, or GPUSHMEM_ERR_STATE, recorded: the grid's blocks can't meet. The same for all threads.
GPSH_DEV int gpsh_dev_grid_check(const struct gpushmem_dev &dev)
{
    if (gpsh_dev_grid_blocks() == 1 || gpsh_dev_grid_is_together())
        return 0;
    gpsh_dev_record(&dev.fault[GPUSHMEM_FAULT_FIRST], &dev.fault_claim[GPUSHMEM_FAULT_FIRST],
                    GPUSHMEM_ERR_STATE, -1, nullptr, 0, {GPUSHMEM_FAULT_GRID, 0, 0, 0});
    return GPUSHMEM_ERR_STATE;
}

GPSH_DEV int gpsh_dev_grid_sync(const struct gpushmem_dev &dev)
{
    if (int status = gpsh_dev_grid_check(dev))
        return status;
    if (gpsh_dev_grid_blocks() == 1)
        __syncthreads();
    else
        gpsh_dev_grid_meet();
    return 0;
}

GPSH_API_0(int, gpushmem_dev_grid_sync, return gpsh_dev_grid_sync(dev))

#endif
