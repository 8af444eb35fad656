// SPDX-License-Identifier: BSD-3-Clause
// When a heap is staged, what is said about it, and what an agent refuses.
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/error.h"
#include "core/log.h"
#include "tests/fakes/fake_pair.h"
#include "tests/fakes/slow_queue.h"
#include "transports/verbs/stage/verbs_staging.h"

enum { HANG_LOOKS = 300000 }; // 100 us apart, only against hangs

static struct fake_pair pair;
static char log_file[32]; // in memory
static int log_fd;

static void begin(void)
{
    fake_reset();
    memset(&pair, 0, sizeof pair);
    log_fd = memfd_create("log", 0);
    cr_assert(log_fd >= 0);
    snprintf(log_file, sizeof log_file, "/proc/self/fd/%d", log_fd);
    cr_assert_eq(gpsh_log_open(GPSH_LOG_INFO, log_file), 0);
}

static void end(void)
{
    fake_pair_close(&pair);
    gpsh_log_close();
    close(log_fd);
    cr_assert_eq(fake.live_objects, 0, "%d verbs objects were not destroyed", fake.live_objects);
}

TestSuite(verbs_stage, .init = begin, .fini = end);

static bool logged(const char *words)
{
    static char text[8192];
    FILE *file = fopen(log_file, "r");
    size_t n = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[n] = '\0';
    return strstr(text, words) != NULL;
}

static struct gpsh_verbs *verbs(void)
{
    return (struct gpsh_verbs *)pair.transport;
}

static void gpu_heap_refused(void)
{
    pair.heap_kind = GPSH_MEMORY_DEVICE;
    pair.dmabuf_fd = 5;
    pair.heap_unregistrable = true;
    fake.dmabuf_error = 95; // EOPNOTSUPP
}

static bool says_staged(void)
{
    char line[200];
    gpsh_verbs_ops.explain(pair.transport, 1, line, sizeof line);
    return strstr(line, "staged by its agent") != NULL;
}

// A sender asks its mailbox again and again until the agent, a thread, has answered: nothing moves
// only then, so that fake_settle would spin for as long.
static void ask_once(void)
{
    gpsh_verbs_ops.flush(pair.channel);
    fake_run(FAKE_JOURNAL, IBV_WC_SUCCESS);
    gpsh_verbs_ops.progress(pair.channel);
}

// Fills what comes from PE 1's point of view: its mailboxes are this process's own.
static void settle_until(uint64_t completed)
{
    for (int i = 0; i < HANG_LOOKS && pair.channel->flows[1].completed < completed; i++) {
        ask_once();
        usleep(100);
    }
}

Test(verbs_stage, open__gpu_heap_not_registrable__staged_and_said_once)
{
    gpu_heap_refused();
    cr_assert_eq(fake_pair_open(&pair), 0, "%s", gpsh_last_error());
    cr_assert_eq(verbs()->stage.mode, VERBS_STAGE_ALL);
    cr_assert(says_staged());
    cr_assert(logged("fake0:1 cannot register") && logged("Bad address"),
              "the device and its error are not named");
    cr_assert(logged("nvidia-peermem") && logged("GPUSHMEM_GPUDIRECT=always"),
              "there is no advice");
    struct gpsh_op op = fake_put("staged", 0, 7);
    cr_assert(fake_post_op(&pair, &op) >= 0);
    settle_until(1);
    cr_assert_eq(pair.channel->flows[1].completed, 1);
    cr_assert_str_eq(pair.heap, "staged"); // the mailbox is this PE's own
}

Test(verbs_stage, open__gpudirect_always__refusal_is_an_error)
{
    gpu_heap_refused();
    pair.settings[0] = "GPUSHMEM_GPUDIRECT=always";
    cr_assert_eq(fake_pair_open(&pair), GPUSHMEM_ERR_TRANSPORT);
    cr_assert(strstr(gpsh_last_error(), "GPU memory"), "%s", gpsh_last_error());
}

Test(verbs_stage, open__dmabuf_required__refusal_is_an_error)
{
    gpu_heap_refused();
    pair.settings[0] = "GPUSHMEM_TEST_VERBS_DMABUF=require";
    cr_assert_eq(fake_pair_open(&pair), GPUSHMEM_ERR_TRANSPORT);
}

Test(verbs_stage, open__host_heap_not_registrable__is_an_error)
{
    pair.heap_unregistrable = true;
    cr_assert_eq(fake_pair_open(&pair), GPUSHMEM_ERR_TRANSPORT);
}

