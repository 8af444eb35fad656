// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE
// How this PE's heap takes part: decided once, said once.
#include <stdio.h>

#include "core/topology.h"
#include "transports/verbs/stage/verbs_staging.h"

// Of the rails, since all serve.
static const struct verbs_rail *farthest(const struct gpsh_verbs *verbs)
{
    const struct verbs_rail *rail = &verbs->rails[0];
    for (int i = 1; i < verbs->n_rails; i++)
        if (verbs->rails[i].distance > rail->distance)
            rail = &verbs->rails[i];
    return rail;
}

// The words of GPUSHMEM_GPUDIRECT_DISTANCE are "none" and those of enum gpsh_distance. A machine
// that does not tell its distances counts as near.
static bool is_far(const struct gpsh_verbs *verbs)
{
    int limit = verbs->env.settings->gpudirect_distance, distance = farthest(verbs)->distance;
    bool on_gpu = verbs->env.regions[GPSH_HEAP].kind == GPSH_MEMORY_DEVICE;
    return !limit || (on_gpu && distance != GPSH_DISTANCE_UNKNOWN && distance > limit - 1);
}

static void choose_distance(struct gpsh_verbs *verbs)
{
    struct verbs_stage *stage = &verbs->stage;
    const struct verbs_rail *rail = farthest(verbs);
    int limit = verbs->env.settings->gpudirect_distance;
    if (!is_far(verbs))
        return;
    stage->mode = VERBS_STAGE_LARGE;
    stage->from = verbs->env.settings->stage_threshold;
    if (limit)
        snprintf(stage->why, sizeof stage->why,
                 "GPUSHMEM_GPUDIRECT_DISTANCE wants %s or nearer, %s is at %s",
                 gpsh_distance_name((enum gpsh_distance)(limit - 1)), rail->name,
                 gpsh_distance_name((enum gpsh_distance)rail->distance));
    else
        snprintf(stage->why, sizeof stage->why, "GPUSHMEM_GPUDIRECT_DISTANCE=none");
}

static void choose_mailboxes(struct gpsh_verbs *verbs)
{
    struct verbs_stage *stage = &verbs->stage;
    bool refused = verbs->env.settings->gpudirect != GPSH_GPUDIRECT_NEVER;
    stage->mode = VERBS_STAGE_ALL;
    stage->from = 0;
    snprintf(stage->why, sizeof stage->why, "%s",
             refused ? gpsh_last_error() : "GPUSHMEM_GPUDIRECT=never");
    if (refused)
        GPSH_LOG(
            WARN, "verbs",
            "the heap is staged through pinned host memory, which is slower than GPUDirect: %s "
            "(GPUSHMEM_GPUDIRECT=always makes this an error)",
            stage->why);
}

int gpsh_verbs_stage_choose(struct gpsh_verbs *verbs)
{
    const struct gpsh_settings *settings = verbs->env.settings;
    const struct gpsh_region *heap = &verbs->env.regions[GPSH_HEAP];
    struct verbs_stage *stage = &verbs->stage;
    stage->queues = verbs->env.queues ? verbs->env.queues : &gpsh_host_queue_ops;
    stage->from = UINT64_MAX;
    if (settings->gpudirect == GPSH_GPUDIRECT_NEVER) {
        choose_mailboxes(verbs);
        return 0;
    }
    int status = gpsh_verbs_region_register(verbs, GPSH_HEAP, heap);
    if (!status) {
        choose_distance(verbs);
        return 0;
    }
    bool must = heap->kind == GPSH_MEMORY_HOST || settings->gpudirect == GPSH_GPUDIRECT_ALWAYS ||
                settings->verbs_dmabuf == GPSH_DMABUF_REQUIRE;
    if (must)
        return status;
    choose_mailboxes(verbs);
    gpsh_clear_error();
    return 0;
}
