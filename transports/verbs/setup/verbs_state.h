// SPDX-License-Identifier: BSD-3-Clause
// What the files of the verbs transport share: devices, memory, queue pairs, and the books that
// post/ keeps in them.
//
//   rail    one port of one NIC of this PE. Rail i of a PE talks to rail i of every other PE.
//   lane    the RC queue pair of one (channel, peer, rail), with the books of its send queue and
//           the chain of work requests that is being built for it.
//   flow    the lanes of one channel towards one peer, and a ring of slots: the operations accepted
//           and not complete, in posting order. Slots before `issued` have all their work requests
//           in a send queue (or are in a compare-and-swap loop); the rest wait for room, for order,
//           or for the connection, and progress() issues them.
//
// Nothing is made for a peer before something is sent to it, or comes from it: of what there is for
// each PE at init are tables of pointers. The first operation of a channel towards a peer makes the
// flow and its books, and asks a thread (verbs_connector.c) to connect it; the peer's thread makes
// its end of the queue pairs, without books.
//
// Everybody is reached through the NIC, this PE and the PEs of this node included. The reason is
// the atomics: a NIC that reports IBV_ATOMIC_HCA is atomic only against itself, and mixing its
// atomics with the processor's on one word loses updates (3 of 200,500 on Soft-RoCE). So the NIC of
// rail 0 at the target is the one agent of all words there; or, where a NIC executes none, a thread
// of the target's (stage/).
#ifndef GPSH_VERBS_STATE_H
#define GPSH_VERBS_STATE_H

#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "core/config.h"
#include "core/error.h"
#include "core/lines.h"
#include "core/log.h"
#include "transport/buffers.h"
#include "transport/transport.h"
#include "transports/verbs/setup/verbs_blob.h"
#include "transports/verbs/setup/verbs_due.h"
#include "transports/verbs/setup/verbs_message.h"

// Values of settings.def that are words.
enum gpsh_verbs_order { GPSH_VERBS_ORDER_AUTO, GPSH_VERBS_ORDER_QUEUE, GPSH_VERBS_ORDER_STRICT };
enum gpsh_data_direct { GPSH_DATA_DIRECT_AUTO, GPSH_DATA_DIRECT_OFF };
enum gpsh_dmabuf_policy { GPSH_DMABUF_AUTO, GPSH_DMABUF_OFF, GPSH_DMABUF_REQUIRE };

enum {
    VERBS_LOOPS = 16, // compare-and-swap loops of one flow under way at a time
    VERBS_POLL_BATCH = 32,
    VERBS_NAME_BYTES = 72, // "device:port"
    VERBS_ABOUT_BYTES = 640,
    VERBS_NO_BLOCK = 0xffff,
    VERBS_SIGNAL_BYTES = 8,
    VERBS_DEPTH_OF_ALL = 1 << 16, // send queue entries of a channel and rail, over all PEs
    VERBS_DEPTH_LEAST = 32,
    VERBS_KERNEL_DEPTH_LEAST = 128, // twice what a warp posts at once
    VERBS_CHAIN_LEAST = 3,          // two requests that belong together, and the read at the end
    VERBS_CQ_MOST = 1 << 14,        // entries: as many requests are under way at most
    VERBS_CHUNKS = 24,              // pieces that a heap may get beside its first
    // a heap's further pieces have keys of their own, after those of the regions
    VERBS_CHUNK_KEYS = GPSH_VERBS_REGIONS,
    VERBS_KEYS = VERBS_CHUNK_KEYS + VERBS_CHUNKS,
    VERBS_BLOCKS_KEPT = 2, // large bounce blocks for requests that go out at once
    // So long the flushed completions of a queue pair in error are waited for, before it is reset:
    // a NIC that is gone delivers none.
    VERBS_FLUSH_MS = 1000,
    VERBS_PSNS = 1 << 24, // packet numbers; at most half of them are under way
};

// How a NIC reaches registered memory.
struct verbs_way {
    enum { VERBS_BY_ADDRESS, VERBS_BY_DMABUF, VERBS_BY_DATA_DIRECT } by;
    int dmabuf_refused; // by address, because the NIC refused the dma-buf: errno; else 0
};

struct verbs_gid {
    union ibv_gid gid;
    uint8_t index;
};

