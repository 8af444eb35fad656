// SPDX-License-Identifier: BSD-3-Clause
// Writing commands: reservation of a slot, the write itself, reply slots, waiting for completion.
#ifndef GPUSHMEM_DEVICE_RING_CUH
#define GPUSHMEM_DEVICE_RING_CUH

#include "gpushmem/device/state.cuh"
#include "gpushmem/device_host.h"

// All threads of a block share a ring: then a fence by one of them covers what the others did before a __syncthreads.
GPSH_DEV const struct gpushmem_ring &gpsh_dev_ring(const struct gpushmem_dev &dev)
{
    return dev.rings[gpsh_dev_block_number() % dev.n_rings];
}

// The compiler merges the adds of a warp's threads into one, so a warp reserves consecutive slots at once. Each thread waits
// for its own slot only: no reservation is larger than a ring.
GPSH_DEV uint64_t gpsh_dev_reserve(const struct gpushmem_ring &ring)
{
    return gpsh_dev_add64_relaxed_gpu(ring.head, 1);
}

// One look at a count of the host, by one thread at a time: it refreshes the copy in device memory at which all others look.
// Thousands of threads that ask themselves need the whole PCIe bandwidth for it. Now and then also without the lock, so that
// nobody depends on whoever holds it.
GPSH_DEV void gpsh_dev_ask(const uint64_t *host, uint64_t *seen, uint32_t *asking, uint32_t attempt)
{
    bool mine = !gpsh_dev_exchange32_acquire_gpu(asking, 1);
    if (mine || attempt % 16 == 15)
        gpsh_dev_max64_relaxed_gpu(seen, gpsh_dev_load64_value_sys(host));
    else
        gpsh_dev_nap();
    if (mine)
        gpsh_dev_store32_sys(asking, 0); // only keeps others from asking too: no order is needed
}

// Waits until a count of the host is at least `least`.
GPSH_DEV_CALL int gpsh_dev_await_count(const struct gpushmem_dev &dev, const struct gpushmem_ring &ring, const uint64_t *host,
                                       uint64_t *seen, uint32_t *asking, uint64_t least)
{
    struct gpsh_dev_wait wait = {0, 0};
    while (gpsh_dev_load64_relaxed_gpu(seen) < least) {
        gpsh_dev_ask(host, seen, asking, wait.spins);
        int status = wait.spins % 16 ? 0 : gpsh_dev_load32_relaxed_sys(&ring.status->error);
        if (!status)
            status = gpsh_dev_spin(dev, &wait, false);
        if (status)
            return status;
    }
    return 0;
}

// Slot `index` may be written. Nearly always the copy says so. Relaxed: our stores depend on the branch, none goes ahead.
GPSH_DEV int gpsh_dev_await_room(const struct gpushmem_dev &dev, const struct gpushmem_ring &ring, uint64_t index, int pe)
{
    uint64_t entries = (uint64_t)1 << ring.entries_log2;
    if (index < entries || gpsh_dev_load64_relaxed_gpu(ring.consumed_seen) >= index - entries + 1)
        return 0;
    int status = gpsh_dev_await_count(dev, ring, &ring.status->consumed, ring.consumed_seen, &ring.asking[0], index - entries + 1);
    if (status)
        gpsh_dev_fail(dev, status, pe, nullptr, 0);
    return status;
}

// GPU scope is enough for payload in GPU memory, which the NIC reads through that GPU's coherence point.
GPSH_DEV void gpsh_dev_fence_payload(const struct gpushmem_dev &dev)
{
    if (dev.flags & GPUSHMEM_DEV_SYSTEM_SCOPE)
        gpsh_dev_fence_sys();
    else
        gpsh_dev_fence_gpu();
}

GPSH_DEV void gpsh_dev_write_slot(const struct gpushmem_ring &ring, uint64_t index, const struct gpushmem_command &command)
{
    uint64_t words[GPUSHMEM_COMMAND_WORDS];
    gpushmem_command_pack(&command, gpushmem_ring_lap(index, ring.entries_log2), words);
    uint64_t slot = index & (((uint64_t)1 << ring.entries_log2) - 1);
    gpsh_dev_store_command(ring.slots + slot * GPUSHMEM_COMMAND_WORDS, words);
#if !defined(__CUDACC__)
    if (ring.sleeping && gpsh_dev_must_wake(ring.sleeping))
        gpushmem_proxy_wake(ring.sleeping);
#endif
}

// Writes the command into slot `index`. What it describes (and all this thread saw) is visible to who executes it.
GPSH_DEV int gpsh_dev_write(const struct gpushmem_dev &dev, const struct gpushmem_ring &ring, uint64_t index,
                            const struct gpushmem_command &command)
{
    int status = gpsh_dev_await_room(dev, ring, index, command.pe);
    if (status)
        return status;
    gpsh_dev_fence_payload(dev);
    gpsh_dev_write_slot(ring, index, command);
    return 0;
}

GPSH_DEV int gpsh_dev_push(const struct gpushmem_dev &dev, const struct gpushmem_command &command, uint64_t *index)
{
    const struct gpushmem_ring &ring = gpsh_dev_ring(dev);
    *index = gpsh_dev_reserve(ring);
    return gpsh_dev_write(dev, ring, *index, command);
}

// ---- Replies ----

