// SPDX-License-Identifier: BSD-3-Clause
// The libfabric transport: its instance, its blob, its connections; the ops table is at the bottom.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

#include "core/clock.h"
#include "core/lines.h"
#include "transports/ofi/ofi_agent.h"
#include "transports/ofi/ofi_drive.h"
#include "transports/ofi/ofi_fabric.h"
#include "transports/ofi/ofi_flow.h"
#include "transports/ofi/ofi_lane.h"
#include "transports/ofi/ofi_memory.h"
#include "transports/ofi/ofi_peers.h"
#include "transports/ofi/ofi_state.h"
#include "transports/ofi/ofi_wire.h"

// So long close waits for replies to leave.
static const uint64_t LINGER_NS = 1000000000;

static void linger(struct gpsh_ofi *ofi)
{
    uint64_t begun_ns = gpsh_clock_ns();
    struct ofi_flow *pushed;
    bool left = true;
    while (left && gpsh_clock_ns() - begun_ns < LINGER_NS) {
        gpsh_ofi_serve(ofi, &pushed);
        left = ofi->wire.sending || ofi->wire.unsent;
        if (left)
            nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
    }
}

static void close_channels(struct gpsh_ofi *ofi)
{
    for (int c = 0; ofi->channels && c < ofi->env.channels; c++) {
        struct ofi_channel *channel = &ofi->channels[c];
        for (int pe = 0; ofi->book.peers && pe < ofi->env.n_pes; pe++)
            gpsh_ofi_flow_free(ofi_flow_of(channel, pe));
        if (channel->base.flows)
            gpsh_flows_close(&channel->base);
        pthread_mutex_destroy(&channel->lock);
    }
}

static void ofi_close(struct gpsh_transport *self)
{
    struct gpsh_ofi *ofi = (struct gpsh_ofi *)self;
    if (!ofi)
        return;
    gpsh_ofi_thread_stop(ofi);
    if (ofi->wire.ep && ofi->agent)
        linger(ofi);
    for (int c = 0; ofi->channels && c < ofi->env.channels; c++) {
        struct ofi_channel *channel = &ofi->channels[c];
        for (int pe = 0; ofi->endpoint_keys && ofi->book.peers && pe < ofi->env.n_pes; pe++)
            gpsh_ofi_flow_unregister(ofi_flow_of(channel, pe));
        gpsh_ofi_lane_close(channel);
    }
    gpsh_ofi_agent_close(ofi);
    if (ofi->endpoint_keys)
        gpsh_ofi_memory_close(ofi);
    gpsh_ofi_wire_close(ofi);
    if (!ofi->endpoint_keys)
        gpsh_ofi_memory_close(ofi);
    close_channels(ofi);
    gpsh_ofi_peers_close(ofi);
    gpsh_ofi_fabric_close(ofi);
    pthread_mutex_destroy(&ofi->book.lock);
    pthread_rwlock_destroy(&ofi->buffers.lock);
    pthread_mutex_destroy(&ofi->wire.lock);
    free(ofi->channels);
    free(ofi);
}

static int make_channels(struct gpsh_ofi *ofi)
{
    ofi->channels = gpsh_lines_alloc((size_t)ofi->env.channels, sizeof *ofi->channels);
    bool made = ofi->channels;
    for (int c = 0; ofi->channels && c < ofi->env.channels; c++) {
        struct ofi_channel *channel = &ofi->channels[c];
        channel->ofi = ofi;
        channel->index = c;
        channel->base.ops = &gpsh_ofi_ops;
        channel->base.transport = &ofi->base;
        pthread_mutex_init(&channel->lock, NULL);
        made &= gpsh_flows_open(&channel->base, &ofi->env, c);
    }
    return made ? 0
                : gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "ofi: no memory for %d channels to %d PEs",
                            ofi->env.channels, ofi->env.n_pes);
}

static void note_about(struct gpsh_ofi *ofi)
{
    const struct fi_info *info = ofi->info;
    snprintf(ofi->about, sizeof ofi->about, "libfabric %u.%u's %s on %s, heap %s%s%s, %s",
             FI_MAJOR(ofi->library->version()), FI_MINOR(ofi->library->version()),
             info->fabric_attr->prov_name, info->domain_attr->name,
             ofi->heap_mrs[0] ? "by one-sided operations" : "through host memory",
             ofi->host[0] ? ": " : "", ofi->host,
             ofi->atomics ? "atomics of its own" : "no atomics of its own");
}

static void warn_of_fault(const struct gpsh_ofi *ofi)
{
    const char *fault = gpsh_ofi_fault(ofi->info);
    if (fault)
        GPSH_LOG(WARN, "ofi",
                 "with libfabric's %s %s: another one is better (gpushmem info --providers)",
                 ofi->info->fabric_attr->prov_name, fault);
}

