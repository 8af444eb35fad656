// SPDX-License-Identifier: BSD-3-Clause
// Completions of a queue that kernels post to, and failures: who looks for them, and how threads
// wait.
#ifndef GPUSHMEM_DEVICE_NIC_COMPLETIONS_CUH
#define GPUSHMEM_DEVICE_NIC_COMPLETIONS_CUH

#include "gpushmem/device/state.cuh"

enum {
    // opcodes of completions: the upper half of a CQE's last byte
    GPSH_NIC_CQE_ERROR = 13,
    GPSH_NIC_CQE_INVALID = 15,
};
#define GPSH_NIC_NO_CQE ((uint64_t)GPSH_NIC_CQE_INVALID << 60)

// ---- Failures ----

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

// The first error completion: one word tells the host that there is one. Others that follow are of
// what was flushed. Whether the PE is dead, if it does not answer, the host knows.
GPSH_DEV void gpsh_dev_nic_take_error(struct gpushmem_nic_queue *q, uint64_t position)
{
    if (gpsh_dev_nic_has_failed(q, position + 1)) // the host has found it
        return;
    gpsh_dev_nic_give_up(q, position, GPUSHMEM_ERR_TRANSPORT);
    gpsh_dev_store64_release_sys(q->failure, 1);
}

// ---- Completions ----

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
    GPSH_DEV_BOUNDS();
    const uint64_t position = gpsh_dev_nic_position_of(at.last, at.done);
    gpsh_dev_max64_relaxed_gpu(&q->done, position);
    gpsh_dev_nic_take_error(q, position);
}

// Consumes the completions that are there. Several threads may be at it: what they have found
// counts if nobody has consumed anything since they read `polled`. The record must not go back, so
// while one thread writes it, the others consume nothing. Returns whether all below `end` are
// complete, by what this thread has consumed: else it is for `done` to say.
GPSH_DEV bool gpsh_dev_nic_consume(struct gpushmem_nic_queue *q, uint64_t polled, uint64_t done,
                                   uint64_t end)
{
    if (polled & GPUSHMEM_NIC_POLLING)
        return false;
    const struct gpsh_dev_nic_reach at =
        gpsh_dev_nic_look(q, gpushmem_nic_polled_done(polled, done), (uint32_t)polled, end);
    const bool fails = at.last >> 60 == GPSH_NIC_CQE_ERROR,
               records = (at.next ^ (uint32_t)polled) >> q->record_log2;
    if (at.next == (uint32_t)polled && !fails)
        return false;
    gpsh_dev_fence_acquire_sys(); // the completions, before who hears of them
    const uint64_t now = gpushmem_nic_polled(at.done, at.next);
    if (gpsh_dev_cas64_relaxed_gpu(&q->polled, polled,
                                   fails || records ? now | GPUSHMEM_NIC_POLLING : now) != polled)
        return false;
    if (records) {
        gpsh_dev_store32_sys(q->cq_record, gpsh_dev_big32(at.next & 0xffffff));
        // before who finds room by `done`, and that of the next thread that writes it
        gpsh_dev_fence_gpu();
    }
    gpsh_dev_max64_relaxed_gpu(&q->done, at.done);
    if (fails)
        gpsh_dev_nic_fail_at(q, at);
    else if (records)
        gpsh_dev_store64_relaxed_gpu(&q->polled, now);
    return at.done >= end;
}

// ---- Waiting ----

enum { GPSH_NIC_LOOKS_NS = 10000 };

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

// A wait for the WQEs below `least`, of which those below least + behind come next; or, with
// GPSH_NIC_ALL, for those that are reserved by now, whose end is found in the first step. It is in
// the thread's own memory, and its steps are a function: each register that a wait keeps would be
// one more of every kernel that posts.
struct gpsh_dev_nic_wait {
    uint64_t least;
    uint64_t mine; // of gpsh_dev_nic_looks
    struct gpsh_dev_lean_wait lean;
    uint32_t behind;
};

enum { GPSH_NIC_WAITS_ON = 1 };
#define GPSH_NIC_ALL (~(uint64_t)0)

// GPSH_NIC_WAITS_ON, or why the wait is over: 0, or a status. With 0 this thread has fenced since
// it saw the completions, or `done`.
GPSH_DEV_CALL int gpsh_dev_nic_wait_step(struct gpushmem_nic_queue *q,
                                         struct gpsh_dev_nic_wait *wait)
{
    GPSH_DEV_BOUNDS();
    // side by side; the first brings what says where completions are
    const uint32_t flags = q->flags;
    const uint64_t polled = gpsh_dev_load64_relaxed_gpu(&q->polled),
                   looked = gpsh_dev_load64_relaxed_gpu(&q->looked),
                   failed = gpsh_dev_load64_relaxed_gpu(&q->failed),
                   done = gpsh_dev_load64_relaxed_gpu(&q->done);
    if (wait->least == GPSH_NIC_ALL)
        wait->least = gpsh_dev_load64_relaxed_gpu(&q->head);
    if (done >= wait->least) {
        gpsh_dev_fence_acquire_sys();
        return 0;
    }
    if (~failed < wait->least + wait->behind)
        return (int)gpsh_dev_load32_relaxed_gpu((const uint32_t *)&q->error);
    if ((flags & GPUSHMEM_NIC_NEAR || gpsh_dev_nic_looks(q, looked, &wait->mine)) &&
        gpsh_dev_nic_consume(q, polled, done, wait->least + wait->behind))
        return 0;
    const int status = gpsh_dev_lean_spin(*gpushmem_nic_dev(q), &wait->lean);
    return status ? status : GPSH_NIC_WAITS_ON;
}

// Waits until the WQEs below `least` are complete. Not 0: one below least + behind will never be,
// or the wait is over, and why.
GPSH_DEV_CALL int gpsh_dev_nic_await_done(struct gpushmem_nic_queue *q,
                                          struct gpsh_dev_nic_wait *wait)
{
    GPSH_DEV_BOUNDS();
    int status = GPSH_NIC_WAITS_ON;
    while (status == GPSH_NIC_WAITS_ON)
        status = gpsh_dev_nic_wait_step(q, wait);
    if (wait->mine)
        gpsh_dev_store64_relaxed_gpu(&q->looked, 0); // the next one need not wait
    return status;
}

// Until the WQEs below `end`, or GPSH_NIC_ALL, are complete. What they fetched is visible then. 0,
// or why not: that was recorded.
GPSH_DEV_CALL int gpsh_dev_nic_await(struct gpushmem_nic_queue *q, uint64_t end)
{
    GPSH_DEV_BOUNDS();
    struct gpsh_dev_nic_wait wait = {end, 0, {}, 0};
    const int status = gpsh_dev_nic_await_done(q, &wait);
    if (status && !gpsh_dev_nic_has_failed(q, wait.least))
        gpsh_dev_fail(*gpushmem_nic_dev(q), status, q->pe, nullptr, 0);
    return status;
}

#endif
