// SPDX-License-Identifier: BSD-3-Clause
// Writing commands: reservation of a slot, the write itself, reply slots, waiting for completion.
#ifndef GPUSHMEM_DEVICE_RING_CUH
#define GPUSHMEM_DEVICE_RING_CUH

#include "gpushmem/device/state.cuh"
#include "gpushmem/device_host.h"

GPSH_DEV struct gpushmem_ring gpsh_dev_ring_at(const struct gpushmem_dev &dev, uint32_t number)
{
    struct gpushmem_ring ring = gpushmem_ring_at(&dev.layout, number);
#if !defined(__CUDACC__)
    ring.sleeping = dev.rings[number].sleeping;
#endif
    return ring;
}

GPSH_DEV struct gpushmem_ring gpsh_dev_ring(const struct gpushmem_dev &dev)
{
    return gpsh_dev_ring_at(dev, gpsh_dev_ring_number(dev));
}

// ---- Counts of the host ----

// What a wait for `consumed` or `completed` needs.
struct gpsh_dev_count {
    const uint64_t *host; // the next word says why the ring is closed
    uint64_t *seen;       // device memory: a recent value, at which all threads look
    uint32_t *asking;     // device memory: not 0 while one thread asks the host
};

// Whether the host is asked even though somebody else is at it: so nobody depends on that one for
// ever.
#if defined(__CUDACC__)
enum { GPSH_DEV_PATIENCE = 4096 };
#else
enum { GPSH_DEV_PATIENCE = 16 };
#endif

// The host's count, and the ring's error.
GPSH_DEV int gpsh_dev_look(const struct gpsh_dev_count &count, uint64_t *now)
{
    // 16 bytes at once
    struct gpushmem_reply pair = gpsh_dev_load_reply((const struct gpushmem_reply *)count.host);
    *now = pair.low;
    return (int)(int32_t)(uint32_t)pair.high;
}

// One look, by one thread at a time, which refreshes the copy in device memory. Thousands of
// threads that ask themselves need the whole PCIe bandwidth for it, and their exchanges on one word
// the whole L2 slice: so the word is read first, and of the threads of a warp that are here
// together one tries. If the host was asked, *now is its answer; returned is the ring's error.
GPSH_DEV int gpsh_dev_ask(const struct gpsh_dev_count &count, uint32_t attempt, uint32_t taken,
                          uint64_t *now)
{
    bool mine =
        !taken && gpsh_dev_is_first_here() && !gpsh_dev_exchange32_relaxed_gpu(count.asking, 1);
    if (!mine && attempt % GPSH_DEV_PATIENCE != GPSH_DEV_PATIENCE - 1) {
        gpsh_dev_nap();
        return 0;
    }
    int error = gpsh_dev_look(count, now);
    gpsh_dev_max64_relaxed_gpu(count.seen, *now);
    if (mine)
        gpsh_dev_store32_relaxed_gpu(count.asking,
                                     0); // only keeps others from asking too: no order is needed
    return error;
}

// Waits until the count is at least `least`; the caller has just seen that its copy is below. A
// closed ring's error reaches everybody in turn: each asks in the end.
GPSH_DEV int gpsh_dev_await_count(const struct gpushmem_dev &dev, struct gpsh_dev_count count,
                                  uint64_t least)
{
    struct gpsh_dev_lean_wait wait = {};
    uint64_t now = 0;
    for (uint32_t taken = 0;; taken = gpsh_dev_load32_relaxed_gpu(count.asking)) {
        int status = gpsh_dev_ask(count, wait.spins, taken, &now);
        if (now >= least)
            return 0;
        if (!status)
            status = gpsh_dev_lean_spin(dev, &wait);
        if (status)
            return status;
        now = gpsh_dev_load64_relaxed_gpu(count.seen);
        if (now >= least)
            return 0;
    }
}

GPSH_DEV struct gpsh_dev_count gpsh_dev_consumed(const struct gpushmem_ring &ring)
{
    return {&ring.status->consumed, ring.consumed_seen, &ring.asking[0]};
}

