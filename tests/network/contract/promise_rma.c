// SPDX-License-Identifier: BSD-3-Clause
// Promises about puts and gets: every size, every address, every kind of local memory, and the
// caller's counters.
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "contract.h"
#include "core/error.h"

enum { GUARD = 16, MIB = 1 << 20 };

static const uint64_t sizes[] = {1,    2,    3,     4,     5,     7,      8,     9,
                                 15,   16,   31,    63,    64,    65,     127,   128,
                                 129,  255,  512,   1000,  2047,  2048,   2049,  4095,
                                 4096, 4097, 65535, 65536, 65537, 262144, 262145};
enum { N_SIZES = sizeof sizes / sizeof *sizes };

static bool guards_hold(const char *start, uint64_t bytes)
{
    for (int i = 0; i < GUARD; i++)
        if (start[-1 - i] != 0x5a || start[bytes + (uint64_t)i] != 0x5a)
            return false;
    return true;
}

static bool one_put(struct world *world, const char *source, uint64_t remote, uint64_t bytes)
{
    char *to = target_at(world, remote);
    memset(to - GUARD, 0x5a, bytes + 2 * GUARD);
    struct gpsh_op op = put_op(world, source, remote, bytes);
    if (!post_and_drain(world, &op))
        return false;
    CHECK(!memcmp(to, source, bytes), "%llu bytes from %p to offset %llu",
          (unsigned long long)bytes, (const void *)source, (unsigned long long)remote);
    CHECK(guards_hold(to, bytes), "%llu bytes to offset %llu: bytes beside them were written",
          (unsigned long long)bytes, (unsigned long long)remote);
    return true;
}

static bool puts_from(struct world *world, char *source)
{
    fill(source, 300000, 1);
    for (int i = 0; i < N_SIZES; i++)
        for (uint64_t odd = 0; odd < 4; odd++)
            if (!one_put(world, source + odd * 3, 2 * MIB + odd * 5, sizes[i]))
                return false;
    return true;
}

static bool put_from_heap(struct world *world)
{
    return puts_from(world, own_at(world, MIB));
}

static bool put_from_anywhere(struct world *world)
{
    char *source = malloc(300100);
    bool kept = source && puts_from(world, source);
    free(source);
    return kept;
}

static bool one_get(struct world *world, char *to, uint64_t remote, uint64_t bytes)
{
    memset(to - GUARD, 0x5a, bytes + 2 * GUARD);
    struct gpsh_op op = get_op(world, to, remote, bytes);
    if (!post_and_drain(world, &op))
        return false;
    CHECK(!memcmp(to, target_at(world, remote), bytes), "%llu bytes from offset %llu",
          (unsigned long long)bytes, (unsigned long long)remote);
    CHECK(guards_hold(to, bytes), "%llu bytes: bytes beside them were written",
          (unsigned long long)bytes);
    return true;
}

static bool gets_to(struct world *world, char *to)
{
    fill(target_at(world, 2 * MIB), 300000, 2);
    for (int i = 0; i < N_SIZES; i++)
        for (uint64_t odd = 0; odd < 4; odd++)
            if (!one_get(world, to + GUARD + odd * 3, 2 * MIB + odd * 5, sizes[i]))
                return false;
    return true;
}

static bool get_to_heap(struct world *world)
{
    return gets_to(world, own_at(world, MIB));
}

static bool get_to_anywhere(struct world *world)
{
    char *to = malloc(300100);
    bool kept = to && gets_to(world, to);
    free(to);
    return kept;
}

static bool nothing_to_move(struct world *world)
{
    struct gpsh_op put = put_op(world, NULL, 64, 0), get = get_op(world, NULL, 64, 0);
    CHECK(post(world, world->channel, &put) >= 0 && post(world, world->channel, &get) >= 0, "%s",
          gpsh_last_error());
    CHECK(world->channel->flows[world->target].posted == 2, "empty operations count too");
    return drain(world->channel);
}

