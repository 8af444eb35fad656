// SPDX-License-Identifier: BSD-3-Clause
// The NIC path: kernels write work requests (WQEs), ring the doorbell and poll the completion queue
// themselves. Each call says whether it did that: what it does not take (memory that the NIC has no
// key for, atomics that it does not execute, a PE whose queue is not connected yet) goes through
// the command ring. docs/design/nic_posts.md says how threads share a queue, and why each fence is
// where it is.
#ifndef GPUSHMEM_DEVICE_PATH_NIC_CUH
#define GPUSHMEM_DEVICE_PATH_NIC_CUH

#include "gpushmem/device/path_proxy.cuh"

// ---- Layouts of the NIC ----

enum {
    GPSH_NIC_WRITE = 0x08,
    GPSH_NIC_READ = 0x10,
    GPSH_NIC_CSWAP = 0x11,
    GPSH_NIC_ADD = 0x12,
    GPSH_NIC_SIGNALLED = 2 << 2, // a completion is wanted
    GPSH_NIC_FENCED = 4 << 5,    // waits for earlier reads and atomics
    // opcodes of completions: the upper half of a CQE's last byte
    GPSH_NIC_CQE_ERROR = 13,
    GPSH_NIC_CQE_INVALID = 15,
    GPSH_NIC_RETRIES_OVER = 0x15, // syndromes: the peer does not answer, or is never ready
    GPSH_NIC_NOT_READY = 0x16,
};
#define GPSH_NIC_INLINE 0x80000000u

// A WQE without what depends on its position and its queue pair. Words as the NIC reads them.
struct gpsh_dev_wqe {
    uint32_t opcode;
    uint32_t size;     // in 16 bytes
    uint64_t to;       // address there
    uint64_t words[4]; // the upper half of the block
};

GPSH_DEV uint64_t gpsh_dev_nic_pair(uint32_t low, uint32_t high)
{
    return gpsh_dev_big32(low) | (uint64_t)gpsh_dev_big32(high) << 32;
}

GPSH_DEV uint64_t gpsh_dev_nic_there(const struct gpushmem_nic_queue *q, const void *address)
{
    return (uint64_t)(uintptr_t)address + q->remote;
}

// Of `bytes` from or to registered memory.
GPSH_DEV struct gpsh_dev_wqe gpsh_dev_wqe_data(uint32_t opcode, uint64_t there, const void *local,
                                               uint32_t key, uint32_t bytes)
{
    return {opcode,
            3,
            there,
            {gpsh_dev_nic_pair(bytes, key), gpsh_dev_big64((uint64_t)(uintptr_t)local), 0, 0}};
}

// A write that carries its payload: the length comes first, so words are split across halves.
GPSH_DEV struct gpsh_dev_wqe gpsh_dev_wqe_inline(uint64_t there, const uint64_t (&payload)[4],
                                                 uint32_t bytes)
{
    return {GPSH_NIC_WRITE,
            (36 + bytes + 15) / 16,
            there,
            {gpsh_dev_big32(GPSH_NIC_INLINE | bytes) | payload[0] << 32,
             payload[0] >> 32 | payload[1] << 32, payload[1] >> 32 | payload[2] << 32,
             payload[2] >> 32 | payload[3] << 32}};
}

GPSH_DEV struct gpsh_dev_wqe gpsh_dev_wqe_atomic(uint32_t opcode, uint64_t there, uint64_t operand,
                                                 uint64_t compare, uint64_t *landing, uint32_t key)
{
    return {opcode,
            4,
            there,
            {gpsh_dev_big64(operand), gpsh_dev_big64(compare),
             gpsh_dev_nic_pair((uint32_t)sizeof *landing, key),
             gpsh_dev_big64((uint64_t)(uintptr_t)landing)}};
}

// ---- Completions ----

// Whether the WQE below `end` will never complete.
GPSH_DEV bool gpsh_dev_nic_has_failed(const struct gpushmem_nic_queue *q, uint64_t end)
{
    return ~gpsh_dev_load64_relaxed_gpu(&q->failed) < end;
}

// The WQE at `position` will never complete, nor what is behind it. Kernels leave the queue alone
// from now on.
GPSH_DEV void gpsh_dev_nic_give_up(struct gpushmem_nic_queue *q, uint64_t position, int status)
{
    gpsh_dev_store32_relaxed_gpu((uint32_t *)&q->error, (uint32_t)status);
    gpsh_dev_store32_relaxed_gpu(&q->state, GPUSHMEM_NIC_OUT);
    gpsh_dev_fence_gpu(); // who sees that it has failed knows why
    gpsh_dev_max64_relaxed_gpu(&q->failed, ~position);
}