GPSH_DEV struct gpsh_dev_count gpsh_dev_completed(const struct gpushmem_ring &ring)
{
    return {&ring.status->completed, ring.completed_seen, &ring.asking[16]};
}

// ---- Writing ----

// A slot of the ring, and what was last seen consumed when it was reserved.
struct gpsh_dev_slot {
    uint64_t index;
    uint64_t seen;
};

// The ring's address is the same for the whole warp, so the compiler merges the adds of its threads
// into one, and a warp reserves consecutive slots. Each thread waits for its own slot only: no
// reservation is larger than a ring. Both accesses are under way at once; an old count is on the
// safe side.
GPSH_DEV struct gpsh_dev_slot gpsh_dev_reserve(const struct gpushmem_ring &ring)
{
    uint64_t seen = gpsh_dev_load64_relaxed_gpu(ring.consumed_seen);
    return {gpsh_dev_add64_relaxed_gpu(ring.head, 1), seen};
}

// Shuts the ring for all writers: reservations from now on fail at once.
GPSH_DEV void gpsh_dev_shut_ring(const struct gpushmem_ring &ring)
{
    gpsh_dev_max64_relaxed_gpu(ring.head, GPUSHMEM_RING_LOST);
}

// The caller leaves the slot that it reserved unwritten, since it waited too long for room: no
// later command is ever read. The proxy executes the commands before that slot; every thread that
// waits for a command of the ring gets an error.
GPSH_DEV void gpsh_dev_lose_ring(const struct gpushmem_ring &ring)
{
    gpsh_dev_store32_release_sys(&ring.status->lost, 1);
    gpsh_dev_store32_release_sys(&ring.status->closed, (uint32_t)GPUSHMEM_ERR_RING);
    gpsh_dev_store32_release_sys(&ring.status->error, (uint32_t)GPUSHMEM_ERR_RING);
}

// The copy says that the ring is full: asks the host.
GPSH_DEV_CALL int gpsh_dev_await_room_late(const struct gpushmem_dev &dev, uint32_t number,
                                           uint64_t index, int pe)
{
    GPSH_DEV_BOUNDS();
    const struct gpushmem_ring ring = gpsh_dev_ring_at(dev, number);
    uint64_t entries = (uint64_t)1 << ring.entries_log2;
    int status = gpsh_dev_await_count(dev, gpsh_dev_consumed(ring), index - entries + 1);
    if (!status)
        return 0;
    if (status == GPUSHMEM_ERR_TIMEOUT)
        gpsh_dev_lose_ring(ring);
    gpsh_dev_shut_ring(ring);
    gpsh_dev_fail(dev, status, pe, nullptr, 0);
    return status;
}

// The slot may be written. Nearly always the copy says so. Relaxed: our stores depend on the
// branch, none goes ahead.
GPSH_DEV int gpsh_dev_await_room(const struct gpushmem_dev &dev, const struct gpushmem_ring &ring,
                                 struct gpsh_dev_slot slot, int pe)
{
    if (slot.index < slot.seen + ((uint64_t)1 << ring.entries_log2))
        return 0;
    return gpsh_dev_await_room_late(*dev.self, ring.number, slot.index, pe);
}

// GPU scope is enough for payload in a heap in GPU memory: every reader goes through that GPU's
// coherence point. Anything else may be host memory, or another GPU's, which only system
// scope covers; the range of the heap tells the two apart in one comparison of registers.
GPSH_DEV bool gpsh_dev_payload_wants_system(const struct gpushmem_dev &dev, uint64_t local)
{
    return dev.flags & GPUSHMEM_DEV_SYSTEM_SCOPE || local - (uint64_t)dev.heap >= dev.heap_bytes;
}

// Makes what the command describes in memory visible to those that execute it. Commands that carry
// all they need go without.
GPSH_DEV void gpsh_dev_fence_payload(const struct gpushmem_dev &dev,
                                     const struct gpushmem_command &command)
{
    if (!command.local || command.opcode == GPUSHMEM_CMD_PUT_INLINE ||
        command.opcode == GPUSHMEM_CMD_PUT_SIGNAL_INLINE)
        return;
    if (gpsh_dev_payload_wants_system(dev, command.local))
        gpsh_dev_fence_sys();
    else
        gpsh_dev_fence_gpu();
}

