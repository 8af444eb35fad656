// SPDX-License-Identifier: BSD-3-Clause
// The short way for commands on memory that is mapped here: read, checked, executed and answered in
// one go, they leave no entry in flight. Whatever is not plainly good (an odd flag, size or
// address, a lost PE, a PE that a NIC serves, a strided command) is left in its slot for
// proxy_parse.c, which refuses or posts it; so nothing is refused here.
#include <string.h>

#include "proxy/proxy.h"
#include "transport/direct.h"

// The words of a command without their lap bits.
struct words {
    uint64_t w[GPUSHMEM_COMMAND_WORDS];
};

enum { HEAD, LOCAL, REMOTE, BYTES, OPERAND, COMPARE, REPLY, EXTRA }; // gpushmem_command_pack

// What may be set in word 0: opcode, PE, bit 63 of the operand, and the flags below for some.
static const uint64_t operand_top = (uint64_t)1 << (56 + OPERAND - 1),
                      plain_head = (uint64_t)0xff << 48 | 0xffffffff;

static inline uint64_t head_flag(enum gpushmem_command_flag flag)
{
    return (uint64_t)flag << 32;
}

// True if command `index` is there; the rules of gpsh_ring_peek.
static inline bool read_words(const struct gpsh_proxy_ring *ring, uint64_t index, struct words *out)
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

// What the commands of a burst are checked against, out of the way of what they store.
struct view {
    const struct gpsh_proxy_thread *thread;
    const struct gpsh_peer *peers;
    uint64_t heap, heap_bytes, n_replies;
    uint32_t n_pes;
    uint32_t pe; // of the command
};

// Where [address, +bytes) of the PE's heap is mapped here, if that transport would serve it; NULL
// if it is not, or not in the heap.
static inline char *direct_target(const struct view *v, int transport, uint64_t address,
                                  uint64_t bytes)
{
    const struct gpsh_channel *channel = transport >= 0 ? v->thread->channels[transport] : NULL;
    uint64_t offset = address - v->heap;
    if (!channel || !channel->direct || offset > v->heap_bytes || bytes > v->heap_bytes - offset)
        return NULL;
    if (atomic_load_explicit(&v->peers[v->pe].error, memory_order_relaxed))
        return NULL;
    char *base = channel->direct[v->pe];
    return base ? base + offset : NULL;
}

static inline bool put_value(char *to, uint64_t value, uint64_t bytes)
{
    if (!to || bytes - 1 > 7)
        return false;
    if (bytes == 8 && !((uintptr_t)to & 7))
        __atomic_store_n((gpsh_view64 *)(void *)to, value,
                         __ATOMIC_RELEASE); // as gpsh_direct_copy, from a register
    else
        gpsh_direct_copy(to, &value, bytes);
    return true;
}

static inline bool amo(char *to, const struct words *c, uint64_t operand, uint64_t *value)
{
    uint64_t width = c->w[BYTES], kind = c->w[EXTRA];
    if (!to || (width != 8 && width != 4) || c->w[REMOTE] & (width - 1) || kind > GPUSHMEM_AMO_XOR)
        return false;
    *value = width == 8 ? gpsh_direct_amo64((uint64_t *)(void *)to, (enum gpsh_amo)kind, operand,
                                            c->w[COMPARE])
                        : gpsh_direct_amo32((uint32_t *)(void *)to, (enum gpsh_amo)kind,
                                            (uint32_t)operand, (uint32_t)c->w[COMPARE]);
    return true;
}

static inline bool put(const struct view *v, char *to, const struct words *c)
{
    if (!to || !gpsh_good_local(&v->thread->proxy->env, c->w[LOCAL], c->w[BYTES]))
        return false;
    gpsh_direct_copy(to, (const void *)(uintptr_t)c->w[LOCAL], c->w[BYTES]);
    return true;
}

static inline bool get(const struct view *v, const char *from, const struct words *c,
                       uint64_t *value)
{
    bool into_answer = c->w[HEAD] & head_flag(GPUSHMEM_CMD_REPLY_VALUE);
    if (!from || (into_answer ? c->w[BYTES] > 8
                              : !gpsh_good_local(&v->thread->proxy->env, c->w[LOCAL], c->w[BYTES])))
        return false;
    gpsh_direct_copy(into_answer ? (void *)value : (void *)(uintptr_t)c->w[LOCAL], from,
                     c->w[BYTES]);
    return true;
}

