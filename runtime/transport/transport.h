// SPDX-License-Identifier: BSD-3-Clause
// The interface between the runtime and its transports: one table of const operations, and plain
// structs.
//
// Vocabulary
//   transport  one way to reach peers (loop, p2p, verbs); one instance per PE and initialisation.
//   channel    what one context or one proxy thread posts through: queues of its own, used by one
//   thread at a time
//              (the owner locks). Two channels never share ordering or completion.
//   flow       all operations of one channel towards one PE, in posting order. `posted` counts
//   operations accepted,
//              `completed` those that are complete at the target (puts visible in its memory, gets
//              and fetches delivered here), in order: operation number k (from 1) is complete when
//              completed >= k.
// A transport sees neither the environment nor CUDA nor another transport: everything it may know
// is in its env.
#ifndef GPSH_TRANSPORT_H
#define GPSH_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/count.h"
#include "generated/transports.h"

enum { GPSH_ALL_PES = -1 };

// Symmetric memory comes in regions. Offsets of operations are offsets into one of them.
enum gpsh_region_id {
    GPSH_HEAP,    // the symmetric heap: on the GPU where there is one
    GPSH_CONTROL, // the runtime's own words (barriers, mailboxes): a few KiB, always in host memory
    // static data of the program, in host memory: empty where it is not shared, and a PE's may
    // have another size then than this one's
    GPSH_STATIC,
    GPSH_REGIONS,
};

enum gpsh_memory_kind { GPSH_MEMORY_HOST, GPSH_MEMORY_DEVICE };

// A range of memory to move data from and to. For GPU memory dmabuf_fd is its dma-buf, or -1;
// dmabuf_pcie_fd the one of its PCIe mapping, where the driver tells that from the default one
// (CPUs linked to the GPU by something else), or -1. Both begin at the host page that holds base.
struct gpsh_region {
    char *base;
    size_t bytes;
    enum gpsh_memory_kind kind;
    int dmabuf_fd, dmabuf_pcie_fd;
};

static inline bool gpsh_region_holds(const struct gpsh_region *region, const char *address,
                                     uint64_t bytes)
{
    return address >= region->base && bytes <= region->bytes &&
           (size_t)(address - region->base) <= region->bytes - bytes;
}

// Copies that may touch GPU memory; the runtime fills it in (memcpy, or CUDA where the heap is on a
// GPU).
typedef int (*gpsh_copy_fn)(void *to, const void *from, size_t bytes);

struct gpsh_op;

// An in-order queue of operations on GPU memory, for transports that reach a peer's GPU heap by its
// mapping. Used by one thread at a time.
struct gpsh_queue {
    // number of the last mark that was reached: everything before it is complete
    volatile uint64_t *done;
    uint64_t *results; // [as asked for at open] where atomics leave previous values
};
struct gpsh_queue_ops {
    int (*open)(unsigned results, struct gpsh_queue **out);
    void (*close)(struct gpsh_queue *queue); // completes what is in it first; NULL is legal
    // GPSH_POST_IN_FLIGHT, GPSH_POST_CAPTURED if the source may be reused already, or a negative
    // status. With `capture`, a small host source has been copied on return.
    int (*put)(struct gpsh_queue *queue, void *to, const void *from, size_t bytes, bool capture);
    // GPSH_POST_IN_FLIGHT, GPSH_POST_DONE if it and everything before it is complete, or a negative
    // status.
    int (*get)(struct gpsh_queue *queue, void *to, const void *from, size_t bytes);
    // op's atomic on `word`, atomic to those of kernels; if op->result is set, the previous value
    // goes to the first `width` bytes of results[result].
    int (*amo)(struct gpsh_queue *queue, void *word, const struct gpsh_op *op, unsigned result);
    int (*mark)(struct gpsh_queue *queue, uint64_t number);
    int (*check)(struct gpsh_queue *queue); // 0, or why what is in the queue will never complete
    // Lets copies from and to this host memory run beside the processor. Without it they are right,
    // but not side by side. NULL where it makes no difference.
    int (*pin)(void *memory, size_t bytes);
    void (*unpin)(void *memory);
};
extern const struct gpsh_queue_ops gpsh_host_queue_ops; // the same on host memory, by the processor
// An operation on the memory at `base` by a queue, whose result `slot` is its. As put and get.
int gpsh_queue_do(const struct gpsh_queue_ops *ops, struct gpsh_queue *queue,
                  const struct gpsh_op *op, char *base, unsigned slot);

