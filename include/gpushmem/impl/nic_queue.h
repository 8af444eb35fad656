// SPDX-License-Identifier: BSD-3-Clause
// Queues of a NIC that kernels post to by themselves, part of gpushmem/device_abi.h: where the
// queues are, and the words by which the threads of a PE share them. docs/design/nic_posts.md has
// the protocol, and the reason of each fence.
//
// The NIC's own layouts are those of mlx5: work requests (WQEs) and completions (CQEs) of 64 bytes,
// big-endian, as rdma-core's infiniband/mlx5dv.h declares them.
#ifndef GPUSHMEM_IMPL_NIC_QUEUE_H
#define GPUSHMEM_IMPL_NIC_QUEUE_H

#include <stddef.h>
#include <stdint.h>

#include "gpushmem/impl/host_device.h"

enum gpushmem_nic_state {
    GPUSHMEM_NIC_NONE = 0, // nobody has asked for it, or it is being connected: use a ring
    GPUSHMEM_NIC_UP = 1,
    GPUSHMEM_NIC_OUT = 2, // it cannot be had, or has failed: use a ring
};

enum gpushmem_nic_flag {
    // the NIC there executes the atomics of 8 bytes of everybody, so that kernels may post theirs
    GPUSHMEM_NIC_ATOMICS = 1,
    // queue and records are in the memory of the GPU whose kernels post, and so is the heap: what
    // the NIC reads is what other threads of the GPU would, and fences reach as far
    GPUSHMEM_NIC_NEAR = 2,
    // The PE is reached by other ways, too, which may be faster than what the NIC there has
    // acknowledged: each post ends with a read, whose answer comes after what was written before.
    GPUSHMEM_NIC_APART = 4,
    // another rail goes on when this one does not answer
    GPUSHMEM_NIC_RAILS = 8,
};

enum {
    GPUSHMEM_NIC_BLOCK = 64,        // bytes of a WQE: all of them take one block
    GPUSHMEM_NIC_INLINE_BYTES = 28, // of a payload within it
    // most WQEs that a warp reserves together: two for each lane, and a read
    GPUSHMEM_NIC_AT_ONCE = 65,
    // entries of a send queue, at least: what a warp reserves fits in while the same is under way
    GPUSHMEM_NIC_LEAST_ENTRIES = 128,
    GPUSHMEM_NIC_LINE = 128,
};

// A queue pair towards one PE, with a completion queue of its own. Device memory, zero at first.
// The host writes the first line before `state` says that the queue is up; the others belong to
// kernels. Positions count the WQEs since the queue was made.
struct gpushmem_nic_queue {
    uint64_t *sq;        // [1 << entries_log2][8]
    uint64_t *doorbell;  // the NIC's register, or memory that a thread looks at
    uint32_t *sq_record; // the doorbell record: the lower 16 bits of the next position
    uint32_t *cq_record; // that of the completion queue
    // [replies] where fetched words land, each in the place of its reply; NULL: in the reply itself
    uint64_t *landing;
    uint64_t *scrap;     // where words land that nobody wants
    uint64_t *failure;   // host memory: not 0 when a queue may have failed since it was 0
    uint64_t remote;     // address of an object there, less its address here
    uint64_t heap_bytes; // of the heap, here and there, that the keys are for
    uint32_t qpn, lkey, rkey;
    uint32_t answers_lkey; // of scrap, and of the replies
    uint32_t most;         // bytes of one read or write
    uint32_t depth;        // WQEs that may be under way: no completion is ever without room
    // In the 32 bytes from here on, which come together, is what who waits has to know.
    uint32_t cqe_bytes;
    uint8_t entries_log2, cqes_log2;
    uint8_t record_log2; // so many completions at most are consumed before their record says so
    uint8_t marks_log2;
    int32_t pe;
    uint32_t flags; // enum gpushmem_nic_flag
    // the part of the first CQE that has a meaning; the next one is cqe_bytes further
    const char *cq;
    uint64_t *marks; // [1 << marks_log2], as many as may be under way: gpushmem_nic_written

    // ---- looked at with each post ----
    uint32_t state; // enum gpushmem_nic_state
    uint32_t asked; // not 0: the host was asked for it
    uint64_t done;  // WQEs below this are complete
    // the fences (gpushmem_nic.fences) that this queue knows of, where it stood at the last of
    // them, and the reads and atomics before that: what is posted until they are complete waits
    uint64_t fence_seen, fence_at, fenced;
    uint64_t fetching; // the position after the last read or atomic
    uint64_t failed;   // ~position of the first WQE that failed, or that nobody writes; 0: none
    int32_t error;     // why, enum gpushmem_status
    uint32_t reserved1;
    uint64_t looked; // until then one of those who wait looks for completions, by the GPU's clock
    uint64_t reserved2[7];

