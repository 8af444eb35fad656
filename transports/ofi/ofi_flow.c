// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE
#include "transports/ofi/ofi_flow.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/clock.h"
#include "core/lines.h"
#include "transports/ofi/ofi_lane.h"
#include "transports/ofi/ofi_memory.h"
#include "transports/ofi/ofi_peers.h"
#include "transports/ofi/ofi_wire.h"

enum {
    GETS = 16, // pieces of gets by record, whose answers somebody has to receive
};

// So long the memory of failed operations is kept from the program while the provider has it.
static const uint64_t PATIENCE_NS = 1500000000;

static struct ofi_flow *make(struct ofi_channel *channel, int pe)
{
    struct gpsh_ofi *ofi = channel->ofi;
    struct ofi_peer *peer = gpsh_ofi_peer(ofi, pe);
    struct ofi_flow *flow = peer ? gpsh_lines_alloc(1, sizeof *flow) : NULL;
    if (!peer)
        return NULL;
    if (flow)
        flow->slots = gpsh_lines_alloc(OFI_SLOTS, sizeof *flow->slots);
    if (!flow || !flow->slots) {
        free(flow);
        gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory for operations on PE %d", pe);
        return NULL;
    }
    flow->channel = channel;
    flow->peer = peer;
    flow->pe = pe;
    flow->pub = &channel->base.flows[pe];
    flow->epoch = channel->epoch;
    if (ofi->local_keys && ofi->atomics) {
        flow->slots_mr =
            gpsh_ofi_local_register(ofi, channel->ep, flow->slots, OFI_SLOTS * sizeof *flow->slots);
        if (!flow->slots_mr) {
            gpsh_ofi_flow_free(flow);
            return NULL;
        }
    }
    return flow;
}

struct ofi_flow *gpsh_ofi_flow(struct ofi_channel *channel, int pe)
{
    struct ofi_flow *flow = ofi_flow_of(channel, pe);
    if (flow)
        return flow;
    flow = make(channel, pe);
    if (flow)
        atomic_store(&flow->peer->flows[channel->index], flow);
    return flow;
}

void gpsh_ofi_flow_unregister(struct ofi_flow *flow)
{
    if (flow && flow->slots_mr)
        fi_close(&flow->slots_mr->fid);
    if (flow)
        flow->slots_mr = NULL;
}

void gpsh_ofi_flow_free(struct ofi_flow *flow)
{
    if (!flow)
        return;
    for (uint64_t n = flow->pub->completed + 1; n <= flow->pub->posted; n++)
        free(ofi_slot_at(flow, n)->captured);
    gpsh_ofi_flow_unregister(flow);
    free(flow->slots);
    free(flow);
}

// ------------------------------------------------------------------------------------------
// records

static uint64_t answered(struct ofi_flow *flow)
{
    // Pairs with the store after fetched bytes were put where they belong.
    return atomic_load(&flow->answered);
}

// Parcels under way, by the records that were answered.
static uint64_t parcels_out(struct ofi_flow *flow)
{
    uint64_t records = answered(flow);
    while (flow->answered_parcels < flow->parcels &&
           flow->ends[flow->answered_parcels % OFI_WINDOW] <= records)
        flow->answered_parcels++;
    return flow->parcels - flow->answered_parcels;
}

static bool send_open(struct ofi_flow *flow)
{
    struct gpsh_ofi *ofi = flow->channel->ofi;
    struct ofi_message *message = flow->open;
    // Where messages may overtake each other there is only one.
    if (parcels_out(flow) >= (ofi->in_order ? OFI_WINDOW : 1))
        return false;
    flow->ends[flow->parcels % OFI_WINDOW] = flow->records;
    message->parcel->number = ++flow->parcels;
    flow->open = NULL;
    pthread_mutex_lock(&ofi->wire.lock);
    flow->sent = flow->records;
    gpsh_ofi_send(ofi, message);
    atomic_store(&flow->asked, flow->parcels);
    pthread_mutex_unlock(&ofi->wire.lock);
    return true;
}