struct verbs_rail {
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_mr *mrs[GPSH_VERBS_REGIONS]; // NULL for an empty region, and a heap that is staged
    struct verbs_way heap_way;
    char name[VERBS_NAME_BYTES];
    int distance; // enum gpsh_distance, where it was measured
    uint8_t port;
    bool ethernet;
    struct verbs_gid gids[GPSH_VERBS_GID_KINDS]; // of each kind the first in the port's table
    uint8_t gid_kinds;                           // bits: those that there are
    uint32_t psn_seed; // random: others cannot guess where a queue pair's packets are
    struct verbs_datagrams *datagrams; // verbs_datagram.c
    bool needs_grh;
    const char *no_mlx5; // why kernels could not post to its queues, or NULL
    uint16_t lid;
    enum ibv_mtu mtu;
    uint64_t max_message;
    int max_cqe, max_qp_wr;
    // reads and atomics a QP may have under way, as target and as initiator
    uint8_t reads_in, reads_out;
    uint8_t atomics;     // enum gpsh_verbs_atomics
    bool in_order;       // writes that arrive here are placed in the order of their queue pair
    uint32_t max_inline; // what a QP of ours got at init, and each gets
    struct mlx5dv_devx_umem *umem; // verbs_near.memory as the NIC knows it, or NULL
    struct ibv_mr *answers;        // the same, where fetched words land
    uint32_t pdn, eqn;             // numbers in commands to its firmware
};

// Counters of one channel, written by its owner only.
struct verbs_stats {
    uint64_t posts;     // work requests posted
    uint64_t doorbells; // calls of ibv_post_send
    uint64_t cqes;      // completions polled
    uint64_t bytes_out, bytes_in;
    uint64_t bounce_bytes; // copied through the bounce buffer, both ways
    uint64_t cas_retries;  // compare-and-swaps that found another value, locks' included
    uint64_t queued;       // operations that had to wait in a flow's queue
    uint64_t kicks;        // reads posted because nothing completed (verbs_kick.c)
};

enum verbs_wqe_kind {
    WQE_PLAIN,
    WQE_READ, // of a get
    WQE_AMO,
    WQE_LOOP,   // the last request of a step of a loop
    WQE_LOCK,   // in front of that one
    WQE_BACK,   // reads what was written, for the order (verbs_order.c)
    WQE_ANSWER, // reads what the peer says of a lane that was lost
};

// What must be done when a work request retires.
struct verbs_wqe {
    uint32_t slot;
    uint32_t bytes; // if it takes several packets, or to copy; else perhaps 0
    char *to;       // WQE_READ through the bounce buffer: where the bytes go
    uint16_t block; // bounce block to copy from and give back, or VERBS_NO_BLOCK
    uint8_t kind;
    uint8_t loop; // WQE_LOOP, WQE_LOCK: which
};

struct verbs_cq {
    struct ibv_cq *cq;
    // work requests that may still produce a completion; used never exceeds depth
    uint32_t depth, used;
    uint32_t emptied; // polls that left it empty
};

// A lane was lost, and what of its requests was executed is not known yet (verbs_doubt.c).
struct verbs_doubt {
    uint32_t question;
    uint32_t end;  // positions from here on were never posted
    uint32_t seen; // completions were, before this position
    uint64_t asked_ns, until_ns, driven_ns;
    int code; // what the flow fails with if nobody answers,
    char why[320];
};

