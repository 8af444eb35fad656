// SPDX-License-Identifier: BSD-3-Clause
// Commands that proxy_read.c did not find to be good at a glance: each is checked one thing after
// the other, and is refused with a sentence, posted, or taken apart.
#include <stdio.h>

#include "core/cpu.h"
#include "core/error.h"
#include "job/job.h"
#include "proxy/proxy.h"

// The ring holds something no producer writes: nothing after it can be trusted.
static void close_ring(struct gpsh_proxy_ring *ring, const char *what, uint64_t value)
{
    int status = gpsh_fail(GPUSHMEM_ERR_RING,
                           "command ring %u, command %llu: %s %llu is not valid; the ring is "
                           "closed (memory overwritten, or "
                           "device code built against another version?)",
                           ring->shared.number, (unsigned long long)ring->parsed, what,
                           (unsigned long long)value);
    ring->closed = true;
    gpsh_count_add(&ring->counters->errors, 1);
    gpsh_proxy_record(ring->thread->proxy, status);
    __atomic_store_n(&ring->shared.status->closed, status, __ATOMIC_RELEASE);
    __atomic_store_n(&ring->shared.status->error, status, __ATOMIC_RELEASE);
}

// Its payload is in words that mean something else in other commands.
static bool is_long_inline(const struct gpushmem_command *c)
{
    return (c->opcode == GPUSHMEM_CMD_PUT_INLINE && c->bytes > 8) ||
           c->opcode == GPUSHMEM_CMD_PUT_SIGNAL_INLINE;
}

// Of a command that carries its payload. False: such a command carries no such number of bytes.
static bool good_carried_bytes(const struct gpushmem_command *c)
{
    uint64_t most =
        c->opcode == GPUSHMEM_CMD_PUT_INLINE ? GPUSHMEM_INLINE_BYTES : GPUSHMEM_SIGNAL_INLINE_BYTES;
    return c->bytes && c->bytes <= most;
}

// What a producer of this version never writes. False: the ring was closed.
static bool well_formed(struct gpsh_proxy_ring *ring, const struct gpushmem_command *c)
{
    const struct gpsh_proxy_env *env = &ring->thread->proxy->env;
    if (c->opcode < GPUSHMEM_CMD_NOP || c->opcode > GPUSHMEM_CMD_LAST)
        return close_ring(ring, "opcode", c->opcode), false;
    if (c->flags & ~GPUSHMEM_CMD_FLAGS)
        return close_ring(ring, "flags", c->flags), false;
    if (c->context)
        return close_ring(ring, "context", c->context), false;
    if ((c->flags & GPUSHMEM_CMD_REPLY) &&
        (c->reply >> 32 >= env->n_replies || !(c->reply & GPUSHMEM_REPLY_NONCE)))
        return close_ring(ring, "reply", c->reply), false;
    if (is_long_inline(c) && c->flags & ~(gpsh_has_signal(c) ? GPUSHMEM_CMD_SIGNAL_ADD : 0))
        return close_ring(ring, "flags", c->flags), false;
    if (!(c->flags & GPUSHMEM_CMD_REPLY) && c->reply && !is_long_inline(c))
        return close_ring(ring, "reply", c->reply), false;
    if ((c->flags & GPUSHMEM_CMD_REPLY_VALUE) && (c->opcode != GPUSHMEM_CMD_GET || c->bytes > 8))
        return close_ring(ring, "size of a value", c->bytes), false;
    if ((c->opcode == GPUSHMEM_CMD_PUT_INLINE || is_long_inline(c)) && !good_carried_bytes(c))
        return close_ring(ring, "inline size", c->bytes), false;
    if (c->opcode == GPUSHMEM_CMD_AMO && c->bytes != 4 && c->bytes != 8)
        return close_ring(ring, "atomic width", c->bytes), false;
    if (c->opcode == GPUSHMEM_CMD_CONTEXT_CLAIM && !(c->flags & GPUSHMEM_CMD_REPLY))
        return close_ring(ring, "flags", c->flags), false;
    if (c->opcode == GPUSHMEM_CMD_AMO && c->extra > GPUSHMEM_AMO_XOR)
        return close_ring(ring, "atomic", c->extra), false;
    for (unsigned i = 0; c->opcode == GPUSHMEM_CMD_FENCE && i < GPUSHMEM_FENCE_RINGS; i++)
        if ((c->extra >> 16 * i & 0xffff) > (uint64_t)gpsh_proxy_shared_rings(ring->thread->proxy))
            return close_ring(ring, "ring of a fence", c->extra >> 16 * i & 0xffff), false;
    if ((c->opcode == GPUSHMEM_CMD_IPUT || c->opcode == GPUSHMEM_CMD_IGET) &&
        (c->extra > 16 || !c->extra))
        return close_ring(ring, "element size", c->extra), false;
    return true;
}

