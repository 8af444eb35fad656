// SPDX-License-Identifier: BSD-3-Clause
// The proxy: threads of the host that read the command rings and post what they find to the
// transports.
//
// One pass over a thread's rings: pump (read commands, post them with the doorbell held back),
// flush (ring, after a few posts for each ring, and for the rest at the end), progress, retire
// (publish what is complete). A pass never waits and takes no lock. A full send queue stalls one
// ring, a dead peer fails its own commands, and a ring that holds something that is no command is
// closed alone.
#ifndef GPSH_PROXY_H
#define GPSH_PROXY_H

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "connect/net.h"
#include "core/count.h"
#include "core/cpu.h"
#include "core/lines.h"
#include "core/thread.h"
#include "job/job.h"
#include "observe/counters.h"
#include "observe/trace.h"
#include "proxy/proxy_clock.h"
#include "proxy/ring.h"

// How far a command got after it was read. It stays in the ring's `inflight` until all earlier ones
// are complete.
enum gpsh_inflight_state {
    GPSH_INFLIGHT_DONE,
    GPSH_INFLIGHT_NUMBER,   // complete when its flow has completed operation `number`
    GPSH_INFLIGHT_CALLBACK, // the transport calls `completion`
    // QUIET_PE: complete when the PE's data flow has completed `number` and its atomics flow
    // `value`
    GPSH_INFLIGHT_QUIET,
};

struct gpsh_inflight {
    struct gpsh_completion completion; // first: the callback finds its entry by it
    struct gpsh_proxy_ring *ring;
    uint64_t index; // of the command
    uint64_t number;
    uint64_t value; // where fetched values land, and inline payload waits
    int32_t pe;
    uint32_t reply; // slot
    uint32_t nonce; // 0: no answer is owed
    uint8_t state;
    uint8_t channel; // NUMBER: which channel's flow
    uint8_t opcode;
    uint8_t flags;
};

// Of a command that carries more than 8 bytes, or a signal beside them, while it is in flight.
struct gpsh_payload {
    char bytes[GPUSHMEM_INLINE_BYTES];
};

// Copies what such a command carries.
static inline void gpsh_carried_copy(char (*bytes)[GPUSHMEM_INLINE_BYTES],
                                     const struct gpushmem_command *c)
{
    const uint64_t put[] = {c->operand, c->local, c->compare, c->reply, c->extra},
                   put_signal[] = {c->local, c->reply, c->extra};
    if (c->opcode == GPUSHMEM_CMD_PUT_INLINE)
        memcpy(*bytes, put, sizeof put);
    else
        memcpy(*bytes, put_signal, sizeof put_signal);
}

// What rings post through: those of a thread its own, that of a context the context's.
struct gpsh_proxy_port {
    struct gpsh_channel *channels[GPSH_MAX_TRANSPORTS]; // by transport index; NULL where not in use
    bool dirty[GPSH_MAX_TRANSPORTS];                    // posted to since the last flush
    bool stalled[GPSH_MAX_TRANSPORTS];                  // found no room since the last poll
    // The channels are there, and belong to the thread that serves the port. Release and acquire
    // hand them over.
    _Atomic bool open;
};

// A context of kernels, which has a ring of its own. Any thread may claim it; the thread that
// serves its ring gives its channels back.
struct gpsh_proxy_context {
    _Alignas(GPSH_LINES) struct gpsh_proxy_port port;
    struct gpsh_proxy_ring *ring;
    _Atomic uint32_t tag; // of whoever has it; 0: free
    _Atomic bool leaving; // is free once all that was posted is complete
};

