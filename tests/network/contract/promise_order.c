// SPDX-License-Identifier: BSD-3-Clause
// Promises about order: a signal never overtakes its data, and nothing after a fence is visible
// before what came before.
#define _GNU_SOURCE
#include <stdatomic.h>
#include <string.h>

#include "contract.h"
#include "core/clock.h"
#include "core/error.h"

enum { DATA = 1 << 20, FLAG = 512 };

// Waits as a program at the target would: the only thing it sees is the word.
static bool await(struct world *world, uint64_t offset, uint64_t value)
{
    _Atomic uint64_t *word = (_Atomic uint64_t *)target_at(world, offset);
    uint64_t start_ns = gpsh_clock_ns();
    while (atomic_load_explicit(word, memory_order_acquire) != value) {
        world->ops->progress(world->channel);
        CHECK(gpsh_clock_ns() - start_ns <= HANG_NS, "the flag at %llu never became %llu",
              (unsigned long long)offset, (unsigned long long)value);
    }
    return true;
}

static bool signalled(struct world *world, unsigned flags)
{
    static const uint64_t sizes[] = {0, 1, 8, 100, 129, 4096, 65536, 200001, 1 << 20};
    uint64_t sum = 0;
    *(uint64_t *)target_at(world, FLAG) = 0;
    for (unsigned round = 0; round < 40; round++) {
        uint64_t bytes = sizes[round % 9], value = round + 1;
        fill(own_at(world, DATA), bytes, round);
        memset(target_at(world, 4 * DATA), 0xee, 2 * DATA);
        sum = flags & GPSH_OP_SIGNAL_ADD ? sum + value : value;
        struct gpsh_op op =
            signal_op(world, own_at(world, DATA), 4 * DATA + round, bytes, FLAG, value, flags);
        CHECK(post(world, world->channel, &op) >= 0, "%s", gpsh_last_error());
        if (!await(world, FLAG, sum) || !holds(target_at(world, 4 * DATA + round), bytes, round))
            return false;
    }
    return drain(world->channel);
}

static bool signal_set(struct world *world)
{
    return signalled(world, 0);
}

static bool signal_add(struct world *world)
{
    return signalled(world, GPSH_OP_SIGNAL_ADD);
}

static bool signal_add_captured(struct world *world)
{
    return signalled(world, GPSH_OP_SIGNAL_ADD | GPSH_OP_CAPTURE);
}

// Every signal of a burst brings its own data.
static bool signal_burst(struct world *world)
{
    enum { N = 500 };
    memset(target_at(world, DATA), 0, 16 * N);
    for (uint64_t i = 0; i < N; i++) {
        uint64_t value = i ^ 0x5555;
        struct gpsh_op op = signal_op(world, &value, DATA + 16 * i, 8, DATA + 16 * i + 8, i + 1,
                                      GPSH_OP_CAPTURE | (i % 9 ? GPSH_OP_MORE : 0));
        CHECK(post(world, world->channel, &op) >= 0, "%s", gpsh_last_error());
    }
    world->ops->flush(world->channel);
    for (uint64_t i = N; i-- > 0;) {
        if (!await(world, DATA + 16 * i + 8, i + 1))
            return false;
        uint64_t found = *(const volatile uint64_t *)target_at(world, DATA + 16 * i);
        CHECK(found == (i ^ 0x5555), "signal %llu without its data", (unsigned long long)i);
    }
    return drain(world->channel);
}

enum before {
    PUT_SMALL,
    PUT_LARGE,
    PUT_BOUNCED,
    AMO_NATIVE,
    AMO_LOOP,
    EMPTY,
    GET_THEN_PUT,
    N_BEFORE
};

// Posts one operation of the kind, whose effect check_before() then looks for.
static bool post_before(struct world *world, enum before kind, uint64_t round, char *outside)
{
    uint64_t where = 4 * DATA + round * 8;
    struct gpsh_op op;
    switch (kind) {
    case PUT_SMALL: op = put_op(world, own_at(world, DATA), where, 8); break;
    case PUT_LARGE:
    case EMPTY: op = put_op(world, own_at(world, DATA), where, 300000); break;
    case PUT_BOUNCED: op = put_op(world, outside, where, 300000); break;
    case AMO_NATIVE:
        op = amo_op(world, GPSH_AMO_ADD, 8, where, *(uint64_t *)own_at(world, DATA), 0, NULL);
        break;
    case AMO_LOOP:
        op = amo_op(world, GPSH_AMO_OR, 8, where, *(uint64_t *)own_at(world, DATA), 0, NULL);
        break;
    default:
        op = get_op(world, own_at(world, 3 * DATA), 0, 300000);
        CHECK(post(world, world->channel, &op) >= 0, "%s", gpsh_last_error());
        op = put_op(world, own_at(world, DATA), where, 8);
    }
    CHECK(post(world, world->channel, &op) >= 0, "%s", gpsh_last_error());
    if (kind != EMPTY)
        return true;
    // one whose next operation is empty must reach further
    world->ops->fence(world->channel, world->target);
    op = put_op(world, NULL, 0, 0);
    CHECK(post(world, world->channel, &op) >= 0, "%s", gpsh_last_error());
    return true;
}