// A record with so much payload, at the end of the open parcel. NULL: there is no room now.
static struct ofi_record *add_record(struct ofi_flow *flow, const struct ofi_slot *slot,
                                     uint64_t payload)
{
    struct gpsh_ofi *ofi = flow->channel->ofi;
    uint32_t more = (uint32_t)sizeof(struct ofi_record) + ofi_padded(payload);
    if (flow->open &&
        sizeof(struct ofi_parcel) + flow->open->parcel->bytes + more > OFI_PARCEL_BYTES &&
        !send_open(flow))
        return NULL;
    if (!flow->open) {
        pthread_mutex_lock(&ofi->wire.lock);
        flow->open = gpsh_ofi_message(ofi, flow->pe, OFI_REQUEST, flow->channel->index);
        pthread_mutex_unlock(&ofi->wire.lock);
    }
    if (!flow->open)
        return NULL;
    struct ofi_parcel *parcel = flow->open->parcel;
    struct ofi_record *record = (struct ofi_record *)(void *)((char *)(parcel + 1) + parcel->bytes);
    parcel->bytes += more;
    *record = (struct ofi_record){.op = {.remote = slot->remote + slot->offset,
                                         .signal = slot->signal,
                                         .operand = slot->operand,
                                         .compare = slot->compare,
                                         .slot = (uint32_t)(slot - flow->slots),
                                         .kind = slot->kind,
                                         .amo = slot->amo,
                                         .width = slot->width,
                                         .flags = slot->flags & GPSH_OP_SIGNAL_ADD,
                                         .region = slot->region}};
    flow->records++;
    return record;
}

static bool write_amo(struct ofi_flow *flow, struct ofi_slot *slot)
{
    struct ofi_record *record = add_record(flow, slot, 0);
    if (!record)
        return false;
    record->op.fetch = slot->result || slot->amo == GPSH_AMO_FETCH;
    slot->record = flow->records;
    return true;
}

static bool write_get(struct ofi_flow *flow, struct ofi_slot *slot)
{
    while (slot->offset < slot->bytes) {
        uint64_t rest = slot->bytes - slot->offset, bytes = rest < OFI_ANSWER ? rest : OFI_ANSWER;
        struct ofi_record *record =
            flow->records - answered(flow) < GETS ? add_record(flow, slot, 0) : NULL;
        if (!record)
            return false;
        record->op.bytes = (uint32_t)bytes;
        record->at = slot->offset;
        slot->offset += bytes;
        slot->record = flow->records;
    }
    return true;
}

// In pieces, the last of which has the signal, unless the provider's atomics do that.
static bool write_put(struct ofi_flow *flow, struct ofi_slot *slot)
{
    struct gpsh_ofi *ofi = flow->channel->ofi;
    bool signal = slot->kind == GPSH_OP_PUT_SIGNAL && !ofi->atomics;
    while (slot->offset < slot->bytes || (signal && !slot->record)) {
        uint64_t rest = slot->bytes - slot->offset, bytes = rest < OFI_PAYLOAD ? rest : OFI_PAYLOAD;
        struct ofi_record *record = add_record(flow, slot, bytes);
        if (!record)
            return false;
        record->op.bytes = (uint32_t)bytes;
        record->op.kind = signal && bytes == rest ? GPSH_OP_PUT_SIGNAL : GPSH_OP_PUT;
        if (bytes)
            gpsh_ofi_copy(ofi, slot->flags, record + 1, slot->local + slot->offset, bytes);
        slot->offset += bytes;
        slot->record = flow->records;
    }
    return true;
}

static bool write_records(struct ofi_flow *flow, struct ofi_slot *slot)
{
    switch (slot->kind) {
    case GPSH_OP_AMO: return write_amo(flow, slot);
    case GPSH_OP_GET: return write_get(flow, slot);
    default: return write_put(flow, slot);
    }
}

// ------------------------------------------------------------------------------------------
// order

static bool is_here(struct ofi_flow *flow, struct ofi_slot *slot)
{
    bool fetches = slot->way == OFI_BY_RECORD && slot->bytes && slot->kind == GPSH_OP_GET;
    fetches |= slot->way == OFI_BY_RECORD && slot->kind == GPSH_OP_AMO &&
               (slot->result || slot->amo == GPSH_AMO_FETCH);
    return slot->record <= answered(flow) &&
           (!fetches || __atomic_load_n(&slot->landed, __ATOMIC_ACQUIRE));
}

static void advance(struct ofi_flow *flow)
{
    while (flow->settled < flow->begun) {
        const struct ofi_slot *slot = ofi_slot_at(flow, flow->settled + 1);
        if (slot->parts || slot->tail)
            break;
        flow->settled++;
    }
    while (flow->landed < flow->settled && is_here(flow, ofi_slot_at(flow, flow->landed + 1)))
        __atomic_store_n(&flow->landed, flow->landed + 1, __ATOMIC_RELEASE);
}

static bool fail_here(struct ofi_flow *flow, int64_t status)
{
    gpsh_ofi_flow_break(flow, (int)status, gpsh_last_error());
    return false;
}

