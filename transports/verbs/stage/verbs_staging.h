// SPDX-License-Identifier: BSD-3-Clause
// Staging: operations on memory that a NIC cannot, or should not, access itself go in chunks
// through registered host memory (docs/design/network.md); and so do atomics that no NIC executes
// (docs/design/atomics.md).
//
//   pipe     a flow whose operations are staged: a ring of operations, cut into a ring of chunks,
//   each in a block of
//            the channel's bounce buffer. Below it the flow's own operations move the chunks.
//   mailbox  at a PE whose heap no NIC accesses, or whose agent executes atomics: slots for the
//            requests of one channel of one PE, a word that counts those that arrived, and one that
//            counts those carried out. All mailboxes of a PE are its area. What goes there is far.
//   agent    carries out the requests that arrive in the area, through one in-order queue: a thread
//            of its own, helped by threads that drive a channel.
#ifndef GPSH_VERBS_STAGING_H
#define GPSH_VERBS_STAGING_H

#include "transport/request.h"
#include "transports/verbs/post/verbs_posting.h"

enum {
    STAGE_HEADER = 64, // bytes before the payload in a slot
};

// In the mailbox's word of answers, in place of a count: the mailbox carries out nothing any more,
// and this is the reason.
#define STAGE_REFUSED_RANGE (UINT64_C(1) << 63) // a request was outside the region, or none
#define STAGE_REFUSED_QUEUE (UINT64_C(1) << 62) // its GPU failed

// What a slot begins with: behind it the payload of a put, or the place for what is wanted.
struct stage_request {
    uint64_t number; // in its mailbox, from 1
    struct gpsh_request op;
    uint64_t zero;
};
_Static_assert(sizeof(struct stage_request) == STAGE_HEADER,
               "the header has a cache line to itself");

enum stage_state {
    // its payload is being copied to the block, or it waits for those before it to be sent
    STAGE_COPY_IN,
    STAGE_SENT,     // towards a mailbox: not answered; else until its operation completes
    STAGE_LANDED,   // what was fetched is in the block
    STAGE_COPY_OUT, // from the block to where it was wanted
    STAGE_DONE,
};

struct stage_chunk {
    struct gpsh_completion completion; // of the flow's operation under way
    struct verbs_stage_pipe *pipe;
    uint64_t number; // in the pipe, from 1
    uint64_t mail;   // far: number in the mailbox, from 1
    uint64_t behind; // far: so many of the flow's operations must be complete before it is sent
    uint64_t op;     // number of its operation
    uint64_t offset; // in the operation
    uint64_t copy;   // number in the channel's queue
    uint32_t bytes;
    uint16_t block;
    uint8_t state;
    bool last, fetching, far;
};

// How an operation goes.
enum stage_way {
    STAGE_DIRECT, // it is the flow's
    STAGE_NEAR,   // in chunks between blocks here and memory there
    STAGE_FAR,    // by the mailbox
};

struct stage_op {
    struct gpsh_completion completion; // of a direct one
    struct verbs_stage_pipe *pipe;
    struct gpsh_op op;
    uint64_t offset;    // bytes that chunks were made for
    uint64_t last_copy; // of its source
    uint32_t chunks;    // made and not retired
    uint8_t way;        // enum stage_way
    bool fenced, done;
};

struct verbs_stage_pipe {
    struct verbs_flow *flow;
    struct gpsh_flow *pub;  // the caller's counters
    struct gpsh_flow inner; // those of the operations that move chunks
    uint32_t serves;        // the peer's agent: enum gpsh_verbs_serves
    bool polling, draining;
    // A fence that the next operation of the flow, direct or near, has to take; and the next far
    // one
    bool fenced, far_fenced;
    bool apart;                           // a mailbox may tell of writes before they are there
    uint32_t depth, payload;              // chunks under way, bytes of each
    uint32_t n_slots, slot_bytes;         // of the mailbox
    uint64_t last_near, last_far;         // operations, or 0
    uint64_t fence_far;                   // the last far one before the last fence
    uint64_t reads;                       // of the flow's operations, up to the last direct fetch
    uint64_t arrived, answered_at, slots; // offsets in the peer's area
    uint64_t epoch;
    struct stage_op *ops;       // as many as the flow has slots
    uint64_t cut;               // operations all of whose chunks were made
    struct stage_chunk *chunks; // [depth]
    uint64_t begun, sent, retired;
    uint64_t mailed, asked; // of the chunks: begun ones that are far, sent ones
    uint64_t answered;      // by the agent, as far as is known
    uint64_t refused;
    struct gpsh_completion polled;
    uint16_t poll_block;
    uint32_t idle;
    struct verbs_due due;
};

// verbs_stage_choose.c: what this PE's registered memory, its GPU's place and the settings make of
// its heap.
int gpsh_verbs_stage_choose(struct gpsh_verbs *verbs);

// verbs_stage_area.c
int gpsh_verbs_area_create(struct gpsh_verbs *verbs);
void gpsh_verbs_area_destroy(struct gpsh_verbs *verbs);
// A channel's queue for copies to and from its blocks.
int gpsh_verbs_copies_open(struct gpsh_verbs *verbs, struct verbs_channel *channel);
void gpsh_verbs_copies_close(struct verbs_channel *channel);

// verbs_stage_agent.c
// With its mailboxes.
int gpsh_verbs_agent_start(struct gpsh_verbs *verbs);
int gpsh_verbs_serve_atomics(struct gpsh_transport *self);
void gpsh_verbs_agent_stop(struct gpsh_verbs *verbs);
void gpsh_verbs_agent_heap(struct gpsh_verbs *verbs, uint64_t bytes); // its size by now
// One pass by a thread that waits anyway, unless another makes one; true if it found something to
// do.
bool gpsh_verbs_agent_help(struct gpsh_verbs *verbs);

// verbs_stage.c
extern const struct verbs_staging gpsh_verbs_staging;
// Those of the channel, with its queue of copies.
void gpsh_verbs_pipes_destroy(struct verbs_channel *channel);

// verbs_stage_chunk.c: moves every chunk on as far as it goes.
void gpsh_verbs_chunks_drive(struct verbs_stage_pipe *pipe);

static inline struct stage_op *stage_op_at(struct verbs_stage_pipe *pipe, uint64_t number)
{
    return &pipe->ops[(number - 1) & pipe->flow->slot_mask];
}

static inline struct stage_chunk *stage_chunk_at(struct verbs_stage_pipe *pipe, uint64_t number)
{
    return &pipe->chunks[(number - 1) % pipe->depth];
}

static inline char *stage_block(const struct verbs_stage_pipe *pipe,
                                const struct stage_chunk *chunk)
{
    return gpsh_verbs_bounce_at(&pipe->flow->channel->bounce, chunk->block);
}

static inline char *stage_payload(const struct verbs_stage_pipe *pipe,
                                  const struct stage_chunk *chunk)
{
    return stage_block(pipe, chunk) + STAGE_HEADER;
}

// Whether the operation, which has chunks, has been carried out, and all that had them before it.
static inline bool stage_op_done(struct verbs_stage_pipe *pipe, uint64_t number)
{
    return pipe->pub->completed >= number ||
           (pipe->cut >= number && !stage_op_at(pipe, number)->chunks);
}

// Whether copy `number` of the channel's queue is complete. Pairs with the mark that the queue
// stores after it.
static inline bool stage_copied(const struct verbs_channel *channel, uint64_t number)
{
    return !number || __atomic_load_n(channel->copies->done, __ATOMIC_ACQUIRE) >= number;
}

#endif
