// SPDX-License-Identifier: BSD-3-Clause
// Posting to a queue of a NIC (gpushmem/impl/nic_queue.h): threads reserve places there together,
// write their WQEs, and have them rung for. docs/design/nic_posts.md says how threads share it.
#ifndef GPUSHMEM_DEVICE_NIC_QUEUE_CUH
#define GPUSHMEM_DEVICE_NIC_QUEUE_CUH

#include "gpushmem/device/nic_doorbell.cuh"

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

// One add for the threads of `mask`, n places each. `done`: as seen lately; `flags`: of WQEs, and
// GPSH_NIC_WITH_READ.
GPSH_DEV struct gpsh_dev_places gpsh_dev_nic_reserve(struct gpushmem_nic_queue *q, unsigned mask,
                                                     unsigned n, uint64_t done, uint32_t flags)
{
    const unsigned count = n * gpsh_dev_lanes_size(mask) + (flags & GPSH_NIC_WITH_READ);
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
    GPSH_DEV_BOUNDS();
    int status = 0;
    if (gpsh_dev_lanes_rank(mask) == 0) {
        struct gpsh_dev_nic_wait wait = {first + count - q->depth, 0, {}, q->depth};
        status = gpsh_dev_nic_await_done(q, &wait);
        if (status)
            gpsh_dev_nic_leave_unwritten(q, first, status);
    }
    return !gpsh_dev_lanes_first(mask, (uint64_t)(int64_t)status);
}

// All threads of these `count` places have written theirs. `kind`: of the thread's last WQE.
GPSH_DEV void gpsh_dev_nic_commit(struct gpushmem_nic_queue *q,
                                  const struct gpsh_dev_places &places, unsigned count,
                                  uint32_t kind)
{
    kind = (uint32_t)gpsh_dev_lanes_last(places.mask, kind);
    gpsh_dev_lanes_meet(places.mask); // their stores, before the first one's fence
    if (gpsh_dev_lanes_rank(places.mask) == 0)
        gpsh_dev_nic_publish(q, gpsh_dev_nic_bell(q), places.first,
                             gpushmem_nic_written(places.first + count, kind));
    // No lane goes ahead of the first one, to reserve what that one would have to wait for.
    gpsh_dev_lanes_meet(places.mask);
}

// Writes a read, behind what the warp's threads write: it is complete when that has reached the
// memory there. Returns its kind.
GPSH_DEV_CALL uint32_t gpsh_dev_nic_read_back(const struct gpushmem_nic_queue *q,
                                              const struct gpsh_dev_nic_facts facts,
                                              uint64_t position)
{
    GPSH_DEV_BOUNDS();
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
    gpsh_dev_nic_commit(posting.q, places, N * size + posting.reads, kind);
    return mine + N;
}

// The same when there is room; 0: there will be none. What is posted is in the thread's own memory
// meanwhile: each register that it has across a wait would be one more of every kernel that posts.
template <int N>
GPSH_DEV_CALL uint64_t gpsh_dev_nic_fill_late(const struct gpsh_dev_posting<N> &posting)
{
    GPSH_DEV_BOUNDS();
    const struct gpsh_dev_places &places = posting.places;
    return gpsh_dev_nic_await_room(posting.q, places.mask, places.first,
                                   N * gpsh_dev_lanes_size(places.mask) + posting.reads)
               ? gpsh_dev_nic_fill(posting)
               : 0;
}

// The threads of `mask` post together.
template <int N>
GPSH_DEV uint64_t gpsh_dev_nic_post_as(struct gpushmem_nic_queue *q, unsigned mask,
                                       const struct gpsh_dev_nic_done &found,
                                       const struct gpsh_dev_wqe (&what)[N], bool fetches)
{
    // behind all of them, where one needs it: signals may be writes and atomics
    const bool reads =
        found.flags & GPUSHMEM_NIC_APART && gpsh_dev_lanes_any(mask, !(fetches && N == 1));
    struct gpsh_dev_posting<N> posting = {
        q,
            gpsh_dev_nic_reserve(q, mask, N, found.done,
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

// Posts N WQEs, of which the last one of the warp's threads asks for a completion, or a read behind
// it. Returns the position after the last one, or 0 if that is not possible. The source of a WQE is
// what the thread sees. `found`: of the queue, a moment ago.
template <int N>
GPSH_DEV uint64_t gpsh_dev_nic_post(struct gpushmem_nic_queue *q,
                                    const struct gpsh_dev_nic_done &found,
                                    const struct gpsh_dev_wqe (&what)[N], bool fetches)
{
    return gpsh_dev_lane_is_alone()
               ? gpsh_dev_nic_post_as(q, GPSH_LANE_ALONE, found, what, fetches)
               : gpsh_dev_nic_post_as(q, gpsh_dev_lanes_with(q), found, what, fetches);
}

GPSH_DEV uint64_t gpsh_dev_nic_post_one(struct gpushmem_nic_queue *q,
                                        const struct gpsh_dev_nic_done &found,
                                        const struct gpsh_dev_wqe &what, bool fetches)
{
    const struct gpsh_dev_wqe one[1] = {what};
    return gpsh_dev_nic_post(q, found, one, fetches);
}

#endif