// Larger than any one message here: it is split, and comes back whole.
static bool large_put_and_get(struct world *world)
{
    const uint64_t bytes = 9 * MIB + 13;
    char *there = target_at(world, 14 * MIB + 1), *outside = malloc(bytes);
    CHECK(outside, "no memory");
    fill(own_at(world, MIB), bytes, 3);
    struct gpsh_op put = put_op(world, own_at(world, MIB), 14 * MIB + 1, bytes);
    struct gpsh_op get = get_op(world, outside, 14 * MIB + 1, bytes);
    bool kept = post_and_drain(world, &put) && holds(there, bytes, 3) &&
                post_and_drain(world, &get) && holds(outside, bytes, 3);
    memset(there, 0, bytes);
    put.local = outside;
    kept = kept && post_and_drain(world, &put) && holds(there, bytes, 3);
    free(outside);
    return kept;
}

static bool registered_buffer(struct world *world)
{
    struct gpsh_transport *transport = world->pes[0].transport;
    const uint64_t bytes = MIB;
    if (!world->ops->buffer_register)
        return true;
    char *buffer = aligned_alloc(4096, bytes);
    CHECK(buffer, "no memory");
    struct gpsh_region region = {buffer, bytes, GPSH_MEMORY_HOST, -1, -1};
    CHECK(world->ops->buffer_register(transport, &region) == 0, "%s", gpsh_last_error());
    CHECK(world->ops->buffer_register(transport, &region) == GPUSHMEM_ERR_INVALID,
          "registered twice");
    bool kept = puts_from(world, buffer) && gets_to(world, buffer);
    CHECK(world->ops->buffer_unregister(transport, buffer + 1) == GPUSHMEM_ERR_INVALID,
          "that is not its base");
    CHECK(world->ops->buffer_unregister(transport, buffer) == 0, "%s", gpsh_last_error());
    kept = kept && puts_from(world, buffer); // now like any other memory
    free(buffer);
    return kept;
}

// The source is overwritten as soon as post returns, or says that it is in use and has completed.
static bool captured_source(struct world *world)
{
    static const uint64_t lengths[] = {1, 8, 100, 128, 129, 2048, 5000, 65536, 300001, MIB};
    char *outside = malloc(MIB);
    CHECK(outside, "no memory");
    uint64_t at = 4 * MIB;
    for (int round = 0; round < 20; round++) {
        uint64_t bytes = lengths[round % 10];
        char *source = round < 10 ? outside : own_at(world, MIB);
        fill(source, bytes, (unsigned)round);
        struct gpsh_op op = put_op(world, source, at, bytes);
        op.flags = GPSH_OP_CAPTURE | (round % 3 ? GPSH_OP_MORE : 0);
        int status = post(world, world->channel, &op);
        CHECK(status >= 0, "%s", gpsh_last_error());
        CHECK(status != GPSH_POST_IN_FLIGHT || bytes > 2048, "%llu bytes are not captured",
              (unsigned long long)bytes);
        if (status == GPSH_POST_IN_FLIGHT && !drain(world->channel))
            return false;
        memset(source, 0xee, bytes);
        at += bytes;
    }
    CHECK(world->ops->flush(world->channel) == 0, "flush failed");
    bool kept = drain(world->channel);
    free(outside);
    at = 4 * MIB;
    for (int round = 0; kept && round < 20; at += lengths[round % 10], round++)
        kept = holds(target_at(world, at), lengths[round % 10], (unsigned)round);
    return kept;
}

// Many more than any queue holds, with all of their sources captured in passing.
static bool many_small_puts(struct world *world)
{
    enum { N = 6000 };
    for (uint64_t i = 0; i < N; i++) {
        uint64_t value = i * 3 + 1;
        struct gpsh_op op = put_op(world, &value, MIB + 8 * i, 8);
        op.flags = GPSH_OP_CAPTURE | (i % 7 ? GPSH_OP_MORE : 0);
        CHECK(post(world, world->channel, &op) >= 0, "%s", gpsh_last_error());
    }
    world->ops->flush(world->channel);
    if (!drain(world->channel))
        return false;
    const volatile uint64_t *words = (const volatile uint64_t *)target_at(world, MIB);
    for (uint64_t i = 0; i < N; i++)
        CHECK(words[i] == i * 3 + 1, "put %llu", (unsigned long long)i);
    return true;
}

