// SPDX-License-Identifier: BSD-3-Clause
// A queue of a NIC that kernels post to (gpushmem/impl/nic_queue.h): its work requests (WQEs), how
// they get into it and are rung for, their completions, and fences. docs/design/nic_posts.md says
// how threads share a queue, and why each fence is where it is.
#ifndef GPUSHMEM_DEVICE_NIC_QUEUE_CUH
#define GPUSHMEM_DEVICE_NIC_QUEUE_CUH

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
    GPSH_NIC_LOOKS_NS = 10000,
    GPSH_NIC_RETRIES_OVER = 0x15, // syndromes: the peer does not answer, or is never ready
    GPSH_NIC_NOT_READY = 0x16,
};
enum { GPSH_NIC_LOOKS = 4 }; // marks that are looked at side by side
#define GPSH_NIC_INLINE 0x80000000u
#define GPSH_NIC_NO_CQE ((uint64_t)GPSH_NIC_CQE_INVALID << 60)

// A WQE without what depends on its position and its queue pair. Words as the NIC reads them.
struct gpsh_dev_wqe {
    uint32_t opcode;
    uint32_t size;     // in 16 bytes
    uint64_t to;       // address of the object here: the queue knows where it is there
    uint64_t words[4]; // the upper half of the block
};

GPSH_DEV uint64_t gpsh_dev_nic_pair(uint32_t low, uint32_t high)
{
    return gpsh_dev_big32(low) | (uint64_t)gpsh_dev_big32(high) << 32;
}

// Of `bytes` from or to registered memory.
GPSH_DEV struct gpsh_dev_wqe gpsh_dev_wqe_data(uint32_t opcode, const void *target,
                                               const void *local, uint32_t key, uint32_t bytes)
{
    return {opcode,
            3,
            (uint64_t)(uintptr_t)target,
            {gpsh_dev_nic_pair(bytes, key), gpsh_dev_big64((uint64_t)(uintptr_t)local), 0, 0}};
}

// A write that carries its payload: the length comes first, so words are split across halves.
GPSH_DEV struct gpsh_dev_wqe gpsh_dev_wqe_inline(const void *target, const uint64_t (&payload)[4],
                                                 uint32_t bytes)
{
    return {GPSH_NIC_WRITE,
            (36 + bytes + 15) / 16,
            (uint64_t)(uintptr_t)target,
            {gpsh_dev_big32(GPSH_NIC_INLINE | bytes) | payload[0] << 32,
             payload[0] >> 32 | payload[1] << 32, payload[1] >> 32 | payload[2] << 32,
             payload[2] >> 32 | payload[3] << 32}};
}