GPSH_DEV void gpsh_dev_write_slot(const struct gpushmem_ring &ring, uint64_t index,
                                  const struct gpushmem_command &command)
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

GPSH_DEV int gpsh_dev_write(const struct gpushmem_dev &dev, const struct gpushmem_ring &ring,
                            struct gpsh_dev_slot slot, const struct gpushmem_command &command)
{
    int status = gpsh_dev_await_room(dev, ring, slot, command.pe);
    if (status)
        return status;
    gpsh_dev_fence_payload(dev, command);
    gpsh_dev_write_slot(ring, slot.index, command);
    return 0;
}

GPSH_DEV int gpsh_dev_push(const struct gpushmem_dev &dev, const struct gpushmem_ring &ring,
                           const struct gpushmem_command &command, uint64_t *index)
{
    struct gpsh_dev_slot slot = gpsh_dev_reserve(ring);
    *index = slot.index;
    return gpsh_dev_write(dev, ring, slot, command);
}

// ---- Replies ----

struct gpsh_dev_claim {
    uint32_t slot;
    // one more than the slot's last, so that an old answer never matches; 0: the slot is taken
    uint32_t nonce;
    uint32_t last; // the owner word as it was
};

GPSH_DEV struct gpsh_dev_claim gpsh_dev_claim_reply(const struct gpushmem_dev &dev, uint32_t number)
{
    uint32_t slot = number & ((1u << dev.replies_log2) - 1);
    uint32_t last = gpsh_dev_exchange32_relaxed_gpu(&dev.reply_owners[slot], GPUSHMEM_REPLY_BUSY);
    return {slot,
            last > GPUSHMEM_REPLY_NONCE      ? 0
            : last == (GPUSHMEM_REPLY_NONCE) ? 1
                                             : last + 1,
            last};
}

// A claim that is not used: the slot is as it was.
GPSH_DEV void gpsh_dev_unclaim_reply(const struct gpushmem_dev &dev, struct gpsh_dev_claim claim)
{
    if (claim.last != GPUSHMEM_REPLY_BUSY)
        gpsh_dev_store32_relaxed_gpu(&dev.reply_owners[claim.slot], claim.last);
}

// Whether a claim may succeed. A slot whose owner gave up becomes free here: one thread that sees
// the late answer wins the exchange and frees the slot.
GPSH_DEV bool gpsh_dev_reply_is_free(const struct gpushmem_dev &dev, uint32_t slot)
{
    uint32_t owner = gpsh_dev_load32_relaxed_gpu(&dev.reply_owners[slot]);
    if (owner <= GPUSHMEM_REPLY_NONCE)
        return true;
    if (owner == GPUSHMEM_REPLY_BUSY ||
        !gpushmem_reply_ready(gpsh_dev_load_reply(&dev.replies[slot]),
                              owner & GPUSHMEM_REPLY_NONCE))
        return false;
    uint32_t found = gpsh_dev_exchange32_relaxed_gpu(&dev.reply_owners[slot], GPUSHMEM_REPLY_BUSY);
    gpsh_dev_unclaim_reply(dev, {slot, 0, found == owner ? owner & GPUSHMEM_REPLY_NONCE : found});
    return found != GPUSHMEM_REPLY_BUSY;
}

struct gpsh_dev_answer {
    uint64_t value;
    int status;
    bool over; // the proxy has answered
};