// The first error completion: the host is told by one word. Others that follow are of what was
// flushed.
GPSH_DEV void gpsh_dev_nic_take_error(struct gpushmem_nic_queue *q, uint64_t position,
                                      uint32_t syndromes, uint32_t opcode)
{
    const uint32_t syndrome = syndromes >> 8;
    bool dead = syndrome == GPSH_NIC_RETRIES_OVER || syndrome == GPSH_NIC_NOT_READY;
    if (gpsh_dev_load64_relaxed_gpu(&q->failed)) // the host has found it
        return;
    gpsh_dev_nic_give_up(q, position, dead ? GPUSHMEM_ERR_PE_FAILED : GPUSHMEM_ERR_TRANSPORT);
    gpsh_dev_store64_release_sys(q->failure,
                                 gpushmem_nic_failure(q->pe, opcode, syndrome, syndromes & 0xff));
}

// Consumes one completion if there is one, of those from `next` on; *done moves on.
GPSH_DEV bool gpsh_dev_nic_consume(struct gpushmem_nic_queue *q, uint64_t next, uint64_t *done)
{
    const char *cqe = q->cq + (next & (((uint64_t)1 << q->cqes_log2) - 1)) * q->cqe_bytes;
    // One load with the byte that says whose the CQE is: that is written last, and only by the NIC.
    const uint64_t last = gpsh_dev_load64_acquire_sys(cqe + 56);
    const uint32_t opcode = (uint32_t)(last >> 60);
    if (opcode == GPSH_NIC_CQE_INVALID || (last >> 56 & 1) != (next >> q->cqes_log2 & 1))
        return false;
    // the lower 16 bits of its WQE's position: no queue is that long
    const uint16_t counter = (uint16_t)(gpsh_dev_big32((uint32_t)(last >> 32)) >> 16);
    const uint64_t position = *done + (uint16_t)(counter - (uint16_t)*done);
    if (opcode == GPSH_NIC_CQE_ERROR) {
        *done = position; // those before it are complete, whether they asked for it or not
        gpsh_dev_nic_take_error(q, position, (uint32_t)(gpsh_dev_load64_value_sys(cqe + 48) >> 48),
                                (uint32_t)last & 0xff);
        return false;
    }
    *done = position + 1;
    return true;
}

// Consumes what is there, unless another thread is at it.
GPSH_DEV_CALL void gpsh_dev_nic_poll(struct gpushmem_nic_queue *q)
{
    if (gpsh_dev_load32_relaxed_gpu(&q->polling) || gpsh_dev_exchange32_relaxed_gpu(&q->polling, 1))
        return;
    gpsh_dev_fence_gpu(); // sees how far the thread before has come
    const uint64_t first = gpsh_dev_load64_relaxed_gpu(&q->cq_next);
    uint64_t next = first, done = gpsh_dev_load64_relaxed_gpu(&q->done);
    while (!gpsh_dev_load64_relaxed_gpu(&q->failed) && gpsh_dev_nic_consume(q, next, &done))
        next++;
    if (next != first) {
        gpsh_dev_store64_relaxed_gpu(&q->cq_next, next);
        gpsh_dev_store32_sys(q->cq_record, gpsh_dev_big32((uint32_t)next & 0xffffff));
    }
    gpsh_dev_max64_relaxed_gpu(&q->done, done);
    gpsh_dev_fence_gpu();
    gpsh_dev_store32_relaxed_gpu(&q->polling, 0);
}

// Until the WQEs below `end` are complete. What they fetched is visible then. 0, or why not: that
// was recorded.
GPSH_DEV_CALL int gpsh_dev_nic_await(const struct gpushmem_dev &dev, struct gpushmem_nic_queue *q,
                                     uint64_t end)
{
    struct gpsh_dev_wait wait = gpsh_dev_wait_begin(dev);
    while (gpsh_dev_load64_relaxed_gpu(&q->done) < end) {
        gpsh_dev_nic_poll(q);
        if (gpsh_dev_load64_relaxed_gpu(&q->done) >= end)
            break;
        if (gpsh_dev_nic_has_failed(q, end))
            return (int)gpsh_dev_load32_relaxed_gpu((const uint32_t *)&q->error);
        if (int status = gpsh_dev_spin(&wait, false)) {
            gpsh_dev_fail(dev, status, q->pe, nullptr, 0);
            return status;
        }
    }
    gpsh_dev_fence_acquire_sys();
    return 0;
}

// Everything that kernels posted to any queue before is complete.
GPSH_DEV_CALL int gpsh_dev_nic_quiet(const struct gpushmem_dev &dev)
{
    const uint32_t n = gpsh_dev_load32_relaxed_gpu(&dev.nic->n_used),
                   *used = gpushmem_nic_used(dev.nic, dev.n_pes);
    int first = 0;
    for (uint32_t i = 0; i < n; i++) {
        struct gpushmem_nic_queue *q =
            &gpushmem_nic_queues(dev.nic)[gpsh_dev_load32_relaxed_gpu(&used[i])];
        int status = gpsh_dev_nic_await(dev, q, gpsh_dev_load64_relaxed_gpu(&q->head));
        first = first ? first : status;
    }
    return first;
}

