// SPDX-License-Identifier: BSD-3-Clause
// Rings that have seen nearly 2^32 commands, and reply slots whose nonces are about to begin anew:
// nothing is lost, stuck or answered by an old answer on the way across. Without a job; for CPU
// threads only.
#include <stdio.h>

#include "gpushmem/device.cuh"
#include "tests/perf/ring_rig.h"

enum { BLOCKS = 3, THREADS = 16, RINGS = 2, ENTRIES_LOG2 = 4, ROUNDS = 24, FLOOD = 20, TARGET = 1 };

struct shared { // of PE 1, by addresses of PE 0
    uint64_t sum, signals;
    uint64_t words[BLOCKS * THREADS];
    uint64_t copies[BLOCKS * THREADS][3];
};

static unsigned mistakes;

static void expect(bool good)
{
    if (!good)
        __atomic_fetch_add(&mistakes, 1, __ATOMIC_RELAXED);
}

// `there`: where the target's words are in truth.
static void converse(const gpushmem_dev &dev, shared *s, const shared *there)
{
    unsigned me = blockIdx.x * blockDim.x + threadIdx.x;
    for (int i = 0; i < FLOOD; i++)
        gpushmem_dev_uint64_atomic_inc(dev, &s->sum, TARGET);
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        uint64_t three[3] = {round, me, round * me}, back[3] = {};
        gpushmem_dev_uint64_p(dev, &s->words[me], round, TARGET);
        gpushmem_dev_uint64_atomic_inc(dev, &s->sum, TARGET);
        gpushmem_dev_fence(dev);
        expect(gpushmem_dev_uint64_atomic_swap(dev, &s->words[me], round + 7, TARGET) == round);
        gpushmem_dev_uint64_put_signal_nbi(dev, s->copies[me], three, 3, &s->signals, 1,
                                           GPUSHMEM_SIGNAL_ADD, TARGET);
        if (round % 4 == me % 4)
            gpushmem_dev_pe_quiet(dev, TARGET);
        else
            gpushmem_dev_quiet(dev);
        expect(there->copies[me][0] == round && there->copies[me][2] == round * me);
        gpushmem_dev_uint64_get(dev, back, s->copies[me], 3, TARGET);
        expect(back[0] == round && back[1] == me && back[2] == round * me);
        expect(gpushmem_dev_uint64_g(dev, &s->words[me], TARGET) == round + 7);
    }
}

static bool cross(uint64_t commands, uint32_t nonce)
{
    struct ring_rig *rig = ring_rig_open(&gpsh_device_memory_host, RINGS, 1, ENTRIES_LOG2, false);
    gpushmem_dev dev;
    if (!rig)
        return false;
    ring_rig_age(rig, commands, nonce);
    ring_rig_handle(rig, &dev);
    shared *s = (shared *)ring_rig_heap(rig, 0), *there = (shared *)ring_rig_heap(rig, TARGET);
    bool good = !ring_rig_start(rig) &&
                !gpsh_emu_submit(BLOCKS, THREADS, NULL, [=] { converse(dev, s, there); });
    gpsh_emu_wait(NULL);
    good = good && ring_rig_drain(rig) && *ring_rig_ring(rig, 0)->head > (uint64_t)1 << 32;
    good = good && there->sum == (FLOOD + ROUNDS) * BLOCKS * THREADS &&
           there->signals == ROUNDS * BLOCKS * THREADS;
    ring_rig_close(rig);
    if (!good || mistakes)
        fprintf(stderr, "from command %llu, nonce %u on: %u mistakes\n",
                (unsigned long long)commands, nonce, mistakes);
    return good && !mistakes;
}

int main(void)
{
    const uint64_t wrap = (uint64_t)1 << 32;
    bool good = cross(wrap - 100, GPUSHMEM_REPLY_NONCE - 20);
    return !(cross(wrap - 7, GPUSHMEM_REPLY_NONCE) && good);
}