// Waits for the answer and gives the reply slot back.
GPSH_DEV_CALL struct gpsh_dev_answer
gpsh_dev_await_reply(const struct gpushmem_dev &dev, uint32_t number, struct gpsh_dev_claim claim)
{
    GPSH_DEV_BOUNDS();
    gpsh_dev_let_it_travel();
    const struct gpushmem_reply *slot = &dev.replies[claim.slot];
    const int32_t *error = &gpsh_dev_ring_at(dev, number).status->error;
    struct gpsh_dev_wait wait = gpsh_dev_wait_begin(dev);
    for (;;) {
        struct gpushmem_reply reply = gpsh_dev_load_reply(slot);
        if (gpushmem_reply_ready(reply, claim.nonce)) {
            // after this fence, data that was fetched into memory is visible
            gpsh_dev_fence_acquire_sys();
            // not early: the store depends on what was read
            gpsh_dev_store32_relaxed_gpu(&dev.reply_owners[claim.slot], claim.nonce);
            int status = reply.low & GPUSHMEM_REPLY_FAILED ? (int)(int32_t)(uint32_t)reply.low : 0;
            return {(reply.high & 0xffffffffu) << 32 | (reply.low & 0xffffffffu), status, true};
        }
        int status = wait.spins % 16 ? 0 : gpsh_dev_load32_relaxed_sys(error);
        if (!status)
            status = gpsh_dev_spin(&wait, false);
        if (status == GPUSHMEM_ERR_RING)
            gpsh_dev_shut_ring(
                gpsh_dev_ring_at(dev, number)); // each further command would cost a reply slot
        if (status) {                           // the proxy may still write into the slot
            gpsh_dev_store32_relaxed_gpu(&dev.reply_owners[claim.slot],
                                         claim.nonce | GPUSHMEM_REPLY_LEFT);
            return {0, status, false};
        }
    }
}

// The command with its claim; without one, a NOP.
GPSH_DEV struct gpushmem_command gpsh_dev_with_reply(struct gpushmem_command command,
                                                     struct gpsh_dev_claim claim)
{
    command.opcode = claim.nonce ? command.opcode : (uint8_t)GPUSHMEM_CMD_NOP;
    command.flags = claim.nonce ? command.flags | GPUSHMEM_CMD_REPLY : 0;
    command.reply = claim.nonce ? (uint64_t)claim.slot << 32 | claim.nonce : 0;
    return command;
}

// Looks for a reply slot that seems free, from the next one on, and claims none: threads of a warp
// may be held up where branches join until all of them are there, so nobody may leave this loop
// with something that others need. Its number, or a negative status.
GPSH_DEV_CALL int gpsh_dev_find_reply(const struct gpushmem_dev &dev, struct gpsh_dev_claim failed)
{
    GPSH_DEV_BOUNDS();
    struct gpsh_dev_wait wait = gpsh_dev_wait_begin(dev);
    gpsh_dev_unclaim_reply(dev, failed);
    for (uint32_t slot = failed.slot;;) {
        slot = (slot + 1) & ((1u << dev.replies_log2) - 1);
        if (gpsh_dev_reply_is_free(dev, slot))
            return (int)slot;
        gpsh_dev_nap();
        int status = gpsh_dev_spin(&wait, false);
        if (status)
            return status;
    }
}

// Pushes a command and waits for its answer; `value` is left alone on failure (the first failure is
// recorded). The claim of a reply slot and the reservation in the ring go out together. A thread
// must not hold a reserved ring slot while it looks for a reply slot, whose owner may wait for a
// later command of the ring: if its claim fails, it fills the ring slot with a NOP.
GPSH_DEV int gpsh_dev_push_and_wait(const struct gpushmem_dev &dev,
                                    const struct gpushmem_command &command, uint64_t *value)
{
    const struct gpushmem_ring ring = gpsh_dev_ring(dev);
    uint32_t wanted = gpsh_dev_block_number() * gpsh_dev_block_threads() + gpsh_dev_thread_number();
    struct gpsh_dev_answer answer = {0, 0, false};
    while (!answer.status && !answer.over) {
        struct gpsh_dev_claim claim = gpsh_dev_claim_reply(dev, wanted);
        struct gpsh_dev_slot slot = gpsh_dev_reserve(ring);
        answer.status = gpsh_dev_write(dev, ring, slot, gpsh_dev_with_reply(command, claim));
        if (answer.status) // never sent: nobody will answer
            gpsh_dev_unclaim_reply(dev, claim);
        else if (claim.nonce)
            answer = gpsh_dev_await_reply(*dev.self, ring.number, claim);
        else {
            int found = gpsh_dev_find_reply(*dev.self, claim);
            wanted = (uint32_t)found;
            answer.status = found < 0 ? found : 0;
        }
    }
    if (answer.status)
        gpsh_dev_fail(dev, answer.status, command.pe, (const void *)command.remote, command.bytes);
    else
        *value = answer.value;
    return answer.status;
}

