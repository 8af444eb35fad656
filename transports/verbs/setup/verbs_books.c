// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE
// The books of a flow that a channel posts to: slots, and for each lane what is under way and the
// chain that is being built. Made at its first operation, by the channel's thread.
#include <stdlib.h>

#include "transports/verbs/setup/verbs_setup.h"

enum { RESULTS_BYTES = 64 << 10, PAGE = 4096 };

static int no_memory(const struct verbs_flow *flow, const char *what)
{
    return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory for the %s of a connection to PE %d", what,
                     flow->pe);
}

static void results_free(struct verbs_results *results)
{
    for (int i = 0; i < GPSH_VERBS_MAX_RAILS; i++)
        if (results->mr[i])
            ibv_dereg_mr(results->mr[i]);
    free(results->words);
    free(results);
}

void gpsh_verbs_results_free(struct verbs_channel *channel)
{
    for (struct verbs_results *results = channel->results, *next; results; results = next) {
        next = results->next;
        results_free(results);
    }
    channel->results = NULL;
}

static int results_more(struct verbs_channel *channel, uint32_t words)
{
    struct gpsh_verbs *verbs = channel->verbs;
    struct verbs_results *results = calloc(1, sizeof *results);
    size_t bytes = ((size_t)words * sizeof(uint64_t) + PAGE - 1) / PAGE * PAGE;
    bytes = bytes < RESULTS_BYTES ? RESULTS_BYTES : bytes;
    if (results)
        results->words = aligned_alloc(PAGE, bytes);
    if (!results || !results->words) {
        free(results);
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory for atomics' results");
    }
    memset(results->words, 0, bytes);
    results->room = (uint32_t)(bytes / sizeof(uint64_t));
    struct gpsh_region region = {(char *)results->words, bytes, GPSH_MEMORY_HOST, -1, -1};
    for (int i = 0; i < verbs->n_rails; i++) {
        results->mr[i] =
            gpsh_verbs_register(verbs, &verbs->rails[i], &region, IBV_ACCESS_LOCAL_WRITE, NULL);
        if (!results->mr[i]) {
            results_free(results);
            return gpsh_last_error_code();
        }
    }
    results->next = channel->results;
    channel->results = results;
    return 0;
}

static int take_results(struct verbs_lane *lane)
{
    struct verbs_channel *channel = lane->flow->channel;
    uint32_t words = lane->mask + 1;
    bool room = channel->results && channel->results->room - channel->results->used >= words;
    int status = room ? 0 : results_more(channel, words);
    if (status)
        return status;
    lane->results = channel->results->words + channel->results->used;
    lane->results_key = channel->results->mr[lane->rail]->lkey;
    channel->results->used += words;
    return 0;
}

static int create_chain(struct verbs_lane *lane)
{
    const struct gpsh_verbs *verbs = lane->flow->channel->verbs;
    lane->inline_stride = verbs->rails[lane->rail].max_inline;
    // One that may be posted again by another lane stays until it is complete.
    uint32_t kept = verbs->n_rails > 1 ? lane->mask + 1 : verbs_power_of_two(verbs->chain_limit);
    lane->inline_mask = kept - 1;
    lane->wrs = calloc(verbs->chain_limit, sizeof *lane->wrs);
    lane->sges = calloc(verbs->chain_limit, sizeof *lane->sges);
    lane->inlined = calloc(kept, lane->inline_stride ? lane->inline_stride : 1);
    if (!lane->wrs || !lane->sges || !lane->inlined)
        return no_memory(lane->flow, "work requests");
    lane->limit = verbs->chain_limit;
    for (uint32_t i = 0; i < lane->limit; i++) {
        lane->wrs[i].sg_list = &lane->sges[i];
        lane->wrs[i].next = i + 1 < lane->limit ? &lane->wrs[i + 1] : NULL;
    }
    return 0;
}

// Completions name lanes by their number.
static int number_lane(struct verbs_lane *lane)
{
    struct verbs_channel *channel = lane->flow->channel;
    if (channel->n_lanes == channel->lanes_room) {
        uint32_t room = channel->lanes_room ? 2 * channel->lanes_room : 16;
        struct verbs_lane **more = realloc(channel->lanes, room * sizeof *more);
        if (!more)
            return no_memory(lane->flow, "lanes");
        channel->lanes = more;
        channel->lanes_room = room;
    }
    lane->id = channel->n_lanes;
    channel->lanes[channel->n_lanes++] = lane;
    return 0;
}

static void lane_close(struct verbs_lane *lane)
{
    free(lane->wqes);
    free(lane->wrs);
    free(lane->sges);
    free(lane->inlined);
    lane->wqes = NULL;
    lane->wrs = NULL;
    lane->sges = NULL;
    lane->inlined = NULL;
}

static int lane_open(struct verbs_lane *lane)
{
    lane->wqes = gpsh_lines_alloc(lane->mask + 1, sizeof *lane->wqes);
    if (!lane->wqes)
        return no_memory(lane->flow, "send queue");
    int status = create_chain(lane);
    return status ? status : take_results(lane);
}

static void books_close(struct verbs_flow *flow)
{
    for (int i = 0; i < flow->n_rails; i++)
        lane_close(&flow->lanes[i]);
    free(flow->slots);
    flow->slots = NULL;
}

int gpsh_verbs_books_open(struct verbs_flow *flow)
{
    struct verbs_channel *channel = flow->channel;
    struct gpsh_verbs *verbs = channel->verbs;
    uint32_t n_lanes = channel->n_lanes;
    const struct verbs_results *results = channel->results;
    uint32_t used = results ? results->used : 0;
    struct verbs_slot *slots = gpsh_lines_alloc(flow->slot_mask + 2, sizeof *slots);
    if (!slots)
        return no_memory(flow, "operations");
    flow->slots = slots;
    flow->epoch = channel->epoch;
    int status = 0;
    for (int i = 0; !status && i < flow->n_rails; i++)
        status = lane_open(&flow->lanes[i]);
    for (int i = 0; !status && i < flow->n_rails; i++)
        status = number_lane(&flow->lanes[i]);
    if (!status)
        status = verbs->staging->open(flow);
    if (status) {
        channel->n_lanes = n_lanes;
        if (channel->results)
            channel->results->used = channel->results == results ? used : 0;
        books_close(flow);
        return status;
    }
    atomic_store(&channel->fatal, true); // what was told before somebody could hear it
    return 0;
}

void gpsh_verbs_flow_free(struct verbs_flow *flow)
{
    books_close(flow);
    for (int i = 0; i < flow->n_rails; i++) {
        free(flow->lanes[i].doubt);
        gpsh_verbs_lane_destroy(&flow->lanes[i]);
    }
    free(flow->lanes);
    free(flow);
}
