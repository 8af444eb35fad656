// SPDX-License-Identifier: BSD-3-Clause
// Three ways to add up vectors of all PEs. Each is called by all threads of a block, for a part of
// the vectors of its own; the same block of every PE has the same part, so that blocks need not
// wait for each other. When a call returns, its part of dest is complete on this PE.
#ifndef ALLREDUCE_WAYS_CUH
#define ALLREDUCE_WAYS_CUH

#include <gpushmem/device.cuh>
#include <gpushmem/gpushmem.h>

#include "allreduce.h"

#if defined(__CUDACC__)
enum { BLOCKS = 8, THREADS = 512 };
#else
enum { BLOCKS = 2, THREADS = 2 }; // operating system threads
#endif

// Elements begin .. end - 1.
struct range {
    size_t begin, end;
};

// Part `index` of `parts` that are as equal as can be; some are empty if there are few elements.
__device__ static struct range part_of(struct range all, int index, int parts)
{
    size_t count = all.end - all.begin;
    return {all.begin + count * index / parts, all.begin + count * (index + 1) / parts};
}

// One thread looks; then the data that the signal announced is visible to the whole block.
__device__ static void wait_for(const uint64_t *flag, uint64_t round)
{
    if (threadIdx.x == 0)
        gpushmem_dev_signal_wait_until(flag, GPUSHMEM_CMP_GE, round);
    __syncthreads();
}

// A put of no elements sends its signal all the same: empty parts need no case of their own.
__device__ static void send(float *dest, const float *source, struct range r, uint64_t *flag,
                            uint64_t round, int pe)
{
    gpushmem_dev_float_put_signal_block(dest + r.begin, source + r.begin, r.end - r.begin, flag,
                                        round, GPUSHMEM_SIGNAL_SET, pe);
}

// to[i] = a[i] + b[i]
__device__ static void add(float *to, const float *a, const float *b, struct range r)
{
    for (size_t i = r.begin + threadIdx.x; i < r.end; i += blockDim.x)
        to[i] = a[i] + b[i];
}

__device__ static void copy(float *to, const float *from, struct range r)
{
    for (size_t i = r.begin + threadIdx.x; i < r.end; i += blockDim.x)
        to[i] = from[i];
    __syncthreads();
}

// The part is cut into a chunk for each PE. The sum of chunk c starts at PE c as its source and
// goes once around to the right, each PE adding its own; PE c - 1 adds last, and sends the result
// around once more. Each PE sends 2 (n - 1) / n of the vector: no way of adding sends less. Each
// chunk has flags of its own, since puts may arrive in any order.
//
// Nobody overwrites an inbox or dest that is still read: a PE that has all results of a round knows
// that its right neighbour has added, for the results hold that neighbour's sources.
__device__ static void allreduce_ring(struct vectors v, struct range part, uint64_t *flags,
                                      uint64_t round)
{
    int me = gpushmem_dev_my_pe(), n = gpushmem_dev_n_pes(), right = (me + 1) % n;
    if (n == 1)
        copy(v.dest, v.source, part);
    for (int step = 0; step < n - 1; step++) {
        int out = (me - step + n) % n, in = (out - 1 + n) % n;
        send(v.inbox, step ? v.dest : v.source, part_of(part, out, n), &flags[out], round, right);
        wait_for(&flags[in], round);
        add(v.dest, v.inbox, v.source, part_of(part, in, n));
    }
    for (int step = 0; step < n - 1; step++) {
        int out = (me + 1 - step + n) % n, in = (out - 1 + n) % n;
        send(v.dest, v.dest, part_of(part, out, n), &flags[n + out], round, right);
        wait_for(&flags[n + in], round);
    }
}

// PE p has the children 2 p + 1 and 2 p + 2. Sums go up to PE 0, and the result comes down: fewer
// steps than the ring takes, log2(n) up and down, but each of the whole vector.
__device__ static void allreduce_tree(struct vectors v, struct range part, uint64_t *flags,
                                      uint64_t round)
{
    int me = gpushmem_dev_my_pe(), n = gpushmem_dev_n_pes(), parent = (me - 1) / 2;
    const float *sum = v.source;
    for (int child = 0; child < 2 && 2 * me + 1 + child < n; child++) {
        wait_for(&flags[child], round);
        add(v.dest, sum, v.inbox + child * v.room, part);
        sum = v.dest;
    }
    if (me > 0) {
        int my_place = (me - 1) % 2; // am I the first or the second child?
        send(v.inbox + my_place * v.room, sum, part, &flags[my_place], round, parent);
        wait_for(&flags[2], round);
    } else if (n == 1) {
        copy(v.dest, v.source, part);
    }
    for (int child = 2 * me + 1; child <= 2 * me + 2 && child < n; child++)
        send(v.dest, v.dest, part, &flags[2], round, child);
}

// The library's own. Blocks that reduce side by side take a channel of the team each.
__device__ static void allreduce_library(struct vectors v, struct range part)
{
    gpushmem_dev_float_sum_reduce_block(GPUSHMEM_TEAM_CHANNEL(GPUSHMEM_TEAM_WORLD, blockIdx.x),
                                        v.dest + part.begin, v.source + part.begin,
                                        part.end - part.begin);
}

// Repeats one way inside the kernel, so that no launch is timed. Flags count rounds, over all
// launches: they need no reset.
__global__ __launch_bounds__(THREADS) void allreduce_repeat(int way, struct vectors v,
                                                            size_t elements, uint64_t first_round,
                                                            int rounds)
{
    struct range part = part_of({0, elements}, blockIdx.x, gridDim.x);
    uint64_t *flags = v.flags + (way * gridDim.x + blockIdx.x) * flags_of_block(v.n_pes);
    for (uint64_t round = first_round; round < first_round + rounds; round++)
        if (way == RING)
            allreduce_ring(v, part, flags, round);
        else if (way == TREE)
            allreduce_tree(v, part, flags, round);
        else
            allreduce_library(v, part);
}

#endif