GPSH_DEV_CALL void gpsh_dev_nic_quiet_pe(const struct gpushmem_dev &dev, int pe)
{
    struct gpushmem_nic_queue *q = &gpushmem_nic_queues(dev.nic)[pe];
    gpsh_dev_nic_await(dev, q, gpsh_dev_load64_relaxed_gpu(&q->head));
}

// ---- Fences ----

// A fence only counts. Each queue finds out at its next post, or when an operation goes through a
// ring beside it: what went through rings before the fence is complete then, and what was posted to
// this queue is known by its position.
GPSH_DEV_CALL void gpsh_dev_nic_meet_fence(const struct gpushmem_dev &dev,
                                           struct gpushmem_nic_queue *q)
{
    const uint64_t fences = gpsh_dev_load64_relaxed_gpu(&dev.nic->fences);
    gpsh_dev_rings_quiet(dev);
    gpsh_dev_max64_relaxed_gpu(&q->fence_at, gpsh_dev_load64_relaxed_gpu(&q->head));
    gpsh_dev_max64_relaxed_gpu(&q->fenced, gpsh_dev_load64_relaxed_gpu(&q->fetching));
    gpsh_dev_fence_gpu(); // who sees the count sees the two positions
    gpsh_dev_max64_relaxed_gpu(&q->fence_seen, fences);
}

// An operation towards the queue's PE goes through a ring: what a fence orders before it is
// complete when this returns.
GPSH_DEV_CALL bool gpsh_dev_nic_step_aside(const struct gpushmem_dev &dev,
                                           struct gpushmem_nic_queue *q)
{
    const uint64_t before = gpsh_dev_load64_relaxed_gpu(&q->fence_at);
    if (gpsh_dev_load64_relaxed_gpu(&q->done) < before)
        gpsh_dev_nic_await(dev, q, before);
    return false;
}

// An atomic goes through a ring. Those of one thread on one word are expected to happen in its
// order, although only a fence promises that: so it waits for what was posted before, and what is
// posted after it waits as after a fence.
GPSH_DEV_CALL bool gpsh_dev_nic_before_ring(const struct gpushmem_dev &dev,
                                            struct gpushmem_nic_queue *q)
{
    gpsh_dev_nic_await(dev, q, gpsh_dev_load64_relaxed_gpu(&q->head));
    return false;
}

GPSH_DEV_CALL void gpsh_dev_nic_after_ring(const struct gpushmem_dev &dev)
{
    gpsh_dev_fence_gpu(); // who sees the count finds the ring under way
    gpsh_dev_add64_relaxed_gpu(&dev.nic->fences, 1);
}

// ---- Posting ----

// Until the WQEs below `end` have room. If it gives up, what was reserved is never written.
GPSH_DEV int gpsh_dev_nic_await_room(const struct gpushmem_dev &dev, struct gpushmem_nic_queue *q,
                                     uint64_t first, uint64_t end)
{
    struct gpsh_dev_wait wait = gpsh_dev_wait_begin(dev);
    while (end > gpsh_dev_load64_relaxed_gpu(&q->done) + q->depth) {
        gpsh_dev_nic_poll(q);
        if (gpsh_dev_nic_has_failed(q, end))
            return (int)gpsh_dev_load32_relaxed_gpu((const uint32_t *)&q->error);
        if (int status = gpsh_dev_spin(&wait, false)) {
            gpsh_dev_nic_give_up(q, first, status);
            return status;
        }
    }
    return 0;
}

// Places that threads of a warp have reserved together, each as many of them.
struct gpsh_dev_places {
    uint64_t first; // of the first thread
    unsigned mask;  // the threads
    int status;     // not 0: there are none
};

// One add for the threads of a warp that are here together and have the same queue. The functions
// that threads meet in are not inlined, so that each has one place for all. `room`: the position up
// to which there was some lately.
GPSH_DEV_CALL struct gpsh_dev_places gpsh_dev_nic_reserve(const struct gpushmem_dev &dev,
                                                          struct gpushmem_nic_queue *q, unsigned n,
                                                          uint64_t room)
{
    const unsigned mask = gpsh_dev_lanes_with(q), count = n * gpsh_dev_lanes_size(mask);
    uint64_t first = 0;
    int status = 0;
    if (gpsh_dev_lanes_rank(mask) == 0) {
        first = gpsh_dev_add64_relaxed_gpu(&q->head, count);
        if (first + count > room)
            status = gpsh_dev_nic_await_room(dev, q, first, first + count);
    }
    first = gpsh_dev_lanes_first(mask, first);
    return {first, mask, (int)gpsh_dev_lanes_first(mask, (uint64_t)(int64_t)status)};
}

GPSH_DEV uint64_t gpsh_dev_nic_head_word(const struct gpushmem_nic_queue *q, uint64_t position,
                                         const struct gpsh_dev_wqe &wqe)
{
    return gpsh_dev_nic_pair((uint32_t)(position & 0xffff) << 8 | wqe.opcode,
                             q->qpn << 8 | wqe.size);
}

