// SPDX-License-Identifier: BSD-3-Clause
// Reads a ring. Each command is read and checked once. One on memory that is mapped here is
// executed and answered on the spot, and leaves no entry in flight; one that a NIC serves is
// posted by proxy_post.c. The rest goes to proxy_parse.c: commands that are not plainly good (an
// odd flag, size or address, a lost PE), and those that are more than one operation. There they are
// refused with a sentence, posted, or taken apart.
#include <string.h>

#include "core/cpu.h"
#include "job/job.h"
#include "proxy/proxy.h"
#include "transport/direct.h"

// Commands read (or elements of strided ones posted) per ring and pass: enough to fill a doorbell's
// batch, few enough that the other rings and the completions get their turn.
enum { BATCH = 64 };

enum { HEAD, LOCAL, REMOTE, BYTES, OPERAND, COMPARE, REPLY, EXTRA }; // gpushmem_command_pack

// What may be set in word 0: opcode, PE, bit 63 of the operand, and the flags below for some.
static const uint64_t operand_top = (uint64_t)1 << (56 + OPERAND - 1),
                      plain_head = (uint64_t)0xff << 48 | 0xffffffff;

static inline uint64_t head_flag(enum gpushmem_command_flag flag)
{
    return (uint64_t)flag << 32;
}

// True if command `index` is there; the rules of gpsh_ring_peek.
static inline bool read_words(const struct gpsh_proxy_ring *ring, uint64_t index,
                              struct gpsh_command_words *out)
{
    const uint64_t *slot =
        ring->shared.slots + (index & (gpsh_ring_entries(ring) - 1)) * GPUSHMEM_COMMAND_WORDS;
    uint64_t lap = gpushmem_ring_lap(index, ring->shared.entries_log2) << GPUSHMEM_LAP_BIT, stale;
    stale = out->w[0] = __atomic_load_n(&slot[0], __ATOMIC_ACQUIRE) ^ lap;
    if (stale >> GPUSHMEM_LAP_BIT)
        return false;
    for (int i = 1; i < GPUSHMEM_COMMAND_WORDS; i++)
        stale |= out->w[i] = __atomic_load_n(&slot[i], __ATOMIC_RELAXED) ^ lap;
    return !(stale >> GPUSHMEM_LAP_BIT);
}

// For what two loops share, each with its own copy.
#define ALWAYS_INLINE inline __attribute__((always_inline))

// What the commands of a burst are checked against, out of the way of what they store.
struct view {
    const struct gpsh_proxy_env *env;
    const struct gpsh_peer *peers;
    const struct gpsh_way *ways;
    uint64_t heap, heap_bytes, n_replies;
    uint32_t n_pes;
};

// What becomes of a command.
enum fate {
    FATE_DONE, // executed
    FATE_POST, // checked, to be posted
    FATE_LONG, // to be looked at by proxy_parse.c
};

static inline bool in_heap(const struct view *v, uint64_t address, uint64_t bytes)
{
    uint64_t offset = address - v->heap;
    return offset <= v->heap_bytes && bytes <= v->heap_bytes - offset;
}

// Where [address, +bytes) of a PE's heap is served.
struct target {
    char *base; // of the PE's heap, if it is mapped here
    uint64_t offset;
    bool good; // in the heap, of a PE that is not lost
};

static ALWAYS_INLINE struct target target(const struct view *v, uint32_t pe, bool atomic,
                                          uint64_t address, uint64_t bytes)
{
    const struct gpsh_way *way = &v->ways[pe];
    return (struct target){.base = atomic ? way->amo_base : way->data_base,
                           .offset = address - v->heap,
                           .good =
                               in_heap(v, address, bytes) &&
                               !atomic_load_explicit(&v->peers[pe].error, memory_order_relaxed)};
}

// Of a command that is not executed here.
static ALWAYS_INLINE enum fate not_here(const struct view *v, uint32_t pe, bool atomic,
                                        struct target t, bool good)
{
    const struct gpsh_way *way = &v->ways[pe];
    return good && !t.base && (atomic ? way->amo : way->data) >= 0 ? FATE_POST : FATE_LONG;
}

static ALWAYS_INLINE enum fate put_value(const struct view *v, uint32_t pe,
                                         const struct gpsh_command_words *c, uint64_t operand)
{
    uint64_t bytes = c->w[BYTES];
    struct target t = target(v, pe, false, c->w[REMOTE], bytes);
    bool good = t.good && bytes - 1 <= 7;
    if (!t.base || !good)
        return not_here(v, pe, false, t, good);
    char *to = t.base + t.offset;
    if (bytes == 8 && !((uintptr_t)to & 7))
        __atomic_store_n((gpsh_view64 *)(void *)to, operand,
                         __ATOMIC_RELEASE); // as gpsh_direct_copy, from a register
    else
        gpsh_direct_copy(to, &operand, bytes);
    return FATE_DONE;
}

