// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE
#include "transports/ofi/ofi_wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "transports/ofi/ofi_fabric.h"
#include "transports/ofi/ofi_memory.h"
#include "transports/ofi/ofi_peers.h"

enum { SLAB_MESSAGES = 16 };

// One that cannot be slept for is looked at now and then.
static int open_queue(struct gpsh_ofi *ofi)
{
    struct ofi_wire *wire = &ofi->wire;
    struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_MSG, .wait_obj = FI_WAIT_FD};
    int error = fi_cq_open(ofi->domain, &attr, &wire->cq, NULL);
    if (!error && !fi_control(&wire->cq->fid, FI_GETWAIT, &wire->fd))
        return 0;
    if (!error)
        fi_close(&wire->cq->fid);
    wire->cq = NULL;
    wire->fd = -1;
    attr.wait_obj = FI_WAIT_NONE;
    error = fi_cq_open(ofi->domain, &attr, &wire->cq, NULL);
    return error ? gpsh_ofi_error(ofi, "fi_cq_open", error) : 0;
}

// A message is done with when its memory is: that it has come, the reply tells.
static int open_endpoint(struct gpsh_ofi *ofi)
{
    struct fi_info *info = ofi->library->dupinfo(ofi->info);
    if (!info)
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "ofi: no memory for an endpoint");
    info->tx_attr->op_flags = 0;
    int error = fi_endpoint(ofi->domain, info, &ofi->wire.ep, NULL);
    ofi->library->freeinfo(info);
    if (error)
        return gpsh_ofi_error(ofi, "fi_endpoint", error);
    error = fi_ep_bind(ofi->wire.ep, &ofi->av->fid, 0);
    if (!error)
        error = fi_ep_bind(ofi->wire.ep, &ofi->wire.cq->fid, FI_TRANSMIT | FI_RECV);
    if (!error)
        error = fi_enable(ofi->wire.ep);
    return error ? gpsh_ofi_error(ofi, "fi_enable", error) : 0;
}

static int open_chosen(struct gpsh_ofi *ofi)
{
    int status = gpsh_ofi_fabric_open(ofi);
    if (!status)
        status = open_queue(ofi);
    return status ? status : open_endpoint(ofi);
}

int gpsh_ofi_wire_open(struct gpsh_ofi *ofi)
{
    char first[GPSH_ERROR_BYTES] = "";
    ofi->wire.unsent_end = &ofi->wire.unsent;
    for (;;) {
        int status = open_chosen(ofi);
        if (!status)
            return 0;
        if (!ofi->info && first[0])
            return gpsh_fail(GPUSHMEM_ERR_TRANSPORT, "%s; and nothing else does", first);
        if (!ofi->info || status == GPUSHMEM_ERR_NO_MEMORY)
            return status;
        if (!first[0])
            snprintf(first, sizeof first, "%s", gpsh_last_error());
        GPSH_LOG(WARN, "ofi", "libfabric's %s on %s does not work, so it is passed over: %s",
                 ofi->info->fabric_attr->prov_name, ofi->info->domain_attr->name,
                 gpsh_last_error());
        gpsh_ofi_wire_close(ofi);
        gpsh_ofi_fabric_spoil(ofi);
    }
}

static int map_slab(struct gpsh_ofi *ofi, struct ofi_slab *slab)
{
    size_t bytes = SLAB_MESSAGES * OFI_PARCEL_BYTES;
    slab->base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (slab->base == MAP_FAILED)
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory for %zu bytes of messages", bytes);
    if (ofi->local_keys) {
        slab->mr = gpsh_ofi_local_register(ofi, ofi->wire.ep, slab->base, bytes);
        if (!slab->mr) {
            munmap(slab->base, bytes);
            return gpsh_last_error_code();
        }
    }
    if (ofi->env.queues && ofi->env.queues->pin && ofi->env.queues->pin(slab->base, bytes))
        gpsh_clear_error(); // slower, and right
    return 0;
}