struct verbs_lane {
    struct ibv_qp *qp;       // the handshake's, until the flow is up
    struct verbs_devx *devx; // one that was made by devx instead (verbs_devx.c), or NULL
    uint32_t qpn;            // of either
    struct ibv_cq *own_cq;   // of one that kernels post to; NULL: its completions go to `cq`
    struct verbs_flow *flow;
    struct verbs_cq *cq;
    struct verbs_wqe *wqes;           // [mask + 1], by position; NULL: without books
    uint32_t head, tail, mask, depth; // positions: next to use, oldest not retired
    uint32_t reads;                   // reads and atomics among them
    uint32_t lkeys[GPSH_VERBS_REGIONS], rkeys[VERBS_KEYS];
    int refused;       // errno by which its NIC's library refused a chain, or 0
    uint32_t id;       // index in the channel's lanes, upper half of wr_id
    uint64_t *results; // [mask + 1]: where fetched words land, by position,
    uint32_t results_key;
    uint8_t rail;
    bool failed;
    uint64_t flush_ns; // failed: until when its flushed completions are waited for
    bool reset;        // then its queue pair was reset, and
    uint32_t emptied;  // what its completion queue said
    // VERBS_ANSWER_KNOWN, and what the queue pair expected then; or 0
    _Atomic uint32_t expected;
    bool loose; // its writes may be placed in another order than they are posted in
    // what it writes may be on its way when it is acknowledged, and others be told by another way
    bool apart;
    // No read or atomic has been posted since the last write (where the lane is apart: nothing has
    // read it back), which
    bool unread;
    uint64_t wrote_to;               // began there,
    uint32_t wrote_bytes, wrote_key; // was so long, and used that key
    atomic_bool fatal;               // set by an asynchronous event, seen by progress
    uint32_t first, count, limit;    // the chain: wrs[first .. first + count)
    uint32_t inline_stride;
    struct ibv_send_wr *wrs; // [limit], linked in order
    struct ibv_sge *sges;
    // [inline_mask + 1][inline_stride] payloads of inline requests, by position: of those not yet
    // posted, and where there are several rails, of all that are not complete
    char *inlined;
    struct verbs_due due; // it has an unposted chain
    // Packets: a request takes one, and those at positions before head `more` beside.
    uint32_t packet_bytes, first_psn, more, inline_mask;
    struct verbs_doubt *doubt; // failed, but its requests may not be forgotten yet
    uint64_t still_ns; // since when its oldest request is the same, 0: it has none, or not known
    uint32_t still_tail, kicks;
};

// Where local memory lies; the first ones are the region's numbers.
enum verbs_where {
    VERBS_HEAP = GPSH_HEAP,
    VERBS_CONTROL = GPSH_CONTROL,
    VERBS_BUFFER,
    VERBS_DEVICE_BUFFER,
    VERBS_BLOCK, // in the channel's own bounce buffer: a chunk on its way
    VERBS_ELSEWHERE
};

// Whether a lost lane had a part of the operation under way, which is then issued again.
enum verbs_repeat {
    VERBS_REPEAT_NOT,
    VERBS_REPEAT_SIGNAL, // only the signal is, likewise
    VERBS_REPEAT_DRAINS, // as soon as nothing of it is under way any more
    VERBS_REPEAT_GOES,   // which has begun
    VERBS_REPEAT_LOST,   // it was executed, and its answer is gone: it alone fails
    VERBS_REPEAT_DENIED, // it was not executed, as somebody keeps its lock: it alone fails
};

struct verbs_slot {
    uint8_t kind, amo, width, flags;
    uint8_t region;        // at the target; or the piece of its heap: VERBS_CHUNK_KEYS and more
    uint8_t signal_region; // the same of the signal
    uint8_t where;         // of `local`: enum verbs_where
    bool striped, fenced, looping;
    bool after_fence; // there is one between it and the operation before
    uint8_t repeat;   // enum verbs_repeat
    bool borrowed;    // `local` stays as it is until the operation is complete
    uint16_t block;   // bounce block that holds the captured source of a waiting operation
    uint32_t parts;   // work requests posted and not retired, and 1 for a loop
    uint32_t pieces;  // issued so far
    char *local;
    uint64_t remote, signal; // addresses in the target
    uint64_t bytes, offset;  // offset: bytes issued so far
    uint64_t operand, compare;
    uint64_t after; // must be completed before this one may be issued
    void *result;
    struct gpsh_completion *completion;
};

// An atomic that takes several trips.
struct verbs_loop {
    // what the compare-and-swap under way compares with, and would store
    uint64_t word, guess, desired;
    uint64_t lock;        // address of the lock, or 0: none is needed
    uint64_t owner;       // the lock's last value
    uint64_t owned_ns;    // since when it has been that at every look, or 0
    uint64_t orphaned_ns; // since when that has been a PE that was lost, or 0
    uint32_t before;      // of the 4 bytes, once they are locked
    bool locked;
    uint32_t slot;
};

// Whether the lanes of a flow can be posted to.
enum verbs_state {
    VERBS_APART,   // nobody has asked for a connection
    VERBS_MEETING, // the handshake is under way
    VERBS_UP,
    VERBS_SHUT,    // it is being closed, and operations wait until it is, or is up again
    VERBS_REFUSED, // it has failed: link.code, link.why
};

// How far this end has got, as its messages say it.
enum verbs_level {
    VERBS_LEVEL_NONE,
    VERBS_LEVEL_GREETS,
    VERBS_LEVEL_READY,
    VERBS_LEVEL_UP,
    VERBS_LEVEL_CLOSES
};