// Tries to claim one reply slot; the nonce is one more than the slot's last, so that an old answer never matches.
GPSH_DEV bool gpsh_dev_claim_reply(const struct gpushmem_dev &dev, uint32_t slot, uint32_t *nonce)
{
    uint32_t last = gpsh_dev_exchange32_acquire_gpu(&dev.reply_owners[slot], GPUSHMEM_REPLY_BUSY);
    *nonce = last == (GPUSHMEM_REPLY_NONCE) ? 1 : last + 1;
    return last != GPUSHMEM_REPLY_BUSY;
}

GPSH_DEV uint32_t gpsh_dev_first_reply(const struct gpushmem_dev &dev)
{
    uint32_t thread = gpsh_dev_block_number() * gpsh_dev_block_threads() + gpsh_dev_thread_number();
    return thread & ((1u << dev.replies_log2) - 1);
}

GPSH_DEV int gpsh_dev_await_reply(const struct gpushmem_dev &dev, const struct gpushmem_ring &ring, uint32_t slot,
                                  uint32_t nonce, uint64_t *value)
{
    struct gpsh_dev_wait wait = {0, 0};
    gpsh_dev_let_it_travel();
    for (;;) {
        struct gpushmem_reply reply = gpsh_dev_load_reply(&dev.replies[slot]);
        if (gpushmem_reply_ready(reply, nonce)) {
            gpsh_dev_fence_sys(); // acquire: what was fetched into memory is visible behind the answer
            gpsh_dev_store32_release_gpu(&dev.reply_owners[slot], nonce);
            *value = (reply.high & 0xffffffffu) << 32 | (reply.low & 0xffffffffu);
            return reply.low & GPUSHMEM_REPLY_FAILED ? (int)(int32_t)(uint32_t)reply.low : 0;
        }
        int status = gpsh_dev_load32_relaxed_sys(&ring.status->error);
        if (!status)
            status = gpsh_dev_spin(dev, &wait, false);
        if (status) // the slot stays taken: the proxy may still write into it
            return status;
    }
}

// Pushes a command and waits for its answer; `value` is left alone on failure (the first failure is recorded).
GPSH_DEV_CALL int gpsh_dev_push_and_wait(const struct gpushmem_dev &dev, struct gpushmem_command command, uint64_t *value)
{
    const struct gpushmem_ring &ring = gpsh_dev_ring(dev);
    uint32_t slot = gpsh_dev_first_reply(dev), nonce;
    // The claim and the reservation go out back to back. A thread must not sit on a reserved ring slot while it looks for
    // a reply slot (whose owner may be behind us in the ring), so it gives it away as a NOP if the first claim fails.
    bool claimed = gpsh_dev_claim_reply(dev, slot, &nonce);
    uint64_t index = gpsh_dev_reserve(ring);
    if (!claimed) {
        struct gpushmem_command nop = {};
        nop.opcode = GPUSHMEM_CMD_NOP;
        int status = gpsh_dev_write(dev, ring, index, nop);
        struct gpsh_dev_wait wait = {0, 0};
        while (!status && !claimed) {
            slot = (slot + 1) & ((1u << dev.replies_log2) - 1);
            claimed = gpsh_dev_claim_reply(dev, slot, &nonce);
            status = claimed ? 0 : gpsh_dev_spin(dev, &wait, false);
        }
        if (status)
            return status;
        index = gpsh_dev_reserve(ring);
    }
    command.flags |= GPUSHMEM_CMD_REPLY;
    command.reply = (uint64_t)slot << 32 | nonce;
    int status = gpsh_dev_write(dev, ring, index, command);
    if (!status)
        status = gpsh_dev_await_reply(dev, ring, slot, nonce, value);
    if (status)
        gpsh_dev_fail(dev, status, command.pe, (const void *)command.remote, command.bytes);
    return status;
}

// ---- Completion ----

// Waits until the count `completed` of the host, which few threads look at, is at least `index`.
GPSH_DEV_CALL int gpsh_dev_await_answer(const struct gpushmem_dev &dev, const struct gpushmem_ring &ring,
                                        const uint64_t *completed, uint64_t index)
{
    struct gpsh_dev_wait wait = {0, 0};
    gpsh_dev_let_it_travel();
    while (gpsh_dev_load64_acquire_sys(completed) < index) {
        int status = gpsh_dev_load32_relaxed_sys(&ring.status->error);
        if (!status)
            status = gpsh_dev_spin(dev, &wait, false);
        if (status) {
            gpsh_dev_fail(dev, status, -1, nullptr, 0);
            return status;
        }
    }
    return 0;
}

// Waits until every command of the ring below `index` is complete.
GPSH_DEV int gpsh_dev_await_completed(const struct gpushmem_dev &dev, const struct gpushmem_ring &ring, uint64_t index)
{
    int status = gpsh_dev_await_count(dev, ring, &ring.status->completed, ring.completed_seen, &ring.asking[16], index);
    gpsh_dev_fence_sys(); // acquire: what was fetched into memory is visible from here on
    if (status)
        gpsh_dev_fail(dev, status, -1, nullptr, 0);
    return status;
}

// Everything that any thread wrote into any ring before is complete.
GPSH_DEV_CALL void gpsh_dev_rings_quiet(const struct gpushmem_dev &dev)
{
    for (uint32_t r = 0; r < dev.n_rings; r++) {
        const struct gpushmem_ring &ring = dev.rings[r];
        uint64_t head = gpsh_dev_load64_relaxed_gpu(ring.head);
        if (head && gpsh_dev_await_completed(dev, ring, head))
            return;
    }
}

#endif