static int fill(struct gpsh_ofi *ofi)
{
    if (getrandom(&ofi->secret, sizeof ofi->secret, 0) != sizeof ofi->secret)
        return gpsh_fail(GPUSHMEM_ERR_SYSTEM, "ofi: the system gives no random numbers");
    int status = make_channels(ofi);
    if (!status)
        status = gpsh_ofi_wire_open(ofi);
    if (!status)
        status = gpsh_ofi_peers_open(ofi);
    if (!status)
        status = gpsh_ofi_regions_register(ofi);
    if (!status)
        status = gpsh_ofi_agent_open(ofi);
    if (!status)
        status = gpsh_ofi_wire_receive(ofi);
    if (status)
        return status;
    ofi->inject = ofi->info->tx_attr->inject_size;
    ofi->atomics &= ofi->heap_mrs[0] != NULL;
    ofi->base.no_atomics = !ofi->atomics;
    note_about(ofi);
    warn_of_fault(ofi);
    return gpsh_ofi_thread_start(ofi);
}

static int ofi_open(const struct gpsh_transport_env *env, struct gpsh_transport **out)
{
    struct gpsh_ofi *ofi = calloc(1, sizeof *ofi);
    if (!ofi)
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory for the ofi transport");
    ofi->base.ops = &gpsh_ofi_ops;
    ofi->env = *env;
    ofi->wake = -1;
    pthread_rwlock_init(&ofi->buffers.lock, NULL);
    pthread_mutex_init(&ofi->wire.lock, NULL);
    pthread_mutex_init(&ofi->book.lock, NULL);
    int status = fill(ofi);
    if (status) {
        ofi_close(&ofi->base);
        return status;
    }
    GPSH_LOG(INFO, "ofi", "%s", ofi->about);
    *out = &ofi->base;
    return 0;
}

static int64_t ofi_describe(struct gpsh_transport *self, void *to, size_t bytes)
{
    struct gpsh_ofi *ofi = (struct gpsh_ofi *)self;
    struct ofi_blob blob = {.magic = OFI_BLOB_MAGIC,
                            .version = OFI_BLOB_VERSION,
                            .pe = (uint32_t)ofi->env.my_pe,
                            .n_pes = (uint32_t)ofi->env.n_pes,
                            .n_channels = (uint32_t)ofi->env.channels,
                            .address_format = ofi->info->addr_format,
                            .secret = ofi->secret,
                            .machine = gpsh_ofi_machine(ofi)};
    size_t length = sizeof blob.address;
    int error = fi_getname(&ofi->wire.ep->fid, blob.address, &length);
    if (error)
        return gpsh_ofi_error(ofi, "fi_getname", error);
    blob.address_bytes = (uint16_t)length;
    snprintf(blob.provider, sizeof blob.provider, "%s", ofi->info->fabric_attr->prov_name);
    blob.provider_bytes = (uint16_t)strlen(blob.provider);
    for (int r = 0; r < GPSH_REGIONS; r++) {
        blob.region_bytes[r] = ofi->env.regions[r].bytes;
        int status =
            gpsh_ofi_key_describe(ofi, ofi->region_mrs[r], ofi->env.regions[r].base, &blob.keys[r]);
        if (status)
            return status;
    }
    size_t needed = gpsh_ofi_blob_write(&blob, NULL);
    return (int64_t)(bytes < needed ? needed : gpsh_ofi_blob_write(&blob, to));
}

static int check_peer(const struct gpsh_ofi *ofi, int pe, const struct ofi_blob *blob)
{
    const struct gpsh_peer_claims claims = {blob->pe, blob->n_pes, blob->n_channels,
                                            blob->region_bytes};
    int status = gpsh_peer_claims_check(&ofi->env, pe, "libfabric", &claims);
    if (status)
        return status;
    if (strcmp(blob->provider, ofi->info->fabric_attr->prov_name) != 0)
        return gpsh_fail(GPUSHMEM_ERR_UNREACHABLE,
                         "PE %d uses libfabric's %s, this one %s: choose with "
                         "GPUSHMEM_OFI_PROVIDER",
                         pe, blob->provider, ofi->info->fabric_attr->prov_name);
    if (blob->address_format != ofi->info->addr_format)
        return gpsh_fail(
            GPUSHMEM_ERR_UNREACHABLE,
            "PE %d has a libfabric address of format %s, this one of format %s: choose "
            "NICs of the same kind with GPUSHMEM_OFI_DOMAIN",
            pe, gpsh_ofi_format_name(blob->address_format),
            gpsh_ofi_format_name(ofi->info->addr_format));
    if (blob->machine != gpsh_ofi_machine(ofi))
        return gpsh_fail(GPUSHMEM_ERR_UNREACHABLE,
                         "PE %d or this one has no address for libfabric but its loopback "
                         "device's, and they are on different hosts: choose with "
                         "GPUSHMEM_OFI_DOMAIN",
                         pe);
    return 0;
}

