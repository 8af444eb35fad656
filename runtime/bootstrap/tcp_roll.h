// SPDX-License-Identifier: BSD-3-Clause
// PEs that die together may have been connected with each other alone: then no living PE sees a
// connection end. So after a death the PE without a parent calls, one after the other, those whose
// parent by number has died and that have not called it themselves; and again later, for those that
// die then. For jobs by unique id. All with the tree's lock.
#ifndef GPSH_TCP_ROLL_H
#define GPSH_TCP_ROLL_H

struct gpsh_tcp_tree;

// In how many ms a step is due; -1: none is.
int gpsh_tcp_roll_due(const struct gpsh_tcp_tree *t);
// Calls one PE, if that is due. Without the lock meanwhile, for half a second at most.
void gpsh_tcp_roll_step(struct gpsh_tcp_tree *t);

#endif
