// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE
// Peers and flows, made when they are first wanted: by a channel that posts, or by the handshake of
// a peer. Tables hold pointers to them, which are set once.
#include <stdlib.h>

#include "transports/verbs/setup/verbs_setup.h"

static uint32_t lesser(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

// This PE's GPUSHMEM_VERBS_ORDER decides; auto takes what the peer has published
// (verbs_in_order.c).
bool gpsh_verbs_may_misplace(const struct gpsh_verbs *verbs,
                             const struct gpsh_verbs_blob_rail *remote)
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

// Queues of kernels go by one rail each, as contexts do in turn; both ends reckon it.
int gpsh_verbs_kernel_rail(const struct gpsh_verbs *verbs, const struct verbs_channel *channel,
                           const struct gpsh_verbs_blob *blob)
{
    ptrdiff_t index =
        channel - verbs->channels - (verbs->env.channels - verbs->env.kernel_channels);
    return (int)(index % lesser(verbs->n_rails, blob->n_rails));
}

// The order of packets that overtake each other, and of writes that arrive at a GPU which does not
// keep their order, is made by the host's side, by reads; and staged heaps have no key.
const char *gpsh_verbs_kernel_refused(const struct gpsh_verbs *verbs,
                                      const struct gpsh_verbs_blob *blob, int rail)
{
    if (verbs->rails[rail].no_mlx5)
        return verbs->rails[rail].no_mlx5;
    if (verbs->stage.mode != VERBS_STAGE_NOTHING || blob->serves & GPSH_VERBS_SERVES_HEAP)
        return "heaps are staged through host memory";
    if (gpsh_verbs_may_misplace(verbs, &blob->rails[rail]))
        return "the network does not keep the order of writes (GPUSHMEM_VERBS_ORDER)";
    if (verbs->base.must_flush)
        return "writes to the heap have to be flushed";
    return NULL;
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

int gpsh_verbs_peer_check(const struct gpsh_verbs *verbs, int pe,
                          const struct gpsh_verbs_blob *blob)
{
    const struct gpsh_peer_claims claims = {blob->pe, blob->n_pes, blob->n_channels,
                                            blob->region_bytes};
    int status = gpsh_peer_claims_check(&verbs->env, pe, "verbs", &claims);
    for (uint32_t i = 0; !status && i < blob->n_rails && i < verbs->n_rails; i++) {
        const struct verbs_rail *rail = &verbs->rails[i];
        struct ibv_ah_attr path = {0};
        if (blob->rails[i].ethernet != rail->ethernet)
            return gpsh_fail(GPUSHMEM_ERR_UNREACHABLE,
                             "PE %d has %s where %s is %s: choose with GPUSHMEM_VERBS_DEVICES", pe,
                             blob->rails[i].ethernet ? "RoCE" : "InfiniBand", rail->name,
                             rail->ethernet ? "RoCE" : "InfiniBand");
        status = gpsh_verbs_path(verbs, rail, &blob->rails[i], pe, &path);
    }
    return status;
}

// The caller holds the lock.
static struct verbs_peer *peer_new(struct gpsh_verbs *verbs, int pe)
{
    struct verbs_peer *peer = gpsh_lines_alloc(1, sizeof *peer);
    struct gpsh_verbs_blob named = {0};
    if (!peer) {
        gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory for a connection to PE %d", pe);
        return NULL;
    }
    peer->pe = pe;
    // It was parsed before, and is no longer than its own counts say.
    size_t bytes;
    memcpy(&bytes, verbs->blobs[pe], sizeof bytes);
    if (gpsh_verbs_blob_parse(verbs->blobs[pe] + sizeof bytes, bytes, &named)) {
        free(peer);
        return NULL;
    }
    peer->blob = named;
    peer->next = atomic_load(&verbs->newest);
    atomic_store(&verbs->newest, peer);
    atomic_store_explicit(&verbs->peers[pe], peer, memory_order_release);
    return peer;
}

static struct verbs_peer *peer_get(struct gpsh_verbs *verbs, int pe)
{
    struct verbs_peer *peer = atomic_load_explicit(&verbs->peers[pe], memory_order_acquire);
    if (peer)
        return peer;
    if (verbs->blobs[pe])
        return peer_new(verbs, pe);
    gpsh_fail(GPUSHMEM_ERR_UNREACHABLE, "PE %d: not connected over verbs", pe);
    return NULL;
}

static void lane_fill(struct verbs_flow *flow, int number, int rail)
{
    struct gpsh_verbs *verbs = flow->channel->verbs;
    const struct gpsh_verbs_blob *blob = &flow->peer->blob;
    struct verbs_lane *lane = &flow->lanes[number];
    lane->flow = flow;
    lane->rail = (uint8_t)rail;
    lane->cq = &flow->channel->cqs[rail];
    lane->depth = verbs_is_kernels(flow->channel) ? verbs->kernel_depth : verbs->sq_depth;
    lane->mask = verbs_power_of_two(lane->depth) - 1;
    for (int r = 0; r < GPSH_VERBS_REGIONS; r++)
        lane->lkeys[r] = verbs->rails[rail].mrs[r] ? verbs->rails[rail].mrs[r]->lkey : 0;
    memcpy(lane->rkeys, blob->rails[rail].rkeys, sizeof blob->rails[rail].rkeys);
    for (int i = 0; i < VERBS_CHUNKS && verbs->chunk_keys[i]; i++)
        lane->rkeys[VERBS_CHUNK_KEYS + i] =
            verbs->chunk_keys[i][(size_t)flow->pe * verbs->n_rails + (size_t)rail];
    lane->loose = gpsh_verbs_may_misplace(verbs, &blob->rails[rail]);
    lane->apart = has_two_ways(verbs, blob, (uint32_t)rail);
}

static void flow_fill(struct verbs_flow *flow)
{
    struct gpsh_verbs *verbs = flow->channel->verbs;
    const struct gpsh_verbs_blob *blob = &flow->peer->blob;
    flow->serves = 0;
    for (int r = 0; r < GPSH_VERBS_REGIONS; r++)
        flow->remote_base[r] = blob->bases[r];
    flow->no_atomics = blob->rails[0].atomics == GPSH_VERBS_ATOMICS_NONE ||
                       verbs->rails[0].atomics == GPSH_VERBS_ATOMICS_NONE;
    flow->locks = blob->rails[0].atomics == GPSH_VERBS_ATOMICS_OWN && verbs->env.n_locks
                      ? blob->bases[GPSH_CONTROL] + verbs->env.locks
                      : 0;
    flow->global = global_rails(verbs, blob);
    find_notes(verbs, flow, blob);
    for (int i = 0; i < flow->n_rails; i++)
        lane_fill(flow, i,
                  verbs_is_kernels(flow->channel)
                      ? gpsh_verbs_kernel_rail(verbs, flow->channel, blob)
                      : i);
}

// The caller holds the lock.
static struct verbs_flow *flow_new(struct verbs_channel *channel, struct verbs_peer *peer)
{
    struct gpsh_verbs *verbs = channel->verbs;
    uint32_t n_rails = verbs_is_kernels(channel) ? 1 : lesser(verbs->n_rails, peer->blob.n_rails);
    struct verbs_flow *flow = gpsh_lines_alloc(1, sizeof *flow);
    struct verbs_lane *lanes = gpsh_lines_alloc(n_rails, sizeof *lanes);
    if (!flow || !lanes) {
        free(flow);
        free(lanes);
        gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory for a connection to PE %d", peer->pe);
        return NULL;
    }
    flow->pub = verbs_is_kernels(channel) ? NULL : &channel->base.flows[peer->pe];
    flow->channel = channel;
    flow->peer = peer;
    flow->lanes = lanes;
    flow->pe = peer->pe;
    flow->n_rails = (uint8_t)n_rails;
    flow->cached_word = UINT64_MAX;
    flow->slot_mask = verbs_power_of_two(verbs->sq_depth) - 1;
    flow_fill(flow);
    atomic_store_explicit(&channel->flows[peer->pe], flow, memory_order_release);
    return flow;
}

struct verbs_flow *gpsh_verbs_flow_get(struct verbs_channel *channel, int pe)
{
    struct gpsh_verbs *verbs = channel->verbs;
    struct verbs_flow *flow = verbs_flow_at(channel, pe);
    if (flow)
        return flow;
    pthread_mutex_lock(&verbs->opening);
    struct verbs_peer *peer = peer_get(verbs, pe);
    flow = verbs_flow_at(channel, pe);
    if (!flow && peer)
        flow = flow_new(channel, peer);
    pthread_mutex_unlock(&verbs->opening);
    return flow;
}

// When no flow is left. The paths went with the handshake's thread.
void gpsh_verbs_peers_free(struct gpsh_verbs *verbs)
{
    for (struct verbs_peer *peer = atomic_load(&verbs->newest), *next; peer; peer = next) {
        next = peer->next;
        free(peer);
    }
    for (int pe = 0; verbs->blobs && pe < verbs->env.n_pes; pe++)
        free(verbs->blobs[pe]);
    for (int i = 0; i < VERBS_CHUNKS; i++)
        free(verbs->chunk_keys[i]);
    free((void *)verbs->blobs);
    free((void *)verbs->lost);
    free((void *)verbs->peers);
}
