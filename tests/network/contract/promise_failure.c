// SPDX-License-Identifier: BSD-3-Clause
// Promises about trouble: it is reported, with the PE and a reason, and touches nothing else.
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "contract.h"
#include "core/error.h"

struct failing {
    struct gpsh_completion completion;
    int calls, failed;
};

static void count(struct gpsh_completion *self, int status)
{
    struct failing *failing = (struct failing *)self;
    failing->calls++;
    failing->failed += status < 0;
}

// A range beyond the heap: the NIC there refuses it, and the flow is lost, but no other.
// (A build with sanitizers stops there: transports are promised checked ranges.)
static bool beyond_the_heap(struct world *world)
{
#ifdef GPSH_ASSERTS
    return true;
#endif
    struct failing failing = {.completion.done = count};
    struct gpsh_op op = put_op(world, own_at(world, 0), 1ull << 40, 64);
    op.completion = &failing.completion;
    for (int i = 0; i < 20; i++) {
        int status = post(world, world->channel, &op);
        CHECK(status == GPSH_POST_IN_FLIGHT || status == GPSH_POST_CAPTURED || (i && status < 0),
              "%d: %s", status, gpsh_last_error());
    }
    if (!drain(world->channel))
        return false;
    const struct pe *origin = &world->pes[0];
    CHECK(failing.calls == failing.failed && failing.calls > 0, "%d of %d callbacks say failed",
          failing.failed, failing.calls);
    CHECK(origin->failures > 0 && origin->failed_pe == world->target,
          "peer_failed was not told PE %d", world->target);
    CHECK(origin->failed_code == GPUSHMEM_ERR_TRANSPORT, "a wrong address takes the PE for lost");
    CHECK(strstr(origin->why, "outside its heap"), "the reason given is: %s", origin->why);
    CHECK(world->channel->flows[world->target].error == GPUSHMEM_ERR_TRANSPORT,
          "the flow has no error");
    op.remote = 0;
    CHECK(world->ops->post(world->channel, &op) == GPUSHMEM_ERR_TRANSPORT,
          "posting goes on as if nothing had happened");
    // Towards the other PE, and on the other channel, all is well.
    fill(own_at(world, 0), 64, 1);
    struct gpsh_op fine = put_op(world, own_at(world, 0), 1 << 20, 64);
    struct gpsh_channel *second = origin->channels[1];
    CHECK(post(world, second, &fine) >= 0 && drain(second), "the other channel: %s",
          gpsh_last_error());
    fine.pe = 1 - world->target;
    return post_and_drain(world, &fine) &&
           holds(world->pes[fine.pe].regions[GPSH_HEAP] + (1 << 20), 64, 1);
}

// Everything of a failing flow ends: what is posted, what waits in queues, and loops.
static bool everything_ends(struct world *world)
{
#ifdef GPSH_ASSERTS
    return true; // the same
#endif
    enum { N = 200 };
    struct failing failing = {.completion.done = count};
    int accepted = 0;
    struct gpsh_op bad = get_op(world, own_at(world, 0), 1ull << 40, 8);
    bad.flags = GPSH_OP_MORE;
    bad.completion = &failing.completion;
    accepted += world->ops->post(world->channel, &bad) >= 0;
    for (int i = 0; i < N; i++) {
        uint64_t at = (uint64_t)(i % 30) * 8;
        struct gpsh_op op = i % 3 == 0   ? amo_op(world, GPSH_AMO_SWAP, 4, at, 1, 0, NULL)
                            : i % 3 == 1 ? put_op(world, own_at(world, 0), at, 500000)
                                         : get_op(world, own_at(world, 1 << 20), at, 500000);
        op.completion = &failing.completion;
        op.flags = GPSH_OP_MORE;
        world->ops->fence(world->channel, world->target);
        int status = world->ops->post(world->channel, &op);
        accepted += status >= 0 && status != GPSH_POST_AGAIN;
    }
    world->ops->flush(world->channel);
    if (!drain(world->channel))
        return false;
    CHECK(failing.calls == accepted && failing.failed >= 1, "%d accepted, %d callbacks, %d failed",
          accepted, failing.calls, failing.failed);
    return true;
}

static bool no_such_operation(struct world *world)
{
    struct gpsh_op op = put_op(world, own_at(world, 0), 0, 8);
    op.kind = 77;
    CHECK(world->ops->post(world->channel, &op) < 0, "kind 77 was accepted");
    CHECK(world->channel->pending == 0, "a refused operation is pending");
    return true;
}

static bool second_opening(struct world *world)
{
    struct gpsh_channel *channel = NULL;
    CHECK(world->ops->channel_open(world->pes[0].transport, N_CHANNELS, &channel) < 0, "channel %d",
          N_CHANNELS);
    CHECK(world->ops->channel_open(world->pes[0].transport, 0, &channel) < 0, "channel 0 twice");
    return true;
}

// Blobs that lie: another instance of PE 0 is given PE 1's data with something changed.
static bool bad_blobs(struct world *world)
{
    struct gpsh_transport *fresh = NULL;
    int64_t bytes = world->ops->describe(world->pes[1].transport, NULL, 0);
    CHECK(bytes > 0 && world->ops->open(&world->pes[0].env, &fresh) == 0, "%s", gpsh_last_error());
    char *blob = malloc((size_t)bytes);
    CHECK(blob && world->ops->describe(world->pes[1].transport, blob, (size_t)bytes) == bytes,
          "no blob");
    // it is PE 1's
    bool refused = world->ops->connect(fresh, 0, blob, (size_t)bytes) == GPUSHMEM_ERR_PEER_DATA;
    for (int64_t cut = 0; refused && cut < bytes; cut += 7)
        refused = world->ops->connect(fresh, 1, blob, (size_t)cut) == GPUSHMEM_ERR_PEER_DATA;
    for (int byte = 0; refused && byte < 8; byte++) {
        blob[byte] ^= 0x40;
        refused = byte >= 6 ||
                  world->ops->connect(fresh, 1, blob, (size_t)bytes) == GPUSHMEM_ERR_PEER_DATA;
        blob[byte] ^= 0x40;
    }
    world->ops->close(fresh);
    free(blob);
    CHECK(refused, "a bad blob was accepted");
    return true;
}

const struct promise failure_promises[] = {
    {.name = "failure: a range beyond the heap", beyond_the_heap, .nic_only = true},
    {.name = "failure: everything of the flow ends", everything_ends, .nic_only = true},
    {.name = "failure: no such operation", no_such_operation},
    {.name = "failure: a channel opened twice", second_opening, .nic_only = true},
    {.name = "failure: bad blobs", bad_blobs, .remote_only = true, .nic_only = true},
    {.name = NULL},
};