// Bytes from the start of the first to the end of the last of n elements that are `stride` apart,
// or UINT64_MAX if that overflows.
static uint64_t strided_span(uint64_t n, uint64_t stride, uint64_t size)
{
    uint64_t span;
    if (!n)
        return 0;
    if (__builtin_mul_overflow(n - 1, stride, &span) || __builtin_mul_overflow(span, size, &span) ||
        __builtin_add_overflow(span, size, &span))
        return UINT64_MAX;
    return span;
}

static bool is_strided(const struct gpushmem_command *c)
{
    return c->opcode == GPUSHMEM_CMD_IPUT || c->opcode == GPUSHMEM_CMD_IGET;
}

static uint64_t remote_stride(const struct gpushmem_command *c)
{
    return c->opcode == GPUSHMEM_CMD_IPUT ? c->operand : c->compare;
}

static uint64_t local_stride(const struct gpushmem_command *c)
{
    return c->opcode == GPUSHMEM_CMD_IPUT ? c->compare : c->operand;
}

static int bad_range(const struct gpsh_proxy_ring *ring, const struct gpushmem_command *c,
                     uint64_t address, uint64_t bytes)
{
    const struct gpsh_proxy_env *env = &ring->thread->proxy->env;
    return gpsh_fail(GPUSHMEM_ERR_ADDRESS,
                     "a kernel's operation towards PE %d (ring %u, command %llu): [%#llx, +%llu) "
                     "is not in the symmetric heap "
                     "[%p, +%llu)",
                     c->pe, ring->shared.number, (unsigned long long)ring->parsed,
                     (unsigned long long)address, (unsigned long long)bytes, (void *)env->heap,
                     (unsigned long long)gpsh_proxy_heap_bytes(env));
}

static int bad_strides(const struct gpsh_proxy_ring *ring, const struct gpushmem_command *c)
{
    return gpsh_fail(GPUSHMEM_ERR_INVALID,
                     "a kernel's operation (ring %u, command %llu): strides are %lld at PE %d and "
                     "%lld here; they count elements and start at 1",
                     ring->shared.number, (unsigned long long)ring->parsed,
                     (long long)remote_stride(c), c->pe, (long long)local_stride(c));
}

static int bad_local(const struct gpsh_proxy_ring *ring, const struct gpushmem_command *c,
                     uint64_t bytes)
{
    const struct gpsh_proxy_env *env = &ring->thread->proxy->env;
    return gpsh_fail(
        GPUSHMEM_ERR_ADDRESS,
        "a kernel's operation towards PE %d (ring %u, command %llu): the local buffer [%#llx, "
        "+%llu) is no memory "
        "that can be used%s",
        c->pe, ring->shared.number, (unsigned long long)ring->parsed, (unsigned long long)c->local,
        (unsigned long long)bytes,
        env->local_known
            ? "; it may be in the symmetric heap, GPU memory, pinned host memory (cudaHostAlloc, "
              "cudaHostRegister) or a buffer of gpushmem_buffer_register"
            : "");
}

