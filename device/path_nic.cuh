// SPDX-License-Identifier: BSD-3-Clause
// The NIC path: operations that kernels post to queues of the NIC themselves (nic_queue.cuh). Each
// call says whether it did that: what no queue takes (memory that the NIC has no key for, atomics
// that it does not execute, a PE whose queue is not connected yet) goes through the command ring.
#ifndef GPUSHMEM_DEVICE_PATH_NIC_CUH
#define GPUSHMEM_DEVICE_PATH_NIC_CUH

#include "gpushmem/device/nic_order.cuh"
#include "gpushmem/device/nic_queue.cuh"
#include "gpushmem/device/path_proxy.cuh"

// ---- Fetching ----

// A word that is on its way into a reply slot, which is the thread's meanwhile.
struct gpsh_dev_fetching {
    struct gpushmem_nic_queue *q;
    uint64_t end; // after its WQE; 0: it was not posted
    uint64_t *landing;
    uint32_t *owner;
    uint32_t nonce;
};

// Waits for it. In the thread's own memory, as what is written late.
GPSH_DEV_CALL struct gpsh_dev_answer gpsh_dev_nic_collect(const struct gpsh_dev_fetching &word)
{
    GPSH_DEV_BOUNDS();
    struct gpsh_dev_answer answer = {0, GPUSHMEM_ERR_TRANSPORT, true};
    if (word.end)
        answer.status = gpsh_dev_nic_await(word.q, word.end);
    if (!answer.status)
        answer.value = gpsh_dev_load64_value_sys(word.landing);
    // One that was given up may still be written: nobody gets it again. So may one behind a thread
    // that gave up while it waited for its turn: whoever has the turn goes over the marks of both.
    if (!answer.status || !word.end ||
        (answer.status != GPUSHMEM_ERR_TIMEOUT && gpsh_dev_nic_has_failed(word.q, word.end)))
        gpsh_dev_store32_relaxed_gpu(word.owner, word.nonce);
    return answer;
}