GPSH_DEV uint64_t *gpsh_dev_nic_block(const struct gpushmem_nic_queue *q, uint64_t position)
{
    return q->sq + (position & (((uint64_t)1 << q->entries_log2) - 1)) * GPUSHMEM_COMMAND_WORDS;
}

GPSH_DEV void gpsh_dev_nic_write(const struct gpushmem_nic_queue *q, uint64_t position,
                                 const struct gpsh_dev_wqe &wqe, uint32_t flags)
{
    const uint64_t words[8] = {gpsh_dev_nic_head_word(q, position, wqe),
                               (uint64_t)flags << 24,
                               gpsh_dev_big64(wqe.to),
                               gpsh_dev_big32(q->rkey),
                               wqe.words[0],
                               wqe.words[1],
                               wqe.words[2],
                               wqe.words[3]};
    gpsh_dev_store_command(gpsh_dev_nic_block(q, position), words);
}

// How a queue's NIC is told. In registers before the fences, which drop what is cached of the
// queue.
struct gpsh_dev_bell {
    uint32_t *record;
    uint64_t *doorbell;
    uint32_t depth;
    bool near_gpu;
};

GPSH_DEV struct gpsh_dev_bell gpsh_dev_nic_bell(const struct gpushmem_nic_queue *q)
{
    return {q->sq_record, q->doorbell, q->depth, (q->flags & GPUSHMEM_NIC_NEAR) != 0};
}

// Before the NIC is told of what was written: it reads queues in this GPU's memory, and the heap
// there, where all of the GPU's own threads meet.
GPSH_DEV void gpsh_dev_nic_fence(const struct gpsh_dev_bell &bell)
{
    if (bell.near_gpu)
        gpsh_dev_fence_gpu();
    else
        gpsh_dev_fence_sys();
}

// Where a queue stands. Loaded together, early, so that the loads are under way side by side: what
// is seen may be old, which is on the safe side.
struct gpsh_dev_nic_seen {
    uint64_t ready, head, done;
};

GPSH_DEV struct gpsh_dev_nic_seen gpsh_dev_nic_see(const struct gpushmem_nic_queue *q)
{
    return {gpsh_dev_load64_relaxed_gpu(&q->ready), gpsh_dev_load64_relaxed_gpu(&q->head),
            gpsh_dev_load64_relaxed_gpu(&q->done)};
}

// The thread has its turn: rings the doorbell for all WQEs below `end`, or leaves that to whoever
// has reserved what follows: if that has room, it waits for nobody but this thread. `word`: the
// first one of the last WQE. `waited`: other threads may have written since the last fence.
GPSH_DEV void gpsh_dev_nic_take_turn(struct gpushmem_nic_queue *q, const struct gpsh_dev_bell &bell,
                                     const struct gpsh_dev_nic_seen &seen, uint64_t end,
                                     uint64_t word, bool waited)
{
    if (seen.head <= end || end + GPUSHMEM_NIC_AT_ONCE > seen.done + bell.depth) {
        if (waited)
            gpsh_dev_nic_fence(bell); // the WQEs of those before the record
        gpsh_dev_store32_sys(bell.record, gpsh_dev_big32((uint32_t)end & 0xffff));
        gpsh_dev_nic_fence(bell); // the record before the doorbell
        gpsh_dev_store64_sys(bell.doorbell, word);
    }
    gpsh_dev_max64_relaxed_gpu(&q->ready, end);
}

// The WQEs from `first` to `end` are written: waits until those before are, too. The turn is passed
// on within the loop: threads of a warp may be held up behind it until all of them are there.
GPSH_DEV int gpsh_dev_nic_publish(const struct gpushmem_dev &dev, struct gpushmem_nic_queue *q,
                                  struct gpsh_dev_nic_seen seen, uint64_t first, uint64_t end,
                                  uint64_t word)
{
    struct gpsh_dev_wait wait = gpsh_dev_wait_begin(dev);
    const struct gpsh_dev_bell bell = gpsh_dev_nic_bell(q);
    gpsh_dev_nic_fence(bell); // our WQEs and sources, before whoever rings
    for (bool waited = false;; waited = true) {
        if (seen.ready == first) {
            gpsh_dev_nic_take_turn(q, bell, seen, end, word, waited);
            return 0;
        }
        if (gpsh_dev_nic_has_failed(q, first)) // nobody writes what is before
            return (int)gpsh_dev_load32_relaxed_gpu((const uint32_t *)&q->error);
        if (int status = gpsh_dev_spin(&wait, false)) {
            gpsh_dev_nic_give_up(q, first, status);
            return status;
        }
        seen = gpsh_dev_nic_see(q);
    }
}

