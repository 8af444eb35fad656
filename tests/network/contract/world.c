// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "contract.h"
#include "core/clock.h"
#include "core/config.h"
#include "core/error.h"

static int copy(void *to, const void *from, size_t bytes)
{
    memmove(to, from, bytes);
    return 0;
}

static void on_peer_failed(void *arg, int pe, int code, const char *why)
{
    struct pe *self = arg;
    self->failures++;
    self->failed_pe = pe;
    self->failed_code = code;
    snprintf(self->why, sizeof self->why, "%s", why);
}

static bool read_settings(struct world *world, int index)
{
    struct pe *pe = &world->pes[index];
    char *environment[MOST_SETTINGS + 2] = {0}, devices[256];
    int n = 0;
    for (; n < world->n_settings[index]; n++)
        environment[n] = (char *)world->settings[index][n];
    snprintf(devices, sizeof devices, "GPUSHMEM_VERBS_DEVICES=%s",
             world->devices[index] ? world->devices[index] : "");
    environment[n] = devices;
    CHECK(gpsh_settings_read(environment, &pe->settings) == 0, "%s", gpsh_last_error());
    return true;
}

static bool open_pe(struct world *world, int index)
{
    static const size_t bytes[GPSH_REGIONS] = {
        [GPSH_HEAP] = HEAP_BYTES, [GPSH_CONTROL] = CONTROL_BYTES, [GPSH_STATIC] = CONTROL_BYTES};
    struct pe *pe = &world->pes[index];
    if (!read_settings(world, index))
        return false;
    pe->failed_pe = -1;
    pe->env = (struct gpsh_transport_env){.my_pe = index,
                                          .n_pes = N_PES,
                                          .node_pe = 0,
                                          .settings = &pe->settings,
                                          .copy = copy,
                                          .queues = world->queues,
                                          .channels = N_CHANNELS,
                                          .locks = CONTROL_BYTES - N_LOCKS * 8,
                                          .n_locks = N_LOCKS,
                                          .peer_failed = on_peer_failed,
                                          .arg = pe};
    for (int r = 0; r < GPSH_REGIONS; r++) {
        pe->regions[r] =
            mmap(NULL, bytes[r], PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(pe->regions[r] != MAP_FAILED, "no memory");
        world->mapped[r][index] = pe->regions[r];
        pe->env.regions[r] =
            (struct gpsh_region){pe->regions[r], bytes[r], GPSH_MEMORY_HOST, -1, -1};
        pe->env.mapped[r] = world->mapped[r];
    }
    CHECK(world->ops->open(&pe->env, &pe->transport) == 0, "%s", gpsh_last_error());
    for (int c = 0; c < N_CHANNELS; c++)
        CHECK(world->ops->channel_open(pe->transport, c, &pe->channels[c]) == 0, "%s",
              gpsh_last_error());
    return true;
}

static bool connect_pe(struct world *world, int from, int to)
{
    struct gpsh_transport *peer = world->pes[to].transport;
    int64_t bytes = world->ops->describe(peer, NULL, 0);
    CHECK(bytes >= 0, "%s", gpsh_last_error());
    char *blob = malloc((size_t)bytes + 1);
    CHECK(blob && world->ops->describe(peer, blob, (size_t)bytes) == bytes,
          "a blob of another size than announced");
    int status = world->ops->connect(world->pes[from].transport, to, blob, (size_t)bytes);
    free(blob);
    bool self_only = world->ops == &gpsh_loop_ops && from != to;
    CHECK(status == (self_only ? GPUSHMEM_ERR_UNREACHABLE : 0), "%d: %s", status,
          gpsh_last_error());
    return true;
}

// On every PE if any needs it, as the runtime does.
static bool serve_atomics(struct world *world)
{
    bool needed = world->agents;
    for (int i = 0; i < N_PES; i++)
        needed |= world->pes[i].transport->no_atomics;
    for (int i = 0; needed && i < N_PES; i++)
        CHECK(world->ops->serve_atomics(world->pes[i].transport) == 0, "%s", gpsh_last_error());
    return true;
}

bool world_open(struct world *world)
{
    for (int i = 0; i < N_PES; i++)
        if (!open_pe(world, i))
            return false;
    if (!serve_atomics(world))
        return false;
    for (int from = 0; from < N_PES; from++)
        for (int to = 0; to < N_PES; to++)
            if (!connect_pe(world, from, to))
                return false;
    world->channel = world->pes[0].channels[0];
    return true;
}

void world_close(struct world *world)
{
    for (int i = 0; i < N_PES; i++) {
        struct pe *pe = &world->pes[i];
        for (int c = 0; c < N_CHANNELS && pe->transport; c++)
            if (pe->channels[c])
                world->ops->channel_close(pe->channels[c]);
        if (pe->transport)
            world->ops->close(pe->transport);
        for (int r = 0; r < GPSH_REGIONS; r++)
            if (pe->regions[r])
                munmap(pe->regions[r], pe->env.regions[r].bytes);
        gpsh_settings_clear(&pe->settings);
        memset(pe, 0, sizeof *pe);
    }
}

char *target_at(const struct world *world, uint64_t offset)
{
    return world->pes[world->target].regions[GPSH_HEAP] + offset;
}

char *own_at(const struct world *world, uint64_t offset)
{
    return world->pes[0].regions[GPSH_HEAP] + offset;
}

int post(struct world *world, struct gpsh_channel *channel, const struct gpsh_op *op)
{
    uint64_t start_ns = gpsh_clock_ns();
    for (;;) {
        int status = world->ops->post(channel, op);
        if (status != GPSH_POST_AGAIN || gpsh_clock_ns() - start_ns > HANG_NS)
            return status;
        world->ops->progress(channel);
    }
}

bool drain(struct gpsh_channel *channel)
{
    uint64_t start_ns = gpsh_clock_ns();
    while (channel->pending) {
        channel->ops->progress(channel);
        CHECK(gpsh_clock_ns() - start_ns <= HANG_NS, "still %llu operations pending",
              (unsigned long long)channel->pending);
    }
    for (int pe = 0; pe < N_PES; pe++)
        CHECK(channel->flows[pe].posted == channel->flows[pe].completed,
              "PE %d: %llu posted, %llu completed", pe,
              (unsigned long long)channel->flows[pe].posted,
              (unsigned long long)channel->flows[pe].completed);
    return true;
}

bool post_and_drain(struct world *world, const struct gpsh_op *op)
{
    int status = post(world, world->channel, op);
    CHECK(status >= 0 && status != GPSH_POST_AGAIN, "post returned %d: %s", status,
          gpsh_last_error());
    return drain(world->channel);
}

struct gpsh_op put_op(const struct world *world, const void *from, uint64_t remote, uint64_t bytes)
{
    return (struct gpsh_op){.kind = GPSH_OP_PUT,
                            .pe = world->target,
                            .local = (char *)from,
                            .remote = remote,
                            .bytes = bytes};
}

struct gpsh_op get_op(const struct world *world, void *to, uint64_t remote, uint64_t bytes)
{
    return (struct gpsh_op){
        .kind = GPSH_OP_GET, .pe = world->target, .local = to, .remote = remote, .bytes = bytes};
}

struct gpsh_op amo_op(const struct world *world, enum gpsh_amo amo, int width, uint64_t remote,
                      uint64_t operand, uint64_t compare, void *result)
{
    return (struct gpsh_op){.kind = GPSH_OP_AMO,
                            .amo = (uint8_t)amo,
                            .width = (uint8_t)width,
                            .pe = world->target,
                            .remote = remote,
                            .operand = operand,
                            .compare = compare,
                            .result = result};
}

struct gpsh_op signal_op(const struct world *world, const void *from, uint64_t remote,
                         uint64_t bytes, uint64_t signal, uint64_t value, unsigned flags)
{
    struct gpsh_op op = put_op(world, from, remote, bytes);
    op.kind = GPSH_OP_PUT_SIGNAL;
    op.signal = signal;
    op.operand = value;
    op.flags = (uint8_t)flags;
    return op;
}

// Eight bytes at a time, since the guest's processors are emulated. Every byte is another one for
// another seed.
static uint64_t pattern(uint64_t word, unsigned seed)
{
    return word * 0x9e3779b97f4a7c15 + seed * 0x1d1d1d1d1d1d1d1dull;
}

void fill(char *to, uint64_t bytes, unsigned seed)
{
    for (uint64_t i = 0; i < bytes; i += 8) {
        uint64_t value = pattern(i / 8, seed);
        memcpy(to + i, &value, bytes - i < 8 ? bytes - i : 8);
    }
}

bool holds(const char *memory, uint64_t bytes, unsigned seed)
{
    for (uint64_t i = 0; i < bytes; i += 8) {
        uint64_t value = pattern(i / 8, seed);
        if (memcmp(memory + i, &value, bytes - i < 8 ? bytes - i : 8) != 0) {
            printf("  one of bytes %llu to %llu of %llu differs\n", (unsigned long long)i,
                   (unsigned long long)i + 7, (unsigned long long)bytes);
            return false;
        }
    }
    return true;
}

uint64_t random_number(uint64_t *state)
{
    *state += 0x9e3779b97f4a7c15; // splitmix64
    uint64_t z = *state;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}