// Words that kernels may have under way to be fetched, of all queues, and a line for those that
// nobody wants.
enum { GPSH_KERNEL_ANSWERS = 4096, GPSH_KERNEL_SCRAP = 8 };

// A queue pair that kernels post to by themselves, in mlx5's layouts (infiniband/mlx5dv.h). The
// addresses are this process's; the memory stays until the transport closes.
struct gpsh_kernel_queue {
    void *sq, *cq, *doorbell; // sq: blocks of 64 bytes
    uint32_t *sq_record, *cq_record;
    uint32_t entries, cqes, cqe_bytes; // powers of two
    uint32_t depth;                    // requests that may be under way
    uint32_t qpn, lkey, rkey;          // keys of the heaps, here and there
    uint32_t answers_lkey;
    // [GPSH_KERNEL_ANSWERS + GPSH_KERNEL_SCRAP] where fetched words land; NULL: in the memory of
    // kernel_queue. Behind the same bus as the completion that tells of them.
    uint64_t *answers;
    uint64_t remote_base; // address of the heap there
    uint64_t heap_bytes;  // that the keys are for
    uint32_t most;        // bytes of one request
    int rail;             // the transport's, for kernel_failed
    bool atomics;         // the NIC there executes everybody's atomics of 8 bytes
    bool apart;           // writes are read back (GPUSHMEM_NIC_APART)
    bool rails;           // others go on when this rail does not answer
    bool near_gpu;        // queues and records are in GPU memory, of env.kernel_memory
};

struct gpsh_transport_env {
    int my_pe, n_pes;
    // position of this PE among those of its node: they spread over the node's NICs by it
    int node_pe;
    const struct gpsh_settings *settings;
    struct gpsh_region regions[GPSH_REGIONS]; // this PE's symmetric memory: registered once per NIC
    // Addresses from the heap's first on that are, or will be, this PE's heap; 0: as many as it has
    uint64_t heap_room;
    // [GPSH_REGIONS][n_pes]: where a peer's region is mapped into this process, NULL where it is
    // not. Set before connect.
    char *const *mapped[GPSH_REGIONS];
    gpsh_copy_fn copy;                   // for memory of kind DEVICE
    const struct gpsh_queue_ops *queues; // for heaps of kind DEVICE; NULL: host heaps
    // PCI address the NIC should be near to ("0000:3b:00.0"), NULL: near this thread's CPU
    const char *near_pci;
    // The runtime can flush what NICs wrote to this PE's heap (see must_flush).
    bool can_flush;
    int channels; // how many channels there are, known before connecting
    // The last so many of them are never opened: kernels post to their queue pairs.
    int kernel_channels;
    // Where the flows of the channels are to be, all zero: those of channel i from byte i times
    // flow_stride on. NULL: anywhere. For gpsh_flows_open.
    char *flows;
    size_t flow_stride;
    // Where in the control region there are words of 8 bytes, zero at first, that transports may
    // lock each other out by; and how many.
    uint64_t locks;
    uint32_t n_locks;
    // Where in the control region there are [3][n_pes] words of 8 bytes, zero at first; 0: nowhere.
    // Those of a PE: the first two are written by that PE's transports and only read by this PE's;
    // the third one the other way round.
    uint64_t notes;
    // Tells the runtime why operations towards a peer fail from now on. With GPUSHMEM_ERR_PE_FAILED
    // the peer does not answer and is lost. Any other code is this PE's own trouble (its NIC, its
    // GPU, a wrong address): the peer may be well. Any thread that drives a channel may call it,
    // once or more.
    void (*peer_failed)(void *arg, int pe, int code, const char *why);
    // The same where peer_lives says that the peer lives: it is lost to this PE, and operations
    // towards it fail with GPUSHMEM_ERR_TRANSPORT. NULL: peer_failed is told.
    void (*peer_cut_off)(void *arg, int pe, const char *why);
    // Whether the process of that PE is known to live, or its end would be told within moments:
    // then the connection or a NIC is silent. Any thread. NULL: it is never known.
    bool (*peer_lives)(void *arg, int pe);
    // Whether the runtime knows a PE to be lost, from this transport or from elsewhere. Any thread.
    // NULL: it never knows.
    bool (*peer_lost)(void *arg, int pe);
    // Whether the process of that PE is known to live and not to run (SIGSTOP, a debugger): its
    // silence says nothing, and its death would be told. It may have to be asked for that, so call
    // this where something is awaited for long, and again some seconds later. Any thread. NULL: it
    // is never known.
    bool (*peer_stopped)(void *arg, int pe);
    // The queue that kernel_queue was called for is there, until the transport closes. NULL: it
    // cannot be had, and `why` is a sentence. Any thread; NULL: nobody is told.
    void (*kernel_queue)(void *arg, int index, int pe, const struct gpsh_kernel_queue *queue,
                         const char *why);
    // Zeroed memory near those who run kernels, for queues that they post to: of the GPU, with a
    // dma-buf, or what stands for it where kernels run on CPU threads. 0, or a negative status with
    // a sentence. Before kernels run: a GPU's driver may wait for them. NULL: there is none.
    int (*kernel_memory)(void *arg, size_t bytes, struct gpsh_region *memory);
    void (*kernel_memory_free)(void *arg, struct gpsh_region *memory);
    void *arg;
};

