// SPDX-License-Identifier: BSD-3-Clause
// The part of CUDA that kernels on CPU threads have, with the results that a GPU gives; launches
// that no GPU takes are refused.
#include <string.h>

#include "kernel_check.cuh"

enum { THREADS = 64, DYNAMIC = 96 };

__global__ void shuffles(int *errors)
{
    int lane = (int)(threadIdx.x % 32), warp = (int)(threadIdx.x / 32);
    EXPECT(errors, __shfl_sync(0xffffffffu, (long)threadIdx.x, 5) == 32 * warp + 5);
    EXPECT(errors, __shfl_sync(0xffffffffu, lane, 1, 8) == lane / 8 * 8 + 1);
    EXPECT(errors, __shfl_up_sync(0xffffffffu, lane, 3) == (lane < 3 ? lane : lane - 3));
    EXPECT(errors,
           __shfl_down_sync(0xffffffffu, lane, 2, 16) == (lane % 16 < 14 ? lane + 2 : lane));
    EXPECT(errors, __shfl_xor_sync(0xffffffffu, lane, 16) == (lane ^ 16));
    float sum = (float)lane;
    for (int by = 16; by; by /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, by);
    EXPECT(errors, sum == 496);
    EXPECT(errors, __ballot_sync(0xffffffffu, lane % 2) == 0xaaaaaaaau);
    EXPECT(errors, __any_sync(0xffffffffu, lane == 7) && !__any_sync(0xffffffffu, lane == 40));
    EXPECT(errors, __all_sync(0xffffffffu, lane < 32) && !__all_sync(0xffffffffu, lane < 31));
}

__global__ void words(unsigned *word, float *number, int *errors)
{
    EXPECT(errors, __popc(0xf0f0u) == 8 && __popcll(~0ull) == 64);
    EXPECT(errors, __clz(1) == 31 && __clz(0) == 32 && __clzll(1) == 63);
    EXPECT(errors, __ffs(8) == 4 && __ffsll(0) == 0);
    EXPECT(errors, min(3, 4u) == 3 && max(-1, 1) == 1 && max(1.5, 2.0) == 2);
    int4 four = make_int4(1, 2, 3, 4);
    EXPECT(errors, four.x + four.w == 5 && sizeof(float4) == 16 && alignof(double2) == 16);
    EXPECT(errors, make_uint3(1, 2, 3).z == 3 && sizeof(char3) == 3);
    long long begin = clock64();
    __nanosleep(100);
    EXPECT(errors, clock64() >= begin);
    EXPECT(errors, __syncthreads_or(threadIdx.x == 7) && !__syncthreads_or(0));
    EXPECT(errors, __syncthreads_and(1) && !__syncthreads_and(threadIdx.x != 7));
    atomicAdd(&word[0], 1u);
    atomicAdd(number, 0.5f);
    atomicMax(&word[1], threadIdx.x);
    atomicOr_system(&word[2], 1u << threadIdx.x % 32);
    atomicSub(&word[3], 1u);
    atomicInc(&word[4], 9u);
    __syncthreads();
    const volatile unsigned *now = word; // a plain load may be answered by what it saw before
    EXPECT(errors, now[0] == THREADS && *(volatile float *)number == THREADS / 2);
    EXPECT(errors, now[1] == THREADS - 1 && now[2] == 0xffffffffu);
    EXPECT(errors, now[3] == 0u - THREADS && now[4] == THREADS % 10);
    EXPECT(errors, __ldg(&word[6]) == 0); // for what no thread of the kernel writes
    EXPECT(errors, atomicCAS(&word[5], 1u, 2u) == 0);
}

// Each block has memory of its own, of the launch's size.
template <typename T, int FACTOR> __global__ void dynamic(int *errors)
{
    GPUSHMEM_DYNAMIC_SHARED(T, mine);
    GPUSHMEM_SHARED(T, fixed, 4);
    for (unsigned i = threadIdx.x; i < DYNAMIC; i += blockDim.x)
        mine[i] = (T)(FACTOR * (i + blockIdx.x));
    if (threadIdx.x < 4)
        fixed[threadIdx.x] = (T)blockIdx.x;
    __syncthreads();
    unsigned other = DYNAMIC - 1 - threadIdx.x;
    EXPECT(errors, mine[other] == (T)(FACTOR * (other + blockIdx.x)));
    EXPECT(errors, fixed[threadIdx.x % 4] == (T)blockIdx.x);
}

__global__ void nothing(void)
{
}