static bool add_slab(struct gpsh_ofi *ofi)
{
    struct ofi_slab *slab = calloc(1, sizeof *slab + SLAB_MESSAGES * sizeof(struct ofi_message));
    if (!slab) {
        gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory for messages");
        return false;
    }
    if (map_slab(ofi, slab)) {
        free(slab);
        return false;
    }
    struct ofi_message *messages = (struct ofi_message *)(void *)(slab + 1);
    for (int i = 0; i < SLAB_MESSAGES; i++) {
        messages[i].descriptor = slab->mr ? fi_mr_desc(slab->mr) : NULL;
        messages[i].parcel =
            (struct ofi_parcel *)(void *)(slab->base + (size_t)i * OFI_PARCEL_BYTES);
        gpsh_ofi_message_drop(ofi, &messages[i]);
    }
    slab->next = ofi->wire.slabs;
    ofi->wire.slabs = slab;
    return true;
}

static struct ofi_message *take(struct gpsh_ofi *ofi)
{
    if (!ofi->wire.idle && !add_slab(ofi))
        return NULL;
    struct ofi_message *message = ofi->wire.idle;
    ofi->wire.idle = message->next;
    message->next = NULL;
    message->held = 0;
    return message;
}

struct ofi_message *gpsh_ofi_message(struct gpsh_ofi *ofi, int pe, enum ofi_parcel_kind kind,
                                     int channel)
{
    const struct ofi_peer *peer = gpsh_ofi_peer(ofi, pe);
    struct ofi_message *message = peer ? take(ofi) : NULL;
    if (!message)
        return NULL;
    message->pe = pe;
    *message->parcel = (struct ofi_parcel){.secret = peer->secret,
                                           .pe = (uint32_t)ofi->env.my_pe,
                                           .channel = (uint16_t)channel,
                                           .kind = (uint8_t)kind};
    return message;
}

void gpsh_ofi_message_drop(struct gpsh_ofi *ofi, struct ofi_message *message)
{
    message->next = ofi->wire.idle;
    ofi->wire.idle = message;
}

// What cannot be posted now is kept for the next pass.
static ssize_t receive(struct gpsh_ofi *ofi, struct ofi_message *message)
{
    message->pe = -1;
    ssize_t error = fi_recv(ofi->wire.ep, message->parcel, OFI_PARCEL_BYTES, message->descriptor,
                            FI_ADDR_UNSPEC, &message->context);
    if (error) {
        message->next = ofi->wire.unposted;
        ofi->wire.unposted = message;
    }
    return error;
}

int gpsh_ofi_wire_receive(struct gpsh_ofi *ofi)
{
    for (int i = 0; i < OFI_RECEIVES; i++) {
        struct ofi_message *message = take(ofi);
        if (!message)
            return gpsh_last_error_code();
        ssize_t error = receive(ofi, message);
        if (error && error != -FI_EAGAIN)
            return gpsh_ofi_error(ofi, "fi_recv", error);
    }
    return 0;
}

void gpsh_ofi_received(struct gpsh_ofi *ofi, struct ofi_message *message)
{
    (void)receive(ofi, message);
}

bool gpsh_ofi_receive_again(struct gpsh_ofi *ofi)
{
    struct ofi_message *message = ofi->wire.unposted;
    ofi->wire.unposted = NULL;
    while (message) {
        struct ofi_message *next = message->next;
        (void)receive(ofi, message);
        message = next;
    }
    return !ofi->wire.unposted;
}

// ------------------------------------------------------------------------------------------
// sending

// Whether it is gone. A PE that is lost gets nothing more.
static bool send_now(struct gpsh_ofi *ofi, struct ofi_message *message)
{
    struct ofi_peer *peer = ofi_peer_of(ofi, message->pe);
    size_t bytes = sizeof *message->parcel + message->parcel->bytes;
    if (atomic_load(&peer->lost)) {
        gpsh_ofi_message_drop(ofi, message);
        return true;
    }
    bool inject = bytes <= ofi->inject && !ofi->local_keys;
    ssize_t error = inject ? fi_inject(ofi->wire.ep, message->parcel, bytes, ofi_address(peer))
                           : fi_send(ofi->wire.ep, message->parcel, bytes, message->descriptor,
                                     ofi_address(peer), &message->context);
    if (error == -FI_EAGAIN)
        return false;
    if (error || inject)
        gpsh_ofi_message_drop(ofi, message);
    else
        ofi->wire.sending++;
    if (error)
        gpsh_ofi_peer_fail(ofi, message->pe, GPUSHMEM_ERR_PE_FAILED,
                           "no message reaches PE %d by libfabric: %s", message->pe,
                           ofi->library->strerror((int)-error));
    return true;
}

