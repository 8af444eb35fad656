// SPDX-License-Identifier: BSD-3-Clause
// What a kernel chooses, for coll_choice_test.c.
#include "gpushmem/device.cuh"
#include "gpushmem/device/coll.cuh"

extern "C" int kernel_way(const struct gpushmem_coll_op *op, int n, unsigned flags, bool stream)
{
    const struct gpushmem_dev dev = {};
    const struct gpsh_dev_group alone = {0, 1, gpsh_dev_group::thread};
    struct gpsh_dev_coll c = gpsh_dev_coll_of(dev, alone);
    c.n = c.room = n;
    c.stream = stream;
    c.flags = flags;
    return gpsh_dev_coll_way(c, *op);
}
