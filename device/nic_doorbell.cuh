// SPDX-License-Identifier: BSD-3-Clause
// Who tells a NIC of what was written to its queue: marks say what is, the turn goes from thread to
// thread, and whoever has it rings the doorbell. docs/design/nic_posts.md says why each fence is
// where it is.
#ifndef GPUSHMEM_DEVICE_NIC_DOORBELL_CUH
#define GPUSHMEM_DEVICE_NIC_DOORBELL_CUH

#include "gpushmem/device/nic_completions.cuh"
#include "gpushmem/device/nic_wqe.cuh"

// ---- The doorbell ----

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

GPSH_DEV void gpsh_dev_nic_ring(const struct gpsh_dev_bell &bell, uint64_t written)
{
    const uint64_t end = gpushmem_nic_end(written);
    gpsh_dev_store32_sys(bell.record, gpsh_dev_big32((uint32_t)end & 0xffff));
    gpsh_dev_nic_fence(bell); // the record before the doorbell
    gpsh_dev_store64_sys(bell.doorbell,
                         gpsh_dev_nic_pair((uint32_t)((end - 1) & 0xffff) << 8 | (written & 31),
                                           bell.qpn << 8 | (written >> 5 & 7)));
}

// ---- The turn ----

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

enum { GPSH_NIC_LOOKS = 4 }; // marks that are looked at side by side

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

// A wait of a thread that posts is over since it took too long, or the host has ended it: what was
// reserved from `first` on is never written.
GPSH_DEV_CALL void gpsh_dev_nic_leave_unwritten(struct gpushmem_nic_queue *q, uint64_t first,
                                                int status)
{
    GPSH_DEV_BOUNDS();
    gpsh_dev_nic_give_up(q, first, status);
    if (status == GPUSHMEM_ERR_TIMEOUT)
        gpsh_dev_fail(*gpushmem_nic_dev(q), status, q->pe, nullptr, 0);
}

// Where fences are the system's, a thread goes over the marks behind it only for more pieces of its
// own size than these: that costs another fence, and to pass the turn on costs none.
enum { GPSH_NIC_FEW = 3 };

// How a thread came to its turn, in one register.
enum {
    GPSH_NIC_UNFENCED = 1, // it has waited, with no fence since
    GPSH_NIC_GIVEN_UP = 2  // it has seen that the queue failed
};

// The thread has its turn: rings the doorbell for all WQEs to the end of its own, and of those that
// others have written behind them, who do not wait for that. Or it leaves that to whoever has
// reserved what follows: if that has room, it waits for nobody but this thread. Not when a quarter
// of the queue is full: the NIC is to be at work meanwhile. Nor in a queue that has failed: one
// that has given up its wait, for the turn or for room, rings no more.
GPSH_DEV_CALL void gpsh_dev_nic_take_turn(struct gpushmem_nic_queue *q,
                                          const struct gpsh_dev_bell bell, uint64_t first,
                                          uint64_t written, uint64_t head, unsigned how)
{
    GPSH_DEV_BOUNDS();
    const uint64_t own = gpushmem_nic_end(written);
    uint64_t room = 0;
    if (head > own) { // else it is alone, and looks at nothing more
        room = gpsh_dev_load64_relaxed_gpu(&q->done) + q->depth;
        if (bell.near_gpu || how & GPSH_NIC_GIVEN_UP || head - own > GPSH_NIC_FEW * (own - first))
            written = gpsh_dev_nic_walk(bell, first, {first, written}).written;
    }
    const uint64_t end = gpushmem_nic_end(written);
    if (end != own) {
        gpsh_dev_max64_relaxed_gpu(&q->taken, end); // they go on at once
        head = gpsh_dev_load64_relaxed_gpu(&q->head);
        gpsh_dev_nic_fence(bell); // their WQEs, before the record, or before the next turn
        how &= ~(unsigned)GPSH_NIC_UNFENCED;
    }
    if (how & GPSH_NIC_GIVEN_UP || head <= end || end + GPUSHMEM_NIC_AT_ONCE > room ||
        (first ^ end) > bell.mask / 4) {
        if (how & GPSH_NIC_UNFENCED)
            gpsh_dev_nic_fence(bell); // the WQEs of those before the record
        gpsh_dev_nic_ring(bell, written);
    }
    gpsh_dev_max64_relaxed_gpu(&q->ready, end);
}

// Waits until the WQEs before `first` are written, and takes the turn then, or until one that had
// it has gone over these. The turn is passed on within the loop: threads of a warp may be held up
// behind it until all of them are there.
GPSH_DEV_CALL void gpsh_dev_nic_await_turn(struct gpushmem_nic_queue *q, uint64_t first,
                                           uint64_t written)
{
    GPSH_DEV_BOUNDS();
    struct gpsh_dev_lean_wait wait = {};
    bool gave_up = false;
    for (;;) {
        const struct gpsh_dev_nic_seen seen = gpsh_dev_nic_see(q); // all of these side by side
        const uint64_t taken = gpsh_dev_load64_relaxed_gpu(&q->taken),
                       failed = gpsh_dev_load64_relaxed_gpu(&q->failed);
        if (seen.ready == first) {
            const struct gpsh_dev_bell bell = gpsh_dev_nic_bell(q);
            if (bell.near_gpu) // before the marks: more of them are there then
                gpsh_dev_nic_fence(bell);
            gpsh_dev_nic_take_turn(q, bell, first, written, seen.head,
                                   (bell.near_gpu ? 0 : GPSH_NIC_UNFENCED) |
                                       (failed ? GPSH_NIC_GIVEN_UP : 0));
            return;
        }
        // whoever has the turn has taken them; or nobody writes what is before
        if (taken > first || ~failed < first || gave_up)
            return;
        if (int status = gpsh_dev_lean_spin(*gpushmem_nic_dev(q), &wait)) {
            gpsh_dev_nic_leave_unwritten(q, first, status);
            gave_up = true; // and looks once more, as the turn may have been passed on meanwhile
        }
    }
}

// Somebody has reserved what is behind, or writes what is before.
GPSH_DEV_CALL void gpsh_dev_nic_publish_shared(struct gpushmem_nic_queue *q,
                                               const struct gpsh_dev_bell bell, uint64_t first,
                                               uint64_t written, struct gpsh_dev_nic_seen seen)
{
    GPSH_DEV_BOUNDS();
    if (seen.ready == first)
        return gpsh_dev_nic_take_turn(q, bell, first, written, seen.head,
                                      gpsh_dev_load64_relaxed_gpu(&q->failed) ? GPSH_NIC_GIVEN_UP
                                                                              : 0);
    gpsh_dev_store64_sys(gpsh_dev_nic_mark(bell, first), written);
    gpsh_dev_nic_await_turn(q, first, written);
}

// The WQEs from `first` to the end of `written` are written, by threads that have met since. One
// that finds nobody before it or behind makes no call.
GPSH_DEV void gpsh_dev_nic_publish(struct gpushmem_nic_queue *q, const struct gpsh_dev_bell &bell,
                                   uint64_t first, uint64_t written)
{
    const struct gpsh_dev_nic_seen seen = gpsh_dev_nic_see(q);
    const uint64_t end = gpushmem_nic_end(written);
    gpsh_dev_nic_fence(bell); // our WQEs and sources, before whoever rings
    if (seen.ready != first || seen.head > end)
        return gpsh_dev_nic_publish_shared(q, bell, first, written, seen);
    gpsh_dev_nic_ring(bell, written);
    gpsh_dev_max64_relaxed_gpu(&q->ready, end);
}

#endif
