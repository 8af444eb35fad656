// SPDX-License-Identifier: BSD-3-Clause
// Kernels of one block spread over the rings, launch by launch, whatever stream they are in; the
// threads of a block share one. For CPU threads: the host reads the rings' heads. Run with 4 rings.
#include "kernel_check.cuh"

enum { LAUNCHES = 16, THREADS = 8 };

__global__ void put_one(uint64_t *words)
{
    gpushmem_dev_uint64_p(&words[threadIdx.x], 1, gpushmem_dev_my_pe());
}

// How many rings have grown since `heads` was filled, and by how much in all.
static int grown(const gpushmem_dev *dev, uint64_t *heads, uint64_t *commands)
{
    int rings = 0;
    *commands = 0;
    for (uint32_t i = 0; i < dev->n_rings; i++) {
        uint64_t now = __atomic_load_n(dev->rings[i].head, __ATOMIC_ACQUIRE);
        rings += now > heads[i];
        *commands += now - heads[i];
        heads[i] = now;
    }
    return rings;
}

int main(void)
{
    check_begin();
    gpushmem_dev dev;
    uint64_t heads[4] = {}, commands, *words = (uint64_t *)gpushmem_calloc(THREADS, 8);
    gpushmem_stream_t streams[2];
    CHECK_OK(gpushmem_device_handle(&dev));
    CHECK(dev.n_rings == 4);
    for (int i = 0; i < 2; i++)
        CHECK_OK(gpushmem_stream_create(&streams[i]));
    RUN(put_one, 1, THREADS, words);
    CHECK(grown(&dev, heads, &commands) == 1 && commands == THREADS);
    for (int i = 0; i < LAUNCHES; i++)
        CHECK_OK(GPUSHMEM_LAUNCH(put_one, 1, 1, streams[i % 2], words));
    for (int i = 0; i < 2; i++)
        CHECK_OK(gpushmem_launch_wait(streams[i]));
    CHECK(grown(&dev, heads, &commands) == 4 && commands == LAUNCHES);
    for (int i = 0; i < 4; i++)
        CHECK_OK(gpushmem_signal_op_on_stream(words, 1, GPUSHMEM_SIGNAL_SET, 0, streams[0]));
    CHECK_OK(gpushmem_launch_wait(streams[0]));
    CHECK(grown(&dev, heads, &commands) == 4);
    CHECK_OK(gpushmem_quiet());
    for (int i = 0; i < 2; i++)
        gpushmem_stream_destroy(streams[i]);
    gpushmem_free(words);
    return check_end("spread");
}