static inline bool gpsh_env_peer_lives(const struct gpsh_transport_env *env, int pe)
{
    return env->peer_lives && env->peer_lives(env->arg, pe);
}

static inline bool gpsh_env_peer_stopped(const struct gpsh_transport_env *env, int pe)
{
    return env->peer_stopped && env->peer_stopped(env->arg, pe);
}

// Whether this PE's memory is its heap's, also where that is only added to later.
static inline bool gpsh_env_in_heap(const struct gpsh_transport_env *env, const char *local,
                                    uint64_t bytes)
{
    const struct gpsh_region *heap = &env->regions[GPSH_HEAP];
    uint64_t room = env->heap_room > heap->bytes ? env->heap_room : heap->bytes;
    uint64_t offset = (uint64_t)((uintptr_t)local - (uintptr_t)heap->base);
    return offset < room && bytes <= room - offset;
}

enum gpsh_op_kind {
    GPSH_OP_PUT, // bytes from local to remote
    GPSH_OP_GET, // bytes from remote to local
    GPSH_OP_AMO, // atomic on `width` bytes at remote; previous value to result if not NULL
    // PUT, then signal_op(signal, operand); the signal is never visible before its data; bytes may
    // be 0
    GPSH_OP_PUT_SIGNAL,
};

enum gpsh_amo { // same numbers as in the device ABI
    GPSH_AMO_FETCH,
    GPSH_AMO_SET,
    GPSH_AMO_ADD,
    GPSH_AMO_SWAP,
    GPSH_AMO_CSWAP, // operand is stored if the word equals `compare`
    GPSH_AMO_AND,
    GPSH_AMO_OR,
    GPSH_AMO_XOR,
};

enum gpsh_op_flag {
    // further operations follow at once: the doorbell may wait for flush() or an op without MORE
    GPSH_OP_MORE = 1,
    // the caller wants the source back when post returns: the transport copies it and returns
    // CAPTURED. Always done for sources of up to 2,048 bytes; a larger one that cannot be copied
    // stays in use (IN_FLIGHT). Post never waits for a peer
    GPSH_OP_CAPTURE = 2,
    GPSH_OP_SIGNAL_ADD = 4, // PUT_SIGNAL: add instead of set
    // `local` and `result` are the processor's memory: it copies them itself, also where heaps are
    // on GPUs
    GPSH_OP_LOCAL_HOST = 8,
    // the source stays as it is until the operation is complete, whatever post returns: the
    // transport may read it again
    GPSH_OP_KEPT = 16,
    // a PUT or PUT_SIGNAL after which the target may leave: nothing that is sent later relies on
    // it, so it is complete when it is acknowledged, and nothing that follows it may need an answer
    GPSH_OP_LAST = 32,
};

// Called from within progress() or post() of the channel, when the operation is complete or has
// failed (status < 0). The memory belongs to the poster and may be reused from inside the call.
struct gpsh_completion {
    void (*done)(struct gpsh_completion *self, int status);
};

