// SPDX-License-Identifier: BSD-3-Clause
// Random operations under random limits, with a fence behind each: whatever order the queue pairs
// run in, the target's memory and every fetched value are those of a simple sequential model, and
// nothing is left over.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "tests/fakes/amo_model.h"
#include "tests/fakes/fake_pair.h"

enum { ROUNDS = 150, OPERATIONS = 120, AREA = 100000, MOST_BYTES = 40000 };

struct run {
    struct fake_pair pair;
    uint64_t state;
    unsigned char model[AREA + MOST_BYTES];
    uint64_t results[OPERATIONS], expected[OPERATIONS];
    char *outside;
    int callbacks;
};

static uint64_t draw(struct run *run, uint64_t below)
{
    run->state = run->state * 6364136223846793005u + 1442695040888963407u;
    return (run->state >> 33) % below;
}

static const char *pick(struct run *run, const char *const choices[3])
{
    return choices[draw(run, 3)];
}

static void open_random(struct run *run)
{
    static const char *const limits[][3] = {
        {"GPUSHMEM_TEST_VERBS_SQ_DEPTH=16", "GPUSHMEM_TEST_VERBS_SQ_DEPTH=17",
         "GPUSHMEM_TEST_VERBS_SQ_DEPTH=256"},
        {"GPUSHMEM_TEST_VERBS_BOUNCE=64K", "GPUSHMEM_TEST_VERBS_BOUNCE=100000",
         "GPUSHMEM_TEST_VERBS_BOUNCE=4M"},
        {"GPUSHMEM_TEST_VERBS_INLINE=0", "GPUSHMEM_TEST_VERBS_INLINE=40",
         "GPUSHMEM_TEST_VERBS_INLINE=512"},
        {"GPUSHMEM_TEST_VERBS_STRIPE=4K", "GPUSHMEM_TEST_VERBS_STRIPE=9000",
         "GPUSHMEM_TEST_VERBS_STRIPE=1M"},
        {"GPUSHMEM_TEST_VERBS_MAX_MESSAGE=4K", "GPUSHMEM_TEST_VERBS_MAX_MESSAGE=20000",
         "GPUSHMEM_TEST_VERBS_MAX_MESSAGE=1G"},
        {"GPUSHMEM_TEST_VERBS_SIGNAL_EVERY=1", "GPUSHMEM_TEST_VERBS_SIGNAL_EVERY=3",
         "GPUSHMEM_TEST_VERBS_SIGNAL_EVERY=1024"},
        {"GPUSHMEM_VERBS_RAILS=1", "GPUSHMEM_VERBS_RAILS=2", "GPUSHMEM_VERBS_RAILS=3"},
    };
    fake_reset();
    fake.n_devices = 3;
    fake.shuffle = run->state | 1;
    fake.max_inline = draw(run, 2) ? FAKE_INLINE : 0;
    fake.max_cqe = draw(run, 3) ? 32767 : 12;
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        run->pair.settings[i] = pick(run, limits[i]);
    run->pair.n_locks = draw(run, 2) ? 3 : 0;
    cr_assert_eq(fake_pair_open(&run->pair), 0, "%s", gpsh_last_error());
}

static struct gpsh_op random_put(struct run *run, int i)
{
    uint64_t bytes = draw(run, 4) ? draw(run, 300) : draw(run, MOST_BYTES), to = draw(run, AREA);
    char *from = (draw(run, 2) ? run->outside : run->pair.heap) + draw(run, 1000000);
    struct gpsh_op op = fake_put(from, to, bytes);
    for (uint64_t k = 0; k < bytes; k++)
        from[k] = (char)(k * 7 + (uint64_t)i);
    memcpy(run->model + to, from, bytes);
    if (draw(run, 3))
        return op;
    op.kind = GPSH_OP_PUT_SIGNAL;
    op.signal = draw(run, AREA / 8) * 8;
    op.operand = draw(run, 1000);
    uint64_t word;
    memcpy(&word, run->model + op.signal, 8);
    word = draw(run, 2) ? op.operand : (op.flags = GPSH_OP_SIGNAL_ADD, word + op.operand);
    memcpy(run->model + op.signal, &word, 8);
    return op;
}

