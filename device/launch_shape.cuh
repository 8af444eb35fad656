// SPDX-License-Identifier: BSD-3-Clause
// The shape of a launch as the library takes it. Needs dim3.
#ifndef GPUSHMEM_DEVICE_LAUNCH_SHAPE_CUH
#define GPUSHMEM_DEVICE_LAUNCH_SHAPE_CUH

#include "gpushmem/impl/launch_host.h"

static inline struct gpushmem_launch_shape gpsh_launch_shape(dim3 grid, dim3 block,
                                                             size_t shared_bytes)
{
    return {{grid.x, grid.y, grid.z}, {block.x, block.y, block.z}, shared_bytes};
}

#endif