static bool issue_atomic(struct ofi_flow *flow, struct ofi_slot *slot)
{
    if (flow->atomics && !flow->channel->ofi->atomics_in_order)
        return false;
    int status = gpsh_ofi_lane_atomic(flow, slot);
    return status < 0 ? fail_here(flow, status) : status;
}

static bool make_tail(struct ofi_flow *flow, struct ofi_slot *slot)
{
    slot->tail = true;
    flow->tails++;
    return true;
}

static bool issue_rma(struct ofi_flow *flow, struct ofi_slot *slot)
{
    if (slot->after > flow->landed)
        return false;
    while (slot->offset < slot->bytes) {
        int64_t moved = gpsh_ofi_lane_move(flow, slot);
        if (moved <= 0)
            return moved < 0 ? fail_here(flow, moved) : false;
        slot->offset += (uint64_t)moved;
    }
    return slot->kind == GPSH_OP_PUT_SIGNAL ? make_tail(flow, slot) : true;
}

// Records follow each other; what a fence is about is what goes by one-sided operations. Of signals
// and atomics, none overtakes another one.
static bool issue_record(struct ofi_flow *flow, struct ofi_slot *slot)
{
    if (slot->after > flow->settled)
        return false;
    bool native = flow->channel->ofi->atomics && slot->kind == GPSH_OP_PUT_SIGNAL;
    bool ordered = slot->kind == GPSH_OP_AMO || slot->kind == GPSH_OP_PUT_SIGNAL;
    if (ordered && flow->tails && !native)
        return make_tail(flow, slot);
    if (!write_records(flow, slot))
        return false;
    return native ? make_tail(flow, slot) : true;
}

static bool issue_one(struct ofi_flow *flow, struct ofi_slot *slot)
{
    switch (slot->way) {
    case OFI_BY_RMA: return issue_rma(flow, slot);
    case OFI_BY_RECORD: return issue_record(flow, slot);
    default:
        if (slot->after > flow->landed)
            return false;
        return flow->tails ? make_tail(flow, slot) : issue_atomic(flow, slot);
    }
}

// The signal of data that has arrived, or an operation that had to wait for such a signal.
static bool issue_tail(struct ofi_flow *flow, struct ofi_slot *slot)
{
    bool native = flow->channel->ofi->atomics;
    if (slot->parts || (native && slot->record > answered(flow)))
        return false;
    if (native && slot->kind == GPSH_OP_PUT_SIGNAL)
        return issue_atomic(flow, slot);
    if (slot->way == OFI_BY_ATOMIC)
        return issue_atomic(flow, slot);
    if (slot->way == OFI_BY_RECORD)
        return write_records(flow, slot);
    struct ofi_record *record = add_record(flow, slot, 0);
    if (!record)
        return false;
    record->op.remote = slot->remote;
    slot->record = flow->records;
    return true;
}

static void issue_tails(struct ofi_flow *flow)
{
    while (flow->tails) {
        if (flow->next_tail <= flow->settled)
            flow->next_tail = flow->settled + 1;
        struct ofi_slot *slot = ofi_slot_at(flow, flow->next_tail);
        if (slot->tail && !issue_tail(flow, slot))
            return;
        if (slot->tail)
            flow->tails--;
        slot->tail = false;
        flow->next_tail++;
    }
    flow->next_tail = flow->begun + 1;
}

static void issue_all(struct ofi_flow *flow)
{
    issue_tails(flow);
    advance(flow);
    while (flow->begun < flow->pub->posted && !flow->failing) {
        struct ofi_slot *slot = ofi_slot_at(flow, flow->begun + 1);
        if (!issue_one(flow, slot))
            break;
        slot->issued = true;
        flow->begun++;
        advance(flow);
    }
    issue_tails(flow);
    advance(flow);
}

static void check_refusal(struct ofi_flow *flow)
{
    int refused = atomic_load(&flow->refused);
    char why[160];
    if (!refused)
        return;
    snprintf(why, sizeof why,
             refused == OFI_REFUSED_RANGE    ? "an operation on PE %d is outside its heap"
             : refused == OFI_REFUSED_MEMORY ? "PE %d has no memory for the answer to an operation"
                                             : "PE %d lost the GPU that has its heap",
             flow->pe);
    gpsh_ofi_flow_break(flow, GPUSHMEM_ERR_TRANSPORT, why);
}

