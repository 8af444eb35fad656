// SPDX-License-Identifier: BSD-3-Clause
// A proxy over a fake transport, driven one pass at a time: no threads, so every order of events
// can be made.
#ifndef TESTS_PROXY_RIG_H
#define TESTS_PROXY_RIG_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "gpushmem/device_host.h"
#include "proxy/proxy.h"
#include "tests/fakes/fake_transport.h"

enum { LOG2 = 6, ENTRIES = 1 << LOG2, REPLIES = 16, HEAP_BYTES = 4096 };

static struct fake fake, other; // data transport, and one for atomics when a test wants two
static struct gpsh_ring_set set;
static struct gpsh_proxy *proxy;
static struct gpsh_peer peers[FAKE_PES];
static struct gpushmem_reply replies[REPLIES];
static _Alignas(64) char heap[HEAP_BYTES], local[HEAP_BYTES], mapped[FAKE_PES][HEAP_BYTES];
static char *direct[FAKE_PES]; // where the peers' heaps are mapped, for tests that say so
static uint64_t heads[4];
static _Atomic bool kernels_wake = true; // producers are threads of this process
static int flushed;                      // what NICs wrote to the GPU, by tests that want it

// Contexts have the last rings: how many, for tests that say so before the rig is set up.
static int n_contexts;
static struct fake lent[2]; // channels for them,
static bool away[2];        // which are in use
static int none_left;       // so often somebody was told

static inline bool take_channels(struct gpsh_channel **channels)
{
    for (int i = 0; i < 2; i++) {
        if (away[i])
            continue;
        away[i] = true;
        channels[0] = &lent[i].channel;
        return true;
    }
    return false;
}

static inline void leave_channels(struct gpsh_channel **channels)
{
    for (int i = 0; i < 2; i++)
        if (channels[0] == &lent[i].channel)
            away[i] = false;
}

static inline void count_none_left(void)
{
    none_left++;
}

static inline void count_flush(void)
{
    flushed++;
}

static inline void set_up(void)
{
    fake_init(&fake);
    fake_init(&other);
    fake_init(&lent[0]);
    fake_init(&lent[1]);
    for (int pe = 0; pe < FAKE_PES; pe++)
        peers[pe] = (struct gpsh_peer){.data = 0, .amo = 0, .reason = ""};
    memset(replies, 0, sizeof replies);
    memset(heads, 0, sizeof heads);
    const struct gpsh_proxy_env env = {.n_pes = FAKE_PES,
                                       .heap = heap,
                                       .heap_bytes = HEAP_BYTES,
                                       .host_memory = true,
                                       .peers = peers,
                                       .n_transports = 2,
                                       .replies = replies,
                                       .n_replies = REPLIES,
                                       .spin_ns = 1000,
                                       .nap_ns = 20000,
                                       .helpers = true,
                                       .wakers = &kernels_wake,
                                       .n_contexts = n_contexts,
                                       .take_channels = take_channels,
                                       .leave_channels = leave_channels,
                                       .none_left = count_none_left};
    cr_assert_eq(gpsh_proxy_create(&env, 1, &proxy), 0);
    uint32_t *sleeping = &proxy->threads[0].sleeping;
    cr_assert_eq(gpsh_ring_set_create(&gpsh_device_memory_host, 2 + n_contexts, LOG2, FAKE_PES,
                                      &sleeping, 1, &set),
                 0);
    cr_assert_eq(gpsh_proxy_attach(proxy, &set), 0);
    proxy->threads[0].port.channels[0] = &fake.channel;
    proxy->threads[0].port.channels[1] = &other.channel;
}

static inline void tear_down(void)
{
    gpsh_proxy_destroy(proxy);
    gpsh_ring_set_destroy(&set);
}

// The data transport's peers are mapped: commands are executed on the spot.
static inline void map_peers(void)
{
    memset(mapped, 0, sizeof mapped);
    for (int pe = 0; pe < FAKE_PES; pe++)
        direct[pe] = mapped[pe];
    fake.channel.direct = direct;
}

// As a thread of a kernel does it, in two steps.
static inline uint64_t reserve(int ring)
{
    *set.rings[ring].head = heads[ring] + 1;
    return heads[ring]++;
}

static inline void write_slot(int ring, uint64_t index, struct gpushmem_command command)
{
    uint64_t words[GPUSHMEM_COMMAND_WORDS];
    cr_assert(index - set.rings[ring].status->consumed < ENTRIES, "the test overran its ring");
    gpushmem_command_pack(&command, gpushmem_ring_lap(index, LOG2), words);
    memcpy(set.rings[ring].slots + (index % ENTRIES) * GPUSHMEM_COMMAND_WORDS, words, sizeof words);
}

static inline uint64_t push(int ring, struct gpushmem_command command)
{
    uint64_t index = reserve(ring);
    write_slot(ring, index, command);
    return index;
}

static inline struct gpushmem_command put_to(int pe)
{
    return (struct gpushmem_command){.opcode = GPUSHMEM_CMD_PUT,
                                     .pe = pe,
                                     .local = (uintptr_t)local,
                                     .remote = (uintptr_t)heap + 64,
                                     .bytes = 32};
}

static inline struct gpushmem_command with_reply(struct gpushmem_command c, uint32_t slot,
                                                 uint32_t nonce)
{
    c.flags |= GPUSHMEM_CMD_REPLY;
    c.reply = (uint64_t)slot << 32 | nonce;
    return c;
}

static inline int step(void)
{
    gpsh_proxy_choose_ways(proxy); // tests change channels and peers as they go
    return gpsh_proxy_step(&proxy->threads[0]);
}

// Is everything complete that was reserved until now? *error as gpsh_proxy_reached has it.
static inline bool quiet_now(int *error)
{
    uint64_t now[GPSH_MAX_RINGS];
    cr_assert_eq(gpsh_proxy_heads(proxy, now), 0);
    return gpsh_proxy_reached(proxy, GPSH_CONTEXT_ALL, now, error);
}

static inline uint64_t consumed(int ring)
{
    return set.rings[ring].status->consumed;
}

static inline uint64_t completed(int ring)
{
    return set.rings[ring].status->completed;
}

static inline uint64_t reply_value(uint32_t slot)
{
    return (replies[slot].high & UINT32_MAX) << 32 | (replies[slot].low & UINT32_MAX);
}

#endif