GPSH_DEV struct gpsh_dev_wqe gpsh_dev_wqe_atomic(uint32_t opcode, const void *target,
                                                 uint64_t operand, uint64_t compare,
                                                 uint64_t *landing, uint32_t key)
{
    return {opcode,
            4,
            (uint64_t)(uintptr_t)target,
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
    bool dead = (syndrome == GPSH_NIC_RETRIES_OVER || syndrome == GPSH_NIC_NOT_READY) &&
                !(q->flags & GPUSHMEM_NIC_RAILS);
    if (gpsh_dev_nic_has_failed(q, position + 1)) // the host has found it
        return;
    gpsh_dev_nic_give_up(q, position, dead ? GPUSHMEM_ERR_PE_FAILED : GPUSHMEM_ERR_TRANSPORT);
    gpsh_dev_store64_release_sys(q->failure,
                                 gpushmem_nic_failure(q->pe, opcode, syndrome, syndromes & 0xff));
}

GPSH_DEV const char *gpsh_dev_nic_cqe(const struct gpushmem_nic_queue *q, uint32_t number)
{
    return q->cq + (uint64_t)(number & ((1u << q->cqes_log2) - 1)) * q->cqe_bytes;
}

// The last word of the completion with that number, or of an invalid one: it is not there. One load
// with the byte that says whose it is: that is written last, and only by the NIC.
GPSH_DEV uint64_t gpsh_dev_nic_completion(const struct gpushmem_nic_queue *q, uint32_t number)
{
    const uint64_t last = gpsh_dev_load64_value_sys(gpsh_dev_nic_cqe(q, number) + 56);
    return (last >> 56 & 1) == (number >> q->cqes_log2 & 1) ? last : GPSH_NIC_NO_CQE;
}

GPSH_DEV bool gpsh_dev_nic_is_there(uint64_t last)
{
    return last >> 60 != GPSH_NIC_CQE_INVALID;
}

// The position of the WQE that it is of: the lower 16 bits are there, no queue is longer.
GPSH_DEV uint64_t gpsh_dev_nic_position_of(uint64_t last, uint64_t done)
{
    const uint16_t counter = (uint16_t)(gpsh_dev_big32((uint32_t)(last >> 32)) >> 16);
    return done + (uint16_t)(counter - (uint16_t)done);
}

// How far a queue's completions go: all before number `next` are of WQEs below `done`.
struct gpsh_dev_nic_reach {
    uint64_t done;
    uint32_t next;
    uint64_t last; // of the completion at which it ended: it is of a failure, or not there, or good
};

// From there on, until those below `end` are complete. The NIC writes completions in order, and
// those of failures come last: so a good one stands for all before it, and steps double.
GPSH_DEV struct gpsh_dev_nic_reach gpsh_dev_nic_look(const struct gpushmem_nic_queue *q,
                                                     uint64_t done, uint32_t first, uint64_t end)
{
    struct gpsh_dev_nic_reach at = {done, first, GPSH_NIC_NO_CQE};
    for (uint32_t step = 1; step && at.done < end;) {
        at.last = gpsh_dev_nic_completion(q, at.next + step - 1);
        if (at.last >> 60 >= GPSH_NIC_CQE_ERROR) {
            step /= 2;
        } else {
            const uint32_t left = first + (1u << q->cqes_log2) - (at.next += step);
            at.done = gpsh_dev_nic_position_of(at.last, at.done) + 1;
            step = 2 * step < left ? 2 * step : left;
        }
    }
    return at;
}

// Completion number at.next is of a failure: those before its WQE are complete, whether they asked
// for it or not. Nobody consumes completions any more.
GPSH_DEV_CALL void gpsh_dev_nic_fail_at(struct gpushmem_nic_queue *q,
                                        const struct gpsh_dev_nic_reach at)
{
    const uint64_t position = gpsh_dev_nic_position_of(at.last, at.done),
                   why = gpsh_dev_load64_value_sys(gpsh_dev_nic_cqe(q, at.next) + 48);
    gpsh_dev_max64_relaxed_gpu(&q->done, position);
    gpsh_dev_nic_take_error(q, position, (uint32_t)(why >> 48), (uint32_t)at.last & 0xff);
}

// Consumes the completions that are there. Several threads may be at it: what they have found
// counts if nobody has consumed anything since they read `polled`. The record must not go back, so
// while one thread writes it, the others consume nothing.
GPSH_DEV void gpsh_dev_nic_consume(struct gpushmem_nic_queue *q, uint64_t polled, uint64_t done,
                                   uint64_t end)
{
    if (polled & GPUSHMEM_NIC_POLLING)
        return;
    const struct gpsh_dev_nic_reach at =
        gpsh_dev_nic_look(q, gpushmem_nic_polled_done(polled, done), (uint32_t)polled, end);
    const bool fails = at.last >> 60 == GPSH_NIC_CQE_ERROR,
               records = (at.next ^ (uint32_t)polled) >> q->record_log2;
    if (at.next == (uint32_t)polled && !fails)
        return;
    gpsh_dev_fence_acquire_sys(); // the completions, before who hears of them
    const uint64_t now = gpushmem_nic_polled(at.done, at.next);
    if (gpsh_dev_cas64_relaxed_gpu(&q->polled, polled,
                                   fails || records ? now | GPUSHMEM_NIC_POLLING : now) != polled)
        return;
    if (records) {
        gpsh_dev_store32_sys(q->cq_record, gpsh_dev_big32(at.next & 0xffffff));
        // before who finds room by `done`, and that of the next thread that writes it
        gpsh_dev_fence_gpu();
    }
    gpsh_dev_max64_relaxed_gpu(&q->done, at.done);
    if (fails)
        return gpsh_dev_nic_fail_at(q, at);
    if (records)
        gpsh_dev_store64_relaxed_gpu(&q->polled, now);
}

// Whether this thread is the one that looks for completions: of all that wait, one at a time does,
// for they may be across PCIe. Nobody depends on it: another one takes over when its time is over,
// whatever it does. *mine: until when it is this thread, if it ever was. `looked`: the queue's.
GPSH_DEV bool gpsh_dev_nic_looks(struct gpushmem_nic_queue *q, uint64_t looked, uint64_t *mine)
{
    if (*mine && looked == *mine)
        return true;
    const uint64_t now = gpsh_dev_now_ns();
    if ((int64_t)(looked - now) > 0 ||
        gpsh_dev_cas64_relaxed_gpu(&q->looked, looked, now + GPSH_NIC_LOOKS_NS) != looked)
        return false;
    *mine = now + GPSH_NIC_LOOKS_NS;
    return true;
}

// A wait for the WQEs below `least`, of which those below least + behind come next. It is in the
// thread's own memory, and its steps are a function: each register that a wait keeps would be one
// more of every kernel that posts.
struct gpsh_dev_nic_wait {
    uint64_t least;
    uint64_t mine; // of gpsh_dev_nic_looks
    struct gpsh_dev_lean_wait lean;
    uint32_t behind;
};

enum { GPSH_NIC_WAITS_ON = 1 };

// GPSH_NIC_WAITS_ON, or why the wait is over: 0, or a status.
GPSH_DEV_CALL int gpsh_dev_nic_wait_step(struct gpushmem_nic_queue *q,
                                         struct gpsh_dev_nic_wait *wait)
{
    // side by side
    const uint64_t polled = gpsh_dev_load64_relaxed_gpu(&q->polled),
                   looked = gpsh_dev_load64_relaxed_gpu(&q->looked),
                   failed = gpsh_dev_load64_relaxed_gpu(&q->failed),
                   done = gpsh_dev_load64_relaxed_gpu(&q->done);
    if (done >= wait->least)
        return 0;
    if (~failed < wait->least + wait->behind)
        return (int)gpsh_dev_load32_relaxed_gpu((const uint32_t *)&q->error);
    if (q->flags & GPUSHMEM_NIC_NEAR || gpsh_dev_nic_looks(q, looked, &wait->mine))
        gpsh_dev_nic_consume(q, polled, done, wait->least + wait->behind);
    const int status = gpsh_dev_lean_spin(*gpushmem_nic_dev(q), &wait->lean);
    return status ? status : GPSH_NIC_WAITS_ON;
}

// Waits until the WQEs below `least` are complete. Not 0: one below least + behind will never be,
// or the wait is over, and why.
GPSH_DEV_CALL int gpsh_dev_nic_await_done(struct gpushmem_nic_queue *q, uint64_t least,
                                          uint32_t behind)
{
    struct gpsh_dev_nic_wait wait = {least, 0, {}, behind};
    int status = GPSH_NIC_WAITS_ON;
    while (status == GPSH_NIC_WAITS_ON)
        status = gpsh_dev_nic_wait_step(q, &wait);
    if (wait.mine)
        gpsh_dev_store64_relaxed_gpu(&q->looked, 0); // the next one need not wait
    return status;
}

// Until the WQEs below `end` are complete. What they fetched is visible then. 0, or why not: that
// was recorded.
GPSH_DEV_CALL int gpsh_dev_nic_await(struct gpushmem_nic_queue *q, uint64_t end)
{
    const int status = gpsh_dev_nic_await_done(q, end, 0);
    if (status && !gpsh_dev_nic_has_failed(q, end))
        gpsh_dev_fail(*gpushmem_nic_dev(q), status, q->pe, nullptr, 0);
    if (!status)
        gpsh_dev_fence_acquire_sys();
    return status;
}

// Everything that kernels posted to any queue before is complete.
GPSH_DEV_CALL int gpsh_dev_nic_quiet(const struct gpushmem_dev &dev)
{
    const uint32_t *used = gpushmem_nic_used(dev.nic, dev.n_pes),
                   n = gpsh_dev_load32_relaxed_gpu(&dev.nic->n_used);
    uint32_t pe = gpsh_dev_load32_relaxed_gpu(used); // beside the number, as there is mostly one
    int first = 0;
    for (uint32_t i = 0; i < n;) {
        struct gpushmem_nic_queue *q = &gpushmem_nic_queues(dev.nic)[pe];
        int status = gpsh_dev_nic_await(q, gpsh_dev_load64_relaxed_gpu(&q->head));
        first = first ? first : status;
        if (++i < n)
            pe = gpsh_dev_load32_relaxed_gpu(&used[i]);
    }
    return first;
}

GPSH_DEV_CALL void gpsh_dev_nic_quiet_pe(const struct gpushmem_dev &dev, int pe)
{
    struct gpushmem_nic_queue *q = &gpushmem_nic_queues(dev.nic)[pe];
    gpsh_dev_nic_await(q, gpsh_dev_load64_relaxed_gpu(&q->head));
}

// ---- Fences ----

// A fence only counts. Each queue finds out at its next post, or when an operation goes through a
// ring beside it: what went through rings before the fence is complete then, and what was posted to
// this queue is known by its position.
GPSH_DEV_CALL void gpsh_dev_nic_meet_fence(const struct gpushmem_dev &dev,
                                           struct gpushmem_nic_queue *q)
{
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
    gpsh_dev_nic_await(q, gpsh_dev_load64_relaxed_gpu(&q->head));
    return GPSH_NIC_LEFT;
}

GPSH_DEV_CALL void gpsh_dev_nic_after_ring(const struct gpushmem_dev &dev)
{
    gpsh_dev_fence_gpu(); // who sees the count finds the ring under way
    gpsh_dev_add64_relaxed_gpu(&dev.nic->fences, 1);
}

// ---- Posting ----

// How far a queue is, which may be old: that is on the safe side. And which of its reads and
// atomics a fence is behind, which may not: it is looked at after fence_seen, and lies in the same
// line.
struct gpsh_dev_nic_done {
    uint64_t done, fenced;
    uint32_t flags;
};

GPSH_DEV struct gpsh_dev_nic_done gpsh_dev_nic_done_of(const struct gpushmem_nic_queue *q)
{
    return {gpsh_dev_load64_relaxed_gpu(&q->done), gpsh_dev_load64_relaxed_gpu(&q->fenced),
            gpsh_dev_load32_relaxed_gpu(&q->flags)};
}

// A wait of a thread that posts is over since it took too long, or the host has ended it: what was
// reserved from `first` on is never written.
GPSH_DEV_CALL void gpsh_dev_nic_leave_unwritten(struct gpushmem_nic_queue *q, uint64_t first,
                                                int status)
{
    gpsh_dev_nic_give_up(q, first, status);
    if (status == GPUSHMEM_ERR_TIMEOUT)
        gpsh_dev_fail(*gpushmem_nic_dev(q), status, q->pe, nullptr, 0);
}

// What a WQE takes from its queue. It never changes while the queue is up.
struct gpsh_dev_nic_facts {
    uint64_t *sq;
    uint64_t remote;
    uint32_t qpn, rkey, depth, entries_log2;
};

GPSH_DEV struct gpsh_dev_nic_facts gpsh_dev_nic_facts_of(const struct gpushmem_nic_queue *q)
{
    return {q->sq, q->remote, q->qpn, q->rkey, q->depth, q->entries_log2};
}

GPSH_DEV uint64_t gpsh_dev_nic_head_word(uint32_t qpn, uint64_t position,
                                         const struct gpsh_dev_wqe &wqe)
{
    return gpsh_dev_nic_pair((uint32_t)(position & 0xffff) << 8 | wqe.opcode, qpn << 8 | wqe.size);
}

GPSH_DEV uint64_t *gpsh_dev_nic_block(const struct gpsh_dev_nic_facts &facts, uint64_t position)
{
    return facts.sq + (uint64_t)((uint32_t)position & ((1u << facts.entries_log2) - 1)) *
                          GPUSHMEM_COMMAND_WORDS;
}

GPSH_DEV void gpsh_dev_nic_write(const struct gpsh_dev_nic_facts &facts, uint64_t position,
                                 const struct gpsh_dev_wqe &wqe, uint32_t flags)
{
    const uint64_t words[8] = {gpsh_dev_nic_head_word(facts.qpn, position, wqe),
                               (uint64_t)flags << 24,
                               gpsh_dev_big64(wqe.to + facts.remote),
                               gpsh_dev_big32(facts.rkey),
                               wqe.words[0],
                               wqe.words[1],
                               wqe.words[2],
                               wqe.words[3]};
    gpsh_dev_store_command(gpsh_dev_nic_block(facts, position), words);
}

// How a queue's NIC is told, and who has the turn for it. In registers before the fences, which
// drop what is cached of the queue.
struct gpsh_dev_bell {
    uint32_t *record;
    uint64_t *doorbell, *marks;
    uint32_t mask, qpn; // of marks
    bool near_gpu;
};

GPSH_DEV struct gpsh_dev_bell gpsh_dev_nic_bell(const struct gpushmem_nic_queue *q)
{
    return {q->sq_record, q->doorbell,
            q->marks,     (1u << q->marks_log2) - 1,
            q->qpn,       (q->flags & GPUSHMEM_NIC_NEAR) != 0};
}

GPSH_DEV uint64_t *gpsh_dev_nic_mark(const struct gpsh_dev_bell &bell, uint64_t position)
{
    return bell.marks + ((uint32_t)position & bell.mask);
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

// Whose turn it is. Loaded together, so that the loads are under way side by side: what is seen may
// be old, which is on the safe side.
struct gpsh_dev_nic_seen {
    uint64_t ready, head;
};

GPSH_DEV struct gpsh_dev_nic_seen gpsh_dev_nic_see(const struct gpushmem_nic_queue *q)
{
    return {gpsh_dev_load64_relaxed_gpu(&q->ready), gpsh_dev_load64_relaxed_gpu(&q->head)};
}

// WQEs of threads that follow each other: those from `from` to the end of `written` are the last
// ones.
struct gpsh_dev_nic_row {
    uint64_t from, written;
};

// Goes over what others have written behind it, while that lies in one quarter of the marks with
// `first`. All of them look alike mostly, so four marks are looked at side by side.
GPSH_DEV struct gpsh_dev_nic_row gpsh_dev_nic_walk(const struct gpsh_dev_bell &bell, uint64_t first,
                                                   struct gpsh_dev_nic_row row)
{
    bool goes = true;
    GPSH_NO_UNROLL
    while (goes) {
        uint64_t marks[GPSH_NIC_LOOKS], end = gpushmem_nic_end(row.written);
        const uint64_t length = end - row.from;
        GPSH_UNROLL
        for (unsigned i = 0; i < GPSH_NIC_LOOKS; i++)
            marks[i] = gpsh_dev_load64_relaxed_gpu(gpsh_dev_nic_mark(bell, end + i * length));
        GPSH_UNROLL
        for (unsigned i = 0; i < GPSH_NIC_LOOKS; i++) {
            end = gpushmem_nic_end(row.written);
            goes = goes && end - row.from == length && gpushmem_nic_end(marks[i]) > end &&
                   (first ^ end) <= bell.mask / 4;
            if (goes)
                row = {end, marks[i]};
        }
    }
    return row;
}

// The thread has its turn: rings the doorbell for all WQEs to the end of its own, and of those that
// others have written behind them, who do not wait for that. Or it leaves that to whoever has
// reserved what follows: if that has room, it waits for nobody but this thread. Not when a quarter
// of the queue is full: the NIC is to be at work meanwhile.
GPSH_DEV_CALL void gpsh_dev_nic_take_turn(struct gpushmem_nic_queue *q,
                                          const struct gpsh_dev_bell bell, uint64_t first,
                                          uint64_t written, uint64_t head)
{
    const uint64_t own = written;
    uint64_t room = 0;
    if (head > gpushmem_nic_end(own)) { // else it is alone, and looks at nothing more
        room = gpsh_dev_load64_relaxed_gpu(&q->done) + q->depth;
        written = gpsh_dev_nic_walk(bell, first, {first, own}).written;
    }
    if (written != own) {
        gpsh_dev_max64_relaxed_gpu(&q->taken, gpushmem_nic_end(written)); // they go on at once
        head = gpsh_dev_load64_relaxed_gpu(&q->head);
        gpsh_dev_nic_fence(bell); // their WQEs, before the record, or before who has the turn next
    }
    const uint64_t end = gpushmem_nic_end(written);
    if (head <= end || end + GPUSHMEM_NIC_AT_ONCE > room || (first ^ end) > bell.mask / 4) {
        gpsh_dev_store32_sys(bell.record, gpsh_dev_big32((uint32_t)end & 0xffff));
        gpsh_dev_nic_fence(bell); // the record before the doorbell
        gpsh_dev_store64_sys(bell.doorbell,
                             gpsh_dev_nic_pair((uint32_t)((end - 1) & 0xffff) << 8 | (written & 31),
                                               bell.qpn << 8 | (written >> 5 & 7)));
    }
    gpsh_dev_max64_relaxed_gpu(&q->ready, end);
}

// Waits until the WQEs before `first` are written, and takes the turn then, or until one that had
// it has gone over these. The turn is passed on within the loop: threads of a warp may be held up
// behind it until all of them are there.
GPSH_DEV_CALL void gpsh_dev_nic_await_turn(struct gpushmem_nic_queue *q, uint64_t first,
                                           uint64_t written)
{
    struct gpsh_dev_lean_wait wait = {};
    for (;;) {
        const struct gpsh_dev_nic_seen seen = gpsh_dev_nic_see(q); // all of these side by side
        const uint64_t taken = gpsh_dev_load64_relaxed_gpu(&q->taken),
                       failed = gpsh_dev_load64_relaxed_gpu(&q->failed);
        if (seen.ready == first) {
            const struct gpsh_dev_bell bell = gpsh_dev_nic_bell(q);
            gpsh_dev_nic_fence(bell); // the WQEs of those before the record
            gpsh_dev_nic_take_turn(q, bell, first, written, seen.head);
            return;
        }
        // whoever has the turn has taken them; or nobody writes what is before
        if (taken > first || ~failed < first)
            return;
        if (int status = gpsh_dev_lean_spin(*gpushmem_nic_dev(q), &wait)) {
            gpsh_dev_nic_leave_unwritten(q, first, status);
            return;
        }
    }
}

// The WQEs from `first` to the end of `written` are written, by threads that have met since.
GPSH_DEV void gpsh_dev_nic_publish(struct gpushmem_nic_queue *q, const struct gpsh_dev_bell bell,
                                   uint64_t first, uint64_t written)
{
    const struct gpsh_dev_nic_seen seen = gpsh_dev_nic_see(q);
    gpsh_dev_nic_fence(bell); // our WQEs and sources, before whoever rings
    if (seen.ready == first)
        return gpsh_dev_nic_take_turn(q, bell, first, written, seen.head);
    gpsh_dev_store64_sys(gpsh_dev_nic_mark(bell, first), written);
    gpsh_dev_nic_await_turn(q, first, written);
}

// Places that threads of a warp have reserved together, each as many of them, and what is written
// there.
struct gpsh_dev_places {
    uint64_t first; // of the first thread
    struct gpsh_dev_nic_facts facts;
    unsigned mask;  // the threads
    uint32_t flags; // of the first WQE of each thread
    bool wait;      // there may be no room yet
};

// Of what is reserved with the threads' places.
enum { GPSH_NIC_WITH_READ = 1 }; // one more, behind them

// One add for the threads of a warp that are here together and have the same queue, n places each.
// The functions that threads meet in are not inlined, so that each has one place for all. `done`:
// as seen lately; `flags`: of WQEs, and GPSH_NIC_WITH_READ.
GPSH_DEV_CALL struct gpsh_dev_places gpsh_dev_nic_reserve(struct gpushmem_nic_queue *q, unsigned n,
                                                          uint64_t done, uint32_t flags)
{
    const unsigned mask = gpsh_dev_lanes_with(q),
                   count = n * gpsh_dev_lanes_size(mask) + (flags & GPSH_NIC_WITH_READ);
    uint64_t first = 0;
    if (gpsh_dev_lanes_rank(mask) == 0)
        first = gpsh_dev_add64_relaxed_gpu(&q->head, count);
    const struct gpsh_dev_nic_facts facts = gpsh_dev_nic_facts_of(q); // while the add is under way
    // The first one decides for all whether they wait, as they meet in what comes next: each has
    // seen a `done` of its own.
    first = gpsh_dev_lanes_first(mask, first << 1 | (first + count > done + facts.depth));
    return {first >> 1, facts, mask, flags, (first & 1) != 0};
}

// Until there is room for `count` places from `first` on; false: there will be none.
GPSH_DEV_CALL bool gpsh_dev_nic_await_room(struct gpushmem_nic_queue *q, unsigned mask,
                                           uint64_t first, unsigned count)
{
    int status = 0;
    if (gpsh_dev_lanes_rank(mask) == 0) {
        status = gpsh_dev_nic_await_done(q, first + count - q->depth, q->depth);
        if (status)
            gpsh_dev_nic_leave_unwritten(q, first, status);
    }
    return !gpsh_dev_lanes_first(mask, (uint64_t)(int64_t)status);
}

// All threads of these `count` places have written theirs. `kind`: of the thread's last WQE.
GPSH_DEV_CALL void gpsh_dev_nic_commit(struct gpushmem_nic_queue *q, unsigned mask, uint64_t first,
                                       unsigned count, uint32_t kind)
{
    kind = (uint32_t)gpsh_dev_lanes_last(mask, kind);
    gpsh_dev_lanes_meet(mask); // their stores, before the first one's fence
    if (gpsh_dev_lanes_rank(mask) == 0)
        gpsh_dev_nic_publish(q, gpsh_dev_nic_bell(q), first,
                             gpushmem_nic_written(first + count, kind));
    // No lane goes ahead of the first one, to reserve what that one would have to wait for.
    gpsh_dev_lanes_meet(mask);
}

// Writes a read, behind what the warp's threads write: it is complete when that has reached the
// memory there. Returns its kind.
GPSH_DEV_CALL uint32_t gpsh_dev_nic_read_back(const struct gpushmem_nic_queue *q,
                                              const struct gpsh_dev_nic_facts facts,
                                              uint64_t position)
{
    const struct gpsh_dev_wqe read = gpsh_dev_wqe_data(GPSH_NIC_READ, gpushmem_nic_dev(q)->heap,
                                                       q->scrap, q->answers_lkey, sizeof(uint64_t));
    gpsh_dev_nic_write(facts, position, read, GPSH_NIC_SIGNALLED);
    return gpushmem_nic_kind(read.opcode, read.size);
}

// N WQEs that a thread posts, one after the other.
template <int N> struct gpsh_dev_posting {
    struct gpushmem_nic_queue *q;
    struct gpsh_dev_places places;
    struct gpsh_dev_wqe what[N];
    bool fetches, reads; // a read behind them
};

// Writes them to their places. Returns the position after the last one.
template <int N> GPSH_DEV uint64_t gpsh_dev_nic_fill(const struct gpsh_dev_posting<N> &posting)
{
    const struct gpsh_dev_places &places = posting.places;
    const unsigned rank = gpsh_dev_lanes_rank(places.mask), size = gpsh_dev_lanes_size(places.mask);
    const bool last = rank + 1 == size;
    const uint64_t mine = places.first + N * rank;
    GPSH_UNROLL
    for (int i = 0; i < N; i++)
        gpsh_dev_nic_write(places.facts, mine + i, posting.what[i],
                           (i ? 0 : places.flags & GPSH_NIC_FENCED) |
                               (last && !posting.reads && i + 1 == N ? GPSH_NIC_SIGNALLED : 0));
    if (posting.fetches)
        gpsh_dev_max64_relaxed_gpu(&posting.q->fetching, mine + N);
    uint32_t kind = gpushmem_nic_kind(posting.what[N - 1].opcode, posting.what[N - 1].size);
    if (last && posting.reads)
        kind = gpsh_dev_nic_read_back(posting.q, places.facts, mine + N);
    gpsh_dev_nic_commit(posting.q, places.mask, places.first, N * size + posting.reads, kind);
    return mine + N;
}

// The same when there is room; 0: there will be none. What is posted is in the thread's own memory
// meanwhile: each register that it has across a wait would be one more of every kernel that posts.
template <int N>
GPSH_DEV_CALL uint64_t gpsh_dev_nic_fill_late(const struct gpsh_dev_posting<N> &posting)
{
    const struct gpsh_dev_places &places = posting.places;
    return gpsh_dev_nic_await_room(posting.q, places.mask, places.first,
                                   N * gpsh_dev_lanes_size(places.mask) + posting.reads)
               ? gpsh_dev_nic_fill(posting)
               : 0;
}

// Posts N WQEs, of which the last one of the warp's threads asks for a completion, or a read behind
// it. Returns the position after the last one, or 0 if that is not possible. The source of a WQE is
// what the thread sees. `found`: of the queue, a moment ago.
template <int N>
GPSH_DEV uint64_t gpsh_dev_nic_post(struct gpushmem_nic_queue *q,
                                    const struct gpsh_dev_nic_done &found,
                                    const struct gpsh_dev_wqe (&what)[N], bool fetches)
{
    const bool reads = found.flags & GPUSHMEM_NIC_APART && !(fetches && N == 1);
    struct gpsh_dev_posting<N> posting = {
        q,
            gpsh_dev_nic_reserve(q, N, found.done,
                                 (found.fenced > found.done ? GPSH_NIC_FENCED : 0) |
                                     (reads ? GPSH_NIC_WITH_READ : 0)),
            {}, fetches, reads
    };
    GPSH_UNROLL
    for (int i = 0; i < N; i++)
        posting.what[i] = what[i];
    if (posting.places.wait) {
        const struct gpsh_dev_posting<N> kept = posting;
        return gpsh_dev_nic_fill_late<N>(kept);
    }
    return gpsh_dev_nic_fill<N>(posting);
}

GPSH_DEV uint64_t gpsh_dev_nic_post_one(struct gpushmem_nic_queue *q,
                                        const struct gpsh_dev_nic_done &found,
                                        const struct gpsh_dev_wqe &what, bool fetches)
{
    const struct gpsh_dev_wqe one[1] = {what};
    return gpsh_dev_nic_post(q, found, one, fetches);
}

#endif