// All threads of these places have written theirs, n each. `word`: the first one of the last of the
// thread's; `seen`: before that.
GPSH_DEV_CALL int gpsh_dev_nic_commit(const struct gpushmem_dev &dev, struct gpushmem_nic_queue *q,
                                      const struct gpsh_dev_places places,
                                      const struct gpsh_dev_nic_seen seen, unsigned n,
                                      uint64_t word)
{
    word = gpsh_dev_lanes_last(places.mask, word);
    gpsh_dev_lanes_meet(places.mask); // their stores, before the first one's fence
    int status = 0;
    if (gpsh_dev_lanes_rank(places.mask) == 0)
        status = gpsh_dev_nic_publish(dev, q, seen, places.first,
                                      places.first + n * gpsh_dev_lanes_size(places.mask), word);
    // No lane goes ahead of the first one, to reserve what that one would have to wait for.
    gpsh_dev_lanes_meet(places.mask);
    return status;
}

// 0 for a failure that was told: of a completion, by its word.
GPSH_DEV void gpsh_dev_nic_tell(const struct gpushmem_dev &dev, const struct gpushmem_nic_queue *q,
                                int status)
{
    if (status == GPUSHMEM_ERR_TIMEOUT)
        gpsh_dev_fail(dev, status, q->pe, nullptr, 0);
}

// Posts N WQEs, one after the other, of which the last one of the warp's threads asks for a
// completion. Returns the position after the last one, or 0 if that is not possible. The source of
// a WQE is what the thread sees.
template <int N>
GPSH_DEV uint64_t gpsh_dev_nic_post(const struct gpushmem_dev &dev, struct gpushmem_nic_queue *q,
                                    const struct gpsh_dev_wqe (&what)[N], bool fetches)
{
    const uint64_t done = gpsh_dev_load64_relaxed_gpu(&q->done),
                   before = gpsh_dev_load64_relaxed_gpu(&q->fenced);
    const struct gpsh_dev_places places = gpsh_dev_nic_reserve(dev, q, N, done + q->depth);
    if (places.status) {
        gpsh_dev_nic_tell(dev, q, places.status);
        return 0;
    }
    const struct gpsh_dev_nic_seen seen = gpsh_dev_nic_see(q);
    const unsigned rank = gpsh_dev_lanes_rank(places.mask);
    const bool last = rank + 1 == gpsh_dev_lanes_size(places.mask);
    const uint64_t mine = places.first + N * rank;
    const bool fenced = before > done;
    GPSH_UNROLL
    for (int i = 0; i < N; i++)
        gpsh_dev_nic_write(q, mine + i, what[i],
                           (fenced && !i ? GPSH_NIC_FENCED : 0) |
                               (last && i + 1 == N ? GPSH_NIC_SIGNALLED : 0));
    if (fetches)
        gpsh_dev_max64_relaxed_gpu(&q->fetching, mine + N);
    if (int status = gpsh_dev_nic_commit(dev, q, places, seen, N,
                                         gpsh_dev_nic_head_word(q, mine + N - 1, what[N - 1])))
        gpsh_dev_nic_tell(dev, q, status);
    return mine + N;
}

GPSH_DEV uint64_t gpsh_dev_nic_post_one(const struct gpushmem_dev &dev,
                                        struct gpushmem_nic_queue *q,
                                        const struct gpsh_dev_wqe &what, bool fetches)
{
    const struct gpsh_dev_wqe one[1] = {what};
    return gpsh_dev_nic_post(dev, q, one, fetches);
}

// ---- Fetching ----

// One word into a reply slot, which is the thread's meanwhile. `key_at`: which of the WQE's words
// takes the key; the address comes after it.
GPSH_DEV struct gpsh_dev_answer gpsh_dev_nic_fetch_into(const struct gpushmem_dev &dev,
                                                        struct gpushmem_nic_queue *q,
                                                        const struct gpsh_dev_wqe &what, int key_at,
                                                        uint32_t bytes, struct gpsh_dev_claim claim)
{
    uint64_t *landing = &dev.replies[claim.slot].low;
    struct gpsh_dev_answer answer = {0, GPUSHMEM_ERR_TRANSPORT, true};
    const uint64_t key = gpsh_dev_nic_pair(bytes, q->answers_lkey),
                   to = gpsh_dev_big64((uint64_t)(uintptr_t)landing);
    const struct gpsh_dev_wqe wqe[1] = {
        {what.opcode,
         what.size,
         what.to,
         {key_at ? what.words[0] : key, key_at ? what.words[1] : to, key, to}}};
    const uint64_t end = gpsh_dev_nic_post(dev, q, wqe, true);
    if (end)
        answer.status = gpsh_dev_nic_await(dev, q, end);
    if (!answer.status)
        answer.value = gpsh_dev_load64_value_sys(landing);
    // One that was given up may still be written: nobody gets it again.
    if (!answer.status || !end || gpsh_dev_nic_has_failed(q, end))
        gpsh_dev_store32_relaxed_gpu(&dev.reply_owners[claim.slot], claim.nonce);
    return answer;
}