// One operation, filled by the caller and only read by the transport, which keeps no pointer to it
// after post returns. Ranges were checked by the caller: every PE's regions have the same sizes
// (of GPSH_STATIC if operations name it).
struct gpsh_op {
    uint8_t kind;   // enum gpsh_op_kind
    uint8_t amo;    // enum gpsh_amo
    uint8_t width;  // AMO: 4 or 8
    uint8_t flags;  // enum gpsh_op_flag
    uint8_t region; // enum gpsh_region_id: what `remote` and `signal` are offsets into
    int32_t pe;
    char *local;     // PUT, PUT_SIGNAL: source; GET: destination. Any memory of this process
    uint64_t remote; // offset in pe's region
    uint64_t bytes;
    uint64_t operand; // AMO operand, or the signal's value
    uint64_t compare; // CSWAP
    uint64_t signal;  // PUT_SIGNAL: offset of the 8-byte signal word
    void *result;     // AMO: where the previous value goes (`width` bytes), or NULL
    struct gpsh_completion *completion; // called back at completion if not NULL
};

// What post returns (or a negative status: nothing was posted).
enum gpsh_post {
    // the flow's `posted` is this operation's number; the source is in use until completed
    GPSH_POST_IN_FLIGHT = 0,
    GPSH_POST_CAPTURED = 1, // the same, but the source may be reused already
    // complete at the target already (counted in both posted and completed)
    GPSH_POST_DONE = 2,
    GPSH_POST_AGAIN = 3, // no room now: nothing was posted; call progress, then post again
    // as IN_FLIGHT, but other PEs may have to wait for it: drive the channel until it is complete
    GPSH_POST_URGENT = 4,
};

// Other threads and processes read the 64-bit counts: they are written by gpsh_count_* alone.
struct gpsh_flow {
    uint64_t posted;
    // also counts what was under way when the flow failed, as soon as its local memory is left
    // alone
    uint64_t completed;
    // Statistics, kept by the code that posts, and no business of the transport: bytes of the
    // operations, how often a post found no room, and for contexts of the host the highest number
    // of operations under way at once.
    uint64_t bytes, retries, peak;
    uint64_t reconnects; // kept by the transport, from any one thread: see gpushmem/counters.h
    // Of the channel's thread: with the error, so many were complete and are not lost.
    uint64_t safe;
    int error; // 0, or why everything towards this PE fails from now on (also set by progress)
    // Link of the channel's list of flows (comm/pending.h); transports zero it and leave it alone.
    int32_t listed;
};

// Of the channel's thread: everything towards this PE fails with `error` from now on. What is not
// counted as complete yet is lost. The first error stays.
static inline void gpsh_flow_fail(struct gpsh_flow *flow, int error)
{
    if (flow->error)
        return;
    flow->safe = flow->completed;
    flow->error = error;
}

struct gpsh_settings;
struct gpsh_transport;

// First member of every transport's channel struct.
struct gpsh_channel {
    const struct gpsh_transport_ops *ops;
    struct gpsh_transport *transport;
    struct gpsh_flow *flows; // [n_pes]; see gpsh_flows_open
    bool flows_lent;         // by the runtime
    uint64_t pending;        // operations posted and not complete, over all flows
    // The flows that may have operations pending (comm/pending.h), and how many calls go through
    // that list; zero at first, and no business of the transport.
    int32_t first_listed, list_readers;
    // some flow has an error that is this PE's own trouble: its PE does not count as lost
    bool failed;
    // [n_pes] where this process may itself load and store the peers' heaps, complete at once and
    // in order with what is posted here; NULL: nowhere (an entry: not that PE's).
    char *const *direct;
};

// First member of every transport's instance struct.
struct gpsh_transport {
    const struct gpsh_transport_ops *ops;
    // What NICs write to this PE's heap and the completions that tell of it take different ways:
    // the runtime flushes before it goes on, even where its GPU needs no flush. Set by open, and
    // only where env.can_flush.
    bool must_flush;
    // With GPSH_CAP_NIC_ATOMICS: the NIC here executes none. Set by open.
    bool no_atomics;
    // Why it does not serve GPSH_STATIC, a sentence, or "": the job goes on without. Set by open.
    char static_refused[256];
    // Atomics towards its peers are executed by agents there: see serve_atomics, which sets it.
    bool agents;
};