// With GPUSHMEM_CHECK=1: this PE's blocks are those of the other one, too.
static int check_block(const struct gpsh_proxy_ring *ring, const struct gpushmem_command *c,
                       uint64_t address, uint64_t bytes)
{
    const struct gpsh_proxy_env *env = &ring->thread->proxy->env;
    char what[96];
    if (!env->block_check || !bytes)
        return 0;
    snprintf(what, sizeof what, "a kernel's operation towards PE %d (ring %u, command %llu)", c->pe,
             ring->shared.number, (unsigned long long)ring->parsed);
    return env->block_check(what, (const void *)(uintptr_t)address, bytes);
}

// What the program got wrong: fails this command only. 0, or a negative status with a sentence.
static int check_arguments(struct gpsh_proxy_ring *ring, const struct gpushmem_command *c)
{
    const struct gpsh_proxy_env *env = &ring->thread->proxy->env;
    if (c->opcode == GPUSHMEM_CMD_NOP || c->opcode == GPUSHMEM_CMD_CONTEXT_CLAIM ||
        c->opcode == GPUSHMEM_CMD_CONTEXT_FREE ||
        (c->opcode == GPUSHMEM_CMD_FENCE && c->pe == GPSH_ALL_PES))
        return 0;
    if (c->pe < 0 || c->pe >= env->n_pes)
        return gpsh_fail(
            GPUSHMEM_ERR_PE, "a kernel's operation (ring %u, command %llu): PE %d is outside 0..%d",
            ring->shared.number, (unsigned long long)ring->parsed, c->pe, env->n_pes - 1);
    if (c->opcode == GPUSHMEM_CMD_FENCE || c->opcode == GPUSHMEM_CMD_QUIET_PE ||
        c->opcode == GPUSHMEM_CMD_NIC_QUEUE)
        return 0;
    bool strided = is_strided(c);
    if (strided && c->bytes && ((int64_t)c->operand < 1 || (int64_t)c->compare < 1))
        return bad_strides(ring, c);
    uint64_t remote_bytes = strided ? strided_span(c->bytes, remote_stride(c), c->extra) : c->bytes;
    uint64_t local_bytes = strided ? strided_span(c->bytes, local_stride(c), c->extra) : c->bytes;
    if (!gpsh_in_heap(env, c->remote, remote_bytes))
        return bad_range(ring, c, c->remote, remote_bytes);
    if (gpsh_has_signal(c) && (!gpsh_in_heap(env, c->compare, 8) || c->compare % 8))
        return bad_range(ring, c, c->compare, 8);
    if (c->opcode == GPUSHMEM_CMD_AMO && c->remote % c->bytes)
        return gpsh_fail(GPUSHMEM_ERR_ALIGNMENT,
                         "a kernel's atomic on PE %d: address %#llx is not a multiple of %llu",
                         c->pe, (unsigned long long)c->remote, (unsigned long long)c->bytes);
    int status = check_block(ring, c, c->remote, remote_bytes);
    if (!status && gpsh_has_signal(c))
        status = check_block(ring, c, c->compare, 8);
    if (status)
        return status;
    bool has_local = c->opcode == GPUSHMEM_CMD_PUT || c->opcode == GPUSHMEM_CMD_PUT_SIGNAL ||
                     strided ||
                     (c->opcode == GPUSHMEM_CMD_GET && !(c->flags & GPUSHMEM_CMD_REPLY_VALUE));
    return has_local && !gpsh_good_local(env, c->local, local_bytes)
               ? bad_local(ring, c, local_bytes)
               : 0;
}

// The transport that serves the command, or a negative status.
static int route(const struct gpsh_proxy_thread *thread, const struct gpushmem_command *c)
{
    const struct gpsh_peer *peer = &thread->proxy->env.peers[c->pe];
    int error = atomic_load_explicit(&peer->error, memory_order_relaxed);
    if (error)
        return gpsh_fail(error, "PE %d is lost: %.150s", c->pe, peer->reason);
    int transport = gpsh_proxy_transport_of(thread, c);
    if (transport < 0)
        return gpsh_fail(GPUSHMEM_ERR_UNREACHABLE, "no transport reaches PE %d from device code",
                         c->pe);
    return transport;
}

