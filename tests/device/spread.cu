// SPDX-License-Identifier: BSD-3-Clause
// Kernels of one block spread over the rings, launch by launch, whatever stream they are in; the
// threads of a block share one. Run with 4 rings.
#include "kernel_check.cuh"

enum { RINGS = 4, LAUNCHES = 16, THREADS = 8 };

__global__ void put_one(uint64_t *words)
{
    gpushmem_dev_uint64_p(&words[threadIdx.x], 1, gpushmem_dev_my_pe());
}

// The heads lie in GPU memory where the kernels run there.
__global__ void read_heads(gpushmem_dev dev, uint64_t *out)
{
    for (uint32_t i = 0; i < dev.n_rings && i < RINGS; i++)
        out[i] = gpsh_dev_load64_relaxed_gpu(gpsh_dev_ring_at(dev, i).head);
}

// How many rings have grown since `heads` was filled, and by how much in all.
static int grown(const gpushmem_dev *dev, uint64_t *out, uint64_t *heads, uint64_t *commands)
{
    int rings = 0;
    uint64_t now[RINGS] = {};
    *commands = 0;
    RUN(read_heads, 1, 1, *dev, out);
    CHECK_OK(gpushmem_getmem(now, out, sizeof now, gpushmem_my_pe()));
    for (int i = 0; i < RINGS; i++) {
        rings += now[i] > heads[i];
        *commands += now[i] - heads[i];
        heads[i] = now[i];
    }
    return rings;
}

int main(void)
{
    check_begin();
    gpushmem_dev dev;
    uint64_t heads[RINGS] = {}, commands, *words = (uint64_t *)gpushmem_calloc(THREADS, 8);
    uint64_t *out = (uint64_t *)gpushmem_calloc(RINGS, 8);
    gpushmem_stream_t streams[2];
    CHECK_OK(gpushmem_device_handle(&dev));
    CHECK(dev.n_rings == RINGS);
    for (int i = 0; i < 2; i++)
        CHECK_OK(gpushmem_stream_create(&streams[i]));
    RUN(put_one, 1, THREADS, words);
    CHECK(grown(&dev, out, heads, &commands) == 1 && commands == THREADS);
    for (int i = 0; i < LAUNCHES; i++)
        CHECK_OK(GPUSHMEM_LAUNCH(put_one, 1, 1, streams[i % 2], words));
    for (int i = 0; i < 2; i++)
        CHECK_OK(gpushmem_launch_wait(streams[i]));
    CHECK(grown(&dev, out, heads, &commands) == 4 && commands == LAUNCHES);
    for (int i = 0; i < 4; i++)
        CHECK_OK(gpushmem_signal_op_on_stream(words, 1, GPUSHMEM_SIGNAL_SET, 0, streams[0]));
    CHECK_OK(gpushmem_launch_wait(streams[0]));
    CHECK(grown(&dev, out, heads, &commands) == 4);
    CHECK_OK(gpushmem_quiet());
    for (int i = 0; i < 2; i++)
        gpushmem_stream_destroy(streams[i]);
    gpushmem_free(out);
    gpushmem_free(words);
    return check_end("spread");
}
