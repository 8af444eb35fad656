// SPDX-License-Identifier: BSD-3-Clause
// The verbs transport: its instance, its blob, its connections; the ops table is at the bottom.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>

#include "transports/verbs/stage/verbs_staging.h"
#include "transports/verbs/verbs_growth.h"

static uint32_t lesser(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

// A send queue costs memory here and in the NIC for each PE: many PEs have shorter ones.
uint32_t gpsh_verbs_depth(uint32_t wanted, int n_pes)
{
    uint32_t share = VERBS_DEPTH_OF_ALL / (uint32_t)n_pes;
    return lesser(wanted, share < VERBS_DEPTH_LEAST ? VERBS_DEPTH_LEAST : share);
}

static void set_sizes(struct gpsh_verbs *verbs)
{
    const struct gpsh_settings *settings = verbs->env.settings;
    verbs->sq_depth = gpsh_verbs_depth((uint32_t)settings->verbs_sq_depth, verbs->env.n_pes);
    for (int i = 0; i < verbs->n_rails; i++)
        verbs->sq_depth = lesser(verbs->sq_depth, (uint32_t)verbs->rails[i].max_qp_wr);
    verbs->chain_limit = lesser((uint32_t)settings->verbs_signal_every, verbs->sq_depth / 2);
    if (verbs->chain_limit < VERBS_CHAIN_LEAST)
        verbs->chain_limit = VERBS_CHAIN_LEAST;
    verbs->inline_bytes = (uint32_t)settings->verbs_inline;
    verbs->host_heap = verbs->env.regions[GPSH_HEAP].kind == GPSH_MEMORY_HOST;
}

static void verbs_close(struct gpsh_transport *self)
{
    struct gpsh_verbs *verbs = (struct gpsh_verbs *)self;
    if (!verbs)
        return;
    gpsh_verbs_agent_stop(verbs);
    gpsh_verbs_answerer_stop(verbs);
    for (int i = 0; verbs->channels && i < verbs->env.channels; i++) {
        gpsh_verbs_pipes_destroy(&verbs->channels[i]);
        gpsh_verbs_channel_destroy(&verbs->channels[i]);
    }
    gpsh_verbs_buffers_free(verbs);
    gpsh_verbs_rails_close(verbs);
    gpsh_verbs_area_destroy(verbs);
    pthread_rwlock_destroy(&verbs->buffers_lock);
    free(verbs->channels);
    free(verbs->peers);
    free(verbs);
}

static int fill(struct gpsh_verbs *verbs)
{
    verbs->peers = calloc((size_t)verbs->env.n_pes, sizeof *verbs->peers);
    verbs->channels = gpsh_lines_alloc((size_t)verbs->env.channels, sizeof *verbs->channels);
    if (!verbs->peers || !verbs->channels)
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory for %d peers", verbs->env.n_pes);
    int status = gpsh_verbs_rails_open(verbs);
    if (!status)
        status = gpsh_verbs_region_register(verbs, GPSH_CONTROL, &verbs->env.regions[GPSH_CONTROL]);
    if (!status)
        status = gpsh_verbs_region_register(verbs, GPSH_STATIC, &verbs->env.regions[GPSH_STATIC]);
    if (!status)
        status = gpsh_verbs_stage_choose(verbs);
    if (!status)
        set_sizes(verbs);
    for (int i = 0; !status && i < verbs->env.channels; i++)
        status = gpsh_verbs_channel_create(verbs, &verbs->channels[i]);
    if (!status && verbs->stage.mode == VERBS_STAGE_ALL)
        status = gpsh_verbs_agent_start(verbs);
    verbs->base.no_atomics = !status && verbs->rails[0].atomics == GPSH_VERBS_ATOMICS_NONE;
    return status;
}

static void log_about(struct gpsh_verbs *verbs)
{
    char line[VERBS_ABOUT_BYTES];
    gpsh_verbs_about(&verbs->base, line, sizeof line);
    GPSH_LOG(INFO, "verbs", "%s", line);
}

static int verbs_open(const struct gpsh_transport_env *env, struct gpsh_transport **out)
{
    struct gpsh_verbs *verbs = calloc(1, sizeof *verbs);
    if (!verbs)
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory for the verbs transport");
    verbs->base.ops = &gpsh_verbs_ops;
    verbs->env = *env;
    atomic_flag_clear(&verbs->events_busy);
    pthread_rwlock_init(&verbs->buffers_lock, NULL);
    int status = fill(verbs);
    if (status) {
        verbs_close(&verbs->base);
        return status;
    }
    log_about(verbs);
    *out = &verbs->base;
    return 0;
}

static void describe_rail(const struct verbs_rail *rail, struct gpsh_verbs_blob_rail *out)
{
    out->gid_kinds = rail->gid_kinds;
    for (int kind = 0; kind < GPSH_VERBS_GID_KINDS; kind++)
        memcpy(out->gids[kind], rail->gids[kind].gid.raw, sizeof out->gids[kind]);
    for (int r = 0; r < GPSH_VERBS_REGIONS; r++)
        out->rkeys[r] = rail->mrs[r] ? rail->mrs[r]->rkey : 0;
    out->lid = rail->lid;
    out->ethernet = rail->ethernet;
    out->mtu = (uint8_t)rail->mtu;
    out->reads_in = rail->reads_in;
    out->port = rail->port;
    out->atomics = rail->atomics;
    out->in_order = rail->in_order;
    out->apart = rail->heap_way.by == VERBS_BY_DATA_DIRECT;
    out->needs_grh = rail->needs_grh;
    out->psn_seed = rail->psn_seed;
}

static uint32_t serves(const struct gpsh_verbs *verbs)
{
    return (verbs->stage.mode == VERBS_STAGE_ALL ? GPSH_VERBS_SERVES_HEAP : 0u) |
           (verbs->stage.atomics ? GPSH_VERBS_SERVES_ATOMICS : 0u);
}

static int64_t verbs_describe(struct gpsh_transport *self, void *to, size_t bytes)
{
    struct gpsh_verbs *verbs = (struct gpsh_verbs *)self;
    struct gpsh_verbs_blob blob = {.pe = (uint32_t)verbs->env.my_pe,
                                   .n_pes = (uint32_t)verbs->env.n_pes,
                                   .n_channels = (uint32_t)verbs->env.channels,
                                   .n_rails = verbs->n_rails,
                                   .serves = serves(verbs),
                                   .slots = verbs->stage.slots,
                                   .slot_bytes = verbs->stage.slot_bytes};
    for (int i = 0; i < verbs->n_rails; i++)
        describe_rail(&verbs->rails[i], &blob.rails[i]);
    size_t needed = gpsh_verbs_blob_bytes(&blob);
    if (bytes < needed)
        return (int64_t)needed;
    for (int r = 0; r < GPSH_REGIONS; r++) {
        blob.region_bytes[r] = verbs->env.regions[r].bytes;
        blob.bases[r] = blob.region_bytes[r] ? (uintptr_t)verbs->env.regions[r].base : 0;
    }
    blob.bases[GPSH_VERBS_STAGE] = (uintptr_t)verbs->stage.area.base;
    blob.region_bytes[GPSH_VERBS_STAGE] = verbs->stage.area.bytes;
    gpsh_verbs_blob_write(&blob, to);
    for (uint32_t pe = 0; pe < blob.n_pes; pe++)
        for (uint32_t c = 0; c < blob.n_channels; c++)
            for (uint32_t i = 0; i < blob.n_rails; i++)
                gpsh_verbs_blob_set_qpn(&blob, to, pe, c, i,
                                        verbs->channels[c].flows[pe].lanes[i].qp->qp_num);
    return (int64_t)needed;
}

// Whether the blob is that of `pe` in this job, and its NICs are of our kind.
static int check_peer(const struct gpsh_verbs *verbs, int pe, const struct gpsh_verbs_blob *blob)
{
    if (blob->pe != (uint32_t)pe || blob->n_pes != (uint32_t)verbs->env.n_pes)
        return gpsh_fail(GPUSHMEM_ERR_PEER_DATA,
                         "PE %d published the verbs data of PE %u of %u (this job has %d PEs)", pe,
                         blob->pe, blob->n_pes, verbs->env.n_pes);
    if (blob->n_channels != (uint32_t)verbs->env.channels)
        return gpsh_fail(GPUSHMEM_ERR_PEER_DATA,
                         "PE %d has %u channels, this one %d: give all PEs the same GPUSHMEM_* "
                         "settings",
                         pe, blob->n_channels, verbs->env.channels);
    for (int r = 0; r < GPSH_REGIONS; r++)
        if (blob->region_bytes[r] != verbs->env.regions[r].bytes && r != GPSH_STATIC)
            return gpsh_fail(
                GPUSHMEM_ERR_PEER_DATA,
                "PE %d has %llu bytes of symmetric memory where this one has %zu: give "
                "all PEs the same GPUSHMEM_HEAP_SIZE",
                pe, (unsigned long long)blob->region_bytes[r], verbs->env.regions[r].bytes);
    for (uint32_t i = 0; i < blob->n_rails && i < verbs->n_rails; i++)
        if (blob->rails[i].ethernet != verbs->rails[i].ethernet)
            return gpsh_fail(GPUSHMEM_ERR_UNREACHABLE,
                             "PE %d has %s where %s is %s: choose with GPUSHMEM_VERBS_DEVICES", pe,
                             blob->rails[i].ethernet ? "RoCE" : "InfiniBand", verbs->rails[i].name,
                             verbs->rails[i].ethernet ? "RoCE" : "InfiniBand");
    return 0;
}

// Whether writes to that rail of a peer are taken for ones that may be placed in another order than
// they are posted in. This PE's GPUSHMEM_VERBS_ORDER decides; auto takes what the peer has
// published (verbs_in_order.c).
static bool may_misplace(const struct gpsh_verbs *verbs, const struct gpsh_verbs_blob_rail *remote)
{
    int order = verbs->env.settings->verbs_order;
    return order == GPSH_VERBS_ORDER_AUTO ? !remote->in_order : order == GPSH_VERBS_ORDER_STRICT;
}

// Whether a write to that peer may be acknowledged while something that is sent later, by anybody,
// gets there first. Behind one NIC everything takes the same way: what arrives later pushes what
// arrived before (docs/design/ordering.md). But a GPU is not where the mailboxes are, which tell of
// it.
static bool has_two_ways(const struct gpsh_verbs *verbs, const struct gpsh_verbs_blob *blob,
                         uint32_t rail)
{
    return blob->n_rails > 1 || blob->rails[rail].apart ||
           (blob->serves == GPSH_VERBS_SERVES_ATOMICS && !verbs->host_heap);
}

// Words by which PEs tell each other of rails that are lost, where there are others.
static void find_notes(const struct gpsh_verbs *verbs, struct verbs_flow *flow,
                       const struct gpsh_verbs_blob *blob)
{
    uint64_t n_pes = (uint64_t)verbs->env.n_pes, me = (uint64_t)verbs->env.my_pe;
    if (flow->n_rails < 2 || !verbs->env.notes)
        return;
    char *notes = verbs->env.regions[GPSH_CONTROL].base + verbs->env.notes;
    uint64_t there = blob->bases[GPSH_CONTROL] + verbs->env.notes + me * sizeof(uint64_t);
    flow->note = (_Atomic uint64_t *)(void *)notes + flow->pe;
    flow->note_there = there;
    flow->question_there = there + n_pes * sizeof(uint64_t);
    flow->answer_there = there + 2 * n_pes * sizeof(uint64_t);
}

// The rails by which another NIC may go on with atomics, since the NICs there are atomic to each
// other, as they are to everything.
static uint8_t global_rails(const struct gpsh_verbs *verbs, const struct gpsh_verbs_blob *blob)
{
    uint8_t rails = 0;
    for (uint32_t i = 0; i < blob->n_rails && i < verbs->n_rails; i++)
        if (blob->rails[i].atomics == GPSH_VERBS_ATOMICS_ALL &&
            verbs->rails[i].atomics != GPSH_VERBS_ATOMICS_NONE)
            rails |= (uint8_t)(1u << i);
    return rails & 1 ? rails : 0;
}

static int connect_flow(struct gpsh_verbs *verbs, struct verbs_flow *flow, uint32_t channel,
                        const struct gpsh_verbs_blob *blob)
{
    flow->n_rails = (uint8_t)lesser(verbs->n_rails, blob->n_rails);
    for (int r = 0; r < GPSH_VERBS_REGIONS; r++)
        flow->remote_base[r] = blob->bases[r];
    flow->no_atomics = blob->rails[0].atomics == GPSH_VERBS_ATOMICS_NONE ||
                       verbs->rails[0].atomics == GPSH_VERBS_ATOMICS_NONE;
    flow->locks = blob->rails[0].atomics == GPSH_VERBS_ATOMICS_OWN && verbs->env.n_locks
                      ? blob->bases[GPSH_CONTROL] + verbs->env.locks
                      : 0;
    flow->global = global_rails(verbs, blob);
    find_notes(verbs, flow, blob);
    for (uint32_t i = 0; i < flow->n_rails; i++) {
        enum ibv_mtu mtu = (enum ibv_mtu)lesser(verbs->rails[i].mtu, blob->rails[i].mtu);
        uint32_t qpn = gpsh_verbs_blob_qpn(blob, (uint32_t)verbs->env.my_pe, channel, i);
        int status = gpsh_verbs_lane_connect(verbs, &flow->lanes[i], &blob->rails[i], qpn, mtu);
        if (status)
            return status;
        flow->lanes[i].loose = may_misplace(verbs, &blob->rails[i]);
        flow->lanes[i].apart = has_two_ways(verbs, blob, i);
    }
    int status = gpsh_verbs_pipe_create(flow, channel, blob);
    flow->pub->error = status;
    return status;
}

static int verbs_connect(struct gpsh_transport *self, int pe, const void *bytes, size_t size)
{
    struct gpsh_verbs *verbs = (struct gpsh_verbs *)self;
    struct verbs_peer *peer = &verbs->peers[pe];
    struct gpsh_verbs_blob blob;
    if (peer->connected)
        return gpsh_fail(GPUSHMEM_ERR_STATE, "PE %d is connected over verbs already", pe);
    int status = gpsh_verbs_blob_parse(bytes, size, (uint32_t)verbs->env.my_pe, &blob);
    if (!status)
        status = check_peer(verbs, pe, &blob);
    for (int c = 0; !status && c < verbs->env.channels; c++)
        status = connect_flow(verbs, &verbs->channels[c].flows[pe], (uint32_t)c, &blob);
    if (status)
        return status;
    status = blob.n_rails > 1 && verbs->n_rails > 1 ? gpsh_verbs_answerer_start(verbs) : 0;
    if (status)
        return status;
    peer->connected = true;
    peer->n_rails = (uint8_t)lesser(verbs->n_rails, blob.n_rails);
    peer->mtu = (enum ibv_mtu)lesser(verbs->rails[0].mtu, blob.rails[0].mtu);
    peer->serves = blob.serves;
    peer->gid_kind = (uint8_t)gpsh_verbs_gid_agree(&verbs->rails[0], &blob.rails[0], pe);
    if (blob.rails[0].ethernet)
        gpsh_verbs_gid_text(blob.rails[0].gids[peer->gid_kind], peer->address);
    else
        snprintf(peer->address, sizeof peer->address, "LID %u", blob.rails[0].lid);
    return 0;
}

static int verbs_channel_open(struct gpsh_transport *self, int index, struct gpsh_channel **out)
{
    struct gpsh_verbs *verbs = (struct gpsh_verbs *)self;
    if (index < 0 || index >= verbs->env.channels || verbs->channels[index].open)
        return gpsh_fail(GPUSHMEM_ERR_INVALID,
                         "channel %d of the verbs transport is open already, or not one of its %d",
                         index, verbs->env.channels);
    verbs->channels[index].open = true;
    *out = &verbs->channels[index].base;
    return 0;
}

// The queue pairs stay until the transport closes: the peers' channels of this number write through
// their other ends, and what this channel still has in flight ends in memory that stays as long.
static void verbs_channel_close(struct gpsh_channel *base)
{
    struct verbs_channel *channel = (struct verbs_channel *)base;
    if (!channel)
        return;
    const struct verbs_stats *stats = &channel->stats;
    GPSH_LOG(DEBUG, "verbs",
             "channel %td: %llu requests, %llu doorbells, %llu completions, %llu bytes out, %llu "
             "in, %llu "
             "bounced, %llu swaps retried, %llu operations queued, %llu kicks",
             channel - channel->verbs->channels, (unsigned long long)stats->posts,
             (unsigned long long)stats->doorbells, (unsigned long long)stats->cqes,
             (unsigned long long)stats->bytes_out, (unsigned long long)stats->bytes_in,
             (unsigned long long)stats->bounce_bytes, (unsigned long long)stats->cas_retries,
             (unsigned long long)stats->queued, (unsigned long long)stats->kicks);
}

const struct gpsh_transport_ops gpsh_verbs_ops = {
    .name = "verbs",
    .caps = GPSH_CAP_REMOTE_NODE | GPSH_CAP_NIC_ATOMICS,
    .open = verbs_open,
    .close = verbs_close,
    .serve_atomics = gpsh_verbs_serve_atomics,
    .describe = verbs_describe,
    .connect = verbs_connect,
    .explain = gpsh_verbs_explain,
    .about = gpsh_verbs_about,
    .channel_open = verbs_channel_open,
    .channel_close = verbs_channel_close,
    .post = gpsh_verbs_post,
    .flush = gpsh_verbs_flush,
    .fence = gpsh_verbs_fence,
    .progress = gpsh_verbs_progress,
    .peer_lost = gpsh_verbs_peer_lost,
    .extend = gpsh_verbs_heap_extend,
    .extended = gpsh_verbs_heap_extended,
    .retract = gpsh_verbs_heap_retract,
    .buffer_register = gpsh_verbs_buffer_register,
    .buffer_unregister = gpsh_verbs_buffer_unregister,
};