Test(verbs_stage, open__never__heap_is_not_registered)
{
    pair.heap_kind = GPSH_MEMORY_DEVICE;
    pair.dmabuf_fd = 5;
    pair.settings[0] = "GPUSHMEM_GPUDIRECT=never";
    cr_assert_eq(fake_pair_open(&pair), 0, "%s", gpsh_last_error());
    cr_assert_eq(fake.dmabuf_registrations, 0);
    cr_assert(logged("GPUSHMEM_GPUDIRECT=never") && says_staged());
}

Test(verbs_stage, open__gpu_heap_registrable__direct)
{
    pair.heap_kind = GPSH_MEMORY_DEVICE;
    pair.dmabuf_fd = 5;
    cr_assert_eq(fake_pair_open(&pair), 0);
    cr_assert_eq(verbs()->stage.mode, VERBS_STAGE_NOTHING);
    cr_assert_not(says_staged() || logged("staged"));
}

Test(verbs_stage, put__far_gpu__large_from_a_block_small_in_place)
{
    pair.settings[0] = "GPUSHMEM_GPUDIRECT_DISTANCE=none";
    pair.settings[1] = "GPUSHMEM_TEST_STAGE_THRESHOLD=8K";
    cr_assert_eq(fake_pair_open(&pair), 0);
    struct gpsh_op small = fake_put(pair.heap, 0, 8191), large = fake_put(pair.heap, 0, 8192);
    fake_post_op(&pair, &small);
    fake_post_op(&pair, &large);
    cr_assert_eq(fake.n_posts, 2);
    cr_assert_eq(fake.journal[0].sge.addr, (uintptr_t)pair.heap);
    cr_assert_neq(fake.journal[1].sge.addr, (uintptr_t)pair.heap);
    cr_assert_eq(fake.journal[1].wr.wr.rdma.remote_addr, (uintptr_t)pair.there);
    fake_settle(&pair);
    cr_assert_eq(pair.channel->flows[1].completed, 2);
}

Test(verbs_stage, area__many_boxes__chunks_shrink_to_the_setting)
{
    pair.settings[0] = "GPUSHMEM_GPUDIRECT=never";
    pair.settings[1] = "GPUSHMEM_TEST_STAGE_BYTES=1M";
    cr_assert_eq(fake_pair_open(&pair), 0);
    cr_assert_eq(verbs()->stage.slot_bytes, (1 << 20) / 2 / 8);
    cr_assert_leq(verbs()->stage.area.bytes, (1 << 20) + 4096);
}

// Requests that no sender would write, straight into a mailbox.
static const struct stage_request bad_requests[] = {
    {.number = 2, .op.kind = GPSH_OP_PUT},
    {.number = 1, .op.kind = 9},
    {.number = 1, .op.kind = GPSH_OP_PUT, .op.bytes = 1 << 20},
    {.number = 1, .op.kind = GPSH_OP_GET, .op.bytes = 8, .op.remote = PAIR_HEAP - 7},
    {.number = 1, .op.kind = GPSH_OP_PUT, .op.bytes = 8, .op.remote = UINT64_MAX - 3},
    {.number = 1, .op.kind = GPSH_OP_PUT_SIGNAL, .op.signal = 4},
    {.number = 1, .op.kind = GPSH_OP_PUT_SIGNAL, .op.signal = PAIR_HEAP},
    {.number = 1, .op.kind = GPSH_OP_AMO, .op.width = 3},
    {.number = 1, .op.kind = GPSH_OP_AMO, .op.width = 8, .op.amo = 8},
    {.number = 1, .op.kind = GPSH_OP_AMO, .op.width = 4, .op.remote = 2},
    {.number = 1, .op.kind = GPSH_OP_AMO, .op.width = 8, .op.remote = PAIR_HEAP},
    {.number = 1, .op.kind = GPSH_OP_AMO, .op.width = 8, .op.region = GPSH_REGIONS},
    {.number = 1,
     .op.kind = GPSH_OP_AMO,
     .op.width = 8,
     .op.region = GPSH_CONTROL,
     .op.remote = 1 << 30},
    {.number = 1, .op.kind = GPSH_OP_PUT, .op.bytes = 8, .op.region = GPSH_CONTROL},
};

// A PE of very many PEs and channels has one slot in each mailbox, whatever that takes.
Test(verbs_stage, serve_atomics__no_room_for_mailboxes__has_the_smallest)
{
    cr_assert_eq(fake_pair_open(&pair), 0, "%s", gpsh_last_error());
    pair.values.stage_bytes = 64;
    cr_assert_eq(gpsh_verbs_ops.serve_atomics(pair.transport), 0, "%s", gpsh_last_error());
    cr_assert(pair.transport->agents);
    cr_expect_eq(verbs()->stage.slots, 1);
    cr_expect_geq(verbs()->stage.slot_bytes, 2 * 64);
}

