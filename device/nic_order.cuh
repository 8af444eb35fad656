// SPDX-License-Identifier: BSD-3-Clause
// Order among operations that kernels post to NICs: quiet, fences, and operations that go through a
// ring beside a queue.
#ifndef GPUSHMEM_DEVICE_NIC_ORDER_CUH
#define GPUSHMEM_DEVICE_NIC_ORDER_CUH

#include "gpushmem/device/nic_completions.cuh"
#include "gpushmem/device/ring.cuh"

// ---- Quiet ----

// Everything that kernels posted to any queue before is complete.
GPSH_DEV_CALL int gpsh_dev_nic_quiet(const struct gpushmem_nic *nic, int n_pes)
{
    GPSH_DEV_BOUNDS();
    const uint32_t *used = gpushmem_nic_used(nic, n_pes),
                   n = gpsh_dev_load32_relaxed_gpu(&nic->n_used);
    uint32_t pe = gpsh_dev_load32_relaxed_gpu(used); // beside the number, as there is mostly one
    int first = 0;
    for (uint32_t i = 0; i < n;) {
        int status = gpsh_dev_nic_await(&gpushmem_nic_queues(nic)[pe], GPSH_NIC_ALL);
        first = first ? first : status;
        if (++i < n)
            pe = gpsh_dev_load32_relaxed_gpu(&used[i]);
    }
    return first;
}

GPSH_DEV_CALL void gpsh_dev_nic_quiet_pe(const struct gpushmem_dev &dev, int pe)
{
    GPSH_DEV_BOUNDS();
    gpsh_dev_nic_await(&gpushmem_nic_queues(dev.nic)[pe], GPSH_NIC_ALL);
}

// ---- Fences ----

// A fence only counts. Each queue finds out at its next post, or when an operation goes through a
// ring beside it: what went through rings before the fence is complete then, and what was posted to
// this queue is known by its position.
GPSH_DEV_CALL void gpsh_dev_nic_meet_fence(const struct gpushmem_dev &dev,
                                           struct gpushmem_nic_queue *q)
{
    GPSH_DEV_BOUNDS();
    const uint64_t fences = gpsh_dev_load64_relaxed_gpu(&dev.nic->fences);
    for (uint32_t i = 0; i < dev.n_rings; i++) { // one after the other: registers, again
        const struct gpushmem_ring ring = gpsh_dev_ring_at(dev, i);
        const uint64_t head = gpsh_dev_load64_relaxed_gpu(ring.head);
        if (gpsh_dev_load64_relaxed_gpu(ring.completed_seen) < head)
            gpsh_dev_await_completed(dev, i, head);
    }
    gpsh_dev_max64_relaxed_gpu(&q->fence_at, gpsh_dev_load64_relaxed_gpu(&q->head));
    gpsh_dev_max64_relaxed_gpu(&q->fenced, gpsh_dev_load64_relaxed_gpu(&q->fetching));
    gpsh_dev_fence_gpu(); // who sees the count sees the two positions
    gpsh_dev_max64_relaxed_gpu(&q->fence_seen, fences);
}

// What became of an operation.
enum gpsh_dev_nic_how {
    GPSH_NIC_LEFT,    // it goes through a ring
    GPSH_NIC_TAKEN,   // it is posted
    GPSH_NIC_UNREADY, // the queue has to be prepared for it
};

// An operation towards the queue's PE goes through a ring: what a fence orders before it is
// complete when this returns.
GPSH_DEV_CALL enum gpsh_dev_nic_how gpsh_dev_nic_step_aside(struct gpushmem_nic_queue *q)
{
    GPSH_DEV_BOUNDS();
    const uint64_t before = gpsh_dev_load64_relaxed_gpu(&q->fence_at);
    if (gpsh_dev_load64_relaxed_gpu(&q->done) < before)
        gpsh_dev_nic_await(q, before);
    return GPSH_NIC_LEFT;
}

// An atomic goes through a ring. Those of one thread on one word are expected to happen in its
// order, although only a fence promises that: so it waits for what was posted before, and what is
// posted after it waits as after a fence.
GPSH_DEV_CALL enum gpsh_dev_nic_how gpsh_dev_nic_before_ring(struct gpushmem_nic_queue *q)
{
    GPSH_DEV_BOUNDS();
    gpsh_dev_nic_await(q, GPSH_NIC_ALL);
    return GPSH_NIC_LEFT;
}

GPSH_DEV_CALL void gpsh_dev_nic_after_ring(const struct gpushmem_dev &dev)
{
    GPSH_DEV_BOUNDS();
    gpsh_dev_fence_gpu(); // who sees the count finds the ring under way
    gpsh_dev_add64_relaxed_gpu(&dev.nic->fences, 1);
}

#endif
