// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE
#include "core/clock.h"
#include "transports/ofi/ofi_agent.h"
#include "transports/ofi/ofi_drive.h"
#include "transports/ofi/ofi_peers.h"
#include "transports/ofi/ofi_wire.h"

enum { READS = 4 }; // of the queue, in one pass

// Whether an operation that is not complete has that slot.
static bool is_in_use(const struct ofi_flow *flow, uint32_t slot)
{
    uint64_t completed = __atomic_load_n(&flow->pub->completed, __ATOMIC_ACQUIRE);
    uint64_t posted = __atomic_load_n(&flow->pub->posted, __ATOMIC_ACQUIRE);
    return slot < OFI_SLOTS && (slot - completed) % OFI_SLOTS < posted - completed;
}

// Fetched bytes. The slot is in use until its flow has seen them, so they go where they belong; the
// flow's thread takes them from there.
static void land(struct gpsh_ofi *ofi, struct ofi_flow *flow, const struct ofi_item *item)
{
    if (!is_in_use(flow, item->slot))
        return;
    struct ofi_slot *slot = &flow->slots[item->slot];
    if (slot->way != OFI_BY_RECORD || slot->landed)
        return;
    if (slot->kind == GPSH_OP_AMO && item->bytes == sizeof slot->value) {
        memcpy(&slot->value, item + 1, sizeof slot->value);
    } else if (slot->kind == GPSH_OP_GET && item->at <= slot->bytes &&
               item->bytes <= slot->bytes - item->at) {
        if (ofi->env.queues && !(slot->flags & GPSH_OP_LOCAL_HOST))
            (void)ofi->env.copy(slot->local + item->at, item + 1, item->bytes);
        else
            memcpy(slot->local + item->at, item + 1, item->bytes);
    }
    slot->fetched += item->bytes;
    if (slot->kind == GPSH_OP_AMO || slot->fetched >= slot->bytes)
        __atomic_store_n(&slot->landed, true, __ATOMIC_RELEASE);
}

static void land_all(struct gpsh_ofi *ofi, struct ofi_flow *flow, const struct ofi_parcel *parcel)
{
    const char *at = (const char *)(parcel + 1), *end = at + parcel->bytes;
    while ((size_t)(end - at) >= sizeof(struct ofi_item)) {
        const struct ofi_item *item = (const struct ofi_item *)(const void *)at;
        uint64_t bytes = sizeof *item + ofi_padded(item->bytes);
        if (bytes > (size_t)(end - at))
            return;
        land(ofi, flow, item);
        at += bytes;
    }
}

// A request that was sent before the ping, and has not come, never will; one that came before an
// earlier one was not carried out.
static void check_gap(struct gpsh_ofi *ofi, const struct ofi_parcel *parcel)
{
    bool lacks = parcel->pinged && parcel->pinged - 1 > parcel->number && ofi->in_order;
    if (lacks || parcel->refused == OFI_REFUSED_GAP)
        gpsh_ofi_peer_fail(ofi, (int)parcel->pe, GPUSHMEM_ERR_PE_FAILED,
                           "the connection to PE %u was lost with operations under way",
                           parcel->pe);
}

static void take_reply(struct gpsh_ofi *ofi, const struct ofi_parcel *parcel,
                       struct ofi_flow **pushed)
{
    struct ofi_flow *flow = ofi_flow_of(&ofi->channels[parcel->channel], (int)parcel->pe);
    check_gap(ofi, parcel);
    if (!flow || flow->dead)
        return;
    if (parcel->pinged)
        flow->pings = 0;
    if (parcel->done > flow->sent) {
        gpsh_ofi_peer_fail(ofi, flow->pe, GPUSHMEM_ERR_PE_FAILED,
                           "PE %d answers operation %llu of %llu that were sent to it", flow->pe,
                           (unsigned long long)parcel->done, (unsigned long long)flow->sent);
        return;
    }
    land_all(ofi, flow, parcel);
    if (parcel->refused && parcel->refused != OFI_REFUSED_GAP)
        atomic_store(&flow->refused, parcel->refused);
    if (parcel->done > atomic_load_explicit(&flow->answered, memory_order_relaxed))
        atomic_store(&flow->answered, parcel->done); // before `held` is looked at: see ofi_flow.c
    if (atomic_load(&flow->held) && !atomic_exchange(&flow->push, true)) {
        flow->next_pushed = *pushed;
        *pushed = flow;
    }
}

// Who does not know the secret is no PE of this job, and is not answered.
static bool is_sound(const struct gpsh_ofi *ofi, const struct ofi_message *message)
{
    const struct ofi_parcel *parcel = message->parcel;
    return message->bytes >= sizeof *parcel && parcel->secret == ofi->secret &&
           parcel->pe < (uint32_t)ofi->env.n_pes && parcel->channel < ofi->env.channels &&
           parcel->bytes <= message->bytes - sizeof *parcel &&
           gpsh_ofi_peers_known(ofi, (int)parcel->pe);
}

static void take(struct gpsh_ofi *ofi, struct ofi_message *message, struct ofi_flow **pushed,
                 uint64_t now_ns)
{
    const struct ofi_parcel *parcel = message->parcel;
    struct ofi_peer *peer =
        is_sound(ofi, message) ? gpsh_ofi_peer_note(ofi, (int)parcel->pe) : NULL;
    if (!peer) {
        gpsh_ofi_received(ofi, message);
        return;
    }
    atomic_store_explicit(&peer->heard_ns, now_ns, memory_order_relaxed);
    if (parcel->kind != OFI_REPLY) {
        gpsh_ofi_agent_take(ofi, message);
        return;
    }
    take_reply(ofi, parcel, pushed);
    gpsh_ofi_received(ofi, message);
}

bool gpsh_ofi_serve(struct gpsh_ofi *ofi, struct ofi_flow **pushed)
{
    struct ofi_wire *wire = &ofi->wire;
    struct ofi_message *came[OFI_READ_AT_ONCE];
    bool found = false;
    *pushed = NULL;
    if (pthread_mutex_trylock(&wire->lock))
        return false;
    for (int i = 0; i < READS; i++) {
        int n = gpsh_ofi_wire_read(ofi, came);
        uint64_t now_ns = n > 0 ? gpsh_clock_ns() : 0;
        for (int m = 0; m < n; m++)
            take(ofi, came[m], pushed, now_ns);
        found |= n >= 0;
        // A read costs as much as a message: those that wait for a reply come first.
        if (n < 0 || (n > 0 && n < OFI_READ_AT_ONCE))
            break;
    }
    found |= gpsh_ofi_agent_reply(ofi);
    found |= !gpsh_ofi_receive_again(ofi);
    found |= !gpsh_ofi_send_waiting(ofi);
    pthread_mutex_unlock(&wire->lock);
    if (found)
        atomic_store_explicit(&wire->vain, 0, memory_order_relaxed);
    return found;
}