void gpsh_ofi_send(struct gpsh_ofi *ofi, struct ofi_message *message)
{
    struct ofi_wire *wire = &ofi->wire;
    struct ofi_peer *peer = ofi_peer_of(ofi, message->pe);
    if (!peer->waiting && send_now(ofi, message))
        return;
    peer->waiting++;
    message->next = NULL;
    *wire->unsent_end = message;
    wire->unsent_end = &message->next;
}

// A PE that takes nothing now keeps no other waiting, and what follows for it waits as well: its
// messages are in order.
bool gpsh_ofi_send_waiting(struct gpsh_ofi *ofi)
{
    struct ofi_wire *wire = &ofi->wire;
    struct ofi_message **at = &wire->unsent;
    uint64_t scan = ++wire->scans;
    while (*at) {
        struct ofi_message *message = *at, *next = message->next;
        struct ofi_peer *peer = ofi_peer_of(ofi, message->pe);
        if (peer->full == scan || !send_now(ofi, message)) {
            peer->full = scan;
            at = &message->next;
            continue;
        }
        peer->waiting--;
        *at = next;
    }
    wire->unsent_end = at;
    return !wire->unsent;
}

// ------------------------------------------------------------------------------------------
// receiving

static void failed(struct gpsh_ofi *ofi)
{
    struct fi_cq_err_entry entry = {0};
    if (fi_cq_readerr(ofi->wire.cq, &entry, 0) < 1 || !entry.op_context)
        return;
    struct ofi_message *message = entry.op_context;
    if (message->pe < 0) {
        gpsh_ofi_received(ofi, message);
        return;
    }
    ofi->wire.sending--;
    // A PE that has left needs no reply.
    if (message->parcel->kind != OFI_REPLY)
        gpsh_ofi_peer_fail(ofi, message->pe, GPUSHMEM_ERR_PE_FAILED,
                           "the connection to PE %d was lost (libfabric: %s)", message->pe,
                           ofi->library->strerror(entry.err));
    gpsh_ofi_message_drop(ofi, message);
}

int gpsh_ofi_wire_read(struct gpsh_ofi *ofi, struct ofi_message *came[OFI_READ_AT_ONCE])
{
    struct fi_cq_msg_entry entries[OFI_READ_AT_ONCE];
    ssize_t n = fi_cq_read(ofi->wire.cq, entries, OFI_READ_AT_ONCE);
    int messages = 0;
    if (n == -FI_EAVAIL) {
        failed(ofi);
        return 0;
    }
    for (ssize_t i = 0; i < n; i++) {
        struct ofi_message *message = entries[i].op_context;
        if (!message)
            continue;
        if (message->pe >= 0) {
            ofi->wire.sending--;
            gpsh_ofi_message_drop(ofi, message);
            continue;
        }
        message->bytes = (uint32_t)entries[i].len;
        came[messages++] = message;
    }
    return n > 0 ? messages : -1;
}

static void unregister_slabs(struct ofi_wire *wire)
{
    for (struct ofi_slab *slab = wire->slabs; slab; slab = slab->next) {
        if (slab->mr)
            fi_close(&slab->mr->fid);
        slab->mr = NULL;
    }
}

// Keys that belong to an endpoint are closed before it, others when nothing can use them.
void gpsh_ofi_wire_close(struct gpsh_ofi *ofi)
{
    struct ofi_wire *wire = &ofi->wire;
    if (ofi->endpoint_keys)
        unregister_slabs(wire);
    if (wire->ep)
        fi_close(&wire->ep->fid);
    if (wire->cq)
        fi_close(&wire->cq->fid);
    wire->ep = NULL;
    wire->cq = NULL;
    unregister_slabs(wire);
    while (wire->slabs) {
        struct ofi_slab *slab = wire->slabs;
        wire->slabs = slab->next;
        if (ofi->env.queues && ofi->env.queues->unpin)
            ofi->env.queues->unpin(slab->base);
        munmap(slab->base, SLAB_MESSAGES * OFI_PARCEL_BYTES);
        free(slab);
    }
}