    // ---- each on a line of its own: written by all posts, by one at a time, by polls ----
    uint64_t head; // next position to reserve
    uint64_t pad0[15];
    uint64_t ready; // WQEs below this are written; whoever reserved from here on has its turn
    uint64_t taken; // WQEs below this are left to whoever has the turn: nobody waits with them
    uint64_t pad1[14];
    uint64_t polled; // gpushmem_nic_polled
    uint64_t pad2[15];
};

// The mark of a position: WQEs from there to `end` are written, by a thread that waits for its
// turn. Marks of earlier passes end further back, and mean nothing; nor does 0. `last`:
// gpushmem_nic_kind of the last WQE, which the doorbell tells.
#define GPUSHMEM_NIC_MARK_SHIFT 8

GPUSHMEM_HOST_DEVICE uint64_t gpushmem_nic_written(uint64_t end, uint32_t last)
{
    return end << GPUSHMEM_NIC_MARK_SHIFT | last;
}

GPUSHMEM_HOST_DEVICE uint64_t gpushmem_nic_end(uint64_t mark)
{
    return mark >> GPUSHMEM_NIC_MARK_SHIFT;
}

GPUSHMEM_HOST_DEVICE uint32_t gpushmem_nic_kind(uint32_t opcode, uint32_t size)
{
    return size << 5 | opcode; // of 3 and 5 bits
}

// How far a queue was polled, in one word, so that whoever exchanges it knows: the number of
// completions consumed, modulo 2^32, and above it the lower 31 bits of `done`. The upper bit is set
// while a thread writes the record of completions, and for ever once one has found an error.
#define GPUSHMEM_NIC_POLLING ((uint64_t)1 << 63)

GPUSHMEM_HOST_DEVICE uint64_t gpushmem_nic_polled(uint64_t done, uint32_t next)
{
    return (done & 0x7fffffff) << 32 | next;
}

// `close`: done as of a moment before or after.
GPUSHMEM_HOST_DEVICE uint64_t gpushmem_nic_polled_done(uint64_t polled, uint64_t close)
{
    const uint32_t apart = ((uint32_t)(polled >> 32) - (uint32_t)close) & 0x7fffffff;
    return apart < 0x40000000 ? close + apart : close - (0x80000000u - apart);
}

// All queues of one context: then come the queues, [n_pes], and `used`, [n_pes]. Device memory.
struct gpushmem_dev;
struct gpushmem_nic {
    // That kernels have made, and one for when a queue comes up: what went through rings before is
    // complete when its first request is posted.
    uint64_t fences;
    const struct gpushmem_dev *dev; // for those who know their queue only. Device memory
    uint64_t pad0[14];
    uint32_t n_used; // queues that have ever been up
    uint32_t pad1[31];
};

GPUSHMEM_HOST_DEVICE struct gpushmem_nic_queue *gpushmem_nic_queues(const struct gpushmem_nic *nic)
{
    return (struct gpushmem_nic_queue *)(nic + 1);
}

// The handle, for waits that keep nothing but their queue in registers.
GPUSHMEM_HOST_DEVICE const struct gpushmem_dev *gpushmem_nic_dev(const struct gpushmem_nic_queue *q)
{
    return ((const struct gpushmem_nic *)(const void *)(q - q->pe) - 1)->dev;
}

// The PEs of those that have ever been up.
GPUSHMEM_HOST_DEVICE uint32_t *gpushmem_nic_used(const struct gpushmem_nic *nic, int n_pes)
{
    return (uint32_t *)(gpushmem_nic_queues(nic) + n_pes);
}

GPUSHMEM_STATIC_ASSERT(offsetof(struct gpushmem_nic_queue, cqe_bytes) / 32 ==
                           offsetof(struct gpushmem_nic_queue, cq) / 32,
                       "who waits loads one sector to know where completions are");
GPUSHMEM_STATIC_ASSERT(offsetof(struct gpushmem_nic_queue, state) == GPUSHMEM_NIC_LINE &&
                           offsetof(struct gpushmem_nic_queue, head) == 2 * GPUSHMEM_NIC_LINE &&
                           offsetof(struct gpushmem_nic_queue, ready) == 3 * GPUSHMEM_NIC_LINE &&
                           offsetof(struct gpushmem_nic_queue, polled) == 4 * GPUSHMEM_NIC_LINE &&
                           sizeof(struct gpushmem_nic_queue) == 5 * GPUSHMEM_NIC_LINE,
                       "threads that post and threads that poll do not share lines");
GPUSHMEM_STATIC_ASSERT(sizeof(struct gpushmem_nic) == 256, "queues follow on a line of their own");

#endif
