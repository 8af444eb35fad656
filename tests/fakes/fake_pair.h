// SPDX-License-Identifier: BSD-3-Clause
// A verbs transport on fake devices: PE 0 of two, whose peer is a piece of memory of the test.
#ifndef FAKE_PAIR_H
#define FAKE_PAIR_H

#include <stdbool.h>
#include <stdint.h>

#include "core/config.h"
#include "fake_verbs.h"
#include "transport/transport.h"
#include "transports/verbs/setup/verbs_blob.h"

enum {
    PAIR_HEAP = 4 << 20,
    PAIR_CONTROL = 4096,
    PAIR_LOCKS = 64,
    PAIR_NOTES = 2048,
    PAIR_SETTINGS = 12
};

extern int fake_copies;     // by the GPU's driver
extern int fake_copy_error; // not 0: they fail with it

struct fake_pair {
    const char *settings[PAIR_SETTINGS]; // "GPUSHMEM_X=Y", set before fake_pair_open
    uint32_t n_locks;                    // from PAIR_LOCKS on in the control regions
    int lost_pe;                         // 1 + a PE that the runtime knows to be lost, or 0
    int stopped_pe;                      // the same of one that is stopped
    bool lazy;                           // PEs are not connected before the first operation
    int n_channels;                      // 0 means 1; only the first is opened
    enum gpsh_memory_kind heap_kind;
    bool heap_unregistrable; // neither by dma-buf (set fake.dmabuf_error too) nor by pointer
    int dmabuf_fd;
    const char *near_pci;                // what the NIC should be near to
    const struct gpsh_queue_ops *queues; // or NULL: the processor copies
    struct gpsh_settings values;
    struct gpsh_transport_env env;
    struct gpsh_transport *transport;
    struct gpsh_channel *channel;
    char *heap, *there; // PE 0's heap and PE 1's
    uint64_t *control, *control_there;
    bool apart; // PE 1's heap is reached by another way than its words
    void (*peer_rail)(struct gpsh_verbs_blob_rail *rail); // makes PE 1's rail 0 another, or NULL
    bool lives;                                           // the processes of both PEs are known to
    int failures, failed_pe, failed_code;                 // what peer_failed was told,
    int cut_off;                                          // peer_cut_off so often
};

// Opens and connects to both PEs. A negative status, with nothing left open, on failure.
int fake_pair_open(struct fake_pair *pair);
void fake_pair_close(struct fake_pair *pair);
// PE 1's blob as seen by PE 0.
int fake_pair_connect(struct fake_pair *pair, int pe);

struct gpsh_op fake_put(const char *from, uint64_t remote, uint64_t bytes);
struct gpsh_op fake_amo(enum gpsh_amo amo, int width, uint64_t remote, uint64_t operand,
                        uint64_t compare, void *result);
int fake_post_op(struct fake_pair *pair, const struct gpsh_op *op);
// Runs everything posted, and what progress posts then, until nothing moves.
void fake_settle(struct fake_pair *pair);

#endif
