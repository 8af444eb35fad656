// SPDX-License-Identifier: BSD-3-Clause
// The verbs transport: its instance, its blob, its connections; the ops table is at the bottom.
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#include "transports/verbs/stage/verbs_staging.h"

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

// The same for queue pairs that kernels post to: a power of two.
static uint32_t kernel_depth(const struct gpsh_verbs *verbs)
{
    uint32_t wanted = lesser((uint32_t)verbs->env.settings->device_post_entries,
                             VERBS_DEPTH_OF_ALL / (uint32_t)verbs->env.n_pes);
    uint32_t depth = VERBS_KERNEL_DEPTH_LEAST;
    while (depth * 2 <= lesser(wanted, (uint32_t)verbs->rails[0].max_qp_wr))
        depth *= 2;
    return depth;
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
    verbs->kernel_depth = kernel_depth(verbs);
    for (int i = 0; i < verbs->n_rails && verbs->env.kernel_channels; i++)
        verbs->rails[i].no_mlx5 = gpsh_verbs_no_mlx5(&verbs->rails[i]);
    verbs->host_heap = verbs->env.regions[GPSH_HEAP].kind == GPSH_MEMORY_HOST;
}

static void verbs_close(struct gpsh_transport *self)
{
    struct gpsh_verbs *verbs = (struct gpsh_verbs *)self;
    if (!verbs)
        return;
    gpsh_verbs_handshakes_stop(verbs);
    gpsh_verbs_agent_stop(verbs);
    gpsh_verbs_answerer_stop(verbs);
    for (int i = 0; verbs->channels && i < verbs->env.channels; i++) {
        gpsh_verbs_pipes_destroy(&verbs->channels[i]);
        gpsh_verbs_channel_destroy(&verbs->channels[i]);
    }
    gpsh_verbs_buffers_free(verbs);
    gpsh_verbs_near_close(verbs);
    gpsh_verbs_rails_close(verbs);
    gpsh_verbs_area_destroy(verbs);
    gpsh_verbs_peers_free(verbs);
    pthread_rwlock_destroy(&verbs->buffers.lock);
    pthread_mutex_destroy(&verbs->opening);
    pthread_mutex_destroy(&verbs->queue_pairs);
    free(verbs->channels);
    free(verbs);
}

// It may be gigabytes, more than may be locked: programs that name none of it run without, unless
// it was demanded.
static int register_static(struct gpsh_verbs *verbs)
{
    int status = gpsh_verbs_region_register(verbs, GPSH_STATIC, &verbs->env.regions[GPSH_STATIC]);
    if (!status || verbs->env.settings->static_data == GPSH_STATIC_DATA_ON)
        return status;
    snprintf(verbs->base.static_refused, sizeof verbs->base.static_refused, "%s",
             gpsh_last_error());
    verbs->env.regions[GPSH_STATIC] = (struct gpsh_region){.dmabuf_fd = -1, .dmabuf_pcie_fd = -1};
    gpsh_clear_error();
    return 0;
}

static int make_tables(struct gpsh_verbs *verbs)
{
    size_t n_pes = (size_t)verbs->env.n_pes;
    verbs->blobs = calloc(n_pes, sizeof *verbs->blobs);
    verbs->lost = calloc(n_pes, sizeof *verbs->lost);
    verbs->peers = calloc(n_pes, sizeof *verbs->peers);
    verbs->channels = gpsh_lines_alloc((size_t)verbs->env.channels, sizeof *verbs->channels);
    if (!verbs->blobs || !verbs->lost || !verbs->peers || !verbs->channels)
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory for %d peers", verbs->env.n_pes);
    while (!verbs->secret)
        if (getrandom(&verbs->secret, sizeof verbs->secret, 0) != sizeof verbs->secret)
            return gpsh_fail(GPUSHMEM_ERR_SYSTEM, "no random number from the kernel (%s)",
                             strerror(errno));
    return 0;
}

static int fill(struct gpsh_verbs *verbs)
{
    int status = make_tables(verbs);
    if (!status)
        status = gpsh_verbs_rails_open(verbs);
    if (!status)
        status = gpsh_verbs_region_register(verbs, GPSH_CONTROL, &verbs->env.regions[GPSH_CONTROL]);
    if (!status)
        status = register_static(verbs);
    if (!status)
        status = gpsh_verbs_stage_choose(verbs);
    if (!status)
        set_sizes(verbs);
    for (int i = 0; !status && i < verbs->n_rails; i++)
        status = gpsh_verbs_qp_try(verbs, &verbs->rails[i]);
    if (!status)
        gpsh_verbs_near_open(verbs);
    for (int i = 0; !status && i < verbs->n_rails; i++)
        status = gpsh_verbs_datagrams_open(verbs, &verbs->rails[i]);
    for (int i = 0; !status && i < verbs->env.channels; i++)
        status = gpsh_verbs_channel_create(verbs, &verbs->channels[i]);
    if (!status)
        status = gpsh_verbs_handshakes_start(verbs);
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
    pthread_rwlock_init(&verbs->buffers.lock, NULL);
    pthread_mutex_init(&verbs->opening, NULL);
    pthread_mutex_init(&verbs->queue_pairs, NULL);
    verbs->staging = &gpsh_verbs_staging;
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
    out->datagrams = gpsh_verbs_datagrams_qp(rail)->qp_num;
}