Test(verbs_stage, agent__bad_request__refused_and_nothing_touched)
{
    pair.settings[0] = "GPUSHMEM_GPUDIRECT=never";
    for (size_t i = 0; i < sizeof bad_requests / sizeof *bad_requests; i++) {
        cr_assert_eq(fake_pair_open(&pair), 0);
        struct verbs_stage *stage = &verbs()->stage;
        struct gpsh_verbs_stage_layout at =
            gpsh_verbs_stage_layout(2, stage->slots, stage->slot_bytes);
        memcpy(stage->area.base + at.slots, &bad_requests[i], sizeof bad_requests[i]);
        atomic_store((_Atomic uint64_t *)(void *)(stage->area.base + at.arrived), 1);
        _Atomic uint64_t *answered = (_Atomic uint64_t *)(void *)(stage->area.base + at.answered);
        for (int k = 0; k < HANG_LOOKS && !atomic_load(answered); k++)
            usleep(100);
        cr_assert_eq(atomic_load(answered), STAGE_REFUSED_RANGE, "row %zu", i);
        for (int k = 0; k < PAIR_HEAP; k += 8)
            cr_assert_eq(*(uint64_t *)(void *)(pair.heap + k), 0, "row %zu wrote at %d", i, k);
        fake_pair_close(&pair);
    }
}

Test(verbs_stage, agent__queue_breaks__senders_are_told)
{
    gpu_heap_refused();
    pair.queues = &slow_queue_ops;
    cr_assert_eq(fake_pair_open(&pair), 0);
    struct gpsh_op op = {
        .kind = GPSH_OP_AMO, .amo = GPSH_AMO_ADD, .width = 8, .pe = 1, .operand = 1};
    atomic_store(&slow_queue_broken, GPUSHMEM_ERR_CUDA);
    cr_assert(fake_post_op(&pair, &op) >= 0);
    settle_until(1);
    cr_assert_eq(pair.channel->flows[1].error, GPUSHMEM_ERR_TRANSPORT);
    cr_assert(pair.failed_pe == 1 && logged("its GPU failed"));
}

// An agent that gets no processor for a while: its senders keep asking, and nothing runs out.
Test(verbs_stage, agent__slow__asked_until_it_answers)
{
    gpu_heap_refused();
    pair.queues = &slow_queue_ops;
    cr_assert_eq(fake_pair_open(&pair), 0);
    atomic_store(&slow_queue_held, 1);
    struct gpsh_op op = fake_put("staged", 0, 7);
    op.flags = GPSH_OP_LOCAL_HOST;
    cr_assert(fake_post_op(&pair, &op) >= 0);
    for (int i = 0; i < 3 * FAKE_JOURNAL; i++)
        ask_once();
    cr_assert_eq(pair.channel->flows[1].error, 0);
    cr_assert_eq(pair.channel->flows[1].completed, 0);
    atomic_store(&slow_queue_held, 0);
    settle_until(1);
    cr_assert_eq(pair.channel->flows[1].completed, 1);
    cr_assert_str_eq(pair.heap, "staged");
}

// As many chunks as there are; the last alone tells of them.
Test(verbs_stage, put_signal__several_chunks__the_signal_goes_with_the_last)
{
    static char source[3 * 4096];
    pair.settings[0] = "GPUSHMEM_GPUDIRECT=never";
    pair.settings[1] = "GPUSHMEM_TEST_STAGE_CHUNK=4K";
    cr_assert_eq(fake_pair_open(&pair), 0);
    struct gpsh_op put = fake_put(source, 0, sizeof source);
    put.kind = GPSH_OP_PUT_SIGNAL;
    put.signal = 65536;
    put.operand = 7;
    cr_assert(fake_post_op(&pair, &put) >= 0);
    gpsh_verbs_ops.flush(pair.channel);
    int requests = 0, signals = 0;
    for (int i = 0; i < fake.n_posts; i++) {
        const struct stage_request *request = (const void *)(uintptr_t)fake.journal[i].sge.addr;
        if (fake.journal[i].wr.opcode != IBV_WR_RDMA_WRITE ||
            fake.journal[i].sge.length < sizeof *request)
            continue;
        requests++;
        signals += request->op.kind == GPSH_OP_PUT_SIGNAL;
        cr_assert_eq(request->op.kind == GPSH_OP_PUT_SIGNAL,
                     request->op.remote + request->op.bytes == sizeof source);
    }
    cr_assert(requests > 2 && signals == 1, "%d requests, %d signals", requests, signals);
    settle_until(1);
    cr_assert_eq(*(uint64_t *)(void *)(pair.heap + 65536), 7);
}