__global__ void touch(int *nowhere)
{
    if (threadIdx.x == 1)
        *nowhere = 1;
}

#define REFUSED(grid, block, text)                                                                 \
    CHECK(GPUSHMEM_LAUNCH(nothing, grid, block, NULL) != 0);                                       \
    CHECK(strstr(gpushmem_last_error(), text))

// A GPU's driver need not tell what a stream is that was destroyed; the emulation does.
static void test_streams(void)
{
    gpushmem_stream_t stream = NULL;
    CHECK(gpushmem_stream_create(NULL) == GPUSHMEM_ERR_INVALID);
    CHECK(strstr(gpushmem_last_error(), "gpushmem_stream_create: "));
    CHECK_OK(gpushmem_stream_destroy(NULL));
    CHECK_OK(gpushmem_stream_create(&stream));
    CHECK_OK(GPUSHMEM_LAUNCH(nothing, 1, 32, stream));
    CHECK_OK(gpushmem_stream_destroy(stream)); // after the kernel
#if !defined(__CUDACC__)
    gpushmem_stream_t const wrong[] = {stream, (gpushmem_stream_t)&stream, (gpushmem_stream_t)16};
    for (gpushmem_stream_t none : wrong) {
        CHECK(GPUSHMEM_LAUNCH(nothing, 1, 1, none) == GPUSHMEM_ERR_CUDA);
        CHECK(strstr(gpushmem_last_error(), "a launch: there is no stream 0x"));
        CHECK(gpushmem_quiet_on_stream(none) == GPUSHMEM_ERR_CUDA);
        gpushmem_clear_error();
        CHECK(gpushmem_launch_wait(none) == GPUSHMEM_ERR_CUDA);
        CHECK(strstr(gpushmem_last_error(), "gpushmem_launch_wait: there is no stream 0x"));
        CHECK(gpushmem_stream_destroy(none) == GPUSHMEM_ERR_CUDA);
        CHECK(strstr(gpushmem_last_error(), "gpushmem_stream_destroy: there is no stream 0x"));
    }
#endif
}

// Five of eight threads meet twice, and the rest once.
__global__ void sync_of_some(void)
{
    __syncthreads();
    if (threadIdx.x < 5)
        __syncthreads();
}

// usage: device_cuda_subset [fault [ADDRESS] | sync]; fault: ends by a signal, with a sentence;
// sync: warns of a __syncthreads that not all threads reach
int main(int argc, char **argv)
{
    check_begin();
    if (argc > 1 && !strcmp(argv[1], "sync")) {
        CHECK_OK(GPUSHMEM_LAUNCH(sync_of_some, 2, 8, NULL));
        CHECK_OK(gpushmem_launch_wait(NULL));
        return check_end("cuda_subset");
    }
    if (argc > 1) {
        int *nowhere = (int *)(argc > 2 ? strtoull(argv[2], NULL, 16) : 16);
        CHECK_OK(GPUSHMEM_LAUNCH(touch, 1, 2, NULL, nowhere));
        gpushmem_launch_wait(NULL);
        return 0;
    }
    int *errors = check_errors_begin();
    unsigned *word = (unsigned *)gpushmem_calloc(8, sizeof *word);
    float *number = (float *)gpushmem_calloc(1, sizeof *number);
    RUN(shuffles, 1, THREADS, errors);
    RUN(words, 1, THREADS, word, number, errors);
    CHECK_OK(
        GPUSHMEM_LAUNCH_SHARED(dynamic<double, 3>, 3, 32, DYNAMIC * sizeof(double), NULL, errors));
    CHECK_OK(GPUSHMEM_LAUNCH_SHARED(dynamic<int, 7>, 2, 32, 100 << 10, NULL, errors));
    CHECK_OK(gpushmem_launch_wait(NULL));
    REFUSED(1, 2000, "not launched (grid 1 x 1 x 1, block 2000 x 1 x 1, 0 bytes");
    REFUSED(dim3(1, 70000), 1, "not launched (grid 1 x 70000 x 1, ");
    REFUSED(1, dim3(1, 1, 65), "block 1 x 1 x 65, ");
    REFUSED(0, 1, "not launched (grid 0 x 1 x 1");
    CHECK(GPUSHMEM_LAUNCH_SHARED(nothing, 1, 1, 300 << 10, NULL) != 0);
    CHECK(strstr(gpushmem_last_error(), "307200 bytes of dynamic shared memory"));
    test_streams();
    check_errors_end(__FILE__, errors);
    gpushmem_free(number);
    gpushmem_free(word);
    return check_end("cuda_subset");
}
