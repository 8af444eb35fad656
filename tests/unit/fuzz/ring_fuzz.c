// SPDX-License-Identifier: BSD-3-Clause
// Command rings: whatever lies in the slots, every operation the proxy posts stays inside the heap
// and the job, and the proxy neither crashes nor stops: a ring is read on, or closed with a
// sentence.
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/log.h"
#include "fuzz.h"
#include "proxy/proxy.h"
#include "tests/fakes/fake_transport.h"

enum { LOG2 = 6, REPLIES = 16, HEAP_BYTES = 4096 };

static _Alignas(64) char heap[HEAP_BYTES], local[HEAP_BYTES], mapped[FAKE_PES][HEAP_BYTES];
// the others only by posts
static char *const direct[FAKE_PES] = {[0] = mapped[0], [2] = mapped[2]};
static struct fake fake;
static struct gpushmem_reply replies[REPLIES + 1]; // the last one is a sentinel

static bool away; // the channel that a context may have

static bool take_channels(struct gpsh_channel **channels)
{
    if (away)
        return false;
    away = true;
    channels[0] = &fake.channel;
    return true;
}

static void leave_channels(struct gpsh_channel **channels)
{
    if (!away || channels[0] != &fake.channel)
        abort();
    away = false;
}

static void check_range(uint64_t offset, uint64_t bytes)
{
    if (offset > HEAP_BYTES || bytes > HEAP_BYTES - offset)
        abort();
}

// What was posted since the last look.
static void check_posts(int from)
{
    for (int i = from; i < fake.n_ops; i++) {
        const struct gpsh_op *op = &fake.ops[i];
        if (op->pe < 0 || op->pe >= FAKE_PES || op->region != GPSH_HEAP)
            abort();
        check_range(op->remote, op->kind == GPSH_OP_AMO ? op->width : op->bytes);
        if (op->kind == GPSH_OP_PUT_SIGNAL)
            check_range(op->signal, 8);
        if (op->kind == GPSH_OP_AMO && ((op->width != 4 && op->width != 8) ||
                                        op->remote % op->width || op->amo > GPSH_AMO_XOR))
            abort();
    }
}

static void run(struct gpsh_proxy *proxy, const struct gpsh_ring_set *set, const uint8_t *data,
                size_t bytes)
{
    struct gpsh_proxy_thread *thread = &proxy->threads[0];
    thread->port.channels[0] = &fake.channel;
    // 64 bytes of input are a slot: half of the inputs get their lap bits right, so that they are
    // read at all.
    for (size_t i = 0;
         i + GPUSHMEM_COMMAND_BYTES <= bytes && i / GPUSHMEM_COMMAND_BYTES < 1 << LOG2;
         i += GPUSHMEM_COMMAND_BYTES) {
        uint64_t words[GPUSHMEM_COMMAND_WORDS];
        memcpy(words, data + i, sizeof words);
        // the last byte chooses, and is no part of the command
        unsigned how = data[i + GPUSHMEM_COMMAND_BYTES - 1];
        words[7] &= UINT64_MAX >> 8;
        for (int w = 0; w < GPUSHMEM_COMMAND_WORDS && how % 2; w++)
            words[w] |= (uint64_t)1 << GPUSHMEM_LAP_BIT;
        // Addresses near the heap, so that the checks of ranges matter.
        if (how % 4 == 3)
            words[2] = ((uint64_t)(uintptr_t)heap + words[2] % (HEAP_BYTES + 64) - 32) |
                       (uint64_t)1 << GPUSHMEM_LAP_BIT;
        // Mapped peers: then the proxy follows the local address.
        fake.channel.direct = how / 32 % 2 ? direct : NULL;
        if (fake.channel.direct)
            words[1] = (uint64_t)(uintptr_t)local | (words[1] & (uint64_t)1 << GPUSHMEM_LAP_BIT);
        memcpy((char *)set->rings[0].slots + i, words, sizeof words);
        memcpy((char *)set->rings[1].slots + i, words, sizeof words); // read once it was claimed
        fake.result = (enum gpsh_post)(how / 4 % 3);
        int seen = fake.n_ops;
        for (int pass = 0; pass < 3; pass++) {
            gpsh_proxy_choose_ways(proxy);
            gpsh_proxy_step(thread);
            check_posts(seen);
            seen = fake.n_ops;
            if (seen > FAKE_JOURNAL / 2)
                return; // a long strided command: enough of it
        }
    }
    if (proxy->rings[0].closed && gpsh_proxy_take_error(proxy) == 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct gpsh_peer peers[FAKE_PES] = {{0}};
    struct gpsh_ring_set set;
    struct gpsh_proxy *proxy;
    gpsh_log_threshold = (enum gpsh_log_level) - 1; // refusals are expected
    fake_init(&fake);
    fake.dry = true;
    away = false;
    memset(replies, 0, sizeof replies);
    const struct gpsh_proxy_env env = {.n_pes = FAKE_PES,
                                       .heap = heap,
                                       .heap_bytes = HEAP_BYTES,
                                       .host_memory = true,
                                       .peers = peers,
                                       .n_transports = 1,
                                       .replies = replies,
                                       .n_replies = REPLIES,
                                       .n_contexts = 1,
                                       .take_channels = take_channels,
                                       .leave_channels = leave_channels};
    if (gpsh_proxy_create(&env, 1, &proxy))
        return 0;
    if (!gpsh_ring_set_create(&gpsh_device_memory_host, 2, LOG2, FAKE_PES, NULL, 0, &set)) {
        if (!gpsh_proxy_attach(proxy, &set))
            run(proxy, &set, data, bytes);
        gpsh_proxy_destroy(proxy);
        gpsh_ring_set_destroy(&set);
    }
    if (replies[REPLIES].low || replies[REPLIES].high)
        abort();
    return 0;
}

size_t fuzz_sample(int index, uint8_t *data, size_t room)
{
    if (index >= GPUSHMEM_CMD_LAST || room < GPUSHMEM_COMMAND_BYTES)
        return 0;
    struct gpushmem_command c = {.opcode = (uint8_t)(index + 1),
                                 .pe = 1,
                                 .local = 0x10000,
                                 .bytes = 4,
                                 .operand = 1,
                                 .compare = 1,
                                 .extra = 4,
                                 .flags = GPUSHMEM_CMD_REPLY,
                                 .reply = 1};
    uint64_t words[GPUSHMEM_COMMAND_WORDS];
    c.remote = c.compare = (uint64_t)(uintptr_t)heap;
    gpushmem_command_pack(&c, 1, words);
    memcpy(data, words, sizeof words);
    data[GPUSHMEM_COMMAND_BYTES - 1] = (uint8_t)(3 + 32 * (index % 2));
    return sizeof words;
}