enum gpsh_transport_cap {
    GPSH_CAP_REMOTE_NODE = 1, // reaches PEs of other nodes
    // atomics are executed by a NIC, not atomic to the processor's; or by agents (serve_atomics)
    GPSH_CAP_NIC_ATOMICS = 2,
    // every peer it connects to has its heap mapped into this process (env.mapped): the runtime and
    // kernels then load and store there without calling the transport
    GPSH_CAP_MAPPED = 4,
};

// A row of what survey_all finds, cells between '|'.
typedef void gpsh_survey_row(void *arg, const char *cells);

struct gpsh_transport_ops {
    const char *name;
    unsigned caps;

    // What this machine has for it, in a line, and nothing is opened: 0, 1 if the line ends with a
    // fault of what it would take, or GPUSHMEM_ERR_TRANSPORT with a sentence about what is missing.
    // It may start threads. NULL: it cannot tell.
    int (*survey)(const struct gpsh_settings *settings, char *line, size_t bytes);
    // The same of every provider that it could use, a row each: its name; how operations get on
    // while the target computes, who executes atomics, what order messages keep, how GPU memory is
    // moved; or why it is not taken. 0, or GPUSHMEM_ERR_TRANSPORT. NULL: it has no providers.
    int (*survey_all)(const struct gpsh_settings *settings, gpsh_survey_row *row, void *arg);
    // Acquires devices and registers the heap. GPUSHMEM_ERR_TRANSPORT with a sentence if this
    // machine cannot.
    int (*open)(const struct gpsh_transport_env *env, struct gpsh_transport **out);
    void (*close)(struct gpsh_transport *self);

    // Connection data for the peers: writes at most `bytes` to `blob` and returns the size needed
    // (call with NULL, 0 first), or a negative status.
    int64_t (*describe)(struct gpsh_transport *self, void *blob, size_t bytes);
    // Some PE's NIC executes no atomics, or the job wants none of a NIC's. Called on every PE or on
    // none, after open and before describe. An agent of this PE then executes what its peers send:
    // on host memory by the processor's atomic instructions, on a GPU's by those of kernels. So
    // they are exclusive with those of this PE's program and kernels, and of PEs that map its
    // memory. A fetch may stay a read of the NIC, and a signal that is set a write. NULL: there is
    // no agent.
    int (*serve_atomics)(struct gpsh_transport *self);
    // Reads pe's data and connects. Every field of `blob` is checked before use.
    // GPUSHMEM_ERR_UNREACHABLE if this transport cannot serve that PE (a sentence says why),
    // another negative status if the data is bad.
    int (*connect)(struct gpsh_transport *self, int pe, const void *blob, size_t bytes);
    // A transport may leave it to the first operation to make the connection that `connect` has
    // checked. This makes it now, on all channels towards `pe`: begun by the first call, with
    // `begin`; further calls return 1 when each of them has stood, 0 while one is being made (other
    // PEs can be begun meanwhile), or a negative status. The peer's program need not do anything.
    // Any thread. NULL: nothing is left to make.
    int (*establish)(struct gpsh_transport *self, int pe, bool begin);
    // One line about how `pe` is reached ("rxe0:1 10.1.0.1 -> 10.1.0.2, mtu 4096"), for the log
    // and `gpushmem info`.
    void (*explain)(struct gpsh_transport *self, int pe, char *line, size_t bytes);

    // Whether kernels that are compiled for it post towards `pe` themselves (kernel_queue). NULL:
    // to nobody.
    bool (*kernels_post)(struct gpsh_transport *self, int pe);

    // One line about this PE's side: its NICs, and how they reach its heap. NULL where there is
    // nothing to tell.
    void (*about)(struct gpsh_transport *self, char *line, size_t bytes);

    // `index` < env.channels, each opened once at most.
    int (*channel_open)(struct gpsh_transport *self, int index, struct gpsh_channel **out);
    void (*channel_close)(struct gpsh_channel *channel); // drops what is still in flight