// Neighbours in an array belong to different threads.
struct gpsh_proxy_ring {
    _Alignas(GPSH_LINES) struct gpushmem_ring shared;
    struct gpsh_proxy_thread *thread;
    struct gpsh_proxy_port *port;
    struct gpsh_proxy_context *context; // NULL: the default context's
    struct gpsh_inflight *inflight;     // [entries]
    struct gpsh_payload *payloads;      // [entries], apart: most commands need none
    uint64_t parsed;                    // commands read and posted
    uint64_t posts;                     // operations accepted by a transport
    uint64_t retired;                   // the prefix of them that is complete
    uint64_t published;                 // value of status->completed
    // one more than the number of the last get into memory that a NIC may have to be flushed for
    uint64_t landing;
    struct gpushmem_command current; // being posted; valid if busy
    uint64_t cursor;                 // strided commands: elements posted
    bool busy;
    bool reusable;                       // strided commands: every source so far may be reused
    bool closed;                         // corrupt: not read any more
    int n_quiets;                        // QUIET entries pending
    struct gpsh_ring_counters *counters; // for others to read; see show_progress
    // What the trace knows of `retired`, and what its lane had written with the last turn: the
    // lower halves.
    uint32_t traced, turn;
};

// A command as it lies in its slot, without the lap bits; gpushmem_command_unpack reads it.
struct gpsh_command_words {
    uint64_t w[GPUSHMEM_COMMAND_WORDS];
};

// How a thread serves a PE. Words and signals may have another agent than data: a put with signal
// goes that agent's way as a whole, so that the two stay in order.
struct gpsh_way {
    // where its heap is mapped here, if that transport leaves it to us; NULL: post to the transport
    char *data_base, *amo_base;
    int8_t data, amo; // transports, -1: none reaches it
};

// What the threads need to know; const while they run.
struct gpsh_proxy_env {
    int n_pes;
    char *heap;          // of this PE
    uint64_t heap_bytes; // grows: read it as gpsh_proxy_heap_bytes does
    bool mixed;          // some PE's data and atomics go by two transports
    // payload is ordinary host memory: small sources may be copied
    bool host_memory;
    // Is that memory outside the heap what a kernel may name as local? NULL: nobody can tell, any
    // memory of the process is.
    bool (*local_known)(uint64_t address, uint64_t bytes);
    // With GPUSHMEM_CHECK=1: is that memory of the heap in an allocated block? 0, or a negative
    // status with a sentence about `what`. NULL: nobody looks.
    int (*block_check)(const char *what, const void *address, size_t bytes);
    const struct gpsh_peer *peers; // [n_pes] who serves whom
    int n_transports;
    struct gpushmem_reply *replies; // [n_replies]
    uint64_t n_replies;
    // Makes what NICs wrote to this PE's GPU visible there: called after a get is complete and
    // before any kernel is told. NULL: such data is visible without a flush.
    void (*flush_writes)(void);
    struct gpushmem_device_control *control; // told of failed peers; may be NULL
    uint64_t spin_ns;                        // an idle thread polls this long before it yields
    bool crowded;                            // more busy threads than CPUs: yield at once when idle
    bool times;                              // account for the threads' time: proxy_clock.h
    // Lists the CPUs near the GPU, as the kernel writes them: threads without a CPU of their own
    // run on those of them that the process may use. NULL: anywhere.
    const char *near_cpus_file;
    uint64_t nap_ns; // how long an idle thread that nobody wakes sleeps
    // Kernels may run on CPU threads, which make passes while they wait.
    bool helpers;
    // [rings], all zero: where other processes read them. NULL: the proxy has its own
    struct gpsh_ring_counters *counters;
    int n_contexts; // how many of the rings, the last ones, are for contexts of kernels
    // Lends channels, and takes them back; `none_left` tells the program that contexts share.
    bool (*take_channels)(struct gpsh_channel **channels);
    void (*leave_channels)(struct gpsh_channel **channels);
    void (*none_left)(void);
    // A kernel wants a queue towards that PE which it posts to by itself, of its context.
    void (*kernel_queue)(int context, int pe);
    // With helpers: true once kernels on CPU threads are known, which wake a sleeping thread. Until
    // then the rings' producers may be a GPU's, and an idle thread naps. NULL: never.
    const _Atomic bool *wakers;
};