// The time for which the handshake's thread could run.
struct verbs_awake {
    uint64_t ns, looked_ns;
};

// Connections that are made again, having been closed for others (verbs_turnover.c).
struct verbs_turnover {
    uint64_t since_ns, waited_ns; // operations have waited for them, since then
    uint32_t window;              // its number
    uint32_t made, again;         // again: different flows
    uint32_t queue_pairs, peers;  // that were used
    bool told;
};

// The handshake of a flow, of the thread that makes them (verbs_handshake.c).
struct verbs_link {
    struct verbs_flow *next;             // of those that are under way,
    struct verbs_flow *next_wish;        // that a channel has asked for, or that wait for room; or
    struct verbs_flow *next_up, **up_at; // that are up
    struct verbs_flow *next_waiting;
    bool listed, wished, waits;
    uint32_t asks, kept; // how often this end has asked to close; the last time it did not want to
    bool greeted;        // the peer has begun, and waits for room here
    struct gpsh_verbs_message greeting;
    bool called;        // operations wait for it, not only the peer,
    uint64_t called_ns; // since then
    bool closed;        // it was up, and is not, to make room here or there
    uint32_t window;    // of verbs_turnover.c, in which it was made again last
    uint8_t level;
    // This end's attempt and the peer's, 0: there is none. Those of the peer up to `over` are past.
    uint32_t own, theirs, over;
    uint32_t qpns[GPSH_VERBS_MAX_RAILS]; // the peer's
    uint32_t tries;
    uint8_t rail; // of the next message: that by which the peer's last one came, or the next one
    uint64_t retry_ns;
    uint64_t since_ns, until_ns; // of the clock below: when it began, when the patience is over
    bool told;                   // that the peer is stopped
    uint64_t room_ns;            // until when it waits for room, 0: it does not
    uint64_t full_ns;            // since when the NIC makes none for it; 0: it has not been asked
    uint64_t kept_ns;            // until then the peer is not asked again to close
    int code;
    char why[320];
};

struct verbs_flow {
    struct gpsh_flow *pub;
    struct verbs_channel *channel;
    struct verbs_peer *peer;
    struct verbs_lane *lanes; // [n_rails]
    // [slot_mask + 1], and one for notes, which are no operations; NULL: the peer alone has used it
    struct verbs_slot *slots;
    _Atomic int state; // enum verbs_state
    // The channel's thread uses lanes, or has something under way: set before the state is looked
    // at, so that who shuts the flow and then finds it false knows that nobody does
    // (verbs_close.c).
    atomic_bool busy;
    atomic_bool wanted;    // to be made before anything is posted; false once it has been up
    bool damaged;          // a lane is lost: it stays as it is
    _Atomic uint32_t used; // when it was busy last, by the clock `uses`
    uint64_t issued;       // operations whose work requests are all posted
    uint64_t fence_seq;    // operations before the last fence
    // the last of them that lane order does not cover (striped, or a loop)
    uint64_t fence_hard;
    uint64_t last_hard;
    uint64_t epoch;                           // the channel's fence epoch this flow has seen
    uint64_t remote_base[GPSH_VERBS_REGIONS]; // addresses of the peer's regions there
    // address of the peer's locks (verbs_lock.c), or 0: its NIC needs none
    uint64_t locks;
    struct verbs_stage_pipe *pipe; // not NULL: operations are staged, and come from there
    uint32_t serves;               // the peer's agent: enum gpsh_verbs_serves
    // what a loop last stored: the best guess for the next on that word
    uint64_t cached_word, cached_value;
    struct verbs_loop loops[VERBS_LOOPS];
    uint32_t loops_used, loops_ready; // bit masks; ready: wants its next compare-and-swap posted
    uint32_t slot_mask;
    int pe;
    uint32_t repeats; // operations to be issued again: no new ones are, until those are
    // the word in which the peer tells which rails have lost their connection (bits), and the
    // address of this PE's word there; NULL and 0 where there are none, or only one rail
    const _Atomic uint64_t *note;
    uint64_t note_there;
    bool note_due; // the peer has to be told
    uint8_t n_rails;
    uint8_t home;    // rail of everything that is not striped: the first, while that is not lost
    bool no_atomics; // the NIC of rail 0 has none, here or there
    bool refused;    // some lane was, and the flow has not failed yet
    bool fenced;
    bool write_owes; // the next put comes after a fence that a get or an atomic has taken
    struct verbs_due due, watched;
    uint8_t agent;   // rail of atomics
    uint8_t global;  // bits: rails whose NIC there is atomic to all others
    uint8_t doubts;  // lanes in doubt: nothing is issued (counted in repeats, too)
    uint8_t looking; // 1 + rail by which the answer is being read, or 0
    // addresses of this PE's question and of the answer at the peer; the last answer seen, and when
    // it was looked for
    uint64_t question_there, answer_there, answer, looked_ns;
    struct verbs_link link;
};