static ALWAYS_INLINE enum fate amo(const struct view *v, uint32_t pe,
                                   const struct gpsh_command_words *c, uint64_t operand,
                                   uint64_t *value)
{
    uint64_t width = c->w[BYTES], kind = c->w[EXTRA];
    struct target t = target(v, pe, true, c->w[REMOTE], width);
    bool good = t.good && (width == 8 || width == 4) && !(c->w[REMOTE] & (width - 1)) &&
                kind <= GPUSHMEM_AMO_XOR;
    if (!t.base || !good)
        return not_here(v, pe, true, t, good);
    void *to = t.base + t.offset;
    *value = width == 8
                 ? gpsh_direct_amo64((uint64_t *)to, (enum gpsh_amo)kind, operand, c->w[COMPARE])
                 : gpsh_direct_amo32((uint32_t *)to, (enum gpsh_amo)kind, (uint32_t)operand,
                                     (uint32_t)c->w[COMPARE]);
    return FATE_DONE;
}

static ALWAYS_INLINE enum fate put(const struct view *v, uint32_t pe,
                                   const struct gpsh_command_words *c, bool atomic)
{
    struct target t = target(v, pe, atomic, c->w[REMOTE], c->w[BYTES]);
    bool good = t.good && gpsh_good_local(v->env, c->w[LOCAL], c->w[BYTES]);
    if (!t.base || !good)
        return not_here(v, pe, atomic, t, good);
    gpsh_direct_copy(t.base + t.offset, (const void *)(uintptr_t)c->w[LOCAL], c->w[BYTES]);
    return FATE_DONE;
}

static ALWAYS_INLINE enum fate get(const struct view *v, uint32_t pe,
                                   const struct gpsh_command_words *c, uint64_t *value)
{
    bool into_answer = c->w[HEAD] & head_flag(GPUSHMEM_CMD_REPLY_VALUE);
    struct target t = target(v, pe, false, c->w[REMOTE], c->w[BYTES]);
    bool good = t.good && (into_answer ? c->w[BYTES] <= 8
                                       : gpsh_good_local(v->env, c->w[LOCAL], c->w[BYTES]));
    if (!t.base || !good)
        return not_here(v, pe, false, t, good);
    gpsh_direct_copy(into_answer ? (void *)value : (void *)(uintptr_t)c->w[LOCAL],
                     t.base + t.offset, c->w[BYTES]);
    return FATE_DONE;
}

static ALWAYS_INLINE enum fate put_signal(const struct view *v, uint32_t pe,
                                          const struct gpsh_command_words *c, uint64_t operand)
{
    uint64_t word = c->w[COMPARE];
    if (!in_heap(v, word, 8) || word % 8)
        return FATE_LONG;
    enum fate fate = put(v, pe, c, true);
    if (fate == FATE_DONE)
        gpsh_direct_signal((uint64_t *)(void *)(v->ways[pe].amo_base + (word - v->heap)),
                           c->w[HEAD] & head_flag(GPUSHMEM_CMD_SIGNAL_ADD), operand);
    return fate;
}

// A command whose payload is in words that mean something else in others. Apart, and with a copy of
// the words, so that the loop over the others keeps its registers.
static __attribute__((noinline)) enum fate carried(const struct gpsh_way *ways,
                                                   const struct gpsh_peer *peers, uint64_t heap,
                                                   uint64_t heap_bytes, uint32_t n_pes,
                                                   struct gpsh_command_words words)
{
    const struct view v = {
        .ways = ways, .peers = peers, .heap = heap, .heap_bytes = heap_bytes, .n_pes = n_pes};
    struct gpushmem_command c;
    char payload[GPUSHMEM_INLINE_BYTES];
    gpushmem_command_unpack(words.w, &c);
    bool put = c.opcode == GPUSHMEM_CMD_PUT_INLINE,
         signal = c.opcode == GPUSHMEM_CMD_PUT_SIGNAL_INLINE;
    uint64_t most = put ? GPUSHMEM_INLINE_BYTES : GPUSHMEM_SIGNAL_INLINE_BYTES;
    uint8_t known = signal ? GPUSHMEM_CMD_SIGNAL_ADD : 0;
    if ((!put && !signal) || c.context || c.flags & ~known || (uint32_t)c.pe >= n_pes ||
        c.bytes - 1 >= most || (put && c.bytes <= 8))
        return FATE_LONG;
    struct target t = target(&v, (uint32_t)c.pe, signal, c.remote, c.bytes);
    bool good = t.good && (!signal || (in_heap(&v, c.compare, 8) && c.compare % 8 == 0));
    if (!t.base || !good)
        return not_here(&v, (uint32_t)c.pe, signal, t, good);
    gpsh_carried_copy(&payload, &c);
    gpsh_direct_copy(t.base + t.offset, payload, c.bytes);
    if (signal)
        gpsh_direct_signal((uint64_t *)(void *)(t.base + (c.compare - heap)), c.flags, c.operand);
    return FATE_DONE;
}

