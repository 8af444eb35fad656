// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE
// Atomics on 4 bytes where the target's NIC changes 8 at a time and is atomic to itself only
// (IBV_ATOMIC_HCA): between its reading and its writing, a put or a store to the other 4 bytes
// would be lost. So these take a lock of the target's, read 4 bytes, and write 4 bytes. Two trips,
// if the lock is free:
//   1. compare-and-swap of the lock from 0 to this PE's number, then a read, whose value counts
//   only
//      if the swap succeeded. Atomics and reads of a queue pair are executed in order (InfiniBand
//      specification, volume 1, section 10.8.3.3).
//   2. the write, then a compare-and-swap of the lock back to 0
// The locks are words of the target's control region, chosen by the address. A PE that holds one
// goes on as soon as the first trip is over: the poster has been told to drive the channel
// (GPSH_POST_URGENT). Locks of a PE that was lost are taken from it. One that lives may keep a
// lock, as its connection failed in between: nobody may take that, for what it has sent may still
// arrive.
#include <stdio.h>

#include "core/clock.h"
#include "transports/verbs/post/verbs_posting.h"

// Perhaps only the way from here to the owner was lost: then it is about to let go.
enum { BYTES = 4, PATIENCE_NS = 100000000, LEAST_NS = 1000000000 };

bool gpsh_verbs_lock_needed(const struct verbs_flow *flow, const struct verbs_slot *slot)
{
    return slot->width == BYTES && flow->locks;
}

// Neighbours in memory have different locks.
void gpsh_verbs_lock_begin(struct verbs_flow *flow, struct verbs_loop *loop)
{
    const struct verbs_slot *slot = &flow->slots[loop->slot];
    loop->lock =
        flow->locks + slot->remote / BYTES % flow->channel->verbs->env.n_locks * sizeof(uint64_t);
    loop->guess = 0;
    loop->locked = false;
}

static uint64_t own_mark(const struct verbs_flow *flow)
{
    return (uint64_t)flow->channel->verbs->env.my_pe + 1;
}

static void swap_lock(struct verbs_flow *flow, int index, uint64_t from, uint64_t to, uint8_t kind)
{
    const struct verbs_loop *loop = &flow->loops[index];
    struct ibv_send_wr *wr =
        gpsh_verbs_atomic_request(flow, &flow->slots[loop->slot], GPSH_CONTROL, loop->lock, kind);
    wr->opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
    wr->wr.atomic.compare_add = from;
    wr->wr.atomic.swap = to;
    verbs_lane_last(verbs_agent_lane(flow))->loop = (uint8_t)index;
}

static void post_lock(struct verbs_flow *flow, int index)
{
    struct verbs_slot *slot = &flow->slots[flow->loops[index].slot];
    swap_lock(flow, index, flow->loops[index].guess, own_mark(flow), WQE_LOCK);
    gpsh_verbs_read_word(verbs_agent_lane(flow), slot, WQE_LOOP);
    verbs_lane_last(verbs_agent_lane(flow))->loop = (uint8_t)index;
}

static bool post_unlock(struct verbs_flow *flow, int index)
{
    const struct verbs_loop *loop = &flow->loops[index];
    struct verbs_slot *slot = &flow->slots[loop->slot];
    uint32_t value = (uint32_t)gpsh_verbs_amo_apply(slot, loop->before);
    bool changes = slot->amo != GPSH_AMO_CSWAP || loop->before == (uint32_t)slot->compare;
    if (changes && !gpsh_verbs_write_word(flow, slot, slot->region, slot->remote, &value, BYTES))
        return false;
    swap_lock(flow, index, own_mark(flow), 0, WQE_LOOP);
    return true;
}

// The next step; false if there is no room for it now.
bool gpsh_verbs_lock_post(struct verbs_flow *flow, int index)
{
    if (!gpsh_verbs_lane_reserve(verbs_agent_lane(flow), 2))
        return false;
    if (flow->loops[index].locked)
        return post_unlock(flow, index);
    post_lock(flow, index);
    return true;
}

void gpsh_verbs_lock_seen(struct verbs_flow *flow, int index, uint64_t owner)
{
    struct verbs_loop *loop = &flow->loops[index];
    if (loop->owner != owner)
        loop->owned_ns = loop->orphaned_ns = 0;
    loop->owner = owner;
}

static bool is_lost(const struct verbs_flow *flow, uint64_t owner)
{
    const struct gpsh_transport_env *env = &flow->channel->verbs->env;
    return owner && owner <= (uint64_t)env->n_pes && env->peer_lost &&
           env->peer_lost(env->arg, (int)(owner - 1));
}