static struct gpsh_op random_amo(struct run *run, int i)
{
    int width = draw(run, 2) ? 4 : 8;
    uint64_t old = 0, at = draw(run, 40) * (uint64_t)width, operand = draw(run, 1u << 31);
    enum gpsh_amo amo = (enum gpsh_amo)draw(run, GPSH_AMO_XOR + 1);
    memcpy(&old, run->model + at, (size_t)width);
    uint64_t compare = draw(run, 2) ? old : 5, value = amo_model(amo, old, operand, compare);
    memcpy(run->model + at, &value, (size_t)width);
    run->expected[i] = old;
    return fake_amo(amo, width, at, operand, compare, &run->results[i]);
}

struct counted {
    struct gpsh_completion completion;
    struct run *run;
};

static void count(struct gpsh_completion *self, int status)
{
    cr_assert_eq(status, 0);
    ((struct counted *)self)->run->callbacks++;
}

static void post_until_taken(struct run *run, const struct gpsh_op *op)
{
    for (int tries = 0;; tries++) {
        int status = fake_post_op(&run->pair, op);
        cr_assert_geq(status, 0, "%s", gpsh_last_error());
        if (status == GPSH_POST_CAPTURED && op->kind != GPSH_OP_AMO)
            memset(op->local, 0x33, op->bytes); // it is ours again
        if (status != GPSH_POST_AGAIN)
            return;
        cr_assert_lt(tries, 100000, "again for ever");
        fake_run(1 + (int)draw(run, 5), IBV_WC_SUCCESS);
        gpsh_verbs_ops.progress(run->pair.channel);
    }
}

// A source that is not captured must stay as it is until its operation is complete: each gets
// memory of its own.
static void one_run(uint64_t seed)
{
    struct run *run = calloc(1, sizeof *run);
    run->state = seed * 2654435761u + 12345;
    run->outside = calloc(1, 1000000 + MOST_BYTES);
    struct counted counted = {{count}, run};
    open_random(run);
    for (int i = 0; i < OPERATIONS; i++) {
        struct gpsh_op op = draw(run, 3) ? random_put(run, i) : random_amo(run, i);
        op.flags |= op.bytes <= 2048 ? GPSH_OP_CAPTURE : 0;
        op.flags |= draw(run, 2) ? GPSH_OP_MORE : 0;
        op.completion = &counted.completion;
        post_until_taken(run, &op);
        gpsh_verbs_ops.fence(run->pair.channel, draw(run, 2) ? 1 : GPSH_ALL_PES);
        if (!(op.flags & GPSH_OP_CAPTURE) || draw(run, 20) == 0)
            fake_settle(&run->pair);
        else if (draw(run, 3) == 0)
            fake_run((int)draw(run, 4), IBV_WC_SUCCESS);
        else
            gpsh_verbs_ops.progress(run->pair.channel);
    }
    fake_settle(&run->pair);
    cr_assert_eq(run->pair.channel->pending, 0, "seed %d: %d operations are stuck", (int)seed,
                 (int)run->pair.channel->pending);
    cr_assert_eq(run->callbacks, OPERATIONS, "seed %d", (int)seed);
    cr_assert_eq(memcmp(run->model, run->pair.there, AREA), 0,
                 "seed %d: the target's memory differs", (int)seed);
    cr_assert_eq(memcmp(run->expected, run->results, sizeof run->results), 0,
                 "seed %d: a fetched value differs", (int)seed);
    fake_pair_close(&run->pair);
    cr_assert_eq(fake.live_objects, 0);
    free(run->outside);
    free(run);
}

Test(verbs_random, operations__any_limits_and_order__as_the_model)
{
    for (uint64_t seed = 1; seed <= ROUNDS; seed++)
        one_run(seed);
}
