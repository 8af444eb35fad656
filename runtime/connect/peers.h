// SPDX-License-Identifier: BSD-3-Clause
// Wiring up: opens the transports, exchanges blobs, maps the node's PEs, connects, and decides who
// serves which peer.
#ifndef GPSH_PEERS_H
#define GPSH_PEERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GPSH_PEERS_ANEW = 1 };

// Collective. Needs gpsh_job()->boot, gpsh_settings() and this PE's regions. my_status < 0: this PE
// failed before; it takes part only to tell the others (its last error sentence goes along).
// `collectives`: how this PE carries out collectives, which is the same text on all PEs. Returns 0,
// or what all PEs know of and fail with; or GPSH_PEERS_ANEW on all of them: disconnect, destroy the
// regions, create them, and call again. With 0, *mine is 0, or this PE's own trouble, which the
// others have to be told: the sentence is set.
int gpsh_peers_connect(int my_status, const char *collectives, int *mine);
// With GPUSHMEM_CONNECT=init: waits until this PE is connected with all others, which are asked
// before any is waited for. Word of a death ends the wait, if on_death of the bootstrap calls
// gpsh_peers_gone.
int gpsh_peers_establish(void);
// Bits of enum gpsh_common, for all to agree on; then what is common to all.
uint32_t gpsh_peers_reach(void);
int gpsh_peers_settle(uint32_t common);
void gpsh_peers_disconnect(void);
// Makes what connections to that PE a transport has left to the first operations. The first call
// with `begin`; then call it until it returns 1, or a negative status. Any thread.
int gpsh_peer_establish(int pe, bool begin);
// The process of that PE has ended, in order or not: what the transports still have under way to it
// fails, without waiting until the network has found out. Any thread, any time.
void gpsh_peers_gone(int pe);

// One line on how `pe` is reached and why, as logged at init.
void gpsh_peer_explain(int pe, char *line, size_t bytes);

// Whether kernels that are compiled for it post to NICs towards `pe` themselves.
bool gpsh_peer_kernels_post(int pe);

// One line on this PE's side: where its heap is, which NICs it has, how they reach the heap.
void gpsh_self_explain(char *line, size_t bytes);

#endif