// Posts elements from where the last call stopped. *budget: how many posts this pass may still
// make.
static enum gpsh_step post_strided(struct gpsh_proxy_thread *thread, struct gpsh_proxy_ring *ring,
                                   struct gpsh_inflight *entry, int *budget)
{
    const struct gpushmem_command *c = &ring->current;
    int transport = route(thread, c);
    if (transport < 0 || !c->bytes) {
        gpsh_inflight_finish(entry, transport < 0 ? transport : 0);
        return GPSH_STEP_POSTED;
    }
    const struct gpsh_proxy_env *env = &thread->proxy->env;
    bool whole = c->operand == 1 && c->compare == 1;
    uint64_t steps = whole ? 1 : c->bytes;
    for (; ring->cursor < steps; ring->cursor++) {
        if ((*budget)-- <= 0)
            return GPSH_STEP_MORE_LATER;
        struct gpsh_op op = {
            .kind = c->opcode == GPUSHMEM_CMD_IPUT ? GPSH_OP_PUT : GPSH_OP_GET,
            .flags = GPSH_OP_MORE,
            .region = GPSH_HEAP,
            .pe = c->pe,
            .local = (char *)(uintptr_t)c->local + ring->cursor * local_stride(c) * c->extra,
            .remote = c->remote - (uint64_t)(uintptr_t)env->heap +
                      ring->cursor * remote_stride(c) * c->extra,
            .bytes = whole ? c->bytes * c->extra : c->extra,
        };
        if ((c->flags & GPUSHMEM_CMD_REPLY_SOURCE) && env->host_memory &&
            op.bytes <= GPSH_CAPTURE_BYTES)
            op.flags |= GPSH_OP_CAPTURE;
        int result =
            gpsh_proxy_post_op(thread, ring, entry, transport, &op, ring->cursor + 1 == steps);
        if (result == GPSH_POST_AGAIN)
            return GPSH_STEP_STALLED;
        if (result < 0) {
            gpsh_inflight_finish(entry, result);
            return GPSH_STEP_POSTED;
        }
    }
    return GPSH_STEP_POSTED;
}

// Row "fence, mixed" of docs/memory-model.md: two transports do not order their operations. Then
// the fence stays where it is until what its ring holds before it is complete.
static bool fence_must_wait(const struct gpsh_proxy_env *env, const struct gpsh_proxy_ring *ring,
                            int pe)
{
    if (GPSH_LIKELY(!env->mixed) || ring->retired == ring->parsed)
        return false;
    return pe == GPSH_ALL_PES || gpsh_peer_amo_transport(&env->peers[pe]) != env->peers[pe].data;
}

// Whether commands of another ring below `end` still have to be waited for before a fence of this
// thread. Those of the same thread share its channels, which order what was posted; one transport
// is ordered against another by completion alone.
static bool ring_is_behind(const struct gpsh_proxy_thread *thread,
                           const struct gpsh_proxy_ring *other, uint64_t end)
{
    const struct gpushmem_ring_status *status = other->shared.status;
    if (__atomic_load_n(&status->error, __ATOMIC_RELAXED))
        return false; // nothing that is missing there will ever be sent
    if (other->thread != thread)
        return __atomic_load_n(&status->completed, __ATOMIC_ACQUIRE) < end;
    return (thread->proxy->env.mixed ? other->retired : other->parsed) < end;
}

// A fence waits in its ring for the other rings that it names. The ring that comes first is never
// held up by this fence in turn: gpsh_dev_ring_fence_after says why.
static bool others_are_behind(const struct gpsh_proxy_thread *thread,
                              const struct gpushmem_command *c)
{
    uint64_t end;
    for (unsigned i = 0; GPSH_UNLIKELY(c->extra != 0) && i < GPUSHMEM_FENCE_RINGS; i++) {
        uint32_t ring = gpushmem_fence_ring(c, i, &end);
        if (ring && ring_is_behind(thread, &thread->proxy->rings[ring - 1], end))
            return true;
    }
    return false;
}

