// SPDX-License-Identifier: BSD-3-Clause
// A copy in the default stream behind a kernel that waits for its own proxy: the CUDA driver may
// keep the proxy until the kernel has timed out, and then the PE says that this is why. What
// docs/gpu.md advises instead works. usage: behind pageable|pinned|stream|synchronised, with
// GPUSHMEM_P2P=0 and GPUSHMEM_WAIT_TIMEOUT_MS
#include <cuda_runtime.h>
#include <gpushmem/device.cuh>
#include <gpushmem/gpushmem.h>
#include <stdio.h>
#include <string.h>
#include <thread>
#include <unistd.h>

enum { BEFORE_US = 200000, WORDS = 5 };

static int failed(const char *what)
{
    fprintf(stderr, "gpu_behind: %s: %s\n", what, gpushmem_last_error());
    return 1;
}

// The command comes once the program's thread is in its copy.
__global__ void get(long *to, const long *from, volatile int *begin)
{
    while (!*begin)
        ;
    gpushmem_dev_getmem(to, from, WORDS * sizeof *to, gpushmem_dev_my_pe());
}

static int served(long *words, volatile int *begin, cudaStream_t stream)
{
    *begin = 1;
    if (GPUSHMEM_LAUNCH(get, 1, 1, stream, words, words + WORDS, begin) ||
        gpushmem_launch_wait(stream))
        return failed("a kernel that nothing is behind");
    *begin = 0;
    return 0;
}

static int judge(bool pageable, int status)
{
    const char *sentence =
        "the CUDA driver has kept the thread gpushmem-proxy of PE 0 waiting for ";
    bool told = strstr(gpushmem_last_error(), sentence);
    printf("gpu_behind: the kernel returned %d%s%s\n", status, status ? ": " : "",
           status ? gpushmem_last_error() : "");
    return status && !(pageable && status == GPUSHMEM_ERR_TIMEOUT && told);
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "pageable";
    bool pageable = !strcmp(mode, "pageable"), own = !strcmp(mode, "stream");
    long pageable_memory[WORDS], *pinned, *source;
    int *begin;
    cudaStream_t stream = NULL;
    if (gpushmem_init())
        return failed("init");
    long *words = (long *)gpushmem_calloc(2 * WORDS, sizeof *words);
    if (cudaHostAlloc((void **)&begin, sizeof *begin, cudaHostAllocMapped) ||
        cudaHostAlloc((void **)&pinned, sizeof pageable_memory, 0) ||
        cudaMalloc((void **)&source, sizeof pageable_memory) ||
        (own && cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking)))
        return failed("CUDA");
    if (served(words, begin, stream))
        return 1;
    if (GPUSHMEM_LAUNCH(get, 1, 1, stream, words, words + WORDS, begin))
        return failed("launch");
    std::thread lets_it([=] {
        usleep(BEFORE_US);
        *(volatile int *)begin = 1;
    });
    if (!strcmp(mode, "synchronised"))
        cudaStreamSynchronize(stream);
    cudaMemcpyAsync(!strcmp(mode, "pinned") ? pinned : pageable_memory, source,
                    sizeof pageable_memory, cudaMemcpyDeviceToHost, stream);
    cudaStreamSynchronize(stream);
    int result = judge(pageable, gpushmem_device_error());
    lets_it.join();
    gpushmem_free(words);
    return gpushmem_finalize() || result;
}