static uint16_t serves(const struct gpsh_verbs *verbs)
{
    return (uint16_t)((verbs->stage.mode == VERBS_STAGE_ALL ? GPSH_VERBS_SERVES_HEAP : 0u) |
                      (verbs->stage.atomics ? GPSH_VERBS_SERVES_ATOMICS : 0u));
}

static int64_t verbs_describe(struct gpsh_transport *self, void *to, size_t bytes)
{
    struct gpsh_verbs *verbs = (struct gpsh_verbs *)self;
    struct gpsh_verbs_blob blob = {.pe = (uint32_t)verbs->env.my_pe,
                                   .n_pes = (uint32_t)verbs->env.n_pes,
                                   .n_channels = (uint32_t)verbs->env.channels,
                                   .n_rails = verbs->n_rails,
                                   .secret = verbs->secret,
                                   .serves = serves(verbs),
                                   .slots = (uint16_t)verbs->stage.slots,
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
    return (int64_t)needed;
}

static int keep(struct gpsh_verbs *verbs, int pe, const void *bytes, size_t size)
{
    unsigned char *blob = malloc(sizeof size + size);
    if (!blob)
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory for the verbs data of PE %d", pe);
    memcpy(blob, &size, sizeof size);
    memcpy(blob + sizeof size, bytes, size);
    // The peer may greet already: its handshake sees all of it or nothing.
    atomic_store(&verbs->blobs[pe], blob);
    return 0;
}

// Nothing is made for the peer until something is sent there.
static int verbs_connect(struct gpsh_transport *self, int pe, const void *bytes, size_t size)
{
    struct gpsh_verbs *verbs = (struct gpsh_verbs *)self;
    struct gpsh_verbs_blob blob;
    if (verbs->blobs[pe])
        return gpsh_fail(GPUSHMEM_ERR_STATE, "PE %d is connected over verbs already", pe);
    int status = gpsh_verbs_blob_parse(bytes, size, &blob);
    if (!status)
        status = gpsh_verbs_peer_check(verbs, pe, &blob);
    if (!status && blob.n_rails > 1 && verbs->n_rails > 1)
        status = gpsh_verbs_answerer_start(verbs);
    return status ? status : keep(verbs, pe, bytes, size);
}

static int refused(const struct verbs_flow *flow)
{
    char why[VERBS_WHY_BYTES];
    snprintf(why, sizeof why, "%s", flow->link.why);
    int code = gpsh_verbs_judge(flow->channel->verbs, flow->pe, flow->link.code, why, sizeof why);
    return gpsh_fail(code, "%s", why);
}

// With a budget of queue pairs those that stood first may have been closed for the later ones.
static int verbs_establish(struct gpsh_transport *self, int pe, bool begin)
{
    struct gpsh_verbs *verbs = (struct gpsh_verbs *)self;
    bool all = true;
    for (int c = 0; c < verbs->env.channels; c++) {
        struct verbs_flow *flow = gpsh_verbs_flow_get(&verbs->channels[c], pe);
        if (!flow)
            return gpsh_last_error_code();
        if (begin)
            atomic_store(&flow->wanted, true);
        if (verbs_is_up(flow))
            atomic_store(&flow->wanted, false);
        if (!atomic_load(&flow->wanted))
            continue;
        gpsh_verbs_handshake_ask(flow);
        if (atomic_load(&flow->state) == VERBS_REFUSED)
            return refused(flow);
        all = false;
    }
    return all;
}

static void verbs_kernel_queue(struct gpsh_transport *self, int index, int pe, const void *answers,
                               size_t bytes)
{
    struct gpsh_verbs *verbs = (struct gpsh_verbs *)self;
    struct verbs_channel *channel =
        &verbs->channels[verbs->env.channels - verbs->env.kernel_channels + index];
    struct verbs_flow *flow = gpsh_verbs_flow_get(channel, pe);
    if (!flow) {
        verbs->env.kernel_queue(verbs->env.arg, index, pe, NULL, gpsh_last_error());
        return;
    }
    channel->answers_bytes = bytes;
    atomic_store(&channel->answers, answers);
    atomic_thread_fence(memory_order_seq_cst);
    const char *why = gpsh_verbs_kernel_refused(verbs, &flow->peer->blob, flow->lanes[0].rail);
    if (why)
        gpsh_verbs_kernel_out(flow, why);
    else if (verbs_is_up(flow))
        gpsh_verbs_kernel_up(flow);
    else if (atomic_load(&flow->state) == VERBS_REFUSED)
        gpsh_verbs_kernel_out(flow, flow->link.why);
    else
        gpsh_verbs_handshake_ask(flow);
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
    .establish = verbs_establish,
    .explain = gpsh_verbs_explain,
    .kernels_post = gpsh_verbs_kernels_post,
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
    .kernel_queue = verbs_kernel_queue,
    .kernel_failed = gpsh_verbs_kernel_failed,
    .buffer_register = gpsh_verbs_buffer_register,
    .buffer_unregister = gpsh_verbs_buffer_unregister,
};
