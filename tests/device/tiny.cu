// SPDX-License-Identifier: BSD-3-Clause
// Many more threads than ring entries, over many laps: nothing is lost, torn or stuck. Every thread
// owns a word on each PE.
#include "kernel_check.cuh"

enum { BLOCKS = 4, THREADS = 48 };

__device__ static unsigned global_thread(void)
{
    return blockIdx.x * blockDim.x + threadIdx.x;
}

// Non-blocking only: the rings fill up.
__global__ void flood(uint64_t *words, uint64_t *counter, int rounds, int *errors)
{
    int n = gpushmem_dev_n_pes(), me = gpushmem_dev_my_pe();
    unsigned mine = (unsigned)me * BLOCKS * THREADS + global_thread();
    for (uint64_t round = 1; round <= (uint64_t)rounds; round++) {
        for (int pe = 0; pe < n; pe++) {
            gpushmem_dev_uint64_p(&words[mine], round << 32 | mine, pe);
            gpushmem_dev_uint64_atomic_inc(counter, pe);
        }
        if (round % 10 == 0)
            gpushmem_dev_fence();
    }
    gpushmem_dev_quiet();
    for (int pe = 0; pe < n; pe++)
        EXPECT(errors, gpushmem_dev_uint64_g(&words[mine], pe) == ((uint64_t)rounds << 32 | mine));
}

// Blocking: every thread waits for answers, while others push, fence and quiet.
__global__ void converse(uint64_t *words, int rounds, int *errors)
{
    int n = gpushmem_dev_n_pes(), me = gpushmem_dev_my_pe();
    unsigned mine = (unsigned)me * BLOCKS * THREADS + global_thread();
    uint64_t buffer[3] = {mine, mine + 1, mine + 2}, back[3];
    for (uint64_t round = 1; round <= (uint64_t)rounds / 2; round++) {
        int pe = (int)((mine + round) % (unsigned)n);
        gpushmem_dev_uint64_atomic_set(&words[mine], round, pe);
        gpushmem_dev_fence();
        uint64_t old = gpushmem_dev_uint64_atomic_swap(&words[mine], round + 7, pe);
        EXPECT(errors, old == round);
        if (global_thread() % 8 == 0)
            gpushmem_dev_pe_quiet(pe);
        EXPECT(errors, gpushmem_dev_uint64_g(&words[mine], pe) == round + 7);
        uint64_t *area = words + BLOCKS * THREADS * n + 3 * mine;
        gpushmem_dev_uint64_put(area, buffer, 3, pe);
        gpushmem_dev_quiet();
        gpushmem_dev_uint64_get(back, area, 3, pe);
        EXPECT(errors, back[0] == mine && back[1] == mine + 1 && back[2] == mine + 2);
    }
}

// usage: device_tiny [rounds]
int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 30;
    check_begin();
    size_t n = (size_t)gpushmem_n_pes();
    uint64_t *words = (uint64_t *)gpushmem_calloc(4 * n * BLOCKS * THREADS, 8),
             *counter = (uint64_t *)gpushmem_calloc(1, 8);
    int *errors = check_errors_begin();
    RUN(flood, BLOCKS, THREADS, words, counter, rounds, errors);
    CHECK_OK(gpushmem_barrier_all());
    CHECK(gpushmem_uint64_atomic_fetch(counter, gpushmem_my_pe()) ==
          n * BLOCKS * THREADS * (uint64_t)rounds);
    RUN(converse, BLOCKS, THREADS, words, rounds, errors);
    check_errors_end(__FILE__, errors);
    gpushmem_free(counter);
    gpushmem_free(words);
    return check_end("tiny");
}