// `key_at`: which of the WQE's words takes the key; the address comes after it.
GPSH_DEV struct gpsh_dev_answer gpsh_dev_nic_fetch_into(const struct gpushmem_dev &dev,
                                                        struct gpushmem_nic_queue *q,
                                                        const struct gpsh_dev_wqe &what, int key_at,
                                                        uint32_t bytes, struct gpsh_dev_claim claim)
{
    uint64_t *landing = q->landing ? q->landing + claim.slot : &dev.replies[claim.slot].low;
    const uint64_t key = gpsh_dev_nic_pair(bytes, q->answers_lkey),
                   to = gpsh_dev_big64((uint64_t)(uintptr_t)landing);
    const struct gpsh_dev_wqe wqe = {
        what.opcode,
        what.size,
        what.to,
        {key_at ? what.words[0] : key, key_at ? what.words[1] : to, key, to}};
    struct gpsh_dev_fetching word = {q, 0, landing, &dev.reply_owners[claim.slot], claim.nonce};
    word.end = gpsh_dev_nic_post_one(q, gpsh_dev_nic_done_of(q), wqe, true);
    return gpsh_dev_nic_collect(word);
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

GPSH_DEV void gpsh_dev_nic_ask(const struct gpushmem_dev &dev, struct gpushmem_nic_queue *q, int pe)
{
    uint64_t index;
    if (!gpsh_dev_load32_relaxed_gpu(&q->asked) && !gpsh_dev_exchange32_relaxed_gpu(&q->asked, 1))
        gpsh_dev_push(dev, gpsh_dev_ring(dev),
                      gpsh_dev_command(GPUSHMEM_CMD_NIC_QUEUE, pe, nullptr, nullptr, 0), &index);
}

// A queue that takes an operation, and what is known of it. Loaded together, so that the loads are
// under way side by side.
struct gpsh_dev_nic_way {
    struct gpushmem_nic_queue *q; // nullptr: it has to be prepared
    struct gpsh_dev_nic_done found;
    const char *heap;
    uint64_t heap_bytes; // that its keys are for. An old value, 0, is on the safe side
    uint32_t most;
};

GPSH_DEV struct gpsh_dev_nic_way gpsh_dev_nic_way_of(const struct gpushmem_dev &dev,
                                                     struct gpushmem_nic_queue *q)
{
    // past the first-level cache: the queue may have come up meanwhile
    return {q, gpsh_dev_nic_done_of(q), dev.heap, gpsh_dev_load64_relaxed_gpu(&q->heap_bytes),
            gpsh_dev_load32_relaxed_gpu(&q->most)};
}

// The queue is not up, or has not met the last fence. Whether it is to be used then. The first who
// misses it asks for it.
GPSH_DEV_CALL bool gpsh_dev_nic_prepare(const struct gpushmem_dev &dev,
                                        const struct gpushmem_nic *nic, int pe)
{
    GPSH_DEV_BOUNDS();
    struct gpushmem_nic_queue *q = &gpushmem_nic_queues(nic)[pe];
    const uint32_t state = gpsh_dev_load32_relaxed_gpu(&q->state);
    if (state == GPUSHMEM_NIC_NONE)
        gpsh_dev_nic_ask(dev, q, pe);
    if (state == GPUSHMEM_NIC_UP)
        gpsh_dev_nic_meet_fence(dev, q);
    return state == GPUSHMEM_NIC_UP;
}

// The queue towards that PE. `prepared`: since the operation began, so it knows of all fences that
// come before that.
GPSH_DEV struct gpsh_dev_nic_way gpsh_dev_nic_to(const struct gpushmem_dev &dev,
                                                 const struct gpushmem_nic *nic, int pe,
                                                 bool prepared)
{
    struct gpushmem_nic_queue *q = &gpushmem_nic_queues(nic)[pe];
    const uint32_t state = gpsh_dev_load32_relaxed_gpu(&q->state);
    const uint64_t seen = gpsh_dev_load64_relaxed_gpu(&q->fence_seen),
                   fences = gpsh_dev_load64_relaxed_gpu(&nic->fences);
    struct gpsh_dev_nic_way way = gpsh_dev_nic_way_of(dev, q);
    if (!prepared && (state != GPUSHMEM_NIC_UP || seen != fences))
        way.q = nullptr;
    return way;
}

// A value that a call may have taken.
struct gpsh_dev_taken {
    uint64_t value;
    enum gpsh_dev_nic_how how;
};

GPSH_DEV enum gpsh_dev_nic_how gpsh_dev_nic_how_of(enum gpsh_dev_nic_how how)
{
    return how;
}

GPSH_DEV enum gpsh_dev_nic_how gpsh_dev_nic_how_of(const struct gpsh_dev_taken &taken)
{
    return taken.how;
}

// An operation by the queue towards a PE, if there may be one. The queue is prepared here, and not
// in the functions that post: these have all of the operation in registers, and what a function
// needs below them every kernel needs that may call it. operate(prepared) returns what became of
// it, and so does this: GPSH_NIC_TAKEN, or it goes through a ring.
template <class Operation>
GPSH_DEV auto gpsh_dev_nic_try(const struct gpushmem_dev &via, int pe, Operation operate)
    -> decltype(operate(false))
{
    if constexpr (GPUSHMEM_DEVICE_NIC) {
        GPSH_NO_UNROLL // one call: what is known of its arguments here is known inside
            for (bool prepared = false; gpsh_dev_posts_to(via, pe); prepared = true)
        {
            const auto became = operate(prepared);
            if (gpsh_dev_nic_how_of(became) != GPSH_NIC_UNREADY)
                return became;
            if (!gpsh_dev_nic_prepare(*via.self, via.nic, pe))
                break;
        }
    }
    return {};
}

// An operation that no queue takes goes through a ring.
GPSH_DEV_CALL enum gpsh_dev_nic_how gpsh_dev_nic_leave(const struct gpushmem_dev &dev,
                                                       const struct gpushmem_nic *nic, int pe,
                                                       bool prepared)
{
    GPSH_DEV_BOUNDS();
    struct gpushmem_nic_queue *q = gpsh_dev_nic_to(dev, nic, pe, prepared).q;
    return q ? gpsh_dev_nic_step_aside(q) : GPSH_NIC_UNREADY;
}

// Whether the queue's keys are for [address, +bytes).
GPSH_DEV bool gpsh_dev_nic_has_key(const struct gpsh_dev_nic_way &way, const void *address,
                                   uint64_t bytes)
{
    const uint64_t offset = (uint64_t)((const char *)address - way.heap);
    return offset < way.heap_bytes && bytes <= way.heap_bytes - offset && bytes <= way.most;
}

GPSH_DEV uint64_t gpsh_dev_nic_post_way(const struct gpsh_dev_nic_way &way,
                                        const struct gpsh_dev_wqe &what, bool fetches)
{
    return gpsh_dev_nic_post_one(way.q, way.found, what, fetches);
}

GPSH_DEV enum gpsh_dev_nic_how gpsh_dev_nic_put_carried(const struct gpsh_dev_nic_way &way,
                                                        void *to, const uint64_t (&payload)[4],
                                                        uint32_t bytes)
{
    if (!gpsh_dev_nic_has_key(way, to, bytes))
        return gpsh_dev_nic_step_aside(way.q);
    gpsh_dev_nic_post_way(way, gpsh_dev_wqe_inline(to, payload, bytes), false);
    return GPSH_NIC_TAKEN;
}

// The low `bytes` of value, up to 8.
GPSH_DEV_CALL enum gpsh_dev_nic_how gpsh_dev_nic_put_value(const struct gpushmem_dev &dev,
                                                           const struct gpushmem_nic *nic, void *to,
                                                           uint64_t value, size_t bytes, int pe,
                                                           bool prepared)
{
    GPSH_DEV_BOUNDS();
    const struct gpsh_dev_nic_way way = gpsh_dev_nic_to(dev, nic, pe, prepared);
    const uint64_t payload[4] = {value, 0, 0, 0};
    return way.q ? gpsh_dev_nic_put_carried(way, to, payload, (uint32_t)bytes) : GPSH_NIC_UNREADY;
}

GPSH_DEV_CALL enum gpsh_dev_nic_how gpsh_dev_nic_put(const struct gpushmem_dev &dev,
                                                     const struct gpushmem_nic *nic, void *to,
                                                     const void *from, size_t bytes, int pe,
                                                     bool blocking, bool prepared)
{
    GPSH_DEV_BOUNDS();
    const struct gpsh_dev_nic_way way = gpsh_dev_nic_to(dev, nic, pe, prepared);
    if (!way.q)
        return GPSH_NIC_UNREADY;
    if (bytes <= GPUSHMEM_NIC_INLINE_BYTES) {
        uint64_t payload[4];
        gpsh_dev_load_carried(payload, from, bytes);
        return gpsh_dev_nic_put_carried(way, to, payload, (uint32_t)bytes);
    }
    if (!gpsh_dev_nic_has_key(way, from, bytes) || !gpsh_dev_nic_has_key(way, to, bytes))
        return gpsh_dev_nic_step_aside(way.q);
    const uint64_t end = gpsh_dev_nic_post_way(
        way, gpsh_dev_wqe_data(GPSH_NIC_WRITE, to, from, way.q->lkey, (uint32_t)bytes), false);
    if (blocking && end)
        gpsh_dev_nic_await(way.q, end);
    return GPSH_NIC_TAKEN;
}

GPSH_DEV_CALL enum gpsh_dev_nic_how gpsh_dev_nic_get(const struct gpushmem_dev &dev,
                                                     const struct gpushmem_nic *nic, void *to,
                                                     const void *from, size_t bytes, int pe,
                                                     bool blocking, bool prepared)
{
    GPSH_DEV_BOUNDS();
    const struct gpsh_dev_nic_way way = gpsh_dev_nic_to(dev, nic, pe, prepared);
    if (!way.q)
        return GPSH_NIC_UNREADY;
    if (!gpsh_dev_nic_has_key(way, from, bytes) || !gpsh_dev_nic_has_key(way, to, bytes))
        return gpsh_dev_nic_step_aside(way.q);
    const uint64_t end = gpsh_dev_nic_post_way(
        way, gpsh_dev_wqe_data(GPSH_NIC_READ, from, to, way.q->lkey, (uint32_t)bytes), true);
    if (blocking && end)
        gpsh_dev_nic_await(way.q, end);
    return GPSH_NIC_TAKEN;
}

// Up to 8 bytes, as the low bytes of the value; 0 if it failed.
GPSH_DEV_CALL struct gpsh_dev_taken gpsh_dev_nic_get_value(const struct gpushmem_dev &dev,
                                                           const struct gpushmem_nic *nic,
                                                           const void *from, size_t bytes, int pe,
                                                           bool prepared)
{
    GPSH_DEV_BOUNDS();
    const struct gpsh_dev_nic_way way = gpsh_dev_nic_to(dev, nic, pe, prepared);
    struct gpushmem_nic_queue *q = way.q;
    if (!q)
        return {0, GPSH_NIC_UNREADY};
    if (!gpsh_dev_nic_has_key(way, from, bytes))
        return {0, gpsh_dev_nic_step_aside(q)};
    const struct gpsh_dev_answer answer = gpsh_dev_nic_fetch(
        dev, q, gpsh_dev_wqe_data(GPSH_NIC_READ, from, nullptr, 0, 0), 0, (uint32_t)bytes);
    const uint64_t mask = bytes < 8 ? ((uint64_t)1 << 8 * bytes) - 1 : ~(uint64_t)0;
    return {answer.status ? 0 : answer.value & mask, GPSH_NIC_TAKEN};
}

// Whether an atomic or a signal on the word may be posted: the NIC there executes those of all PEs,
// and none of its PE's threads stores there by itself.
GPSH_DEV bool gpsh_dev_nic_has_word(const struct gpushmem_dev &dev,
                                    const struct gpsh_dev_nic_way &way, const void *word,
                                    size_t width)
{
    return way.q->flags & GPUSHMEM_NIC_ATOMICS && gpsh_dev_nic_has_key(way, word, width) &&
           !gpsh_dev_away(dev, way.q->pe);
}

// Of what the NIC has a request for; a fetch is a read.
GPSH_DEV struct gpsh_dev_wqe gpsh_dev_nic_amo_wqe(const struct gpushmem_nic_queue *q,
                                                  enum gpushmem_amo amo, const void *target,
                                                  uint64_t operand, uint64_t compare)
{
    return amo == GPUSHMEM_AMO_FETCH
               ? gpsh_dev_wqe_data(GPSH_NIC_READ, target, nullptr, 0, 0)
               : gpsh_dev_wqe_atomic(amo == GPUSHMEM_AMO_ADD ? GPSH_NIC_ADD : GPSH_NIC_CSWAP,
                                     target, operand, compare, q->scrap, q->answers_lkey);
}

GPSH_DEV_CALL struct gpsh_dev_answer gpsh_dev_nic_fetch_word(const struct gpushmem_dev &dev,
                                                             struct gpushmem_nic_queue *q,
                                                             enum gpushmem_amo amo,
                                                             const void *target, uint32_t width,
                                                             uint64_t operand, uint64_t compare)
{
    GPSH_DEV_BOUNDS();
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

GPSH_DEV_CALL struct gpsh_dev_taken
gpsh_dev_nic_amo(const struct gpushmem_dev &dev, const struct gpushmem_nic *nic,
                 enum gpushmem_amo amo, void *target, size_t width, uint64_t operand,
                 uint64_t compare, int pe, bool fetch, bool prepared)
{
    GPSH_DEV_BOUNDS();
    const struct gpsh_dev_nic_way way = gpsh_dev_nic_to(dev, nic, pe, prepared);
    struct gpushmem_nic_queue *q = way.q;
    if (!q)
        return {0, GPSH_NIC_UNREADY};
    const bool known = gpsh_dev_nic_has_request(amo, width);
    if (!gpsh_dev_nic_has_word(dev, way, target, width) || (!known && (width != 8 || !fetch)))
        return {0, gpsh_dev_nic_before_ring(q)};
    if (!known)
        return {gpsh_dev_nic_change(dev, q, amo, target, operand), GPSH_NIC_TAKEN};
    if (!fetch) {
        gpsh_dev_nic_post_way(way, gpsh_dev_nic_amo_wqe(q, amo, target, operand, compare), true);
        return {0, GPSH_NIC_TAKEN};
    }
    const struct gpsh_dev_answer answer =
        gpsh_dev_nic_fetch_word(dev, q, amo, target, (uint32_t)width, operand, compare);
    const uint64_t mask = width < 8 ? ((uint64_t)1 << 8 * width) - 1 : ~(uint64_t)0;
    return {answer.status ? 0 : answer.value & mask, GPSH_NIC_TAKEN};
}

GPSH_DEV struct gpsh_dev_wqe gpsh_dev_nic_signal_wqe(const struct gpushmem_nic_queue *q,
                                                     uint64_t *signal, uint64_t value, int op)
{
    const uint64_t payload[4] = {value, 0, 0, 0};
    return op == GPUSHMEM_SIGNAL_ADD
               ? gpsh_dev_wqe_atomic(GPSH_NIC_ADD, signal, value, 0, q->scrap, q->answers_lkey)
               : gpsh_dev_wqe_inline(signal, payload, sizeof value);
}

// Data, if there is any, and its signal behind it in one doorbell: the queue keeps their order.
GPSH_DEV_CALL enum gpsh_dev_nic_how
gpsh_dev_nic_put_signal(const struct gpushmem_dev &dev, const struct gpushmem_nic *nic, void *to,
                        const void *from, size_t bytes, uint64_t *signal, uint64_t value, int op,
                        int pe, bool blocking, bool prepared)
{
    GPSH_DEV_BOUNDS();
    const struct gpsh_dev_nic_way way = gpsh_dev_nic_to(dev, nic, pe, prepared);
    struct gpushmem_nic_queue *q = way.q;
    if (!q)
        return GPSH_NIC_UNREADY;
    const bool carried = bytes <= GPUSHMEM_NIC_INLINE_BYTES;
    if (!gpsh_dev_nic_has_word(dev, way, signal, 8) ||
        (bytes && !gpsh_dev_nic_has_key(way, to, bytes)) ||
        (!carried && !gpsh_dev_nic_has_key(way, from, bytes)))
        return gpsh_dev_nic_step_aside(q);
    const struct gpsh_dev_wqe last = gpsh_dev_nic_signal_wqe(q, signal, value, op);
    const bool fetches = op == GPUSHMEM_SIGNAL_ADD;
    if (!bytes) {
        gpsh_dev_nic_post_way(way, last, fetches);
        return GPSH_NIC_TAKEN;
    }
    uint64_t payload[4] = {};
    if (carried)
        gpsh_dev_load_carried(payload, from, bytes);
    const struct gpsh_dev_wqe data =
        carried ? gpsh_dev_wqe_inline(to, payload, (uint32_t)bytes)
                : gpsh_dev_wqe_data(GPSH_NIC_WRITE, to, from, q->lkey, (uint32_t)bytes);
    const struct gpsh_dev_wqe both[2] = {data, last};
    const uint64_t end = gpsh_dev_nic_post(q, way.found, both, fetches);
    if (blocking && !carried && end)
        gpsh_dev_nic_await(q, end);
    return GPSH_NIC_TAKEN;
}

#endif
