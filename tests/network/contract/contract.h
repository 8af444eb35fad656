// SPDX-License-Identifier: BSD-3-Clause
// One suite of promises, run against every transport at the level of its operations. Both PEs live
// in this process: two instances with two heaps, blobs exchanged in memory. Only the origin is
// driven, so a transport whose target has to help fails.
#ifndef CONTRACT_H
#define CONTRACT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "core/config.h"
#include "transport/transport.h"

enum {
    N_PES = 2,
    N_CHANNELS = 2,
    HEAP_BYTES = 24 << 20,
    CONTROL_BYTES = 4096,
    N_LOCKS = 16,
    MOST_SETTINGS = 32
};

static const uint64_t HANG_NS = 60000000000; // longest wait, only against hangs

struct pe {
    struct gpsh_settings settings;
    struct gpsh_transport_env env;
    struct gpsh_transport *transport;
    struct gpsh_channel *channels[N_CHANNELS];
    char *regions[GPSH_REGIONS];
    int failures; // calls of peer_failed, and what the last one was told
    int failed_code;
    int failed_pe;
    char why[200];
};

struct world {
    const struct gpsh_transport_ops *ops;
    const char *devices[N_PES];                 // GPUSHMEM_VERBS_DEVICES of each PE, or NULL
    const char *settings[N_PES][MOST_SETTINGS]; // "NAME=VALUE"
    int n_settings[N_PES];
    const struct gpsh_queue_ops *queues; // instead of copies by the processor, or NULL
    struct pe pes[N_PES];
    char *mapped[GPSH_REGIONS][N_PES];
    bool agents;                  // execute atomics, also where NICs would
    int target;                   // the PE that operations go to; PE 0 is the origin
    struct gpsh_channel *channel; // PE 0's first
};

// All return false after printing what is wrong.
bool world_open(struct world *world);
void world_close(struct world *world);

// Where offset lies in the target's heap, and in the origin's own.
char *target_at(const struct world *world, uint64_t offset);
char *own_at(const struct world *world, uint64_t offset);

// Posts, driving progress while there is no room. Returns what post returned.
int post(struct world *world, struct gpsh_channel *channel, const struct gpsh_op *op);
// Drives the channel until nothing is pending, a failure, or 60 s.
bool drain(struct gpsh_channel *channel);
bool post_and_drain(struct world *world, const struct gpsh_op *op);

struct gpsh_op put_op(const struct world *world, const void *from, uint64_t remote, uint64_t bytes);
struct gpsh_op get_op(const struct world *world, void *to, uint64_t remote, uint64_t bytes);
struct gpsh_op amo_op(const struct world *world, enum gpsh_amo amo, int width, uint64_t remote,
                      uint64_t operand, uint64_t compare, void *result);
struct gpsh_op signal_op(const struct world *world, const void *from, uint64_t remote,
                         uint64_t bytes, uint64_t signal, uint64_t value, unsigned flags);

// Bytes that depend on position and seed, and whether memory holds them.
void fill(char *to, uint64_t bytes, unsigned seed);
bool holds(const char *memory, uint64_t bytes, unsigned seed);
uint64_t random_number(uint64_t *state);

#define CHECK(condition, ...)                                                                      \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            printf("  %s:%d: %s: ", __FILE__, __LINE__, #condition);                               \
            printf(__VA_ARGS__);                                                                   \
            printf("\n");                                                                          \
            return false;                                                                          \
        }                                                                                          \
    } while (0)

struct promise {
    const char *name;
    bool (*check)(struct world *world);
    bool remote_only; // makes no sense towards oneself
    bool nic_only;    // what only a NIC notices
};

// a NULL name ends each
extern const struct promise rma_promises[], amo_promises[], order_promises[], failure_promises[];

#endif