struct gpsh_proxy_thread {
    struct gpsh_proxy *proxy;
    struct gpsh_proxy_port port;    // of the rings that are no context's
    struct gpsh_proxy_port **ports; // [n_ports] that one, and those of contexts whose rings it has
    int n_ports;
    unsigned unrung;       // posts since the last flush
    struct gpsh_way *ways; // [n_pes]
    struct gpsh_proxy_ring **rings;
    int n_rings;
    struct gpsh_proxy_clock clock;
    struct gpsh_trace_lane *trace; // where its turns are recorded; NULL: nowhere
    int cpu;                       // to run on, -1: any near the GPU
    struct gpsh_thread thread;
    _Alignas(GPSH_LINES) uint32_t sleeping; // futex word, see gpushmem_ring.sleeping
    // somebody makes a pass: this thread, or in the emulation a kernel thread that waits
    _Atomic bool busy;
    // after the last pass: something is under way that only polling finishes
    _Atomic bool unfinished;
    _Atomic unsigned helped; // passes made by kernel threads
    unsigned asked;          // how many SIGUSR1s it has answered
    _Atomic bool stop;
};

struct gpsh_proxy {
    struct gpsh_proxy_env env;
    struct gpsh_proxy_thread *threads;
    int n_threads;
    struct gpsh_proxy_ring *rings;
    struct gpsh_ring_counters *counters; // [n_rings], if the env has none
    int n_rings;
    struct gpsh_proxy_context *contexts; // [env.n_contexts], of the last rings
    _Atomic uint32_t last_tag;
    const struct gpsh_ring_set *set;
    pthread_mutex_t heads_lock; // of the set's place for heads
    pthread_mutex_t error_lock;
    _Atomic int error; // 0, or the first failure not yet reported to the program
    char error_text[GPSH_ERROR_BYTES];
};

// Makes the threads' and rings' state: ring i belongs to thread i mod n_threads. The set must
// outlive the proxy. Channels are filled in by the caller (proxy->threads[i].port.channels) before
// gpsh_proxy_start.
int gpsh_proxy_create(const struct gpsh_proxy_env *env, int n_threads, struct gpsh_proxy **out);
int gpsh_proxy_attach(struct gpsh_proxy *proxy, const struct gpsh_ring_set *set);
int gpsh_proxy_start(struct gpsh_proxy *proxy);
void gpsh_proxy_stop(struct gpsh_proxy *proxy);    // joins the threads; what is in flight stays so
void gpsh_proxy_destroy(struct gpsh_proxy *proxy); // NULL is legal

// Looks up who serves which PE, once the threads' channels are filled in. gpsh_proxy_start does it;
// for passes without threads.
void gpsh_proxy_choose_ways(struct gpsh_proxy *proxy);

// One pass of one thread; returns how much happened (0: idle). The threads call it, and tests
// without threads.
int gpsh_proxy_step(struct gpsh_proxy_thread *thread);

// proxy_quiet.c. Writes to heads[0 .. n_rings - 1] (at most GPSH_MAX_RINGS) how many commands have
// been reserved in each ring so far. They include all commands of kernels that have ended, and
// those are written, too. Returns 0, or the negative status of the GPU's driver. Any thread.
int gpsh_proxy_heads(struct gpsh_proxy *proxy, uint64_t *heads);
// For the rings of one context (ring.h), or of all: true if the commands below heads[i] are
// complete in each ring i of them that goes on; nothing more completes in a closed one. *error: the
// first closed ring's status, or 0.
bool gpsh_proxy_reached(const struct gpsh_proxy *proxy, int number, const uint64_t *heads,
                        int *error);
// Waits until all commands that were reserved in these rings before the call are complete, and for
// no later ones: it ends while kernels go on. *closed: as *error above. Fails if
// GPUSHMEM_WAIT_TIMEOUT_MS runs out, or if the GPU's context died, since then reserved commands are
// never written.
int gpsh_proxy_quiet(struct gpsh_proxy *proxy, int number, int *closed);