static inline bool put_signal(const struct view *v, const struct words *c, uint64_t operand)
{
    int transport = gpsh_peer_amo_transport(&v->peers[v->pe]);
    char *word = direct_target(v, transport, c->w[COMPARE], 8);
    if (!word || c->w[COMPARE] % 8 ||
        !put(v, direct_target(v, transport, c->w[REMOTE], c->w[BYTES]), c))
        return false;
    gpsh_direct_signal((uint64_t *)(void *)word, c->w[HEAD] & head_flag(GPUSHMEM_CMD_SIGNAL_ADD),
                       operand);
    return true;
}

// The answer slot of the command, or no answer and nothing in the word for it.
static inline bool good_reply(const struct view *v, const struct words *c)
{
    if (GPSH_LIKELY(!(c->w[HEAD] & head_flag(GPUSHMEM_CMD_REPLY))))
        return !c->w[REPLY] && !(c->w[HEAD] & head_flag(GPUSHMEM_CMD_REPLY_VALUE));
    return c->w[REPLY] >> 32 < v->n_replies && c->w[REPLY] & GPUSHMEM_REPLY_NONCE;
}

// False: left to the long way. `value`: what was fetched.
static inline bool execute(struct view *v, const struct words *c, uint64_t *value)
{
    const uint64_t reply = head_flag(GPUSHMEM_CMD_REPLY),
                   source = head_flag(GPUSHMEM_CMD_REPLY_SOURCE);
    uint64_t head = c->w[HEAD], odd = head & ~(plain_head | operand_top | reply);
    unsigned opcode = (unsigned)(head >> 48) & 0xff;
    if (!good_reply(v, c))
        return false;
    if (opcode == GPUSHMEM_CMD_NOP)
        return !odd;
    v->pe = (uint32_t)head;
    if (v->pe >= v->n_pes)
        return false;
    const struct gpsh_peer *peer = &v->peers[v->pe];
    uint64_t remote = c->w[REMOTE], bytes = c->w[BYTES],
             operand = c->w[OPERAND] | (head & operand_top ? (uint64_t)1 << 63 : 0);
    switch (opcode) {
    case GPUSHMEM_CMD_PUT_INLINE:
        return !odd && put_value(direct_target(v, peer->data, remote, bytes), operand, bytes);
    case GPUSHMEM_CMD_PUT:
        return !(odd & ~source) && put(v, direct_target(v, peer->data, remote, bytes), c);
    case GPUSHMEM_CMD_GET:
        return !(odd & ~head_flag(GPUSHMEM_CMD_REPLY_VALUE)) &&
               get(v, direct_target(v, peer->data, remote, bytes), c, value);
    case GPUSHMEM_CMD_AMO:
        return !odd && amo(direct_target(v, gpsh_peer_amo_transport(peer), remote, bytes), c,
                           operand, value);
    case GPUSHMEM_CMD_PUT_SIGNAL:
        return !(odd & ~(source | head_flag(GPUSHMEM_CMD_SIGNAL_ADD))) && put_signal(v, c, operand);
    default: return false;
    }
}

int gpsh_proxy_pump_direct(struct gpsh_proxy_thread *thread, struct gpsh_proxy_ring *ring,
                           int budget)
{
    const struct gpsh_proxy_env *env = &thread->proxy->env;
    struct view v = {.thread = thread,
                     .peers = env->peers,
                     .heap = (uint64_t)(uintptr_t)env->heap,
                     .heap_bytes = env->heap_bytes,
                     .n_replies = env->n_replies,
                     .n_pes = (uint32_t)env->n_pes};
    uint64_t first = ring->parsed, at = first, posts = 0;
    // While something is in flight its entry comes before ours, and ours must say that they are
    // done.
    bool behind = ring->retired < first;
    uint64_t room = gpsh_ring_entries(ring) - (first - ring->retired);
    uint64_t end = first + (room < (uint64_t)budget ? room : (uint64_t)budget);
    struct words c;
    for (uint64_t value = 0; at < end && read_words(ring, at, &c) && execute(&v, &c, &value);
         at++, value = 0) {
        posts += (c.w[HEAD] >> 48 & 0xff) != GPUSHMEM_CMD_NOP;
        if (c.w[HEAD] & head_flag(GPUSHMEM_CMD_REPLY))
            gpsh_reply_write(&env->replies[c.w[REPLY] >> 32],
                             (uint32_t)c.w[REPLY] & GPUSHMEM_REPLY_NONCE, 0, value);
        if (behind)
            gpsh_ring_entry(ring, at)->state = GPSH_INFLIGHT_DONE;
    }
    ring->parsed = at;
    if (!behind)
        ring->retired = at;
    ring->counters.commands += at - first;
    ring->counters.posts += posts;
    return (int)(at - first);
}
