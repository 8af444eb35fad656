// SPDX-License-Identifier: BSD-3-Clause
// A thread that gives up waiting for an answer leaves its reply slot behind. It is free again when
// the answer has come, and not before. Without a job, with two reply slots and a proxy that sleeps
// when told; for CPU threads only.
#include <stdio.h>

#include "gpushmem/device.cuh"
#include "tests/perf/ring_rig.h"

enum { THREADS = 2, TARGET = 1, REPLIES_LOG2 = 1 };

static unsigned wrong;

static void fetch(const gpushmem_dev &dev, uint64_t *words, bool answered)
{
    uint64_t value = gpushmem_dev_uint64_atomic_fetch(dev, &words[threadIdx.x], TARGET);
    if (value != (answered ? 7 + threadIdx.x : 0))
        __atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
}

static struct gpushmem_dev with_patience(const struct ring_rig *rig, uint64_t ms)
{
    gpushmem_dev dev;
    ring_rig_handle(rig, &dev);
    dev.replies_log2 = REPLIES_LOG2;
    dev.timeout_ns = ms * 1000000;
    *const_cast<gpushmem_dev *>(dev.self) = dev;
    return dev;
}

// The first failure of the kernel, or 0.
static int run(const gpushmem_dev &dev, uint64_t *words, bool answered)
{
    gpsh_emu_submit(1, THREADS, NULL, [=] { fetch(dev, words, answered); });
    gpsh_emu_wait(NULL);
    int status = dev.fault->status;
    dev.fault->status = 0;
    *dev.fault_claim = 0;
    return status;
}

// Whether both slots wait for an answer that nobody waits for.
static bool both_left(const gpushmem_dev &dev)
{
    const uint32_t *owners = dev.reply_owners;
    return owners[0] & owners[1] & GPUSHMEM_REPLY_LEFT;
}

int main(void)
{
    struct ring_rig *rig = ring_rig_open(&gpsh_device_memory_host, 1, 1, 6, false);
    if (!rig)
        return 1;
    uint64_t *words = (uint64_t *)ring_rig_heap(rig, 0),
             *there = (uint64_t *)ring_rig_heap(rig, TARGET);
    for (unsigned t = 0; t < THREADS; t++)
        there[t] = 7 + t;
    gpushmem_dev dev = with_patience(rig, 30);
    uint32_t *&sleeping = const_cast<gpushmem_ring *>(dev.rings)->sleeping, *proxy = sleeping;
    sleeping = NULL; // nobody makes passes
    bool good = run(dev, words, false) == GPUSHMEM_ERR_TIMEOUT && both_left(dev);
    // no slot: both answers are still to come
    good = good && run(dev, words, false) == GPUSHMEM_ERR_TIMEOUT;
    while (ring_rig_step(rig))
        ;
    sleeping = proxy;
    dev = with_patience(rig, 5000);
    good = good && !ring_rig_start(rig);
    for (int i = 0; i < 3 && good; i++)
        good = !run(dev, words, true) && !both_left(dev);
    good = good && !wrong && ring_rig_drain(rig);
    if (!good)
        fprintf(stderr, "late answers: %u values are wrong\n", wrong);
    ring_rig_close(rig);
    return !good;
}
