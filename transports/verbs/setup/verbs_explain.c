// SPDX-License-Identifier: BSD-3-Clause
// In words: how a peer is reached, which NICs this PE has, and how they reach its heap.
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdio.h>

#include "core/topology.h"
#include "transports/verbs/setup/verbs_setup.h"

// What staging adds to the line below.
static const char *staging_text(const struct gpsh_verbs *verbs, const struct gpsh_verbs_blob *peer)
{
    static const char *const here[] = {"", ", large pieces of this PE's heap staged",
                                       ", this PE's heap staged"};
    return peer->serves & GPSH_VERBS_SERVES_HEAP ? ", its heap staged by its agent"
                                                 : here[verbs->stage.mode];
}

// What a peer has published, as it was checked before.
static bool published(const struct gpsh_verbs *verbs, int pe, struct gpsh_verbs_blob *blob)
{
    size_t bytes;
    if (!verbs->blobs[pe])
        return false;
    memcpy(&bytes, verbs->blobs[pe], sizeof bytes);
    return !gpsh_verbs_blob_parse(verbs->blobs[pe] + sizeof bytes, bytes, blob);
}

static void addresses(const struct verbs_rail *rail, const struct gpsh_verbs_blob_rail *remote,
                      char own[GPSH_VERBS_ADDRESS_TEXT], char theirs[GPSH_VERBS_ADDRESS_TEXT])
{
    uint32_t common = rail->gid_kinds & remote->gid_kinds;
    if (rail->ethernet && common) {
        gpsh_verbs_gid_text(rail->gids[verbs_best_kind(common)].gid.raw, own);
        gpsh_verbs_gid_text(remote->gids[verbs_best_kind(common)], theirs);
    } else {
        snprintf(own, GPSH_VERBS_ADDRESS_TEXT, "LID %u", rail->lid);
        snprintf(theirs, GPSH_VERBS_ADDRESS_TEXT, "LID %u", remote->lid);
    }
}

// The queues of kernels to `pe` that are up: [1] of those made by devx, [0] of the others, which
// fell back to host memory or never were to be elsewhere.
static void count_queues(struct gpsh_verbs *verbs, int pe, int n[2])
{
    pthread_mutex_lock(&verbs->queue_pairs);
    for (int c = verbs->env.channels - verbs->env.kernel_channels; c < verbs->env.channels; c++) {
        const struct verbs_flow *flow = verbs_flow_at(&verbs->channels[c], pe);
        if (flow && verbs_is_up(flow))
            n[flow->lanes[0].devx != NULL]++;
    }
    pthread_mutex_unlock(&verbs->queue_pairs);
}

bool gpsh_verbs_kernels_post(struct gpsh_transport *self, int pe)
{
    const struct gpsh_verbs *verbs = (struct gpsh_verbs *)self;
    struct gpsh_verbs_blob blob;
    return verbs->env.kernel_channels && published(verbs, pe, &blob) &&
           !gpsh_verbs_kernel_refused(verbs, &blob, 0);
}

// Who posts what kernels do there, where that was asked for. Before a queue is up, where it is to
// be.
static void add_kernels(struct gpsh_verbs *verbs, int pe, const struct gpsh_verbs_blob *peer,
                        char *line, size_t bytes)
{
    const char *why = gpsh_verbs_kernel_refused(verbs, peer, 0);
    const char *near = verbs->near.memory.kind == GPSH_MEMORY_DEVICE ? "GPU" : "host";
    size_t used = strlen(line);
    int n[2] = {0};
    if (!verbs->env.kernel_channels)
        return;
    count_queues(verbs, pe, n);
    if (why)
        snprintf(line + used, bytes - used, "; kernels post through rings: %s", why);
    else if (n[0] && n[1])
        snprintf(line + used, bytes - used,
                 "; kernels post themselves, to %d queue%s in %s memory by devx and %d in host "
                 "memory",
                 n[1], n[1] == 1 ? "" : "s", near, n[0]);
    else if (verbs->near.open && !n[0])
        snprintf(line + used, bytes - used,
                 "; kernels post themselves, to queues in %s memory by devx", near);
    else
        snprintf(line + used, bytes - used, "; kernels post themselves, to queues in host memory");
}