static ALWAYS_INLINE enum fate carried_of(const struct view *v, const struct gpsh_command_words *c)
{
    return carried(v->ways, v->peers, v->heap, v->heap_bytes, v->n_pes, *c);
}

// The answer slot of the command, or no answer and nothing in the word for it.
static inline bool good_reply(const struct view *v, const struct gpsh_command_words *c)
{
    if (GPSH_LIKELY(!(c->w[HEAD] & head_flag(GPUSHMEM_CMD_REPLY))))
        return !c->w[REPLY] && !(c->w[HEAD] & head_flag(GPUSHMEM_CMD_REPLY_VALUE));
    return c->w[REPLY] >> 32 < v->n_replies && c->w[REPLY] & GPUSHMEM_REPLY_NONCE;
}

// Checks the command, and executes it where the memory is mapped. `value`: what was fetched.
static ALWAYS_INLINE enum fate execute(const struct view *v, const struct gpsh_command_words *c,
                                       uint64_t *value)
{
    const uint64_t reply = head_flag(GPUSHMEM_CMD_REPLY),
                   source = head_flag(GPUSHMEM_CMD_REPLY_SOURCE);
    uint64_t head = c->w[HEAD], odd = head & ~(plain_head | operand_top | reply);
    unsigned opcode = (unsigned)(head >> 48) & 0xff;
    if (GPSH_UNLIKELY(!good_reply(v, c)))
        return carried_of(v, c);
    if (opcode == GPUSHMEM_CMD_NOP)
        return odd ? FATE_LONG : FATE_DONE;
    uint32_t pe = (uint32_t)head;
    if (pe >= v->n_pes)
        return FATE_LONG;
    uint64_t operand = c->w[OPERAND] | (head & operand_top ? (uint64_t)1 << 63 : 0);
    switch (opcode) {
    case GPUSHMEM_CMD_PUT_INLINE:
        return odd || c->w[BYTES] > 8 ? carried_of(v, c) : put_value(v, pe, c, operand);
    case GPUSHMEM_CMD_PUT: return odd & ~source ? FATE_LONG : put(v, pe, c, false);
    case GPUSHMEM_CMD_GET:
        return odd & ~head_flag(GPUSHMEM_CMD_REPLY_VALUE) ? FATE_LONG : get(v, pe, c, value);
    case GPUSHMEM_CMD_AMO: return odd ? FATE_LONG : amo(v, pe, c, operand, value);
    case GPUSHMEM_CMD_PUT_SIGNAL:
        return odd & ~(source | head_flag(GPUSHMEM_CMD_SIGNAL_ADD)) ? FATE_LONG
                                                                    : put_signal(v, pe, c, operand);
    case GPUSHMEM_CMD_PUT_SIGNAL_INLINE: return carried_of(v, c);
    default: return FATE_LONG;
    }
}

// The command was executed: its answer, if one is owed.
static inline void answer(const struct view *v, const struct gpsh_command_words *c, uint64_t value)
{
    if (c->w[HEAD] & head_flag(GPUSHMEM_CMD_REPLY))
        gpsh_reply_write(&v->env->replies[c->w[REPLY] >> 32],
                         (uint32_t)c->w[REPLY] & GPUSHMEM_REPLY_NONCE, 0, value);
}

static inline bool is_operation(const struct gpsh_command_words *c)
{
    return (c->w[HEAD] >> 48 & 0xff) != GPUSHMEM_CMD_NOP;
}

