// SPDX-License-Identifier: BSD-3-Clause
// The NIC path: operations that kernels post to queues of the NIC themselves (nic_queue.cuh). Each
// call says whether it did that: what no queue takes (memory that the NIC has no key for, atomics
// that it does not execute, a PE whose queue is not connected yet) goes through the command ring.
#ifndef GPUSHMEM_DEVICE_PATH_NIC_CUH
#define GPUSHMEM_DEVICE_PATH_NIC_CUH

#include "gpushmem/device/nic_queue.cuh"

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