void gpsh_ofi_flow_issue(struct ofi_flow *flow, bool ring)
{
    if (flow->dead)
        return;
    issue_all(flow);
    // Who waits for an answer says so before it looks a last time; who brings one looks after it.
    bool waits = flow->open || flow->begun < flow->pub->posted || flow->tails;
    if (waits) {
        atomic_store(&flow->held, true);
        issue_all(flow);
    }
    if (flow->open && ring && parcels_out(flow) < OFI_EAGER_PARCELS)
        send_open(flow);
    waits = flow->open || flow->begun < flow->pub->posted || flow->tails;
    if (!waits)
        atomic_store(&flow->held, false);
    check_refusal(flow);
}

bool gpsh_ofi_flow_has_source(const struct ofi_slot *slot)
{
    if (slot->kind == GPSH_OP_GET)
        return false;
    return slot->issued && !slot->borrowed &&
           !(slot->tail && slot->way == OFI_BY_RECORD && slot->offset < slot->bytes);
}

// ------------------------------------------------------------------------------------------
// completion

static void complete(struct ofi_flow *flow, int status)
{
    struct ofi_channel *channel = flow->channel;
    struct ofi_slot *slot = ofi_slot_at(flow, flow->pub->completed + 1);
    struct gpsh_completion *completion = slot->completion;
    if (!status && slot->kind == GPSH_OP_AMO && slot->result)
        gpsh_ofi_copy(channel->ofi, slot->flags, slot->result, &slot->value, slot->width);
    free(slot->captured);
    slot->captured = NULL;
    // After what was posted before: the thread tells by both whether anything is under way.
    __atomic_store_n(&flow->pub->completed, flow->pub->completed + 1, __ATOMIC_RELEASE);
    channel->base.pending--;
    channel->retired++;
    if (completion)
        completion->done(completion, status); // may post: the books are in order already
}

void gpsh_ofi_flow_retire(struct ofi_flow *flow)
{
    while (!flow->dead && flow->pub->completed < __atomic_load_n(&flow->landed, __ATOMIC_ACQUIRE))
        complete(flow, 0);
    while (flow->dead && flow->pub->completed < flow->pub->posted) {
        const struct ofi_slot *slot = ofi_slot_at(flow, flow->pub->completed + 1);
        if (slot->parts && gpsh_clock_ns() - flow->dead_ns < PATIENCE_NS)
            return;
        complete(flow, flow->pub->error);
    }
}

void gpsh_ofi_flow_fail(struct ofi_flow *flow, int code)
{
    struct gpsh_ofi *ofi = flow->channel->ofi;
    if (flow->dead)
        return;
    pthread_mutex_lock(&ofi->wire.lock); // nothing lands any more
    flow->dead = true;
    if (flow->open)
        gpsh_ofi_message_drop(ofi, flow->open);
    flow->open = NULL;
    pthread_mutex_unlock(&ofi->wire.lock);
    flow->dead_ns = gpsh_clock_ns();
    gpsh_flow_fail(flow->pub, code);
    if (code != GPUSHMEM_ERR_PE_FAILED)
        flow->channel->base.failed = true;
}

// With the channel's lock held.
static void issue_pushed(struct ofi_channel *channel)
{
    struct ofi_flow *flow = atomic_exchange(&channel->pushed, NULL);
    while (flow) {
        struct ofi_flow *next = flow->next_pushed;
        atomic_store(&flow->push, false); // from here on it may be in another list
        gpsh_ofi_flow_issue(flow, true);
        flow = next;
    }
}

// Drives what is in the channel's list, or leaves that to who has the lock. The fence orders a push
// before the look at the lock, and an unlock before the look at the list: one of the two threads
// sees what the other did.
static void drive_pushed(struct ofi_channel *channel)
{
    for (;;) {
        atomic_thread_fence(memory_order_seq_cst);
        if (!atomic_load_explicit(&channel->pushed, memory_order_relaxed) ||
            pthread_mutex_trylock(&channel->lock))
            return;
        issue_pushed(channel);
        pthread_mutex_unlock(&channel->lock);
    }
}

void gpsh_ofi_unlock(struct ofi_channel *channel)
{
    pthread_mutex_unlock(&channel->lock);
    drive_pushed(channel);
}

void gpsh_ofi_push(struct ofi_flow *pushed)
{
    while (pushed) {
        struct ofi_flow *flow = pushed;
        struct ofi_channel *channel = flow->channel;
        pushed = flow->next_pushed;
        struct ofi_flow *first = atomic_load(&channel->pushed);
        do
            flow->next_pushed = first;
        while (!atomic_compare_exchange_weak(&channel->pushed, &first, flow));
        drive_pushed(channel);
    }
}