static bool many_gets(struct world *world)
{
    enum { N = 1500, BYTES = 200 };
    char *outside = calloc(N, BYTES);
    CHECK(outside, "no memory");
    fill(target_at(world, MIB), N * BYTES, 9);
    for (uint64_t i = 0; i < N; i++) {
        struct gpsh_op op = get_op(world, outside + i * BYTES, MIB + i * BYTES, BYTES);
        op.flags = i % 5 ? GPSH_OP_MORE : 0;
        CHECK(post(world, world->channel, &op) >= 0, "%s", gpsh_last_error());
    }
    world->ops->flush(world->channel);
    bool kept = drain(world->channel) && holds(outside, N * BYTES, 9);
    free(outside);
    return kept;
}

static bool held_until_flush(struct world *world)
{
    fill(own_at(world, 0), 64, 4);
    for (uint64_t i = 0; i < 3; i++) {
        struct gpsh_op op = put_op(world, own_at(world, 0), MIB + 64 * i, 64);
        op.flags = GPSH_OP_MORE;
        CHECK(post(world, world->channel, &op) >= 0, "%s", gpsh_last_error());
    }
    CHECK(world->ops->flush(world->channel) == 0, "flush failed");
    return drain(world->channel) && holds(target_at(world, MIB + 128), 64, 4);
}

struct counted {
    struct gpsh_completion completion;
    int calls, status;
    struct world *world;
    int more; // posts left to do from inside the callback
};

static void count(struct gpsh_completion *self, int status)
{
    struct counted *counted = (struct counted *)self;
    counted->calls++;
    counted->status = status;
}

static bool one_callback_each(struct world *world)
{
    enum { N = 400 };
    struct counted *all = calloc(N, sizeof *all);
    uint64_t fetched[N];
    CHECK(all, "no memory");
    for (int i = 0; i < N; i++) {
        uint64_t value = (uint64_t)i;
        all[i].completion.done = count;
        struct gpsh_op op = i % 4 == 0   ? put_op(world, &value, 64, 8)
                            : i % 4 == 1 ? get_op(world, own_at(world, 4096), 64, 700)
                            : i % 4 == 2 ? amo_op(world, GPSH_AMO_XOR, 8, 128, 5, 0, &fetched[i])
                                         : put_op(world, NULL, 0, 0);
        op.flags = GPSH_OP_CAPTURE;
        op.completion = &all[i].completion;
        CHECK(post(world, world->channel, &op) >= 0, "%s", gpsh_last_error());
    }
    bool kept = drain(world->channel);
    for (int i = 0; i < N; i++)
        CHECK(all[i].calls == 1 && all[i].status == 0, "operation %d: %d calls, status %d", i,
              all[i].calls, all[i].status);
    free(all);
    return kept;
}

static void post_again(struct gpsh_completion *self, int status)
{
    struct counted *counted = (struct counted *)self;
    uint64_t value = (uint64_t)counted->more;
    count(self, status);
    if (!counted->more)
        return;
    counted->more--;
    struct gpsh_op op = put_op(counted->world, &value, 256, 8);
    op.flags = GPSH_OP_CAPTURE;
    op.completion = self;
    if (counted->world->ops->post(counted->world->channel, &op) < 0)
        counted->status = -1;
}

static bool callback_may_post(struct world *world)
{
    struct counted counted = {.completion.done = post_again, .world = world, .more = 50};
    uint64_t value = 0;
    struct gpsh_op op = put_op(world, &value, 256, 8);
    op.flags = GPSH_OP_CAPTURE;
    op.completion = &counted.completion;
    if (!post_and_drain(world, &op))
        return false;
    CHECK(counted.calls == 51 && counted.status == 0, "%d calls, status %d", counted.calls,
          counted.status);
    return true;
}

