// SPDX-License-Identifier: BSD-3-Clause
// Who of the job lives: the one detector of deaths between PEs that are connected by TCP.
#ifndef GPSH_TCP_MEMBERSHIP_H
#define GPSH_TCP_MEMBERSHIP_H

#include "bootstrap/tcp_tree_state.h"

// PEs that die together may have been connected with each other alone: then no living PE sees a
// connection end. So after a death the PE without a parent calls, one after the other, those whose
// parent by number has died and that have not called it themselves; and again later, for those that
// die then. For jobs by unique id. All with the tree's lock.
// In how many ms a step is due; -1: none is.
int gpsh_tcp_sweep_due(const struct gpsh_tcp_tree *t);
// Calls one PE, if that is due. Without the lock meanwhile, for half a second at most.
void gpsh_tcp_sweep_step(struct gpsh_tcp_tree *t);

// The tree of PEs where a launcher has started them on several nodes and tells nobody who dies: it
// exchanges nothing and hears of deaths alone. On each node the lowest-numbered PE that lives is
// connected with another node's, and the node's other PEs with it, so that each node has one
// connection upwards. Each PE looks for its own way into the tree, at first and whenever the PE
// above it dies (docs/design/failures.md).
// Before the tree's thread is started. node[n_pes] is the smallest PE of each one's node;
// addresses[n_pes], which is taken, is where they listen; a version of 0 marks a PE that takes no
// part. `secret`, of all who do, takes the place of the id's. 0 or GPUSHMEM_ERR_NO_MEMORY.
int gpsh_tcp_tree_watch_nodes(struct gpsh_tcp_tree *tree, const int *node,
                              struct gpsh_tcp_address *addresses,
                              const uint8_t secret[GPSH_SECRET_BYTES]);
// Waits until this PE is connected with the one above it, has none, or cannot reach any; at most
// `ms`. False: it is not connected, and the sentence says why.
bool gpsh_tcp_tree_await_nodes(struct gpsh_tcp_tree *tree, int ms);
// Somebody on this PE's node knows that `pe` has died: the others are told. Any thread.
void gpsh_tcp_tree_tell_death(struct gpsh_tcp_tree *tree, int pe, const char *reason);

// Whom PE `me` calls, best first: PEs of its own node that are smaller; those of the nodes above
// its own in a tree of nodes; those of all other nodes that come before its own. A node comes
// before another if its smallest PE is smaller, so that nobody is ever below itself. order[n_pes].
// Returns how many, or -1: no memory.
int gpsh_tcp_nodes_order(const int *node, int n_pes, int me, int *order);

// For tcp_tree.c, with the lock. A connection that nobody said goodbye on is lost.
void gpsh_tcp_nodes_lost(struct gpsh_tcp_tree *t, const struct gpsh_tcp_link *link);
// Whether `pe` may be below this PE.
bool gpsh_tcp_nodes_admit(const struct gpsh_tcp_tree *t, int pe);
// Does what is due, and may block for seconds, without the lock.
void gpsh_tcp_nodes_step(struct gpsh_tcp_tree *t);
int gpsh_tcp_nodes_due(const struct gpsh_tcp_tree *t);  // in how many ms, -1: never
void gpsh_tcp_nodes_free(struct gpsh_tcp_nodes *nodes); // NULL is legal

#endif