static int ofi_connect(struct gpsh_transport *self, int pe, const void *bytes, size_t size)
{
    struct gpsh_ofi *ofi = (struct gpsh_ofi *)self;
    struct ofi_blob blob;
    if (gpsh_ofi_peers_known(ofi, pe))
        return gpsh_fail(GPUSHMEM_ERR_STATE, "PE %d is connected over libfabric already", pe);
    int status = gpsh_ofi_blob_parse(bytes, size, &blob);
    if (!status)
        status = check_peer(ofi, pe, &blob);
    return status ? status : gpsh_ofi_peers_keep(ofi, pe, &blob);
}

static void ofi_explain(struct gpsh_transport *self, int pe, char *line, size_t bytes)
{
    struct gpsh_ofi *ofi = (struct gpsh_ofi *)self;
    const struct ofi_peer *peer = gpsh_ofi_peer_note(ofi, pe);
    char text[128] = "?";
    gpsh_ofi_address_text(ofi, gpsh_ofi_peers_address(ofi, pe), text, sizeof text);
    snprintf(line, bytes, "%s on %s -> %s%s", ofi->info->fabric_attr->prov_name,
             ofi->info->domain_attr->name, text,
             peer && peer->keys[GPSH_HEAP].keyed ? "" : ", through host memory");
}

static void ofi_about(struct gpsh_transport *self, char *line, size_t bytes)
{
    snprintf(line, bytes, "%s", ((struct gpsh_ofi *)self)->about);
}

static int ofi_channel_open(struct gpsh_transport *self, int index, struct gpsh_channel **out)
{
    struct gpsh_ofi *ofi = (struct gpsh_ofi *)self;
    if (index < 0 || index >= ofi->env.channels || ofi->channels[index].open)
        return gpsh_fail(GPUSHMEM_ERR_INVALID,
                         "channel %d of the ofi transport is open already, or not one of its %d",
                         index, ofi->env.channels);
    int status = ofi->channels[index].ep ? 0 : gpsh_ofi_lane_open(ofi, &ofi->channels[index]);
    if (status)
        return status;
    ofi->channels[index].open = true;
    *out = &ofi->channels[index].base;
    return 0;
}

// What is in flight ends in memory that stays until the transport closes.
static void ofi_channel_close(struct gpsh_channel *channel)
{
    if (channel)
        GPSH_LOG(DEBUG, "ofi", "channel %d closes with %llu operations pending",
                 ((struct ofi_channel *)channel)->index, (unsigned long long)channel->pending);
}

static int ofi_serve_atomics(struct gpsh_transport *self)
{
    struct gpsh_ofi *ofi = (struct gpsh_ofi *)self;
    ofi->atomics = false;
    self->agents = true;
    return 0;
}

static void ofi_peer_lost(struct gpsh_transport *self, int pe)
{
    struct gpsh_ofi *ofi = (struct gpsh_ofi *)self;
    struct ofi_peer *peer = gpsh_ofi_peer_note(ofi, pe);
    int none = 0;
    if (!peer)
        gpsh_clear_error(); // the network finds out
    else if (atomic_compare_exchange_strong(&peer->lost, &none, GPUSHMEM_ERR_PE_FAILED))
        atomic_fetch_add(&ofi->losses, 1);
}

const struct gpsh_transport_ops gpsh_ofi_ops = {
    .name = "ofi",
    .caps = GPSH_CAP_REMOTE_NODE | GPSH_CAP_NIC_ATOMICS,
    .survey = gpsh_ofi_survey,
    .survey_all = gpsh_ofi_survey_all,
    .open = ofi_open,
    .close = ofi_close,
    .serve_atomics = ofi_serve_atomics,
    .describe = ofi_describe,
    .connect = ofi_connect,
    .establish = gpsh_ofi_establish,
    .explain = ofi_explain,
    .about = ofi_about,
    .channel_open = ofi_channel_open,
    .channel_close = ofi_channel_close,
    .post = gpsh_ofi_post,
    .flush = gpsh_ofi_flush,
    .fence = gpsh_ofi_fence,
    .progress = gpsh_ofi_progress,
    .serve = gpsh_ofi_help,
    .peer_lost = ofi_peer_lost,
    .extend = gpsh_ofi_extend,
    .extended = gpsh_ofi_extended,
    .retract = gpsh_ofi_retract,
    .buffer_register = gpsh_ofi_buffer_register,
    .buffer_unregister = gpsh_ofi_buffer_unregister,
};