// A buffer cut into blocks of two sizes; see verbs_bounce.c.
struct verbs_bounce {
    char *base;
    size_t bytes; // of the blocks; after them come 8 for answers that nobody wants
    struct ibv_mr *mr[GPSH_VERBS_MAX_RAILS];
    uint32_t small_bytes, large_bytes;
    uint16_t n_small, n_large, free_small, free_large;
    uint16_t *small, *large; // stacks of free blocks
};

// Neighbours in the array of channels belong to different threads.
struct verbs_channel {
    _Alignas(GPSH_LINES) struct gpsh_channel base;
    struct gpsh_verbs *verbs;
    struct verbs_cq cqs[GPSH_VERBS_MAX_RAILS];
    struct verbs_flow *_Atomic *flows; // [n_pes], NULL: none yet
    // Where words that kernels fetch by its queues land; NULL: nobody has asked for one.
    const void *_Atomic answers;
    size_t answers_bytes;
    struct verbs_lane **lanes; // those with books, by id
    uint32_t n_lanes, lanes_room;
    struct verbs_bounce bounce;
    struct verbs_results *results; // the newest
    struct gpsh_queue *copies;     // to and from the bounce buffer's blocks, for staging; or NULL
    // numbers of the last copy, and of the last one that a mark follows
    uint64_t copied, copies_marked;
    struct verbs_due *pipes;         // those with something to do
    uint64_t epoch;                  // counts fences of all PEs
    struct verbs_due *held, *active; // lanes, flows
    struct verbs_due *watched;       // flows with something under way, and perhaps others
    atomic_bool fatal;
    bool driving, open;
    int retired; // operations completed by the progress() under way
    uint32_t ticks;
    uint64_t kick_ns; // when its lanes were looked at last (verbs_kick.c)
    struct verbs_stats stats;
};

// Registered memory for the fetched words of some lanes.
struct verbs_results {
    struct verbs_results *next;
    uint64_t *words;
    uint32_t used, room; // in words
    struct ibv_mr *mr[GPSH_VERBS_MAX_RAILS];
};

// Locks that are remembered, all of a PE's.
enum { VERBS_KEPT_LOCKS = 128 };

// Made with the first flow towards it.
struct verbs_peer {
    int pe;
    struct verbs_peer *next; // made before it
    struct gpsh_verbs_blob blob;
    struct ibv_ah *paths[GPSH_VERBS_MAX_RAILS]; // of datagrams, the handshake thread's
    uint32_t window;                            // of verbs_turnover.c, in which it counted last
    // bits: rails by which some channel has lost the connection to it
    _Atomic uint64_t lost_rails;
    // bits: locks of its that some PE was found to keep (verbs_lock.c)
    _Atomic uint64_t kept_locks[VERBS_KEPT_LOCKS / 64];
    // The question that some channel has asked it last and not done with, or 0; when that was
    _Atomic uint32_t question;
    _Atomic uint64_t asked_ns;
};

// How this PE's heap takes part: docs/design/network.md.
enum verbs_stage_mode { VERBS_STAGE_NOTHING, VERBS_STAGE_LARGE, VERBS_STAGE_ALL };
struct verbs_stage {
    enum verbs_stage_mode mode;
    char why[320];
    uint64_t from; // operations on the heap here are staged from this size
    const struct gpsh_queue_ops *queues;
    bool atomics;            // the agent here executes those of the peers
    struct gpsh_region area; // the mailboxes, where there is an agent
    int area_fd;
    uint32_t slots, slot_bytes; // of each
    struct verbs_agent *agent;
};