// "rxe0:1 10.1.0.1 -> 10.1.0.2, mtu 4096, 2 rails (+ rxe2:1)"
void gpsh_verbs_explain(struct gpsh_transport *self, int pe, char *line, size_t bytes)
{
    struct gpsh_verbs *verbs = (struct gpsh_verbs *)self;
    const struct verbs_rail *rail = &verbs->rails[0];
    struct gpsh_verbs_blob blob;
    char own[GPSH_VERBS_ADDRESS_TEXT], theirs[GPSH_VERBS_ADDRESS_TEXT];
    if (!published(verbs, pe, &blob)) {
        snprintf(line, bytes, "not connected");
        return;
    }
    int n_rails = (int)(blob.n_rails < verbs->n_rails ? blob.n_rails : verbs->n_rails);
    int mtu = blob.rails[0].mtu < rail->mtu ? blob.rails[0].mtu : (int)rail->mtu;
    addresses(rail, &blob.rails[0], own, theirs);
    int used = snprintf(
        line, bytes, "%s %s -> %s, mtu %d%s%s, %d rail%s", rail->name, own, theirs, 128 << mtu,
        gpsh_verbs_may_misplace(verbs, &blob.rails[0]) ? ", reads keep the order" : "",
        staging_text(verbs, &blob), n_rails, n_rails > 1 ? "s" : "");
    for (int i = 1; i < n_rails && used > 0 && (size_t)used < bytes; i++)
        used += snprintf(line + used, bytes - (size_t)used, "%s%s%s", i == 1 ? " (+ " : ", ",
                         verbs->rails[i].name, i == n_rails - 1 ? ")" : "");
    add_kernels(verbs, pe, &blob, line, bytes);
}

struct text {
    char *at;
    size_t left;
};

static void add(struct text *text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int used = vsnprintf(text->at, text->left, format, args);
    va_end(args);
    size_t taken = used < 0 ? 0 : (size_t)used < text->left ? (size_t)used : text->left - 1;
    text->at += taken;
    text->left -= taken;
}

static void add_rails(struct text *text, const struct gpsh_verbs *verbs)
{
    for (int i = 0; i < verbs->n_rails; i++) {
        const struct verbs_rail *rail = &verbs->rails[i];
        add(text, "%s%s (%s",
            i                    ? ", "
            : verbs->n_rails > 1 ? "NICs "
                                 : "NIC ",
            rail->name, rail->ethernet ? "RoCE" : "InfiniBand");
        if (rail->distance != GPSH_DISTANCE_UNKNOWN)
            add(text, ", %s from the %s", gpsh_distance_name((enum gpsh_distance)rail->distance),
                verbs->env.near_pci ? "GPU" : "CPU");
        add(text, ")");
    }
}

const char *gpsh_verbs_why_no_dmabuf(const struct gpsh_verbs *verbs,
                                     const struct gpsh_region *region, const struct verbs_way *way)
{
    if (way->dmabuf_refused)
        return strerror(way->dmabuf_refused);
    return region->dmabuf_fd < 0 ? "the driver gives none" : "GPUSHMEM_TEST_VERBS_DMABUF=off";
}

static void add_way(struct text *text, const struct gpsh_verbs *verbs)
{
    const struct verbs_rail *rail = &verbs->rails[0];
    if (verbs->host_heap)
        return;
    if (rail->heap_way.by != VERBS_BY_ADDRESS)
        add(text, ": GPUDirect by dma-buf%s",
            rail->heap_way.by == VERBS_BY_DATA_DIRECT
                ? ", over the NIC's data-direct function, flushed"
                : "");
    else
        add(text, ": GPUDirect by peer memory (dma-buf: %s)",
            gpsh_verbs_why_no_dmabuf(verbs, &verbs->env.regions[GPSH_HEAP], &rail->heap_way));
}

// "NIC mlx5_0:1 (InfiniBand, PIX from the GPU): GPUDirect by dma-buf"
void gpsh_verbs_about(struct gpsh_transport *self, char *line, size_t bytes)
{
    const struct gpsh_verbs *verbs = (struct gpsh_verbs *)self;
    const struct verbs_stage *stage = &verbs->stage;
    struct text text = {line, bytes};
    add_rails(&text, verbs);
    if (stage->mode == VERBS_STAGE_ALL) {
        add(&text, ": no GPUDirect, staged through pinned host memory: %s", stage->why);
        return;
    }
    add_way(&text, verbs);
    if (stage->mode == VERBS_STAGE_LARGE)
        add(&text, "; puts and gets from %llu bytes on are staged through pinned host memory: %s",
            (unsigned long long)stage->from, stage->why);
}
