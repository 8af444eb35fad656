// SPDX-License-Identifier: BSD-3-Clause
// From a command that was checked to an operation that a transport has accepted: its entry in
// flight, the operation, the post. proxy_read.c posts what it found to be good; proxy_parse.c what
// took longer to check, and the elements of strided commands.
#include "core/cpu.h"
#include "proxy/proxy.h"

// Keeps what a long inline command carries until the command is complete.
static char *keep_payload(const struct gpsh_inflight *entry, const struct gpushmem_command *c)
{
    struct gpsh_payload *kept =
        &entry->ring->payloads[entry->index & (gpsh_ring_entries(entry->ring) - 1)];
    gpsh_carried_copy(&kept->bytes, c);
    return kept->bytes;
}

static struct gpsh_op make_op(const struct gpsh_proxy_env *env, const struct gpushmem_command *c,
                              struct gpsh_inflight *entry)
{
    struct gpsh_op op = {
        .flags = GPSH_OP_MORE | GPSH_OP_KEPT,
        .region = GPSH_HEAP,
        .pe = c->pe,
        .local = (char *)(uintptr_t)c->local,
        .remote = c->remote - (uint64_t)(uintptr_t)env->heap,
        .bytes = c->bytes,
        .operand = c->operand,
    };
    switch (c->opcode) {
    case GPUSHMEM_CMD_PUT_INLINE:
        entry->value = c->operand;
        op.local = c->bytes > 8 ? keep_payload(entry, c) : (char *)&entry->value;
        op.flags |= GPSH_OP_LOCAL_HOST;
        break;
    case GPUSHMEM_CMD_GET:
        op.kind = GPSH_OP_GET;
        if (c->flags & GPUSHMEM_CMD_REPLY_VALUE) {
            op.local = (char *)&entry->value;
            op.flags |= GPSH_OP_LOCAL_HOST;
        }
        break;
    case GPUSHMEM_CMD_AMO:
        op.kind = GPSH_OP_AMO;
        op.flags |= GPSH_OP_LOCAL_HOST;
        op.amo = (uint8_t)c->extra;
        op.width = (uint8_t)c->bytes;
        op.compare = c->compare;
        op.result = entry->nonce ? &entry->value : NULL;
        break;
    case GPUSHMEM_CMD_PUT_SIGNAL_INLINE:
        op.local = keep_payload(entry, c);
        op.flags |= GPSH_OP_LOCAL_HOST;
        // fall through
    case GPUSHMEM_CMD_PUT_SIGNAL:
        op.kind = GPSH_OP_PUT_SIGNAL;
        op.signal = c->compare - (uint64_t)(uintptr_t)env->heap;
        op.flags |= c->flags & GPUSHMEM_CMD_SIGNAL_ADD ? GPSH_OP_SIGNAL_ADD : 0;
        break;
    default: break;
    }
    if (c->flags & GPUSHMEM_CMD_REPLY_SOURCE) {
        op.flags &= (uint8_t)~GPSH_OP_KEPT;
        op.flags |= env->host_memory && op.bytes <= GPSH_CAPTURE_BYTES ? GPSH_OP_CAPTURE : 0;
    }
    return op;
}

int gpsh_proxy_post_op(struct gpsh_proxy_thread *thread, struct gpsh_proxy_ring *ring,
                       struct gpsh_inflight *entry, int transport, struct gpsh_op *op, bool last)
{
    struct gpsh_proxy_port *port = ring->port;
    struct gpsh_channel *channel = port->channels[transport];
    bool by_callback = last && entry->nonce;
    if (by_callback) { // before posting: the callback may come from within
        entry->state = GPSH_INFLIGHT_CALLBACK;
        op->completion = &entry->completion;
    }
    gpsh_clock_enter(&thread->clock, GPSH_STAGE_POST);
    int result = channel->ops->post(channel, op);
    gpsh_clock_enter(&thread->clock, GPSH_STAGE_PARSE);
    port->stalled[transport] |= result == GPSH_POST_AGAIN;
    if (GPSH_UNLIKELY(result == GPSH_POST_AGAIN || result < 0)) {
        gpsh_count_add(&channel->flows[entry->pe].retries, result == GPSH_POST_AGAIN);
        return result;
    }
    // also of an atomic: see make_op
    gpsh_count_add(&channel->flows[entry->pe].bytes, op->bytes);
    ring->posts++;
    port->dirty[transport] = true;
    thread->unrung++;
    ring->reusable = ring->reusable && (result == GPSH_POST_CAPTURED || result == GPSH_POST_DONE);
    if (!last)
        return result;
    if (entry->nonce && ring->reusable && (entry->flags & GPUSHMEM_CMD_REPLY_SOURCE))
        gpsh_inflight_answer(entry, 0);
    if (result == GPSH_POST_DONE) {
        gpsh_inflight_finish(entry, 0);
    } else if (!by_callback) {
        entry->state = GPSH_INFLIGHT_NUMBER;
        entry->channel = (uint8_t)transport;
        entry->number = channel->flows[entry->pe].posted;
    }
    return result;
}

enum gpsh_step gpsh_proxy_post_single(struct gpsh_proxy_thread *thread,
                                      struct gpsh_proxy_ring *ring, struct gpsh_inflight *entry,
                                      int transport)
{
    const struct gpushmem_command *c = &ring->current;
    if (transport < 0) {
        gpsh_inflight_finish(entry, transport);
        return GPSH_STEP_POSTED;
    }
    struct gpsh_op op = make_op(&thread->proxy->env, c, entry);
    int result = gpsh_proxy_post_op(thread, ring, entry, transport, &op, true);
    if (result == GPSH_POST_AGAIN)
        return GPSH_STEP_STALLED;
    if (result < 0)
        gpsh_inflight_finish(entry, result);
    return GPSH_STEP_POSTED;
}

struct gpsh_inflight *gpsh_proxy_begin(struct gpsh_proxy_ring *ring,
                                       const struct gpsh_command_words *words)
{
    struct gpushmem_command *c = &ring->current;
    gpushmem_command_unpack(words->w, c);
    struct gpsh_inflight *entry = gpsh_ring_entry(ring, ring->parsed);
    entry->index = ring->parsed;
    entry->pe = c->pe;
    entry->reply = (uint32_t)(c->reply >> 32);
    entry->nonce = c->flags & GPUSHMEM_CMD_REPLY ? (uint32_t)c->reply & GPUSHMEM_REPLY_NONCE : 0;
    entry->opcode = c->opcode;
    entry->flags = c->flags;
    entry->value = 0;
    entry->state = GPSH_INFLIGHT_NUMBER;
    if (GPSH_UNLIKELY(ring->thread->proxy->env.flush_writes != NULL) &&
        gpsh_lands_in_memory(c->opcode, c->flags))
        ring->landing = ring->parsed + 1;
    ring->cursor = 0;
    ring->reusable = true;
    ring->busy = true;
    return entry;
}

bool gpsh_proxy_post_words(struct gpsh_proxy_thread *thread, struct gpsh_proxy_ring *ring,
                           const struct gpsh_command_words *words)
{
    struct gpsh_inflight *entry = gpsh_proxy_begin(ring, words);
    int transport = gpsh_proxy_transport_of(thread, &ring->current);
    return gpsh_ring_took_step(ring, gpsh_proxy_post_single(thread, ring, entry, transport));
}