// Takes the first failure that was not reported yet: its code, with the sentence as this thread's
// last error; 0: none.
int gpsh_proxy_take_error(struct gpsh_proxy *proxy);

// Makes one pass in place of the thread whose word this is, if nobody is at it. Kernel threads of
// the emulation call it while they wait: where cores are scarce, an answer then costs no context
// switch.
void gpsh_proxy_help(uint32_t *sleeping);

// Ends a sleep of the thread whose word this is. Producers of the emulation call it.
void gpsh_proxy_wake(uint32_t *sleeping);

// proxy_context.c. A context with a ring and queues of its own: its number (from 1) in the lower
// half, its tag in the upper one; 0: there is none left. Any thread.
uint64_t gpsh_proxy_claim(struct gpsh_proxy *proxy);
// Gives it back; nobody uses it any more. A pass later it is free, and no longer leaving.
// GPUSHMEM_ERR_INVALID: it is not in use by that name. Any thread.
int gpsh_proxy_free(struct gpsh_proxy *proxy, uint32_t number, uint32_t tag);
bool gpsh_proxy_is_leaving(const struct gpsh_proxy *proxy, uint32_t number);

// ---- Between the files of the proxy ----

// proxy_context.c: the same by a command of the ring, at once if nothing is under way there.
int gpsh_proxy_free_own(struct gpsh_proxy_ring *ring, uint32_t tag);
// Ends the contexts of a thread's ports that are leaving, if nothing is under way there; called by
// the thread that makes the pass. leave_all ends all of them, once nobody makes passes.
void gpsh_proxy_leave(struct gpsh_proxy_thread *thread);
void gpsh_proxy_leave_all(struct gpsh_proxy *proxy);

// proxy_place.c: moves the calling proxy thread to where it is to run.
void gpsh_proxy_place(const struct gpsh_proxy_thread *thread);

// proxy_trace.c: a pass of a thread that has a trace. The first pass over a ring, in place of
// gpsh_proxy_pump; and what the thread's rings have retired.
void gpsh_proxy_trace_begin(struct gpsh_proxy_thread *thread);
int gpsh_proxy_trace_pump(struct gpsh_proxy_thread *thread, struct gpsh_proxy_ring *ring);
void gpsh_proxy_trace_retired(struct gpsh_proxy_thread *thread);

// proxy_report.c: what is under way in a ring, as one line; false: nothing. report logs that of all
// rings of a thread. Both are called by the thread that makes the pass.
bool gpsh_proxy_describe(const struct gpsh_proxy_ring *ring, char *line, size_t bytes);
void gpsh_proxy_report(const struct gpsh_proxy_thread *thread);

// proxy_read.c: reads a batch of commands, executes or posts them; returns how many operations were
// posted or commands read.
int gpsh_proxy_pump(struct gpsh_proxy_thread *thread, struct gpsh_proxy_ring *ring);

// With REPLY_SOURCE a source up to this size is copied by the transport rather than waited for.
enum { GPSH_CAPTURE_BYTES = 2048 };

// What happened to the command at hand.
enum gpsh_step { GPSH_STEP_POSTED, GPSH_STEP_STALLED, GPSH_STEP_MORE_LATER };

// proxy_post.c. A single operation that proxy_read.c found to be good, for the transport that
// serves its PE. False: the ring's turn is over, since the command waits for room.
bool gpsh_proxy_post_words(struct gpsh_proxy_thread *thread, struct gpsh_proxy_ring *ring,
                           const struct gpsh_command_words *words);
// Makes the words the command at hand, and prepares its entry in flight.
struct gpsh_inflight *gpsh_proxy_begin(struct gpsh_proxy_ring *ring,
                                       const struct gpsh_command_words *words);
// Posts the command at hand as one operation; `transport`: or the negative status it fails with.
enum gpsh_step gpsh_proxy_post_single(struct gpsh_proxy_thread *thread,
                                      struct gpsh_proxy_ring *ring, struct gpsh_inflight *entry,
                                      int transport);
