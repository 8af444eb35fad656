// SPDX-License-Identifier: BSD-3-Clause
// Whether the PEs of this node have a core each, and where they are.
#ifndef GPSH_CORES_H
#define GPSH_CORES_H

#include <stdbool.h>

// For `n` PEs, each of which may run on the CPUs of its mask (cpu_set_t, declared with
// _GNU_SOURCE): there are fewer CPUs than PEs, or than PEs that are confined to the same CPUs.
bool gpsh_cores_are_few(const void *masks, int n);

// The same for this node, or what GPUSHMEM_WAIT says instead.
bool gpsh_cores_are_shared(void);

// PEs that nobody has bound may begin on one processor, and stay there for a second though others
// are idle: those that wait yield to each other, so that the kernel sees one busy processor and
// nothing to balance. Once for the thread that has initialised the library, and from its waits now
// and then: if a PE of this node with a smaller number was seen on the same processor, the thread
// moves to one on which none was. It may run wherever it might before.
void gpsh_cores_begin(void);
void gpsh_cores_part(void);

#endif
