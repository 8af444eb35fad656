// SPDX-License-Identifier: BSD-3-Clause
// The PEs of a job as a tree of TCP connections, each PE with up to GPSH_TREE_WIDTH children: blobs
// go up and the bundle of all comes down, so that no PE sends more than GPSH_TREE_WIDTH times what
// everybody has to receive. A connection that ends without a goodbye is a PE that died; all are
// told. Those whose parent died call the lowest-numbered PE that lives, so that they hear of the
// next death, too. A thread of each PE does this; the functions may be called from any other one.
#ifndef GPSH_TCP_TREE_H
#define GPSH_TCP_TREE_H

#include "bootstrap/tcp_tree_state.h"

// Listens at *address, whose port it fills in. NULL: the sentence is set.
struct gpsh_tcp_tree *gpsh_tcp_tree_create(const struct gpsh_uniqueid *id, int my_pe, int n_pes,
                                           struct gpsh_tcp_address *address);
// Leaves in order: says goodbye, ends the thread, frees everything.
void gpsh_tcp_tree_destroy(struct gpsh_tcp_tree *tree);
// Nobody else gets this PE's port for a minute when its process dies (tcp_admission.h). Before the
// port is told to anybody.
void gpsh_tcp_tree_hold_port(struct gpsh_tcp_tree *tree);
int gpsh_tcp_tree_start(struct gpsh_tcp_tree *tree); // the thread
// `fd`, which it takes, is connected to this PE's parent.
int gpsh_tcp_tree_set_parent(struct gpsh_tcp_tree *tree, int fd, int pe);
// Everybody has joined. addresses[n_pes] is where all PEs listen, for those whose parent dies, and
// is taken, to be freed. `secret` takes the place of the id's, which others may still have.
void gpsh_tcp_tree_set_addresses(struct gpsh_tcp_tree *tree, struct gpsh_tcp_address *addresses,
                                 const uint8_t secret[GPSH_SECRET_BYTES]);

// Tells all others that this PE gives up, with the thread's last error.
void gpsh_tcp_tree_give_up(struct gpsh_tcp_tree *tree, int code);

// From now on PEs may leave in order: a closed port proves a death only where has_told(pe), which
// is called with the tree's lock, is false: the PE has not told this one that it leaves. With NULL
// it proves none.
void gpsh_tcp_tree_expect_departures(struct gpsh_tcp_tree *tree, bool (*has_told)(int pe));

// See the functions of bootstrap.h.
void gpsh_tcp_tree_on_death(struct gpsh_tcp_tree *tree, gpsh_pe_death_fn fn, void *arg);
int gpsh_tcp_tree_check(struct gpsh_tcp_tree *tree, const char *what, int ms);
// `this_one_too`: this process is ended, by SIGTERM; else the others end by exit with `status`.
void gpsh_tcp_tree_end_job(struct gpsh_tcp_tree *tree, int status, const char *why,
                           bool this_one_too);

#endif