// Posts one operation of the command at hand; `last`: the command is complete with it. Returns what
// the transport returned.
int gpsh_proxy_post_op(struct gpsh_proxy_thread *thread, struct gpsh_proxy_ring *ring,
                       struct gpsh_inflight *entry, int transport, struct gpsh_op *op, bool last);

// proxy_parse.c. Each works on the command after the last one that was parsed, and returns false if
// the ring's turn is over: the command waits (for room, for order), or the ring was closed.
// Any command: checks it. *budget: how many operations it may post in this pass; what is left.
bool gpsh_proxy_take_words(struct gpsh_proxy_thread *thread, struct gpsh_proxy_ring *ring,
                           const struct gpsh_command_words *words, int *budget);
// The command that waits (ring->busy), once more.
bool gpsh_proxy_go_on(struct gpsh_proxy_thread *thread, struct gpsh_proxy_ring *ring, int *budget);

// proxy_complete.c: publishes the completed prefix; returns how many commands were retired.
int gpsh_proxy_retire(struct gpsh_proxy_thread *thread, struct gpsh_proxy_ring *ring);
// The command is over: answers it if an answer is owed, and records a failure.
void gpsh_inflight_finish(struct gpsh_inflight *entry, int status);
void gpsh_inflight_answer(struct gpsh_inflight *entry, int status);
void gpsh_inflight_init(struct gpsh_inflight *entry, struct gpsh_proxy_ring *ring);
// Keeps the sentence of the calling thread's last gpsh_fail as the proxy's error, if it has none
// yet.
void gpsh_proxy_record(struct gpsh_proxy *proxy, int status);

static inline bool gpsh_port_is_open(const struct gpsh_proxy_port *port)
{
    return atomic_load_explicit(&port->open, memory_order_acquire);
}

// How many rings the default context has; the contexts' come after them.
static inline int gpsh_proxy_shared_rings(const struct gpsh_proxy *proxy)
{
    return proxy->n_rings - proxy->env.n_contexts;
}

// Which context of kernels the ring is of; 0: the default one.
static inline int gpsh_proxy_context_number(const struct gpsh_proxy_ring *ring)
{
    return ring->context ? (int)(ring->context - ring->thread->proxy->contexts) + 1 : 0;
}

static inline uint64_t gpsh_ring_entries(const struct gpsh_proxy_ring *ring)
{
    return (uint64_t)1 << ring->shared.entries_log2;
}

static inline struct gpsh_inflight *gpsh_ring_entry(const struct gpsh_proxy_ring *ring,
                                                    uint64_t index)
{
    return &ring->inflight[index & (gpsh_ring_entries(ring) - 1)];
}

static inline bool gpsh_has_signal(const struct gpushmem_command *c)
{
    return c->opcode == GPUSHMEM_CMD_PUT_SIGNAL || c->opcode == GPUSHMEM_CMD_PUT_SIGNAL_INLINE;
}

// The transport that serves the command, -1: none reaches its PE.
static inline int gpsh_proxy_transport_of(const struct gpsh_proxy_thread *thread,
                                          const struct gpushmem_command *c)
{
    const struct gpsh_way *way = &thread->ways[c->pe];
    return c->opcode == GPUSHMEM_CMD_AMO || gpsh_has_signal(c) ? way->amo : way->data;
}

// After a step of the command at hand. False: the ring's turn is over.
static inline bool gpsh_ring_took_step(struct gpsh_proxy_ring *ring, enum gpsh_step step)
{
    if (GPSH_UNLIKELY(step != GPSH_STEP_POSTED)) {
        gpsh_count_add(&ring->counters->stalls, step == GPSH_STEP_STALLED);
        return false;
    }
    ring->busy = false;
    ring->parsed++;
    return true;
}