// Executes what is there up to command `end`, to the first one that is not executed here: which is
// in *out then, and what becomes of it is returned, or FATE_DONE if none is there. Apart from its
// caller, so that the loop has all registers to itself.
static __attribute__((noinline)) enum fate execute_burst(const struct view *view,
                                                         struct gpsh_proxy_ring *ring, uint64_t end,
                                                         struct gpsh_command_words *out)
{
    const struct view v = *view;
    struct gpsh_command_words c;
    uint64_t at = ring->parsed, first = at, posts = 0;
    // While something is in flight its entry comes before ours, and ours must say that they are
    // done.
    bool behind = ring->retired < first;
    enum fate fate = FATE_DONE;
    for (uint64_t value = 0; at < end && read_words(ring, at, &c); at++, value = 0) {
        fate = execute(&v, &c, &value);
        if (fate != FATE_DONE) {
            *out = c;
            break;
        }
        posts += is_operation(&c);
        answer(&v, &c, value);
        if (behind)
            gpsh_ring_entry(ring, at)->state = GPSH_INFLIGHT_DONE;
    }
    ring->parsed = at;
    if (!behind)
        ring->retired = at;
    ring->posts += posts;
    return fate;
}

// Hands a command on that is not executed here. False: the ring's turn is over.
static inline bool hand_on(struct gpsh_proxy_thread *thread, struct gpsh_proxy_ring *ring,
                           enum fate fate, const struct gpsh_command_words *c, int *budget)
{
    if (GPSH_UNLIKELY(fate != FATE_POST))
        return gpsh_proxy_take_words(thread, ring, c, budget);
    --*budget;
    return gpsh_proxy_post_words(thread, ring, c);
}

// How many commands may be read: each needs an entry in flight.
static inline uint64_t room(const struct gpsh_proxy_ring *ring, int budget)
{
    uint64_t entries = gpsh_ring_entries(ring) - (ring->parsed - ring->retired);
    return entries < (uint64_t)budget ? entries : (uint64_t)budget;
}

// Reads what is there, at most `budget` commands.
static void read_ring(struct gpsh_proxy_thread *thread, struct gpsh_proxy_ring *ring, int budget)
{
    const struct gpsh_proxy_env *env = &thread->proxy->env;
    const struct view v = {.env = env,
                           .peers = env->peers,
                           .ways = thread->ways,
                           .heap = (uint64_t)(uintptr_t)env->heap,
                           // where blocks are looked up, no command is plainly good
                           .heap_bytes = env->block_check ? 0 : gpsh_proxy_heap_bytes(env),
                           .n_replies = env->n_replies,
                           .n_pes = (uint32_t)env->n_pes};
    struct gpsh_command_words c;
    while (budget > 0) {
        uint64_t first = ring->parsed, value = 0;
        enum fate fate = execute_burst(&v, ring, first + room(ring, budget), &c);
        budget -= (int)(ring->parsed - first);
        if (fate == FATE_DONE)
            return;
        do { // what follows such a command is often another one
            if (!hand_on(thread, ring, fate, &c, &budget) || budget <= 0 || !room(ring, budget) ||
                !read_words(ring, ring->parsed, &c))
                return;
            fate = execute(&v, &c, &value);
        } while (fate != FATE_DONE);
        answer(&v, &c, value);
        gpsh_ring_entry(ring, ring->parsed++)->state = GPSH_INFLIGHT_DONE;
        ring->posts += is_operation(&c);
        budget--;
    }
}

// Once for each batch rather than for each command. One that waits for room has been read as well.
static inline void show_progress(struct gpsh_proxy_ring *ring)
{
    gpsh_count_set(&ring->counters->commands, ring->parsed + ring->busy);
    gpsh_count_set(&ring->counters->posts, ring->posts);
}

int gpsh_proxy_pump(struct gpsh_proxy_thread *thread, struct gpsh_proxy_ring *ring)
{
    uint64_t first = ring->parsed, posts = ring->posts;
    bool waited = ring->busy;
    int budget = BATCH;
    if (!ring->busy || gpsh_proxy_go_on(thread, ring, &budget))
        if (!ring->closed && budget > 0)
            read_ring(thread, ring, budget);
    if (ring->parsed == first) {
        if (GPSH_UNLIKELY(ring->busy != waited || ring->posts != posts))
            show_progress(ring);
        return (int)(ring->posts - posts);
    }
    show_progress(ring);
    gpsh_count_add(&ring->counters->batches, 1);
    // The commands up to here were copied: their slots may be written again. Pairs with the
    // producer's acquire of consumed.
    __atomic_store_n(&ring->shared.status->consumed, ring->parsed, __ATOMIC_RELEASE);
    gpsh_ring_publish(ring); // what is complete already need not wait for the other rings' turns
    return (int)(ring->parsed - first);
}
