// SPDX-License-Identifier: BSD-3-Clause
// What was added to a heap in GPU memory goes to the node's other PEs as a descriptor, as its first
// piece did at init. docs/adr/0026-heaps-that-grow.md.
#ifndef GPSH_HANDOVER_H
#define GPSH_HANDOVER_H

#include <stddef.h>

// Opens the socket at which this PE takes the others' memory, and writes where it is.
int gpsh_handover_open(char *where, size_t bytes);
// All PEs of this node are in this call: hands over what this PE's heap has got, and maps what the
// others give. `where`: [node PEs] their sockets.
int gpsh_handover_run(const char *const *where);
void gpsh_handover_close(void); // legal if it was never opened

#endif