// The operation is made within the loop, as a thread leaves it with nothing that others wait for.
GPSH_DEV struct gpsh_dev_answer gpsh_dev_nic_fetch(const struct gpushmem_dev &dev,
                                                   struct gpushmem_nic_queue *q,
                                                   const struct gpsh_dev_wqe &what, int key_at,
                                                   uint32_t bytes)
{
    uint32_t wanted = gpsh_dev_block_number() * gpsh_dev_block_threads() + gpsh_dev_thread_number();
    struct gpsh_dev_answer answer = {0, 0, false};
    while (!answer.status && !answer.over) {
        struct gpsh_dev_claim claim = gpsh_dev_claim_reply(dev, wanted);
        if (claim.nonce) {
            answer = gpsh_dev_nic_fetch_into(dev, q, what, key_at, bytes, claim);
        } else {
            int found = gpsh_dev_find_reply(dev, claim);
            wanted = (uint32_t)found;
            answer.status = found < 0 ? found : 0;
        }
    }
    return answer;
}

// ---- Operations ----

GPSH_DEV_CALL void gpsh_dev_nic_ask(const struct gpushmem_dev &dev, struct gpushmem_nic_queue *q,
                                    int pe)
{
    uint64_t index;
    if (!gpsh_dev_load32_relaxed_gpu(&q->asked) && !gpsh_dev_exchange32_relaxed_gpu(&q->asked, 1))
        gpsh_dev_push(dev, gpsh_dev_ring(dev),
                      gpsh_dev_command(GPUSHMEM_CMD_NIC_QUEUE, pe, nullptr, nullptr, 0), &index);
}

// The queue towards that PE, which knows of all fences then, or nullptr: use a ring. The first who
// misses it asks for it.
GPSH_DEV struct gpushmem_nic_queue *gpsh_dev_nic_to(const struct gpushmem_dev &dev, int pe)
{
    if ((unsigned)pe >= (unsigned)dev.n_pes)
        return nullptr;
    struct gpushmem_nic_queue *q = &gpushmem_nic_queues(dev.nic)[pe];
    const uint32_t state = gpsh_dev_load32_relaxed_gpu(&q->state);
    const uint64_t seen = gpsh_dev_load64_relaxed_gpu(&q->fence_seen),
                   fences = gpsh_dev_load64_relaxed_gpu(&dev.nic->fences);
    if (state == GPUSHMEM_NIC_NONE)
        gpsh_dev_nic_ask(dev, q, pe);
    if (state != GPUSHMEM_NIC_UP)
        return nullptr;
    if (seen != fences)
        gpsh_dev_nic_meet_fence(dev, q);
    return q;
}

// An operation that no queue takes goes through a ring.
GPSH_DEV_CALL void gpsh_dev_nic_leave(const struct gpushmem_dev &dev, int pe)
{
    if (struct gpushmem_nic_queue *q = gpsh_dev_nic_to(dev, pe))
        gpsh_dev_nic_step_aside(dev, q);
}

// Whether the queue's keys are for [address, +bytes).
GPSH_DEV bool gpsh_dev_nic_has_key(const struct gpushmem_dev &dev,
                                   const struct gpushmem_nic_queue *q, const void *address,
                                   uint64_t bytes)
{
    const uint64_t offset = (uint64_t)((const char *)address - dev.heap);
    return offset < q->heap_bytes && bytes <= q->heap_bytes - offset && bytes <= q->most;
}

GPSH_DEV bool gpsh_dev_nic_put_carried(const struct gpushmem_dev &dev, struct gpushmem_nic_queue *q,
                                       void *to, const uint64_t (&payload)[4], uint32_t bytes)
{
    if (!gpsh_dev_nic_has_key(dev, q, to, bytes))
        return gpsh_dev_nic_step_aside(dev, q);
    gpsh_dev_nic_post_one(dev, q, gpsh_dev_wqe_inline(gpsh_dev_nic_there(q, to), payload, bytes),
                          false);
    return true;
}

// The low `bytes` of value, up to 8.
GPSH_DEV_CALL bool gpsh_dev_nic_put_value(const struct gpushmem_dev &dev, void *to, uint64_t value,
                                          size_t bytes, int pe)
{
    struct gpushmem_nic_queue *q = gpsh_dev_nic_to(dev, pe);
    const uint64_t payload[4] = {value, 0, 0, 0};
    return q && gpsh_dev_nic_put_carried(dev, q, to, payload, (uint32_t)bytes);
}

GPSH_DEV_CALL bool gpsh_dev_nic_put(const struct gpushmem_dev &dev, void *to, const void *from,
                                    size_t bytes, int pe, bool blocking)
{
    struct gpushmem_nic_queue *q = gpsh_dev_nic_to(dev, pe);
    if (!q)
        return false;
    if (bytes <= GPUSHMEM_NIC_INLINE_BYTES) {
        uint64_t payload[4];
        gpsh_dev_load_carried(payload, from, bytes);
        return gpsh_dev_nic_put_carried(dev, q, to, payload, (uint32_t)bytes);
    }
    if (!gpsh_dev_nic_has_key(dev, q, from, bytes) || !gpsh_dev_nic_has_key(dev, q, to, bytes))
        return gpsh_dev_nic_step_aside(dev, q);
    const uint64_t end =
        gpsh_dev_nic_post_one(dev, q,
                              gpsh_dev_wqe_data(GPSH_NIC_WRITE, gpsh_dev_nic_there(q, to), from,
                                                q->lkey, (uint32_t)bytes),
                              false);
    if (blocking && end)
        gpsh_dev_nic_await(dev, q, end);
    return true;
}