// Whether the lock has been a lost PE's each time, for long enough.
static bool is_orphaned(const struct verbs_flow *flow, struct verbs_loop *loop)
{
    if (!is_lost(flow, loop->owner))
        return false;
    uint64_t now = gpsh_clock_ns();
    if (!loop->orphaned_ns)
        loop->orphaned_ns = now;
    return now - loop->orphaned_ns >= PATIENCE_NS;
}

// ---- A lock that its owner keeps ----

// The word that remembers it, and its bit there; false: none does.
static bool memory_of(const struct verbs_flow *flow, const struct verbs_loop *loop,
                      _Atomic uint64_t **word, uint64_t *bit)
{
    uint64_t lock = (loop->lock - flow->locks) / sizeof(uint64_t);
    if (lock >= VERBS_KEPT_LOCKS)
        return false;
    *word = &flow->peer->kept_locks[lock / 64];
    *bit = UINT64_C(1) << lock % 64;
    return true;
}

static bool is_remembered(const struct verbs_flow *flow, const struct verbs_loop *loop)
{
    _Atomic uint64_t *word;
    uint64_t bit;
    return memory_of(flow, loop, &word, &bit) && atomic_load(word) & bit;
}

// Returns whether that is new.
static bool remember(const struct verbs_flow *flow, const struct verbs_loop *loop, bool kept)
{
    _Atomic uint64_t *word;
    uint64_t bit;
    if (!memory_of(flow, loop, &word, &bit) || !(atomic_load(word) & bit) == !kept)
        return false;
    return kept ? !(atomic_fetch_or(word, bit) & bit) : atomic_fetch_and(word, ~bit) & bit;
}

// An owner whose NIC works, and who drives its channel, lets go before its NIC would have given up:
// so long the first operation waits, or as long as its caller does. The next ones look again, for
// the owner may be another one each time.
static uint64_t patience_ns(const struct verbs_flow *flow, const struct verbs_loop *loop)
{
    const struct gpsh_verbs *verbs = flow->channel->verbs;
    const uint64_t limit_ns = (uint64_t)verbs->env.settings->wait_timeout_ms * 1000000,
                   most_ns = gpsh_verbs_patience_ns(verbs);
    if (is_remembered(flow, loop))
        return PATIENCE_NS;
    if (!limit_ns || limit_ns > most_ns)
        return most_ns;
    return limit_ns > LEAST_NS ? limit_ns : LEAST_NS;
}

// Whether the lock has been the same living PE's for so long that the operation fails. One that is
// stopped will let go.
static bool is_kept(const struct verbs_flow *flow, struct verbs_loop *loop)
{
    uint64_t now = gpsh_clock_ns();
    if (!loop->owner || loop->orphaned_ns || !loop->owned_ns) {
        loop->owned_ns = now;
        return false;
    }
    if (now - loop->owned_ns < patience_ns(flow, loop))
        return false;
    const struct gpsh_transport_env *env = &flow->channel->verbs->env;
    if (loop->owner > (uint64_t)env->n_pes || !gpsh_env_peer_stopped(env, (int)loop->owner - 1))
        return true;
    loop->owned_ns = now;
    return false;
}

static void deny(struct verbs_flow *flow, int index)
{
    struct verbs_loop *loop = &flow->loops[index];
    struct verbs_slot *slot = &flow->slots[loop->slot];
    char why[320];
    snprintf(why, sizeof why,
             "a 4-byte atomic on PE %d is not executed: PE %llu keeps the lock for it, and has "
             "lost its connection to PE %d, or does not drive the context by which it took it; "
             "those that need this lock fail from now on",
             flow->pe, (unsigned long long)loop->owner - 1, flow->pe);
    flow->loops_used &= ~(1u << index);
    slot->parts--;
    if (remember(flow, loop, true))
        GPSH_LOG(WARN, "verbs", "%s", why);
    if (slot->completion)
        slot->repeat = VERBS_REPEAT_DENIED;
    else // nobody else would hear of it
        gpsh_verbs_flow_fail(flow, GPUSHMEM_ERR_TRANSPORT, why);
}

void gpsh_verbs_lock_retire(struct verbs_flow *flow, int index, uint64_t value)
{
    struct verbs_loop *loop = &flow->loops[index];
    if (loop->locked) {
        gpsh_verbs_loop_finish(flow, index, loop->before);
        return;
    }
    loop->locked = loop->owner == loop->guess;
    if (loop->locked) {
        loop->before = (uint32_t)value;
        remember(flow, loop, false);
    } else {
        loop->guess = is_orphaned(flow, loop) ? loop->owner : 0;
        flow->channel->stats.cas_retries++;
        if (is_kept(flow, loop)) {
            deny(flow, index);
            return;
        }
    }
    flow->loops_ready |= 1u << index;
    gpsh_verbs_flow_activate(flow);
}