// ---- Completion ----

// Waits until the answer, which few threads look at, is at least `index`.
GPSH_DEV int gpsh_dev_await_answer(const struct gpushmem_dev &dev, const struct gpushmem_ring &ring,
                                   const uint64_t *answer, uint64_t index)
{
    struct gpsh_dev_wait wait = gpsh_dev_wait_begin(dev);
    gpsh_dev_let_it_travel();
    while (gpsh_dev_load64_value_sys(answer) < index) {
        int status = wait.spins % 16 ? 0 : gpsh_dev_load32_relaxed_sys(&ring.status->error);
        if (!status)
            status = gpsh_dev_spin(&wait, false);
        if (status) {
            gpsh_dev_fail(dev, status, -1, nullptr, 0);
            return status;
        }
    }
    return 0;
}

// Waits until every command of the ring below `index` is complete. The caller fences: then what was
// fetched is visible.
GPSH_DEV_CALL int gpsh_dev_await_completed(const struct gpushmem_dev &dev, uint32_t number,
                                           uint64_t index)
{
    GPSH_DEV_BOUNDS();
    int status =
        gpsh_dev_await_count(dev, gpsh_dev_completed(gpsh_dev_ring_at(dev, number)), index);
    if (status)
        gpsh_dev_fail(dev, status, -1, nullptr, 0);
    return status;
}

// Rings that are looked at at once: the loads of one would wait for those of the other.
enum { GPSH_DEV_AT_ONCE = GPUSHMEM_FENCE_RINGS };

// Of the rings from `first` on: the head, or 0 if the copy in device memory says that all below it
// is complete.
GPSH_DEV void gpsh_dev_rings_under_way(const struct gpushmem_dev &dev, uint32_t first,
                                       uint64_t (&head)[GPSH_DEV_AT_ONCE])
{
    uint64_t seen[GPSH_DEV_AT_ONCE];
    GPSH_UNROLL
    for (uint32_t i = 0; i < GPSH_DEV_AT_ONCE; i++) {
        const struct gpushmem_ring ring =
            gpsh_dev_ring_at(dev, first + i < dev.n_rings ? first + i : first);
        head[i] = gpsh_dev_load64_relaxed_gpu(ring.head);
        seen[i] = gpsh_dev_load64_relaxed_gpu(ring.completed_seen);
    }
    GPSH_UNROLL
    for (uint32_t i = 0; i < GPSH_DEV_AT_ONCE; i++)
        head[i] = first + i < dev.n_rings && head[i] > seen[i] ? head[i] : 0;
}

// Everything that any thread wrote into any ring before is complete. The caller fences. Not 0: it
// gave up, for that reason.
GPSH_DEV int gpsh_dev_rings_quiet(const struct gpushmem_dev &dev)
{
    for (uint32_t first = 0; first < dev.n_rings; first += GPSH_DEV_AT_ONCE) {
        uint64_t head[GPSH_DEV_AT_ONCE];
        gpsh_dev_rings_under_way(dev, first, head);
        GPSH_NO_UNROLL
        for (uint32_t i = 0; i < GPSH_DEV_AT_ONCE; i++) {
            uint64_t least = i < 2 ? (i ? head[1] : head[0]) : i == 2 ? head[2] : head[3];
            if (!least)
                continue;
            const struct gpushmem_ring ring = gpsh_dev_ring_at(dev, first + i);
            // one look, even if another thread is looking: a lone thread has no time to lose
            uint64_t now;
            gpsh_dev_look(gpsh_dev_completed(ring), &now);
            if (now >= least)
                gpsh_dev_max64_relaxed_gpu(ring.completed_seen, now);
            else if (int status = gpsh_dev_await_completed(*dev.self, first + i, least))
                return status;
        }
    }
    return 0;
}

#endif