static void fence(const struct gpsh_proxy_port *port, int pe)
{
    for (int t = 0; t < GPSH_MAX_TRANSPORTS; t++)
        if (port->channels[t])
            port->channels[t]->ops->fence(port->channels[t], pe);
}

static uint64_t posted_to(const struct gpsh_proxy_port *port, int transport, int pe)
{
    const struct gpsh_channel *channel = transport >= 0 ? port->channels[transport] : NULL;
    return channel ? channel->flows[pe].posted : 0;
}

// Everything posted to the PE so far, on the two flows it may have.
static void begin_quiet(struct gpsh_proxy_thread *thread, struct gpsh_proxy_ring *ring,
                        struct gpsh_inflight *entry)
{
    const struct gpsh_peer *peer = &thread->proxy->env.peers[entry->pe];
    int data = peer->data, amo = gpsh_peer_amo_transport(peer);
    entry->number = posted_to(ring->port, data, entry->pe);
    entry->value = posted_to(ring->port, amo, entry->pe);
    entry->state = GPSH_INFLIGHT_QUIET;
    ring->n_quiets++;
}

static enum gpsh_step post_current(struct gpsh_proxy_thread *thread, struct gpsh_proxy_ring *ring,
                                   int *budget)
{
    struct gpsh_inflight *entry = gpsh_ring_entry(ring, ring->parsed);
    switch (ring->current.opcode) {
    case GPUSHMEM_CMD_NOP: gpsh_inflight_finish(entry, 0); return GPSH_STEP_POSTED;
    case GPUSHMEM_CMD_FENCE:
        if (fence_must_wait(&thread->proxy->env, ring, ring->current.pe) ||
            others_are_behind(thread, &ring->current))
            return GPSH_STEP_MORE_LATER;
        fence(ring->port, ring->current.pe);
        gpsh_inflight_finish(entry, 0);
        return GPSH_STEP_POSTED;
    case GPUSHMEM_CMD_CONTEXT_CLAIM:
        entry->value = gpsh_proxy_claim(thread->proxy);
        gpsh_inflight_finish(entry, 0);
        return GPSH_STEP_POSTED;
    case GPUSHMEM_CMD_CONTEXT_FREE:
        gpsh_inflight_finish(entry, gpsh_proxy_free_own(ring, (uint32_t)ring->current.operand));
        *budget = 0; // what follows is another context's
        return GPSH_STEP_POSTED;
    case GPUSHMEM_CMD_NIC_QUEUE:
        if (thread->proxy->env.kernel_queue)
            thread->proxy->env.kernel_queue(gpsh_proxy_context_number(ring), ring->current.pe);
        gpsh_inflight_finish(entry, 0);
        return GPSH_STEP_POSTED;
    case GPUSHMEM_CMD_QUIET_PE: begin_quiet(thread, ring, entry); return GPSH_STEP_POSTED;
    case GPUSHMEM_CMD_IPUT:
    case GPUSHMEM_CMD_IGET: return post_strided(thread, ring, entry, budget);
    default:
        --*budget;
        return gpsh_proxy_post_single(thread, ring, entry, route(thread, &ring->current));
    }
}

bool gpsh_proxy_take_words(struct gpsh_proxy_thread *thread, struct gpsh_proxy_ring *ring,
                           const struct gpsh_command_words *words, int *budget)
{
    struct gpushmem_command c;
    gpushmem_command_unpack(words->w, &c);
    if (!well_formed(ring, &c))
        return false;
    struct gpsh_inflight *entry = gpsh_proxy_begin(ring, words);
    int status = check_arguments(ring, &ring->current);
    if (status < 0) {
        gpsh_inflight_finish(entry, status);
        return gpsh_ring_took_step(ring, GPSH_STEP_POSTED);
    }
    return gpsh_ring_took_step(ring, post_current(thread, ring, budget));
}

bool gpsh_proxy_go_on(struct gpsh_proxy_thread *thread, struct gpsh_proxy_ring *ring, int *budget)
{
    return gpsh_ring_took_step(ring, post_current(thread, ring, budget));
}
