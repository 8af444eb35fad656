// SPDX-License-Identifier: BSD-3-Clause
// Hears of PEs that die on other nodes, where the launcher does not tell. Each PE listens, says
// where beside what it publishes anyway, and joins the tree of tcp_tree.h when it has read
// what all have said.
#ifndef GPSH_NODE_WATCH_H
#define GPSH_NODE_WATCH_H

#include "bootstrap/bootstrap.h"
#include "bootstrap/tcp_wire.h"

struct gpsh_node_watch;

// What a PE says of itself. All zero: it takes no part.
struct gpsh_node_card {
    struct gpsh_tcp_address listens;
    int32_t node;                      // smallest PE of its node
    uint8_t random[GPSH_SECRET_BYTES]; // that of the first PE that takes part is the secret of all
};

// `interface` is GPUSHMEM_BOOTSTRAP_INTERFACE; deaths are noted in `deaths`. NULL: the sentence is
// set, and deaths on other nodes are noticed late.
struct gpsh_node_watch *gpsh_node_watch_open(const struct gpsh_bootstrap *b, const char *interface,
                                             struct gpsh_deaths *deaths);
void gpsh_node_watch_close(struct gpsh_node_watch *watch); // says goodbye; NULL is legal
// NULL: it is all zero.
void gpsh_node_watch_describe(const struct gpsh_node_watch *watch, struct gpsh_node_card *card);
// What PE `pe` has said, once or several times. With the last of them the watch begins, with a
// thread of its own.
void gpsh_node_watch_hear(struct gpsh_node_watch *watch, int pe, const struct gpsh_node_card *card);
// Before a meeting of all PEs, after which the death of each shall be noticed: waits until this PE
// is connected. Says once if it is not.
void gpsh_node_watch_settle(struct gpsh_node_watch *watch);
// The tree, once the watch has begun, else NULL.
struct gpsh_tcp_tree *gpsh_node_watch_tree(const struct gpsh_node_watch *watch);

#endif