GPSH_DEV_CALL bool gpsh_dev_nic_get(const struct gpushmem_dev &dev, void *to, const void *from,
                                    size_t bytes, int pe, bool blocking)
{
    struct gpushmem_nic_queue *q = gpsh_dev_nic_to(dev, pe);
    if (!q)
        return false;
    if (!gpsh_dev_nic_has_key(dev, q, from, bytes) || !gpsh_dev_nic_has_key(dev, q, to, bytes))
        return gpsh_dev_nic_step_aside(dev, q);
    const uint64_t end = gpsh_dev_nic_post_one(
        dev, q,
        gpsh_dev_wqe_data(GPSH_NIC_READ, gpsh_dev_nic_there(q, from), to, q->lkey, (uint32_t)bytes),
        true);
    if (blocking && end)
        gpsh_dev_nic_await(dev, q, end);
    return true;
}

// A value that a call may have taken.
struct gpsh_dev_taken {
    uint64_t value;
    bool taken;
};

// Up to 8 bytes, as the low bytes of the value; 0 if it failed.
GPSH_DEV_CALL struct gpsh_dev_taken gpsh_dev_nic_get_value(const struct gpushmem_dev &dev,
                                                           const void *from, size_t bytes, int pe)
{
    struct gpushmem_nic_queue *q = gpsh_dev_nic_to(dev, pe);
    if (!q)
        return {0, false};
    if (!gpsh_dev_nic_has_key(dev, q, from, bytes))
        return {0, gpsh_dev_nic_step_aside(dev, q)};
    const struct gpsh_dev_answer answer = gpsh_dev_nic_fetch(
        dev, q, gpsh_dev_wqe_data(GPSH_NIC_READ, gpsh_dev_nic_there(q, from), nullptr, 0, 0), 0,
        (uint32_t)bytes);
    const uint64_t mask = bytes < 8 ? ((uint64_t)1 << 8 * bytes) - 1 : ~(uint64_t)0;
    return {answer.status ? 0 : answer.value & mask, true};
}

// Whether an atomic or a signal on the word may be posted: the NIC there executes those of all PEs,
// and none of its PE's threads stores there by itself.
GPSH_DEV bool gpsh_dev_nic_has_word(const struct gpushmem_dev &dev,
                                    const struct gpushmem_nic_queue *q, const void *word,
                                    size_t width)
{
    return q->flags & GPUSHMEM_NIC_ATOMICS && gpsh_dev_nic_has_key(dev, q, word, width) &&
           !gpsh_dev_away(dev, q->pe);
}

// Of what the NIC has a request for; a fetch is a read.
GPSH_DEV struct gpsh_dev_wqe gpsh_dev_nic_amo_wqe(const struct gpushmem_nic_queue *q,
                                                  enum gpushmem_amo amo, const void *target,
                                                  uint64_t operand, uint64_t compare)
{
    const uint64_t there = gpsh_dev_nic_there(q, target);
    return amo == GPUSHMEM_AMO_FETCH
               ? gpsh_dev_wqe_data(GPSH_NIC_READ, there, nullptr, 0, 0)
               : gpsh_dev_wqe_atomic(amo == GPUSHMEM_AMO_ADD ? GPSH_NIC_ADD : GPSH_NIC_CSWAP, there,
                                     operand, compare, q->scrap, q->answers_lkey);
}

GPSH_DEV_CALL struct gpsh_dev_answer gpsh_dev_nic_fetch_word(const struct gpushmem_dev &dev,
                                                             struct gpushmem_nic_queue *q,
                                                             enum gpushmem_amo amo,
                                                             const void *target, uint32_t width,
                                                             uint64_t operand, uint64_t compare)
{
    return gpsh_dev_nic_fetch(dev, q, gpsh_dev_nic_amo_wqe(q, amo, target, operand, compare),
                              amo == GPUSHMEM_AMO_FETCH ? 0 : 2, width);
}

GPSH_DEV uint64_t gpsh_dev_nic_changed(enum gpushmem_amo amo, uint64_t word, uint64_t operand)
{
    switch (amo) {
    case GPUSHMEM_AMO_AND: return word & operand;
    case GPUSHMEM_AMO_OR: return word | operand;
    case GPUSHMEM_AMO_XOR: return word ^ operand;
    default: return operand; // swap
    }
}

