// SPDX-License-Identifier: BSD-3-Clause
// The library's own rings, proxy threads and p2p transport, put together without a job: device code
// on one side, heaps of pinned host memory on the other, so that what is timed is the ring and the
// proxy and no copy engine.
#ifndef RING_RIG_H
#define RING_RIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpushmem/device_abi.h"
#include "proxy/ring.h"

#if defined(__cplusplus)
extern "C" {
#endif

enum { RING_RIG_PES = 2, RING_RIG_HEAP_BYTES = 16 << 20 }; // PE 0 issues, PE 1 is the target

struct ring_rig;

// `memory` is what host and device share. The proxy threads run on every second of the process's
// CPUs, from the third on; with `started` false there are none, and ring_rig_step makes the passes.
// NULL: the reason was printed.
struct ring_rig *ring_rig_open(const struct gpsh_device_memory *memory, int rings, int proxies,
                               unsigned entries_log2, bool started);
// The same by the verbs transport, on whatever NICs there are. PE 1 is this process too.
struct ring_rig *ring_rig_open_verbs(const struct gpsh_device_memory *memory, int rings,
                                     int proxies, unsigned entries_log2, bool started);
// Not started, nor used yet, and host memory: as if each ring had had `commands`, and each reply
// slot the answers up to `nonce`.
void ring_rig_age(struct ring_rig *rig, uint64_t commands, uint32_t nonce);
// Not started: how long idle proxy threads nap that nobody wakes; else 45 us.
void ring_rig_nap(struct ring_rig *rig, uint64_t nap_ns);
int ring_rig_start(struct ring_rig *rig);
void ring_rig_close(struct ring_rig *rig); // NULL is legal

void ring_rig_handle(const struct ring_rig *rig, struct gpushmem_dev *out);
char *ring_rig_heap(const struct ring_rig *rig, int pe);

// Not started, one proxy thread: whether what it does is recorded, if gpsh_trace_open was called
// before the rig was opened; it is at first.
void ring_rig_trace(struct ring_rig *rig, bool on);

// One pass of the first thread; returns how much happened.
int ring_rig_step(struct ring_rig *rig);
const struct gpushmem_ring *ring_rig_ring(const struct ring_rig *rig, int number);

// Waits until every command is complete. False: something failed, and was printed.
bool ring_rig_drain(struct ring_rig *rig);

// Runs the calling thread on the i-th of the CPUs that proxy threads get.
void ring_rig_pin(int i);

#if defined(__cplusplus)
}
#endif

#endif
