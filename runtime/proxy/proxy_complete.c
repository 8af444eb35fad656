// SPDX-License-Identifier: BSD-3-Clause
// From completed operations to answers: replies, the completed prefix, quiet of one PE, errors.
#include <pthread.h>
#include <string.h>

#include "core/cpu.h"
#include "core/error.h"
#include "gpushmem/gpushmem.h"
#include "job/job.h"
#include "proxy/proxy.h"

void gpsh_proxy_record(struct gpsh_proxy *proxy, int status)
{
    if (atomic_load_explicit(&proxy->error, memory_order_relaxed))
        return;
    pthread_mutex_lock(&proxy->error_lock);
    if (!atomic_load(&proxy->error)) {
        strncpy(proxy->error_text, gpsh_last_error(), sizeof proxy->error_text - 1);
        atomic_store(&proxy->error, status);
        GPSH_LOG(ERROR, "proxy", "%s", proxy->error_text);
    }
    pthread_mutex_unlock(&proxy->error_lock);
}

int gpsh_proxy_take_error(struct gpsh_proxy *proxy)
{
    if (!atomic_load_explicit(&proxy->error, memory_order_relaxed))
        return 0;
    pthread_mutex_lock(&proxy->error_lock);
    int status = atomic_exchange(&proxy->error, 0);
    if (status) {
        gpsh_fail(status, "%s", proxy->error_text);
        gpsh_error_mark_said(); // when it happened
    }
    pthread_mutex_unlock(&proxy->error_lock);
    return status;
}

void gpsh_inflight_answer(struct gpsh_inflight *entry, int status)
{
    const struct gpsh_proxy_env *env = &entry->ring->thread->proxy->env;
    if (GPSH_UNLIKELY(env->flush_writes != NULL) && status == 0 &&
        gpsh_lands_in_memory(entry->opcode, entry->flags))
        env->flush_writes();
    gpsh_reply_write(&env->replies[entry->reply], entry->nonce, status, entry->value);
    entry->nonce = 0;
}

void gpsh_inflight_finish(struct gpsh_inflight *entry, int status)
{
    if (entry->state == GPSH_INFLIGHT_DONE)
        return;
    entry->state = GPSH_INFLIGHT_DONE;
    if (status < 0) {
        // published with `completed`
        __atomic_fetch_add(&entry->ring->shared.status->failed, 1, __ATOMIC_RELAXED);
        gpsh_count_add(&entry->ring->counters->errors, 1);
        gpsh_proxy_record(entry->ring->thread->proxy, status);
    }
    if (entry->nonce)
        gpsh_inflight_answer(entry, status);
}

// A completion that came by number or callback with a status, not from a call that left a sentence.
static void finish_failed(struct gpsh_inflight *entry, int status)
{
    const struct gpsh_peer *peer = &entry->ring->thread->proxy->env.peers[entry->pe];
    int known = atomic_load_explicit(&peer->error, memory_order_acquire);
    status = known ? known : status; // what it was at the flow's end may be more by now
    gpsh_fail(status, "a kernel's operation towards PE %d (ring %u, command %llu) failed: %.600s",
              entry->pe, entry->ring->shared.number, (unsigned long long)entry->index,
              peer->reason[0] ? peer->reason : gpushmem_strerror(status));
    gpsh_inflight_finish(entry, status);
}

// The transports call it from within post or progress of the thread that owns the ring.
static void on_completion(struct gpsh_completion *self, int status)
{
    struct gpsh_inflight *entry = (struct gpsh_inflight *)self;
    if (status < 0)
        finish_failed(entry, status);
    else
        gpsh_inflight_finish(entry, 0);
}

void gpsh_inflight_init(struct gpsh_inflight *entry, struct gpsh_proxy_ring *ring)
{
    *entry = (struct gpsh_inflight){
        .completion.done = on_completion, .ring = ring, .state = GPSH_INFLIGHT_DONE};
}

// Whether operation `number` towards pe is over, and how. A flow that has failed completes the rest
// when nobody touches its memory any more: whatever was not retired by then counts as lost.
static bool flow_over(const struct gpsh_proxy_port *port, int transport, int pe, uint64_t number,
                      int *status)
{
    if (transport < 0 || !port->channels[transport])
        return true;
    const struct gpsh_flow *flow = &port->channels[transport]->flows[pe];
    if (flow->error)
        *status = flow->error;
    return flow->completed >= number;
}

// Quiets of one PE do not wait for the commands to other PEs in front of them.
static void answer_quiets(struct gpsh_proxy_thread *thread, struct gpsh_proxy_ring *ring)
{
    for (uint64_t i = ring->retired; i < ring->parsed && ring->n_quiets; i++) {
        struct gpsh_inflight *entry = gpsh_ring_entry(ring, i);
        if (entry->state != GPSH_INFLIGHT_QUIET)
            continue;
        const struct gpsh_peer *peer = &thread->proxy->env.peers[entry->pe];
        int status = 0;
        if (!flow_over(ring->port, peer->data, entry->pe, entry->number, &status) ||
            !flow_over(ring->port, gpsh_peer_amo_transport(peer), entry->pe, entry->value, &status))
            continue;
        entry->state = GPSH_INFLIGHT_DONE;
        ring->n_quiets--;
        gpsh_ring_land(ring);
        __atomic_store_n(&ring->shared.completed_pe[entry->pe], entry->index + 1, __ATOMIC_RELEASE);
    }
}

int gpsh_proxy_retire(struct gpsh_proxy_thread *thread, struct gpsh_proxy_ring *ring)
{
    if (ring->n_quiets)
        answer_quiets(thread, ring);
    while (ring->retired < ring->parsed) {
        struct gpsh_inflight *entry = gpsh_ring_entry(ring, ring->retired);
        int status = 0;
        if (entry->state == GPSH_INFLIGHT_NUMBER &&
            flow_over(ring->port, entry->channel, entry->pe, entry->number, &status)) {
            if (status < 0)
                finish_failed(entry, status);
            else
                gpsh_inflight_finish(entry, 0);
        }
        if (entry->state != GPSH_INFLIGHT_DONE)
            break;
        ring->retired++;
    }
    return gpsh_ring_publish(ring);
}