// Those of 8 bytes that the NIC has no request for: a loop of compare-and-swaps, as the host's are.
// The word before it, or 0 if it failed.
GPSH_DEV uint64_t gpsh_dev_nic_change(const struct gpushmem_dev &dev, struct gpushmem_nic_queue *q,
                                      enum gpushmem_amo amo, const void *target, uint64_t operand)
{
    struct gpsh_dev_answer found =
        gpsh_dev_nic_fetch_word(dev, q, GPUSHMEM_AMO_FETCH, target, 8, 0, 0);
    while (!found.status) {
        const uint64_t before = found.value;
        found = gpsh_dev_nic_fetch_word(dev, q, GPUSHMEM_AMO_CSWAP, target, 8,
                                        gpsh_dev_nic_changed(amo, before, operand), before);
        if (!found.status && found.value == before)
            return before;
    }
    return 0;
}

GPSH_DEV bool gpsh_dev_nic_has_request(enum gpushmem_amo amo, size_t width)
{
    return amo == GPUSHMEM_AMO_FETCH ||
           (width == 8 && (amo == GPUSHMEM_AMO_ADD || amo == GPUSHMEM_AMO_CSWAP));
}

GPSH_DEV_CALL struct gpsh_dev_taken gpsh_dev_nic_amo(const struct gpushmem_dev &dev,
                                                     enum gpushmem_amo amo, void *target,
                                                     size_t width, uint64_t operand,
                                                     uint64_t compare, int pe, bool fetch)
{
    struct gpushmem_nic_queue *q = gpsh_dev_nic_to(dev, pe);
    if (!q)
        return {0, false};
    const bool known = gpsh_dev_nic_has_request(amo, width);
    if (!gpsh_dev_nic_has_word(dev, q, target, width) || (!known && (width != 8 || !fetch)))
        return {0, gpsh_dev_nic_before_ring(dev, q)};
    if (!known)
        return {gpsh_dev_nic_change(dev, q, amo, target, operand), true};
    if (!fetch) {
        gpsh_dev_nic_post_one(dev, q, gpsh_dev_nic_amo_wqe(q, amo, target, operand, compare), true);
        return {0, true};
    }
    const struct gpsh_dev_answer answer =
        gpsh_dev_nic_fetch_word(dev, q, amo, target, (uint32_t)width, operand, compare);
    const uint64_t mask = width < 8 ? ((uint64_t)1 << 8 * width) - 1 : ~(uint64_t)0;
    return {answer.status ? 0 : answer.value & mask, true};
}

GPSH_DEV struct gpsh_dev_wqe gpsh_dev_nic_signal_wqe(const struct gpushmem_nic_queue *q,
                                                     uint64_t *signal, uint64_t value, int op)
{
    const uint64_t payload[4] = {value, 0, 0, 0}, there = gpsh_dev_nic_there(q, signal);
    return op == GPUSHMEM_SIGNAL_ADD
               ? gpsh_dev_wqe_atomic(GPSH_NIC_ADD, there, value, 0, q->scrap, q->answers_lkey)
               : gpsh_dev_wqe_inline(there, payload, sizeof value);
}

// Data, if there is any, and its signal behind it in one doorbell: the queue keeps their order.
GPSH_DEV_CALL bool gpsh_dev_nic_put_signal(const struct gpushmem_dev &dev, void *to,
                                           const void *from, size_t bytes, uint64_t *signal,
                                           uint64_t value, int op, int pe, bool blocking)
{
    struct gpushmem_nic_queue *q = gpsh_dev_nic_to(dev, pe);
    if (!q)
        return false;
    const bool carried = bytes <= GPUSHMEM_NIC_INLINE_BYTES;
    if (!gpsh_dev_nic_has_word(dev, q, signal, 8) ||
        (bytes && !gpsh_dev_nic_has_key(dev, q, to, bytes)) ||
        (!carried && !gpsh_dev_nic_has_key(dev, q, from, bytes)))
        return gpsh_dev_nic_step_aside(dev, q);
    const struct gpsh_dev_wqe last = gpsh_dev_nic_signal_wqe(q, signal, value, op);
    const bool fetches = op == GPUSHMEM_SIGNAL_ADD;
    if (!bytes) {
        gpsh_dev_nic_post_one(dev, q, last, fetches);
        return true;
    }
    const uint64_t there = gpsh_dev_nic_there(q, to);
    uint64_t payload[4] = {};
    if (carried)
        gpsh_dev_load_carried(payload, from, bytes);
    const struct gpsh_dev_wqe data =
        carried ? gpsh_dev_wqe_inline(there, payload, (uint32_t)bytes)
                : gpsh_dev_wqe_data(GPSH_NIC_WRITE, there, from, q->lkey, (uint32_t)bytes);
    const struct gpsh_dev_wqe both[2] = {data, last};
    const uint64_t end = gpsh_dev_nic_post(dev, q, both, fetches);
    if (blocking && !carried && end)
        gpsh_dev_nic_await(dev, q, end);
    return true;
}

#endif
