// SPDX-License-Identifier: BSD-3-Clause
// Threads that launch their first kernels at the same time, in each of several rounds of init: the
// handle that kernels use without being given one is there before any of them runs. What is wrong
// with the hand-over itself is for ThreadSanitizer to see.
#include <pthread.h>
#include <string.h>

#include "kernel_check.cuh"

enum { LAUNCHERS = 4, ROUNDS = 3 };

static pthread_barrier_t start;
static uint64_t *words;

__global__ void put_value(uint64_t *word, uint64_t value)
{
    gpushmem_dev_uint64_p(word, value, gpushmem_dev_my_pe());
}

// On a GPU a new thread begins with device 0. Where that is not the PE's, a launch is refused.
#if defined(__CUDACC__)
static int gpu;

static void begin_thread(uint64_t *word)
{
    if (gpu != 0) {
        CHECK(GPUSHMEM_LAUNCH(put_value, 1, 1, NULL, word, (uint64_t)0) == GPUSHMEM_ERR_INVALID);
        CHECK(strstr(gpushmem_last_error(), "this thread's GPU is 0"));
    }
    CHECK(cudaSetDevice(gpu) == cudaSuccess);
}
#else
static void begin_thread(uint64_t *)
{
}
#endif

static void *launch_one(void *argument)
{
    uint64_t *word = (uint64_t *)argument;
    gpushmem_stream_t stream;
    begin_thread(word);
    int status = gpushmem_stream_create(&stream);
    pthread_barrier_wait(&start);
    if (!status)
        status = GPUSHMEM_LAUNCH(put_value, 1, 1, stream, word, (uint64_t)(word - words) + 1);
    if (!status)
        status = gpushmem_launch_wait(stream);
    gpushmem_stream_destroy(stream);
    return status ? argument : NULL;
}

static void launch_all(void)
{
    pthread_t threads[LAUNCHERS];
    words = (uint64_t *)gpushmem_calloc(LAUNCHERS, sizeof *words);
    for (int i = 0; i < LAUNCHERS; i++)
        CHECK(!pthread_create(&threads[i], NULL, launch_one, &words[i]));
    for (int i = 0; i < LAUNCHERS; i++) {
        void *failed;
        CHECK(!pthread_join(threads[i], &failed));
        CHECK(!failed);
    }
    CHECK_OK(gpushmem_quiet());
    for (int i = 0; i < LAUNCHERS; i++)
        CHECK(check_read(&words[i]) == (uint64_t)i + 1);
    gpushmem_free(words);
}

int main(void)
{
    int provided;
    pthread_barrier_init(&start, NULL, LAUNCHERS);
    for (int i = 0; i < ROUNDS; i++) {
        CHECK_OK(gpushmem_init_thread(GPUSHMEM_THREAD_MULTIPLE, &provided));
#if defined(__CUDACC__)
        CHECK(cudaGetDevice(&gpu) == cudaSuccess);
#endif
        launch_all();
        CHECK_OK(gpushmem_finalize());
    }
    pthread_barrier_destroy(&start);
    return check_failures != 0;
}
