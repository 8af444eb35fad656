// SPDX-License-Identifier: BSD-3-Clause
// PEs that die together may have been connected with each other alone: then nobody's connection
// ends. So after a death the PE that has no parent calls the roll of those whose parent, by number,
// has died, and that have not called it, one after the other, and again later. Jobs by unique id;
// with the tree's lock.
#ifndef GPSH_TCP_ROLL_H
#define GPSH_TCP_ROLL_H

struct gpsh_tcp_tree;

// In how many ms there is something to do, -1: nothing.
int gpsh_tcp_roll_due(const struct gpsh_tcp_tree *t);
// Calls one PE, if it is time, without the lock meanwhile.
void gpsh_tcp_roll_step(struct gpsh_tcp_tree *t);

#endif