// What stage/ does for flows that have a pipe; post/ knows no more of it.
struct verbs_staging {
    int (*open)(struct verbs_flow *flow); // makes the pipe, if the flow has one
    int (*post)(struct verbs_stage_pipe *pipe, const struct gpsh_op *op);
    void (*fence)(struct verbs_stage_pipe *pipe);
    void (*fail)(struct verbs_stage_pipe *pipe, int code); // the flow below has failed
    void (*progress)(struct verbs_channel *channel);
};

// Memory for queues of kernels, near those who post (verbs_devx.c).
struct verbs_near {
    bool open;
    char why[256]; // not open: why not
    struct gpsh_region memory;
    size_t slot_bytes, n_slots;
    bool *taken; // [n_slots]
};

struct gpsh_verbs {
    struct gpsh_transport base;
    struct gpsh_transport_env env;
    struct verbs_rail rails[GPSH_VERBS_MAX_RAILS];
    uint8_t n_rails;
    uint32_t sq_depth, kernel_depth, chain_limit; // kernel_depth: of what kernels post to
    // largest payload put into a work request; 0 if the device takes none
    uint32_t inline_bytes;
    // [n_pes]: what each PE has published, NULL: not connected; and whether the runtime knows it to
    // be lost, which each channel's progress looks at
    unsigned char *_Atomic *blobs;
    _Atomic uint8_t *lost;
    // [n_pes], NULL: nothing has gone there yet; and the one made last. Made, like flows, by any
    // thread that holds `opening`.
    struct verbs_peer *_Atomic *peers;
    struct verbs_peer *_Atomic newest;
    pthread_mutex_t opening;
    struct verbs_handshakes *handshakes;
    _Atomic uint32_t uses;          // counts the flows that were connected
    pthread_mutex_t queue_pairs;    // held where one of a lane is ended, or asked by other threads
    uint64_t secret;                // those who know it are of this job
    struct verbs_channel *channels; // [env.channels]
    bool host_heap;
    _Atomic uint32_t n_chunks;
    uint64_t chunk_ends[VERBS_CHUNKS];  // heap offsets
    uint32_t *chunk_keys[VERBS_CHUNKS]; // [n_pes][n_rails], the peers'
    struct verbs_stage stage;
    const struct verbs_staging *staging;
    struct gpsh_buffers buffers; // their keys: struct ibv_mr, by rail
    atomic_flag events_busy;
    uint32_t events_logged;
    struct verbs_near near;
    struct verbs_answerer *answerer; // NULL where every peer has one rail only
};

static inline bool verbs_is_up(const struct verbs_flow *flow)
{
    // Pairs with the handshake's store, before which it has written what lanes have.
    return atomic_load_explicit(&flow->state, memory_order_acquire) == VERBS_UP;
}

// Whether there may be requests in its lanes. The handshake's thread may have shut it for a moment,
// to find that it is busy: who has seen it up since it was busy goes on as if it still were.
static inline bool verbs_has_lanes(const struct verbs_flow *flow)
{
    int state = atomic_load_explicit(&flow->state, memory_order_acquire);
    return state == VERBS_UP || state == VERBS_SHUT;
}

// The key by which a NIC itself tells datagrams of the job. Numbers from 2^31 on are for privileged
// users.
static inline uint32_t verbs_qkey(uint64_t secret)
{
    return (uint32_t)secret & 0x7fffffff;
}

// The channel's thread comes to use the flow's lanes, if it is up.
static inline void verbs_enter(struct verbs_flow *flow)
{
    atomic_store_explicit(&flow->busy, true, memory_order_relaxed);
    // Before the state is looked at. The processor's part is done by gpsh_verbs_shut, with a
    // barrier on all of the process's.
    atomic_signal_fence(memory_order_seq_cst);
}

static inline bool verbs_is_lost(const struct gpsh_verbs *verbs, int pe)
{
    return atomic_load_explicit(&verbs->lost[pe], memory_order_relaxed);
}

static inline bool verbs_is_kernels(const struct verbs_channel *channel)
{
    const struct gpsh_verbs *verbs = channel->verbs;
    return channel - verbs->channels >= verbs->env.channels - verbs->env.kernel_channels;
}

static inline struct verbs_flow *verbs_flow_at(const struct verbs_channel *channel, int pe)
{
    return atomic_load_explicit(&channel->flows[pe], memory_order_acquire);
}

static inline uint32_t verbs_power_of_two(uint32_t least)
{
    uint32_t value = 1;
    while (value < least)
        value *= 2;
    return value;
}

#endif