static uint64_t bytes_of(enum before kind)
{
    return kind == PUT_LARGE || kind == PUT_BOUNCED || kind == EMPTY ? 300000 : 8;
}

// The flag behind the fence: by put, by atomic, by a loop, by a put large enough to be striped, or
// by a put after a get, an atomic or a loop, which are then the first after the fence.
enum { FLAG_HOWS = 7 };
static bool post_flag(struct world *world, unsigned how, uint64_t value)
{
    uint64_t *words = (uint64_t *)own_at(world, 2 * DATA);
    words[0] = value;
    words[16383] = value;
    struct gpsh_op op;
    if (how >= 4) {
        op = how == 4
                 ? get_op(world, own_at(world, 3 * DATA), 0, 8)
                 : amo_op(world, how == 5 ? GPSH_AMO_ADD : GPSH_AMO_OR, 8, FLAG + 64, 1, 0, NULL);
        CHECK(post(world, world->channel, &op) >= 0, "%s", gpsh_last_error());
        how = 0;
    }
    switch (how) {
    case 0: op = put_op(world, words, FLAG, 8); break;
    case 1: op = amo_op(world, GPSH_AMO_ADD, 8, FLAG, value, 0, NULL); break;
    case 2: op = amo_op(world, GPSH_AMO_SWAP, 8, FLAG, value, 0, NULL); break;
    default: op = put_op(world, words, FLAG, 131072);
    }
    CHECK(post(world, world->channel, &op) >= 0, "%s", gpsh_last_error());
    return true;
}

static bool one_fence(struct world *world, enum before kind, unsigned how, uint64_t round,
                      char *outside, int whom)
{
    fill(own_at(world, DATA), 300000, (unsigned)round);
    fill(outside, 300000, (unsigned)round);
    memset(target_at(world, 4 * DATA), 0, 310000);
    memset(target_at(world, FLAG), 0, 131072);
    if (!post_before(world, kind, round, outside))
        return false;
    world->ops->fence(world->channel, whom);
    // a large put's last word stands for its other rails too
    uint64_t last = how == 3 ? FLAG + 131064 : FLAG;
    if (!post_flag(world, how, round + 1) || !await(world, last, round + 1))
        return false;
    if (!holds(target_at(world, 4 * DATA + round * 8), bytes_of(kind), (unsigned)round))
        CHECK(false, "operation %d was overtaken by flag %u in round %llu", kind, how,
              (unsigned long long)round);
    return drain(world->channel);
}

static bool fenced(struct world *world, int whom)
{
    static char outside[300000];
    uint64_t round = 0;
    for (int kind = 0; kind < N_BEFORE; kind++)
        for (unsigned how = 0; how < FLAG_HOWS; how++, round++)
            if (!one_fence(world, (enum before)kind, how, round, outside, whom))
                return false;
    return true;
}

static bool fence_one_pe(struct world *world)
{
    return fenced(world, world->target);
}

static bool fence_all_pes(struct world *world)
{
    return fenced(world, GPSH_ALL_PES);
}

// A long pipeline of put, fence, put without a wait anywhere: a counter never runs ahead of its
// data.
static bool fence_pipeline(struct world *world)
{
    enum { N = 200 }; // more than a send queue holds, and slow where all is staged
    memset(target_at(world, DATA), 0, 8 * N);
    memset(target_at(world, FLAG), 0, 8);
    uint64_t seen = 0;
    const _Atomic uint64_t *counter = (const _Atomic uint64_t *)target_at(world, FLAG);
    const volatile uint64_t *data = (const volatile uint64_t *)target_at(world, DATA);
    for (uint64_t i = 1; i <= N; i++) {
        struct gpsh_op put = put_op(world, &i, DATA + 8 * (i - 1), 8),
                       add = amo_op(world, GPSH_AMO_ADD, 8, FLAG, 1, 0, NULL);
        put.flags = GPSH_OP_CAPTURE;
        CHECK(post(world, world->channel, &put) >= 0, "%s", gpsh_last_error());
        world->ops->fence(world->channel, i % 2 ? GPSH_ALL_PES : world->target);
        CHECK(post(world, world->channel, &add) >= 0, "%s", gpsh_last_error());
        for (uint64_t now = atomic_load(counter); seen < now; seen++)
            CHECK(data[seen] == seen + 1, "the counter says %llu", (unsigned long long)now);
    }
    return await(world, FLAG, N) && drain(world->channel);
}

const struct promise order_promises[] = {
    {.name = "signal: set, never before its data", signal_set},
    {.name = "signal: add, never before its data", signal_add},
    {.name = "signal: add, from a captured source", signal_add_captured},
    {.name = "signal: a burst of them", signal_burst},
    {.name = "fence: to one PE", fence_one_pe},
    {.name = "fence: to all PEs", fence_all_pes},
    {.name = "fence: a pipeline of them", fence_pipeline},
    {.name = NULL},
};