// Answers: with the value, or the status if it is negative. Each word says for itself whether it is
// there, so their order does not matter. Release: data that was fetched into memory is visible
// to a thread that has seen the answer; pairs with the acquire of the waiting device thread.
static inline void gpsh_reply_write(struct gpushmem_reply *reply, uint32_t nonce, int status,
                                    uint64_t value)
{
    if (status < 0)
        value = (uint64_t)(int64_t)status;
    __atomic_store_n(&reply->low, gpushmem_reply_pack(nonce, status < 0, (uint32_t)value),
                     __ATOMIC_RELEASE);
    __atomic_store_n(&reply->high, gpushmem_reply_pack(nonce, status < 0, (uint32_t)(value >> 32)),
                     __ATOMIC_RELEASE);
}

// A get whose bytes go to memory, not into the answer.
static inline bool gpsh_lands_in_memory(uint8_t opcode, uint8_t flags)
{
    return opcode == GPUSHMEM_CMD_IGET ||
           (opcode == GPUSHMEM_CMD_GET && !(flags & GPUSHMEM_CMD_REPLY_VALUE));
}

// Makes the data of gets visible to the GPU before the GPU is told that a get is complete: a GPU
// that does not order the writes of NICs might otherwise read old data after the answer. `landing`
// stays 0 where no flush is needed.
static inline void gpsh_ring_land(const struct gpsh_proxy_ring *ring)
{
    if (GPSH_UNLIKELY(ring->landing > ring->published))
        ring->thread->proxy->env.flush_writes();
}

// Tells the device how far the completed prefix reaches; returns by how much it grew.
static inline int gpsh_ring_publish(struct gpsh_proxy_ring *ring)
{
    int retired = (int)(ring->retired - ring->published);
    if (!retired)
        return 0;
    gpsh_ring_land(ring);
    uint64_t pending = ring->parsed - ring->published;
    if (GPSH_UNLIKELY(pending > ring->counters->peak))
        gpsh_count_set(&ring->counters->peak, pending);
    gpsh_count_set(&ring->counters->completed, ring->retired);
    ring->published = ring->retired;
    // Release: fetched data is visible to a thread that has seen the count. Pairs with the acquire
    // of quiet.
    __atomic_store_n(&ring->shared.status->completed, ring->retired, __ATOMIC_RELEASE);
    return retired;
}

static inline uint64_t gpsh_proxy_heap_bytes(const struct gpsh_proxy_env *env)
{
    return __atomic_load_n(&env->heap_bytes, __ATOMIC_RELAXED);
}

static inline bool gpsh_in_heap(const struct gpsh_proxy_env *env, uint64_t address, uint64_t bytes)
{
    uint64_t offset = address - (uint64_t)(uintptr_t)env->heap, size = gpsh_proxy_heap_bytes(env);
    return offset <= size && bytes <= size - offset;
}

// A stray pointer must not be followed, neither by this thread nor by a NIC. Outside the heap only
// what no process has is known to be wrong, and with heaps in GPU memory whatever CUDA does not
// know.
static inline bool gpsh_good_local(const struct gpsh_proxy_env *env, uint64_t address,
                                   uint64_t bytes)
{
    const uint64_t user_end = (uint64_t)1 << 56;
    if (GPSH_LIKELY(gpsh_in_heap(env, address, bytes)) || !bytes)
        return true;
    bool begins_in_heap = address - (uint64_t)(uintptr_t)env->heap < gpsh_proxy_heap_bytes(env);
    if (begins_in_heap || address < 4096 || address >= user_end || bytes >= user_end - address)
        return false;
    return !env->local_known || env->local_known(address, bytes);
}

// The transport that executes atomics and signals on pe's memory; the processor's are executed by
// the one that moves data.
static inline int gpsh_peer_amo_transport(const struct gpsh_peer *peer)
{
    return peer->amo >= 0 ? peer->amo : peer->data;
}

struct gpushmem_proxy_times;
// What the threads' clocks (proxy_clock.h) add up to; any thread may ask.
void gpsh_proxy_times_read(const struct gpsh_proxy *proxy, struct gpushmem_proxy_times *out);
// One line for each thread, to stderr.
void gpsh_proxy_times_print(const struct gpsh_proxy *proxy, int my_pe);

#endif