// Operation numbers: post counts one up, completion never runs ahead or back.
static bool flow_counts(struct world *world)
{
    struct gpsh_flow *flow = &world->channel->flows[world->target];
    uint64_t seen = 0;
    for (uint64_t i = 1; i <= 300; i++) {
        struct gpsh_op op = put_op(world, own_at(world, 0), MIB, i % 40 ? 8 : 3 * 65536);
        int status = post(world, world->channel, &op);
        CHECK(status >= 0 && flow->posted == i, "post %llu returned %d, posted is %llu",
              (unsigned long long)i, status, (unsigned long long)flow->posted);
        CHECK(flow->completed >= seen && flow->completed <= i, "completed went from %llu to %llu",
              (unsigned long long)seen, (unsigned long long)flow->completed);
        CHECK(status != GPSH_POST_DONE || flow->completed == i, "done, but not counted");
        seen = flow->completed;
    }
    return drain(world->channel);
}

static bool channels_are_independent(struct world *world)
{
    struct gpsh_channel *second = world->pes[0].channels[1];
    fill(own_at(world, 0), 4096, 7);
    struct gpsh_op op = put_op(world, own_at(world, 0), MIB, 4096);
    CHECK(post(world, world->channel, &op) >= 0, "%s", gpsh_last_error());
    op.remote = 2 * MIB;
    CHECK(post(world, second, &op) >= 0, "%s", gpsh_last_error());
    return drain(second) && holds(target_at(world, 2 * MIB), 4096, 7) && drain(world->channel) &&
           holds(target_at(world, MIB), 4096, 7);
}

static bool control_region(struct world *world)
{
    char *there = world->pes[world->target].regions[GPSH_CONTROL];
    uint64_t value = 77, old = 0;
    struct gpsh_op put = put_op(world, &value, 512, 8),
                   add = amo_op(world, GPSH_AMO_ADD, 8, 512, 3, 0, &old);
    put.region = add.region = GPSH_CONTROL;
    put.flags = GPSH_OP_CAPTURE;
    CHECK(post(world, world->channel, &put) >= 0, "%s", gpsh_last_error());
    world->ops->fence(world->channel, world->target);
    CHECK(post(world, world->channel, &add) >= 0, "%s", gpsh_last_error());
    if (!drain(world->channel))
        return false;
    CHECK(old == 77 && *(const volatile uint64_t *)(there + 512) == 80, "fetched %llu",
          (unsigned long long)old);
    return true;
}

static bool explained(struct world *world)
{
    char line[160] = "";
    world->ops->explain(world->pes[0].transport, world->target, line, sizeof line);
    CHECK(line[0], "nothing said");
    printf("  %s\n", line);
    return true;
}

const struct promise rma_promises[] = {
    {.name = "put: from the heap, any size and address", put_from_heap},
    {.name = "put: from any memory, any size and address", put_from_anywhere},
    {.name = "get: to the heap, any size and address", get_to_heap},
    {.name = "get: to any memory, any size and address", get_to_anywhere},
    {.name = "put and get: nothing to move", nothing_to_move},
    {.name = "put and get: larger than a message", large_put_and_get},
    {.name = "registered buffer: moved like the heap", registered_buffer},
    {.name = "capture: the source is free when post returns", captured_source},
    {.name = "many small puts", many_small_puts},
    {.name = "many gets", many_gets},
    {.name = "more: flush rings what was held", held_until_flush},
    {.name = "completion: one callback each", one_callback_each},
    {.name = "completion: a callback may post", callback_may_post},
    {.name = "flow: counts", flow_counts},
    {.name = "channels: independent", channels_are_independent},
    {.name = "control region: reached like the heap", control_region},
    {.name = "explain: says how", explained},
    {.name = NULL},
};