// A target that is stopped, or busy, answers nothing: who waits for room must be able to give up,
// and to serve other PEs.
Test(verbs_stage, captured_put__no_room_for_its_chunk__refused_for_now, .timeout = 20)
{
    pair.settings[0] = "GPUSHMEM_GPUDIRECT=never";
    pair.settings[1] = "GPUSHMEM_TEST_STAGE_DEPTH=1";
    cr_assert_eq(fake_pair_open(&pair), 0);
    struct gpsh_op first = fake_put("first", 0, 6), second = fake_put("second", 8, 7);
    first.flags = second.flags = GPSH_OP_CAPTURE;
    cr_assert_eq(fake_post_op(&pair, &first), GPSH_POST_CAPTURED);
    cr_assert_eq(fake_post_op(&pair, &second), GPSH_POST_AGAIN);
    cr_assert_eq(pair.channel->flows[1].posted, 1);
    settle_until(1);
    cr_assert_eq(fake_post_op(&pair, &second), GPSH_POST_CAPTURED);
    settle_until(2);
    cr_assert(!strcmp(pair.heap, "first") && !strcmp(pair.heap + 8, "second"));
}

// The peer is lost while the GPU still copies into a block: the next to send by that block must not
// find it overwritten.
Test(verbs_stage, failure__copy_into_block_under_way__block_is_not_used_again)
{
    static char mine[8192];
    pair.settings[0] = "GPUSHMEM_GPUDIRECT_DISTANCE=none";
    pair.settings[1] = "GPUSHMEM_TEST_STAGE_THRESHOLD=8K";
    pair.queues = &slow_queue_ops;
    cr_assert_eq(fake_pair_open(&pair), 0);
    const struct verbs_channel *channel = &verbs()->channels[0];
    int before = channel->bounce.free_large;
    struct gpsh_op small = fake_put(pair.heap, 0, 8),
                   large = fake_put(pair.heap + (1 << 20), 0, sizeof mine);
    memset(pair.heap + (1 << 20), 'a', sizeof mine);
    cr_assert(fake_post_op(&pair, &small) >= 0);
    atomic_store(&slow_queue_held, 1);
    cr_assert(fake_post_op(&pair, &large) >= 0);
    fake_run(1, IBV_WC_RETRY_EXC_ERR);
    fake_settle(&pair);
    cr_assert_eq(pair.failed_pe, 1);
    memset(mine, 'b', sizeof mine);
    struct gpsh_op captured = fake_put(mine, 0, sizeof mine);
    captured.pe = 0;
    captured.flags = GPSH_OP_CAPTURE;
    cr_assert(fake_post_op(&pair, &captured) >= 0);
    atomic_store(&slow_queue_held, 0);
    for (int i = 0; i < HANG_LOOKS && *channel->copies->done < channel->copied; i++)
        usleep(100);
    fake_settle(&pair);
    cr_assert_arr_eq(pair.heap, mine, sizeof mine);
    cr_assert_eq(channel->bounce.free_large, before, "a block was lost");
}

Test(verbs_stage, many_mailboxes__stay_within_stage_bytes)
{
    gpu_heap_refused();
    pair.n_channels = 100; // 200 mailboxes
    pair.settings[0] = "GPUSHMEM_TEST_STAGE_BYTES=1M";
    pair.settings[1] = "GPUSHMEM_TEST_VERBS_BOUNCE=64K";
    cr_assert_eq(fake_pair_open(&pair), 0);
    cr_assert_eq(verbs()->stage.slots, 1, "fewer chunks when they cannot be smaller");
    cr_assert_leq(verbs()->stage.area.bytes, (1 << 20) + 8192, "%zu bytes",
                  verbs()->stage.area.bytes);
}

Test(verbs_stage, too_many_mailboxes__one_small_chunk_each_takes_more)
{
    gpu_heap_refused();
    pair.n_channels = 150;
    pair.settings[0] = "GPUSHMEM_TEST_STAGE_BYTES=1M";
    pair.settings[1] = "GPUSHMEM_TEST_VERBS_BOUNCE=64K";
    cr_assert_eq(fake_pair_open(&pair), 0, "%s", gpsh_last_error());
    cr_expect_eq(verbs()->stage.slots, 1);
    cr_expect_eq(verbs()->stage.slot_bytes, 4096);
    cr_expect_geq(verbs()->stage.area.bytes, 1228800);
}
