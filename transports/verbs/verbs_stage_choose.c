// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE
// How this PE's heap takes part: decided once, said once.
#include <stdio.h>

#include "runtime/topology.h"
#include "verbs_stage.h"

// The farthest of the rails, since all serve.
static int distance_of(const struct gpsh_verbs *verbs)
{
    int farthest = GPSH_DISTANCE_PIX;
    for (int i = 0; i < verbs->n_rails; i++)
        if (verbs->rails[i].distance > farthest)
            farthest = verbs->rails[i].distance;
    return farthest;
}

// The words of GPUSHMEM_GPUDIRECT_DISTANCE are "none" and those of enum gpsh_distance. A machine that does not tell
// its distances counts as near.
static bool is_far(const struct gpsh_verbs *verbs)
{
    int limit = verbs->env.settings->gpudirect_distance, distance = distance_of(verbs);
    bool on_gpu = verbs->env.regions[GPSH_HEAP].kind == GPSH_MEMORY_DEVICE;
    return !limit || (on_gpu && distance != GPSH_DISTANCE_UNKNOWN && distance > limit - 1);
}

static void choose_distance(struct gpsh_verbs *verbs)
{
    struct verbs_stage *stage = &verbs->stage;
    if (!is_far(verbs))
        return;
    stage->mode = VERBS_STAGE_LARGE;
    stage->from = verbs->env.settings->stage_threshold;
    snprintf(stage->why, sizeof stage->why, "%s is at distance %s of the GPU", verbs->rails[0].name,
             gpsh_distance_name((enum gpsh_distance)distance_of(verbs)));
    GPSH_LOG(INFO, "verbs",
             "puts and gets of %llu bytes and more go through pinned host memory: %s, and "
             "GPUSHMEM_GPUDIRECT_DISTANCE asks for nearer ones",
             (unsigned long long)stage->from, stage->why);
}

static void choose_mailboxes(struct gpsh_verbs *verbs)
{
    struct verbs_stage *stage = &verbs->stage;
    bool refused = verbs->env.settings->gpudirect != GPSH_GPUDIRECT_NEVER;
    stage->mode = VERBS_STAGE_ALL;
    stage->from = 0;
    snprintf(stage->why, sizeof stage->why, "%s", refused ? gpsh_last_error() : "GPUSHMEM_GPUDIRECT=never");
    if (refused)
        GPSH_LOG(WARN, "verbs",
                 "the heap is staged through pinned host memory, which is slower than GPUDirect: %s "
                 "(GPUSHMEM_GPUDIRECT=always makes this an error)",
                 stage->why);
    else
        GPSH_LOG(INFO, "verbs", "the heap is staged through pinned host memory: %s", stage->why);
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