    int (*post)(struct gpsh_channel *channel, const struct gpsh_op *op); // enum gpsh_post
    // Rings what MORE held back. After it everything posted completes by progress() alone.
    int (*flush)(struct gpsh_channel *channel);
    // Orders what was posted to `pe` (or GPSH_ALL_PES) before what will be. Never waits.
    void (*fence)(struct gpsh_channel *channel, int pe);
    // Drives queues and completions without waiting; returns the number of operations that
    // completed. A failed peer shows in its flow's error, never in the return value.
    int (*progress)(struct gpsh_channel *channel);

    // Carries out what peers have asked of this PE, without waiting. A thread that waits calls it
    // every few microseconds, so that what it waits for comes by its own hands and not by those of
    // a thread of the transport, which would have to run first. True while it is likely that more
    // comes. Any thread, at the same time. NULL: peers need nobody here.
    bool (*serve)(struct gpsh_transport *self);

    // The runtime knows that `pe` is lost, perhaps from elsewhere: what was posted to it fails at
    // the channels' next progress, without waiting for the network to find out. Any thread, between
    // connect and close. NULL: the transport finds out soon enough.
    void (*peer_lost)(struct gpsh_transport *self, int pe);

    // The heap goes on in `chunk`, where it ends. Registers that, and writes what the peers'
    // extended must know, at most 64 bytes. Then extended for each PE; or, if a PE could not,
    // retract. All NULL where it makes no difference. Other threads may post meanwhile, though not
    // to the chunk.
    int (*extend)(struct gpsh_transport *self, const struct gpsh_region *chunk, void *keys);
    int (*extended)(struct gpsh_transport *self, int pe, const void *keys);
    void (*retract)(struct gpsh_transport *self);

    // Asks for kernels' queue `index` (< env.kernel_channels) towards pe, of which
    // env.kernel_queue tells, perhaps from within. Words that are fetched will land in
    // [answers, +bytes), which is registered by buffer_register. Any thread, once the peers are
    // connected. NULL: kernels cannot post to what this transport drives.
    void (*kernel_queue)(struct gpsh_transport *self, int index, int pe, const void *answers,
                         size_t bytes);
    // What an error completion of such a queue, of that rail, means, as a sentence; and tells
    // env.peer_failed.
    void (*kernel_failed)(struct gpsh_transport *self, int pe, int rail, uint32_t syndrome,
                          uint32_t vendor, char *why, size_t bytes);

    // Registers local memory outside the heap, so that it is moved without a copy. NULL where it
    // makes no difference.
    int (*buffer_register)(struct gpsh_transport *self, const struct gpsh_region *region);
    int (*buffer_unregister)(struct gpsh_transport *self, const void *base);
};

// What a peer's connection data says of its job.
struct gpsh_peer_claims {
    uint32_t pe, n_pes, n_channels;
    const uint64_t *region_bytes; // [GPSH_REGIONS]
};
// GPUSHMEM_ERR_PEER_DATA, and a sentence, if that is not this PE's job, or not as this PE has it.
// `network` says whose data it is: "verbs".
int gpsh_peer_claims_check(const struct gpsh_transport_env *env, int pe, const char *network,
                           const struct gpsh_peer_claims *claims);

// Sets channel->flows to the flows of channel `index`, all zero: on the board, or on the heap if
// env->flows is NULL. False if there is no memory. Call gpsh_flows_close in either case.
bool gpsh_flows_open(struct gpsh_channel *channel, const struct gpsh_transport_env *env, int index);
void gpsh_flows_close(struct gpsh_channel *channel);

// Counts an operation that a context of the host has tried to post: `posted` is what post returned.
static inline void gpsh_flow_count(struct gpsh_flow *flow, const struct gpsh_op *op, int posted)
{
    if (posted == GPSH_POST_AGAIN) {
        gpsh_count_add(&flow->retries, 1);
        return;
    }
    uint64_t pending = flow->posted - flow->completed;
    gpsh_count_add(&flow->bytes, op->kind == GPSH_OP_AMO ? op->width : op->bytes);
    if (pending > flow->peak)
        gpsh_count_set(&flow->peak, pending);
}

// The transports of this build, which cmake lists (one for each folder of transports/); NULL at the
// end. gpsh_<name>_ops is declared for each.
extern const struct gpsh_transport_ops *const gpsh_transports[];
const struct gpsh_transport_ops *gpsh_transport_find(const char *name);

#endif
