// SPDX-License-Identifier: BSD-3-Clause
// Random access: threads of every PE's kernel add 1 to random words of a table that is spread over
// all PEs. At the end the words must add up to the number of additions: an atomic that is lost or
// done twice shows.
#include <gpushmem/device.cuh>
#include <gpushmem/gpushmem.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#if defined(__CUDACC__)
enum { BLOCKS = 32, THREADS = 128 };
#else
enum { BLOCKS = 1, THREADS = 2 }; // operating system threads
#endif

__device__ static uint64_t next_random(uint64_t *state) // xorshift64*, Vigna 2016
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * UINT64_C(2685821657736338717);
}

__global__ void update(uint64_t *table, uint64_t words, uint64_t updates)
{
    uint64_t threads = gridDim.x * blockDim.x, thread = blockIdx.x * blockDim.x + threadIdx.x;
    uint64_t state = gpushmem_dev_my_pe() * threads + thread + 1;
    for (uint64_t i = thread; i < updates; i += threads) {
        uint64_t random = next_random(&state);
        int pe = (int)((random >> 32) % gpushmem_dev_n_pes());
        gpushmem_dev_uint64_atomic_add(&table[(uint32_t)random % words], 1, pe);
    }
    gpushmem_dev_quiet();
}

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

// Sum over the words of every PE's table.
static int sum_up(const uint64_t *table, uint64_t words, uint64_t *sum)
{
    uint64_t *copy = (uint64_t *)malloc(words * sizeof *copy);
    int status = copy ? 0 : GPUSHMEM_ERR_NO_MEMORY;
    *sum = 0;
    for (int pe = 0; pe < gpushmem_n_pes() && !status; pe++) {
        status = gpushmem_get(copy, table, words, pe);
        for (uint64_t i = 0; i < words && !status; i++)
            *sum += copy[i];
    }
    free(copy);
    return status;
}

static int run(uint64_t words, uint64_t updates)
{
    uint64_t *table = (uint64_t *)gpushmem_calloc(words, sizeof *table);
    uint64_t sum = 0, total = updates * gpushmem_n_pes();
    int status = table ? gpushmem_barrier_all() : GPUSHMEM_ERR_NO_MEMORY;
    double begin = now_s();
    if (!status)
        status = GPUSHMEM_LAUNCH(update, BLOCKS, THREADS, NULL, table, words, updates);
    if (!status)
        status = gpushmem_launch_wait(NULL);
    if (!status)
        status = gpushmem_barrier_all();
    double seconds = now_s() - begin;
    if (!status && gpushmem_my_pe() == 0) {
        status = sum_up(table, words, &sum);
        if (!status)
            printf("%" PRIu64 " updates of %" PRIu64 " words on %d PEs: %.3f million/s\n", total,
                   words * gpushmem_n_pes(), gpushmem_n_pes(), (double)total / seconds * 1e-6);
        printf("gups: %s: the words add up to %" PRIu64 ", expected %" PRIu64 "\n",
               sum == total ? "ok" : "failed", sum, total);
        if (!status)
            status = sum != total;
    }
    return status < 0 ? status : gpushmem_free(table) ? -1 : status;
}

int main(int argc, char **argv)
{
    uint64_t updates = argc > 1 ? strtoull(argv[1], NULL, 10) : 100000;
    uint64_t words = argc > 2 ? strtoull(argv[2], NULL, 10) : 4096;
    if (!updates || !words) {
        fprintf(stderr, "usage: gups [updates of each PE] [words of each PE]\n");
        return 2;
    }
    int status = gpushmem_init();
    if (!status)
        status = run(words, updates);
    if (status >= 0 && gpushmem_finalize())
        status = -1;
    if (status < 0)
        fprintf(stderr, "gups: %s\n", gpushmem_last_error());
    return status != 0;
}
